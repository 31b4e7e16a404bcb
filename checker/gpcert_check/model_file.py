"""The model file.

A gpcert model is a safetensors file: eight bytes with the length of a JSON header, the header, then the raw
doubles of its tensors.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from math import frexp, prod
from typing import Any

from flint import arb_mat

from gpcert_check.model import Latent
from gpcert_check.reading import content, fields, integer, listed, need, reals, strict

MOST_BYTES = 2**30
MOST_HEADER = 2**24
MOST_CENTRES = 5_000
MOST_CLASSES = 1_000
MOST_BITS = 1_000  # of a ball: more than 100 where centres lie many lengthscales from the origin
_KINK = 80  # more where a kernel has a root of the distance: it halves the bits of a distance near 0
_HEADER = "format package_version kernel likelihood mean classes feature_names training"


class Model:
    """What the file says: its hash, its latents, its likelihood."""

    def __init__(self, path: str) -> None:
        blob = content(path, MOST_BYTES)
        self.sha256 = hashlib.sha256(blob).hexdigest()
        size = int.from_bytes(blob[:8], "little")
        need(8 < 8 + size <= len(blob) and size <= MOST_HEADER, "the model's header does not fit its file")
        self._header, self._data = strict(blob[8 : 8 + size], True), blob[8 + size :]
        need(isinstance(self._header, dict), "the model's header is no object")
        (text,) = fields(self._header.get("__metadata__"), "gpcert")
        need(isinstance(text, str), "the model's description is no text")
        about = fields(strict(text.encode(), True), _HEADER)
        format_, _, kernel, self.likelihood, mean, self.classes, self.features, _ = about
        need(format_ == 1, "the model's format must be 1")
        for name in self._header:
            known = name in ("__metadata__", "centres", "weights", "precision") or name.startswith("factors.")
            need(known, f"the model has the unknown tensor {name[:40]}")
        self._read(kernel, mean)
        del self._data

    def _read(self, kernel: Any, mean: Any) -> None:
        shape, flat = self._tensor("centres")
        fits = len(shape) == 2 and shape[0] <= MOST_CENTRES
        need(fits, f"the centres must have shape (n, D), n at most {MOST_CENTRES}")
        n, D = self.n, self.D = shape
        centres = [flat[i * D : (i + 1) * D] for i in range(n)]
        shape, weights = self._tensor("weights")
        C = self.C = 1 if len(shape) == 1 else integer(shape[1], 1, MOST_CLASSES)
        need(shape in ([n], [n, C]), "the weights do not fit the centres")
        shape, R = self._tensor("precision")
        correlated = C > 1 and shape == [C, C, n, n]
        fits = correlated or shape == ([n, n] if C == 1 else [C, n, n])
        need(fits, "the precision must have shape (n, n), (C, n, n) or (C, C, n, n)")
        kernels = listed(kernel if isinstance(kernel, list) else [kernel] * C, C, "kernels")
        means = reals(mean if isinstance(mean, list) else [mean] * C, C)
        parts = enumerate(zip(kernels, means, strict=True))
        step = (C + 1 if correlated else 1) * n * n  # from one latent's own block to the next one's
        own = [R[c * step : c * step + n * n] for c in range(C)]
        self.latents = [Latent(centres, k, weights[c::C], own[c], m) for c, (k, m) in parts]
        self.blocks = self._blocks(R) if correlated else None
        least = min(frexp(x)[1] for latent in self.latents for x in latent.scale)
        self.bits = min(max(100 + 2 * (max(frexp(x)[1] for x in flat) - least), 100), MOST_BITS)
        self.bits += 0 if all(latent.profile.gaussian for latent in self.latents) else _KINK
        self.witness: list[Any] = [None] * C
        if "factors.site_precision" in self._header:
            shape, W = self._tensor("factors.site_precision")
            need(shape == ([n] if C == 1 else [C, n]), "the site precisions do not fit the centres")
            self.witness = [W[c * n : (c + 1) * n] for c in range(C)]

    def _blocks(self, R: list[float]) -> list[list[arb_mat]]:
        """R_ce (n, n) of correlated latents; together they are symmetric."""
        n, C = self.n, self.C
        starts = [[(c * C + e) * n * n for e in range(C)] for c in range(C)]
        for a, b in [(starts[c][e], starts[e][c]) for c in range(C) for e in range(c)]:
            mirrored = all(R[a + i * n : a + (i + 1) * n] == R[b + i : b + n * n : n] for i in range(n))
            need(mirrored, "the precision is not symmetric")
        return [[arb_mat(n, n, R[a : a + n * n]) for a in line] for line in starts]

    def _tensor(self, name: str) -> tuple[list[int], list[float]]:
        """Its shape and its doubles."""
        kind, shape, offsets = fields(self._header.get(name), "dtype shape data_offsets")
        need(isinstance(shape, list) and 1 <= len(shape) <= 4, f"the shape of {name}")
        count = prod(integer(length, 1, 10**7) for length in shape)
        first, last = (integer(x, 0, len(self._data)) for x in listed(offsets, 2))
        need(kind == "F64" and last - first == 8 * count, f"the tensor {name} does not fit its file")
        values = array("d", self._data[first:last])
        if sys.byteorder == "big":
            values.byteswap()
        need(all(x - x == 0 for x in values), f"{name} is not finite")
        return shape, values.tolist()

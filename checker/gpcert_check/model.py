"""The model file, and what is proved about it once (V1).

A gpcert model is a safetensors file: eight bytes with the length of a JSON header, the header, then the raw
doubles of its tensors. All numbers are doubles, taken as the rational numbers they are.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Sequence
from math import frexp
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot, largest
from gpcert_check.reading import content, fields, listed, need, real, reals, strict

__all__ = ["Latent", "Model"]

MOST_BYTES = 2**31
MOST_HEADER = 2**24
MOST_CENTRES = 5_000
MOST_RESIDUAL = arb(2) ** -10
MOST_BITS = 1_000  # of a ball: more than 100 where centres lie many lengthscales from the origin
_HEADER = "format package_version kernel likelihood mean classes feature_names training"


class Latent:
    """mu(x) = m0 + k(x).alpha and S(x) = s2 - k(x)^T R k(x), k(x, x') = s2 exp(-|(x - x')/l|^2/2).

    After `verify`: -negative |g|^2 <= z^T R z <= (1 + surplus) |g|^2 for every g in the kernel's Hilbert
    space and z = (g(x_i)), so -lift <= S <= top everywhere.
    """

    def __init__(
        self, centres: list[list[float]], kernel: Any, alpha: list[float], R: list[float], m0: float
    ) -> None:
        self.X, self.alpha, self.m0 = centres, alpha, m0
        self.n, self.D = len(centres), len(centres[0])
        kind, scales, s2 = fields(kernel, "type lengthscale variance")
        need(kind == "rbf", f"this checker knows the Gaussian kernel, got {str(kind)[:40]}")
        self.scale = [real(scales)] * self.D if isinstance(scales, str) else reals(scales, self.D)
        self.s2 = real(s2)
        need(self.s2 > 0 and all(x > 0 for x in self.scale), "variance and lengthscales must be positive")
        n = self.n
        need(
            all(R[i * n + j] == R[j * n + i] for i in range(n) for j in range(i)),
            "the precision is not symmetric",
        )
        self.R = arb_mat(n, n, R)
        self._grams: dict[tuple[int, ...], arb_mat] = {}
        self.surplus = self.negative = self.lift = self.top = arb("nan")  # until they are proved

    def gram(self, features: Sequence[int]) -> arb_mat:
        """The matrix exp(-|x_i - x_j|^2/2) over the given features, in lengthscales; the last one is kept."""
        key = tuple(features)
        if key not in self._grams:
            n = self.n
            Z = arb_mat(n, len(key), [arb(row[j]) / self.scale[j] for row in self.X for j in key])
            inner = (Z * Z.transpose()).tolist()
            half = [inner[i][i] / 2 for i in range(n)]
            K = [[arb(1)] * n for _ in range(n)]
            for i, (row, h) in enumerate(zip(inner, half, strict=True)):
                for j in range(i):
                    K[i][j] = K[j][i] = (row[j] - h - half[j]).exp()
            self._grams = {key: arb_mat(K)}
        return self._grams[key]

    def verify(self, W: Sequence[float]) -> None:
        """V1: R = (K + diag(1/W))^-1 up to a residual, for a positive witness W."""
        n = self.n
        need(all(w > 0 for w in W), "V1: the witness must be positive")
        B = self.gram(range(self.D)) * arb(self.s2)
        for i in range(n):
            B[i, i] += 1 / arb(W[i])
        columns = [arb(0)] * n
        for i, row in enumerate((self.R * B).tolist()):
            row[i] -= 1
            columns = [total + abs(x) for total, x in zip(columns, row, strict=True)]
        rho = largest(columns)
        need(rho < MOST_RESIDUAL, "V1: the precision is not (K + W^-1)^-1 for the witness W")
        self.settle(rho, arb(0))

    def settle(self, surplus: arb, negative: arb) -> None:
        """What follows from the two contractions."""
        self.surplus, self.negative = surplus, negative
        self.lift, self.top = surplus * self.s2, (1 + negative) * self.s2

    def at(self, x: Sequence[float]) -> tuple[arb, arb]:
        """The latent mean and the variance, clipped at 0, at a point of doubles."""
        steps = [[(arb(c) - a) / s for c, a, s in zip(row, x, self.scale, strict=True)] for row in self.X]
        k = [self.s2 * (-dot(row, row) / 2).exp() for row in steps]
        column = arb_mat(self.n, 1, k)
        explained = (column.transpose() * (self.R * column))[0, 0]
        return self.m0 + dot(self.alpha, k), (self.s2 - explained).nonnegative_part()


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
        format_, _, kernel, self.likelihood, mean, *_ = fields(strict(text.encode(), True), _HEADER)
        need(format_ == 1, "the model's format must be 1")
        for name in self._header:
            known = name in ("__metadata__", "centres", "weights", "precision") or name.startswith("factors.")
            need(known, f"the model has the unknown tensor {name[:40]}")
        self._read(kernel, mean)
        del self._data

    def _read(self, kernel: Any, mean: Any) -> None:
        (n, D), flat = self._tensor("centres", 2)
        self.n, self.D = n, D
        centres = [flat[i * D : (i + 1) * D] for i in range(n)]
        shape, weights = self._tensor("weights", None)
        need(shape[0] == n and len(shape) <= 2, "the weights do not fit the centres")
        C = self.C = 1 if len(shape) == 1 else shape[1]
        shape, R = self._tensor("precision", None)
        need(shape == ([n, n] if C == 1 else [C, n, n]), "the precision must have shape (n, n), or (C, n, n)")
        kernels = kernel if isinstance(kernel, list) else [kernel] * C
        means = mean if isinstance(mean, list) else [mean] * C
        parts = zip(listed(kernels, C, "kernels"), reals(means, C), strict=True)
        self.latents = [
            Latent(centres, own, weights[c::C], R[c * n * n : (c + 1) * n * n], m0)
            for c, (own, m0) in enumerate(parts)
        ]
        sizes = (frexp(x)[1] for row in centres for x in row)
        least = min(frexp(x)[1] for latent in self.latents for x in latent.scale)
        self.bits = min(max(100 + 2 * (max(sizes) - least), 100), MOST_BITS)
        self.witness = None
        if "factors.site_precision" in self._header:
            shape, W = self._tensor("factors.site_precision", None)
            need(shape == ([n] if C == 1 else [C, n]), "the site precisions do not fit the centres")
            self.witness = [W[c * n : (c + 1) * n] for c in range(C)]

    def _tensor(self, name: str, axes: int | None) -> tuple[list[int], list[float]]:
        about = self._header.get(name)
        kind, shape, offsets = fields(about, "dtype shape data_offsets")
        need(
            isinstance(shape, list) and 1 <= len(shape) <= 4 and axes in (None, len(shape)),
            f"the shape of {name}",
        )
        count = 1
        for length in shape:
            need(type(length) is int and 1 <= length <= 10**7, f"the shape of {name}")
            count *= length
        first, last = listed(offsets, 2)
        fits = (
            type(first) is type(last) is int
            and first >= 0
            and last - first == 8 * count
            and last <= len(self._data)
        )
        need(kind == "F64" and fits, f"the tensor {name} does not fit its file")
        need(
            name != "centres" or shape[0] <= MOST_CENTRES, f"a model may have at most {MOST_CENTRES} centres"
        )
        values = array("d", self._data[first:last])
        if sys.byteorder == "big":
            values.byteswap()
        need(all(x - x == 0 for x in values), f"{name} is not finite")
        return shape, values.tolist()

"""Tests of a device before it is trusted: that its float64 keeps the assumptions of R1, R2 and J8.

A library may compute in fewer digits than it says (TF32, emulation by integers, fused approximations),
and only for some shapes or kinds of calls: the tests use the engine's. A device that fails is refused
with the reason.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from gpcert.engine.backend import Torch
from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float

#: Shapes of products: (rows, inner, columns), from those of one row to those of a chunk.
_SHAPES = ((1, 64, 64), (17, 1000, 196), (256, 1000, 1000), (4096, 1000, 128))


@lru_cache(maxsize=4)
def trusted(device: str) -> str | None:
    """None, or why the device is not."""
    return flaw(Torch(device))


def flaw(backend: Torch) -> str | None:
    """The first assumption that the device was seen to break; None: none was."""
    rng = np.random.default_rng(0)
    for shape in _SHAPES:
        if not _product_keeps_small_terms(backend, shape):
            return f"a product of shape {shape} loses small terms: float64 is emulated or reduced"
        if not _product_is_summed(backend, shape, rng):
            return f"a product of shape {shape} is not a sum in some order: its error exceeds gamma(n)|A||B|"
    for name, (function, exact, points, ulps) in _functions(backend).items():
        worst = _relative(backend.numpy(function(backend.array(points))), exact(points))
        if not (worst <= ulps).all():
            return f"{name} is wrong by more than its assumed error"
    return None


def _product_keeps_small_terms(backend: Torch, shape: tuple[int, int, int]) -> bool:
    """[1, 2^-45, -1].[1, 1, 1], [1, 2^-200].[0, 1] and [0, 1].[1, 2^-200]: exact in any order of float64
    sums, and in no arithmetic of fixed point relative to the largest entry of a row or of a column.
    """
    rows, inner, columns = shape
    for left, right, expected in (
        ((1.0, 2.0**-45, -1.0), (1.0, 1.0, 1.0), 2.0**-45),
        ((1.0, 2.0**-200, 0.0), (0.0, 1.0, 0.0), 2.0**-200),
        ((0.0, 1.0, 0.0), (1.0, 2.0**-200, 0.0), 2.0**-200),
    ):
        A, B = np.zeros((rows, inner)), np.zeros((inner, columns))
        A[:, :3], B[:3] = left, np.array(right)[:, None]
        if not all((backend.numpy(found) == expected).all() for found in _products(backend, A, B)):
            return False
    return True


def _product_is_summed(backend: Torch, shape: tuple[int, int, int], rng: np.random.Generator) -> bool:
    """A graded product against sums in extended precision, by R1."""
    rows, inner, columns = shape
    A = rng.standard_normal((rows, inner)) * 2.0 ** rng.integers(-40, 40, (rows, inner))
    B = rng.standard_normal((inner, columns)) * 2.0 ** rng.integers(-40, 40, (inner, columns))
    few, cut = rng.integers(0, rows, 8), rng.integers(0, columns, 8)
    long = np.longdouble
    exact = np.einsum("ij,ji->i", A[few].astype(long), B[:, cut].astype(long))
    size = np.einsum("ij,ji->i", abs(A[few]), abs(B[:, cut]))
    room = (gamma(inner) + 4 * UNIT) * size
    return all(
        (abs(backend.numpy(found)[few, cut] - exact) <= room).all() for found in _products(backend, A, B)
    )


def _products(backend: Torch, A: Float, B: Float) -> list[Any]:
    """Every kind of call the engine makes: one product, a batch, one with a sum, transposed, with vectors."""
    torch = backend.torch
    a, b = backend.array(A), backend.array(B)
    both = torch.stack([a, a]), torch.stack([b, b])
    zero = torch.zeros((2, len(A), B.shape[1]), dtype=torch.float64, device=backend.device)
    columns = torch.stack(
        [torch.bmm(torch.stack([a, a]), torch.stack([c, c])[:, :, None])[1, :, 0] for c in b.T[:4]]
    )
    wide = torch.cat([columns.T, (a @ b)[:, 4:]], dim=1)
    return [
        a @ b,
        torch.bmm(*both)[1],
        torch.baddbmm(zero, *both)[0],
        torch.mm(b.T.contiguous(), a.T).T,
        wide,
    ]


def _functions(backend: Torch) -> dict[str, Any]:
    """Name -> (the device's function, a reference, points, allowed relative errors)."""
    xp = backend.xp
    small = np.concatenate([np.linspace(-700.0, 100.0, 20001), -(2.0 ** np.arange(-60, 9))])
    tails = np.concatenate([np.linspace(-6.0, 26.0, 20001), 2.0 ** np.arange(-60.0, 4.0)])
    grown = np.concatenate([np.linspace(1e-3, 30.0, 20001), 2.0 ** np.arange(-60.0, 4.0)])
    return {
        "exp": (xp.exp, np.exp, small, 12 * UNIT),
        "expm1": (xp.expm1, np.expm1, grown, 12 * UNIT),
        "log1p": (xp.log1p, np.log1p, grown, 12 * UNIT),
        "sqrt": (xp.sqrt, np.sqrt, grown, 4 * UNIT),
        "erfc": (backend.erfc, special.erfc, tails, UNIT * (24.0 + 8.0 * np.maximum(tails, 0.0) ** 2)),
    }


def _relative(found: Float, exact: Float) -> Float:
    return np.asarray(np.abs(found - exact) / np.abs(exact))

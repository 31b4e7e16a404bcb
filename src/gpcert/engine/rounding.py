"""One-sided functions on arrays (docs/maths/batches.md, J8): the same on numpy and on a device."""

from __future__ import annotations

import math

import numpy as np

from gpcert.engine.backend import Array, Backend
from gpcert.rounding import TINY, UNIT

#: Terms of the series of a tail that are summed, and the largest h^2 for which twice the last bounds the
#: rest.
_TERMS, LARGEST_SPAN = 40, 16.0
#: Assumed relative errors of exp, expm1, log1p and sqrt: 8 ulp (R2).
EXP = 16 * UNIT


def tail_squares(backend: Backend, order: int, squares: Array) -> Array:
    """R5: at least sum_{p >= order} h^(2p) / p! for h^2 = `squares` (N,); inf above LARGEST_SPAN, NaN for
    NaN.

    The ratio of terms is below 16/41 after 40 of them: the rest is at most the last one.
    """
    terms = backend.powers(squares, np.arange(1.0, order + _TERMS))[:, order - 1 :]
    found = (backend.xp.sum(terms, axis=1) + 2.0 * terms[:, -1]) * (1.0 + 512 * UNIT) + TINY
    return backend.xp.where(squares > LARGEST_SPAN, backend.xp.zeros_like(found) + math.inf, found)


def exp_up(backend: Backend, x: Array) -> Array:
    """R2: at least e^x."""
    return backend.xp.exp(x) * (1.0 + 2 * EXP) + TINY


def sqrt_up(backend: Backend, x: Array) -> Array:
    """At least the root of max(0, x)."""
    return backend.xp.sqrt(backend.xp.clip(x, 0.0, None)) * (1.0 + 2 * EXP) + TINY


def sqrt_down(backend: Backend, x: Array) -> Array:
    """At most the root of max(0, x)."""
    return backend.xp.sqrt(backend.xp.clip(x, 0.0, None)) * (1.0 - 2 * EXP)


def normal_down(backend: Backend, x: Array) -> Array:
    """At most Phi(x), for an erfc(y), y = -x / sqrt 2, of relative error 32u + 8u y^2 (J8); 0 for NaN."""
    return _normal(backend, x, -1.0, 0.0)


def normal_up(backend: Backend, x: Array) -> Array:
    """At least Phi(x), at most 1; 1 for NaN."""
    return _normal(backend, x, 1.0, 1.0)


def _normal(backend: Backend, x: Array, side: float, unknown: float) -> Array:
    xp = backend.xp
    inside = xp.clip(x, -37.0, 37.0)  # beyond, the ends below are true
    moved = inside + side * 8 * UNIT * xp.abs(inside)
    value = 0.5 * backend.erfc(moved * (-1.0 / math.sqrt(2.0)))
    tail = xp.clip(moved, None, 0.0)  # e^{-x^2/2} is what loses digits, and only there
    value = value * (1.0 + side * UNIT * (64.0 + 16.0 * tail * tail)) + side * TINY
    value = xp.clip(value, 0.0, 1.0)
    value = xp.where((x < -37.0) & (value > 0.0), value * 0.0 + (0.0 if side < 0 else 1e-290), value)
    return xp.where(x == x, value, xp.zeros_like(value) + unknown)  # NaN alone is not itself

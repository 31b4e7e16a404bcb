"""The fixed form of the remainders (J2) in few directions, for models with many centres (J18).

An upper bound of the form is all that is asked: a factor of low rank, and the norm of what it leaves, in the
metric in which the weights of planes are about equally large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.engine.backend import Array
from gpcert.rounding import gamma, sqrt_up, sum_up
from gpcert.validation import Float

__all__ = ["Tails", "tails_of"]

#: Centres from which it pays, directions, and rows of the matrix that are compared at once.
MANY, RANK, _BLOCK = 2048, 768, 1024
#: The factor suffices if what it leaves is at most this share of the remainder, in the middle of some rows.
_SMALL, _SAMPLES = 0.2, 32
#: The least weight, as a share of the largest.
_LEAST = 1e-3


class Tails(NamedTuple):
    """u^T E u <= |factor^T u|^2 + sum_i rest_i u_i^2 for every u (n,); factor (n, q), rest (n,)."""

    factor: Array
    rest: Array


def tails_of(moving: Float, metric: Float, weights: Float, variance: float) -> Tails | None:
    """J18 for centres z (n, d) and L^2 (d,), where it pays: judged by the mean alone, with some centres as
    references.
    """
    if len(moving) < MANY:
        return None
    units = moving / np.sqrt(metric)
    few = np.random.default_rng(2).integers(len(units), size=_SAMPLES)
    half, turned = (
        np.stack([0.5 * np.einsum("ij,ij->i", z - z[i], z - z[i]) for i in few]) for z in (moving, units)
    )
    bk = variance * np.exp(-half) * weights
    first = bk @ units - bk.sum(axis=1)[:, None] * units[few]
    known = bk.sum(axis=1) ** 2 + np.einsum("ij,ij->i", first, first)
    return factored(units, weights, bk * np.exp(turned), known)


def factored(units: Float, weights: Float, planes: Float, known: Float) -> Tails | None:
    """J18 for E = exp(units units^T), units (n, d) = L^-1 z. `weights` (n,): how large those of planes are;
    `planes` (m, n), of u e^{|units|^2 / 2}, and `known` (m,), the orders that they know, decide whether it
    is good enough. None: it is not.
    """
    half = 0.5 * np.einsum("ij,ij->i", units, units)
    scale = np.sqrt(np.abs(weights) + _LEAST * np.abs(weights).max(initial=0.0))
    if not (scale > 0).all():
        return None
    factor = _factor(units, half, scale)
    lengths = np.einsum("ij,ij->i", factor, factor)
    if not (lengths <= 1.01 * scale**2).all():
        return None
    seen = planes / scale
    squares, form = 0.0, np.zeros(len(planes))
    for start in range(0, len(units), _BLOCK):
        part = slice(start, start + _BLOCK)
        A = _rows(units, half, scale, part)
        form += np.einsum("ij,ij->i", seen @ A.T, seen[:, part])
        A -= factor[part] @ factor.T
        squares += sum_up(A * A)
    tail = (sqrt_up(squares) + 2.1 * gamma(RANK + 16) * sum_up(scale * scale)) * (1.0 + 1e-9)
    left = tail * np.einsum("ij,ij->i", seen, seen)
    if not np.median(left) <= _SMALL * np.median(form - known):
        return None
    grown = np.exp(half) / scale
    return Tails(grown[:, None] * factor, tail * (grown * grown) * (1.0 + 1e-9))


def _rows(units: Float, half: Float, scale: Float, part: slice) -> Float:
    """Some rows of scale_i exp(-|units_i - units_j|^2 / 2) scale_j."""
    A = units[part] @ units.T
    A -= half[part, None]
    A -= half
    np.exp(A, out=A)
    A *= scale[part, None]
    A *= scale
    return np.asarray(A)


def _factor(units: Float, half: Float, scale: Float) -> Float:
    """Cholesky's, pivoted, as far as it goes (n, q): any factor is sound."""
    n = len(units)
    factor, left = np.zeros((min(RANK, n), n)), scale * scale
    for q in range(len(factor)):
        at = int(np.argmax(left))
        if not left[at] > 1e-14 * scale.max() ** 2:
            break
        column = _rows(units, half, scale, slice(at, at + 1))[0] - factor[:q, at] @ factor[:q]
        factor[q] = column / np.sqrt(left[at])
        left = np.maximum(left - factor[q] ** 2, 0.0)
        left[at] = 0.0
    return np.ascontiguousarray(factor.T)

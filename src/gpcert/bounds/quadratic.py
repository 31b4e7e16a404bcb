"""A certified lower bound of a quadratic over a box (docs/maths.md, section 5).

Statement Q1. Let l <= y <= h and D >= 0 be such that A = H + diag(D) is positive semidefinite. Then on the box
    g.d + d^T H d / 2 >= phi(y) + sum_j min(G_j (l_j - y_j), G_j (h_j - y_j)),
    c = g - D (l + h) / 2,  G = c + A y,  phi(y) = c.y + y^T A y / 2 + sum_j D_j l_j h_j / 2.
Any y and D are sound; the search for good ones is ordinary floating point. Coordinates pressed against their bound
by a gradient can take D_j = 2 |g_j| / (h_j - l_j) for nothing: that alone often makes A definite, and the bound
exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from gpcert.rounding import TINY, gamma, is_certainly_psd
from gpcert.validation import Float

__all__ = ["QuadraticBound", "quadratic_lower_bound"]


class QuadraticBound(NamedTuple):
    """`value` <= the minimum over the box; `point` (d,) is where the relaxation attains its own minimum."""

    value: float
    point: Float


def quadratic_lower_bound(g: Float, H: Float, l: Float, h: Float, enough: float = np.inf) -> QuadraticBound:
    """Q1 for g (d,), symmetric H (d, d), box [l, h] containing 0; stops trying once `enough` is certified."""
    width = h - l
    free = _free_curvature(g, l, h, width)
    best = _dual(g, H, free, np.zeros_like(g), l, h)
    if best.value >= min(enough, 0.0):
        return best
    try:
        for D in _curvatures(H, free, width, best.point, l, h):
            y = _minimise(g - 0.5 * D * (l + h), H + np.diag(D), l, h)
            trial = _dual(g, H, D, y, l, h)
            if trial.value > best.value:
                best = trial
            if best.value >= enough:
                break
    except np.linalg.LinAlgError:
        pass
    return best


def _free_curvature(g: Float, l: Float, h: Float, width: Float) -> Float:
    """The largest D that costs nothing at the point 0: where a bound is active and the gradient presses on it."""
    pressed = ((l == 0) & (g > 0)) | ((h == 0) & (g < 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        D = np.where(pressed, 2.0 * np.abs(g) / width, 0.0)
    return np.asarray(np.where(np.isfinite(D), D, 0.0))


def _curvatures(H: Float, free: Float, width: Float, start: Float, l: Float, h: Float):  # type: ignore[no-untyped-def]
    """Candidates D >= `free` making H + diag(D) PSD: the negative part spread by its own diagonal, then evenly."""
    scaled = (H + np.diag(free)) * np.outer(width, width)
    values, vectors = np.linalg.eigh(scaled)
    largest = max(abs(values[0]), abs(values[-1]), TINY)
    floor = 4e-14 * len(values) * largest
    negative = values < 0
    if not negative.any():
        yield free + floor / width**2
        return
    root = vectors[:, negative] * np.sqrt(-values[negative])
    share = (root * root).sum(axis=1)
    share = share + 0.02 * share.mean()
    spread = root / np.sqrt(share)[:, None]
    scale = np.linalg.eigvalsh(spread.T @ spread)[-1] * (1.0 + 1e-9)
    yield free + (share * scale + floor) / width**2
    yield free + (-values[0] * (1.0 + 1e-9) + floor) / width**2


def _minimise(c: Float, A: Float, l: Float, h: Float, iterations: int = 30) -> Float:
    """Projected Newton for min c.y + y^T A y / 2 on the box; any answer in the box is good enough for `_dual`."""
    y = np.zeros_like(c)
    gradient = c + A @ y
    for _ in range(iterations):
        held = ((y <= l) & (gradient > 0)) | ((y >= h) & (gradient < 0))
        loose = np.flatnonzero(~held)
        if loose.size == 0:
            break
        _, step, info = lapack.dposv(A[np.ix_(loose, loose)], -gradient[loose])
        if info != 0:
            break
        value = 0.5 * (c + gradient) @ y
        for halving in range(10):
            trial = y.copy()
            trial[loose] = np.clip(y[loose] + step * 0.5**halving, l[loose], h[loose])
            moved = c + A @ trial
            gain = value - 0.5 * (c + moved) @ trial
            if gain > 0:
                break
        else:
            break
        y, gradient = trial, moved
        if gain <= 1e-7 * abs(value):
            break
    return y


def _dual(g: Float, H: Float, D: Float, y: Float, l: Float, h: Float) -> QuadraticBound:
    """The certified value of Q1 for given D and y, rounded down; -inf if A cannot be verified PSD."""
    width = h - l
    A = H.copy()
    # A power of two per coordinate makes the units comparable without any rounding.
    unit = np.exp2(np.round(np.log2(np.maximum(width, 1e-300))))
    scaled = A * np.outer(unit, unit)
    diagonal = np.diag_indices(len(g))
    scaled[diagonal] += D * unit * unit
    bump = 8.0 * gamma(len(g) + 8) * float(np.abs(scaled[diagonal]).sum())
    scaled[diagonal] += bump
    if not is_certainly_psd(scaled):
        return QuadraticBound(-np.inf, y)
    # Verified was H + D' with D' = what the diagonal of `scaled` has above that of H, rounding included; the bump
    # exceeds that rounding many times over, so taking it twice gives a D >= D'.
    D = D + 2.0 * bump / unit**2
    A[diagonal] += D
    c = g - 0.5 * D * (l + h)
    G = c + A @ y
    terms = 0.5 * (c + G) * y + 0.5 * D * l * h + np.minimum(G * (l - y), G * (h - y))
    size = np.abs(c) + np.abs(A) @ np.abs(y)
    reach = np.abs(y) + np.maximum(np.abs(l - y), np.abs(h - y))
    error = gamma(4 * len(g) + 40) * float((size * reach + D * np.abs(l * h) + np.abs(g) * reach).sum())
    value = float(terms.sum()) - 2.0 * error - TINY
    return QuadraticBound(value if np.isfinite(value) else -np.inf, y)

"""The convex part of a tangent bound over cells of few latent coordinates.

By Theorem 3 (docs/maths-multiclass.md), log sum_i beta_i p_i <= log_total + t + Phi(y), where t is an affine
functional of means and covariances, y are few other ones (the covariance of the differences of latents, and
the difference of two classes' tangents), and Phi is convex with Phi(0) = 0. Each y_n has a certified range.
On a cell of y, Phi lies below an affine function, checked at the vertices; so t + Phi is bounded by a
functional of its own per cell, over the whole box. Cells that fail are split.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.validation import Float

__all__ = ["Coordinates", "bound_over_cells"]

#: Cells per box.
_CELLS = 16


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What Phi depends on: y = (coordinates of the relative change of V, then s).

    `basis` (N, C-1, C-1): the whitened change is sum_n y_n basis_n. `share`: weights of the two classes whose
    tangents differ by the last coordinate, None where there is none.
    """

    basis: Float
    share: tuple[float, float] | None

    def __call__(self, y: Float) -> Float:
        """Phi at y (m, N or N + 1), rounded up; inf where the covariance would not be positive definite."""
        N = len(self.basis)
        E = np.tensordot(y[:, :N], self.basis, 1)
        values = np.linalg.eigvalsh(0.5 * (E + E.swapaxes(1, 2)))
        size = np.abs(E).sum(axis=(1, 2))
        safe = values[:, 0] > -1.0 + 1e-6 + 1e-9 * size
        v = np.where(safe[:, None], values, 0.0)
        phi = 0.5 * (v - np.log1p(v)).sum(axis=1)
        if self.share is not None:
            first, second = self.share
            s = y[:, N]
            phi = phi + np.logaddexp(np.log(first) + second * s, np.log(second) - first * s)
            size = size + np.abs(s)
        # V is whitened to 1e-8 only (checked by the caller), which changes eigenvalues in proportion.
        return np.where(safe, phi + 1e-7 * size * size + 1e-11 * (1.0 + size), np.inf)


class _Cell(NamedTuple):
    bound: float  #: minus the certified sup of t + Phi over points of the box in the cell
    number: int
    lower: Float
    upper: Float
    point: Float


#: Slopes k (N,) to (certified sup of t + k.y over the whole box, where it seems attained).
Supremum = Callable[[Float], tuple[float, Float]]


def bound_over_cells(
    phi: Coordinates, lower: Float, upper: Float, supremum: Supremum, goal: float
) -> tuple[float, Float]:
    """A certified upper bound of t + Phi(y) over the box, y in [lower, upper] (N,); stops below `goal`."""
    numbers = itertools.count()

    def cell(low: Float, high: Float, least: float) -> _Cell:
        slopes, constant = _majorant(phi, low, high)
        if not np.isfinite(constant):
            return _Cell(-np.inf, next(numbers), low, high, np.zeros(0))
        top, point = supremum(slopes)
        return _Cell(max(least, -(top + constant)), next(numbers), low, high, point)

    heap = [cell(lower, upper, -np.inf)]
    while -heap[0].bound > goal and next(numbers) < 4 * _CELLS and len(heap) < _CELLS:
        worst = heap[0]
        n = _widest(phi, worst.lower, worst.upper)
        low, high = worst.lower[n], worst.upper[n]
        cut = 0.0 if low < 0.0 < high else 0.5 * (low + high)
        if not low < cut < high:
            break
        left, right = worst.upper.copy(), worst.lower.copy()
        left[n] = right[n] = cut
        heapq.heapreplace(heap, cell(worst.lower, left, worst.bound))
        heapq.heappush(heap, cell(right, worst.upper, worst.bound))
    return -heap[0].bound, heap[0].point


def _vertices(lower: Float, upper: Float) -> Float:
    return np.array(list(itertools.product(*zip(lower, upper, strict=True))))


def _majorant(phi: Coordinates, lower: Float, upper: Float) -> tuple[Float, float]:
    """(k, c) with Phi(y) <= k.y + c on the cell: convex less affine is largest at a vertex."""
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    steps = np.diag(half)
    ahead, behind = phi(middle + steps), phi(middle - steps)
    with np.errstate(invalid="ignore"):
        slopes = np.where(half > 0, (ahead - behind) / np.where(half > 0, 2.0 * half, 1.0), 0.0)
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    corners = _vertices(lower, upper)
    lines = corners @ slopes
    values = phi(corners) - lines + 1e-13 * (1.0 + np.abs(corners) @ np.abs(slopes))
    return slopes, float(values.max())


def _widest(phi: Coordinates, lower: Float, upper: Float) -> int:
    """The coordinate along which Phi lies farthest below its chord; where it is infinite, the widest."""
    middle, steps = 0.5 * (lower + upper), np.diag(0.5 * (upper - lower))
    with np.errstate(invalid="ignore"):
        gaps = 0.5 * (phi(middle + steps) + phi(middle - steps)) - phi(middle[None])[0]
    if not np.isfinite(gaps).all():
        return int(np.argmax(upper - lower))
    return int(np.argmax(gaps))

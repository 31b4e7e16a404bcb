"""A certified lower bound of a quadratic over a box (docs/maths/bounds.md, section 4).

Q1 (faces). If the gradient component j of g.d + d^T H d / 2 is >= 0 on the whole box, the minimum is
attained with d_j = low_j (likewise <= 0 and high_j): the coordinate is substituted, and the rest is a
smaller problem.

Q2 (dual). Let D >= 0 be such that A = H + diag(D) is positive semidefinite, and y any vector. Then on the box
    g.d + d^T H d / 2 >= c.y + y^T A y / 2 + sum_j D_j low_j high_j / 2 + sum_j min(G_j (low_j - y_j), G_j
    (high_j - y_j)), c = g - D (low + high) / 2,  G = c + A y.
Q3 (slopes). Both say more than a value: how fast the quadratic rises from the end where a coordinate was put.

Any y and D are sound: the best D is a small semidefinite programme, solved by a few Newton steps on its
barrier in ordinary floating point; only Q2 for the D found is certified (Cholesky by R4, every sum with its
rounding).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from gpcert.rounding import TINY, UNIT, gamma, is_certainly_psd
from gpcert.validation import Float, Mask

_NEWTON_STEPS = 22
#: The part of a certain deficit that a programme may lose besides.
_PART = 0.05
_LARGEST = 1e150  # beyond it, products of the terms overflow


class QuadraticBound(NamedTuple):
    """`value` <= the minimum over the box; `point` (d,) in the box is where the relaxation has its
    minimum. `slopes` (d,), Q3: on the box the quadratic is at least value + sum_j |slopes_j| delta_j, delta_j
    the distance from low_j where slopes_j > 0, from high_j where it is < 0; None: nothing is known.
    """

    value: float
    point: Float
    slopes: Float | None = None


def quadratic_lower_bound(
    g: Float, H: Float, low: Float, high: Float, enough: float = np.inf, accuracy: float = 1e-6
) -> QuadraticBound:
    """Q1, then Q2, for g (d,), symmetric H (d, d).

    Stops improving once `enough` is certain, or the relaxation is solved to the relative `accuracy`.
    """
    with np.errstate(all="ignore"):  # overflow ends as -inf, never as a bound
        extent = np.abs(g) @ (high - low) + (high - low) @ np.abs(H) @ (high - low)
        if not extent < _LARGEST:
            return QuadraticBound(-np.inf, np.zeros_like(g))
        return _bound(g, H, low, high, enough, accuracy)


def _bound(g: Float, H: Float, low: Float, high: Float, enough: float, accuracy: float) -> QuadraticBound:
    point, free, slopes = settled_faces(g, H, low, high)
    H_fixed = H @ point  # 0 where free
    constant = float((g + 0.5 * H_fixed) @ point)
    # Substitution rounds: the constant, and the reduced gradient, which acts over the reach of the free
    # coordinates.
    reach = np.where(free, np.maximum(-low, high), np.abs(point))
    scale = np.abs(g) + np.abs(H) @ np.abs(point)
    if ((scale > 0) & (reach > 0)).any() and point.any():
        constant -= 2.0 * gamma(2 * len(g) + 20) * float(scale @ reach) + len(g) * TINY
    if not free.any():
        return QuadraticBound(constant, point, slopes)
    g, H, low, high = (g + H_fixed)[free], H[free][:, free], low[free], high[free]
    D, y = curvature(g, H, low, high, enough - constant, accuracy, _PART)
    point[free] = np.clip(y, low, high)
    value, slopes[free] = _dual(g, H, D, y, low, high)
    value += constant
    return QuadraticBound(value - 2.0 * UNIT * abs(value), point, slopes)


def settled_faces(g: Float, H: Float, low: Float, high: Float) -> tuple[Float, Mask, Float]:
    """Q1 repeated: a point with the settled coordinates at their ends, 0 in the free ones, the mask of these,
    and the slopes of Q3.
    """
    point, slopes = np.zeros_like(g), np.zeros_like(g)
    free = np.ones(len(g), dtype=bool)
    positive, negative = np.maximum(H, 0.0), np.minimum(H, 0.0)
    slack = gamma(4 * len(g) + 20) * (np.abs(g) + np.abs(H) @ np.maximum(-low, high))
    bottom, top = low.copy(), high.copy()  # the box, with settled coordinates collapsed
    while free.any():
        least = g + positive @ bottom + negative @ top - slack
        most = g + positive @ top + negative @ bottom + slack
        falls = free & (least >= 0)
        rises = free & (most <= 0) & ~falls
        if not (falls.any() or rises.any()):
            break
        top[falls], bottom[rises] = low[falls], high[rises]
        slopes[falls], slopes[rises] = least[falls], most[rises]
        free &= ~(falls | rises)
    settled = ~free
    point[settled] = bottom[settled]
    return point, free, slopes


def curvature(
    g: Float, H: Float, low: Float, high: Float, enough: float, accuracy: float, part: float = 0.0
) -> tuple[Float, Float]:
    """A good (D, y) for Q2, by Newton on max_D dual(D) + mu (log det A + sum log D), in units d = middle
    + half * z. It ends once `enough` is met, or out of reach: `part` of what certainly lacks is left to gain.
    """
    half, middle = 0.5 * (high - low), 0.5 * (low + high)
    matrix = H * np.outer(half, half)
    vector = (g + H @ middle) * half
    constant = g @ middle + 0.5 * middle @ H @ middle
    n = len(g)
    values = np.linalg.eigvalsh(matrix)
    size = max(abs(values[0]), abs(values[-1]), float(np.abs(vector).max()), TINY)
    barrier = _Barrier(matrix, vector, np.abs(vector) + max(-values[0], 0.0) + 0.01 * size / n)
    mu = 0.0
    for step in range(_NEWTON_STEPS):
        z = barrier.solution
        clipped = np.minimum(np.maximum(z, -1.0), 1.0)
        primal = float(vector @ clipped + 0.5 * clipped @ matrix @ clipped)
        gap = primal - barrier.dual
        # Stop where the target is met with room for rounding, or where no better D can meet it.
        if (
            barrier.dual + constant - 1e-11 * size >= enough
            or gap <= accuracy * abs(barrier.dual)
            or (part > 0 and np.isfinite(enough) and gap <= part * (enough - constant - primal))
            or step == _NEWTON_STEPS - 1
        ):
            break
        mu = 0.15 * gap / n if step == 0 else mu
        length = barrier.advance(mu)
        if length == 0.0:
            break
        mu *= 0.3 if length > 0.5 else 1.0
    return barrier.D / half**2, middle + half * barrier.solution


class _Barrier:
    """max over D of -v^T A^-1 v / 2 - sum D / 2 + mu (log det A + sum log D), A = matrix + diag(D)."""

    def __init__(self, matrix: Float, vector: Float, D: Float) -> None:
        self._matrix, self._vector = matrix, vector
        self._diagonal = np.diag_indices(len(D))
        self._take(D, _factor(matrix, D))

    def _take(self, D: Float, factor: Float | None) -> None:
        self.D, self._L = D, factor
        v = self._vector
        self.solution = np.zeros_like(v) if factor is None else -lapack.dpotrs(factor, v, lower=1)[0]
        self.dual = 0.5 * float(v @ self.solution) - 0.5 * float(D.sum())

    def advance(self, mu: float) -> float:
        """One Newton step, shortened until it improves the barrier; its length, 0 if there is none."""
        if self._L is None:
            return 0.0
        D, z, inverse = self.D, self.solution, _inverse(self._L)
        slope = 0.5 * (z * z - 1.0) + mu * (inverse[self._diagonal] + 1.0 / D)
        curvature = (np.outer(z, z) + mu * inverse) * inverse
        curvature[self._diagonal] += mu / (D * D)
        change = lapack.dposv(curvature, slope, lower=1)[1]
        rise, start, factor = float(slope @ change), self._value(mu), self._L
        shrinking = change < 0
        length = min(1.0, 0.95 * float(np.min(-D[shrinking] / change[shrinking], initial=np.inf)))
        for _ in range(24):
            trial = D + length * change
            self._take(trial, _factor(self._matrix, trial))
            if self._L is not None and self._value(mu) >= start + 0.1 * length * rise:
                return length
            length *= 0.5
        self._take(D, factor)
        return 0.0

    def _value(self, mu: float) -> float:
        assert self._L is not None
        return self.dual + mu * float(2.0 * np.log(np.diagonal(self._L)).sum() + np.log(self.D).sum())


def _factor(matrix: Float, D: Float) -> Float | None:
    """The Cholesky factor of matrix + diag(D), above it garbage; None if there is none."""
    A = np.array(matrix, order="F")
    A[np.diag_indices(len(D))] += D
    factor, info = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)
    return factor if info == 0 and np.isfinite(factor[-1, -1]) else None


def _inverse(factor: Float) -> Float:
    """(L L^T)^-1, both triangles."""
    inverse = lapack.dpotri(factor, lower=1)[0]
    lower = np.tril(inverse, -1)
    return np.asarray(lower + lower.T + np.diag(np.diagonal(inverse)))


def _dual(g: Float, H: Float, D: Float, y: Float, low: Float, high: Float) -> tuple[float, Float]:
    """Q2, rounded down, and the slopes of Q3; -inf if A cannot be verified positive semidefinite."""
    certain = convexified(H, D, high - low)
    if certain is None:
        return -np.inf, np.zeros_like(g)
    D = certain
    A = H.copy()
    A[np.diag_indices(len(g))] += D
    c = g - 0.5 * D * (low + high)
    G = c + A @ y
    terms = 0.5 * (c + G) * y + 0.5 * D * low * high + np.minimum(G * (low - y), G * (high - y))
    size = np.abs(c) + np.abs(g) + np.abs(A) @ np.abs(y)
    reach = np.abs(y) + np.maximum(np.abs(low - y), np.abs(high - y))
    error = gamma(4 * len(g) + 40) * float((size * reach + D * np.abs(low * high)).sum())
    value = float(terms.sum()) - 2.0 * error - TINY
    return (value, G) if np.isfinite(value) else (-np.inf, np.zeros_like(g))


def convexified(H: Float, D: Float, width: Float) -> Float | None:
    """A D' (d,), a little above D, with H + diag(D') certainly positive semidefinite; None: not verified.

    `width` (d,) are the units in which coordinates are comparable.
    """
    # A power of two per coordinate makes the units comparable without any rounding.
    unit = np.ldexp(1.0, np.round(np.log2(np.maximum(width, 1e-300))).astype(int))
    scaled = H * np.outer(unit, unit)
    diagonal = np.diag_indices(len(D))
    scaled[diagonal] += D * unit * unit
    bump = 8.0 * gamma(len(D) + 8) * float(np.abs(scaled[diagonal]).sum()) + 8 * len(D) * TINY
    scaled[diagonal] += bump
    if not is_certainly_psd(scaled):
        return None
    # Verified was H + D' with D' = what the diagonal of `scaled` has above that of H, rounding included; the
    # bump exceeds that rounding many times over, so taking it twice gives a D' that suffices. The last factor
    # keeps what the sum would lose beside a large D.
    return np.asarray((D + 2.0 * bump / unit**2) * (1.0 + 4 * UNIT))

"""A certified lower bound of 1 - sum_i beta_i p_i over a box, from the log-concavity of softmax.

log E p_i + (1/2) log det V is jointly concave in the mean and the covariance V of the differences of
latents (docs/maths/multiclass.md, Theorem 3). So every p_i lies below the exponential of its tangent at
an anchor, times a factor that is 1 there and differs from it by a quarter of the squared relative change
of V. One affine functional and one quadratic form per box remain, expanded at a reference of their own.
The scale of the covariance, which changes mostly as a whole, has a penalty of its own: a line below it
joins the tangent (T7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.forms import FunctionalBound, Loss
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS
from gpcert.bounds.several.tangents.anchor import SLACK, Anchor, Shifts
from gpcert.bounds.several.tangents.expansion import ClassExpansion
from gpcert.bounds.several.tangents.separate import SeparateExpansion
from gpcert.rounding import gamma, symmetric
from gpcert.validation import Float

Expanded = ClassExpansion | SeparateExpansion
#: Inverse factors of V are checked to this; what the check leaves is in `SLACK_W`.
_INVERSE = 1e-8
SLACK_W = 1.0 + 1e-6
#: Changes of the covariance, relative to itself, that need no programme to be known better.
_SMALL = 0.1
#: Scales and shapes of V nearer to singular than this are left to smaller boxes.
_FLATTEST, _MOST_SHRUNK = 0.02, 0.95


class Scale(NamedTuple):
    """e = <matrix, Sigma> - offset: about the mean eigenvalue of E, and between the ends on the box."""

    matrix: Float  #: (C, C)
    offset: float
    low: float
    high: float
    error: float  #: of e, as the mean of the diagonal


class Tangent(NamedTuple):
    """On the box: log sum_i beta_i p_i <= log_total + (a.m + <B, Sigma> - offset) + loss + pen(E)."""

    log_total: float
    a: Float  #: (C,)
    B: Float  #: (C, C)
    offset: float
    loss: Loss


@dataclass(frozen=True, eq=False)
class Whitened:
    """All latents of a box seen from one anchor: what the tangents of every beta have in common."""

    x: Expanded
    anchor: Anchor
    root: Float  #: of V at the anchor
    means: Shifts
    covariances: Shifts  #: of E
    scale: Scale
    shapes: Shifts  #: of E - e I
    changes: tuple[float, float]

    @cached_property
    def square(self) -> Loss:
        """A bound of |E - e I|_F^2, E with the exact root of V, for a programme with a tangent."""
        return self._square()

    def _square(self, *share: float) -> Loss:
        loss = self.shapes.square(np.full(len(self.shapes.constant), SLACK_W**2), *share)
        return loss._replace(constant=loss.constant + 1e7 * self.blur**2)

    @cached_property
    def shrunk(self) -> float:
        """E - e I >= -shrunk I on the box: a matrix of trace 0 has |eigenvalue|^2 <= (1 - 1/N) |.|_F^2."""
        loss, N = self._square(1.0), len(self.root)
        reach = self.x.reach
        largest = loss.constant + float(np.abs(loss.gradient) @ reach + reach @ np.abs(loss.matrix) @ reach)
        if not largest < _SMALL**2 and len(reach) > CHEAP_DIMENSIONS:
            bound = self.x.domain.minimise(-loss.gradient, -2.0 * loss.matrix, np.inf, 0.05)
            largest = max(loss.constant - bound.value, 0.0)
        largest *= SLACK
        return math.sqrt(largest * (1.0 - 1.0 / N)) * SLACK + self.blur

    @property
    def definite(self) -> bool:
        """Whether V is positive definite wherever its scale is between the ends, and not nearly singular."""
        return self.shrunk < _MOST_SHRUNK * (1.0 + self.scale.low)

    def scale_at(self, d: Float) -> float:
        """About e at the displacement d (d,)."""
        S = self.covariances
        rows, columns = np.triu_indices(len(self.root))
        on = rows == columns
        values = S.constant[on] + S.gradient[on] @ d + 0.5 * (S.hessian[on] @ d) @ d
        return float(values.mean())

    @cached_property
    def blur(self) -> float:
        """How far rounding of W and of e moves E - e I, in Frobenius norm, and its trace: a third of this."""
        return 3.0 * (_INVERSE * self.covariances.largest() + len(self.root) * self.scale.error)


def whitened(x: Expanded, anchor: Anchor) -> Whitened | None:
    """None where the scale of V is not safely positive on the whole box."""
    D = x.model.contrasts
    W = whitening(D @ anchor.covariance @ D.T)
    if W is None:
        return None
    A = W @ D
    covariances = _covariances(x, anchor, A)
    changes = x.changes(anchor.mean, anchor.covariance)
    scale = _scale(x, anchor, W, changes[0])
    if not -1.0 + _FLATTEST < scale.low <= scale.high < math.inf:
        return None
    shapes = _less_its_scale(covariances, len(A))
    root: Float = np.asarray(np.linalg.inv(W), dtype=np.float64)
    return Whitened(x, anchor, root, _means(x, anchor, A), covariances, scale, shapes, changes)


def _scale(x: Expanded, anchor: Anchor, W: Float, changes: float) -> Scale:
    """The mean of the diagonal of E as a functional, and its range; `changes`: of all entries, summed."""
    D = x.model.contrasts
    matrix = symmetric(D.T @ (W.T @ W / len(W)) @ D)
    offset = float(np.vdot(matrix, anchor.covariance))
    rounding = 1e-12 * float((np.abs(matrix) * np.abs(anchor.covariance)).sum())
    rounding += 1e-12 * float(np.abs(matrix).sum()) * changes
    value, reach = float(np.vdot(matrix, x.latents.covariance)) - offset, x.covariance_reach(matrix)
    low, high = value - reach - rounding, value + reach + rounding
    if not max(-low, high) < _SMALL and len(x.reach) > CHEAP_DIMENSIONS:
        none = np.zeros(len(matrix))
        low, high = (sign * x.smallest(none, sign * matrix, sign * offset).latent for sign in (1.0, -1.0))
    return Scale(matrix, offset, low - rounding, high + rounding, rounding)


def _less_its_scale(covariances: Shifts, N: int) -> Shifts:
    """E - e I, e the mean of its diagonal: coordinates beside the diagonal stay, the rest is no longer."""
    rows, columns = np.triu_indices(N)
    on = rows == columns

    def apart(values: Float) -> Float:
        values = values.copy()
        values[on] -= values[on].mean(axis=0)
        return values

    return replace(
        covariances,
        constant=apart(covariances.constant),
        gradient=apart(covariances.gradient),
        hessian=apart(covariances.hessian),
    )


def tangent(seen: Whitened, beta: Float) -> Tangent | None:
    """The tangent for beta (C,) >= 0; None where nothing is proved."""
    anchor, root, means, covariances = seen.anchor, seen.root, seen.means, seen.covariances
    D = seen.x.model.contrasts
    rho, eta = covariances.largest() * SLACK_W, means.largest() * SLACK_W
    a, B, weights, total = weighted(anchor, beta, float(np.linalg.norm(root, 2)), eta, rho, seen.changes)
    if not math.isfinite(total):
        return None
    mean_a, mean_B = weights @ a, np.tensordot(weights, B, 1)
    loss = Loss(0.0, np.zeros_like(means.reach), np.zeros((len(means.reach),) * 2))
    if np.count_nonzero(weights) > 1:
        across = _across(seen, (a - mean_a) @ D, D.T @ (B - mean_B) @ D)
        size = across.slopes + across.bends + across.rest
        loss = across.square(np.where(weights > 0, 0.5 * weights * second(size), 0.0))
    first, bent = D.T @ mean_a, symmetric(D.T @ mean_B @ D)
    offset = float(first @ anchor.mean) + float(np.vdot(bent, anchor.covariance))
    rounding = 1e-14 * float(np.abs(first) @ np.abs(anchor.mean))
    rounding += 1e-14 * float((np.abs(bent) * np.abs(anchor.covariance)).sum())
    return Tangent(math.log(total), first, bent, offset - rounding, loss)


def penalty(shrunk: float) -> float:
    """pen(E) <= this times |E|_F^2 where E >= -shrunk I: (x - log(1 + x)) / x^2 falls."""
    s = max(shrunk, 1e-3)
    return 0.5 * (-s - math.log1p(-s)) / (s * s) * (1.0 + 1e-9)


def whitening(V: Float) -> Float | None:
    """W with W V W^T = I to `_INVERSE`; None where V is not safely positive definite."""
    try:
        W = np.linalg.inv(np.linalg.cholesky(V))
    except np.linalg.LinAlgError:
        return None
    good = np.linalg.norm(W @ V @ W.T - np.eye(len(V))) <= _INVERSE
    return np.asarray(W, dtype=np.float64) if good else None


def weighted(
    anchor: Anchor,
    beta: Float,
    size: float,
    eta: float,
    rho: float,
    changes: tuple[float, float] = (math.inf, math.inf),
) -> tuple[Float, Float, Float, float]:
    """Gradients of log p_i in the differences, (C, C-1), (C, C-1, C-1); weights (C,) of sum 1; their sum.

    p_i rounded up, times the exponential of what the errors of its gradient can cost on the box, where the
    whitened means move by at most eta and the covariance by rho; `size`: the root of the norm of V;
    `changes`: other bounds of the sum of all changes and of |d log p_i| (A2).
    """
    classes = len(beta)
    used = beta > 0
    p = np.where(used, np.maximum(anchor.p, 1e-300), 1.0)
    a = anchor.first[:, :-1] / p[:, None]
    B = anchor.second[:, :-1, :-1] / p[:, None, None]
    # d log p_i is at most 1 in every m_j, and at most 1 in every entry of Sigma (A2).
    relative = 4.0 * anchor.entries / np.maximum(anchor.p - anchor.entries, 1e-300)
    size *= 1.0 + 1e-6
    cost = relative * min(classes * size * eta + classes**2 * size**2 * rho, changes[0])
    # A class too improbable for its gradient to be known has gradient 0 and pays for the whole box.
    whole = min(2.0 * size * eta + 2.0 * size**2 * rho, changes[1])
    cost = cost + anchor.joint * whole
    known = cost <= whole
    a, B, cost = a * known[:, None], B * known[:, None, None], np.where(known, cost, whole)
    with np.errstate(over="ignore", invalid="ignore"):  # 0 times inf: not finite, and the caller sees it
        masses = np.where(used, beta * (anchor.p + anchor.error) * np.exp(cost) * SLACK, 0.0)
    total = float(masses.sum())
    weights = masses / total if 0 < total < np.inf else masses
    return np.where(used[:, None], a, 0.0), np.where(used[:, None, None], B, 0.0), weights, total * SLACK


def _means(x: Expanded, anchor: Anchor, A: Float) -> Shifts:
    """The whitened means A m less those of the anchor, (C - 1) coordinates."""
    rest = np.array([x.mean_rest(row) for row in A])
    hessian = np.tensordot(A, x.mean_hessian, 1)
    constant = A @ (x.latents.mean - anchor.mean)
    return Shifts(x.reach, constant, A @ x.mean_gradient, hessian, rest * SLACK, 0.0)


def _covariances(x: Expanded, anchor: Anchor, A: Float) -> Shifts:
    """The whitened covariance A Sigma A^T less that of the anchor (Y1).

    Coordinates of an orthonormal basis of the symmetric matrices: the upper triangle, row by row, entries
    beside the diagonal times sqrt 2.
    """
    N = len(A)
    gradient = np.einsum("ac,ceD,be->abD", A, x.matrix(x.covariance_gradient), A, optimize=True)
    hessian = np.einsum("ac,ceDF,be->abDF", A, x.matrix(x.covariance_hessian), A, optimize=True)
    constant = A @ (x.latents.covariance - anchor.covariance) @ A.T
    rows, columns = np.triu_indices(N)
    root = np.where(rows == columns, 1.0, math.sqrt(2.0))
    return Shifts(
        x.reach,
        root * constant[rows, columns],
        root[:, None] * gradient[rows, columns],
        root[:, None, None] * hessian[rows, columns],
        np.zeros(len(rows)),
        x.covariance_rest(A, gradient, hessian) * SLACK,
    )


def _across(seen: Whitened, a: Float, B: Float) -> Shifts:
    """s_i = a_i.m + <B_i, Sigma> less its value at the anchor, each with the rest of its own functional (T2).

    `a` (C, C), `B` (C, C, C): one coordinate per class.
    """
    x, anchor, C = seen.x, seen.anchor, len(a)
    B = 0.5 * (B + B.swapaxes(1, 2))
    constant = a @ (x.latents.mean - anchor.mean)
    constant = constant + np.tensordot(B, x.latents.covariance - anchor.covariance, 2)
    gradient = a @ x.mean_gradient + np.tensordot(B, x.matrix(x.covariance_gradient), 2)
    hessian = np.tensordot(a, x.mean_hessian, 1) + np.tensordot(B, x.matrix(x.covariance_hessian), 2)
    rest = np.array([x.rest(*each) for each in zip(a, B, strict=True)])
    # The sums above, and those of a and B: relative to the sizes of what is added.
    sizes = (np.abs(a).max(axis=1) + np.abs(B).max(axis=(1, 2))) * seen.changes[0]
    return Shifts(x.reach, constant, gradient, hessian, rest * SLACK + gamma(2 * C * C + 40) * sizes, 0.0)


def second(largest: Float) -> Float:
    """psi with e^s - 1 - s <= psi s^2 / 2 for s <= largest: 2 (e^s - 1 - s) / s^2, which increases."""
    s = np.maximum(largest, 1e-3)
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * (np.expm1(s) - s) / (s * s) * (1.0 + 1e-6))


#: Programmes per box, and the first change of the slope of its line.
_PROGRAMMES, _STEP = 3, 0.3

#: (a, B, offset, less, enough) to a lower bound of a.m + <B, Sigma> - offset - less over the box.
Smallest = Callable[[Float, Float, float, Loss, float], FunctionalBound]


def largest(
    seen: Whitened, beta: Float, target: float, smallest: Smallest
) -> tuple[float, FunctionalBound] | None:
    """A bound of log sum_i beta_i p_i over the box, and the programme that gave it; None where nothing is
    proved.

    It is convex in the slope of the line, and its derivative is seen at the minimum. Effort ends once it is
    at most `target`, or once that is out of reach.
    """
    line = tangent(seen, beta) if seen.definite else None
    if line is None:
        return None
    low, high, N = seen.scale.low, seen.scale.high, len(seen.root)
    slope, best, saved, tried = chord(N, low, high), None, 0.0, []
    for _ in range(_PROGRAMMES):
        bound = smallest(*_with(seen, line, slope), line.log_total - target)
        exponent = line.log_total - bound.latent
        if not math.isfinite(exponent):
            break
        if best is None or exponent < best[0]:
            best = exponent, bound
            saved = max(_penalty(N, low), _penalty(N, high))
            saved += 0.5 * _weight(seen) * _at(seen.square, bound.point)
        scale = seen.scale_at(bound.point)
        if not target < best[0] <= target + saved or low <= scale <= high:
            break
        tried.append((slope, exponent, scale - (high if scale > high else low)))
        slope = _next(tried)
    return best


def _at(loss: Loss, d: Float) -> float:
    return loss.constant + float(loss.gradient @ d) + float(d @ loss.matrix @ d)


def _weight(seen: Whitened) -> float:
    """pen(E') <= this times |E - e I|_F^2, E' = (E - e I) / (1 + e), on the box."""
    least = 1.0 + seen.scale.low
    return penalty(seen.shrunk / least) / least**2 * (1.0 + 1e-12)


def _next(found: list[tuple[float, float, float]]) -> float:
    """The next slope: where the last two lines of support (slope, value, derivative) meet, else farther."""
    slope, value, change = found[-1]
    for other, height, turn in reversed(found[:-1]):
        if turn * change < 0.0:
            return (height - value - turn * other + change * slope) / (change - turn)
    return slope - math.copysign(_STEP * 2.0 ** (len(found) - 1), change)


def _penalty(N: int, e: float) -> float:
    """N/2 (e - log(1 + e))."""
    return 0.5 * N * (e - math.log1p(e))


def chord(N: int, low: float, high: float) -> float:
    """The slope of the line through the penalties at both ends of the range of e."""
    return (_penalty(N, high) - _penalty(N, low)) / (high - low) if high > low else 0.0


def height(N: int, low: float, high: float, slope: float) -> float:
    """Such that N/2 (e - log(1 + e)) <= height + slope e for e in [low, high]: convex, so at its ends."""
    rounding = 1e-14 * (N * (1.0 + abs(low) + abs(high) + abs(math.log1p(low))) + abs(slope) * (2.0 + high))
    return max(_penalty(N, e) - slope * e for e in (low, high)) + rounding


def _with(seen: Whitened, line: Tangent, slope: float) -> tuple[Float, Float, float, Loss]:
    """The functional -(tangent + line) and what is subtracted from it besides."""
    scale, weight = seen.scale, _weight(seen)
    most = max(abs(scale.low), abs(scale.high)) / (1.0 + scale.low)
    constant = height(len(seen.root), scale.low, scale.high, slope) + (abs(slope) + most) * seen.blur
    loss, square = line.loss, seen.square
    less = Loss(
        loss.constant + weight * square.constant + max(constant, 0.0),
        loss.gradient + weight * square.gradient,
        loss.matrix + weight * square.matrix,
    )
    offset = -line.offset - slope * scale.offset + min(constant, 0.0)
    offset += 1e-14 * (abs(line.offset) + abs(slope * scale.offset))
    return -line.a, np.asarray(-line.B - slope * scale.matrix), offset, less

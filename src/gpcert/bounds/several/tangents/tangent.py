"""A certified lower bound of 1 - sum_i beta_i p_i over a box, from the log-concavity of softmax.

log E p_i + (1/2) log det V is jointly concave in the mean and the covariance V of the differences of latents
(docs/maths-multiclass.md, Theorem 3). So every p_i lies below the exponential of its tangent at an anchor,
times a factor that is 1 there and differs from it by a quarter of the squared relative change of V. One
affine functional and one quadratic form per box remain, expanded at a reference of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.bounds.several.tangents.anchor import Anchor
from gpcert.bounds.several.tangents.expansion import ClassExpansion
from gpcert.bounds.several.tangents.separate import SeparateExpansion
from gpcert.rounding import TINY, is_certainly_psd, symmetric
from gpcert.validation import Float

Expanded = ClassExpansion | SeparateExpansion
SLACK = 1.0 + 1e-9
#: Inverse factors of V are checked to this; what the check leaves is in `SLACK_W`.
_INVERSE = 1e-8
SLACK_W = 1.0 + 1e-6


class Tangent(NamedTuple):
    """On the box: log sum_i beta_i p_i <= log_total + (a.m + <B, Sigma> - offset) + loss."""

    log_total: float
    a: Float  #: (C,)
    B: Float  #: (C, C)
    offset: float
    loss: Loss


@dataclass(frozen=True, eq=False)
class _Shifts:
    """Displacements constant + gradient.d + d^T hessian d / 2 up to `rest` each, and up to a vector of
    Euclidean norm `joint` together.
    """

    reach: Float  #: the largest |d_j| (d,)
    constant: Float  #: (N,)
    gradient: Float  #: (N, d)
    hessian: Float  #: (N, d, d)
    rest: Float  #: (N,)
    joint: float

    @cached_property
    def slopes(self) -> Float:
        """sup |constant + gradient.d| (N,)."""
        return np.asarray(np.abs(self.constant) + np.abs(self.gradient) @ self.reach)

    @cached_property
    def absolute(self) -> tuple[Float, Float]:
        """P (N, d, d) with P + hessian and P - hessian certainly PSD, and sup |d^T hessian d| (N,)."""
        pairs = [_absolute(H, self.reach) for H in self.hessian]
        return np.stack([P for P, _ in pairs]), np.array([size for _, size in pairs])

    @cached_property
    def bends(self) -> Float:
        """sup |d^T hessian d| / 2 (N,)."""
        return np.asarray(0.5 * self.absolute[1] * SLACK)

    def largest(self) -> float:
        """sup of the Euclidean norm."""
        single = self.slopes + self.bends + self.rest
        return float(np.linalg.norm(single)) + self.joint

    def square(self, weight: Float) -> Loss:
        """A bound of sum_n weight_n coordinate_n^2, with (x + y)^2 <= (1 + t) x^2 + (1 + 1/t) y^2.

        t is the quotient of the sizes of curved and linear part.
        """
        bends = self.bends
        linear = math.sqrt(float(weight @ self.slopes**2))
        curved = math.sqrt(float(weight @ bends**2))
        small = math.sqrt(float(weight @ self.rest**2)) + math.sqrt(float(weight.max())) * self.joint
        t = _ratio(curved + small, linear)
        u = _ratio(small, curved)
        constant = (1.0 + t) * float(weight @ self.constant**2) + (1.0 + 1.0 / t) * (1.0 + 1.0 / u) * small**2
        scaled = weight[:, None] * self.gradient
        matrix = (1.0 + t) * (self.gradient.T @ scaled)
        # (d^T H d / 2)^2 <= sup * d^T |H| d / 2: it vanishes at the reference, as all the rest does.
        matrix += np.tensordot((1.0 + 1.0 / t) * (1.0 + u) * 0.5 * weight * bends, self.absolute[0], 1)
        # The last term covers the rounding of these sums.
        return Loss(
            constant * SLACK + 1e-11 * (linear + curved) ** 2,
            2.0 * (1.0 + t) * (self.constant @ scaled),
            matrix,
        )


def _ratio(x: float, y: float) -> float:
    """x / y kept inside the range of doubles; any positive number is sound."""
    return min(max(x / y, 1e-6), 1e6) if y > 0 else 1.0


def _absolute(H: Float, reach: Float) -> tuple[Float, float]:
    """P (d, d) with P + H and P - H certainly PSD: about |H| in the units of the box, else a diagonal.

    And at least sup |d^T H d|: by absolute values of the entries, or d times the largest eigenvalue of |H|.
    """
    unit = np.maximum(reach, TINY)
    scaled = H * np.outer(unit, unit)
    if not np.isfinite(scaled).all():
        return np.zeros_like(H), math.inf
    values, vectors = np.linalg.eigh(symmetric(scaled))
    slack = 1e-10 * float(np.abs(values).sum()) + TINY
    P = (vectors * np.abs(values)) @ vectors.T
    P = symmetric(P) + slack * np.eye(len(P))
    size = float(np.abs(scaled).sum(axis=1).sum()) * SLACK  # row by row: no sum of more than d terms
    if is_certainly_psd(P + scaled) and is_certainly_psd(P - scaled):
        size = min(size, (float(np.abs(values).max(initial=0.0)) + 2.0 * slack) * len(P) * SLACK)
    else:
        P = np.diag(np.abs(scaled).sum(axis=1) * SLACK)
    return np.asarray(P / np.outer(unit, unit)), size


class Whitened(NamedTuple):
    """All latents of a box seen from one anchor: what the tangents of every beta have in common."""

    contrasts: Float
    anchor: Anchor
    root: Float  #: of V at the anchor
    means: _Shifts
    covariances: _Shifts
    shrunk: float
    changes: tuple[float, float]


def whitened(x: Expanded, anchor: Anchor) -> Whitened | None:
    """None where V is not safely positive definite on the whole box."""
    D = x.model.contrasts
    W = whitening(D @ anchor.covariance @ D.T)
    if W is None:
        return None
    A = W @ D
    covariances = _covariances(x, anchor, A)
    shrunk = _shrunk(covariances, x) * SLACK_W
    if not shrunk < 0.95:
        return None
    root: Float = np.asarray(np.linalg.inv(W), dtype=np.float64)
    changes = x.changes(anchor.mean, anchor.covariance)
    return Whitened(D, anchor, root, _means(x, anchor, A), covariances, shrunk, changes)


def tangent(seen: Whitened, beta: Float) -> Tangent | None:
    """The tangent for beta (C,) >= 0; None where nothing is proved."""
    D, anchor, root, means, covariances, shrunk, changes = seen
    rho, eta = covariances.largest() * SLACK_W, means.largest() * SLACK_W
    a, B, weights, total = weighted(anchor, beta, float(np.linalg.norm(root, 2)), eta, rho, changes)
    if not math.isfinite(total):
        return None
    mean_a, mean_B = weights @ a, np.tensordot(weights, B, 1)
    loss = covariances.square(np.full(len(covariances.constant), penalty(shrunk) * SLACK_W**2))
    if np.count_nonzero(weights) > 1:
        across = _across(root, a - mean_a, B - mean_B, means, covariances)
        size = across.slopes + across.bends + across.rest
        across_weight = np.where(weights > 0, 0.5 * weights * second(size), 0.0)
        loss = _sum(loss, across.square(across_weight))
    difference = D.T @ mean_a, D.T @ mean_B @ D
    offset = float(difference[0] @ anchor.mean) + float(np.vdot(difference[1], anchor.covariance))
    return Tangent(math.log(total), *difference, offset, loss)


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


def _means(x: Expanded, anchor: Anchor, A: Float) -> _Shifts:
    """The whitened means A m less those of the anchor, (C - 1) coordinates."""
    rest = np.array([x.mean_rest(row) for row in A])
    hessian = np.tensordot(A, x.mean_hessian, 1)
    constant = A @ (x.latents.mean - anchor.mean)
    return _Shifts(x.reach, constant, A @ x.mean_gradient, hessian, rest * SLACK, 0.0)


def _covariances(x: Expanded, anchor: Anchor, A: Float) -> _Shifts:
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
    return _Shifts(
        x.reach,
        root * constant[rows, columns],
        root[:, None] * gradient[rows, columns],
        root[:, None, None] * hessian[rows, columns],
        np.zeros(len(rows)),
        x.covariance_rest(A, gradient, hessian) * SLACK,
    )


def _shrunk(covariances: _Shifts, x: Expanded) -> float:
    """At least minus the smallest eigenvalue of the relative change of V anywhere on the box.

    Diagonal entries count only where they fall, and the norm of a matrix is at most that of bounds of its
    entries' absolute values.
    """
    N = x.model.classes - 1
    rows, columns = np.triu_indices(N)
    size = np.zeros((N, N))
    size[rows, columns] = size[columns, rows] = (covariances.slopes + covariances.bends) / math.sqrt(2.0)
    unit = np.maximum(x.reach, TINY)
    for n, a in zip(np.flatnonzero(rows == columns), range(N), strict=True):
        falling = float(x.domain.support(-covariances.gradient[n][None])[0]) - covariances.constant[n]
        scaled = covariances.hessian[n] * np.outer(unit, unit)
        lowest = 0.5 * float(np.linalg.eigvalsh(symmetric(scaled))[0]) * len(unit)
        slack = 1e-9 * float(np.abs(scaled).sum())
        bend = min(float(covariances.bends[n]), max(0.0, slack - lowest))
        size[a, a] = max(0.0, falling) + bend
    return float(np.linalg.norm(size, 2)) * SLACK + covariances.joint


def _across(root: Float, a: Float, B: Float, means: _Shifts, covariances: _Shifts) -> _Shifts:
    """t_i - mean of t, t_i = a_i.m + <B_i, Sigma> in the differences of latents: one coordinate per class."""
    turned = a @ root  # a_i . (root of V) whitened displacement
    bent = np.einsum("pa,ipq,qb->iab", root, B, root, optimize=True)
    rows, columns = np.triu_indices(len(root))
    bent = bent[:, rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2.0))
    hessian = np.tensordot(turned, means.hessian, 1) + np.tensordot(bent, covariances.hessian, 1)
    rest = np.abs(turned) @ means.rest + np.linalg.norm(bent, axis=1) * covariances.joint
    constant = turned @ means.constant + bent @ covariances.constant
    gradient = turned @ means.gradient + bent @ covariances.gradient
    return _Shifts(means.reach, constant, gradient, hessian, rest * SLACK, 0.0)


def second(largest: Float) -> Float:
    """psi with e^s - 1 - s <= psi s^2 / 2 for s <= largest: 2 (e^s - 1 - s) / s^2, which increases."""
    s = np.maximum(largest, 1e-3)
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * (np.expm1(s) - s) / (s * s) * (1.0 + 1e-6))


def _sum(x: Loss, y: Loss) -> Loss:
    return Loss(x.constant + y.constant, x.gradient + y.gradient, x.matrix + y.matrix)

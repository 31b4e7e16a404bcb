"""A certified lower bound of 1 - sum_i beta_i p_i over a box, from the log-concavity of softmax.

log E p_i + (1/2) log det V is jointly concave in the mean and the covariance V of the differences of latents
(docs/maths-multiclass.md, Theorem 3). So every p_i lies below the exponential of its tangent at an anchor,
times a factor that is 1 there and differs from it by a quarter of the squared relative change of V. One
affine functional and one quadratic form per box remain; both are exact at the reference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.anchor import Anchor
from gpcert.bounds.class_expansion import ClassExpansion
from gpcert.bounds.forms import Loss
from gpcert.rounding import TINY, is_certainly_psd
from gpcert.validation import Float

__all__ = ["Tangent", "tangent", "weighted", "whitening"]

_SLACK = 1.0 + 1e-9
#: Inverse factors of V are checked to this; what the check leaves is in `_SLACK_W`.
_INVERSE = 1e-8
_SLACK_W = 1.0 + 1e-6


class Tangent(NamedTuple):
    """On the box: log sum_i beta_i p_i <= log_total + (a.m + <B, Sigma> - offset) + loss."""

    log_total: float
    a: Float  #: (C,)
    B: Float  #: (C, C)
    offset: float
    loss: Loss


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """Displacements constant + gradient.d + d^T hessian d / 2 up to `rest` each, and up to a vector of
    Euclidean norm `joint` together.
    """

    constant: Float  #: (N,)
    gradient: Float  #: (N, d)
    hessian: Float  #: (N, d, d)
    rest: Float  #: (N,)
    joint: float

    def slopes(self, reach: Float) -> Float:
        """sup |constant + gradient.d| (N,)."""
        return np.asarray(np.abs(self.constant) + np.abs(self.gradient) @ reach)

    def bends(self, reach: Float) -> Float:
        """sup |d^T hessian d| / 2 (N,): by absolute values."""
        return np.asarray(0.5 * np.einsum("i,nij,j->n", reach, np.abs(self.hessian), reach) * _SLACK)

    def largest(self, reach: Float) -> float:
        """sup of the Euclidean norm."""
        single = self.slopes(reach) + self.bends(reach) + self.rest
        return float(np.linalg.norm(single)) + self.joint

    def square(self, reach: Float, weight: Float, share: float) -> Loss:
        """A bound of sum_n weight_n coordinate_n^2, with (x + y)^2 <= (1 + t) x^2 + (1 + 1/t) y^2.

        `share`: t relative to the quotient of the sizes of curved and linear part.
        """
        bends = self.bends(reach)
        linear = math.sqrt(float(weight @ self.slopes(reach) ** 2))
        curved = math.sqrt(float(weight @ bends**2))
        small = math.sqrt(float(weight @ self.rest**2)) + math.sqrt(float(weight.max())) * self.joint
        t = _ratio(share * (curved + small), linear)
        u = _ratio(small, curved)
        constant = (1.0 + t) * float(weight @ self.constant**2) + (1.0 + 1.0 / t) * (1.0 + 1.0 / u) * small**2
        scaled = weight[:, None] * self.gradient
        matrix = (1.0 + t) * (self.gradient.T @ scaled)
        for n in np.flatnonzero(weight * bends):
            # (d^T H d / 2)^2 <= sup * d^T |H| d / 2: it vanishes at the reference, as all the rest does.
            matrix += ((1.0 + 1.0 / t) * (1.0 + u) * weight[n] * bends[n] * 0.5) * _absolute(
                self.hessian[n], reach
            )
        # The last term covers the rounding of these sums.
        return Loss(
            constant * _SLACK + 1e-11 * (linear + curved) ** 2,
            2.0 * (1.0 + t) * (self.constant @ scaled),
            matrix,
        )


def _ratio(x: float, y: float) -> float:
    """x / y kept inside the range of doubles; any positive number is sound."""
    return min(max(x / y, 1e-6), 1e6) if y > 0 else 1.0


def _absolute(H: Float, reach: Float) -> Float:
    """P (d, d) with P + H and P - H certainly PSD: about |H| in the units of the box, else a diagonal."""
    unit = np.maximum(reach, TINY)
    scaled = H * np.outer(unit, unit)
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    slack = 1e-10 * float(np.abs(values).sum()) + TINY
    P = (vectors * np.abs(values)) @ vectors.T
    P = 0.5 * (P + P.T) + slack * np.eye(len(P))
    if not (is_certainly_psd(P + scaled) and is_certainly_psd(P - scaled)):
        P = np.diag(np.abs(scaled).sum(axis=1) * _SLACK)
    return np.asarray(P / np.outer(unit, unit))


def tangent(x: ClassExpansion, anchor: Anchor, beta: Float, share: float = 0.5) -> Tangent | None:
    """The tangent for beta (C,) >= 0; None where nothing is proved. Any share > 0 is sound."""
    model = x.model
    D = model.contrasts
    W = whitening(D @ anchor.covariance @ D.T)
    if W is None:
        return None
    root: Float = np.asarray(np.linalg.inv(W), dtype=np.float64)
    A = W @ D
    spread = _covariances(x, anchor, A)
    rho = spread.largest(x.reach) * _SLACK_W
    shrunk = _shrunk(spread, x) * _SLACK_W
    if not shrunk < 0.95:
        return None
    eta = _means(x, A).largest(x.reach) * _SLACK_W
    a, B, weights, total = weighted(anchor, beta, float(np.linalg.norm(root, 2)), eta, rho, x.changes())
    if not math.isfinite(total):
        return None
    mean_a, mean_B = weights @ a, np.tensordot(weights, B, 1)
    penalty = 0.25 / (1.0 - shrunk) * _SLACK_W**2
    loss = spread.square(x.reach, np.full(len(spread.constant), penalty), share)
    if np.count_nonzero(weights) > 1:
        across = _across(x, anchor, A, root, a - mean_a, B - mean_B, spread)
        size = across.slopes(x.reach) + across.bends(x.reach) + across.rest
        across_weight = np.where(weights > 0, 0.5 * weights * _second(size), 0.0)
        loss = _sum(loss, across.square(x.reach, across_weight, share))
    difference = D.T @ mean_a, D.T @ mean_B @ D
    offset = float(difference[0] @ anchor.mean) + float(np.vdot(difference[1], anchor.covariance))
    return Tangent(math.log(total), *difference, offset, loss)


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
    with np.errstate(over="ignore"):
        masses = np.where(used, beta * (anchor.p + anchor.error) * np.exp(cost) * _SLACK, 0.0)
    total = float(masses.sum())
    weights = masses / total if 0 < total < np.inf else masses
    return np.where(used[:, None], a, 0.0), np.where(used[:, None, None], B, 0.0), weights, total * _SLACK


def _means(x: ClassExpansion, A: Float) -> _Coordinates:
    """The whitened means A m, from their values at the reference, (C - 1) coordinates."""
    rest = np.array([x.mean_rest(row) for row in A])
    hessian = np.tensordot(A, x.mean_hessian, 1)
    return _Coordinates(np.zeros(len(A)), A @ x.mean_gradient, hessian, rest * _SLACK, 0.0)


def _covariances(x: ClassExpansion, anchor: Anchor, A: Float) -> _Coordinates:
    """The whitened covariance A Sigma A^T less that of the anchor, (C - 1)^2 coordinates (X8)."""
    N = len(A)
    gradient = np.einsum("ac,ceD,be->abD", A, x.matrix(x.covariance_gradient), A, optimize=True)
    hessian = np.einsum("ac,ceDF,be->abDF", A, x.matrix(x.covariance_hessian), A, optimize=True)
    constant = A @ (x.latents.covariance - anchor.covariance) @ A.T
    explained = A @ (np.diag(x.model.prior) - x.latents.covariance) @ A.T
    curve = 0.5 * np.einsum("i,abij,j->ab", x.reach, np.abs(hessian), x.reach)
    R = x.radius
    norm, slope, bend = (float(np.linalg.norm(y)) for y in (explained, np.abs(gradient) @ x.reach, curve))
    scale = float(np.linalg.norm(A))
    z1, z2, z3 = (scale * z for z in x.deviations)
    y = math.sqrt(max(float(np.linalg.eigvalsh(explained)[-1]), 0.0) + x.model.hidden * scale**2)
    y += 1e-6 * math.sqrt(norm)
    third = 2.0 * R * R * norm + 2.0 * R * (slope + bend + 2.0 * R * norm)
    third += 2.0 * y * z3 + 2.0 * z1 * z2 + z2 * z2
    rounding = float(x.error_covariance.max()) * float((np.abs(A).sum(axis=1) ** 2).sum())
    d = len(x.reach)
    return _Coordinates(
        constant.ravel(),
        gradient.reshape(N * N, d),
        hessian.reshape(N * N, d, d),
        np.zeros(N * N),
        (third + rounding) * _SLACK,
    )


def _shrunk(spread: _Coordinates, x: ClassExpansion) -> float:
    """At least minus the smallest eigenvalue of the relative change of V anywhere on the box.

    Diagonal entries count only where they fall, and the norm of a matrix is at most that of bounds of its
    entries' absolute values.
    """
    reach = x.reach
    N = math.isqrt(len(spread.constant))
    size = (spread.slopes(reach) + spread.bends(reach)).reshape(N, N)
    unit = np.maximum(reach, TINY)
    for a in range(N):
        n = a * N + a
        falling = float(x.domain.support(-spread.gradient[n][None])[0]) - spread.constant[n]
        scaled = spread.hessian[n] * np.outer(unit, unit)
        lowest = 0.5 * float(np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0]) * len(unit)
        slack = 1e-9 * float(np.abs(scaled).sum())
        bend = min(float(spread.bends(reach)[n]), max(0.0, slack - lowest))
        size[a, a] = max(0.0, falling) + bend
    return float(np.linalg.norm(size, 2)) * _SLACK + spread.joint


def _across(
    x: ClassExpansion, anchor: Anchor, A: Float, root: Float, a: Float, B: Float, spread: _Coordinates
) -> _Coordinates:
    """t_i - mean of t, t_i = a_i.m + <B_i, Sigma> in the differences of latents: one coordinate per class."""
    means = _means(x, A)
    turned = a @ root  # a_i . (root of V) whitened displacement
    bent = np.einsum("pa,ipq,qb->iab", root, B, root, optimize=True).reshape(len(a), -1)
    hessian = np.tensordot(turned, means.hessian, 1) + np.tensordot(bent, spread.hessian, 1)
    rest = np.abs(turned) @ means.rest + np.linalg.norm(bent, axis=1) * spread.joint
    return _Coordinates(
        bent @ spread.constant,
        turned @ means.gradient + bent @ spread.gradient,
        hessian,
        rest * _SLACK,
        0.0,
    )


def _second(largest: Float) -> Float:
    """psi with e^s - 1 - s <= psi s^2 / 2 for s <= largest: 2 (e^s - 1 - s) / s^2, which increases."""
    s = np.maximum(largest, 1e-3)
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * (np.expm1(s) - s) / (s * s) * (1.0 + 1e-6))


def _sum(x: Loss, y: Loss) -> Loss:
    return Loss(x.constant + y.constant, x.gradient + y.gradient, x.matrix + y.matrix)

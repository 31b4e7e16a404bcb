"""Multipliers: lower bounds of a quadratic over a leaf (docs/maths/proof.md, V5 and V7).

Nothing here is certified: any D >= 0, any y and any multiplier >= 0 of the ball are sound, and whoever checks
computes the value in balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.ball import BallDomain
from gpcert.bounds.geometry.ball_newton import multipliers as ellipsoid_multipliers
from gpcert.bounds.geometry.ball_quadratic import descended
from gpcert.bounds.geometry.box_quadratic import curvature, settled_faces
from gpcert.bounds.geometry.domain import BoxDomain, Domain
from gpcert.validation import Float

#: Of a multiplier that has to show that a box misses a ball.
_DOUBLINGS = 60


class Multipliers(NamedTuple):
    """D (d,), y (d,), the ball's for its square and for its norm, and about the bound that they give.

    Those of the ball are of |u|^2 <= 1 and of |u|_1 <= 1, u = (d - offset) / unit.
    """

    D: Float
    y: Float
    value: float
    square: float = 0.0
    norm: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether they can be written."""
        return bool(np.isfinite([*self.D, *self.y, self.square, self.norm]).all())


@dataclass(frozen=True, eq=False)
class CheckedBall(BallDomain):
    """A ball whose reach is the checker's: |offset| and the longest half axis."""

    @classmethod
    def of(cls, ball: BallDomain) -> CheckedBall:
        return cls(ball.low, ball.high, ball.offset, ball.unit, ball.ball)

    def norm(self, metric: Float) -> float:
        o, reach = self.offset, self.reach
        root = float(np.sqrt(metric @ (o * o))) + float(np.sqrt((metric * self.unit**2).max()))
        return min(float(np.sqrt(metric @ (reach * reach))), root) * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class Outside(BoxDomain):
    """A box that misses the ball."""

    offset: Float
    unit: Float
    norm_of_ball: float


def multipliers(domain: Domain, g: Float, H: Float, enough: float) -> Multipliers:
    """For g.d + d^T H d / 2 on the domain; effort ends once `enough` is met."""
    try:
        if isinstance(domain, Outside):
            return _outside(domain, g, H, enough)
        if isinstance(domain, BallDomain):
            return _of_ball(domain, g, H, enough)
        return _of_box(g, H, domain.low, domain.high, enough)
    except np.linalg.LinAlgError:
        return Multipliers(np.zeros_like(g), np.zeros_like(g), -np.inf)


def _of_box(g: Float, H: Float, low: Float, high: Float, enough: float) -> Multipliers:
    """A coordinate j that is settled at an end (Q1) has y_j there and D_j = 2 |G_j| / width_j, G the
    gradient: the derivative of V5's quadratic then vanishes. Where that D does not make it convex, all are
    searched.
    """
    if len(g) == 1:
        return _of_interval(g, H, low, high)
    y, free, _ = settled_faces(g, H, low, high)
    D = np.zeros_like(g)
    if free.any():
        fixed = np.where(free, 0.0, y)
        rest = (g + H @ fixed)[free]
        short = enough - float(g @ fixed + 0.5 * fixed @ H @ fixed)
        D[free], y[free] = curvature(rest, H[np.ix_(free, free)], low[free], high[free], short, 1e-6)
    if not free.all():
        slope = np.abs(g + H @ y)
        D[~free] = (2.0 * slope / np.maximum(high - low, 1e-300))[~free]
        if not _convex(H, D):
            D, y = curvature(g, H, low, high, enough, 1e-6)
    return Multipliers(D, y, _dual(g, H, D, y, low, high) if _convex(H, D) else -np.inf)


def _of_interval(g: Float, H: Float, low: Float, high: Float) -> Multipliers:
    """One coordinate: a convex quadratic from its minimiser, any other one from its chord; both are exact."""
    curve = H[0]
    D, y = np.maximum(-curve, 0.0), np.zeros_like(g)
    if curve[0] > 0.0:
        y = np.clip(-g / curve, low, high)
    return Multipliers(D, y, _dual(g, H, D, y, low, high))


def _of_ball(domain: BallDomain, g: Float, H: Float, enough: float) -> Multipliers:
    """In normalised coordinates u = (d - offset) / unit, where the ball is |u| <= 1."""
    o, unit, ball = domain.offset, domain.unit, domain.ball
    constant, slope, matrix = _normalised(domain, g, H)
    low, high = ball.low, np.maximum(ball.high, ball.low + 1e-300)
    far = np.maximum(np.abs(low), np.abs(high))
    if ball.norm == 2.0 and (len(g) == 1 or far @ far <= 1.0):  # the box lies in the ball
        best = _of_box(slope, matrix, low, high, enough - constant)
    elif ball.norm == 2.0:
        ones = np.ones_like(g)
        D, E, u = ellipsoid_multipliers(slope, matrix, low, high, ones, enough - constant, 1e-6)
        best = _valued(slope, matrix, low, high, Multipliers(D, u, 0.0, float(E)))
    else:
        best = _of_cross(slope, matrix, domain, high, enough - constant)
    return Multipliers(best.D / unit**2, o + unit * best.y, constant + best.value, best.square, best.norm)


def _of_cross(slope: Float, matrix: Float, domain: BallDomain, high: Float, enough: float) -> Multipliers:
    """Norm 1: by the box alone, which is all that small boxes within the ball need; else the quadratic is
    made convex by the box, then by the ball, and the multiplier of the norm is that of its minimiser.
    """
    ball = domain.ball
    best = _of_box(slope, matrix, ball.low, high, enough)
    for D, E in ((best.D, 0.0), (np.zeros_like(slope), _convexity(matrix))):
        if best.value >= enough:
            break
        c, A = slope - 0.5 * D * (ball.low + high), matrix + np.diag(D + E)
        u = descended(c, A, ball)
        found = Multipliers(D, u, 0.0, E, ball.multiplier(c + A @ u))
        best = max(best, _valued(slope, matrix, ball.low, high, found), key=lambda each: each.value)
    return best


def _valued(slope: Float, matrix: Float, low: Float, high: Float, found: Multipliers) -> Multipliers:
    """With the bound that they give in normalised coordinates."""
    D, u, _, E, norm = found
    shifted = matrix + E * np.eye(len(u))
    value = _dual(slope, shifted, D, u, low, high, norm) - 0.5 * E - norm if _convex(shifted, D) else -np.inf
    return found._replace(value=value)


def _outside(domain: Outside, g: Float, H: Float, enough: float) -> Multipliers:
    """On a box that misses the ball, a large multiple of what is negative in the ball alone exceeds all."""
    constant, slope, matrix = _normalised(domain, g, H)
    low, high = ((end - domain.offset) / domain.unit for end in (domain.low, domain.high))
    u, D = np.clip(0.0, low, high), np.zeros_like(g)
    E, norm, value = _convexity(matrix), 0.0, -np.inf
    for _ in range(_DOUBLINGS):
        shifted = matrix + E * np.eye(len(g))
        value = constant + _dual(slope, shifted, D, u, low, high, norm) - 0.5 * E - norm
        if value >= enough:
            break
        if domain.norm_of_ball == 1.0:
            norm = 2.0 * norm + float(np.abs(slope).max())
        else:
            E = 2.0 * E + float(np.abs(slope).max())
    return Multipliers(D, domain.offset + domain.unit * u, value, E, norm)


def _normalised(domain: BallDomain | Outside, g: Float, H: Float) -> tuple[float, Float, Float]:
    """Constant, slope and matrix in the coordinates u = (d - offset) / unit."""
    o, unit = domain.offset, domain.unit
    Ho = H @ o
    return float((g + 0.5 * Ho) @ o), (g + Ho) * unit, H * np.outer(unit, unit)


def _convexity(matrix: Float) -> float:
    """A multiple of the identity that makes it convex."""
    least = max(0.0, -float(np.linalg.eigvalsh(matrix)[0])) * (1.0 + 1e-9)
    return least + 1e-12 * float(np.abs(matrix).max())


def _convex(H: Float, D: Float) -> bool:
    try:
        np.linalg.cholesky(H + np.diag(D * (1.0 + 1e-12) + 1e-13 * np.abs(H).max()))
    except np.linalg.LinAlgError:
        return False
    return True


def _dual(g: Float, H: Float, D: Float, y: Float, low: Float, high: Float, norm: float = 0.0) -> float:
    """Q2; with a multiplier of sum |d_j| the linear part has a kink at 0."""
    c = g - 0.5 * D * (low + high)
    Ay = H @ y + D * y
    G = c + Ay
    ends = [G * d + norm * np.abs(d) for d in (low, high, np.clip(0.0, low, high) if norm else low)]
    return float((c * y + 0.5 * Ay * y + 0.5 * D * low * high - G * y + np.minimum.reduce(ends)).sum())

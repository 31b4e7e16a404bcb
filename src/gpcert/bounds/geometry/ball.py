"""p-balls, 1 <= p < inf, as regions and as sets of displacements (docs/maths/regions.md, section 1).

Seen from a reference, the part of a ball in a box lies in

    {d: low <= d <= high, |(d - offset) / unit|_p <= 1},

with doubles that contain the exact set (B1). u = (d - offset) / unit are its normalised coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.ball_quadratic import unit_lower_bound
from gpcert.bounds.geometry.box_quadratic import QuadraticBound
from gpcert.bounds.geometry.domain import NARROWEST, BoxDomain, Boxes, Domain, divided, scaled_box
from gpcert.bounds.geometry.unit_ball import UnitBall, conjugate
from gpcert.clock import check
from gpcert.regions import Ball, lowest
from gpcert.rounding import TINY, UNIT, gamma, norm_up, sqrt_up, sum_up
from gpcert.validation import Float, Mask

#: Caps begin at this share of the way from the centre to the end of the box or ball (measured).
_BETWEEN = 0.5
#: Features up to which halves are small enough.
_FEW = 3


@dataclass(frozen=True, eq=False)
class BallDomain(Domain):
    """The part of a p-ball in a box; `ball` is its normalised set."""

    offset: Float  #: the ball's centre (d,)
    unit: Float  #: its half axes (d,)
    ball: UnitBall

    def norm(self, metric: Float) -> float:
        """B4: d = offset + unit u, square by square; or the box."""
        o, reach = self.offset, self.reach
        box = sum_up(metric * reach * reach)
        linear = float(self.ball.support((2.0 * metric * o * self.unit)[None])[0])
        square = self.ball.square(metric * self.unit * self.unit)
        total = (sum_up(metric * o * o) + linear + square) * (1.0 + gamma(32)) + TINY
        return sqrt_up(min(box, total))

    def rounded(self, metric: Float) -> tuple[Float, float]:
        """B4 around the ball's centre, or the box."""
        box = super().rounded(metric)
        square = self.ball.square(metric * self.unit * self.unit) * (1.0 + gamma(8))
        return box if box[1] < square else (self.offset, square)

    def support(self, rows: Float) -> Float:
        """B3, or the box."""
        outward = gamma(2 * len(self.low) + 32)
        base = rows @ self.offset + 2.0 * outward * (np.abs(rows) @ np.abs(self.offset))
        inner = base + self.ball.support(rows * self.unit) * (1.0 + 4.0 * outward)
        box = np.maximum(rows, 0.0) @ self.high + np.minimum(rows, 0.0) @ self.low
        return np.minimum(inner + 4.0 * UNIT * np.abs(inner), box * (1.0 + 4.0 * outward)) + TINY

    def absolute(self, rows: Float) -> Float:
        """|d_j| <= |offset_j| + unit_j |u_j| and Hoelder, or the box."""
        size, outward = np.abs(rows), 1.0 + 4.0 * gamma(2 * len(self.low) + 32)
        inner = size @ np.abs(self.offset) + norm_up(size * self.unit, conjugate(self.ball.norm))
        return np.asarray(np.minimum(inner, size @ self.reach) * outward + TINY)

    def metric(self, spread: Float) -> Float:
        """In a p-ball the weights that pay are those of its own norm, the more so the smaller p."""
        share = max(0.0, 1.0 - 2.0 / self.ball.norm)
        weight = self.unit ** (-2.0 * (1.0 - share))
        return np.asarray(weight / weight.max() * super().metric(spread) ** share)

    def largest(self, form: Float) -> float:
        """The top eigenvalue in normalised coordinates, for p <= 2; more for larger p."""
        scaled = form * np.outer(self.unit, self.unit)
        y = np.sqrt(np.maximum(np.diagonal(scaled), 0.0)) + TINY
        top = 0.0
        for _ in range(5):
            y = y / np.linalg.norm(y)
            y = scaled @ y
            top = float(np.linalg.norm(y))
            if not top > 0:
                break
        bulge = max(1.0, float(np.abs(self.offset / self.unit).max()) + 1.0)
        return float(top * len(y) ** max(0.0, 1.0 - 2.0 / self.ball.norm) * bulge)

    def minimise(self, g: Float, H: Float, enough: float = np.inf, accuracy: float = 1e-6) -> QuadraticBound:
        """B5-B7 in normalised coordinates; the change of coordinates rounds by `error`."""
        check()
        o, unit = self.offset, self.unit
        Ho = H @ o
        constant = float((g + 0.5 * Ho) @ o)
        reach = np.abs(o) + unit
        error = 4.0 * gamma(2 * len(g) + 40) * float((np.abs(g) + np.abs(H) @ reach) @ reach) + TINY
        if not error < 1e130:  # products of the terms might overflow
            return QuadraticBound(-np.inf, np.clip(o, self.low, self.high))
        found = unit_lower_bound(
            (g + Ho) * unit, H * np.outer(unit, unit), self.ball, enough + error - constant, accuracy
        )
        value = constant + found.value - error
        return QuadraticBound(
            value - 4.0 * UNIT * (abs(constant) + abs(value)),
            np.clip(o + unit * found.point, self.low, self.high),
        )


@dataclass(frozen=True, eq=False)
class BallShape:
    """The region of a ball of norm p, 1 <= p < inf, on its moving features (D,)."""

    ball: Ball
    moving: Mask
    capped: bool = True  #: B12 and B13, which checkers of proof files do not know

    @property
    def is_box(self) -> bool:
        return False

    @property
    def centre(self) -> Float:
        """On the moving features (d,)."""
        return self.ball.x[self.moving]

    @property
    def scale(self) -> Float:
        """On the moving features (d,)."""
        return np.ones(int(self.moving.sum())) if self.ball.scale is None else self.ball.scale[self.moving]

    def domain(self, lower: Float, upper: Float, reference: Float, lengthscale: Float) -> Domain | None:
        """B1; None if the point of the box nearest to the centre is certainly outside the ball."""
        low, high = scaled_box(lower, upper, reference, lengthscale)
        centre = self.centre
        unit = np.maximum(_product(self.ball.radius, self.scale, lengthscale) * (1.0 + 8 * UNIT), NARROWEST)
        if not unit.max() < 1e100:
            return BoxDomain(low, high)
        bottom, top = (lower - centre) / lengthscale / unit, (upper - centre) / lengthscale / unit
        outward = [np.where(end == centre, 0.0, TINY) for end in (lower, upper)]  # quotients may underflow
        bottom = np.maximum(bottom - 8 * UNIT * np.abs(bottom) - outward[0], -1.0)
        top = np.minimum(top + 8 * UNIT * np.abs(top) + outward[1], 1.0)
        if UnitBall(bottom, top, self.ball.norm).is_empty():
            return None
        cap = _caps(_least(bottom, top), self.ball.norm) if self.capped else np.ones(len(unit))
        bottom, top = np.maximum(bottom, -cap), np.minimum(top, cap)
        ball = UnitBall(bottom, top, self.ball.norm)
        o = (centre - reference) / lengthscale
        slack = 8 * UNIT * (np.abs(o) + unit)
        low, high = np.maximum(low, o - cap * unit - slack), np.minimum(high, o + cap * unit + slack)
        return BallDomain(np.minimum(low, 0.0), np.maximum(high, 0.0), o, unit, ball)

    def middle(self, lower: Float, upper: Float) -> Float:
        """The centre where the box has it; else the box's middle, drawn into the ball."""
        nearest = np.clip(self.centre, lower, upper)
        return (
            nearest
            if (nearest == self.centre).all()
            else self.within(0.5 * lower + 0.5 * upper, lower, upper)
        )

    def within(self, point: Float, lower: Float, upper: Float) -> Float:
        """On the line from the point to the box's nearest to the centre: its first in the ball."""
        point, nearest = np.clip(point, lower, upper), np.clip(self.centre, lower, upper)
        unit, norm = np.maximum(self.ball.radius * self.scale, NARROWEST), self.ball.norm
        good, bad = 0.0, 1.0
        while bad - good > 1e-3:
            share = bad if bad == 1.0 and good == 0.0 else 0.5 * (good + bad)
            inside = np.linalg.norm((nearest + share * (point - nearest) - self.centre) / unit, norm) <= 1.0
            if inside and share == 1.0:
                return point
            good, bad = (share, bad) if inside else (good, share if share < 1.0 else 1.0 - 1e-9)
        return np.clip(nearest + good * (point - nearest), lower, upper)

    def parts(self, lower: Float, upper: Float, j: int) -> Boxes | None:
        """B12: two caps and what lies between where the box has the centre inside, else halves of what the
        ball leaves of the box; p < 2: caps are short.
        """
        if not self.capped or self.ball.norm >= 2.0 or len(lower) <= _FEW:
            return None
        centre, unit = self.centre, np.maximum(self.ball.radius * self.scale, NARROWEST)
        reach = unit * _caps(_least((lower - centre) / unit, (upper - centre) / unit), self.ball.norm)
        first, last = max(lower[j] - centre[j], -reach[j]), min(upper[j] - centre[j], reach[j])
        ends = (_BETWEEN * first, _BETWEEN * last) if first < 0.0 < last else (0.5 * first + 0.5 * last,)
        return divided(lower, upper, j, [centre[j] + end for end in ends])

    def project(self, point: Float) -> Float:
        """Exactly inside: B2."""
        whole = self.ball.x.copy()
        whole[self.moving] = point
        return self.ball.project(whole)[self.moving]

    def neighbours(self, gradient: Float, point: Float) -> list[Float]:
        return []

    def vertex(self, gradient: Float, point: Float) -> Float:
        """B3, then exactly inside."""
        inner = self.ball.inner_box()
        centre, unit = self.centre, np.maximum(self.ball.radius * self.scale, NARROWEST)
        low, high = (inner.lower[self.moving] - centre) / unit, (inner.upper[self.moving] - centre) / unit
        return self.project(centre + unit * lowest(gradient * unit, low, high, self.ball.norm))


def _least(bottom: Float, top: Float) -> Float:
    """The smallest |u_j| for bottom <= u <= top (d,)."""
    return np.clip(np.maximum(bottom, -top), 0.0, 1.0)


def _caps(least: Float, norm: float) -> Float:
    """B13: at least sup |u_j| on the unit ball where |u_k| >= least_k (d,) for all k."""
    powers = least**norm
    rest = 1.0 + powers - powers.sum() + gamma(4 * len(least) + 400)
    return np.asarray(np.clip(np.maximum(rest, 0.0) ** (1.0 / norm) * (1.0 + 64 * UNIT), least, 1.0))


def _product(radius: float, scale: Float, lengthscale: Float) -> Float:
    """radius scale / lengthscale (d,) to three roundings: exponents apart, none leaves its range."""
    (r, e), (s, f), (l, g) = np.frexp(radius), np.frexp(scale), np.frexp(lengthscale)
    return np.asarray(np.ldexp(r * s / l, e + f - g))

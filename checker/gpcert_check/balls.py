"""Balls of norm 2, 1 and 0 (V7): the smallest box around them, and one more inequality.

With u_j = (z_j - x_j)/scale_j: sum u_j^2 <= radius^2 (norms 2 and 1), sum gauge_j(z_j) <= radius (norms 1
and 0), gauge_j = |u_j| for norm 1, for norm 0 the share of the way from x_j to the end of its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import ball, dot, largest
from gpcert_check.reading import need, reals
from gpcert_check.regions import Box, Cell, Ends, read_box, read_hull

__all__ = ["Ball", "read_region"]


def read_region(data: Any, D: int) -> Box:
    """The region that a file describes."""
    need(isinstance(data, dict) and data.get("kind") in ("box", "ball"), "a region is a box or a ball")
    if data["kind"] == "box":
        return read_box(data, D)
    hull, norm, x, radius, scale = read_hull(data, D)
    return hull if norm == "inf" else Ball(hull, norm, x, radius, scale)


class Ball(Box):
    """The points of a box that the norm admits."""

    def __init__(self, hull: Box, norm: str, x: list[float], radius: float, scale: list[float]) -> None:
        super().__init__(hull.lower, hull.upper)
        self.norm, self.x, self.radius, self.units = norm, x, radius, scale

    def contains(self, point: Sequence[float]) -> bool:
        if not super().contains(point):
            return False
        trips = zip(point, self.x, self.units, strict=True)
        steps = [abs(Fraction(a) - Fraction(b)) / Fraction(s) for a, b, s in trips if a != b]
        if self.norm == "0":
            return len(steps) <= self.radius
        power = int(self.norm)
        return sum((step**power for step in steps), Fraction(0)) <= Fraction(self.radius) ** power

    def cell(self, lower: Ends, upper: Ends, reference: Sequence[float], scale: Sequence[float]) -> Cell:
        return BallCell(self, lower, upper, reference, scale)


class BallCell(Cell):
    """The part of a ball in a box; o = (x - reference)/lengthscale, u = (d - o)/unit."""

    def __init__(
        self, whole: Ball, lower: Ends, upper: Ends, reference: Sequence[float], scale: Sequence[float]
    ) -> None:
        super().__init__(lower, upper, reference, scale)
        self.norm, self.radius = whole.norm, arb(whole.radius)
        self.o = [(arb(whole.x[j]) - a) / s for j, a, s in zip(whole.moving, reference, scale, strict=True)]
        self.unit = [arb(whole.units[j]) / s for j, s in zip(whole.moving, scale, strict=True)]
        lengths = zip(whole.moving, scale, strict=True)
        self.reaches = [  # how far below and above x the whole region goes, in lengthscales
            (ball(Fraction(whole.x[j]) - whole.lower[j]) / s, ball(whole.upper[j] - Fraction(whole.x[j])) / s)
            for j, s in lengths
        ]

    def reach(self, weights: Iterable[Any]) -> arb:
        weights = list(weights)
        box = super().reach(weights)
        if self.norm == "0":
            away = [w * o * o for w, o in zip(weights, self.o, strict=True)]
            gains = [largest([w * f * f - a]) for w, f, a in zip(weights, self.far, away, strict=True)]
            gains.sort(key=lambda gain: float(gain.mid()), reverse=True)  # any order is sound below
            count = int(float(self.radius.mid()))
            cut = largest(gains[count:])
            chosen = sum((gain.max(cut) for gain in gains[:count]), arb(0))
            return largest([sum(away, arb(0)) + chosen]).min(box)
        root = dot(weights, [o * o for o in self.o]).nonnegative_part().sqrt()
        longest = largest([arb(w) * u * u for w, u in zip(weights, self.unit, strict=True)]).sqrt()
        return largest([(root + self.radius * longest) ** 2]).min(box)

    def gain(self, hint: Any, g: list[arb], H: arb_mat) -> tuple[arb, Callable[[int, arb], arb] | None]:
        """V7: multiples of what is at most 0 on the ball join the programme; returns their constant."""
        quadratic, linear = (0.0, 0.0) if hint is None else reals(hint, 2)
        need(quadratic >= 0 and linear >= 0, "V7: a multiplier is negative")
        need(quadratic == 0 or self.norm != "0", "V7: norm 0 has no quadratic multiplier")
        need(linear == 0 or self.norm != "2", "V7: norm 2 has no linear multiplier")
        constant = -quadratic * self.radius**2 / 2 - linear * self.radius
        for j, (o, unit) in enumerate(zip(self.o, self.unit, strict=True)):
            weight = quadratic / unit**2
            H[j, j] += weight
            g[j] -= weight * o
            constant += weight * o * o / 2
        return constant, self._least(linear) if linear > 0 else None

    def _least(self, linear: float) -> Callable[[int, arb], arb]:
        def least(j: int, G: arb) -> arb:
            """The smallest G d_j + linear gauge_j(d_j): piecewise linear, so at an end or at the kink."""
            low, high = self.box[j]
            value = (G * low + linear * self._gauge(j, low)).min(G * high + linear * self._gauge(j, high))
            outside = self.o[j] < low or self.o[j] > high
            return value if outside else value.min(G * self.o[j])

        return least

    def _gauge(self, j: int, d: arb) -> arb:
        """At most gauge_j at displacement d."""
        away = d - self.o[j]
        if self.norm == "1":
            return abs(away) / self.unit[j]
        below, above = self.reaches[j]
        parts = [side / length for side, length in ((away, above), (-away, below)) if length > 0]
        return parts[0].max(parts[-1]).nonnegative_part()

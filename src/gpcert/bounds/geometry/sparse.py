"""Balls of norm 0: at most k coordinates move, anywhere in their range (docs/maths/regions.md, section 4).

In a box of the search a coordinate whose interval misses the centre is forced to move; of the others, `count`
more may. A `SparseDomain` bounds over all such supports at once and notes, for the search, which supports a
target left open (Z4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpcert.bounds.geometry.box_quadratic import QuadraticBound
from gpcert.bounds.geometry.domain import BoxDomain, Boxes, Domain, scaled_box
from gpcert.bounds.geometry.unit_ball import PairBound, pair_bound
from gpcert.clock import check
from gpcert.regions import Ball
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float, Index, Mask

#: Most supports listed for one box.
_LIST = 4000


@dataclass(eq=False)
class Suspects:
    """What the targets asked of one domain left open: coordinates (d,), and supports (m, count) if few."""

    coordinates: Mask
    supports: set[tuple[int, ...]] | None = field(default_factory=set)
    asked: bool = False  #: whether any target was asked for

    def add(self, coordinates: Mask, supports: Index | None) -> None:
        self.coordinates |= coordinates
        if supports is None or self.supports is None or len(self.supports) + len(supports) > _LIST:
            self.supports = None
        else:
            self.supports.update(map(tuple, supports.tolist()))


@dataclass(frozen=True, eq=False)
class SparseDomain(Domain):
    """Displacements with d_j = offset_j but for the forced coordinates and `count` others."""

    offset: Float  #: the centre of the ball (d,)
    forced: Mask
    count: int
    suspects: Suspects

    def _largest(self, at_rest: Float, anywhere: Float) -> Float:
        """Z1: sup of separable sums, from their terms (..., d) at rest and their suprema."""
        gain = np.where(self.forced, 0.0, np.maximum(anywhere - at_rest, 0.0))
        kept = np.where(self.forced, anywhere, at_rest).sum(axis=-1)
        count = min(self.count, gain.shape[-1])
        top = -np.partition(-gain, count - 1, axis=-1)[..., :count].sum(axis=-1) if count else 0.0 * kept
        slack = gamma(2 * gain.shape[-1] + 40) * np.maximum(np.abs(at_rest), np.abs(anywhere)).sum(axis=-1)
        return np.asarray(kept + top + 2.0 * slack + TINY)

    def norm(self, metric: Float) -> float:
        """Z1 with metric_j d_j^2, or the box."""
        o, reach = self.offset, self.reach
        inner = float(self._largest(metric * o * o * (1.0 + 8 * UNIT), metric * reach * reach))
        return sqrt_up(min(inner, sum_up(metric * reach * reach)))

    def support(self, rows: Float) -> Float:
        """Z1 with rows_ij d_j, or the box."""
        highest = np.maximum(rows, 0.0) * self.high + np.minimum(rows, 0.0) * self.low
        return self._largest(rows * self.offset, highest)

    def absolute(self, rows: Float) -> Float:
        """Z1 with |rows_ij| |d_j|."""
        size = np.abs(rows)
        return self._largest(size * np.abs(self.offset), size * self.reach)

    def metric(self, spread: Float) -> Float:
        """The fewer coordinates move, the more it is the largest that counts."""
        share = min(1.0, (self.count + int(self.forced.sum())) / len(spread))
        return np.asarray(super().metric(spread) ** share)

    def largest(self, form: Float) -> float:
        """The square of the largest sum of roots of the diagonal."""
        roots = np.sqrt(np.maximum(np.diagonal(form), 0.0)) * self.reach
        return float(np.sort(roots)[-(self.count + int(self.forced.sum())) :].sum()) ** 2

    def minimise(self, g: Float, H: Float, enough: float = np.inf, accuracy: float = 1e-6) -> QuadraticBound:
        """Z3 around the centre of the ball; what stays below `enough` is noted."""
        check()
        o = self.offset
        Ho = H @ o
        constant = float((g + 0.5 * Ho) @ o)
        reach = np.abs(o) + self.reach
        error = 4.0 * gamma(2 * len(g) + 40) * float((np.abs(g) + np.abs(H) @ reach) @ reach) + TINY
        slack = 8 * UNIT * (np.abs(o) + self.reach)
        low, high = self.low - o - slack, self.high - o + slack
        low = np.where(self.forced | (self.low == o), self.low - o, np.minimum(low, 0.0))
        high = np.where(self.forced | (self.high == o), self.high - o, np.maximum(high, 0.0))
        with np.errstate(all="ignore"):
            pairs = pair_bound(g + Ho, H, low, high, self.forced, self.count)
            value = constant + pairs.least() - error
            value -= 4 * UNIT * (abs(constant) + abs(value))
            if enough != np.inf:  # NaN is a target, too: one that nothing meets
                self._note(
                    pairs, enough, enough - constant + error + 8 * UNIT * (abs(constant) + abs(enough)), value
                )
        point = np.where(self.forced, 0.5 * (self.low + self.high), o)
        return QuadraticBound(value if np.isfinite(value) else -np.inf, np.clip(point, self.low, self.high))

    def _note(self, pairs: PairBound, enough: float, target: float, value: float) -> None:
        """Z4: remember the coordinates and supports that may lie below the target."""
        self.suspects.asked = True
        if enough <= value < np.inf:
            return
        open_ = ~(pairs.with_each() >= target) & ~self.forced
        known = np.isfinite(target) and np.isfinite(pairs.error)
        supports = pairs.survivors(target, open_, _LIST) if known else None
        self.suspects.add(open_ if known else ~self.forced, supports)


@dataclass(frozen=True, eq=False)
class SparseShape:
    """The region of a ball of norm 0 on its moving features (D,)."""

    ball: Ball
    moving: Mask
    cut: list[SparseDomain] | None = None  #: where to note the domains; None: nowhere
    capped: bool = True

    @property
    def is_box(self) -> bool:
        """Only if all coordinates may move."""
        return bool(self.moving.sum() <= self.ball.radius)

    @property
    def centre(self) -> Float:
        """On the moving features (d,)."""
        return self.ball.x[self.moving]

    def count(self, lower: Float, upper: Float) -> tuple[Mask, int]:
        """The coordinates forced to move in the box (d,), and how many others may."""
        forced = (lower > self.centre) | (upper < self.centre)
        return forced, int(min(self.ball.radius, len(lower))) - int(forced.sum())

    def domain(self, lower: Float, upper: Float, reference: Float, lengthscale: Float) -> Domain | None:
        """Z2; None if more coordinates are forced to move than may."""
        forced, count = self.count(lower, upper)
        if count < 0:
            return None
        low, high = scaled_box(lower, upper, reference, lengthscale)
        if (~forced).sum() <= count:
            return BoxDomain(low, high)
        offset = (self.centre - reference) / lengthscale
        domain = SparseDomain(low, high, offset, forced, count, Suspects(np.zeros(len(low), dtype=bool)))
        if self.cut is not None:
            self.cut.append(domain)
        return domain

    def middle(self, lower: Float, upper: Float) -> Float:
        """The centre, but for forced coordinates; the box's middle where all may move."""
        forced, count = self.count(lower, upper)
        middle = 0.5 * lower + 0.5 * upper
        return middle if (~forced).sum() <= count else np.where(forced, middle, self.centre)

    def within(self, point: Float, lower: Float, upper: Float) -> Float:
        """The middle: seen from the centre all supports are short; any point where all may move."""
        forced, count = self.count(lower, upper)
        return np.clip(point, lower, upper) if (~forced).sum() <= count else self.middle(lower, upper)

    def parts(self, lower: Float, upper: Float, j: int) -> Boxes | None:
        return None

    def project(self, point: Float) -> Float:
        whole = self.ball.x.copy()
        whole[self.moving] = point
        return self.ball.project(whole)[self.moving]

    def neighbours(self, gradient: Float, point: Float) -> list[Float]:
        """One coordinate that moved against one that did not, by what the gradient promises."""
        centre, end = self.centre, self._ends(gradient)
        moved = np.flatnonzero(point != centre)
        still = np.flatnonzero(point == centre)
        loss = (gradient * (centre - point))[moved]
        gain = (gradient * (end - centre))[still]
        leave, enter = moved[np.argsort(loss)[:3]], still[np.argsort(gain)[:3]]
        swaps = []
        for i in leave:
            for j in enter:
                other = point.copy()
                other[i], other[j] = centre[i], end[j]
                swaps.append(other)
        return swaps

    def _ends(self, gradient: Float) -> Float:
        inner = self.ball.inner_box()
        lower, upper = inner.lower[self.moving], inner.upper[self.moving]
        return np.where(gradient > 0, lower, np.where(gradient < 0, upper, self.centre))

    def vertex(self, gradient: Float, point: Float) -> Float:
        """The coordinates that gain most, each at its better end."""
        end = self._ends(gradient)
        gain = gradient * (self.centre - end)
        order = np.argsort(-gain, kind="stable")[: int(min(self.ball.radius, len(gain)))]
        result = self.centre.copy()
        result[order] = end[order]
        return result

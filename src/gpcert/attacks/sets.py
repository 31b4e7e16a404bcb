"""The regions an attack moves in: batches of one norm, with exact linear minimisation and projections.

A point is centre + unit * u, and the set of the offsets u is a box around 0 cut by |u|_p <= radius (p = inf:
the box alone). Inside one set every map below is a closed formula or a bisection on one number. Floating
point may leave a point an ulp outside: `project` of a region moves it inside, decided in rational arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.regions import Region
from gpcert.validation import Float, Index

_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Sets:
    """m regions of one norm; all arrays (m, d) but `radius` (m,), which p = inf does not use."""

    norm: float
    centre: Float
    unit: Float  #: raw length of one unit of u, > 0
    lower: Float  #: the box of each region, raw units
    upper: Float
    radius: Float  #: of |u|_p
    scale: Float  #: raw length of one unit of the radius

    @classmethod
    def of(cls, regions: Sequence[Region]) -> Sets:
        """The sets of regions that share a norm (a box counts as inf)."""
        boxes = [region.inner_box() for region in regions]
        lower, upper = np.stack([b.lower for b in boxes]), np.stack([b.upper for b in boxes])
        centre = np.stack([region.centre for region in regions])
        norm = regions[0].norm
        scale = np.stack(
            [np.ones(len(c)) if r.scale is None else r.scale for r, c in zip(regions, centre, strict=True)]
        )
        if norm == np.inf:
            half = 0.5 * upper - 0.5 * lower
            unit, radius = np.where(half > 0, half, 1.0), np.zeros(len(regions))
        else:
            unit, radius = scale, np.array([r.radius for r in regions], dtype=np.float64)
        if 1 <= norm < np.inf:  # radii in the unit: steps and slopes of any magnitude look alike
            axes = radius[:, None] * scale
            plain = np.asarray(((axes > 0) & (axes < np.inf)).all(axis=1))
            unit, radius = np.where(plain[:, None], axes, scale), np.where(plain, 1.0, radius)
        return cls(norm, centre, unit, lower, upper, radius, scale)

    def __len__(self) -> int:
        return len(self.centre)

    def rows(self, index: Index) -> Sets:
        """The sets of these indices, in this order, repetitions allowed."""
        parts = (self.centre, self.unit, self.lower, self.upper, self.radius, self.scale)
        return Sets(self.norm, *(part[index] for part in parts))

    @property
    def low(self) -> Float:
        """Lower ends of u (m, d), <= 0."""
        return (self.lower - self.centre) / self.unit

    @property
    def high(self) -> Float:
        """Upper ends of u (m, d), >= 0."""
        return (self.upper - self.centre) / self.unit

    def points(self, u: Float) -> Float:
        """Raw points (m, d), inside the boxes exactly."""
        return np.asarray(np.clip(self.centre + self.unit * u, self.lower, self.upper))

    def offsets(self, X: Float) -> Float:
        """u of raw points (m, d), projected into the sets."""
        return self.project((X - self.centre) / self.unit)

    def lengths(self, X: Float) -> Float:
        """|z - centre|_p of raw points (m, d) in the units of the ball (m,); a box has no such units."""
        return _length((X - self.centre) / self.scale, self.norm)

    def linear(self, g: Float) -> Float:
        """The u of each set with the smallest g.u, for slopes g (m, d)."""
        low, high = self.low, self.high
        if self.norm == np.inf:
            return np.where(g > 0, low, np.where(g < 0, high, 0.0))
        reach = np.where(g > 0, -low, high)
        if self.norm == 0:
            return -np.sign(g) * np.where(_largest(np.abs(g) * reach, self.radius), reach, 0.0)
        if self.norm < 1.0 + 1e-6:  # nearly the ball of norm 1; the powers below would underflow
            return -np.sign(g) * _fill(np.abs(g), reach, self.radius)
        size = np.abs(g) / _positive(np.abs(g).max(axis=1, keepdims=True))
        step = -np.sign(g) * size ** (1.0 / (self.norm - 1.0))
        step /= _positive(_length(step, self.norm))[:, None]

        def longer(t: Float) -> Float:  # the conditions of Karush, Kuhn and Tucker, for every multiplier
            return np.asarray(np.clip(np.exp(t)[:, None] * step, low, high))

        start = np.log(_positive(self.radius))
        return longer(self._bisect(longer, start, start + 60.0))

    @np.errstate(over="ignore", invalid="ignore")  # a direction only: what is found is checked
    def project(self, u: Float) -> Float:
        """The nearest point of each set (norms 0, 1, 2, inf), or the one in the direction of u (other p)."""
        low, high = self.low, self.high
        inside = np.clip(u, low, high)
        if self.norm == np.inf:
            return inside
        if self.norm == 0:
            gain = u * u - (u - inside) ** 2
            return np.where(_largest(gain, self.radius), inside, 0.0)
        if self.norm == 1:

            def thinner(t: Float) -> Float:
                return np.asarray(np.clip(np.sign(u) * np.maximum(np.abs(u) + t[:, None], 0.0), low, high))

            return thinner(self._bisect(thinner, -np.abs(u).max(axis=1), np.zeros(len(u))))

        def shorter(t: Float) -> Float:
            return np.asarray(np.clip(t[:, None] * u, low, high))

        share = self.radius / _positive(_length(u, self.norm))
        return shorter(self._bisect(shorter, np.minimum(1.0, share), np.ones(len(u))))

    def _bisect(self, curve: Callable[[Float], Float], small: Float, large: Float) -> Float:
        """The largest t (m,) in [small, large] with |curve(t)|_p <= radius; `small` is one."""
        fits = _length(curve(large), self.norm) <= self.radius
        small = np.where(fits, large, small)
        for _ in range(_BISECTIONS):
            middle = 0.5 * small + 0.5 * large
            fits = _length(curve(middle), self.norm) <= self.radius
            small, large = np.where(fits, middle, small), np.where(fits, large, middle)
        return small


def _length(u: Float, p: float) -> Float:
    """|u|_p of every row (m,), by powers of shares of the largest entry: without underflow or overflow."""
    largest = np.abs(u).max(axis=1, initial=0.0)
    if p == np.inf:
        return np.asarray(largest)
    return np.asarray(largest * ((np.abs(u) / _positive(largest)[:, None]) ** p).sum(axis=1) ** (1.0 / p))


def _positive(size: Float) -> Float:
    """Sizes >= 0 to divide by: 1 in the place of 0."""
    return np.where(size > 0, size, 1.0)


def _largest(gain: Float, count: Float) -> Float:
    """A mask (m, d) of the `count` (m,) largest positive entries of every row."""
    rank = np.empty_like(gain)
    np.put_along_axis(rank, np.argsort(-gain, axis=1, kind="stable"), np.arange(gain.shape[1])[None], axis=1)
    return np.asarray((rank < count[:, None]) & (gain > 0))


def _fill(weight: Float, reach: Float, budget: Float) -> Float:
    """Lengths (m, d), at most `reach`, of sum `budget` (m,), on the largest weights first."""
    order = np.argsort(-weight, axis=1, kind="stable")
    sorted_reach = np.take_along_axis(reach, order, axis=1)
    before = np.cumsum(sorted_reach, axis=1) - sorted_reach
    filled = np.empty_like(reach)
    np.put_along_axis(filled, order, np.clip(budget[:, None] - before, 0.0, sorted_reach), axis=1)
    return np.where(weight > 0, filled, 0.0)

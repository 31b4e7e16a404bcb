"""Bounds of the latent mean and variance themselves: what the search needs of them, for any kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.local.enclosures import Interval
from gpcert.bounds.local.forms import FunctionalBound
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS, Slice
from gpcert.bounds.local.radial.local import radial_envelope
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.level import Left, LevelBound, Plan, Prices
from gpcert.rounding import LARGEST, UNIT, down
from gpcert.validation import Float

#: Sizes of a set, in lengthscales; measured, any are sound.
_SMALL, _MEDIUM = 0.3, 0.7
#: Features up to which kernels other than the Gaussian have no planes: expansions are sharper there.
_FEW = 5


@dataclass(frozen=True, eq=False)
class LatentBound(OneByOne):
    """A `BoxBound` of sign * (latent mean), or of sign * max(0, latent variance).

    `base` gives the local models (of the mean, with the sign of its slice, or with 0 for it), `slice` values
    at points.
    """

    base: LevelBound
    slice: RadialSlice  #: with sign 1
    variance: bool
    sign: float

    @property
    def shape(self) -> Shape:
        return self.base.shape

    def at(self, x: Float) -> Interval:
        return self._chosen(*self.slice.latent(x))

    def objective(self, x: Float) -> tuple[float, Float]:
        mu, S, slope, curve = self.slice.gradient(x)
        return (self.sign * S, self.sign * curve) if self.variance else (self.sign * mu, self.sign * slope)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`. What is bounded is less the target: local models are scaled, and about 0 that
        costs nothing.
        """
        widths = (upper - lower) / self.slice.lengthscale
        best = Certified(-np.inf, reference, int(np.argmax(widths)), False)
        less, left = target if abs(target) <= LARGEST else 0.0, Left(lower, upper)
        for attempt in self._bounds(left, reference, less):
            if attempt is None:
                return left.proved(best._replace(value=np.inf), self._clipped(less))
            start, bound = attempt
            latent = self._clipped(down(less + min(bound.latent, 0.0) if left.part else less + bound.latent))
            if best.value == -np.inf or latent > best.value:
                point = np.clip(start + bound.point * self.base.lengthscale, lower, upper)
                rounding = latent + 2.0 * bound.rounding >= target
                best = Certified(latent, point, int(np.argmax(bound.loss)), rounding)
            if best.value >= target or best.at_rounding:
                break
        if best.value < target:
            best = best._replace(value=max(best.value, self.envelope(lower, upper)))
            best = left.divided(best, self.shape, self.base.lengthscale, self._clipped(less))
        return best

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4, on boxes of any size."""
        return self._chosen(*radial_envelope(self.slice, lower, upper))[0]

    def _clipped(self, latent: float) -> float:
        """What a lower bound of the unclipped quantity says of it."""
        if not self.variance:
            return latent
        return max(latent, 0.0) if self.sign > 0 else min(latent, 0.0)

    def _bounds(
        self, left: Left, reference: Float, less: float
    ) -> Iterator[tuple[Float, FunctionalBound] | None]:
        """See `LevelBound.means`: of what is bounded - less, before the variance is clipped."""
        if not self.variance:
            yield from self.base.means(left, reference, 0.0, less)
            return
        line, found = (-self.sign, -less), False
        for place in self.base.places(left, reference, self._planes):
            if place is None:
                yield None
                return
            for bound, part, _ in self.base.supports(place[1], place[0], line, place[2]):
                found = True
                left.take(part, place[0], self.base.lengthscale)
                yield place[0], bound
        plan = self._after_planes if found else self.base.plan
        for attempt in self.base.attempts(left, reference, plan):
            yield None if attempt is None else (attempt[0], attempt[1].lower_bound(0.0, *line, 0.0))

    def _planes(self, size: float, d: int) -> Sequence[tuple[float, Prices]]:
        """Those of levels, whatever may be lost."""
        few = d <= _FEW and isinstance(self.base.slice, RadialSlice)
        return [] if few else self.base.planes(size, d, lambda: np.inf)

    def _after_planes(self, size: float, d: int) -> Plan:
        """Expansions on small sets; of the largest variance on others too, from the middle (measured)."""
        if size < _MEDIUM and d > CHEAP_DIMENSIONS and isinstance(self.base.slice, Slice):
            return self.base.plan(size, d)
        if size < _SMALL or self.base.kinked:
            return self.base.plan(size, d)
        return (
            [(1.0, build) for _, build in self.base.plan(size, d)[-1:]]
            if self.sign < 0 and size < _MEDIUM
            else []
        )

    def _chosen(self, mean: Interval, variance: Interval) -> Interval:
        """The quantity bounded, from enclosures of both; NaN is unknown."""
        low, high = (max(variance[0], 0.0), max(variance[1], 0.0)) if self.variance else mean
        if not low <= high:
            low, high = -np.inf, np.inf
        slack = 0.0 if self.variance else 4 * UNIT * max(abs(low), abs(high))
        return (low - slack, high + slack) if self.sign > 0 else (-high - slack, -low + slack)

"""The Gaussian kernel: values at points, local models, and the envelope for boxes of many lengthscales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.enclosures import mean_between
from gpcert.bounds.local.forms import FunctionalBound, Supported
from gpcert.bounds.local.gaussian.expansion import COLUMN_DIMENSIONS, expand
from gpcert.bounds.local.gaussian.functional import RbfLocal, sharp
from gpcert.bounds.local.gaussian.plane import Plane, plane_at, rounds
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS, Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.one.level import Left, LevelBound, Plan, Prices
from gpcert.rounding import UNIT, down
from gpcert.validation import Float

#: Size of a set, in lengthscales, from which on e^{2r} makes the expansion useless: the envelope is used.
_TOO_LARGE = 4.0

#: Probability that may be lost at a reference before places far from the predicted worst point do best.
_ROOMY = 0.01


@dataclass(frozen=True, eq=False)
class RbfBound(LevelBound):
    """Probability bounds of a two-class posterior with the Gaussian kernel on one slice."""

    slice: Slice

    def objective(self, x: Float) -> tuple[float, Float]:
        """mu / sqrt(c + S), c the link's noise, and its gradient in raw units."""
        model = self.slice.model
        v, k, _, r = self.slice.visit(x)
        mu = self.slice.mean + float(self.slice.weights @ k)
        c = self.curves.noise + max(model.prior - float(k @ r), 0.0)
        root = math.sqrt(c)
        slope = (k * (self.slice.weights / root + (mu / (c * root)) * r)) @ v
        return mu / root, slope / self.slice.lengthscale

    def plan(self, size: float, d: int) -> Plan:
        return [(retreat, self._local) for retreat in _retreats(size, d)] if size < _TOO_LARGE else []

    def _local(self, domain: Domain, start: Float) -> RbfLocal:
        return RbfLocal(sharp(expand(self.slice, domain, start)))

    def away(self, domain: Domain) -> float:
        return -math.expm1(-0.5 * domain.norm(np.ones(len(domain.low))) ** 2 * (1.0 + 8 * UNIT)) * (
            1.0 + 32 * UNIT
        )

    def planes(self, size: float, d: int, slack: Callable[[], float]) -> list[tuple[float, Prices]]:
        """Measured; any is sound. The less may be lost at the reference, the nearer to it a plane touches."""
        if not size < _TOO_LARGE:
            return []
        lost = slack()
        if d > CHEAP_DIMENSIONS:
            near = 0.15 * min(1.0, lost / 0.02) ** (1 / 3)
            if size < 0.35:  # next to the first reference a norm says the same again
                return [(0.0, (False,)), (near, (True,) if near < 0.03 else (False, True))]
            return [(near, (False, True))] if size < 0.6 else [(0.3, (False, True)), (0.6, (True,))]
        if size < 0.3:
            return [(0.0, (True,))]
        if d <= COLUMN_DIMENSIONS:
            return [(0.7 if self.shape.is_box else 0.5, (True,))]
        inside = ((0.85 if size >= 0.75 else 0.7) if self.shape.is_box else 0.5, (True,))
        outside = (0.15 * math.sqrt(min(1.0, lost / 0.02)), (True,))
        if size < (0.8 if lost > _ROOMY else 0.5):
            return [outside, inside]
        return [inside] if size >= 0.75 and _ROOMY < lost < math.inf else [inside, outside]

    def supports(
        self, domain: Domain, start: Float, level: Level | Line, prices: Prices
    ) -> Iterator[Supported]:
        plane = plane_at(self.slice, domain, start, level, self.slice.largest_variance)
        if plane is None:
            return
        for price in prices:
            for bound, left in rounds(plane, partial(Plane.lower_bound, sharp=price), price == prices[-1]):
                plane = left
                yield Supported(bound, left.around.domain, left.here)
        if price:
            for bent, left in rounds(plane, partial(Plane.bent, flat=bound)):
                yield Supported(bent, left.around.domain, left.here)

    def means(
        self, left: Left, reference: Float, enough: float, less: float = 0.0
    ) -> Iterator[tuple[Float, FunctionalBound] | None]:
        """D1: the mean is a sum of kernels, and needs no product with the precision."""
        for place in self.places(left, reference, partial(self.planes, slack=lambda: np.inf)):
            if place is None:
                yield None
                return
            start, domain, prices = place
            mean = mean_over(self.slice, domain, start, less)
            for forms in prices:
                bounded = partial(KernelSum.lower_bound, sharp=forms, enough=enough)
                for bound, rest in rounds(mean, bounded, forms == prices[-1]):
                    mean = rest
                    left.take(rest.around.domain, start, self.lengthscale)
                    yield start, bound

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box, S anywhere."""
        small, large = self.slice.extremes(lower, upper)
        mean = mean_between(self.slice, small, large)
        most = max(self.slice.model.largest_variance(large), 0.0)
        return self.curves.bounds(mean, (0.0, most))[0]


def mean_over(slice_: Slice, domain: Domain, reference: Float, less: float = 0.0) -> KernelSum:
    """D1: the latent mean, prior mean included, less a number, as seen from `reference` (d,)."""
    around = Covariances(slice_, domain, *slice_.kernel(reference))
    return KernelSum(around, slice_.weights, down(slice_.mean - less) if less else slice_.mean)


def _retreats(size: float, d: int) -> tuple[float, ...]:
    """How far references of expansions retreat to the middle (measured; any is sound)."""
    if d <= COLUMN_DIMENSIONS:
        return (0.0,) if size < 0.3 else (1.0,)
    if d <= CHEAP_DIMENSIONS:
        return (0.0, 0.15 if size < 0.5 else 0.4)
    return (0.0, 0.2) if size < 0.35 else (0.1, 0.3) if size < 0.5 else (0.4, 0.3, 0.5)

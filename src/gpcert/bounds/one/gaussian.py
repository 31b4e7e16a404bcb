"""The Gaussian kernel: values at points, local models, and the envelope for boxes of many lengthscales."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.enclosures import mean_between
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.bounds.local.gaussian.local import Builder, RbfLocal
from gpcert.bounds.local.gaussian.majorants import CHEAP_DIMENSIONS, cheap, coarse, sharp
from gpcert.bounds.local.gaussian.monomials import COLUMN_DIMENSIONS
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.one.level import LevelBound
from gpcert.validation import Float

__all__ = ["RbfBound"]

#: Size of a set, in lengthscales, from which on e^{2r} makes the expansion useless: the envelope is used.
_TOO_LARGE = 4.0


@dataclass(frozen=True, eq=False)
class RbfBound(LevelBound):
    """Probability bounds of a two-class posterior with the Gaussian kernel on one slice."""

    slice: Slice

    @property
    def mean(self) -> float:
        """The prior mean of the class bounded."""
        return self.slice.mean

    @property
    def lengthscale(self) -> Float:
        """Of the moving features (d,)."""
        return self.slice.lengthscale

    def at(self, x: Float) -> tuple[float, float]:
        """E3: mean and variance with their rounding, through the corner lemma."""
        return self.link.bounds(*self.slice.latent(x))

    def objective(self, x: Float) -> tuple[float, Float]:
        """mu / sqrt(c + S), in the link's spread, and its gradient in raw units."""
        model = self.slice.model
        v, k, _, r = self.slice.visit(x)
        mu = self.slice.mean + float(self.slice.weights @ k)
        c = self.link.spread + max(model.prior - float(k @ r), 0.0)
        root = math.sqrt(c)
        slope = (k * (self.slice.weights / root + (mu / (c * root)) * r)) @ v
        return mu / root, slope / self.slice.lengthscale

    def attempts(
        self, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, RbfLocal] | None]:
        """Majorants by rising price, each with how far the reference retreats from the predicted worst point.

        At the worst point itself the bound is exact there but pays for the whole width of the box on the far
        side; retreating towards the centre trades the one for the other. Any reference is sound.
        """
        middle, size = self.surroundings(lower, upper)
        if size is None:
            yield None
        if size is None or not size < _TOO_LARGE or not self.slice.moderate:
            return
        for build, retreat in _attempts(size, len(lower)):
            start = self.shape.within(reference + retreat * (middle - reference), lower, upper)
            domain = self.shape.domain(lower, upper, start, self.slice.lengthscale)
            yield None if domain is None else (start, RbfLocal(expand(self.slice, domain, start), build))

    def places(
        self, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, Domain, tuple[bool, ...]] | None]:
        """Where to expand a sum of kernels, over which set, with forms or without; None as in `attempts`."""
        middle, size = self.surroundings(lower, upper)
        if size is None:
            yield None
        if size is None or not size < _TOO_LARGE or not self.slice.moderate:
            return
        for retreat, prices in _planes(size, len(lower), self.shape.is_box):
            start = self.shape.within(reference + retreat * (middle - reference), lower, upper)
            domain = self.shape.domain(lower, upper, start, self.slice.lengthscale)
            if domain is None:
                yield None
                return
            yield start, domain, prices

    def planes(
        self, lower: Float, upper: Float, reference: Float, level: Level
    ) -> Iterator[tuple[Float, FunctionalBound, Level, float] | None]:
        """See `LevelBound.planes`: by one norm, then with higher orders as forms."""
        largest = self.slice.largest_variance
        level = level.within(lambda: (0.0, largest))
        for place in self.places(lower, upper, reference):
            if place is None:
                yield None
                return
            start, domain, prices = place
            plane = plane_at(self.slice, domain, start, level, largest)
            if plane is None:
                return
            for forms in prices:
                yield start, plane.lower_bound(forms), level, largest

    def second_order(self, d: int) -> float:
        """See `LevelBound.second_order`."""
        return 0.7 if d > CHEAP_DIMENSIONS else 0.3

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box, S anywhere."""
        small, large = self.slice.extremes(lower, upper)
        mean = mean_between(self.slice, small, large)
        most = max(self.slice.model.largest_variance(large), 0.0)
        return self.link.bounds(mean, (0.0, most))[0]


def _planes(size: float, d: int, is_box: bool) -> list[tuple[float, tuple[bool, ...]]]:
    """Retreats of the reference, each with and without forms, by rising price; measured, any is sound."""
    if d <= CHEAP_DIMENSIONS:
        return [(0.0 if size < 0.3 else 0.7 if is_box else 0.5, (True,))]
    if size < 0.35:
        return [(0.0, (False,)), (0.1, (True,))]
    return [(0.15, (False, True))] if size < 0.6 else [(0.3, (False, True)), (0.6, (True,))]


def _attempts(size: float, d: int) -> list[tuple[Builder, float]]:
    if d <= COLUMN_DIMENSIONS:
        return [(cheap, 0.0 if size < 0.3 else 1.0)]
    if d <= CHEAP_DIMENSIONS:
        return [(cheap, 0.0), (sharp, 0.15 if size < 0.5 else 0.4)]
    retreats = (0.0, 0.2) if size < 0.35 else (0.1, 0.3) if size < 0.5 else (0.4, 0.3, 0.5)
    sharps: list[tuple[Builder, float]] = [(sharp, retreat) for retreat in retreats]
    return [(coarse, 0.0), *sharps] if size < 0.4 else sharps

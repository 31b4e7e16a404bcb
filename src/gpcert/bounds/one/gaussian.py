"""The Gaussian kernel: values at points, local models, and the envelope for boxes of many lengthscales."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpcert.bounds.local.enclosures import mean_between
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.bounds.local.gaussian.local import Builder, RbfLocal
from gpcert.bounds.local.gaussian.majorants import CHEAP_DIMENSIONS, cheap, coarse, sharp
from gpcert.bounds.local.gaussian.monomials import COLUMN_DIMENSIONS
from gpcert.bounds.local.gaussian.slice import Slice
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
        return self.slice.mean

    @property
    def lengthscale(self) -> Float:
        return self.slice.lengthscale

    def at(self, x: Float) -> tuple[float, float]:
        """E3: mean and variance with their rounding, through the corner lemma."""
        return self.curves.bounds(*self.slice.latent(x))

    def objective(self, x: Float) -> tuple[float, Float]:
        """mu / sqrt(c + S), c the link's noise, and its gradient in raw units."""
        model = self.slice.model
        v, k, _, r = self.slice.visit(x)
        mu = self.slice.mean + float(self.slice.weights @ k)
        c = self.curves.noise + max(model.prior - float(k @ r), 0.0)
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

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box, S anywhere."""
        small, large = self.slice.extremes(lower, upper)
        mean = mean_between(self.slice, small, large)
        most = max(self.slice.model.largest_variance(large), 0.0)
        return self.curves.bounds(mean, (0.0, most))[0]


def _attempts(size: float, d: int) -> list[tuple[Builder, float]]:
    if d <= COLUMN_DIMENSIONS:
        return [(cheap, 0.0 if size < 0.3 else 1.0)]
    if d <= CHEAP_DIMENSIONS:
        return [(cheap, 0.0), (sharp, 0.15 if size < 0.5 else 0.4)]
    retreats = (0.0, 0.2) if size < 0.35 else (0.1, 0.3) if size < 0.5 else (0.4, 0.3, 0.5)
    sharps: list[tuple[Builder, float]] = [(sharp, retreat) for retreat in retreats]
    return [(coarse, 0.0), *sharps] if size < 0.4 else sharps

"""Every kernel that is not a single Gaussian: values at points, local models, the envelope."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.local import RadialLocal, radial_envelope, retreats
from gpcert.bounds.local.radial.plane import radial_plane
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.level import LevelBound
from gpcert.validation import Float

__all__ = ["RadialBound"]

#: How far the reference of a plane retreats to the middle: far centres cost less from there.
_RETREAT = 0.6
#: Size of a set, in lengthscales, from which on an expansion is useless: the envelope is used.
_TOO_LARGE = 6.0


@dataclass(frozen=True, eq=False)
class RadialBound(LevelBound):
    """Probability bounds of a two-class posterior on one slice, for any kernel."""

    slice: RadialSlice

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
        mu, S, slope, curve = self.slice.gradient(x)
        c = self.link.spread + max(S, 0.0)
        root = math.sqrt(c)
        return mu / root, slope / root - (0.5 * mu / (c * root)) * curve

    def attempts(
        self, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, RadialLocal] | None]:
        """See `LevelBound.attempts`; any reference is sound."""
        middle, size = self.surroundings(lower, upper)
        if size is None:
            yield None
        if size is None or not size < _TOO_LARGE or not self.slice.moderate:
            return
        for retreat in retreats(size, len(lower)):
            start = self.shape.within(reference + retreat * (middle - reference), lower, upper)
            domain = self.shape.domain(lower, upper, start, self.slice.lengthscale)
            if domain is None:
                yield None
                return
            yield start, RadialLocal(expand_radial(self.slice, domain, start))

    def planes(
        self, lower: Float, upper: Float, reference: Float, level: Level
    ) -> Iterator[tuple[Float, FunctionalBound, Level, float] | None]:
        """See `LevelBound.planes`: from one reference, well inside the set."""
        middle, size = self.surroundings(lower, upper)
        if size is None:
            yield None
        if size is None or not size < _TOO_LARGE or not self.slice.moderate:
            return
        largest = self.slice.largest_variance
        level = level.within(lambda: (0.0, largest))
        start = self.shape.within(reference + _RETREAT * (middle - reference), lower, upper)
        domain = self.shape.domain(lower, upper, start, self.slice.lengthscale)
        if domain is None:
            yield None
            return
        bound = radial_plane(self.slice, domain, start, level, largest)
        if bound is not None:
            yield start, bound, level, largest

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box."""
        return self.link.bounds(*radial_envelope(self.slice, lower, upper))[0]

"""Every kernel that is not a single Gaussian: values at points, local models, the envelope."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.local import RadialLocal, radial_envelope, retreats
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.level import LevelBound
from gpcert.validation import Float

__all__ = ["RadialBound"]

#: Size of a set, in lengthscales, from which on an expansion is useless: the envelope is used.
_TOO_LARGE = 6.0


@dataclass(frozen=True, eq=False)
class RadialBound(LevelBound):
    """Probability bounds of a two-class posterior on one slice, for any kernel."""

    slice: RadialSlice

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
        mu, S, slope, curve = self.slice.gradient(x)
        c = self.curves.noise + max(S, 0.0)
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

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box."""
        return self.curves.bounds(*radial_envelope(self.slice, lower, upper))[0]

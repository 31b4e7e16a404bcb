"""Every kernel that is not a single Gaussian: values at points, local models, the envelope."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.forms import Supported
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.functional import away, has_a_kink, radial_plane
from gpcert.bounds.local.radial.local import RadialLocal, radial_envelope, retreats
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.level import LevelBound, Plan, Prices
from gpcert.validation import Float

#: How far the reference of a plane retreats to the middle: far centres cost less from there.
_RETREAT = 0.6
#: Features up to which kernels with a kink have no planes: expansions of S are sharper there (measured).
_FEW = 3
#: Probabilities below which they have none either: a plane bends with the slope of the level curve.
_STEEP = 0.3
#: Size of a set, in lengthscales, from which on an expansion is useless: the envelope is used.
_TOO_LARGE = 6.0


@dataclass(frozen=True, eq=False)
class RadialBound(LevelBound):
    """Probability bounds of a two-class posterior on one slice, for any kernel."""

    slice: RadialSlice

    def objective(self, x: Float) -> tuple[float, Float]:
        """mu / sqrt(c + S), c the link's noise, and its gradient in raw units."""
        mu, S, slope, curve = self.slice.gradient(x)
        c = self.curves.noise + max(S, 0.0)
        root = math.sqrt(c)
        return mu / root, slope / root - (0.5 * mu / (c * root)) * curve

    @cached_property
    def kinked(self) -> bool:
        """Whether the kernel is Matern 1/2, or a sum or product with it."""
        return has_a_kink(self.slice)

    def plan(self, size: float, d: int) -> Plan:
        if size >= _TOO_LARGE:
            return []
        places = (1.0,) if self.kinked and d > _FEW else retreats(size, d)
        return [(retreat, self._local) for retreat in places]

    def away(self, domain: Domain) -> float:
        return away(self.slice, domain)

    def _local(self, domain: Domain, start: Float) -> RadialLocal:
        return RadialLocal(expand_radial(self.slice, domain, start, free=self.kinked))

    def planes(self, size: float, d: int, slack: Callable[[], float]) -> list[tuple[float, Prices]]:
        if size >= _TOO_LARGE or (d <= _FEW and self.kinked):
            return []
        return [(_RETREAT, (True,))]

    def supports(
        self, domain: Domain, start: Float, level: Level | Line, prices: Prices
    ) -> Iterator[Supported]:
        if self.kinked and isinstance(level, Level) and level.p < _STEEP:
            return
        found = radial_plane(self.slice, domain, start, level, self.slice.largest_variance)
        if found is not None:
            yield found

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box."""
        return self.curves.bounds(*radial_envelope(self.slice, lower, upper))[0]

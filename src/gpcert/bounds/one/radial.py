"""Every kernel that is not a single Gaussian: values at points, local models, the envelope."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.local import RadialLocal, radial_envelope, retreats
from gpcert.bounds.local.radial.plane import has_a_kink, radial_plane
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.level import LevelBound, Plan, Prices
from gpcert.validation import Float

#: How far the reference of a plane retreats to the middle: far centres cost less from there.
_RETREAT = 0.6
#: Features up to which kernels with a kink have no planes: expansions of S are sharper there (measured).
_FEW = 3
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

    def plan(self, size: float, d: int) -> Plan:
        return [(retreat, self._local) for retreat in retreats(size, d)] if size < _TOO_LARGE else []

    def _local(self, domain: Domain, start: Float) -> RadialLocal:
        return RadialLocal(expand_radial(self.slice, domain, start))

    def planes(self, size: float, d: int, slack: Callable[[], float]) -> list[tuple[float, Prices]]:
        if size >= _TOO_LARGE or (d <= _FEW and has_a_kink(self.slice)):
            return []
        return [(_RETREAT, (True,))]

    def supports(
        self, domain: Domain, start: Float, level: Level | Line, prices: Prices
    ) -> Iterator[FunctionalBound]:
        bound = radial_plane(self.slice, domain, start, level, self.slice.largest_variance)
        if bound is not None:
            yield bound

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box."""
        return self.curves.bounds(*radial_envelope(self.slice, lower, upper))[0]

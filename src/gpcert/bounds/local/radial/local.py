"""Local models of every kernel that is not a single Gaussian, where to centre them, and the envelope."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpcert.bounds.local.enclosures import Interval, mean_between
from gpcert.bounds.local.forms import FunctionalBound
from gpcert.bounds.local.radial.expansion import RadialExpansion
from gpcert.bounds.local.radial.forms import RadialForms, forms_of
from gpcert.bounds.local.radial.functional import radial_lower_bound
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float


@dataclass(frozen=True, eq=False)
class RadialLocal:
    """A `LocalModel`: the expansion with majorants of one price, built when first needed."""

    expansion: RadialExpansion
    tau: float | None = None  #: the only tau that will be asked for

    @cached_property
    def _forms(self) -> RadialForms:
        return forms_of(self.expansion, self.tau)

    @property
    def S(self) -> float:
        return self.expansion.slice.model.prior - self.expansion.q0

    def only(self, tau: float) -> RadialLocal:
        """Majorants for one tau; none is saved where tau < 0."""
        return replace(self, tau=tau) if tau >= 0 and self.expansion.slice.model.definite else self

    def lower_bound(
        self, a: float, tau: float, kappa: float, enough: float = np.inf, accuracy: float = 1e-6
    ) -> FunctionalBound:
        """Theorem K."""
        return radial_lower_bound(self._forms, a, tau, kappa, enough, accuracy)


def retreats(size: float, d: int) -> tuple[float, ...]:
    """How far references retreat from the predicted worst point to the centre, for a box of this size."""
    if d <= 3:
        return (0.0,) if size < 0.3 else (1.0,)
    return (0.0, 0.3) if size < 0.3 else (0.3,)


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def radial_envelope(slice_: RadialSlice, lower: Float, upper: Float) -> tuple[Interval, Interval]:
    """E4 with K4: mean and variance over a box of raw units, each k_i between its extremes."""
    model = slice_.model
    small, large = slice_.extremes(lower, upper)
    n = len(small)
    centre, half = 0.5 * (small + large), 0.5 * (large - small) * (1.0 + 8 * UNIT) + slice_.tiny
    # k^T R k is within 2 |V centre| moved + moved^2 of centre^T R centre, moved >= |V (k - centre)|.
    roots = np.sqrt(model.row_weight) * centre
    error = gamma(2 * n + 20) * sum_up(roots * roots)
    square = float(centre @ (model.precision @ centre))
    long = sqrt_up(float(centre @ (model.magnitude @ centre)) + error)
    moved = sqrt_up(sum_up(model.diagonal * half * half))
    error += (moved * (2.0 * long + moved) + model.excess_variance(half)) * (1.0 + 16 * UNIT)
    error += 2.0 * sum_up(model.parts.defect * centre * half)
    first, last = slice_.prior
    error += 8 * UNIT * (abs(first) + abs(square)) + TINY
    if not math.isfinite(square):  # a partial sum may have overflowed to the wrong side
        return mean_between(slice_, small, large), (-math.inf, math.inf)
    most = model.largest_variance(large) + (last - first)
    S = first - square - error, min(last - square + error, most)
    return mean_between(slice_, small, large), S

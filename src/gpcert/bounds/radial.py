"""Every kernel that is not a single Gaussian: values at points, local models, the envelope."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpcert.bounds.box import LevelBound
from gpcert.bounds.enclosures import Interval, mean_between
from gpcert.bounds.local import FunctionalBound, functional_variances
from gpcert.bounds.radial_expansion import RadialExpansion, expand_radial
from gpcert.bounds.radial_forms import RadialForms, forms_of
from gpcert.bounds.radial_functional import radial_lower_bound
from gpcert.bounds.radial_slice import RadialSlice
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float

__all__ = ["RadialBound", "RadialLocal", "radial_envelope", "retreats"]

#: Size of a set, in lengthscales, from which on an expansion is useless: the envelope is used.
_TOO_LARGE = 6.0


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
        """The latent variance at the reference."""
        return self.expansion.slice.model.prior - self.expansion.q0

    @property
    def largest_variance(self) -> float:
        """F1."""
        low, high = self.expansion.slice.prior
        return self.expansion.slice.model.largest_variance(self.expansion.most) + (high - low)

    @cached_property
    def variances(self) -> tuple[float, float]:
        """Theorem K with a = 0."""
        return functional_variances(self, (0.0, max(self.largest_variance, 0.0)))

    @property
    def deepest(self) -> float:
        """F3: S >= (1 - contraction) s2."""
        low, high = self.expansion.slice.prior
        return self.expansion.slice.model.deepest + 2.0 * (high - low)

    def only(self, tau: float) -> RadialLocal:
        """Majorants for one tau; none is saved where tau < 0."""
        return replace(self, tau=tau) if tau >= 0 and self.expansion.slice.model.definite else self

    def lower_bound(
        self, a: float, tau: float, kappa: float, enough: float = np.inf, accuracy: float = 1e-6
    ) -> FunctionalBound:
        """Theorem K."""
        return radial_lower_bound(self._forms, a, tau, kappa, enough, accuracy)


def retreats(size: float, d: int) -> tuple[float, ...]:
    """How far references retreat from the predicted worst point to the centre, for a box of this size.

    At the worst point the bound is exact there but pays for the whole width of the box on the far side.
    """
    if d <= 3:
        return (0.0,) if size < 0.3 else (1.0,)
    return (0.0, 0.3) if size < 0.3 else (0.3,)


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def radial_envelope(slice_: RadialSlice, lower: Float, upper: Float) -> tuple[Interval, Interval]:
    """E4 with K4: mean and variance over a box of raw units, each k_i between its extremes."""
    model = slice_.model
    small, large = slice_.extremes(lower, upper)
    n = len(small)
    centre, half = 0.5 * (small + large), 0.5 * (large - small) * (1.0 + 8 * UNIT) + slice_.floor
    # k^T R k is within 2 |V centre| spread + spread^2 of centre^T R centre, spread >= |V (k - centre)|.
    roots = np.sqrt(model.row_weight) * centre
    error = gamma(2 * n + 20) * sum_up(roots * roots)
    square = float(centre @ (model.precision @ centre))
    long = sqrt_up(float(centre @ (model.magnitude @ centre)) + error)
    spread = sqrt_up(sum_up(model.diagonal * half * half))
    error += (spread * (2.0 * long + spread) + model.excess_variance(half)) * (1.0 + 16 * UNIT)
    error += 2.0 * sum_up(model.parts.defect * centre * half)
    first, last = slice_.prior
    error += 8 * UNIT * (abs(first) + abs(square)) + TINY
    if not math.isfinite(square):  # a partial sum may have overflowed to the wrong side
        return mean_between(slice_, small, large), (-math.inf, math.inf)
    most = model.largest_variance(large) + (last - first)
    S = first - square - error, min(last - square + error, most)
    return mean_between(slice_, small, large), S


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

    def envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box."""
        return self.link.bounds(*radial_envelope(self.slice, lower, upper))[0]

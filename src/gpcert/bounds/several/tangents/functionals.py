"""Certified bounds of affine functionals of means and covariances of several classes over one domain.

One use: by how much the predictor raises variances that would be negative (M4). The theorems about
softmax speak of s2 - k^T R_cc k as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.forms import FunctionalBound, Loss
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.bounds.local.gaussian.functional import Builder, RbfLocal, coarse, sharp
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS, Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.local import RadialLocal
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.several.tangents.expansion import ClassExpansion, Latents
from gpcert.bounds.several.tangents.separate import SeparateExpansion
from gpcert.rounding import sum_up
from gpcert.validation import Float

#: Ranges only decide where cells lie: they need not be sharp.
_RANGE_ACCURACY = 0.05


@dataclass(frozen=True, eq=False)
class View:
    """a.m + <B, Sigma> over one domain, seen from the reference `start` (M3)."""

    model: ClassModel
    slice: Slice | RadialSlice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float  #: (d,), raw units
    build: Builder = sharp  #: of the Gaussian kernel; any other has one price

    def moved(self, domain: Domain, start: Float) -> View:
        """The same from another reference."""
        return replace(self, domain=domain, start=start)

    def _local(self, a: Float, B: Float) -> tuple[RbfLocal | RadialLocal, float]:
        """The local model of a.m + <B, Sigma> (tau = -1), and the kappa that adds a.mean less rounding."""
        model, mean = self.model, self.model.mean
        functional = model.functional(a, B)
        error = model.functional_error(a, B, self.slice.amplitude) + 1e-14 * float(np.abs(a) @ np.abs(mean))
        local: RbfLocal | RadialLocal
        if isinstance(self.slice, Slice):
            expansion = expand(replace(self.slice, model=functional), self.domain, self.start)
            local = RbfLocal(self.build(expansion))
        else:
            slice_ = replace(self.slice, model=functional)
            local = RadialLocal(expand_radial(slice_, self.domain, self.start))
        return local, float(a @ mean) - error

    def smallest(
        self, a: Float, B: Float, offset: float, less: Loss | None = None, enough: float = np.inf
    ) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain; `less`: Gaussian kernel only.

        Effort ends once `enough` is certain.
        """
        local, kappa = self._local(a, B)
        kappa = kappa - offset - 1e-14 * abs(offset)
        if less is None:
            return local.lower_bound(1.0, -1.0, kappa, enough)
        assert isinstance(local, RbfLocal)
        return local.lower_bound(1.0, -1.0, kappa, enough, less=less)

    def mean(self, a: Float) -> FunctionalBound:
        """A lower bound of a.m over the domain: with the Gaussian kernel no precision is touched (D1)."""
        C, model = len(a), self.model
        if not isinstance(self.slice, Slice):
            return self.smallest(a, np.zeros((C, C)), 0.0)
        error = model.functional_error(a, np.zeros((C, C)), self.slice.amplitude)
        error += 1e-14 * float(np.abs(a) @ np.abs(model.mean))
        sum_ = KernelSum(self._around, model.weights @ a, float(a @ model.mean) - error)
        return sum_.lower_bound(self.build is not coarse)

    @cached_property
    def _around(self) -> Covariances:
        assert isinstance(self.slice, Slice)
        return Covariances(self.slice, self.domain, *self.slice.kernel(self.start))

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        """Certified range of <B, Sigma> - offset over the domain, with 0 in it."""
        local, kappa = self._local(np.zeros(len(B)), B)
        slack = 1e-14 * abs(offset) - kappa  # kappa is minus the rounding here
        low = local.lower_bound(0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -local.lower_bound(0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        # Everything if one of them is NaN, which `min` and `max` may pass over.
        return (min(low, 0.0), max(high, 0.0)) if low <= high else (-np.inf, np.inf)


def views_from(model: ClassModel, slice_: Slice | RadialSlice, domain: Domain, start: Float) -> list[View]:
    """By rising price."""
    dear = isinstance(slice_, Slice) and len(start) > CHEAP_DIMENSIONS
    builders = (coarse, sharp) if dear else (sharp,)
    return [View(model, slice_, domain, start, build) for build in builders]


#: A lift that costs a probability no more than this is counted, and no box asked.
_NEGLIGIBLE = 1e-7
#: sup |p''| / 2 = 1 / (12 sqrt 3) < 0.04812.
_COST = 0.0482


class Variances(NamedTuple):
    """The variances of the latents on one box; the predictor's are larger by at most `most`."""

    low: Float  #: (C,): the least variances
    reach: Float  #: (C,): how far each may be from its value at the reference

    def most(self, lift: float) -> Float:
        """t (C,), by the box and by the lift that holds everywhere."""
        return np.minimum(np.maximum(-self.low, 0.0), lift)

    @property
    def raising(self) -> Float:
        """What added to the variances (C,) makes them vary little relative to themselves; 0 if they do.

        Any amount is sound. It costs in proportion, and what remains of a variation relative to its size by
        its square: this minimises the sum, roughly.
        """
        C, reach = len(self.low), float(self.reach.max())
        if (self.low > 2.0 * (C - 1) * self.reach).all() or not 0.0 < reach < np.inf:
            return np.zeros(C)
        share = max(2.0, ((C - 1) ** 2 / (_COST * C * reach)) ** (1.0 / 3.0))
        return np.asarray(np.maximum(share * self.reach - self.low, 0.0))


def probability_cost(raised: Float) -> float:
    """M4: by how much 1 - sum_i beta_i p_i moves if variances change by at most `raised` (C,)."""
    return _COST * sum_up(raised)


def most_clipped(model: ClassModel, variances: Callable[[], Variances]) -> Float:
    """`Variances.most`, without asking for them where no variance falls much below 0 anywhere."""
    everywhere = np.full(model.classes, model.lift)
    if probability_cost(everywhere) <= _NEGLIGIBLE:
        return everywhere
    return variances().most(model.lift)


def variances_seen(model: ClassModel, view: View, latents: Latents) -> Variances:
    """M3: each variance by its own range, seen from the reference where the latents are `latents`."""
    here = np.diagonal(latents.covariance)
    ranges = np.array([view.range(np.diag(unit), float(here @ unit)) for unit in np.eye(model.classes)])
    low = here + ranges[:, 0] - latents.covariance_error
    return Variances(np.where(np.isnan(low), -np.inf, low), np.abs(ranges).max(axis=1))


def variances_over(x: ClassExpansion | SeparateExpansion) -> Variances:
    """Y1: each variance at the reference, less all it can lose."""
    reach = np.array([x.covariance_reach(np.diag(unit)) for unit in np.eye(x.model.classes)])
    low = np.diagonal(x.latents.covariance) - (reach + x.latents.covariance_error) * (1.0 + 1e-9)
    return Variances(np.where(np.isnan(low), -np.inf, low), reach)

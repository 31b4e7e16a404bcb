"""Certified bounds of affine functionals of means and covariances of several classes over one domain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.forms import Loss
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.bounds.local.gaussian.functional import lower_bound
from gpcert.bounds.local.gaussian.local import Builder
from gpcert.bounds.local.gaussian.majorants import CHEAP_DIMENSIONS, Majorants, cheap, coarse, sharp
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.local import RadialLocal
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.validation import Float

__all__ = ["Functionals", "RadialFunctionals", "View", "views_from"]

#: Ranges only decide where cells lie: they need not be sharp.
_RANGE_ACCURACY = 0.05


class View(Protocol):
    """a.m + <B, Sigma> over one domain, seen from the reference `start` (M3)."""

    @property
    def start(self) -> Float:
        """(d,), raw units."""

    def smallest(self, a: Float, B: Float, offset: float) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset over the domain."""

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        """Certified range of <B, Sigma> - offset over the domain, with 0 in it."""

    def moved(self, domain: Domain, start: Float) -> View:
        """The same from another reference."""


def views_from(model: ClassModel, slice_: Slice | RadialSlice, domain: Domain, start: Float) -> list[View]:
    """By rising price."""
    if isinstance(slice_, RadialSlice):
        return [RadialFunctionals(model, slice_, domain, start)]
    builders = (cheap,) if len(start) <= CHEAP_DIMENSIONS else (coarse, sharp)
    return [Functionals(model, slice_, domain, start, build) for build in builders]


@dataclass(frozen=True, eq=False)
class RadialFunctionals:
    """A `View` for any kernel: Theorem K."""

    model: ClassModel
    slice: RadialSlice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float

    def _local(self, a: Float, B: Float) -> tuple[RadialLocal, float]:
        """The local model of a.m + <B, Sigma> (tau = -1), and the kappa that adds a.mean less rounding."""
        slice_ = replace(self.slice, model=self.model.functional(a, B))
        local = RadialLocal(expand_radial(slice_, self.domain, self.start))
        return local, _constant(self.model, a, B, self.slice.amplitude)

    def smallest(self, a: Float, B: Float, offset: float) -> FunctionalBound:
        local, kappa = self._local(a, B)
        return local.lower_bound(1.0, -1.0, kappa - offset - 1e-14 * abs(offset))

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        local, kappa = self._local(np.zeros(len(B)), B)
        slack = 1e-14 * abs(offset) - kappa  # kappa is minus the rounding here
        low = local.lower_bound(0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -local.lower_bound(0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        return _around_zero(low, high)

    def moved(self, domain: Domain, start: Float) -> RadialFunctionals:
        return replace(self, domain=domain, start=start)


def _around_zero(low: float, high: float) -> tuple[float, float]:
    """[low, high] and 0; everything if one of them is NaN, which `min` and `max` may pass over."""
    return (min(low, 0.0), max(high, 0.0)) if low <= high else (-np.inf, np.inf)


def _constant(model: ClassModel, a: Float, B: Float, amplitude: Float) -> float:
    """a.mean less all rounding of the functional and of its coefficients."""
    error = model.functional_error(a, B, amplitude) + 1e-14 * float(np.abs(a) @ np.abs(model.mean))
    return float(a @ model.mean) - error


@dataclass(frozen=True, eq=False)
class Functionals:
    """A `View` for the Gaussian kernel: Theorem 1."""

    model: ClassModel
    slice: Slice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float
    build: Builder

    def moved(self, domain: Domain, start: Float) -> Functionals:
        return replace(self, domain=domain, start=start)

    def _majorants(self, a: Float, B: Float) -> tuple[Majorants, float]:
        """Majorants of a.m + <B, Sigma> (tau = -1), and the kappa that adds a.mean less all rounding."""
        model = self.model
        slice_ = replace(self.slice, model=model.functional(a, B))
        return self.build(expand(slice_, self.domain, self.start), None), _constant(
            model, a, B, slice_.amplitude
        )

    def smallest(self, a: Float, B: Float, offset: float, less: Loss | None = None) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain."""
        m, kappa = self._majorants(a, B)
        return lower_bound(m, 1.0, -1.0, kappa - offset - 1e-14 * abs(offset), less=less)

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        m, kappa = self._majorants(np.zeros(len(B)), B)
        slack = 1e-14 * abs(offset) - kappa  # kappa is minus the rounding here
        low = lower_bound(m, 0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -lower_bound(m, 0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        return _around_zero(low, high)

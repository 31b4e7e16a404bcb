"""Certified bounds of affine functionals of means and covariances of several classes over one domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpcert.bounds.class_model import ClassModel
from gpcert.bounds.domain import Domain
from gpcert.bounds.expansion import expand
from gpcert.bounds.forms import Loss
from gpcert.bounds.functional import lower_bound
from gpcert.bounds.local import FunctionalBound
from gpcert.bounds.majorants import CHEAP_DIMENSIONS, cheap, coarse, sharp
from gpcert.bounds.radial import RadialLocal
from gpcert.bounds.radial_expansion import expand_radial
from gpcert.bounds.radial_slice import RadialSlice
from gpcert.bounds.rbf import Builder
from gpcert.bounds.slice import Slice
from gpcert.validation import Float

__all__ = ["Functionals", "RadialFunctionals", "View", "views_from"]

#: Ranges only decide where cells lie: they need not be sharp.
_RANGE_ACCURACY = 0.05


class View(ABC):
    """a.m + <B, Sigma> over one domain, seen from the reference `start` (M3)."""

    model: ClassModel
    start: Float  #: (d,), raw units

    @abstractmethod
    def _bound(self, a: Float, B: Float) -> tuple[Callable[..., FunctionalBound], Float]:
        """Lower bounds of a mu - tau S + kappa of the functional, and the largest kernel values (n,)."""

    @abstractmethod
    def moved(self, domain: Domain, start: Float) -> View:
        """The same from another reference."""

    def smallest(self, a: Float, B: Float, offset: float, less: Loss | None = None) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain; `less`: Gaussian kernel only."""
        bound, amplitude = self._bound(a, B)
        kappa = float(a @ self.model.mean) - self._rounding(a, B, amplitude) - offset - 1e-14 * abs(offset)
        return bound(1.0, -1.0, kappa) if less is None else bound(1.0, -1.0, kappa, less=less)

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        """Certified range of <B, Sigma> - offset over the domain, with 0 in it."""
        none = np.zeros(len(B))
        bound, amplitude = self._bound(none, B)
        slack = 1e-14 * abs(offset) + self._rounding(none, B, amplitude)
        low = bound(0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -bound(0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        return min(low, 0.0), max(high, 0.0)

    def _rounding(self, a: Float, B: Float, amplitude: Float) -> float:
        """Of the functional's coefficients, anywhere."""
        error = self.model.functional_error(a, B, amplitude)
        return error + 1e-14 * float(np.abs(a) @ np.abs(self.model.mean))


def views_from(model: ClassModel, slice_: Slice | RadialSlice, domain: Domain, start: Float) -> list[View]:
    """By rising price."""
    if isinstance(slice_, RadialSlice):
        return [RadialFunctionals(model, slice_, domain, start)]
    builders = (cheap,) if len(start) <= CHEAP_DIMENSIONS else (coarse, sharp)
    return [Functionals(model, slice_, domain, start, build) for build in builders]


@dataclass(frozen=True, eq=False)
class RadialFunctionals(View):
    """Any kernel: Theorem K."""

    model: ClassModel
    slice: RadialSlice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float

    def _bound(self, a: Float, B: Float) -> tuple[Callable[..., FunctionalBound], Float]:
        """See `View`."""
        slice_ = replace(self.slice, model=self.model.functional(a, B))
        local = RadialLocal(expand_radial(slice_, self.domain, self.start))
        return local.lower_bound, self.slice.amplitude

    def moved(self, domain: Domain, start: Float) -> RadialFunctionals:
        """See `View`."""
        return replace(self, domain=domain, start=start)


@dataclass(frozen=True, eq=False)
class Functionals(View):
    """The Gaussian kernel: Theorem 1."""

    model: ClassModel
    slice: Slice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float
    build: Builder

    def _bound(self, a: Float, B: Float) -> tuple[Callable[..., FunctionalBound], Float]:
        """See `View`."""
        slice_ = replace(self.slice, model=self.model.functional(a, B))
        majorants = self.build(expand(slice_, self.domain, self.start), None)
        return partial(lower_bound, majorants), self.slice.amplitude

    def moved(self, domain: Domain, start: Float) -> Functionals:
        """See `View`."""
        return replace(self, domain=domain, start=start)

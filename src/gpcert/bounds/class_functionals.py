"""Certified bounds of affine functionals of means and covariances of several classes over one domain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpcert.bounds.class_model import ClassModel
from gpcert.bounds.domain import Domain
from gpcert.bounds.expansion import expand
from gpcert.bounds.forms import Loss
from gpcert.bounds.functional import lower_bound
from gpcert.bounds.local import FunctionalBound
from gpcert.bounds.majorants import CHEAP_DIMENSIONS, Majorants, cheap, coarse, sharp
from gpcert.bounds.rbf import Builder
from gpcert.bounds.slice import Slice
from gpcert.validation import Float

__all__ = ["Functionals", "builders"]

#: Ranges only decide where cells lie: they need not be sharp.
_RANGE_ACCURACY = 0.05


def builders(d: int) -> tuple[Builder, ...]:
    """Majorants by rising price."""
    return (cheap,) if d <= CHEAP_DIMENSIONS else (coarse, sharp)


@dataclass(frozen=True, eq=False)
class Functionals:
    """a.m + <B, Sigma> over one domain, seen from the reference `start` (M3, Theorem 1)."""

    model: ClassModel
    slice: Slice  #: of any functional of the model: geometry only
    domain: Domain
    start: Float  #: (d,), raw units
    build: Builder

    def _majorants(self, a: Float, B: Float) -> tuple[Majorants, float]:
        """Majorants of a.m + <B, Sigma> (tau = -1), and the kappa that adds a.mean less all rounding."""
        model = self.model
        slice_ = replace(self.slice, model=model.functional(a, B))
        means = float(a @ model.mean)
        error = model.functional_error(a, B, slice_.amplitude) + 1e-14 * float(np.abs(a) @ np.abs(model.mean))
        return self.build(expand(slice_, self.domain, self.start), None), means - error

    def smallest(self, a: Float, B: Float, offset: float, less: Loss | None = None) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain."""
        m, kappa = self._majorants(a, B)
        return lower_bound(m, 1.0, -1.0, kappa - offset - 1e-14 * abs(offset), less=less)

    def range(self, B: Float, offset: float) -> tuple[float, float]:
        """Certified range of <B, Sigma> - offset over the domain."""
        m, kappa = self._majorants(np.zeros(len(B)), B)
        slack = 1e-14 * abs(offset) - kappa  # kappa is minus the rounding here
        low = lower_bound(m, 0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset - slack
        high = -lower_bound(m, 0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent - offset + slack
        return min(low, 0.0), max(high, 0.0)

"""The Gaussian kernel's local models: one expansion, majorants of several prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.bounds.local.gaussian.expansion import Expansion
from gpcert.bounds.local.gaussian.functional import lower_bound
from gpcert.bounds.local.gaussian.majorants import Majorants
from gpcert.bounds.local.protocol import FunctionalBound

#: Majorants of one price.
Builder = Callable[[Expansion], Majorants]


@dataclass(frozen=True, eq=False)
class RbfLocal:
    """A `LocalModel`: the expansion with majorants of one price, built when first needed."""

    expansion: Expansion
    build: Builder

    @cached_property
    def _majorants(self) -> Majorants:
        return self.build(self.expansion)

    @property
    def S(self) -> float:
        return self.expansion.S

    @property
    def largest_variance(self) -> float:
        return self.expansion.largest_variance

    @property
    def variances(self) -> tuple[float, float]:
        return self.expansion.variances

    @property
    def deepest(self) -> float:
        return self.expansion.slice.model.deepest

    def only(self, tau: float) -> RbfLocal:
        """Nothing is saved."""
        return self

    def lower_bound(
        self,
        a: float,
        tau: float,
        kappa: float,
        enough: float = np.inf,
        accuracy: float = 1e-6,
        less: Loss | None = None,
    ) -> FunctionalBound:
        """Theorem 1; `less` is subtracted from the functional."""
        return lower_bound(self._majorants, a, tau, kappa, enough, accuracy, less)

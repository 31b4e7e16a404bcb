"""The sign of the latent mean: for a symmetric link, P > 1/2 exactly where mu > 0, whatever the variance.

`SignBound` asks for nothing else. With the Gaussian kernel the mean is one sum of kernels, which needs no
product with the precision (docs/maths.md, D1 and G4); with any other, the kernel's local models bound it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpcert.bounds.geometry.domain import Domain, Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.level import LevelBound
from gpcert.validation import Float

#: A latent mean certified above this ends a trial: room for the rounding of the conclusion.
_CLEAR = 1e-9


@dataclass(frozen=True, eq=False)
class SignBound(OneByOne):
    """A `BoxBound` that is sharp at 1/2 alone: elsewhere its values are true but rough."""

    base: LevelBound

    @property
    def shape(self) -> Shape:
        return self.base.shape

    def at(self, x: Float) -> tuple[float, float]:
        return self.base.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        """The mean where it comes alone, else what the kernel's bound offers, of the same sign."""
        if not isinstance(self.base, RbfBound):
            return self.base.objective(x)
        slice_ = self.base.slice
        v, k, _ = slice_.kernel(x)
        ak = slice_.weights * k
        return slice_.mean + float(ak.sum()), (ak @ v) / slice_.lengthscale

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`; attempts end once the mean is certainly positive."""
        widest = int(np.argmax((upper - lower) / self.base.lengthscale))
        best: Certified | None = None
        for attempt in self._attempts(lower, upper, reference):
            if attempt is None:
                return Certified(1.0, reference, widest, False)
            start, bound, largest = attempt
            p = self.base.curves.bounds((bound.latent, bound.latent), (0.0, largest))[0]
            point = np.clip(start + bound.point * self.base.lengthscale, lower, upper)
            trial = Certified(p, point, int(np.argmax(bound.loss)), bound.value + 2.0 * bound.rounding >= 0)
            if best is None or trial.value > best.value:
                best = trial
            if bound.latent > 0:
                return best
        best = Certified(0.0, reference, widest, False) if best is None else best
        return best._replace(value=max(best.value, self.base.envelope(lower, upper)))

    def _attempts(
        self, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, FunctionalBound, float] | None]:
        """References, lower bounds of the mean, and upper bounds of the variance, by rising price; None: the
        box misses the region.
        """
        base = self.base
        if isinstance(base, RbfBound):
            yield from self._means(base, lower, upper, reference)
            return
        for attempt in base.attempts(lower, upper, reference):
            if attempt is None:
                yield None
                return
            start, local = attempt
            yield start, local.only(0.0).lower_bound(1.0, 0.0, base.mean, _CLEAR), local.largest_variance

    def _means(
        self, base: RbfBound, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, FunctionalBound, float] | None]:
        """D1: the mean is a sum of kernels, and needs no product with the precision."""
        for place in base.places(lower, upper, reference, partial(base.planes, slack=lambda: np.inf)):
            if place is None:
                yield None
                return
            start, domain, prices = place
            mean = mean_over(base.slice, domain, start)
            for forms in prices:
                yield start, mean.lower_bound(forms, _CLEAR), base.slice.largest_variance


def mean_over(slice_: Slice, domain: Domain, reference: Float) -> KernelSum:
    """D1: the latent mean, prior mean included, as seen from `reference` (d,)."""
    around = Covariances(slice_, domain, *slice_.kernel(reference))
    return KernelSum(around, slice_.weights, slice_.mean)

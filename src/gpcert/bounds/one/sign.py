"""The sign of the latent mean: for a symmetric link, P > 1/2 exactly where mu > 0, whatever the variance.

`SignBound` asks for nothing else. With the Gaussian kernel the mean is one sum of kernels, which needs no
product with the precision (docs/maths.md, D1 and G4); with any other, the kernel's local models bound it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import Certified, OneByOne
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
        for attempt in self.base.means(lower, upper, reference, _CLEAR):
            if attempt is None:
                return Certified(1.0, reference, widest, False)
            start, bound = attempt
            largest = self.base.slice.largest_variance
            p = self.base.curves.bounds((bound.latent, bound.latent), (0.0, largest))[0]
            point = np.clip(start + bound.point * self.base.lengthscale, lower, upper)
            trial = Certified(p, point, int(np.argmax(bound.loss)), bound.value + 2.0 * bound.rounding >= 0)
            if best is None or trial.value > best.value:
                best = trial
            if bound.latent > 0:
                return best
        best = Certified(0.0, reference, widest, False) if best is None else best
        return best._replace(value=max(best.value, self.base.envelope(lower, upper)))

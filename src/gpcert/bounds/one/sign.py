"""The sign of the latent mean: for a symmetric link, P > 1/2 exactly where mu > 0, whatever the variance.

`SignBound` asks for nothing else. With the Gaussian kernel the mean is one sum of kernels, which needs no
product with the precision (docs/maths/bounds.md, D1 and G4); for any other, the kernel's local models do it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.level import Left, LevelBound
from gpcert.rounding import down
from gpcert.validation import Float

#: The share of the latent mean at the reference that a mean has to exceed: more than 0, so that it is
#: positive where no more than that is known of it, and the margin is not told as nothing.
_CLEAR = 0.05


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
        left, clear = Left(lower, upper), self._clear(reference)
        for attempt in self.base.means(left, reference, 0.0, clear):
            if attempt is None:
                p = self._least(clear) if left.part else 1.0
                return Certified(p, reference, widest, False)
            start, bound = attempt
            latent = min(bound.latent, 0.0) if left.part else bound.latent
            p = self._least(down(latent + clear))
            point = np.clip(start + bound.point * self.base.lengthscale, lower, upper)
            trial = Certified(p, point, int(np.argmax(bound.loss)), bound.value + 2.0 * bound.rounding >= 0)
            if best is None or trial.value > best.value:
                best = trial
            if latent >= 0:
                return best
        best = Certified(0.0, reference, widest, False) if best is None else best
        best = best._replace(value=max(best.value, self.base.envelope(lower, upper)))
        return left.divided(best, self.shape, self.base.lengthscale, self._least(clear))

    def _clear(self, reference: Float) -> float:
        """What the mean is to exceed, so that it is positive where no more than that is known."""
        return _CLEAR * max(self.objective(reference)[0], 0.0) if isinstance(self.base, RbfBound) else 0.0

    def _least(self, mean: float) -> float:
        """P where the mean is at least this."""
        return self.base.curves.bounds((mean, mean), (0.0, self.base.slice.largest_variance))[0]

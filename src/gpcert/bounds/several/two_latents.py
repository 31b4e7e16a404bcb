"""Two classes of softmax: the logistic of one difference of latents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.bounds.several.tangents.functionals import most_clipped, probability_cost
from gpcert.rounding import down
from gpcert.validation import Float


@dataclass(frozen=True, eq=False)
class TwoLatents(OneByOne):
    """A `BoxBound` of P(label) that allows for each latent's variance being clipped by itself (M4)."""

    base: BoxBound  #: of the difference, whose variance is clipped as a whole
    softmax: SoftmaxBound  #: of the same probability

    @property
    def shape(self) -> Shape:
        return self.base.shape

    def at(self, x: Float) -> tuple[float, float]:
        return self.softmax.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        return self.base.objective(x)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        slice_ = self.softmax.slice
        middle = 0.5 * lower + 0.5 * upper
        domain = self.shape.domain(lower, upper, middle, slice_.lengthscale)
        if domain is None:
            return Certified(1.0, reference, int(np.argmax((upper - lower) / slice_.lengthscale)), False)
        if not slice_.moderate:
            return Certified(0.0, reference, int(np.argmax((upper - lower) / slice_.lengthscale)), False)
        variances = partial(self.softmax.variances, lower, upper)
        slack = probability_cost(most_clipped(self.softmax.model, variances))
        answer = self.base.over(lower, upper, reference, min(target + 2.0 * slack, 0.5 + 0.5 * target))
        ends = max(0.0, down(answer.value - slack)), max(0.0, down(answer.elsewhere - slack))
        return answer._replace(value=ends[0], elsewhere=ends[1])

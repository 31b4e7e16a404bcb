"""The published bound of one box (AISTATS 2020): mean and variance apart, then the likelihood.

It answers the same questions as our own bound, so that the one search loop is Algorithm 1 with it
(docs/paper.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds import Certified, RbfBound, Shape
from gpcert.paper.covariance import Covariances, Extreme, covariances
from gpcert.paper.latent_space import Interval, Partition, integral_bounds
from gpcert.paper.variance import largest_variance, smallest_variance
from gpcert.rounding import UNIT, down
from gpcert.validation import Float

__all__ = ["PaperBound"]


@dataclass(frozen=True, eq=False)
class PaperBound:
    """Bounds of P over boxes from separate ranges of mean and variance; points are valued as in ours.

    `partition` None: the probit lemma; else Propositions 1 and 2 on that partition of the latent space.
    """

    inner: RbfBound
    partition: Partition | None

    @property
    def shape(self) -> Shape:
        """See `BoxBound.shape`."""
        return self.inner.shape

    def at(self, x: Float) -> tuple[float, float]:
        """See `BoxBound.at`."""
        return self.inner.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        """See `BoxBound.objective`."""
        return self.inner.objective(x)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """Lines 4 to 6 of Algorithm 1; the candidates are the extrema of mean and variance."""
        slice_ = self.inner.slice
        if self.shape.domain(lower, upper, reference, slice_.lengthscale) is None:
            return Certified(1.0, reference, 0, False)  # the box misses the region
        c = covariances(slice_, lower, upper)
        mean = c.smallest_sum(slice_.weights), c.smallest_sum(-slice_.weights)
        variance = self._variance(c, slice_.mean + mean[0].value)
        centre = 0.5 * lower + 0.5 * upper
        extrema = [e for e in (*mean, *variance) if e is not None]
        points = [np.clip(centre + e.point * slice_.lengthscale, lower, upper) for e in extrema]
        probability = self._probability(mean, variance, 0.0)
        at_rounding = probability < target <= self._probability(mean, variance, 2.0)
        best = min(points, key=lambda x: self.inner.objective(x)[0])
        return Certified(probability, best, int(np.argmax(c.reach)), at_rounding)

    def _variance(self, c: Covariances, lowest_mean: float) -> tuple[Extreme | None, Extreme | None]:
        """The smallest and the largest variance; the one the probit lemma does not use is not computed."""
        model = self.inner.slice.model
        needs_smallest = self.partition is not None or not lowest_mean >= 0
        needs_largest = self.partition is not None or lowest_mean >= 0
        return (
            smallest_variance(model, c) if needs_smallest else None,
            largest_variance(model, c) if needs_largest else None,
        )

    def _probability(
        self, mean: tuple[Extreme, Extreme], variance: tuple[Extreme | None, Extreme | None], forgiven: float
    ) -> float:
        """A lower bound of P; with `forgiven` > 0 an estimate of what it were without rounding."""
        offset = self.inner.slice.mean
        low, high = (e.value + forgiven * e.rounding for e in mean)
        low, high = offset + low, offset - high
        slack = 4 * UNIT * (abs(offset) + abs(low) + abs(high))
        mu = low - slack, high + slack
        smallest, largest = variance
        S = (
            0.0 if smallest is None else max(0.0, smallest.value + forgiven * smallest.rounding),
            np.inf if largest is None else max(0.0, largest.value - forgiven * largest.rounding),
        )
        value = self._bound(mu, S)
        return value if value >= 0 else 0.0  # also where it is not a number

    def _bound(self, mu: Interval, S: Interval) -> float:
        if self.partition is None:
            chosen = S[1] if mu[0] >= 0 else S[0]
            return self.inner.link.bounds((mu[0], mu[0]), (chosen, chosen))[0]
        if self.inner.slice.sign > 0:
            return integral_bounds(self.partition, mu, S)[0]
        return max(0.0, down(1.0 - integral_bounds(self.partition, (-mu[1], -mu[0]), S)[1]))

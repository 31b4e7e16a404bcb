"""The published bound of two classes (AISTATS 2020): mean and variance apart, then the likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.one.gaussian import RbfBound
from gpcert.rounding import UNIT, down
from gpcert_paper.method.box import Answer, PublishedBound
from gpcert_paper.method.covariance import Covariances, Extreme
from gpcert_paper.method.latent_space import Interval, Partition, integral_bounds
from gpcert_paper.method.variance import largest_variance, smallest_variance


@dataclass(frozen=True, eq=False)
class PaperBound(PublishedBound[RbfBound]):
    """`partition` None: the probit lemma; else Propositions 1 and 2 on that partition of the latent space."""

    partition: Partition | None

    def answer(self, c: Covariances, target: float) -> Answer:
        slice_ = self.ours.slice
        mean = c.smallest_sum(slice_.weights), c.smallest_sum(-slice_.weights)
        variance = self._variance(c, slice_.mean + mean[0].value)
        extrema = [e for e in (*mean, *variance) if e is not None]
        probability = self._probability(mean, variance, 0.0)
        at_rounding = probability < target <= self._probability(mean, variance, 2.0)
        return Answer(probability, extrema, at_rounding)

    def _variance(self, c: Covariances, lowest_mean: float) -> tuple[Extreme | None, Extreme | None]:
        """The smallest and the largest variance; the one the probit lemma does not use is not computed."""
        model = self.ours.slice.model
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
        offset = self.ours.slice.mean
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
            return self.ours.curves.bounds((mu[0], mu[0]), (chosen, chosen))[0]
        if self.ours.slice.sign > 0:
            return integral_bounds(self.partition, mu, S)[0]
        return max(0.0, down(1.0 - integral_bounds(self.partition, (-mu[1], -mu[0]), S)[1]))

"""The published bound of one box for softmax: ranges of means and covariances, Propositions 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.facts.model import Model
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT, down
from gpcert.validation import Float
from gpcert_paper.method.box import Answer, PublishedBound
from gpcert_paper.method.covariance import Covariances, Extreme
from gpcert_paper.method.several import LatentRanges, softmax_bounds
from gpcert_paper.method.variance import largest_variance, smallest_variance


@dataclass(frozen=True, eq=False)
class EntryModels:
    """The entries of the latents' covariance, on and above the diagonal, each as the variance of a `Model`.

    Pairs that are not listed are zero throughout.
    """

    pairs: tuple[tuple[int, int], ...]
    selectors: tuple[Float, ...]  #: (C, C): <selector, Sigma> is the entry
    models: tuple[Model, ...]

    @classmethod
    def of(cls, post: Posterior) -> EntryModels:
        """Once per posterior."""
        model = class_model_of(post)
        zero = np.zeros(model.classes)
        selectors = []
        for c, e in model.pairs:
            B = np.zeros((model.classes, model.classes))
            B[c, e] += 0.5
            B[e, c] += 0.5
            selectors.append(B)
        return cls(model.pairs, tuple(selectors), tuple(model.functional(zero, B) for B in selectors))


@dataclass(frozen=True, eq=False)
class PaperSoftmaxBound(PublishedBound[SoftmaxBound]):
    """Bounds of P(label), or of 1 - P(label) if `complement`."""

    label: int
    complement: bool
    entries: EntryModels = field(repr=False)
    intervals: int

    def answer(self, c: Covariances, target: float) -> Answer:
        """See `PublishedBound.answer`; the extrema are those of the means."""
        means = list(self._means(c))
        ranges = LatentRanges(self._mean_range(means), self._covariance_range(c))
        low, high = softmax_bounds(ranges, self.label, self.intervals)
        probability = max(0.0, down(1.0 - high)) if self.complement else low
        return Answer(probability, [e for pair in means for e in pair])

    def _means(self, c: Covariances) -> Iterator[tuple[Extreme, Extreme]]:
        for weights in self.ours.model.weights.T:
            yield c.smallest_sum(weights), c.smallest_sum(-weights)

    def _mean_range(self, means: list[tuple[Extreme, Extreme]]) -> tuple[Float, Float]:
        offset = self.ours.model.mean
        low = offset + np.array([smallest.value for smallest, _ in means])
        high = offset - np.array([largest.value for _, largest in means])
        slack = 4 * UNIT * (np.abs(offset) + np.abs(low) + np.abs(high))
        return low - slack, high + slack

    def _covariance_range(self, c: Covariances) -> tuple[Float, Float]:
        latents = self.ours.model
        low, high = np.zeros((latents.classes, latents.classes)), np.zeros((latents.classes, latents.classes))
        entries = self.entries
        for (i, j), B, model in zip(entries.pairs, entries.selectors, entries.models, strict=True):
            error = latents.functional_error(np.zeros(latents.classes), B, self.ours.slice.amplitude)
            low[i, j] = low[j, i] = smallest_variance(model, c).value - error
            high[i, j] = high[j, i] = largest_variance(model, c).value + error
        # M4: what the predictor may add to the variances so that they form a covariance.
        high[np.diag_indices(latents.classes)] += 2.0 * latents.lift
        return low, high

"""The judge of probabilities: what a stored posterior means, in real arithmetic.

Nothing is shared with `gpcert.bounds`, nor with the integrals of `gpcert.likelihoods`: parameters are read
from the objects, everything else is written again, in balls (python-flint) or with a proved error.
"""

from __future__ import annotations

from functools import reduce

from flint import arb

from gpcert.likelihoods import BinaryLikelihood, OneVsRest
from gpcert.posterior import Posterior
from judge.decide import Number, at_least, at_most, ball
from judge.latents import Latents, Point
from judge.links import expectation
from judge.softmax import softmax


class Truth:
    """Means, variances and probabilities of a posterior at a point (d,) of doubles, fractions or balls.

    Results are balls at the precision of the context; a point of intervals gives the range over it.
    """

    def __init__(self, post: Posterior) -> None:
        self.post = post
        self._latents = Latents(post)

    def latent(self, x: Point, label: int = 0) -> tuple[arb, arb]:
        """Mean and (unclipped) variance of the only latent, of several that of `label`."""
        return self._latents.one(x, label)

    def mean(self, x: Point, label: int | None = None) -> arb:
        """The latent mean, of several latents that of `label`."""
        return self.latent(x, label or 0)[0]

    def variance(self, x: Point, label: int | None = None) -> arb:
        """k(x, x) - k^T R k, which may be negative."""
        return self.latent(x, label or 0)[1]

    def clipped(self, x: Point, label: int | None = None) -> arb:
        """max(0, variance): the variance of the predictor."""
        return self.variance(x, label).max(arb(0))

    def covariance(self, x: Point) -> list[list[arb]]:
        """The unclipped covariance (C, C) of the latents."""
        return self._latents.all(x)[1]

    def probability(self, x: Point, label: int) -> arb:
        """P(label), at the precision of the context."""
        likelihood = self.post.likelihood
        if isinstance(likelihood, BinaryLikelihood):
            mean, variance = self.latent(x)
            return expectation(likelihood, mean, variance.max(arb(0)), label)
        return self.probabilities(x)[label]

    def probabilities(self, x: Point) -> list[arb]:
        """P of every class."""
        likelihood, classes = self.post.likelihood, range(self.post.n_classes)
        if isinstance(likelihood, BinaryLikelihood):
            return [self.probability(x, c) for c in classes]
        mean, S = self._latents.all(x)
        if isinstance(likelihood, OneVsRest):
            p = [expectation(likelihood.link, mean[c], S[c][c].max(arb(0)), 1) for c in classes]
            return [1 / (1 + sum(p[j] / p[c] for j in classes if j != c)) for c in classes]
        return softmax(mean, S, self._latents.correlated)

    def margin(self, x: Point, label: int, threshold: Number = 0.5) -> arb:
        """Two classes: P(label) - threshold. Several: P(label) less the largest other."""
        if self.post.n_classes == 2:
            return self.probability(x, label) - ball(threshold)
        p = self.probabilities(x)
        return p[label] - reduce(arb.max, (q for c, q in enumerate(p) if c != label))

    def at_least(self, x: Point, label: int, bound: Number) -> bool | None:
        """Whether P(label) >= bound at x, whatever x is for bound <= 0."""
        return bound <= 0 or at_least(lambda: self.probability(x, label), bound)

    def at_most(self, x: Point, label: int, bound: Number) -> bool | None:
        """Whether P(label) <= bound at x, whatever x is for bound >= 1."""
        return bound >= 1 or at_most(lambda: self.probability(x, label), bound)

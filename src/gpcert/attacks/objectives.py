"""What an attack makes small, with gradients, for a batch of points each with its own label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpcert.clock import heed, now
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import BinaryLikelihood
from gpcert.posterior import Posterior
from gpcert.validation import Float, Index

_SMALL = 1e-300


class AttackObjective(Protocol):
    """A function of points and labels; estimates only."""

    def __call__(self, X: Float, labels: Index, slopes: bool = True) -> tuple[Float, Float]:
        """Values (m,) and gradients (m, d) at X (m, d); without `slopes` zeros in their place: cheaper."""


@dataclass(frozen=True)
class Careful:
    """An objective that is inf where the model has no probability, and everywhere once the time is up.

    A stored covariance may be indefinite at some points: the predictor refuses them, a search walks around.
    """

    objective: AttackObjective
    deadline: float = np.inf  #: on the clock of `gpcert.clock.now`

    def __call__(self, X: Float, labels: Index, slopes: bool = True) -> tuple[Float, Float]:
        heed()
        if now() < self.deadline:
            try:
                return self.objective(X, labels, slopes)
            except InvalidInputError:
                if len(X) > 1:
                    each = [self(X[i : i + 1], labels[i : i + 1], slopes) for i in range(len(X))]
                    values, gradients = zip(*each, strict=True)
                    return np.concatenate(values), np.concatenate(gradients)
        return np.full(len(X), np.inf), np.zeros_like(X)


@dataclass(frozen=True)
class LogOdds:
    """log P(label) - log(1 - P(label)): increases with P(label), and is not flat where P is near 0 or 1."""

    post: Posterior

    def __call__(self, X: Float, labels: Index, slopes: bool = True) -> tuple[Float, Float]:
        post, likelihood = self.post, self.post.likelihood
        if isinstance(likelihood, BinaryLikelihood) and likelihood.symmetric:
            sign = np.where(labels == 1, 1.0, -1.0)
            mean, var = post.latent(X)
            mean = sign * mean
            value = likelihood.log_expectation(mean, var) - likelihood.log_expectation(-mean, var)
            if not slopes:
                return value, np.zeros_like(X)
            dmean, dvar = post.latent_gradient(X)
            up, down = (likelihood.log_expectation_gradient(m, var) for m in (mean, -mean))
            return value, ((up[0] + down[0]) * sign)[:, None] * dmean + (up[1] - down[1])[:, None] * dvar
        rows = np.arange(len(X))
        p = np.clip(post.probability(X)[rows, labels], _SMALL, 1.0 - 2.0**-53)
        value = np.asarray(np.log(p) - np.log1p(-p))
        if not slopes:
            return value, np.zeros_like(X)
        return value, post.probability_gradient(X)[rows, labels] / (p * (1.0 - p))[:, None]


@dataclass(frozen=True)
class Margin:
    """P(label) - the largest other probability."""

    post: Posterior

    def __call__(self, X: Float, labels: Index, slopes: bool = True) -> tuple[Float, Float]:
        value, rival = _margins(self.post.probability(X), labels)
        if not slopes:
            return value, np.zeros_like(X)
        rows, slope = np.arange(len(X)), self.post.probability_gradient(X)
        return value, slope[rows, labels] - slope[rows, rival]


@dataclass(frozen=True)
class LatentMargin:
    """The latent mean that speaks for the label (several latents: less the largest other); no variance."""

    post: Posterior

    def __call__(self, X: Float, labels: Index, slopes: bool = True) -> tuple[Float, Float]:
        post, rows = self.post, np.arange(len(X))
        weights = np.atleast_2d(post.weights.T)  # (latents, n)
        if slopes:
            each = [post.kernels[c].weighted(X, post.anchors, w) for c, w in enumerate(weights)]
        else:
            each = [(post.kernels[c](X, post.anchors) @ w, np.zeros_like(X)) for c, w in enumerate(weights)]
        means, slope = (np.stack(parts, axis=1) for parts in zip(*each, strict=True))
        if post.weights.ndim == 1:
            sign = np.where(labels == 1, 1.0, -1.0)
            return sign * (means[:, 0] + post.mean), sign[:, None] * slope[:, 0]
        value, rival = _margins(means + post.mean, labels)
        return value, slope[rows, labels] - slope[rows, rival]


def _margins(values: Float, labels: Index) -> tuple[Float, Index]:
    """The labels' columns of values (m, C) less the largest other, (m,), and which that is."""
    rows = np.arange(len(values))
    own, others = values[rows, labels], values.copy()
    others[rows, labels] = -np.inf
    rival = others.argmax(axis=1)
    return own - values[rows, rival], rival

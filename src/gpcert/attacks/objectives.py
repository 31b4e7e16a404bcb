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


class Objective(Protocol):
    """A function of points and labels; estimates only."""

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        """Values (m,) and gradients (m, d) at X (m, d)."""

    def values(self, X: Float, labels: Index) -> Float:
        """Values (m,) alone: cheaper."""


@dataclass(frozen=True)
class Careful:
    """An objective that is inf where the model has no probability, and everywhere once the time is up.

    A stored covariance may be indefinite at some points: the predictor refuses them, a search walks around.
    """

    objective: Objective
    deadline: float = np.inf  #: on the clock of `gpcert.clock.now`

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        heed()
        if now() < self.deadline:
            try:
                return self.objective(X, labels)
            except InvalidInputError:
                if len(X) > 1:
                    parts = [self(X[i : i + 1], labels[i : i + 1]) for i in range(len(X))]
                    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        return np.full(len(X), np.inf), np.zeros_like(X)

    def values(self, X: Float, labels: Index) -> Float:
        heed()
        if now() < self.deadline:
            try:
                return self.objective.values(X, labels)
            except InvalidInputError:
                if len(X) > 1:
                    return np.concatenate(
                        [self.values(X[i : i + 1], labels[i : i + 1]) for i in range(len(X))]
                    )
        return np.full(len(X), np.inf)


@dataclass(frozen=True)
class LogOdds:
    """log P(label) - log(1 - P(label)): increases with P(label), and is not flat where P is near 0 or 1."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        likelihood = self.post.likelihood
        if not (isinstance(likelihood, BinaryLikelihood) and likelihood.symmetric):
            rows = np.arange(len(X))
            p = np.clip(self.post.probability(X)[rows, labels], _SMALL, 1.0 - 2.0**-53)
            slope = self.post.probability_gradient(X)[rows, labels]
            return np.log(p) - np.log1p(-p), slope / (p * (1.0 - p))[:, None]
        sign = np.where(labels == 1, 1.0, -1.0)
        mean, var = self.post.latent(X)
        dmean, dvar = self.post.latent_gradient(X)
        mean, dmean = sign * mean, sign[:, None] * dmean
        value = likelihood.log_expectation(mean, var) - likelihood.log_expectation(-mean, var)
        up, down = (likelihood.log_expectation_gradient(m, var) for m in (mean, -mean))
        return value, (up[0] + down[0])[:, None] * dmean + (up[1] - down[1])[:, None] * dvar

    def values(self, X: Float, labels: Index) -> Float:
        likelihood = self.post.likelihood
        if not (isinstance(likelihood, BinaryLikelihood) and likelihood.symmetric):
            p = np.clip(self.post.probability(X)[np.arange(len(X)), labels], _SMALL, 1.0 - 2.0**-53)
            return np.asarray(np.log(p) - np.log1p(-p))
        mean, var = self.post.latent(X)
        mean = np.where(labels == 1, 1.0, -1.0) * mean
        return likelihood.log_expectation(mean, var) - likelihood.log_expectation(-mean, var)


@dataclass(frozen=True)
class Margin:
    """P(label) - the largest other probability."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        rows = np.arange(len(X))
        value, rival = _margins(self.post.probability(X), labels)
        slope = self.post.probability_gradient(X)
        return value, slope[rows, labels] - slope[rows, rival]

    def values(self, X: Float, labels: Index) -> Float:
        return _margins(self.post.probability(X), labels)[0]


def _margins(values: Float, labels: Index) -> tuple[Float, Index]:
    """The labels' columns of values (m, C) less the largest other, (m,), and which that is."""
    rows = np.arange(len(values))
    own, others = values[rows, labels], values.copy()
    others[rows, labels] = -np.inf
    rival = others.argmax(axis=1)
    return own - values[rows, rival], rival


@dataclass(frozen=True)
class LatentMargin:
    """The latent mean that speaks for the label (several latents: less the largest other); no variance."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        post, rows = self.post, np.arange(len(X))
        each = [post.kernels[c].weighted(X, post.anchors, w) for c, w in enumerate(self._weights)]
        means, slopes = (np.stack(parts, axis=1) for parts in zip(*each, strict=True))
        if post.weights.ndim == 1:
            sign = np.where(labels == 1, 1.0, -1.0)
            return sign * (means[:, 0] + post.mean), sign[:, None] * slopes[:, 0]
        value, rival = _margins(means + post.mean, labels)
        return value, slopes[rows, labels] - slopes[rows, rival]

    def values(self, X: Float, labels: Index) -> Float:
        post = self.post
        parts = [post.kernels[c](X, post.anchors) @ w for c, w in enumerate(self._weights)]
        means = np.stack(parts, axis=1) + post.mean
        if post.weights.ndim == 1:
            return np.where(labels == 1, 1.0, -1.0) * means[:, 0]
        return _margins(means, labels)[0]

    @property
    def _weights(self) -> Float:
        """(latents, n)."""
        return np.atleast_2d(self.post.weights.T)

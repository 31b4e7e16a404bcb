"""What an attack makes small, with gradients, for a batch of points each with its own label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpcert.likelihoods import BinaryLikelihood
from gpcert.posterior import Posterior
from gpcert.validation import Float, Index

__all__ = ["LatentMargin", "LogOdds", "Margin", "Objective"]

_SMALL = 1e-300


class Objective(Protocol):
    """A function of points and labels; estimates only."""

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        """Values (m,) and gradients (m, d) at X (m, d)."""


@dataclass(frozen=True)
class LogOdds:
    """log P(label) - log(1 - P(label)): increases with P(label), and is not flat where P is near 0 or 1."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        """See `Objective`."""
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


@dataclass(frozen=True)
class Margin:
    """P(label) - the largest other probability."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        """See `Objective`."""
        rows = np.arange(len(X))
        p, slope = self.post.probability(X), self.post.probability_gradient(X)
        own = p[rows, labels]
        p[rows, labels] = -np.inf
        rival = p.argmax(axis=1)
        return own - p[rows, rival], slope[rows, labels] - slope[rows, rival]


@dataclass(frozen=True)
class LatentMargin:
    """The latent mean that speaks for the label (several latents: less the largest other); no variance."""

    post: Posterior

    def __call__(self, X: Float, labels: Index) -> tuple[Float, Float]:
        """See `Objective`."""
        post, rows = self.post, np.arange(len(X))
        if post.weights.ndim == 1:
            sign = np.where(labels == 1, 1.0, -1.0)
            value, slope = self._latent(X, 0)
            return sign * value, sign[:, None] * slope
        values, slopes = zip(*(self._latent(X, c) for c in range(post.n_latents)), strict=True)
        mean, gradient = np.stack(values, axis=1), np.stack(slopes, axis=1)
        own = mean[rows, labels]
        mean[rows, labels] = -np.inf
        rival = mean.argmax(axis=1)
        return own - mean[rows, rival], gradient[rows, labels] - gradient[rows, rival]

    def _latent(self, X: Float, c: int) -> tuple[Float, Float]:
        post = self.post
        weights = post.weights if post.weights.ndim == 1 else post.weights[:, c]
        kernel, prior = post.kernels[c], float(np.ravel(post.mean)[c if np.ndim(post.mean) else 0])
        value = prior + kernel(X, post.centres) @ weights
        spread = np.broadcast_to(weights, (len(X), len(weights)))
        return value, kernel.input_gradient(X, post.centres, spread)

"""What Laplace's method and EP both return: a Gaussian approximation of the latent posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import blas

from gpcert.inference.factor import Factor
from gpcert.validation import Float


@dataclass(frozen=True)
class Sites:
    """Unnormalised Gaussians exp(-precision_i f_i^2/2 + shift_i f_i) in place of the likelihood terms.

    `precision` >= 0 (n,), of a softmax the class probabilities (C, n) that give it; `shift` of the same
    shape. Under a similar kernel matrix they still are a good first guess, which makes a sequence of
    hyper-parameters cheap.
    """

    precision: Float
    shift: Float


@dataclass(frozen=True)
class Approximation:
    """N(K weights, (K^-1 + W)^-1) at the training points, W = diag(sites.precision).

    Latent mean at x: k(x)^T weights, `weights` (n,). Latent variance: k(x,x) - k(x)^T R k(x) with
    R = `precision()`. `slope` (n,): third derivatives of the log likelihood at the mode where W follows the
    mode (Laplace), None where the sites are a stationary point (EP).
    """

    weights: Float
    sites: Sites
    factor: Factor
    log_marginal_likelihood: float
    converged: bool
    iterations: int
    slope: Float | None = None

    @property
    def site_precision(self) -> Float:
        """W (n,)."""
        return self.sites.precision

    def precision(self) -> Float:
        """R = (K + W^-1)^-1 (n, n), exactly symmetric."""
        return self.factor.precision()

    def gradient_matrix(self, K: Float) -> Float:
        """G (n, n), symmetric: d log_marginal_likelihood / d theta = sum_ij G_ij dK_ij/d theta.

        EP (Algorithm 5.2, line 6): G = (a a^T - R)/2 with a = weights. Laplace (Algorithm 5.1, lines 7 to 12)
        adds the movement of the mode: s2^T (I - K R) dK a, that is u a^T with u = (I - R K) s2.
        """
        half = 0.5 * self.weights
        if self.slope is not None:
            s2 = 0.5 * self._covariance_diagonal() * self.slope
            half += s2 - self.factor.solve(K @ s2)
        # R becomes G in place: -R/2, plus (half a^T + a half^T)/2 as two rank-one updates.
        G = self.factor.precision()
        G *= -0.5
        by_blas = blas.dger(0.5, self.weights, half, a=G.T, overwrite_a=1)
        return np.asarray(blas.dger(0.5, half, self.weights, a=by_blas, overwrite_a=1).T)

    def _covariance_diagonal(self) -> Float:
        """Diagonal (n,) of (K^-1 + W)^-1 = W^-1/2 (I - B^-1) W^-1/2, 0 where W is.

        Absolute errors are some eps/W_i, harmless here: `slope` is at most of the order of W.
        """
        W = self.sites.precision
        return np.where(W > 0.0, 1.0 - self.factor.inverse.diagonal(), 0.0) / np.where(W > 0.0, W, 1.0)


class Approximated(Protocol):
    """What training needs of an approximation, of one latent or of several."""

    @property
    def weights(self) -> Float:
        """(n,), or (n, C)."""

    @property
    def sites(self) -> Any:
        """The start of a similar problem."""

    @property
    def log_marginal_likelihood(self) -> float:
        """log p(y | X, kernel), approximated."""

    @property
    def converged(self) -> bool:
        """Whether the approximation is the one sought."""

    def precision(self) -> Float:
        """(n, n), or (C, C, n, n)."""

    def gradient_matrix(self, K: Float) -> Float:
        """G (n, n): d log_marginal_likelihood / d theta = sum_ij G_ij dK_ij/d theta."""


class Fit(Protocol):
    """An inference method: K (n, n), labels y (n,), likelihood, the sites of a similar problem.

    Labels are +-1 for a two-class likelihood, class indices for softmax.
    """

    def __call__(self, K: Float, y: Float, likelihood: Any, start: Any = None) -> Approximated:
        """The Gaussian approximation of the posterior of the latent values at the n points."""

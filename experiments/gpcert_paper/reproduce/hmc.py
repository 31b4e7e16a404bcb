"""Hamiltonian Monte Carlo for a probit GP classifier with fixed hyperparameters: the reference posterior.

Phi(y f) is the probability that y (f + e) > 0 with e ~ N(0, 1). So f + e is, a posteriori, N(0, K + I) cut
off at the walls y_i (f_i + e_i) = 0. Without walls its Hamiltonian flow is a rotation, g cos t + h sin t; a
wall reflects the momentum (Pakman and Paninski 2014). Nothing is discretised: no step size, no rejection. The
leapfrog needs steps as short as the walls are steep, 1/400 of a standard deviation for some models here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.posterior import Posterior
from gpcert.validation import Float
from gpcert_paper.reproduce.models import kernel_of

__all__ = ["Chains", "sample", "summarised"]

_SEED = 1
#: Longest path between two draws: a quarter of the circle forgets the start where there are no walls.
_PATH = 0.5 * np.pi
#: Right at a wall, on the inner side.
_TOUCHING = 1e-300


class Chains(NamedTuple):
    """Draws of the latent mean given the latents drawn, at test points, and how well the chains mixed."""

    means: Float  #: (chains, draws, m): E[f(x*) | draw]
    variance: Float  #: (m,): Var[f(x*) | draw], the same for every draw
    rhat: float  #: largest split, rank-normalised R-hat of the means
    ess: float  #: smallest effective sample size of the means and of their squared deviations


def summarised(means: Float, variance: Float) -> Chains:
    """The draws with their diagnostics, by ArviZ."""
    from arviz_stats.base import array_stats

    axes = {"chain_axis": 0, "draw_axis": 1}
    squares = (means - means.mean(axis=(0, 1))) ** 2
    ess = min(float(array_stats.ess(values, **axes).min()) for values in (means, squares))
    return Chains(means, variance, float(array_stats.rhat(means, **axes).max()), ess)


def sample(post: Posterior, y: Float, X: Float, chains: int, warm_up: int, draws: int) -> Chains:
    """Posterior draws at X (m, d) for labels y (n,) in {-1, 1}; unit-scale probit, zero prior mean."""
    return summarised(*_draws(post, y, X, chains, warm_up, draws))


def _draws(post: Posterior, y: Float, X: Float, chains: int, warm_up: int, draws: int) -> tuple[Float, Float]:
    """Means and variance of `Chains`; chain c starts at (c + 1)/2 times the approximation's mean."""
    kernel = kernel_of(post)
    k = kernel(X, post.centres) * y
    walls = _Walls((kernel(post.centres) + np.eye(len(y))) * np.outer(y, y))
    to_test = np.linalg.solve(walls.covariance, k.T).T
    variance = kernel.prior_variance - np.einsum("ij,ij->i", to_test, k)
    start = y * post.latent(post.centres)[0]
    rng = np.random.default_rng(_SEED)
    means = np.empty((chains, draws, len(X)))
    for c in range(chains):
        g = np.maximum(0.5 * (c + 1) * start, _TOUCHING)
        for step in range(-warm_up, draws):
            g = walls.flow(g, rng)
            if step >= 0:
                means[c, step] = to_test @ g
    return means, np.maximum(variance, 0.0)


class _Walls:
    """N(0, covariance) on the positive orthant."""

    def __init__(self, covariance: Float) -> None:
        self.covariance = covariance
        self._root = np.linalg.cholesky(covariance)

    def flow(self, g: Float, rng: np.random.Generator) -> Float:
        """One draw: from g along the flow with a fresh momentum, for a random time.

        The velocity h = covariance x momentum. At wall j the momentum's j-th entry becomes what reflects h:
        h - 2 (h_j / C_jj) C e_j, which leaves h^T C^-1 h as it was and turns h_j round.
        """
        h = self._root @ rng.standard_normal(len(g))
        left = _PATH * rng.uniform(0.5, 1.0)
        while True:
            times = np.arctan2(g, -h)  # the first t > 0 with g cos t + h sin t = 0
            j = int(times.argmin())
            if times[j] >= left:
                return np.asarray(np.maximum(g * np.cos(left) + h * np.sin(left), _TOUCHING))
            left -= times[j]
            cos, sin = np.cos(times[j]), np.sin(times[j])
            g, h = np.maximum(g * cos + h * sin, _TOUCHING), h * cos - g * sin
            g[j] = _TOUCHING
            h -= (2.0 * h[j] / self.covariance[j, j]) * self.covariance[j]

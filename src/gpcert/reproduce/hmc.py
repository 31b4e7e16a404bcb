"""Hamiltonian Monte Carlo for a probit GP classifier with fixed hyperparameters: the reference posterior.

f = T u with T T^T = K and u ~ N(0, I) a priori. The sampler (Mici's dynamic HMC, the no-U-turn kind) works in
v, u = m + B v, with N(m, B B^T) the Gaussian approximation at hand: the target is then close to a standard
normal, and any v gives the exact posterior, however poor the approximation is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from gpcert.errors import GpcertError
from gpcert.posterior import Posterior
from gpcert.reproduce.models import kernel_of
from gpcert.validation import Float

__all__ = ["Chains", "sample"]

_SEED = 1


class Chains(NamedTuple):
    """Draws of the latent mean given the training latents at test points, and the sampler's diagnostics."""

    means: Float  #: (chains, draws, m): E[f(x*) | f]
    variance: Float  #: (m,): Var[f(x*) | f], the same for every draw
    rhat: Float  #: (m,): split, rank-normalised R-hat of the means
    ess: Float  #: (m,): bulk effective sample size of the means
    acceptance: float


def sample(post: Posterior, y: Float, X: Float, chains: int, warm_up: int, draws: int) -> Chains:
    """Posterior draws at X (m, d) for labels y (n,) in {-1, 1}; unit-scale probit, zero prior mean."""
    try:
        from arviz_stats.base import array_stats
        from mici.adapters import DualAveragingStepSizeAdapter
        from mici.integrators import LeapfrogIntegrator
        from mici.samplers import DynamicMultinomialHMC
        from mici.systems import EuclideanMetricSystem
    except ImportError:
        raise GpcertError("HMC needs mici and arviz-stats: pip install 'gpcert[reproduce]'") from None
    target = _Target(post, y)
    rng = np.random.default_rng(_SEED)
    system = EuclideanMetricSystem(neg_log_dens=target.value, grad_neg_log_dens=target.gradient)
    sampler = DynamicMultinomialHMC(system, LeapfrogIntegrator(system), rng, max_tree_depth=7)
    to_test, variance = target.conditional(X)

    def trace(state: object) -> dict[str, Float]:
        return {"mean": to_test.dot(target.latent(state.pos))}  # type: ignore[attr-defined]

    start = [rng.standard_normal(target.size) for _ in range(chains)]
    found = sampler.sample_chains(
        warm_up,
        draws,
        start,
        adapters=[DualAveragingStepSizeAdapter(0.8)],
        trace_funcs=[trace],
        display_progress=False,
        n_process=1,
    )
    means = np.array(found.traces["mean"])
    acceptance = float(np.mean([np.mean(s) for s in found.statistics["accept_stat"]]))
    axes = {"chain_axis": 0, "draw_axis": 1}
    return Chains(
        means, variance, array_stats.rhat(means, **axes), array_stats.ess(means, **axes), acceptance
    )


class _Target:
    """The density of v: N(u; 0, I) prod Phi(y_i f_i), u = m + B v, f = T u."""

    def __init__(self, post: Posterior, y: Float) -> None:
        self._post, self._y = post, y
        values, vectors = np.linalg.eigh(kernel_of(post)(post.centres))
        keep = values > 1e-13 * values[-1]
        self._values, self._vectors = values[keep], vectors[:, keep]
        self._T = self._vectors * np.sqrt(self._values)
        # The approximation in u: mean T^T alpha, covariance I - T^T R T.
        self._m = self._T.T @ post.weights
        covariance = np.eye(len(self._m)) - self._T.T @ post.precision @ self._T
        roots, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
        self._B = axes * np.sqrt(np.clip(roots, 1e-12, 1.0))
        self._TB = self._T @ self._B
        self._f = self._T @ self._m

    @property
    def size(self) -> int:
        """The number of coordinates: the numerical rank of K."""
        return len(self._m)

    def latent(self, v: Float) -> Float:
        """u at v."""
        return np.asarray(self._m + self._B @ v)

    def value(self, v: Float) -> float:
        """Minus the log density, up to a constant."""
        u = self.latent(v)
        return 0.5 * float(u @ u) - float(log_ndtr(self._y * (self._f + self._TB @ v)).sum())

    def gradient(self, v: Float) -> Float:
        """Of `value`."""
        z = self._y * (self._f + self._TB @ v)
        ratio = np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2.0 * np.pi)
        return np.asarray(self._B.T @ self.latent(v) - self._TB.T @ (self._y * ratio))

    def conditional(self, X: Float) -> tuple[Float, Float]:
        """(A, s) with f(x*) | u ~ N((A u)_i, s_i) at X (m, d)."""
        kernel = kernel_of(self._post)
        k = kernel(X, self._post.centres)
        A = (k @ self._vectors) / np.sqrt(self._values)
        variance = kernel.prior_variance - np.einsum("ij,ij->i", A, A)
        return A, np.maximum(variance, 0.0)

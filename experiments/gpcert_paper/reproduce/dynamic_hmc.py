"""The same posterior by Mici's dynamic HMC (no-U-turn, leapfrog): a second sampler, to check the first.

f = T u with T T^T = K and u ~ N(0, I) a priori. The sampler works in v, u = m + B v, with N(m, B B^T) the
Gaussian approximation at hand: the target is then close to a standard normal, and any v gives the exact
posterior, however poor the approximation is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from gpcert.posterior import Posterior
from gpcert.validation import Float
from gpcert_paper.reproduce.hmc import Chains, summarised
from gpcert_paper.reproduce.models import kernel_of

__all__ = ["dynamic_sample"]

_SEED = 1


def dynamic_sample(post: Posterior, y: Float, X: Float, chains: int, warm_up: int, draws: int) -> Chains:
    """As `hmc.sample`."""
    from mici import adapters, integrators, samplers, systems

    target = _Target(post, y)
    rng = np.random.default_rng(_SEED)
    system = systems.EuclideanMetricSystem(neg_log_dens=target.value, grad_neg_log_dens=target.gradient)
    sampler = samplers.DynamicMultinomialHMC(
        system, integrators.LeapfrogIntegrator(system), rng, max_tree_depth=7
    )
    to_test, variance = target.conditional(X)

    def trace(state: object) -> dict[str, Float]:
        return {"mean": to_test.dot(target.latent(state.pos))}  # type: ignore[attr-defined]

    found = sampler.sample_chains(
        warm_up,
        draws,
        [rng.standard_normal(target.size) for _ in range(chains)],
        adapters=[adapters.DualAveragingStepSizeAdapter(0.8)],
        trace_funcs=[trace],
        display_progress=False,
    )
    return summarised(np.array(found.traces["mean"]), variance)


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
        self._roots = np.clip(roots, 1e-12, 1.0)
        self._B = axes * np.sqrt(self._roots)  # B^T B is diagonal: |u|^2 needs no product with a matrix
        self._TB = self._T @ self._B
        self._f = self._T @ self._m
        self._Bm = self._B.T @ self._m

    @property
    def size(self) -> int:
        """The number of coordinates: the numerical rank of K."""
        return len(self._m)

    def latent(self, v: Float) -> Float:
        """u at v."""
        return np.asarray(self._m + self._B @ v)

    def value(self, v: Float) -> float:
        """Minus the log density, up to a constant."""
        return self.gradient(v)[1]

    def gradient(self, v: Float) -> tuple[Float, float]:
        """Of `value`, and `value`."""
        z = self._y * (self._f + self._TB @ v)
        logs = log_ndtr(z)
        ratio = np.exp(-0.5 * z * z - logs) / np.sqrt(2.0 * np.pi)
        scaled = self._roots * v
        value = float(v @ (0.5 * scaled + self._Bm)) - float(logs.sum())
        return np.asarray(scaled + self._Bm - (self._y * ratio) @ self._TB), value

    def conditional(self, X: Float) -> tuple[Float, Float]:
        """(A, s) with f(x*) | u ~ N((A u)_i, s_i) at X (m, d)."""
        kernel = kernel_of(self._post)
        k = kernel(X, self._post.centres)
        A = (k @ self._vectors) / np.sqrt(self._values)
        variance = kernel.prior_variance - np.einsum("ij,ij->i", A, A)
        return A, np.maximum(variance, 0.0)

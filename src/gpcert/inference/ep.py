"""Expectation propagation for two classes: Rasmussen and Williams (2006), Algorithms 3.5, 3.6 and 5.2.

The fixed point is the book's, the way there is not: all sites are updated at once, and near the fixed point
the cavities are linearised in the sites and the linearised problem solved, which costs n^2 a step and makes
the number of n^3 factorisations small (they converge as in Newton's method). Comments name the lines of
Algorithm 3.5; sites are one vector (2n,), precisions tau first, then shifts nu.

With w = R W^-1 nu and beta_i = (B^-1)_ii, the cavity of site i has variance Sigma_ii/beta_i and mean
mu_i - w_i Sigma_ii/beta_i: the book's differences of precisions, without their cancellation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.inference.approximation import Approximation, Sites
from gpcert.inference.factor import Factor, factorise
from gpcert.inference.laplace import fit_laplace
from gpcert.likelihoods import BinaryLikelihood, Tilted
from gpcert.validation import Float

__all__ = ["fit_ep"]

_EPS = float(np.finfo(np.float64).eps)
_MAX_SWEEPS = 100
_TOLERANCE = 1e-9
_GROWTH = 5.0  # an error this many times the best one sends the iteration back there, with half the step
_LINEAR_BELOW = 1.0  # the largest error at which the linearised cavities are used
_LINEAR_STEPS = 30
_MEMORY = 5  # of Anderson's mixing


@dataclass(frozen=True)
class _Cavities:
    """The posterior with one site at a time left out: means and variances (n,)."""

    mean: Float
    variance: Float

    def updated_sites(self, tilted: Tilted) -> Float:
        """The sites (2n,) that match the tilted moments (lines 8 to 10)."""
        # Variance of the tilted distribution over that of the cavity: in (0, 1] for log-concave likelihoods.
        ratio = np.clip(1.0 + self.variance * tilted.d2, _EPS, 1.0)
        return np.concatenate([np.maximum(-tilted.d2, 0.0), tilted.d1 - self.mean * tilted.d2]) / np.tile(
            ratio, 2
        )


@dataclass(frozen=True)
class _Sweep:
    """Everything about one vector of sites: posterior, cavities, and what the sites would be updated to."""

    sites: Float
    factor: Factor
    mu: Float
    w: Float
    beta: Float
    Sigma: Float
    cavities: _Cavities
    update: Float
    log_marginal_likelihood: float
    rounding: float

    @cached_property
    def scale(self) -> Float:
        """(2n,): makes changes of the sites relative to the posterior's spread."""
        return np.concatenate([self.Sigma, np.sqrt(self.Sigma)])

    @cached_property
    def error(self) -> float:
        """The largest scaled change of a site; 0 at the fixed point."""
        return float(np.abs(self.scale * (self.update - self.sites)).max())

    @property
    def settled(self) -> bool:
        """Whether the error is below the tolerance, widened by the rounding of a matrix of B's trace."""
        return self.error <= _TOLERANCE + self.rounding


def fit_ep(K: Float, y: Float, likelihood: BinaryLikelihood, start: Sites | None = None) -> Approximation:
    """EP approximation for the kernel matrix K (n, n) and labels y = +-1 (n,).

    Always ends; `converged` says whether the sites reached their fixed point. The first sites are Laplace's
    unless those of a similar problem are given.
    """
    first = start if start is not None else fit_laplace(K, y, likelihood).sites
    best, sweeps = _iterate(K, y, likelihood, np.concatenate([first.precision, first.shift]))
    if start is not None and not best.settled:
        return fit_ep(K, y, likelihood)
    return Approximation(
        weights=best.w,
        sites=Sites(*np.split(best.sites, 2)),
        factor=best.factor,
        log_marginal_likelihood=best.log_marginal_likelihood,
        converged=best.settled,
        iterations=sweeps,
    )


def _iterate(K: Float, y: Float, likelihood: BinaryLikelihood, sites: Float) -> tuple[_Sweep, int]:
    """Sweeps from the given sites to the fixed point: the one with the least error, and their number."""
    best = current = _sweep(K, y, likelihood, sites)
    goal = best_goal = _goal(best, y, likelihood)
    step = 1.0
    for count in range(1, _MAX_SWEEPS):
        if best.settled:
            return best, count
        trial = _attempt(K, y, likelihood, current.sites + step * (goal - current.sites))
        if trial is None or not trial.error <= _GROWTH * best.error:
            current, goal, step = best, best_goal, 0.5 * step
            continue
        current, goal = trial, _goal(trial, y, likelihood)
        if trial.error < best.error:
            best, best_goal = current, goal
    return best, _MAX_SWEEPS


def _attempt(K: Float, y: Float, likelihood: BinaryLikelihood, sites: Float) -> _Sweep | None:
    """The sweep, or None where the sites are too large for float64."""
    try:
        return _sweep(K, y, likelihood, sites)
    except InvalidInputError:
        return None


def _sweep(K: Float, y: Float, likelihood: BinaryLikelihood, sites: Float) -> _Sweep:
    """Posterior and cavities of the sites (2n,), and the parallel update of all of them."""
    tau, nu = np.split(sites, 2)
    factor = factorise(K, tau)  # line 15
    w = nu - factor.solve(K @ nu)
    mu = K @ w  # line 17
    beta, Sigma = factor.marginals(K)  # the diagonal of line 16
    variance = Sigma / beta  # lines 5 and 6
    cavities = _Cavities(mu - variance * w, variance)
    tilted = likelihood.tilted(y, cavities.mean, variance)  # line 7
    # Eqs. 3.65, 3.73 and 3.74, where 1 + tau * variance = 1/beta.
    cavity_terms = beta * (tau * cavities.mean**2 - 2.0 * cavities.mean * nu - variance * nu**2)
    log_Z = (
        np.sum(tilted.log_z)
        - factor.half_log_determinant
        + 0.5 * (nu @ mu + np.sum(cavity_terms) - np.sum(np.log(beta)))
    )
    return _Sweep(
        sites=sites,
        factor=factor,
        mu=mu,
        w=w,
        beta=beta,
        Sigma=Sigma,
        cavities=cavities,
        update=cavities.updated_sites(tilted),
        log_marginal_likelihood=float(log_Z),
        rounding=float(_EPS * (len(y) + tau @ K.diagonal())),
    )


def _goal(sweep: _Sweep, y: Float, likelihood: BinaryLikelihood) -> Float:
    """Where to go next (2n,): the fixed point for linearised cavities, or far from it the plain update."""
    if sweep.settled or sweep.error > _LINEAR_BELOW:
        return sweep.update
    n = len(y)
    # Sigma_ij/beta_i without its diagonal: covariances of the other latents with f_i in the cavity of i.
    root = np.where(sweep.factor.root > 0.0, sweep.factor.root, np.inf)
    P = sweep.factor.inverse / -np.multiply.outer(root * sweep.beta, root)
    P[np.diag_indices(n)] = 0.0
    Q = P * P
    target = max(0.1 * sweep.error**2, 0.1 * _TOLERANCE)
    sites, update = sweep.sites, sweep.update
    history: deque[tuple[Float, Float]] = deque([(sites, update)], maxlen=_MEMORY + 1)
    for _ in range(_LINEAR_STEPS):
        sites = _mix(history, sweep.scale)
        dtau, dnu = np.split(sites - sweep.sites, 2)
        shrunk = Q @ dtau
        variance = sweep.cavities.variance - shrunk
        if not (variance > 0.1 * sweep.cavities.variance).all():
            return sweep.update
        mean = sweep.cavities.mean + P @ (dnu - sweep.mu * dtau) + sweep.w * shrunk
        update = _Cavities(mean, variance).updated_sites(likelihood.tilted(y, mean, variance))
        error = np.abs(sweep.scale * (update - sites)).max()
        if error <= target:
            break
        history.append((sites, update))
    return update


def _mix(history: deque[tuple[Float, Float]], scale: Float) -> Float:
    """The next sites (2n,) by Anderson's mixing of the (sites, update) in the history, newest last.

    The combination of past changes that best cancels the present residual. Where it would make a precision
    negative the plain update is taken, which cannot.
    """
    update = history[-1][1]
    if len(history) == 1:
        return update
    residuals = np.array([u - s for s, u in history])
    updates = np.array([u for _, u in history])
    changes = scale * np.diff(residuals, axis=0)
    gamma = np.linalg.lstsq(changes.T, scale * residuals[-1], rcond=1e-10)[0]
    mixed = update - gamma @ np.diff(updates, axis=0)
    negative = mixed[: len(mixed) // 2] < 0.0
    return np.where(np.tile(negative, 2), update, mixed)

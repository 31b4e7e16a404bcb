"""Expectation propagation for two classes: Rasmussen and Williams (2006), Algorithms 3.5, 3.6 and 5.2.

The fixed point is the book's, the way there is not: all sites are updated at once, the cavities are
linearised in the sites, and the fixed point for linearised cavities is the next goal. Finding it costs n^2 a
step, and the n^3 factorisations become few, since they converge as in Newton's method. Comments name lines of
Algorithm 3.5; sites are one vector (2n,), precisions tau first, then shifts nu.

With w = R W^-1 nu and beta_i = (B^-1)_ii, the cavity of site i has variance Sigma_ii/beta_i and mean
mu_i - w_i Sigma_ii/beta_i: the book's differences of precisions, without their cancellation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.inference.approximation import Approximation, Factor, Sites, factorise
from gpcert.inference.laplace import fit_laplace
from gpcert.likelihoods import BinaryLikelihood, Tilted
from gpcert.validation import Float

_EPS = float(np.finfo(np.float64).eps)
_MAX_SWEEPS = 100
_SHORTEST_STEP = 0.3  # to which a step is shortened that does not reduce the error
_LINEAR_STEPS = 40
_GROWTH = 5.0  # of the error, at which the linearised problem is started again with half the step
_MEMORY = 5  # of Anderson's mixing
_NEGLIGIBLE = 1e-50  # root of a site precision that no other site notices


@dataclass(frozen=True)
class _Cavities:
    """The posterior with one site at a time left out: means and variances (n,)."""

    mean: Float
    variance: Float

    def updated_sites(self, tilted: Tilted) -> Float:
        """The sites (2n,) that match the tilted moments (lines 8 to 10)."""
        # Variance of the tilted distribution over that of the cavity: in (0, 1] for log-concave likelihoods.
        ratio = np.clip(1.0 + self.variance * tilted.d2, _EPS, 1.0)
        tau = np.maximum(-tilted.d2, 0.0) / ratio
        nu = (tilted.d1 - self.mean * tilted.d2) / ratio
        return np.concatenate([tau, nu])


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

    def settled(self, tolerance: float) -> bool:
        """Whether the error is below the tolerance, widened by the rounding of a matrix of B's trace."""
        return self.error <= tolerance + self.rounding


def fit_ep(
    K: Float,
    y: Float,
    likelihood: BinaryLikelihood,
    start: Sites | None = None,
    *,
    tolerance: float = 1e-9,
) -> Approximation:
    """EP approximation for the kernel matrix K (n, n) and labels y = +-1 (n,).

    Always ends; `converged` says whether the sites reached their fixed point: whether none would change by
    more than `tolerance`, relative to the posterior's spread. There the log marginal likelihood is
    stationary, so that its error is of the order of the tolerance squared. The first sites are Laplace's
    unless those of a similar problem are given.
    """
    first = start if start is not None else fit_laplace(K, y, likelihood).sites
    best, sweeps = _iterate(K, y, likelihood, np.concatenate([first.precision, first.shift]), tolerance)
    converged = best.settled(tolerance)
    if start is not None and not converged:
        return fit_ep(K, y, likelihood, tolerance=tolerance)
    return Approximation(
        weights=best.w,
        sites=Sites(*np.split(best.sites, 2)),
        factor=best.factor,
        log_marginal_likelihood=best.log_marginal_likelihood,
        converged=converged,
        iterations=sweeps,
    )


def _iterate(
    K: Float, y: Float, likelihood: BinaryLikelihood, sites: Float, tolerance: float
) -> tuple[_Sweep, int]:
    """Sweeps from the given sites towards the fixed point: the one with the least error, and their number."""
    best = current = _sweep(K, y, likelihood, sites)
    goal = _goal(current, y, likelihood, tolerance)
    step = 1.0
    for count in range(1, _MAX_SWEEPS):
        if best.settled(tolerance):
            return best, count
        trial = _attempt(K, y, likelihood, current.sites + step * (goal - current.sites))
        # The largest residual need not fall along the way: where short steps do not help, go on from there.
        if trial is None or (trial.error >= current.error and step > _SHORTEST_STEP):
            step *= 0.5
            continue
        current, goal = trial, _goal(trial, y, likelihood, tolerance)
        step = min(1.0, 2.0 * step)
        if current.error < best.error:
            best = current
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


def _goal(sweep: _Sweep, y: Float, likelihood: BinaryLikelihood, tolerance: float) -> Float:
    """Where to go next (2n,): the fixed point for linearised cavities, as far as it is found."""
    if sweep.settled(tolerance):
        return sweep.update
    cavities_at = _linearised(sweep)
    target = max(0.1 * sweep.error**2, 0.1 * tolerance)
    history = deque([(sweep.sites, sweep.update)], maxlen=_MEMORY + 1)
    nearest, least = sweep.update, sweep.error
    step = 1.0
    for _ in range(_LINEAR_STEPS):
        sites = _mix(history, sweep.scale, step)
        cavities = cavities_at(sites)
        error = np.inf
        if cavities is not None:
            update = cavities.updated_sites(likelihood.tilted(y, cavities.mean, cavities.variance))
            error = float(np.abs(sweep.scale * (update - sites)).max())
        if not error <= _GROWTH * least:
            step *= 0.5
            history = deque([(sweep.sites, sweep.update)], maxlen=_MEMORY + 1)
            continue
        if error < least:
            nearest, least = update, error
        if error <= target:
            break
        history.append((sites, update))
    return nearest


def _linearised(sweep: _Sweep) -> Callable[[Float], _Cavities | None]:
    """The cavities as a function of the sites (2n,), in first order around the sweep's; None: out of range.

    Let C_ij = Sigma_ij/beta_i, the covariance of f_i and f_j in the cavity of i. A change of another site j
    changes its variance by -C_ij^2 dtau_j and its mean by C_ij (dnu_j - mu_j dtau_j) + C_ij^2 w_i dtau_j.
    It is the precision 1/variance and the shift mean/variance that are linearised, which are exactly linear
    where the prior is weak. Sigma_ij = -(B^-1)_ij / (tau_i tau_j)^1/2 for i != j.
    """
    mean, variance, beta = sweep.cavities.mean, sweep.cavities.variance, sweep.beta
    root = np.where(sweep.factor.root > _NEGLIGIBLE, sweep.factor.root, np.inf)
    inverse = sweep.factor.inverse
    squared = inverse * inverse

    def at(sites: Float) -> _Cavities | None:
        dtau, dnu = np.split(sites - sweep.sites, 2)
        u, v = (dnu - sweep.mu * dtau) / root, dtau / root**2
        moved = (beta * u - inverse @ u) / (root * beta)
        tightened = (squared @ v - beta**2 * v) / (root * beta) ** 2 / variance
        growth = 1.0 + tightened  # of the precision
        if not (growth > 0.1).all():
            return None
        shifted = mean * growth + moved + sweep.w * tightened * variance
        return _Cavities(shifted / growth, variance / growth)

    return at


def _mix(history: deque[tuple[Float, Float]], scale: Float, step: float) -> Float:
    """The next sites (2n,) by Anderson's mixing of the (sites, update) in the history, newest last.

    The combination of past changes that best cancels the present residual, then a step along what is left.
    Where it would make a precision negative the plain step is taken, which cannot.
    """
    sites, update = history[-1]
    plain = sites + step * (update - sites)
    if len(history) == 1:
        return plain
    positions = np.array([s for s, _ in history])
    residuals = np.array([u - s for s, u in history])
    moves, changes = np.diff(positions, axis=0), np.diff(residuals, axis=0)
    gamma = np.linalg.lstsq((scale * changes).T, scale * residuals[-1], rcond=1e-10)[0]
    mixed = plain - gamma @ (moves + step * changes)
    negative = mixed[: len(mixed) // 2] < 0.0
    return np.where(np.tile(negative, 2), plain, mixed)

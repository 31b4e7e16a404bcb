"""Expectation propagation: its fixed point against a slow sequential reference, and its safety."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit, log_ndtr, logsumexp
from test_laplace import LINKS, problem

import gpcert as gc
from gpcert.inference import ep
from gpcert.inference.approximation import Sites
from gpcert.inference.ep import fit_ep

GRID = np.linspace(-12.0, 12.0, 4001)


def slow_moments(link: object, y: float, mean: float, variance: float) -> tuple[float, float, float]:
    """log Z, mean, variance of N(f; mean, variance) p(y|f)/Z by a trapezoid rule of 4,001 nodes."""
    f = mean + np.sqrt(variance) * GRID
    log_p = log_expit(y * f) if isinstance(link, gc.Logit) else log_ndtr(link.scale * y * f)
    log_terms = log_p - 0.5 * GRID**2 - 0.5 * np.log(2 * np.pi) + np.log(GRID[1] - GRID[0])
    log_Z = logsumexp(log_terms)
    weights = np.exp(log_terms - log_Z)
    centre = weights @ f
    return log_Z, centre, weights @ (f - centre) ** 2


def slow_ep(K: np.ndarray, y: np.ndarray, link: object) -> tuple[float, np.ndarray, np.ndarray]:
    """Algorithm 3.5, site after site, with explicit inverses: evidence (eq. 3.65), mu, Sigma."""
    n = len(y)
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(200):
        before = np.concatenate([tau, nu])
        for i in range(n):
            Sigma = np.linalg.inv(np.eye(n) + K * tau) @ K
            tau_cavity = 1 / Sigma[i, i] - tau[i]
            nu_cavity = (Sigma @ nu)[i] / Sigma[i, i] - nu[i]
            _, centre, spread = slow_moments(link, y[i], nu_cavity / tau_cavity, 1 / tau_cavity)
            tau[i], nu[i] = 1 / spread - tau_cavity, centre / spread - nu_cavity
        if np.abs(np.concatenate([tau, nu]) - before).max() < 1e-12:
            break
    Sigma = np.linalg.inv(np.eye(n) + K * tau) @ K
    mu = Sigma @ nu
    v = 1 / (1 / np.diag(Sigma) - tau)
    m = v * (mu / np.diag(Sigma) - nu)
    log_Z = sum(slow_moments(link, *args)[0] for args in zip(y, m, v, strict=True))
    T = K + np.diag(1 / tau)
    target = nu / tau
    evidence = log_Z - 0.5 * np.linalg.slogdet(T)[1] - 0.5 * target @ np.linalg.solve(T, target)
    evidence += 0.5 * np.sum(np.log(v + 1 / tau)) + 0.5 * np.sum((m - target) ** 2 / (v + 1 / tau))
    return evidence, mu, Sigma


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_slow_sequential_reference(link: object, seed: int) -> None:
    K, y = problem(seed, n=14, kernel=gc.Matern32(1.0, 5.0))
    result = fit_ep(K, y, link)
    evidence, mu, Sigma = slow_ep(K, y, link)
    assert result.converged
    np.testing.assert_allclose(result.log_marginal_likelihood, evidence, rtol=1e-8)
    np.testing.assert_allclose(K @ result.weights, mu, rtol=0, atol=1e-8)
    np.testing.assert_allclose(K - K @ result.precision() @ K, Sigma, rtol=0, atol=1e-8)


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("variance", [1e-3, 1.0, 1e3])
def test_exact_for_one_point(link: object, variance: float) -> None:
    """With one site EP is exact: evidence 1/2 and the moments of the true posterior."""
    result = fit_ep(np.array([[variance]]), np.array([-1.0]), link)
    _, centre, spread = slow_moments(link, -1.0, 0.0, variance)
    assert result.log_marginal_likelihood == pytest.approx(np.log(0.5), rel=1e-9)
    assert variance * result.weights[0] == pytest.approx(centre, rel=1e-6)
    assert variance - variance**2 * result.precision()[0, 0] == pytest.approx(spread, rel=1e-6)


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_any_start_leads_to_the_same_fixed_point(link: object) -> None:
    K, y = problem(n=50, kernel=gc.RBF(1.0, 100.0))
    reference = fit_ep(K, y, link)
    random = np.random.default_rng(1)
    for size in (1e-6, 1.0, 1e3):
        result = fit_ep(K, y, link, Sites(size * random.random(50), size * random.normal(size=50)))
        assert result.converged
        np.testing.assert_allclose(result.weights, reference.weights, rtol=0, atol=1e-7)


def test_start_at_the_answer_needs_one_sweep() -> None:
    K, y = problem(n=50)
    first = fit_ep(K, y, gc.Probit())
    assert fit_ep(K, y, gc.Probit(), first.sites).iterations == 1 < first.iterations


def test_linearised_cavities_make_sweeps_converge_quadratically() -> None:
    """Order of convergence: the error of each sweep is at most some constant times the square of the last."""
    K, y = problem(n=80, kernel=gc.RBF(1.0, 50.0))
    link = gc.Probit()
    sites = fit_ep(K, y, link).sites
    exact = np.concatenate([sites.precision, sites.shift])
    errors = []
    for factor in (1.2, 1.02, 1.002):
        sweep = ep._sweep(K, y, link, factor * exact)
        following = ep._sweep(K, y, link, ep._goal(sweep, y, link, 1e-12))
        errors.append((sweep.error, following.error))
    assert all(after <= 3.0 * before**2 for before, after in errors)


def test_ends_and_says_so_when_sweeps_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    K, y = problem(n=50, kernel=gc.RBF(1.0, 1e4))
    monkeypatch.setattr(ep, "_MAX_SWEEPS", 2)
    result = fit_ep(K, y, gc.Probit())
    assert not result.converged
    assert result.iterations == 2
    assert np.isfinite(result.log_marginal_likelihood)
    assert np.isfinite(result.precision()).all()


@settings(max_examples=60, deadline=None)
@given(
    log_lengthscale=st.floats(-6, 6),
    log_variance=st.floats(-8, 8),
    n=st.integers(2, 25),
    duplicates=st.booleans(),
    link=st.sampled_from(LINKS),
    seed=st.integers(0, 100),
)
def test_extremes_are_finite(
    log_lengthscale: float, log_variance: float, n: int, duplicates: bool, link: object, seed: int
) -> None:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    y = np.where(random.random(n) < 0.3, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = gc.RBF(10.0**log_lengthscale, 10.0**log_variance)(X)
    result = fit_ep(K, y, link)
    for values in (result.weights, result.precision(), result.gradient_matrix(K)):
        assert np.isfinite(values).all()
    assert (result.site_precision >= 0).all()
    assert result.log_marginal_likelihood < 0
    assert result.converged

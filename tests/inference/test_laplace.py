"""Laplace's method: the mode, the approximation around it, and what must hold of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.inference.approximation import Sites
from gpcert.inference.laplace import fit_laplace

LINKS = [gc.Probit(), gc.Probit(scale=2.5), gc.Logit()]


def problem(seed: int = 0, n: int = 30, d: int = 2, kernel: object = None) -> tuple[np.ndarray, np.ndarray]:
    """A kernel matrix (n, n) and labels (n,) with some noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return (kernel or gc.RBF(1.0, 4.0))(X), y


def slow_laplace(K: np.ndarray, y: np.ndarray, link: object) -> tuple[np.ndarray, np.ndarray, float]:
    """The mode by plain Newton steps with explicit inverses; W; the evidence of eq. 3.32."""
    f = np.zeros(len(y))
    for _ in range(50):
        terms = link.log_likelihood(y, f)
        W = np.diag(-terms.d2)
        f = np.linalg.solve(np.eye(len(y)) + K @ W, K @ (W @ f + terms.d1))
    terms = link.log_likelihood(y, f)
    _, log_det = np.linalg.slogdet(np.eye(len(y)) - K * terms.d2)
    quadratic = f @ np.linalg.solve(K, f)
    return f, -terms.d2, float(terms.value.sum() - 0.5 * quadratic - 0.5 * log_det)


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_slow_reference(link: object, seed: int) -> None:
    K, y = problem(seed, kernel=gc.Matern12(0.7, 3.0))
    result = fit_laplace(K, y, link)
    f, W, evidence = slow_laplace(K, y, link)
    assert result.converged
    np.testing.assert_allclose(K @ result.weights, f, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.site_precision, W, rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.log_marginal_likelihood, evidence, rtol=1e-11)
    R = np.linalg.inv(K + np.diag(1 / W))
    np.testing.assert_allclose(result.precision(), R, rtol=0, atol=1e-9 * np.abs(R).max())


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_mode_is_stationary_and_precision_symmetric(link: object) -> None:
    K, y = problem()
    result = fit_laplace(K, y, link)
    np.testing.assert_allclose(result.weights, link.log_likelihood(y, K @ result.weights).d1, atol=1e-9)
    R = result.precision()
    np.testing.assert_array_equal(R, R.T)
    G = result.gradient_matrix(K)
    np.testing.assert_allclose(G, G.T, rtol=0, atol=1e-13)


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_any_start_leads_to_the_one_mode(link: object) -> None:
    K, y = problem(n=60, kernel=gc.RBF(1.0, 400.0))
    reference = fit_laplace(K, y, link)
    random = np.random.default_rng(1)
    for size in (1e-3, 1.0, 1e3):
        start = Sites(size * random.random(60), size * random.normal(size=60))
        result = fit_laplace(K, y, link, start)
        assert result.converged
        np.testing.assert_allclose(result.weights, reference.weights, rtol=0, atol=1e-8)


def test_start_at_the_answer_needs_one_step() -> None:
    K, y = problem(n=60)
    first = fit_laplace(K, y, gc.Probit())
    again = fit_laplace(K, y, gc.Probit(), first.sites)
    assert again.iterations <= 2 < first.iterations


def test_probit_scale_is_a_scale_of_the_latent() -> None:
    """Phi(s f) with f ~ N(0, K) is Phi(g) with g = s f ~ N(0, s^2 K)."""
    K, y = problem()
    scaled, plain = fit_laplace(K, y, gc.Probit(scale=3.0)), fit_laplace(9.0 * K, y, gc.Probit())
    np.testing.assert_allclose(scaled.log_marginal_likelihood, plain.log_marginal_likelihood, rtol=1e-10)
    np.testing.assert_allclose(3.0 * (K @ scaled.weights), 9.0 * K @ plain.weights, rtol=0, atol=1e-8)


def test_one_point_has_the_mode_of_one_variable() -> None:
    K = np.array([[2.0]])
    result = fit_laplace(K, np.array([1.0]), gc.Logit())
    a = result.weights[0]
    assert a == pytest.approx(1 / (1 + np.exp(2.0 * a)), rel=1e-9)


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
    result = fit_laplace(K, y, link)
    for values in (result.weights, result.precision(), result.gradient_matrix(K)):
        assert np.isfinite(values).all()
    assert (result.site_precision >= 0).all()
    assert result.log_marginal_likelihood < 0

"""Parity with scikit-learn's GaussianProcessClassifier: Laplace's method with the logistic likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

import gpcert as gc
from gpcert.inference.laplace import fit_laplace
from gpcert.inference.train import marginal_likelihood

ARD = np.array([0.8, 2.0])
# (ours, theirs, where each entry of their sorted theta stands in ours)
PAIRS = [
    (gc.RBF(0.9, 5.0), ConstantKernel(5.0) * RBF(0.9), [1, 0]),
    (gc.RBF(ARD, 5.0), ConstantKernel(5.0) * RBF(ARD), [2, 0, 1]),
    (gc.Matern12(0.9, 5.0), ConstantKernel(5.0) * Matern(0.9, nu=0.5), [1, 0]),
    (gc.Matern32(ARD, 5.0), ConstantKernel(5.0) * Matern(ARD, nu=1.5), [2, 0, 1]),
    (gc.Matern52(0.9, 5.0), ConstantKernel(5.0) * Matern(0.9, nu=2.5), [1, 0]),
    (gc.RationalQuadratic(0.9, 5.0, 2.0), ConstantKernel(5.0) * RationalQuadratic(0.9, 2.0), [1, 2, 0]),
]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X, X_test = random.normal(size=(60, 2)), 1.5 * random.normal(size=(40, 2))
    y = (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=60) > 0).astype(int)
    return X, y, X_test


@pytest.mark.parametrize(("ours", "theirs", "places"), PAIRS, ids=lambda pair: str(pair))
def test_parity(
    data: tuple[np.ndarray, ...], ours: gc.RBF, theirs: ConstantKernel, places: list[int]
) -> None:
    X, y, X_test = data
    reference = GaussianProcessClassifier(theirs, optimizer=None).fit(X, y)
    model = gc.GPClassifier(ours, "logit", max_evals=0).fit(X, y)

    value, gradient = reference.log_marginal_likelihood(theirs.theta, eval_gradient=True, clone_kernel=False)
    evaluation = marginal_likelihood(X, 2.0 * y - 1.0, ours, gc.Logit(), fit_laplace)(ours)
    assert model.log_marginal_likelihood_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(evaluation.gradient[places], gradient, rtol=0, atol=1e-4)

    inner = reference.base_estimator_
    mean, variance = model.posterior_.latent(X_test)
    k = inner.kernel_(inner.X_train_, X_test)
    np.testing.assert_allclose(mean, k.T @ (inner.y_train_ - inner.pi_), rtol=0, atol=1e-5)
    v = np.linalg.solve(inner.L_, inner.W_sr_[:, None] * k)
    np.testing.assert_allclose(variance, theirs.diag(X_test) - (v**2).sum(axis=0), rtol=0, atol=1e-5)

    # scikit-learn integrates the logistic as a sum of five error functions.
    difference = model.predict_proba(X_test) - reference.predict_proba(X_test)
    assert np.abs(difference).max() < 5e-4


def test_our_optimum_is_at_least_as_good(data: tuple[np.ndarray, ...]) -> None:
    X, y, _ = data
    reference = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(1.0)).fit(X, y)
    model = gc.GPClassifier(gc.RBF(), "logit", max_evals=40).fit(X, y)
    assert model.log_marginal_likelihood_ >= reference.log_marginal_likelihood_value_ - 1e-6

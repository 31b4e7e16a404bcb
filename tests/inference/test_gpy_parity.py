"""Parity with GPy: expectation propagation with the probit likelihood. Needs the `gpy` extra."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("default"),  # GPy's own warnings are not ours
]

ARD = np.array([0.8, 2.0])


@pytest.mark.parametrize(
    ("name", "ours"),
    [("RBF", gc.RBF), ("Matern32", gc.Matern32), ("Matern52", gc.Matern52), ("Exponential", gc.Matern12)],
)
@pytest.mark.parametrize("lengthscale", [1.1, ARD], ids=["isotropic", "ard"])
@pytest.mark.parametrize("variance", [1.0, 10.0])
def test_parity(name: str, ours: type[gc.RBF], lengthscale: float | np.ndarray, variance: float) -> None:
    import GPy

    random = np.random.default_rng(0)
    X, X_test = random.normal(size=(50, 2)), 1.5 * random.normal(size=(30, 2))
    y = (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=50) > 0).astype(int)
    kernel = getattr(GPy.kern, name)(2, variance, lengthscale, ARD=np.ndim(lengthscale) > 0)
    reference = GPy.core.GP(
        X,
        y[:, None].astype(float),
        kernel,
        GPy.likelihoods.Bernoulli(),
        inference_method=GPy.inference.latent_function_inference.EP(epsilon=1e-10, max_iters=1000),
    )
    model = gc.GPClassifier(ours(lengthscale, variance), "probit", "ep", max_evals=0).fit(X, y)

    assert model.converged_
    assert model.log_marginal_likelihood_ == pytest.approx(float(reference.log_likelihood()), rel=1e-6)
    mean, spread = reference._raw_predict(X_test)
    ours_mean, ours_variance = model.posterior_.latent(X_test)
    np.testing.assert_allclose(ours_mean, mean[:, 0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours_variance, spread[:, 0], rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        model.predict_proba(X_test)[:, 1], reference.predict(X_test)[0][:, 0], rtol=0, atol=1e-5
    )

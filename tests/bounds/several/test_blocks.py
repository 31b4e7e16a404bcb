"""Blocks of classes are kept as their symmetric halves: every covariance is that of the stored precision."""

from fractions import Fraction

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.several.tangents.expansion import latents_at
from gpcert.likelihoods import Softmax


@pytest.mark.parametrize("spread", [0.0, 12.0])  # of the entries' exponents: cancellation, small beside large
def test_covariances_of_blocks_that_are_not_symmetric_are_enclosed_exactly(spread):
    rng = np.random.default_rng(int(spread))
    C, n = 3, 7
    R = rng.normal(size=(C * n, C * n)) * 10.0 ** rng.uniform(-spread, 0.0, (C * n, C * n))
    R = (0.05 * (R + R.T)).reshape(C, n, C, n).transpose(0, 2, 1, 3)
    assert np.abs(R[0, 1] - R[0, 1].T).max() > 0.01
    X, weights = rng.normal(size=(n, 2)), rng.normal(size=(n, C))
    post = gc.Posterior(X, weights, R, kernel=gc.RBF(1.0, 2.0), likelihood=Softmax())
    model, k = class_model_of(post), rng.uniform(0.0, 2.0, n)
    found = latents_at(model, k, np.zeros(n), 0.0)
    exact = [Fraction(float(x)) for x in k]
    for c in range(C):
        for e in range(C):
            form = sum(
                exact[i] * Fraction(float(post.precision[c, e, i, j])) * exact[j]
                for i in range(n)
                for j in range(n)
            )
            truth = Fraction(float(model.prior[c])) * (c == e) - form
            error = Fraction(float(found.covariance_error))
            assert abs(Fraction(float(found.covariance[c, e])) - truth) <= error
    assert found.covariance_error < 1e-12
    for (c, e), product in zip(model.pairs, found.products, strict=True):  # half the gradient of k^T R_ce k
        S = 0.5 * (post.precision[c, e] + post.precision[c, e].T)
        np.testing.assert_allclose(product, S @ k, rtol=0, atol=1e-12)

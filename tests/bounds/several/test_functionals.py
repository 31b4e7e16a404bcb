"""M3: functionals of correlated latents whose precision needs a shift that can be seen."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.facts.classes import class_model_of
from gpcert.posterior import Posterior
from gpcert.rounding import gamma
from helpers.oracle import bits
from judge import Truth


def stiff(kernel: gc.Kernel, bend: float, n: int = 20) -> Posterior:
    """Two correlated latents with centres close together; one eigenvalue of the precision lies `bend` times
    the shift of the first check below 0.
    """
    X, s2 = np.linspace(0, 0.2, n)[:, None], kernel.prior_variance
    R = np.linalg.inv(kernel(X) + 1e-6 * s2 * np.eye(n))
    values, vectors = np.linalg.eigh(0.5 * (R + R.T))
    first, w = 8 * gamma(2 * n + 3) * np.trace(R), vectors[:, -1]
    R = R - (values[-1] + bend * first) * np.outer(w, w)
    precision = np.zeros((2, 2, n, n))
    precision[0, 0] = precision[1, 1] = 0.5 * (R + R.T)
    weights = np.zeros((n, 2))
    weights[:, 1] = 0.32 / s2
    return Posterior(X, weights, precision, kernel=kernel, likelihood="softmax", mean=np.zeros(2))


@pytest.mark.parametrize(
    ("kernel", "x", "bend"),
    [
        (gc.Matern32(1.0, 40.0), 0.5, 900.0),
        (gc.Matern32(1.0, 40.0), 0.8, 1000.0),
        (gc.Matern52(1.0, 40.0), 0.8, 3000.0),
        (gc.RBF(1.0, 40.0), 0.5, 900.0),
    ],
)
def test_no_label_is_safe_above_its_probability(kernel: gc.Kernel, x: float, bend: float) -> None:
    """The precision at a reference is that of the model: with its shift, S and P came out wrong there."""
    post, end = stiff(kernel, bend), x + 1e-3
    assert class_model_of(post).shift * 20 * kernel.prior_variance > 1e-4
    with bits(160):
        p = float(Truth(post).probability(np.array([end]), 1).upper())
    for above in (2e-6, 1e-5, 2.5e-5, 1e-4):
        verdict = gc.certify(post, [x], gc.Box([x], [end]), p + above, max_nodes=20, tolerance=1e-6)
        assert verdict.status is not gc.VerdictStatus.SAFE
    below = gc.certify(post, [x], gc.Box([x], [end]), p - 0.2, max_nodes=20)
    assert below.status is gc.VerdictStatus.SAFE


def test_variances_whose_square_no_double_holds_are_answered() -> None:
    post = stiff(gc.Matern32(1.0, 1e200), 1.0, n=3)
    found = gc.probability_range(post, gc.Box([0.0], [0.1]), 1, max_nodes=3)
    with bits(160):
        truth = Truth(post).probability(np.array([0.05]), 1)
        assert truth >= found.min.lower
        assert truth <= found.max.upper

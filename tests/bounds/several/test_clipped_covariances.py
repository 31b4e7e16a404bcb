"""Stored posteriors of several classes whose covariances are not positive semidefinite (M4).

The predictor raises variances below 0 to 0; bounds that took semidefiniteness for granted were wrong here.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc


def lopsided(v=0.05, e=0.001, s2=100.0):
    """Class 1 has a negative raw variance next to the centre: its covariances look independent there."""
    R = np.zeros((3, 3, 1, 1))
    R[0, 0] = R[2, 2] = (1 - v) / s2
    R[0, 2] = R[2, 0] = -(v - e) / s2
    R[1, 1] = (1 + v - 2 * e) / s2
    weights = [[0.05 / s2, 0.0, 0.0]]
    return gc.Posterior(
        [[0.0]], weights, R, kernel=gc.RBF(1.0, s2), likelihood="softmax", mean=[0.1, 0.0, -0.3]
    )


def test_a_label_that_changes_is_not_called_safe():
    post, region = lopsided(), gc.Box([0.0], [0.25])
    p = post.probability(np.linspace(0.0, 0.25, 101)[:, None])
    assert (p.argmax(axis=1) != p[-1].argmax()).any()
    assert gc.certify(post, [0.25], region).status != "safe"


@pytest.mark.parametrize("shape", [(2, 1, 1), (2, 2, 1, 1)], ids=["independent", "correlated"])
def test_two_classes_with_a_clipped_variance(shape):
    """Each variance is clipped, not their sum."""
    R = np.zeros(shape)
    R[(0, 0, 0) if len(shape) == 3 else (0, 0, 0, 0)] = 3.0
    post = gc.Posterior([[0.0]], [[0.0, 1.5]], R, kernel=gc.RBF(), likelihood="softmax")
    region = gc.Box([-0.1], [0.1])
    answer = gc.probability_range(post, region, label=1, max_seconds=2)
    p = post.probability(np.linspace(-0.1, 0.1, 41)[:, None])[:, 1]
    assert answer.lower <= p.min()
    assert answer.upper >= p.max()
    assert gc.certify(post, [0.0], region, threshold=0.79).status != "safe"


@pytest.mark.parametrize("seed", range(6))
def test_ranges_of_three_classes_with_excess_precision(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4, 2))
    K = gc.RBF(1.0, 2.0)(X)
    R = np.stack([rng.uniform(0.9, 1.4) * np.linalg.inv(K + 0.01 * np.eye(4)) for _ in range(3)])
    post = gc.Posterior(
        X,
        rng.standard_normal((4, 3)),
        0.5 * (R + R.transpose(0, 2, 1)),
        kernel=gc.RBF(1.0, 2.0),
        likelihood="softmax",
    )
    region = gc.Ball(X[0], 0.1)
    answer = gc.probability_range(post, region, label=0, max_seconds=1)
    points = X[0] + rng.uniform(-0.1, 0.1, (200, 2))
    points[0] = X[0]
    p = post.probability(points)[:, 0]
    assert answer.lower <= p.min() + 1e-8
    assert answer.upper >= p.max() - 1e-8

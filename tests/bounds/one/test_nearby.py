"""Local searches in single precision see what the objective in double precision says."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds import BoundFactory, shape_of


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("standing", [0, 7])
def test_values_and_gradients(offset: float, standing: int) -> None:
    """Far from the origin, too; and where most centres are so far away that their covariances vanish."""
    rng = np.random.default_rng(standing)
    X = rng.normal(size=(90, 40))
    X[60:] *= 12.0
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    post = gc.GPClassifier(gc.RBF(5.0, 30.0), max_evals=0).fit(X + offset, y).posterior_
    moving = np.arange(40) >= standing
    x = X[3] + offset
    region = gc.Ball(x, 0.5, features=np.flatnonzero(moving))
    for bound in BoundFactory(post).pair(1, shape_of(region, moving), x, moving):
        near = bound.nearby(x[moving])
        for _ in range(5):
            z = x[moving] + rng.uniform(-0.5, 0.5, size=int(moving.sum()))
            value, gradient = near(z)
            expected, slope = bound.objective(z)
            assert abs(value - expected) < 2e-4
            assert np.abs(gradient - slope).max() < 1e-3 * np.abs(slope).max()

"""Softmax over independent latents with a kernel each, of any kind, precisions of either sign (M5)."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from helpers.several import Setting

KERNELS = {
    "rbf": gc.RBF,
    "matern12": gc.Matern12,
    "matern32": gc.Matern32,
    "matern52": gc.Matern52,
    "rational": gc.RationalQuadratic,
    "sum": lambda scale, variance: gc.RBF(scale, variance) + gc.Matern32(2.0 * scale, 0.5),
    "product": lambda scale, variance: gc.RBF(scale, variance) * gc.Matern52(3.0 * scale, 1.0),
}


def model(setting: Setting, spread: float = 1.0, excess: float = 0.0, equal: bool = False) -> gc.Posterior:
    """Kinds in `setting.kind` (several: in turn); `spread`, `excess` as in test_indefinite_softmax."""
    rng = np.random.default_rng(setting.seed)
    n, C, d = setting.n, setting.classes, setting.d
    X = rng.standard_normal((n, d))
    kinds = setting.kind.split()
    kernels, weights, precisions = [], [], []
    for c in range(C):
        scale, variance = 10.0 ** rng.uniform(-0.2, 0.5, d), 10.0 ** rng.uniform(-0.5, 1.0)
        kernel = kernels[0] if equal and kernels else KERNELS[kinds[c % len(kinds)]](scale, variance)
        inverse = np.linalg.inv(np.linalg.cholesky(kernel(X) + 1e-4 * np.eye(n)))
        A = rng.standard_normal((n, n)) * np.sqrt(spread / n)
        R = inverse.T @ ((1.0 + excess) * np.eye(n) - A @ A.T) @ inverse
        kernels.append(kernel)
        precisions.append(0.5 * (R + R.T))
        weights.append(inverse.T @ rng.standard_normal(n))
    mean = rng.standard_normal(C)
    return gc.Posterior(
        X, np.stack(weights, axis=1), np.stack(precisions), kernel=kernels, likelihood="softmax", mean=mean
    )


def test_equal_gaussian_kernels_agree_with_the_shared_one():
    """Two ways, by a kernel that differs from the others in the last place."""
    listed = model(Setting("rbf", 3, 12, 2, 0.1, 3), equal=True)
    kernel = listed.kernels[0]
    parts = listed.centres, listed.weights, listed.precision
    others = [kernel, kernel, gc.RBF(kernel.lengthscale, kernel.variance * (1.0 + 4e-16))]
    shared, listed = (
        gc.Posterior(*parts, kernel=each, likelihood="softmax", mean=listed.mean) for each in (kernel, others)
    )
    assert isinstance(listed.kernel, tuple)
    region = gc.Ball(shared.centres[0] + 0.1, 0.03)
    mine, theirs = (gc.probability_range(post, region, 0, tolerance=3e-3) for post in (shared, listed))
    for a, b in ((mine.min, theirs.min), (mine.max, theirs.max)):
        assert max(a.lower, b.lower) <= min(a.upper, b.upper) + 1e-9
    assert mine.status == theirs.status == "converged"


def test_correlated_latents_with_a_kernel_each_are_refused():
    kernels = [gc.Matern32(), gc.Matern32(), gc.RBF()]
    post = gc.Posterior(
        [[0.0]], [[0.1, 0.0, 0.0]], np.zeros((3, 3, 1, 1)), kernel=kernels, likelihood="softmax"
    )
    with pytest.raises(gc.InvalidInputError, match="one kernel for a softmax with correlated latents"):
        gc.probability_range(post, gc.Box([0.0], [0.1]), 0)

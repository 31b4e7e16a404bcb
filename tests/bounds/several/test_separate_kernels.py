"""Softmax over independent latents with a kernel each, of any kind, precisions of either sign (M5)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.tangents.separate import separate_latents, separate_models
from helpers.oracle import examples
from helpers.several import Setting, falsehoods, random_box

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


def cases(**fixed):
    choices = {
        "kind": [*KERNELS, "rbf matern32", "sum matern12 product"],
        "classes": [2, 3, 5],
        "n": [3, 10],
        "d": [1, 3],
        "width": [1e-6, 0.1, 0.3, 3.0],
        **fixed,
    }
    return st.builds(
        Setting, seed=st.integers(0, 10**6), **{name: st.sampled_from(v) for name, v in choices.items()}
    )


@given(setting=cases(), spread=st.sampled_from([1e-3, 0.5, 3.0]), excess=st.sampled_from([0.0, 1e-6, 0.5]))
@settings(max_examples=examples(50))
def test_ranges_contain_the_truth(setting, spread, excess):
    post = model(setting, spread, excess)
    box = random_box(setting, post)
    label = setting.seed % setting.classes
    answer = gc.probability_range(post, box, label, tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@given(setting=cases(width=[0.1, 0.3]), excess=st.sampled_from([0.0, 0.5]))
@settings(max_examples=examples(25))
def test_a_safe_label_is_the_most_probable_everywhere(setting, excess):
    post = model(setting, 1.0, excess)
    box = random_box(setting, post)
    x = 0.5 * box.lower + 0.5 * box.upper
    verdict = gc.certify(post, x, box, max_nodes=6)
    points = np.random.default_rng(setting.seed).uniform(box.lower, box.upper, (300, len(x)))
    p = post.probability(np.concatenate([x[None], points]))
    label = p[0].argmax()
    if verdict.status == "safe":
        assert (p[:, label] >= p.max(axis=1) - 1e-9).all()
    if verdict.status == "unsafe":
        there = post.probability(verdict.counterexample[None])[0]
        assert there.argmax() != label


@given(setting=cases(width=[0.05, 0.3], n=[8]), data=st.data())
@settings(max_examples=examples(50))
def test_functionals_are_below_what_they_bound(setting, data):
    """a.m + <B, Sigma> at random points of the box, and every coordinate's reach."""
    post = model(setting)
    box = random_box(setting, post)
    moving = np.ones(setting.d, dtype=bool)
    rng = np.random.default_rng(setting.seed)
    middle = 0.5 * box.lower + 0.5 * box.upper
    latents = separate_latents(separate_models(post), middle, np.arange(setting.d))
    domain = shape_of(box, moving).domain(box.lower, box.upper, middle, latents.lengthscale)
    x = latents.expand(domain, middle)
    a = rng.standard_normal(setting.classes) * (rng.random(setting.classes) < 0.7)
    b = rng.standard_normal(setting.classes) * (rng.random(setting.classes) < 0.7)
    points = np.concatenate(
        [rng.uniform(box.lower, box.upper, (60, setting.d)), box.lower[None], middle[None]]
    )
    k = [kernel(points, post.centres) for kernel in post.kernels]
    variance = np.stack(
        [
            kernel.prior_variance - np.einsum("mi,ij,mj->m", kc, R, kc)
            for kernel, kc, R in zip(post.kernels, k, post.precision, strict=True)
        ],
        axis=1,
    )
    mean = post.latent(points)[0]
    value = mean @ a + variance @ b
    assert x.smallest(a, np.diag(b), 0.0).latent <= value.min() + 1e-7
    assert np.abs(variance @ b - variance[-1] @ b).max() <= x.covariance_reach(np.diag(b)) + 1e-7


@pytest.mark.parametrize("kind", ["rbf", "matern52", "rational", "rbf matern32"])
@pytest.mark.parametrize("classes", [3, 5])
def test_the_gap_shrinks_with_the_square_of_the_box(kind, classes):
    post = model(Setting(kind, classes, 12, 2, 0.1, 3), spread=1.5)
    assert min(np.linalg.eigvalsh(R)[0] for R in post.precision) < 0.0
    x = post.centres[0] + 0.1
    moving = np.ones(2, dtype=bool)
    gaps = []
    for half in (0.04, 0.01):
        box = gc.Box(x - half, x + half)
        bound = BoundFactory(post).pair(0, shape_of(box, moving), x, moving)[0]
        corners = x + half * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
        inside = x + half * np.random.default_rng(0).uniform(-1, 1, (400, 2))
        truth = post.probability(np.concatenate([inside, corners]))[:, 0].min()
        gaps.append(truth - bound.over(box.lower, box.upper, x, 1.0).value)
    assert gaps[0] < 0.2
    assert gaps[1] < gaps[0] / 3.0 + 1e-8


@pytest.mark.parametrize("kind", [*KERNELS, "rbf matern32"])
def test_ranges_converge(kind):
    post = model(Setting(kind, 3, 12, 2, 0.1, 3), spread=1.5)
    answer = gc.probability_range(post, gc.Ball(post.centres[0] + 0.1, 0.02), 0, max_nodes=60)
    assert answer.status == "converged"


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

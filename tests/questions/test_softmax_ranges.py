"""Ranges of softmax probabilities contain what sampling and local search find, and tighten with the box."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.expansion import expand_classes, latents_at, latents_on
from gpcert.bounds.several.tangents.ranges import largest_by_ranges
from gpcert.bounds.several.tangents.tangent import tangent, whitened
from gpcert.likelihoods import Softmax
from helpers.oracle import examples
from helpers.several import Setting, at_least, falsehoods, random_box, random_model, random_region

KINDS = ["correlated", "independent"]


def cases(**fixed):
    choices = {
        "kind": KINDS,
        "classes": [3, 4, 6, 12],
        "n": [3, 10],
        "d": [1, 2, 4],
        "width": [1e-6, 0.1, 0.3, 3.0],
        **fixed,
    }
    return st.builds(
        Setting, seed=st.integers(0, 10**6), **{name: st.sampled_from(v) for name, v in choices.items()}
    )


@given(setting=cases(), data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_ranges_contain_the_truth(setting, data):
    post = random_model(setting)
    box = random_box(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = gc.probability_range(post, box, label, tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@pytest.mark.full
@given(setting=cases(d=[30, 60], n=[10, 25], width=[0.03, 0.1, 0.3]), data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_ranges_with_many_moving_features(setting, data):
    post = random_model(setting)
    box = random_box(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = gc.probability_range(post, box, label, tolerance=0.05, max_nodes=3)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [3, 5])
def test_small_boxes_converge_at_the_root(kind, classes):
    setting = Setting(kind, classes, 10, 3, 0.05, 7)
    post = random_model(setting)
    answer = gc.probability_range(post, random_box(setting, post), 1, tolerance=0.02, max_nodes=20)
    assert answer.status == "converged"
    assert answer.nodes <= 4


OTHERS = ["matern12", "matern32", "matern52", "rational", "sum", "product"]


@given(setting=cases(kernel=OTHERS, norm=[np.inf, 2.0]), data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_ranges_with_any_kernel_contain_the_truth(setting, data):
    post = random_model(setting)
    region = random_region(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = gc.probability_range(post, region, label, tolerance=0.05, max_nodes=4)
    assert falsehoods(post, region, answer, np.random.default_rng(setting.seed)) == []


@pytest.mark.parametrize("kernel", OTHERS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_ranges_with_any_kernel_converge(kernel, classes):
    setting = Setting("correlated", classes, 10, 2, 0.05, 7, kernel=kernel)
    post = random_model(setting)
    answer = gc.probability_range(post, random_box(setting, post), 1, tolerance=0.02, max_nodes=200)
    assert answer.status == "converged"


@given(setting=cases(kind=["correlated"], kernel=OTHERS, width=[0.01, 0.1], n=[10]), data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_t6_lies_above_on_the_whole_box(setting, data):
    """log sum_i beta_i p_i <= the bound from ranges, wherever the anchor is."""
    post = random_model(setting)
    box = random_box(setting, post)
    moving = box.lower < box.upper
    if not moving.any():
        return
    C = setting.classes
    c = data.draw(st.integers(0, C - 1))
    beta = data.draw(st.sampled_from([np.eye(C)[c], 1.0 - np.eye(C)[c]]))
    low, _ = BoundFactory(post).pair(c, shape_of(box, moving), box.lower, moving)
    lower, upper = box.lower[moving], box.upper[moving]
    rng = np.random.default_rng(setting.seed)
    (view,) = low.views(lower, upper)
    x = lower + rng.random(len(lower)) * (upper - lower)
    latents = latents_on(low.model, low.slice, x)
    anchor = anchor_at(latents.mean, latents.covariance, low.correlated)
    found = None if anchor is None else largest_by_ranges(low.model, view, anchor, beta)
    if found is None:
        return
    full = np.tile(box.lower, (12, 1))
    full[:, moving] = lower + rng.random((12, len(lower))) * (upper - lower)
    sums = at_least(post, full) @ beta
    assert (np.log(np.maximum(sums, 1e-300)) <= found[0]).all()


def test_t6_loses_in_proportion_to_the_square_of_the_box():
    """Down to the predictor's error, about 1e-5."""
    post = random_model(Setting("correlated", 4, 10, 2, 0.1, 2, kernel="matern52"))
    x = post.centres[0] + 0.1
    gaps = []
    for half in np.array([0.1, 0.025]) * post.kernel.lengthscale:
        box = gc.Box(x - half, x + half)
        moving = np.ones(2, dtype=bool)
        bound = BoundFactory(post).pair(0, shape_of(box, moving), x, moving)[0]
        inside = x + half * np.random.default_rng(0).uniform(-1, 1, (400, 2))
        corners = x + half * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        truth = post.probability(np.concatenate([inside, corners]))[:, 0].min()
        gaps.append(truth - bound.over(box.lower, box.upper, x, 1.0).value)
    assert 0.0 <= gaps[1] < gaps[0] / 8.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_shrinks_with_the_square_of_the_box(kind):
    """Three classes: one tangent, whose loss is of second order; measured at the centre."""
    post = random_model(Setting(kind, 3, 10, 2, 0.1, 11))
    x = post.centres[0] + 0.1
    gaps = []
    for half in (0.08, 0.02):
        box = gc.Box(x - half, x + half)
        moving = np.ones(2, dtype=bool)
        bound = BoundFactory(post).pair(0, shape_of(box, moving), x, moving)[0]
        inside = x + half * np.random.default_rng(0).uniform(-1, 1, (400, 2))
        truth = post.probability(inside)[:, 0].min()
        gaps.append(truth - bound.over(box.lower, box.upper, x, 1.0).value)
    assert gaps[1] < gaps[0] / 3.0 + 1e-8


def log_concave_value(mean, V, i):
    """log E p_i + log det V / 2 for three classes, the last latent 0."""
    cov = np.zeros((3, 3))
    cov[:2, :2] = V
    p = Softmax().expectation(np.append(mean, 0.0)[None], cov[None])[0, i]
    return np.log(p) + 0.5 * np.linalg.slogdet(V)[1]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(40), deadline=None)
def test_theorem_3_concavity_in_mean_and_covariance(seed):
    rng = np.random.default_rng(seed)
    ends = []
    for _ in range(2):
        A = rng.standard_normal((2, 2)) * 10.0 ** rng.uniform(-0.5, 1)
        ends.append((3.0 * rng.standard_normal(2), A @ A.T + 0.05 * np.eye(2)))
    (m0, V0), (m1, V1) = ends
    for i in range(3):
        values = [log_concave_value((1 - t) * m0 + t * m1, (1 - t) * V0 + t * V1, i) for t in (0, 0.3, 1)]
        assert values[1] >= 0.7 * values[0] + 0.3 * values[2] - 1e-7


@given(setting=cases(width=[0.05, 0.2], n=[10]), data=st.data())
@settings(max_examples=examples(30), deadline=None)
def test_tangents_lie_above_on_the_whole_box(setting, data):
    """log sum beta_i p_i <= log_total + tangent + loss + pen(E) at random points of the box, the anchor at
    another point than the reference; e lies between its ends, and E - e I is as small as is said.
    """
    post = random_model(setting)
    box = random_box(setting, post)
    moving = box.lower < box.upper
    if not moving.any():
        return
    C = setting.classes
    c = data.draw(st.integers(0, C - 1))
    beta = data.draw(st.sampled_from([np.eye(C)[c], 1.0 - np.eye(C)[c]]))
    shape = shape_of(box, moving)
    bound = BoundFactory(post).pair(c, shape, box.lower, moving)[0]
    lower, upper = box.lower[moving], box.upper[moving]
    rng = np.random.default_rng(setting.seed)
    start = lower + rng.random(len(lower)) * (upper - lower)
    domain = shape.domain(lower, upper, start, bound.slice.lengthscale)
    x = expand_classes(bound.model, bound.slice, domain, start)
    other = lower + rng.random(len(lower)) * (upper - lower)
    _, k, relative = bound.slice.kernel(other if data.draw(st.booleans()) else start)
    latents = latents_at(bound.model, k, relative, bound.slice.tiny)
    anchor = anchor_at(latents.mean, latents.covariance, bound.correlated)
    seen = None if anchor is None else whitened(x, anchor)
    line = None if seen is None else tangent(seen, beta)
    if line is None:
        return
    points = lower + rng.random((50, len(lower))) * (upper - lower)
    full = np.tile(box.lower, (50, 1))
    full[:, moving] = points
    mean, cov = post.latent(full)
    p = post.probability(full)
    spread = cov if cov.ndim == 3 and post.precision.ndim == 4 else np.diagonal(cov, axis1=1, axis2=2)
    e = post.likelihood.expectation_error(mean, spread)
    t = mean @ line.a + np.einsum("mce,ce->m", cov, line.B) - line.offset
    d = (points - start) / bound.slice.lengthscale
    loss = line.loss.constant + d @ line.loss.gradient + np.einsum("mi,ij,mj->m", d, line.loss.matrix, d)
    W, D = np.linalg.inv(seen.root), bound.model.contrasts
    E = np.array([W @ D @ (S - anchor.covariance) @ D.T @ W.T for S in cov])
    pen = np.array([0.5 * (np.trace(one) - np.linalg.slogdet(np.eye(C - 1) + one)[1]) for one in E])
    assert (np.log(np.maximum((p - e) @ beta, 1e-300)) <= line.log_total + t + loss + pen + 1e-9).all()
    assert (loss >= -1e-12).all()
    scale = np.trace(E, axis1=1, axis2=2) / (C - 1)
    assert (seen.scale.low <= scale + 1e-9).all()
    assert (scale <= seen.scale.high + 1e-9).all()
    shapes = np.linalg.eigvalsh(E - scale[:, None, None] * np.eye(C - 1))
    assert (shapes[:, 0] >= -seen.shrunk - 1e-9).all()
    square = seen.square.constant + d @ seen.square.gradient
    square += np.einsum("mi,ij,mj->m", d, seen.square.matrix, d)
    assert ((shapes**2).sum(axis=1) <= square + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
def test_permuting_classes_permutes_the_ranges(kind):
    setting = Setting(kind, 4, 10, 2, 0.1, 3)
    post = random_model(setting)
    order = np.array([2, 0, 3, 1])
    precision = post.precision[np.ix_(order, order)] if kind == "correlated" else post.precision[order]
    other = gc.Posterior(
        post.centres,
        post.weights[:, order],
        precision,
        kernel=post.kernel,
        likelihood=Softmax(),
        mean=post.mean[order],
    )
    box = random_box(setting, post)
    for position, label in enumerate(order):
        mine = gc.probability_range(post, box, int(label), tolerance=0.05, max_nodes=10)
        theirs = gc.probability_range(other, box, position, tolerance=0.05, max_nodes=10)
        assert mine.status == theirs.status == "converged"
        # Differences are taken with the last class, so only the search may differ, within the tolerance.
        for a, b in ((mine.min, theirs.min), (mine.max, theirs.max)):
            assert abs(a.lower - b.lower) <= 0.05
            assert abs(a.upper - b.upper) <= 0.05


def test_facts_of_the_blocks():
    """M1, M2 on a model small enough for eigenvalues: R + defect >= 0 and R <= contraction K^-1."""
    post = random_model(Setting("correlated", 4, 10, 2, 0.1, 5))
    model = class_model_of(post)
    C, n = 4, 10
    R = post.precision.transpose(0, 2, 1, 3).reshape(C * n, C * n)
    assert np.linalg.eigvalsh(R)[0] >= -model.defect
    K = np.kron(np.eye(C), post.kernel(post.centres, post.centres))
    half = np.linalg.cholesky(K + 1e-10 * np.eye(C * n))
    assert np.linalg.eigvalsh(half.T @ R @ half)[-1] <= model.contraction * (1 + 1e-6)
    assert model.contraction < 1.01


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(20))
def test_functionals_are_what_they_say(seed):
    rng = np.random.default_rng(seed)
    post = random_model(Setting("correlated", 3, 8, 2, 0.1, seed))
    model = class_model_of(post)
    a, B = rng.standard_normal(3), rng.standard_normal((3, 3))
    B = 0.5 * (B + B.T)
    one = model.functional(a, B)
    X = rng.standard_normal((5, 2))
    k = post.kernel(X, post.centres)
    mean, cov = post.latent(X)
    value = k @ one.weights + one.prior - np.einsum("mi,ij,mj->m", k, one.precision, k) + post.mean @ a
    np.testing.assert_allclose(value, mean @ a + np.einsum("mce,ce->m", cov, B), atol=1e-7)


def test_two_classes_agree_with_the_logit_of_the_difference():
    post = random_model(Setting("correlated", 2, 8, 2, 0.1, 5))
    R = post.precision
    one = gc.Posterior(
        post.centres,
        (post.weights[:, 1] - post.weights[:, 0]) / 2.0,
        (R[1, 1] + R[0, 0] - R[0, 1] - R[1, 0]) / 4.0,
        kernel=gc.RBF(post.kernel.lengthscale, 2.0 * post.kernel.variance),
        likelihood="logit",
        mean=post.mean[1] - post.mean[0],
    )
    box = gc.Box(post.centres[0] - 0.1, post.centres[0] + 0.1)
    mine = gc.probability_range(post, box, 1, tolerance=1e-3, max_nodes=50)
    theirs = gc.probability_range(one, box, 1, tolerance=1e-3, max_nodes=50)
    for a, b in ((mine.min, theirs.min), (mine.max, theirs.max)):
        assert max(a.lower, b.lower) <= min(a.upper, b.upper) + 1e-9

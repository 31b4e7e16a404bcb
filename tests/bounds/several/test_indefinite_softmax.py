"""Softmax over indefinite precisions, the rule for variational models: true, and they converge (M1 to M4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.several.tangents.clipping import probability_cost
from gpcert.likelihoods import Softmax
from helpers.oracle import examples
from helpers.several import Setting, falsehoods, random_box

KINDS = ["correlated", "independent"]


@dataclass(frozen=True)
class Variational(Setting):
    """q(u) = N(m, S), S whitened of norm about `spread`: beyond 1 the precision is indefinite."""

    spread: float = 1.0
    jitter: float = 1e-6


def variational(setting: Variational, excess: float = 0.0) -> gc.Posterior:
    """With `excess`, precisions exceed K^-1 by that share, and variances fall below 0."""
    rng = np.random.default_rng(setting.seed)
    n, C = setting.n, setting.classes
    X = rng.standard_normal((n, setting.d))
    kernel = gc.RBF(10.0 ** rng.uniform(-0.2, 0.5), 10.0 ** rng.uniform(-0.5, 1.0))
    inverse = np.linalg.inv(np.linalg.cholesky(kernel(X) + setting.jitter * np.eye(n)))

    def precision(size: int) -> np.ndarray:
        A = rng.standard_normal((size, size)) * np.sqrt(setting.spread / size)
        half = np.kron(np.eye(size // n), inverse)
        R = half.T @ ((1.0 + excess) * np.eye(size) - A @ A.T) @ half
        return 0.5 * (R + R.T)

    if setting.kind == "correlated":
        R = precision(C * n).reshape(C, n, C, n).transpose(0, 2, 1, 3)
    else:
        R = np.stack([precision(n) for _ in range(C)])
    weights = inverse.T @ rng.standard_normal((n, C))
    return gc.Posterior(X, weights, R, kernel=kernel, likelihood="softmax", mean=rng.standard_normal(C))


def cases(**fixed):
    choices = {
        "kind": KINDS,
        "classes": [2, 3, 4, 6],
        "n": [3, 10],
        "d": [1, 3],
        "width": [1e-6, 0.1, 0.3, 3.0],
        "spread": [1e-3, 0.3, 1.0, 4.0],
        "jitter": [1e-2, 1e-4, 1e-6],
        **fixed,
    }
    return st.builds(
        Variational, seed=st.integers(0, 10**6), **{name: st.sampled_from(v) for name, v in choices.items()}
    )


@given(setting=cases(), data=st.data())
@settings(max_examples=examples(24))
def test_ranges_contain_the_truth(setting, data):
    post = variational(setting)
    box = random_box(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = gc.probability_range(post, box, label, tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@given(setting=cases(kind=["independent"], spread=[1e-3, 0.1, 1.0]), excess=st.sampled_from([1e-6, 0.1, 2.0]))
@settings(max_examples=examples(24))
def test_ranges_contain_the_truth_where_variances_are_clipped(setting, excess):
    post = variational(setting, excess)
    box = random_box(setting, post)
    answer = gc.probability_range(post, box, 0, tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@given(
    setting=cases(width=[0.1, 0.3], spread=[1e-3, 1.0, 4.0]), excess=st.sampled_from([0.0, 1e-6, 0.3, 2.0])
)
@settings(max_examples=examples(20))
def test_a_safe_label_is_the_most_probable_everywhere(setting, excess):
    post = variational(setting, excess if setting.kind == "independent" else 0.0)
    box = random_box(setting, post)
    x = 0.5 * box.lower + 0.5 * box.upper
    rng = np.random.default_rng(setting.seed)
    verdict = gc.certify(post, x, box, max_nodes=4)
    if verdict.status == "safe":
        points = np.concatenate([x[None], rng.uniform(box.lower, box.upper, (300, len(x)))])
        p = post.probability(points)
        assert (p[:, p[0].argmax()] >= p.max(axis=1) - 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_what_was_unknown_converges(kind, classes):
    spread = 2.0 if classes < 4 or kind == "independent" else 1.2
    setting = Variational(kind, classes, 12, 2, 0.1, 3, spread=spread)
    post = variational(setting)
    model = class_model_of(post)
    assert model.negative is not None
    assert model.contraction_negative > 0.1
    answer = gc.probability_range(post, gc.Ball(post.centres[0], 0.05), 0, max_nodes=60)
    assert answer.status == "converged"


@pytest.mark.parametrize(
    ("kind", "classes"), [("correlated", 3), ("independent", 3), ("independent", 4), ("independent", 6)]
)
def test_the_gap_shrinks_with_the_square_of_the_box(kind, classes):
    """Four and more correlated classes are left out: their anchor is moved (A1), whatever the precision."""
    post = variational(Variational(kind, classes, 12, 2, 0.1, 3, spread=1.5))
    assert class_model_of(post).negative is not None
    x = post.centres[0] + 0.1
    moving = np.ones(2, dtype=bool)
    gaps = []
    for half in (0.04, 0.01):
        box = gc.Box(x - half, x + half)
        bound = BoundFactory(post).pair(0, shape_of(box, moving), x, moving)[0]
        inside = x + half * np.random.default_rng(0).uniform(-1, 1, (400, 2))
        truth = post.probability(np.concatenate([inside, box.lower[None], box.upper[None]]))[:, 0].min()
        gaps.append(truth - bound.over(box.lower, box.upper, x, 1.0).value)
    assert gaps[0] < 0.2
    assert gaps[1] < gaps[0] / 3.0 + 1e-8


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_vanishing_variances_converge(classes):
    """Relative to themselves they vary too much for a tangent: raised, they do not."""
    post = variational(Variational("independent", classes, 40, 2, 0.1, 0, spread=1e-4, jitter=1e-4))
    variances = np.diagonal(post.latent(post.centres)[1], axis1=1, axis2=2)
    assert variances.max() < 2e-3 * post.kernel.variance
    answer = gc.probability_range(post, gc.Ball(post.centres[0], 0.05), 0, max_nodes=100)
    assert answer.status == "converged"


def test_a_clipped_variance_costs_in_proportion():
    """Class 0 has a variance of about -e at the centre, where the others have almost none."""
    for e, widest in ((1e-4, 0.01), (0.1, 0.03)):
        R = np.full((3, 1, 1), 1.0 - 1e-9)
        R[0] += e
        post = gc.Posterior([[0.0]], [[0.5, 0.0, -0.5]], R, kernel=gc.RBF(), likelihood="softmax")
        assert 0.99 * e < class_model_of(post).lift < 1.01 * e + 1e-6
        answer = gc.probability_range(post, gc.Box([-0.02], [0.02]), 0, tolerance=1e-3, max_nodes=30)
        p = post.probability(np.linspace(-0.02, 0.02, 81)[:, None])[:, 0]
        assert answer.lower <= p.min() <= p.max() <= answer.upper
        assert answer.min.width < widest
        assert answer.max.width < widest


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(100))
def test_the_cost_of_raised_variances(seed):
    """M4: 1 - sum beta_i p_i moves by at most `probability_cost`, whatever beta in [0, 1]."""
    rng = np.random.default_rng(seed)
    C = int(rng.integers(2, 6))
    mean, d = 2.0 * rng.standard_normal(C), 10.0 ** rng.uniform(-4, 1, C)
    raised = 10.0 ** rng.uniform(-3, 1, C) * (rng.random(C) < 0.6)
    p = Softmax().expectation(np.stack([mean, mean]), np.stack([d, d + raised]))
    beta = np.round(rng.random(C)) if rng.random() < 0.5 else rng.random(C)
    assert abs(beta @ (p[1] - p[0])) <= probability_cost(raised) + 1e-9


@given(setting=cases(n=[6], spread=[0.5, 4.0]), data=st.data())
@settings(max_examples=examples(24))
def test_parts_and_functionals_are_what_they_say(setting, data):
    """M1 to M3: two definite parts, their contractions, and the value of a random functional."""
    post = variational(setting)
    model = class_model_of(post)
    rng = np.random.default_rng(setting.seed)
    C, n = setting.classes, setting.n
    a, B = rng.standard_normal(C), rng.standard_normal((C, C)) * (rng.random((C, C)) < 0.7)
    B = 0.5 * (B + B.T) if setting.kind == "correlated" else np.diag(np.diagonal(B))
    one = model.functional(a, B)
    X = rng.standard_normal((5, setting.d))
    k = post.kernel(X, post.centres)
    mean, cov = post.latent(X)
    value = k @ one.weights + one.prior - np.einsum("mi,ij,mj->m", k, one.precision, k) + post.mean @ a
    scale = 1e-9 * np.abs(B).sum() * post.kernel.variance * (1.0 + model.contraction)
    allowed = (k * k) @ one.parts.defect + scale + 1e-9 * np.abs(k) @ np.abs(one.weights)
    assert (np.abs(value - mean @ a - np.einsum("mce,ce->m", cov, B)) <= allowed).all()
    K = post.kernel(post.centres)
    half = np.linalg.cholesky(K + 1e-13 * n * np.trace(K) * np.eye(n))
    parts = [one.parts.positive, np.zeros((n, n)) if one.parts.negative is None else one.parts.negative]
    for part in parts:
        assert np.linalg.eigvalsh(part)[0] >= -1e-13 * np.abs(part).max()
    white = [np.linalg.eigvalsh(half.T @ part @ half)[-1] for part in (parts[0] + parts[1], parts[1])]
    assert white[0] <= one.contraction * (1.0 + 1e-6) + 1e-9
    assert white[1] <= one.contraction_negative * (1.0 + 1e-6) + 1e-9

"""Safety of the label with several classes: Theorem 4, verdicts that samples cannot refute, questions."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import _shared, _shared_functional
from gpcert.bounds.several.tangents.expansion import expand_classes
from gpcert.likelihoods import Softmax
from helpers.oracle import examples
from helpers.several import Setting, falsehoods, questioned, random_box, random_model

KINDS = ["correlated", "independent", "probit", "logit"]
SETTINGS = st.builds(
    Setting,
    kind=st.sampled_from(KINDS),
    classes=st.sampled_from([3, 4, 7]),
    n=st.sampled_from([4, 10]),
    d=st.sampled_from([1, 2, 4]),
    width=st.sampled_from([1e-6, 0.1, 0.3, 2.0]),
    seed=st.integers(0, 10**6),
)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(150), deadline=None)
def test_theorem_4(seed):
    """Means beyond 0 and s_k, however negative s_k is: the first class is more probable than the second."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, 3)) * 10.0 ** rng.uniform(-0.5, 0.7)
    cov = A @ A.T
    mean = rng.standard_normal(3) * 3.0
    mean[0] = mean[1] + max(0.0, _shared(cov, 0, 1, 2)) + 0.01
    p = Softmax().expectation(mean[None], cov[None])[0]
    e = Softmax().expectation_error(mean[None], cov[None])[0]
    assert p[0] - p[1] > e[0] + e[1]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(80), deadline=None)
def test_theorem_4_reflected_densities(seed):
    """Its proof, in balls: with E D > 0, E D >= s_k, u outweighs -u whatever is independent of D."""
    rng = np.random.default_rng(seed)
    V, u = arb(float(10.0 ** rng.uniform(-1, 2))), arb(float(rng.uniform(0.01, 20)))
    s = [arb(float(v)) for v in rng.standard_normal(4) * 10.0 ** rng.uniform(-1, 1)]
    a = [arb(float(v)) for v in 3.0 * rng.standard_normal(4)]
    mean = max([arb(0), *s], key=float) * (1 + arb("1e-9")) + arb("1e-9")
    both = (u / 2).exp() + (-u / 2).exp()
    less, more = (
        both + sum(((x + sign * y / V * u).exp() for x, y in zip(a, s, strict=True)), arb(0))
        for sign in (-1, 1)
    )
    assert bool((2 * mean * u / V).exp() * less > more)


@pytest.mark.parametrize("kind", ["correlated", "independent"])
def test_rivals_are_bounded_together_where_they_weigh_less_than_the_strongest(kind):
    """What is certified of (1 + P_c - their sum) / 2 holds for each: it is at most (1 + P_c - P_j) / 2."""
    post = random_model(Setting(kind, 7, 10, 2, 0.1, 3))
    x, moving = post.centres[0], np.ones(2, dtype=bool)
    p = post.probability(x[None])[0]
    label = int(p.argmax())
    bound = BoundFactory(post).margin(label, shape_of(gc.Ball(x, 0.01), moving), x, moving)
    rivals = [j for j in range(7) if j != label]
    groups = bound._groups(rivals, x)
    assert sorted(j for group in groups for j in group) == rivals
    assert len(groups) < len(rivals)
    most = max(0.25 * p[label], 0.5 * p[rivals].max())
    assert all(len(group) == 1 or p[group].sum() <= most * 1.001 for group in groups)
    found = bound.over(x - 0.01, x + 0.01, x, 0.5 + 1e-9).value
    for z in x + np.random.default_rng(0).uniform(-0.01, 0.01, (30, 2)):
        q = post.probability(z[None])[0]
        assert found <= 0.5 + 0.5 * (q[label] - q[rivals].max()) + 1e-9


def test_the_functional_is_the_covariance():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5, 5))
    S = A @ A.T
    for c, j, k in ((0, 1, 2), (3, 1, 4)):
        D, T = np.eye(5)[c] - np.eye(5)[j], np.eye(5)[k] - 0.5 * (np.eye(5)[c] + np.eye(5)[j])
        assert np.isclose(_shared(S, c, j, k), D @ S @ T)
        assert np.isclose(np.vdot(_shared_functional(5, c, j, k), S), D @ S @ T)


@given(setting=SETTINGS)
@settings(max_examples=examples(20), deadline=None)
def test_verdicts_hold(setting):
    post = random_model(setting)
    box = random_box(setting, post)
    x = box.lower + 0.5 * (box.upper - box.lower)
    x = np.clip(x, box.lower, box.upper)
    answer = gc.certify(post, x, box, max_nodes=3)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(12), deadline=None)
def test_any_question_about_any_region(seed):
    """Ranges and verdicts, 2 to 12 classes."""
    assert questioned(Setting.pick(np.random.default_rng(seed))) == []


@given(setting=SETTINGS.filter(lambda s: s.kind in ("correlated", "independent")))
@settings(max_examples=examples(25), deadline=None)
def test_reaches_of_covariances_hold(setting):
    post = random_model(setting)
    box = random_box(setting, post)
    moving = box.lower < box.upper
    if not moving.any() or setting.width > 1.0:
        return
    shape = shape_of(box, moving)
    bound = BoundFactory(post).pair(0, shape, box.lower, moving)[0]
    lower, upper = box.lower[moving], box.upper[moving]
    rng = np.random.default_rng(setting.seed)
    start = lower + rng.random(len(lower)) * (upper - lower)
    x = expand_classes(
        bound.model, bound.slice, shape.domain(lower, upper, start, bound.slice.lengthscale), start
    )
    full = np.tile(box.lower, (30, 1))
    full[:, moving] = lower + rng.random((30, len(lower))) * (upper - lower)
    _, cov = post.latent(full)
    B = rng.standard_normal((setting.classes, setting.classes))
    B = B + B.T if setting.kind == "correlated" else np.diag(np.diagonal(B))
    moved = np.einsum("mce,ce->m", cov, B) - np.vdot(B, x.latents.covariance)
    assert (np.abs(moved) <= x.covariance_reach(B) + 1e-9).all()


@pytest.mark.parametrize("kind", ["correlated", "independent", "probit"])
def test_every_question_answers(kind):
    setting = Setting(kind, 3, 10, 2, 0.1, 3)
    post = random_model(setting)
    x = post.centres[0]
    region = gc.Ball(x, 0.05)
    label = int(post.probability(x[None])[0].argmax())
    verdict = gc.certify(post, x, region, max_nodes=20)
    assert verdict.label == label
    assert verdict.margin.lower <= verdict.margin.upper
    radius = gc.certified_radius(post, x, max_radius=0.05, rtol=0.5, max_nodes=2)
    assert 0.0 <= radius.safe <= radius.unsafe
    spread = gc.robustness(post, region, label=label, max_nodes=2)
    assert 0.0 <= spread.lower <= spread.upper <= 1.0
    found = gc.attack(post, region, x=x)
    assert ((found.x >= x - 0.0501) & (found.x <= x + 0.0501)).all()
    table = gc.evaluate(post, post.centres[:1], post.predict(post.centres[:1]), [0.01], max_nodes=2)
    assert (table.certified <= table.attacked).all()
    assert table.clean == 1.0


def test_errors_read_as_numbers():
    """A NumPy number in an error is shown as a number."""
    post = random_model(Setting("correlated", 3, 10, 2, 0.1, 0))
    ball = gc.Ball(post.centres[0], 0.1)
    with pytest.raises(gc.InvalidInputError, match=r"one of 0, 1, 2, got 7$"):
        gc.probability_range(post, ball, np.int64(7))
    y = np.append(np.arange(11) % 3, 9)
    with pytest.raises(gc.InvalidInputError, match="got 1 of 9 "):
        gc.GPClassifier(likelihood="softmax").fit(np.zeros((12, 1)), y)


def test_points_without_a_probability_are_no_answer():
    """Sigma is indefinite in the middle of the box: the predictor refuses it, questions go on."""
    R = np.zeros((3, 3, 1, 1))
    R[0, 1] = R[1, 0] = 1.6
    R[[0, 1, 2], [0, 1, 2]] = 0.2
    mean, weights = [1.0, 0.0, 0.0], [[-3.0, 3.0, 0.0]]
    post = gc.Posterior([[0.0]], weights, R, kernel=gc.RBF(1.0, 1.0), likelihood="softmax", mean=mean)
    with pytest.raises(gc.InvalidInputError):
        post.probability([[0.0]])
    assert gc.certify(post, [2.2], gc.Box([0.0], [2.3]), max_nodes=20).status != "safe"
    radius = gc.certified_radius(post, [2.2], max_radius=3.0, rtol=0.1)
    assert radius.safe < radius.unsafe
    gc.attack(post, gc.Box([0.0], [2.3]), x=[2.2])


def test_two_classes_of_softmax_are_decided_by_the_mean():
    """As by the logistic of the difference: what a radius proves, a verdict proves."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    y = (np.arange(30) % 3) % 2
    post = gc.GPClassifier(gc.RBF(1.5, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    for x in X[:5]:
        safe = gc.certified_radius(post, x, rtol=0.01).safe
        if safe > 0:
            assert gc.certify(post, x, gc.Ball(x, 0.9 * safe)).status == "safe"


def test_a_margin_known_to_the_tolerance_has_converged():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 2)) + 2.0 * np.stack([y == 1, y == 2], axis=1)
    post = gc.GPClassifier(gc.RBF(1.5, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    x = np.array([6.0, -3.0])
    for tolerance in (0.02, 0.3):
        v = gc.certify(post, x, gc.Ball(x, 0.5), tolerance=tolerance, max_nodes=10)
        if v.status == "unknown" and v.ended == "converged":
            assert v.margin.upper - v.margin.lower <= tolerance * (1.0 + 1e-9)
        assert v.ended != "numerical limit"

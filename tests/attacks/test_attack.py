"""Attacks: points of the region, for every norm; optimal steps; what the predictor says; clear errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.attacks.objectives import Careful, LogOdds
from gpcert.attacks.sets import Sets
from gpcert.clock import until
from helpers.exact import small_model
from helpers.oracle import examples

NORMS = [np.inf, 2.0, 1.0, 3.0, 1.5, 0.0]
METHODS = ["pgd", "gpfgs", "gpjm"]


def random_ball(rng, norm, d):
    x = rng.normal(size=d)
    radius = float(rng.integers(1, d + 1)) if norm == 0 else float(10.0 ** rng.uniform(-3, 0.5))
    reach = 10.0 ** rng.uniform(-1, 1)
    low = np.where(rng.random(d) < 0.3, x, x - reach * rng.random(d))
    domain = (low, x + reach * rng.random(d)) if norm == 0 or rng.random() < 0.6 else None
    features = np.sort(rng.choice(d, rng.integers(1, d + 1), replace=False)) if rng.random() < 0.5 else None
    scale = 10.0 ** rng.uniform(-1, 1, d) if rng.random() < 0.5 else None
    return gc.Ball(x, radius, norm, features=features, domain=domain, scale=scale)


def members(rng, ball, count):
    """Points of the ball (m, d): offsets of random length in random directions, cut by the domain."""
    sets = Sets.of([ball])
    d = ball.n_features
    U = rng.normal(size=(count, d)) * (rng.random((count, d)) < rng.random((count, 1)))
    U = np.clip(U * 10.0 ** rng.uniform(-1, 1, (count, 1)), sets.low, sets.high)
    points = [ball.project(z) for z in sets.centre + sets.unit * U]
    return [z for z in points if ball.contains(z)]


@settings(max_examples=examples(60))
@given(st.sampled_from(NORMS), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_steps_stay_inside_and_no_point_of_the_ball_is_better(norm, d, seed):
    rng = np.random.default_rng(seed)
    ball = random_ball(rng, norm, d)
    sets, g, target = Sets.of([ball]), rng.normal(size=(1, d)), rng.normal(size=(1, d)) * 3
    others = np.array(members(rng, ball, 40))
    step = sets.points(sets.linear(g))[0]
    nearest = sets.points(sets.project(target))[0]
    for found in (step, nearest):
        inside = ball.project(found)
        assert ball.contains(inside)
        assert np.allclose(inside, found, rtol=1e-9, atol=1e-9)  # a move by rounding, not by choice
    slope = g[0] / sets.unit[0]
    assert slope @ step <= (others @ slope).min() + 1e-6 * (1 + np.abs(slope) @ np.abs(step))
    if norm in (0.0, 1.0, 2.0, np.inf):
        raw = (sets.centre + sets.unit * target)[0]
        lengths = np.linalg.norm((others - raw) / sets.unit[0], axis=1)
        assert np.linalg.norm((nearest - raw) / sets.unit[0]) <= lengths.min() * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", NORMS)
def test_the_point_is_in_the_region_and_the_predictor_agrees(method, norm):
    post, rng = small_model(n=20, d=5), np.random.default_rng(4)
    for _ in range(8):
        ball = random_ball(rng, norm, 5)
        a = gc.attack(post, ball, method=method)
        assert ball.contains(a.x)
        assert a.probability == post.probability([a.x])[0, a.column]
        assert a.success == (post.probability([a.x])[0].argmax() != a.label)
        assert a.label == post.probability([ball.x])[0].argmax()
        assert a.probability <= post.probability([ball.x])[0, a.column]


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_pgd_finds_the_certified_minimum(likelihood):
    post, rng = small_model(n=20, d=3, likelihood=likelihood), np.random.default_rng(1)
    regions = [gc.Ball(x, 0.2) for x in rng.normal(size=(12, 3))]
    found = gc.attack(post, regions, label=1)
    ranges = gc.probability_range(post, regions, tolerance=1e-3)
    assert max(a.probability - r.min.lower for a, r in zip(found, ranges, strict=True)) <= 2e-3


def test_features_without_data_are_moved_too():
    """All centres and x have the second feature 0: its gradient there is exactly 0, at a saddle."""
    centres = np.array([[-1.0, 0.0], [1.0, 0.0]])
    post = gc.Posterior(centres, [-2.0, 2.0], np.eye(2) * 0.1, kernel=gc.RBF(1.0, 4.0))
    region = gc.Ball([1.0, 0.0], 0.8, domain=([-9.0, 0.0], [9.0, 9.0]))
    a = gc.attack(post, region)
    assert a.x[1] == pytest.approx(0.8)
    assert a.probability <= gc.probability_range(post, region, tolerance=1e-5).min.upper + 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_stronger_attacks_on_larger_balls(method):
    """GPFGS is one step, so it may overshoot; PGD and the saliency map may only gain from room."""
    post = small_model(n=20, d=4)
    x = np.full(4, 0.1)
    p = [gc.attack(post, gc.Ball(x, r), method=method).probability for r in (0.01, 0.1, 0.3)]
    assert p[0] <= post.probability([x]).max()
    if method != "gpfgs":
        assert p == sorted(p, reverse=True)


def test_gpfgs_is_the_sign_of_the_gradient_of_the_mean():
    post = small_model(n=20, d=4)
    x = np.array([0.1, -0.2, 0.3, 0.05])
    a = gc.attack(post, gc.Ball(x, 0.01), method="gpfgs", label=1)
    assert np.allclose(a.x, x - 0.01 * np.sign(post.latent_gradient([x])[0][0]))


@pytest.mark.parametrize("radius", [0.0, 1.0])
@pytest.mark.parametrize("norm", [1.5, 3.0, 200.0])
def test_a_gradient_that_overflows_leaves_a_point_of_the_region(norm, radius):
    post = gc.Posterior([[0.0], [2e-291]], [1e6, -1e6], np.zeros((2, 2)), kernel=gc.RBF(1.5e-291, 1.0))
    ball = gc.Ball([1e-291], radius, norm, scale=[1e148])
    found = gc.attack(post, ball, method="gpfgs")
    assert np.isfinite(found.x).all()
    assert ball.contains(found.x)


def test_gpjm_moves_no_more_features_than_allowed():
    post = small_model(n=20, d=6)
    for k in range(4):
        a = gc.attack(post, gc.Ball(np.zeros(6), k, norm=0, domain=(-1, 1)), method="gpjm")
        assert np.count_nonzero(a.x) <= k


def test_random_starts_come_back_with_what_an_answer_keeps():
    post, ball = small_model(n=20, d=6), gc.Ball(np.zeros(6), 0.5)
    first, second = (gc.attack(post, ball, rng=np.random.default_rng(1)) for _ in range(2))
    assert first == second == gc.attack(post, ball, rng=first.rng)
    assert type(first.rng) is int
    both = np.random.default_rng(1)
    assert len({gc.attack(post, ball, rng=rng).rng for rng in (both, both, None, None)}) == 4
    assert gc.attack(post, ball) == gc.attack(post, ball, rng=np.int32(0))


def test_several_classes_and_batches_keep_their_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    post = gc.Posterior(
        X, rng.normal(size=(12, 3)), np.zeros((3, 12, 12)), kernel=gc.RBF(), likelihood="softmax"
    )
    regions = [
        gc.Ball(x, r, norm)
        for x, r, norm in zip(X[:4], (0.1, 0.0, 0.4, 0.2), (2, np.inf, 1, np.inf), strict=True)
    ]
    answers = gc.attack(post, regions, label=[0, 1, 2, 0])
    assert [a.label for a in answers] == [0, 1, 2, 0]
    assert all(r.contains(a.x) for r, a in zip(regions, answers, strict=True))
    assert (answers[1].x == X[1]).all()
    assert gc.attack(post, []) == []


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"method": "fgsm"}, "method"),
        ({"label": 2}, "label"),
        ({"label": "7"}, "label"),
        ({"x": [9.0, 9.0]}, "x"),
        ({"x": [1.0]}, "x"),
        ({"region": gc.Ball([0.0], 1.0)}, "region"),
        ({"region": 3}, "region"),
        ({"starts": 0}, "starts"),
        ({"rng": -1}, "rng"),
        ({"rng": 0.5}, "rng"),
        ({"post": gc.Posterior([[0.0, 0.0]], [1.0], [[1.0]], kernel=gc.RBF(), likelihood=None)}, "post"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(arguments, names):
    given_ = {"post": small_model(), "region": gc.Ball([0.0, 0.0], 1.0)} | arguments
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.attack(**given_)


def test_an_attack_hears_that_it_is_to_stop():
    """By the clock, as proofs do: on a worker nobody sends it Ctrl-C."""
    post = small_model()
    objective, told = Careful(LogOdds(post)), iter((False, True, True))
    with until(np.inf, lambda: next(told)):
        labels = np.zeros(len(post.centres), dtype=int)
        assert np.isfinite(objective(post.centres, labels, slopes=False)[0]).all()
        for slopes in (True, False):
            with pytest.raises(KeyboardInterrupt):
                objective(post.centres, labels, slopes)

"""Verdicts: "safe" and "unsafe" are true in real arithmetic, ties are unknown, mistakes get a sentence."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import mean_over
from gpcert.questions.certify import _margin, _several
from gpcert.results import Enclosure
from helpers.exact import CHOICES, Case, extreme_points, random_posterior, random_region, small_model
from helpers.oracle import Functional, bits, examples, lengthscale, posteriors, random_box
from judge import Truth

THRESHOLDS = (0.5, 0.5, 0.5, 0.3, 0.7, 0.02, 0.97)


def falsehoods(post, region, verdict, x, rng):
    """What an adversary can prove wrong about a verdict."""
    exact, found, label = Truth(post), [], verdict.column
    threshold = verdict.threshold
    if verdict.status == "unsafe":
        z = verdict.counterexample
        if not region.contains(z) or not exact.at_most(z, label, threshold):
            found.append(f"no counterexample: {z}")
        if post.probability([z])[0, label] != verdict.probability or not verdict.probability < threshold:
            found.append("the predictor does not confirm it")
    for z in (*extreme_points(post, region, label, rng), x):
        if region.contains(z) and not exact.at_least(z, label, threshold + verdict.margin.lower):
            found.append(f"margin.lower {verdict.margin.lower} is false at {z}")
        if verdict.status == "safe" and region.contains(z) and not exact.at_least(z, label, threshold):
            found.append(f"safe, but not at {z}")
    return found


CASES = st.builds(Case, **{name: st.sampled_from(values) for name, values in CHOICES.items()})


@settings(max_examples=examples(80))
@given(CASES, st.sampled_from(THRESHOLDS))
def test_verdicts_are_true(case, threshold):
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    region = random_region(case, post, rng)
    v = gc.certify(post, region.centre, region, threshold, max_nodes=20)
    assert falsehoods(post, region, v, region.centre, rng) == []


@pytest.mark.full
def test_two_thousand_verdicts_stand_up_to_strong_attacks():
    """Random models, points and regions: suspicions raised by attacks and samples go to ball arithmetic."""
    rng, status = np.random.default_rng(0), []
    for _ in range(examples(2000)):
        case = Case.pick(rng)
        own = np.random.default_rng(case.seed)
        post = random_posterior(case, own)
        region = random_region(case, post, own)
        x = region.centre
        v = gc.certify(post, x, region, max_nodes=10)
        status.append(v.status)
        if v.status == "unsafe":
            p = post.probability([v.counterexample])[0, v.column]
            assert region.contains(v.counterexample)
            assert p == v.probability < 0.5
        if v.status == "safe":
            box = region.inner_box()
            Z = box.lower + own.random((200, case.d)) * (box.upper - box.lower)
            Z = np.concatenate([Z, [x, gc.attack(post, region, label=v.label, starts=6).x]])
            z = Z[post.probability(Z)[:, v.column].argmin()]
            if post.probability([z])[0, v.column] < 0.5 + 1e-6 and region.contains(z):
                assert Truth(post).at_least(z, v.column, 0.5)
    assert {"safe", "unsafe"} <= set(status)


@settings(max_examples=examples(40))
@given(posteriors(n=st.integers(2, 40), d=st.integers(25, 40)), st.integers(0, 2**32 - 1))
def test_the_bound_of_the_mean_holds(post, seed):
    """D1 with more features than the cubic takes: sampled points of the box, in ball arithmetic."""
    rng = np.random.default_rng(seed)
    case = random_box(rng, post, 1.0 / 6.0)
    slice_ = make_slice(model_of(post), case.reference, np.arange(post.n_features))
    domain = BoxDomain(*scaled_box(case.lower, case.upper, case.reference, lengthscale(post)))
    bound = mean_over(slice_, domain, case.reference).lower_bound(False).latent
    points = case.points(rng, 40)
    values = Functional(1.0, 0.0, 0.0).values(post, points)
    with bits(200):
        for i in np.argsort(values)[:4]:
            assert bound <= Truth(post).latent(points[i])[0]


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0])
def test_verdicts_on_balls_of_every_norm(norm):
    """Safe: no strong attack succeeds; unsafe: the counterexample is in the ball, in ball arithmetic."""
    rng = np.random.default_rng(7)
    post = small_model(n=20, d=3, likelihood="logit" if norm < 2 else "probit")
    X = rng.normal(size=(12, 3))
    balls = [
        gc.Ball(x, float(rng.choice([0.1, 0.3, 0.6])), norm, domain=(-2.5, 2.5)) for x in X.clip(-2.4, 2.4)
    ]
    verdicts = gc.certify(post, X.clip(-2.4, 2.4), balls, max_nodes=300)
    attacks = gc.attack(post, balls, starts=12)
    assert {"safe", "unsafe"} <= {v.status for v in verdicts}
    for ball, v, a in zip(balls, verdicts, attacks, strict=True):
        assert a.label == v.label
        if v.status == "safe":
            assert not a.success
            assert Truth(post).at_least(a.x, v.column, 0.5)
        if v.status == "unsafe":
            assert ball.contains(v.counterexample)
            assert Truth(post).at_most(v.counterexample, v.column, 0.5)


def test_verdicts_where_few_features_move():
    """Norm 0 on a small domain: a grid over every support contradicts no verdict."""
    post, rng, reach = small_model(n=15, d=3), np.random.default_rng(11), 0.25
    steps = np.stack(np.meshgrid(*[np.linspace(-reach, reach, 21)] * 2), axis=-1).reshape(-1, 2)
    found = set()
    for x in rng.uniform(-1, 1, (8, 3)):
        for k in (1, 2):
            ball = gc.Ball(x, k, norm=0, domain=(x - reach, x + reach))
            v = gc.certify(post, x, ball, max_nodes=400)
            found.add(str(v.status))
            Z = np.repeat(x[None], 3 * len(steps), axis=0)
            for i, moved in enumerate(([0, 1], [1, 2], [2, 0])):
                Z[i * len(steps) : (i + 1) * len(steps), moved[:k]] += steps[:, :k]
            if v.status == "safe":
                assert post.probability(Z)[:, v.column].min() > 0.5
            if v.status == "unsafe":
                assert ball.contains(v.counterexample)
                assert Truth(post).at_most(v.counterexample, v.column, 0.5)
    assert {"safe", "unsafe"} <= found


def test_the_mean_alone_decides_what_the_full_bound_decides():
    """At 1/2 only the mean's sign counts; just beside 1/2 the level curves do: same verdicts."""
    post, rng = small_model(n=25, d=3), np.random.default_rng(5)
    for x in rng.normal(size=(25, 3)):
        for r in (0.05, 0.3):
            at = gc.certify(post, x, gc.Ball(x, r))
            beside = gc.certify(post, x, gc.Ball(x, r), 0.5 + 1e-7)
            assert at.status == beside.status


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_small_models_are_decided_and_the_margin_encloses_the_minimum(likelihood, threshold):
    post, rng = small_model(n=15, likelihood=likelihood), np.random.default_rng(2)
    for x in rng.normal(size=(20, 2)):
        region = gc.Ball(x, 0.2)
        v = gc.certify(post, x, region, threshold)
        r = gc.probability_range(post, region, v.label, tolerance=1e-4)
        assert v.margin.lower <= r.min.upper - threshold
        assert v.margin.upper >= r.min.lower - threshold
        if not r.min.lower - 0.03 <= threshold <= r.min.upper + 0.03:
            assert v.status == ("safe" if r.min.lower > threshold else "unsafe")


def test_nested_verdicts_never_contradict():
    post, rng = small_model(n=15, d=3), np.random.default_rng(9)
    for x in rng.normal(size=(12, 3)):
        regions = [gc.Ball(x, r) for r in (0.0, 1e-9, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8)]
        verdicts = [v.status for v in gc.certify(post, [x] * 8, regions, max_nodes=30)]
        assert "safe" not in verdicts[verdicts.index("unsafe") if "unsafe" in verdicts else 8 :]


def test_a_tie_is_unknown_and_so_is_a_region_touching_one():
    post = gc.Posterior([[-1.0], [1.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    assert gc.certify(post, [0.0], gc.Ball([0.0], 0.5)).status == "unknown"
    assert gc.certify(post, [0.0], gc.Ball([0.0], 0.0)).status == "unknown"
    touching = gc.certify(post, [0.5], gc.Box([0.0], [1.0]), max_nodes=50)  # P >= 1/2, equality at 0
    assert touching.status == "unknown"
    assert touching.margin.lower <= 0.0 <= touching.margin.upper
    flat = gc.Posterior([[0.0]], [0.0], [[0.0]], kernel=gc.RBF())
    assert gc.certify(flat, [0.0], gc.Ball([0.0], 1.0)).status == "unknown"


def test_x_itself_may_be_the_counterexample():
    post = small_model()
    x = np.array([0.25, -0.125])
    p = post.probability([x]).max()
    v = gc.certify(post, x, gc.Ball(x, 0.0), 0.5 * (p + 1.0))
    assert v.status == "unsafe"
    assert (v.counterexample == x).all()
    assert gc.certify(post, x, gc.Ball(x, 0.0), 0.5 * p).status == "safe"


def test_limits_and_interrupts_leave_true_margins():
    post, x = small_model(n=30, d=4), np.full(4, 0.3)
    region = gc.Ball(x, 0.25)
    r = gc.probability_range(post, region, gc.certify(post, x, region).label, tolerance=1e-3)

    def interrupt(*_):
        raise KeyboardInterrupt

    for options in (
        {"max_nodes": 0},
        {"max_seconds": 0.0},
        {"progress": lambda *_: True},
        {"progress": interrupt},
    ):
        v = gc.certify(post, x, region, r.min.upper - 0.01, **options)
        assert v.status == "unknown"
        assert v.margin.lower <= r.min.upper - v.threshold
        assert v.margin.upper >= r.min.lower - v.threshold


def test_defaults_decide_the_shipped_data():
    data = gc.datasets.load("synthetic2d")
    post = gc.GPClassifier(max_evals=10).fit(data.X_train, data.y_train).posterior_
    X = data.X_test[:60]
    status = [v.status for r in (0.1, 0.5) for v in gc.certify(post, X, [gc.Ball(x, r) for x in X])]
    assert status.count("unknown") <= 1
    assert {"safe", "unsafe"} <= set(status)


X = np.array([0.25, -0.125])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"x": X + 9}, "x"),
        ({"x": [0.0]}, "x"),
        ({"region": gc.Ball([0.0], 1.0)}, "region"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": np.nan}, "threshold"),
        ({"threshold": "0.5"}, "threshold"),
        ({"tolerance": 0}, "tolerance"),
        ({"max_nodes": -1}, "max_nodes"),
        ({"progress": 1}, "progress"),
        ({"post": None}, "post"),
        ({"region": [gc.Ball(X, 0.1)], "x": np.zeros((2, 2))}, "x"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(arguments, names):
    given_ = {"post": small_model(), "x": X, "region": gc.Ball(X, 0.5)} | arguments
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.certify(**given_)


def test_an_end_beside_the_threshold_says_above_or_below_only():
    """The next double above 1/2 stands for "above 1/2" where labels are proved: no margin is known."""
    above, below = np.nextafter(0.5, 1.0), np.nextafter(0.5, 0.0)
    assert _margin(Enclosure(above, 1.0), 0.5).lower == 0.0
    assert _margin(Enclosure(0.0, below), 0.5).upper == 0.0
    assert _several(Enclosure(above, 1.0)).lower == 0.0
    assert _several(Enclosure(0.0, below)).upper == 0.0
    wide = _margin(Enclosure(0.25, 0.75), 0.3)
    assert wide.lower < Fraction(0.25) - Fraction(0.3) < Fraction(0.75) - Fraction(0.3) < wide.upper


def test_a_search_that_is_stopped_after_the_box_that_decided_has_decided():
    """An "unknown" whose margin is above 0 contradicts itself."""
    post = small_model()
    ball = gc.Ball(post.centres[0], 1e-3)
    whole = gc.certify(post, ball.x, ball)
    assert whole.status == "safe"
    calls = []

    def second_call(*_):
        calls.append(0)
        return len(calls) >= whole.nodes + 1

    stopped = gc.certify(post, ball.x, ball, progress=second_call)
    assert stopped.ended == "interrupted"
    assert stopped.nodes == whole.nodes
    assert stopped.status == "safe"
    assert stopped.margin.lower >= 0

"""What `probability_range` means: regions, labels, tolerance, batches, and one sentence for what is wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpcert as gc
from gpcert.questions.ranges import _complement
from helpers.exact import refute, small_model
from judge import Truth

LINKS = ["probit", "logit"]
WIDE = gc.Box([-1.0, -1.0], [1.0, 1.0])
X = np.array([0.25, -0.125])  # dyadic: x -+ radius is exact, so balls and boxes can be equal


def ends(answer):
    """Everything an answer says about the probability, comparable bit for bit."""
    points = tuple(None if p is None else p.tolist() for p in (answer.argmin, answer.argmax))
    return answer.min, answer.max, points, answer.status, answer.nodes


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("label", [0, 1])
def test_a_ball_of_radius_0_encloses_the_prediction(likelihood, label):
    post = small_model(likelihood=likelihood, mean=-0.7)
    rng = np.random.default_rng(3)
    for x in rng.standard_normal((20, 2)) * 2:
        answer = gc.probability_range(post, gc.Ball(x, 0.0), label)
        assert Truth(post).at_least(x, label, max(answer.min.lower, answer.max.lower))
        assert Truth(post).at_most(x, label, min(answer.min.upper, answer.max.upper))
        assert answer.status == "converged"
        assert answer.upper - answer.lower < 1e-11
        assert answer.lower - 1e-11 < post.probability([x])[0, label] < answer.upper + 1e-11
        assert (answer.argmin == x).all()
        assert (answer.argmax == x).all()


def test_features_that_do_not_move_keep_their_value():
    post = small_model(n=15, d=4)
    x, half = np.array([0.125, 0.25, 0.375, 0.5]), np.array([0.0, 0.5, 0.5, 0.0])
    answer = gc.probability_range(post, gc.Ball(x, 0.5, features=[2, 1]), tolerance=1e-4)
    assert ends(answer) == ends(gc.probability_range(post, gc.Box(x - half, x + half), tolerance=1e-4))
    for point in (answer.argmin, answer.argmax):
        assert (point[[0, 3]] == x[[0, 3]]).all()


def test_scale_gives_each_feature_its_unit():
    scaled = gc.Ball(X, 0.25, scale=[2.0, 0.5])
    box = gc.Box([-0.25, -0.25], [0.75, 0.0])
    answers = [gc.probability_range(small_model(), region, tolerance=1e-4) for region in (scaled, box)]
    assert ends(answers[0]) == ends(answers[1])


def test_the_domain_cuts_the_region():
    post = small_model()
    ball = gc.Ball(X, 0.5, domain=([0.2, -9.0], [9.0, 0.0]))
    box = gc.Box([0.2, -0.625], [0.75, 0.0])
    assert ends(gc.probability_range(post, ball)) == ends(gc.probability_range(post, box))


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("tolerance", [0.3, 0.02, 1e-3, 1e-5])
def test_converged_means_both_enclosures_are_that_narrow(likelihood, tolerance):
    post = small_model(likelihood=likelihood)
    answer = gc.probability_range(post, WIDE, tolerance=tolerance)
    assert answer.status == "converged"
    assert answer.min.width <= tolerance
    assert answer.max.width <= tolerance
    assert refute(post, WIDE, answer, np.random.default_rng(0)) == []


@pytest.mark.parametrize("mean", [-1.2, -1.0, 0.0, 1.0])
def test_converged_is_said_of_the_reported_doubles(mean):
    """At tolerances of a few ulps: rounding 1 - p outward must not push a converged enclosure beyond it."""
    post = gc.Posterior([[0.0]], [1.0], [[0.1]], kernel=gc.RBF(), mean=mean)
    for tolerance in np.arange(1, 80) * 2.0**-53:
        answer = gc.probability_range(post, gc.Ball([0.5], 0.0), tolerance=float(tolerance))
        narrow = max(answer.min.width, answer.max.width) <= tolerance
        assert answer.status == ("converged" if narrow else "numerical limit")


@pytest.mark.parametrize("likelihood", LINKS)
def test_the_witnesses_attain_the_inner_ends(likelihood):
    post = small_model(likelihood=likelihood)
    answer = gc.probability_range(post, WIDE)
    assert abs(post.probability([answer.argmin])[0, 1] - answer.min.upper) < 1e-9
    assert abs(post.probability([answer.argmax])[0, 1] - answer.max.lower) < 1e-9


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("max_nodes", [0, 1, 10, 10_000])
def test_nested_regions_never_contradict(likelihood, max_nodes):
    post = small_model(likelihood=likelihood, mean=0.4)
    regions = [gc.Ball(X, r) for r in (0.0, 1e-9, 0.01, 0.1, 0.3, 0.6, 1.0)]
    answers = gc.probability_range(post, regions, max_nodes=max_nodes, tolerance=1e-3)
    for i, inner in enumerate(answers):
        for outer in answers[i:]:
            assert outer.min.lower <= inner.min.upper
            assert outer.max.upper >= inner.max.lower


@pytest.mark.parametrize("likelihood", LINKS)
def test_halves_of_a_region_never_contradict_the_whole(likelihood):
    """min over the whole = the smaller of the minima over two halves: their enclosures must meet."""
    post = small_model(likelihood=likelihood)
    left, right = gc.Box([-1.0, -1.0], [0.1, 1.0]), gc.Box([0.1, -1.0], [1.0, 1.0])
    whole, *halves = gc.probability_range(post, [WIDE, left, right], tolerance=1e-4)
    for end in (lambda e: e.lower, lambda e: e.upper):
        assert abs(end(whole.min) - min(end(half.min) for half in halves)) <= 1e-4
        assert abs(end(whole.max) - max(end(half.max) for half in halves)) <= 1e-4


@pytest.mark.parametrize("likelihood", LINKS)
@pytest.mark.parametrize("max_nodes", [0, 5, None])
def test_the_two_labels_mirror_each_other(likelihood, max_nodes):
    post = small_model(likelihood=likelihood, mean=0.4)
    one, other = (gc.probability_range(post, WIDE, label, max_nodes=max_nodes) for label in (1, 0))
    pairs = [
        (one.min.lower, other.max.upper),
        (one.min.upper, other.max.lower),
        (one.max.lower, other.min.upper),
        (one.max.upper, other.min.lower),
    ]
    for p, q in pairs:
        assert abs(p + q - 1.0) <= 2.0**-51
    assert (one.argmin == other.argmax).all()
    assert (one.argmax == other.argmin).all()


def test_logit_and_probit_agree_as_the_links_do():
    """|sigma(f) - Phi(sqrt(pi / 8) f)| < 0.0178 for all f, so expectations and extrema differ by less."""
    logit, probit = (
        gc.probability_range(small_model(likelihood=link), WIDE, tolerance=1e-4)
        for link in (gc.Logit(), gc.Probit(math.sqrt(math.pi / 8)))
    )
    for a, b in ((logit.min, probit.min), (logit.max, probit.max)):
        assert a.lower <= b.upper + 0.0178
        assert b.lower <= a.upper + 0.0178


def test_a_positive_mean_and_positive_weights_speak_for_class_1():
    post = gc.Posterior([[0.0]], [5.0], [[0.5]], kernel=gc.RBF(), mean=1.0)
    assert gc.probability_range(post, gc.Ball([0.0], 0.1), label=1).lower > 0.9
    assert gc.probability_range(post, gc.Ball([0.0], 0.1), label=0).upper < 0.1


def agree(one, two, tolerance=0.02):
    """Two enclosures of the same number, both converged: neither contradicts the other."""
    assert one.lower <= two.upper
    assert two.lower <= one.upper
    assert max(one.width, two.width) <= tolerance


def test_batches_answer_in_order_as_single_questions_do():
    post = small_model(n=20, d=3)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((4, 3))
    regions = [
        gc.Ball(x[i], r, features=f) for i in range(4) for r in (0.0, 0.2, 0.5) for f in ([0, 2], None)
    ]
    regions += [gc.Box(x[0], x[0] + 0.1), gc.Box(x[0], x[0] + 0.1)]
    answers = gc.probability_range(post, regions, label=0)
    order = rng.permutation(len(regions))
    shuffled = gc.probability_range(post, tuple(regions[i] for i in order), label=0)
    for region, answer in zip(regions, answers, strict=True):
        alone = gc.probability_range(post, region, label=0)
        agree(answer.min, alone.min)
        agree(answer.max, alone.max)
    for i, answer in zip(order, shuffled, strict=True):
        agree(answer.min, answers[i].min)
        agree(answer.max, answers[i].max)
    assert gc.probability_range(post, []) == []


@pytest.mark.parametrize("likelihood", LINKS)
def test_repeats_are_identical_bit_for_bit(likelihood):
    post = small_model(likelihood=likelihood)
    copy = gc.Posterior(post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=likelihood)
    regions = [WIDE, gc.Ball(X, 0.3)]
    first, second, third = (gc.probability_range(p, regions, tolerance=1e-3) for p in (post, post, copy))
    assert list(map(ends, first)) == list(map(ends, second)) == list(map(ends, third))


def test_an_answer_is_made_of_plain_numbers():
    answer = gc.probability_range(small_model(), WIDE)
    numbers = (
        answer.lower,
        answer.upper,
        answer.min.upper,
        answer.max.lower,
        answer.seconds,
        answer.tolerance,
    )
    assert all(isinstance(v, float) and not isinstance(v, np.generic) for v in numbers)
    assert type(answer.nodes) is int
    assert answer.nodes > 0
    assert answer.seconds > 0
    assert (answer.label, answer.method) == (1, "auto")


REGRESSION = gc.Posterior([[0.0, 0.0]], [1.0], [[0.1]], kernel=gc.RBF(), likelihood=None)


@pytest.mark.parametrize(
    ("post", "region", "options", "names"),
    [
        (small_model(), gc.Box([0.0], [1.0]), {}, "region"),
        (small_model(), [WIDE, gc.Ball([0.0, 0.0, 0.0], 0.1)], {}, "region"),
        (small_model(), [X], {}, "region"),
        (small_model(), None, {}, "region"),
        (small_model(), 0.5, {}, "region"),
        (small_model(), WIDE, {"label": 2}, "label"),
        (small_model(), WIDE, {"label": -1}, "label"),
        (small_model(), WIDE, {"label": True}, "label"),
        (small_model(), WIDE, {"label": "7"}, "label"),
        (small_model(), WIDE, {"label": 0.5}, "label"),
        (small_model(), WIDE, {"tolerance": 0.0}, "tolerance"),
        (small_model(), WIDE, {"tolerance": -0.1}, "tolerance"),
        (small_model(), WIDE, {"tolerance": math.nan}, "tolerance"),
        (small_model(), WIDE, {"tolerance": "0.1"}, "tolerance"),
        (small_model(), WIDE, {"tolerance": None}, "tolerance"),
        (small_model(), WIDE, {"max_nodes": -1}, "max_nodes"),
        (small_model(), WIDE, {"max_nodes": math.nan}, "max_nodes"),
        (small_model(), WIDE, {"max_nodes": "5"}, "max_nodes"),
        (small_model(), WIDE, {"max_seconds": -1.0}, "max_seconds"),
        (small_model(), WIDE, {"max_seconds": math.nan}, "max_seconds"),
        (small_model(), WIDE, {"progress": 5}, "progress"),
        (small_model(), WIDE, {"method": "fast"}, "method"),
        (REGRESSION, WIDE, {}, "post"),
        ("model", WIDE, {}, "post"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(post, region, options, names):
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.probability_range(post, region, **options)


def test_a_batch_is_refused_before_any_work():
    """One bad region among many: an error at once, not after the others have been searched."""
    calls = []
    with pytest.raises(gc.InvalidInputError):
        gc.probability_range(small_model(), [WIDE, gc.Box([0.0], [1.0])], progress=lambda *a: calls.append(a))
    assert calls == []


def test_indefinite_precisions_converge():
    """R = K^-1 - K^-1 C K^-1, C wider than K in some directions: a defect would stop the search."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-2.0, 2.0, size=(25, 2))
    K = gc.RBF(1.2)(X, X) + 1e-6 * np.eye(25)
    A = 0.6 * np.eye(25) + 0.25 * rng.standard_normal((25, 25))
    inverse = np.linalg.inv(np.linalg.cholesky(K))
    R = inverse.T @ (np.eye(25) - A @ A.T) @ inverse
    assert np.linalg.eigvalsh(R)[0] < -1e3
    post = gc.Posterior(X, np.sin(3 * X[:, 0]), 0.5 * (R + R.T), kernel=gc.RBF(1.2), likelihood="probit")
    answer = gc.probability_range(post, gc.Ball(np.array([0.3, -0.4]), 0.3), tolerance=1e-5)
    assert answer.status == "converged"
    assert refute(post, gc.Ball(np.array([0.3, -0.4]), 0.3), answer, rng) == []


@given(st.floats(0.0, 1.0), st.sampled_from([-1, 1]))
def test_a_complement_is_rounded_once_and_in_order(p, direction):
    """1 - p, rounded to the side asked for and no further: so reports of the other class never loosen."""
    exact, value = 1 - Fraction(p), _complement(p, direction)
    assert direction * (Fraction(value) - exact) >= 0
    inward = np.nextafter(value, -direction * np.inf)
    assert direction * (Fraction(float(inward)) - exact) < 0

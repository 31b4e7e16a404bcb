"""Explanations: enclosures of Delta hold in ball arithmetic, signs are certain, lines agree with ranges."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.batched.lines import line_ranges
from gpcert.results import About
from gpcert.settings import Settings
from helpers.exact import CHOICES, Case, random_posterior, small_model
from helpers.oracle import bits, examples
from judge import Truth

CASES = st.builds(Case, **{name: st.sampled_from(values) for name, values in CHOICES.items()})


@settings(max_examples=examples(120))
@given(CASES, st.floats(-4, 1))
def test_ranges_along_lines_hold(case, size):
    """Extremes of P sampled along every line, decided in ball arithmetic, lie in the enclosures."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    l = np.broadcast_to(post.kernel.lengthscale, (case.d,))
    x = post.centres[rng.integers(post.n_centres)] + l * rng.standard_normal(case.d) * 0.3
    features = np.sort(rng.choice(case.d, rng.integers(1, min(case.d, 4) + 1), replace=False))
    down, up = (10.0**size * l[features] * rng.random(len(features)) for _ in range(2))
    exact = Truth(post)
    for side, ranges, far in zip((-1, 1), line_ranges(post, x, features, down, up), (down, up), strict=True):
        for i, j in enumerate(features):
            t = np.concatenate([[0.0], side * far[i] * np.sort(rng.random(60)), [side * far[i]]])
            Z = np.repeat(x[None], len(t), axis=0)
            Z[:, j] += t
            inside = np.abs(Z[:, j] - x[j]) <= far[i]
            Z, p = Z[inside], post.probability(Z[inside])[:, 1]
            assert exact.at_least(Z[p.argmin()], 1, ranges.min_lower[i])
            assert exact.at_most(Z[p.argmax()], 1, ranges.max_upper[i])
            assert ranges.min_lower[i] <= ranges.min_upper[i]
            assert ranges.max_lower[i] <= ranges.max_upper[i]
            if ranges.min_upper[i] < 1.0:  # attained up to the step of the nodes: a fine grid comes close
                assert p.min() <= ranges.min_upper[i] + 0.05
                assert p.max() >= ranges.max_lower[i] - 0.05


def ball(value):
    return arb(fmpq(value.numerator, value.denominator))


@settings(max_examples=examples(80))
@given(
    st.sampled_from([gc.RBF, gc.Matern12, gc.Matern32, gc.RationalQuadratic]),
    st.sampled_from(["probit", "logit"]),
    st.sampled_from([0.0, 1.0, 1e3, 1e9, 1e15, -1e12]),
    st.integers(0, 2**32 - 1),
)
def test_delta_is_that_of_the_real_interval(kernel, likelihood, offset, seed):
    """One bump, seen from its left slope: P rises along the line, so the ends of the interval give Delta.

    x + radius is no double: an interval rounded outward, or inward, has another Delta.
    """
    rng = np.random.default_rng(seed)
    x = offset + rng.normal()
    unit = max(10.0 ** rng.uniform(-3, 1), float(np.spacing(abs(x))) * rng.choice([1.0, 30.0, 1e5]))
    post = gc.Posterior(
        [[x + 3 * unit]], [2.0], [[0.0]], kernel=kernel(float(unit), 1.0), likelihood=likelihood
    )
    scale = float(rng.choice([1.0, 1 / 3, 1e150, 1e-290]) * rng.uniform(1, 2))
    radius = float(unit * rng.uniform(0.1, 1.5)) / scale
    far = Fraction(radius) * Fraction(scale)
    ends = [Fraction(float(x)) - far, Fraction(float(x)) + far]
    domain = None
    if rng.random() < 0.5:  # ends on one side at a double
        domain = (float(x - 0.5 * float(far)), np.inf)
        ends[0] = max(ends[0], Fraction(domain[0]))
    for label, sign in ((1, 1), (0, -1)):
        asked = {"domain": domain, "scale": scale, "tolerance": 10.0 ** rng.uniform(-9, -1)}
        e = gc.explain(post, [x], radius, label, **asked)
        with bits(320):
            low, high = (Truth(post).probability([ball(end)], 1) for end in ends)
            assert arb(float(e.lower[0, 0])) <= sign * (high - low) <= arb(float(e.upper[0, 0]))
            assert e.sign[0, 0] in (0, sign)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1))
def test_the_mean_is_that_of_all_deltas_between_the_ends(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 4000))
    lower = rng.uniform(-2, 2, (m, 2))
    upper = np.minimum(lower + rng.choice([0.0, 1e-16, 1.0], (m, 2)), 2.0)
    about = About("", "", (0, 1), Settings())
    mean = gc.Explanation.of(lower, upper, (gc.Ball([0.0, 0.0], 0.1),) * m, 1, None, about).mean()
    for i in range(2):
        assert Fraction(mean.lower[0, i]) <= sum(map(Fraction, lower[:, i])) / m
        assert Fraction(mean.upper[0, i]) >= sum(map(Fraction, upper[:, i])) / m


def by_ranges(post, x, j, radius, label):
    """Delta of one feature from two calls of `probability_range`."""
    ends = []
    for low, high in ((x[j] - radius, x[j]), (x[j], x[j] + radius)):
        lower, upper = x.copy(), x.copy()
        lower[j], upper[j] = low, high
        ends.append(gc.probability_range(post, gc.Box(lower, upper), label, tolerance=1e-6))
    left, right = ends
    return (
        right.max.lower - left.max.upper + right.min.lower - left.min.upper,
        right.max.upper - left.max.lower + right.min.upper - left.min.lower,
    )


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize("label", [0, 1])
def test_explanations_agree_with_ranges(likelihood, label):
    post, rng = small_model(n=15, d=3, likelihood=likelihood), np.random.default_rng(0)
    X = rng.normal(size=(3, 3))
    for radius in (0.02, 0.2):
        e = gc.explain(post, X, radius, label, tolerance=1e-3)
        for i, x in enumerate(X):
            for j in range(3):
                lower, upper = by_ranges(post, x, j, radius, label)
                assert e.lower[i, j] <= upper
                assert e.upper[i, j] >= lower
        assert (e.upper - e.lower <= 4e-3 + 1e-9).all()


def test_narrow_enough_to_decide_signs_and_narrower_for_smaller_radii():
    """The error between nodes is of second order: Delta itself shrinks linearly."""
    post, x = small_model(n=20, d=4), np.full((1, 4), 0.2)
    widths = []
    for radius in (0.2, 0.1, 0.05):
        e = gc.explain(post, x, radius)
        assert (e.sign != 0).all()
        widths.append((e.upper - e.lower).max())
    order = np.polyfit(np.log([0.2, 0.1, 0.05]), np.log(widths), 1)[0]
    assert order > 1.8


def test_the_label_turns_the_sign_and_the_middle_is_the_value():
    post, X = small_model(d=3), np.random.default_rng(1).normal(size=(4, 3))
    one, zero = (gc.explain(post, X, 0.1, label) for label in (1, 0))
    assert np.allclose(one.value, -zero.value)
    assert (one.sign == -zero.sign).all()
    assert one.sign.shape == (4, 3)
    assert ((one.lower <= one.value) & (one.value <= one.upper)).all()


def test_the_mean_encloses_the_mean():
    e = gc.explain(small_model(d=3), np.random.default_rng(1).normal(size=(5, 3)), 0.3)
    mean = e.mean()
    assert (mean.lower[0] <= e.lower.mean(axis=0)).all()
    assert (mean.upper[0] >= e.upper.mean(axis=0)).all()
    assert np.allclose(mean.value[0], e.value.mean(axis=0))


def test_features_and_domain():
    post, x = small_model(d=3), np.array([0.1, 0.2, 0.3])
    e = gc.explain(post, x, 0.5, features=[1], domain=(0.0, 0.35))
    lower, upper = by_box(post, x, 1, 0.0, 0.35)
    assert e.lower[0, 1] <= upper
    assert e.upper[0, 1] >= lower
    assert (e.value[0, [0, 2]] == 0).all()


def by_box(post, x, j, low, high):
    left, right = x.copy(), x.copy()
    left[j], right[j] = low, high
    a = gc.probability_range(post, gc.Box(left, x), tolerance=1e-5)
    b = gc.probability_range(post, gc.Box(x, right), tolerance=1e-5)
    return (
        b.max.lower - a.max.upper + b.min.lower - a.min.upper,
        b.max.upper - a.max.lower + b.min.upper - a.min.lower,
    )


def test_a_feature_without_effect_has_no_sign():
    post = gc.Posterior([[-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0], np.zeros((2, 2)), kernel=gc.RBF())
    e = gc.explain(post, [0.3, 0.0], 0.2)
    assert e.sign.tolist() == [[1, 0]]
    assert gc.explain(post, [0.3, 0.0], 0.0).sign.tolist() == [[0, 0]]


def test_stopping_early_leaves_the_rest_unknown():
    post, X = small_model(), np.random.default_rng(1).normal(size=(3, 2))
    e = gc.explain(post, X, 0.1, progress=lambda *_: True)
    assert (e.upper[0] - e.lower[0] < 0.1).all()
    assert (e.lower[1:] == -2).all()
    assert (e.sign[1:] == 0).all()


def test_several_classes_go_interval_by_interval():
    rng = np.random.default_rng(0)
    post = gc.Posterior(
        rng.normal(size=(6, 2)),
        rng.normal(size=(6, 3)),
        np.zeros((3, 6, 6)),
        kernel=gc.RBF(),
        likelihood=gc.OneVsRest(gc.Probit()),
    )
    x = np.array([0.1, 0.2])
    e = gc.explain(post, x, 0.1, label=2, tolerance=1e-3)
    lower, upper = by_ranges(post, x, 0, 0.1, 2)
    assert e.lower[0, 0] <= upper
    assert e.upper[0, 0] >= lower


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"X": [[0.0]]}, "X"),
        ({"radius": -1.0}, "radius"),
        ({"radius": "a"}, "radius"),
        ({"label": 5}, "label"),
        ({"features": [7]}, "features"),
        ({"tolerance": 0}, "tolerance"),
        ({"progress": 3}, "progress"),
        ({"post": 0}, "post"),
    ],
)
def test_one_clear_sentence_names_what_is_wrong(arguments, names):
    given_ = {"post": small_model(), "X": [[0.0, 0.1]], "radius": 0.1} | arguments
    with pytest.raises(gc.InvalidInputError, match=rf"^[^\n]*\b{names}\b[^\n]* must [^\n]*, got [^\n]*$"):
        gc.explain(**given_)

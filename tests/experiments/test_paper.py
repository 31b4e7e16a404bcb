"""The published method: every bound contains the truth, every programme is the one it claims to be."""

import math
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxShape
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.estimator import GPClassifier
from gpcert.kernels import RBF
from gpcert.likelihoods import Link, Logit, Probit
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box
from gpcert_paper.method import PaperBound
from gpcert_paper.method.covariance import covariances
from gpcert_paper.method.latent_space import _below, _centred, integral_bounds, masses, partition
from gpcert_paper.method.variance import (
    _quadratic_programme,
    decompose,
    largest_variance,
    rotated_ranges,
    smallest_variance,
)
from helpers.exact import CHOICES, Case, falsehoods, random_region, small_model
from helpers.exact import random_posterior as random_case_posterior
from helpers.oracle import bits, examples, posteriors, random_box, random_posterior
from judge import Truth

SMALL = CHOICES | {
    "n": (1, 2, 3, 5, 8, 13),
    "d": (1, 1, 2, 2, 3, 5),
    "stop": ("nodes", "few nodes", "progress"),
    "norm": [norm for norm in CHOICES["norm"] if norm != 0],
}
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(90))
@given(st.builds(Case, **{name: st.sampled_from(values) for name, values in SMALL.items()}))
def test_ranges_hold(case):
    assert falsehoods(case, "paper") == []


@pytest.mark.full
def test_ranges_enclose_the_optimum_of_500_random_queries():
    rng = np.random.default_rng(7)
    for _ in range(500):
        case = Case(**{name: values[int(rng.integers(len(values)))] for name, values in SMALL.items()})
        assert falsehoods(case, "paper") == [], case


def agree(post, region, label, tolerance):
    """Whether both methods converge; then they are within the sum of their tolerances."""
    ours, theirs = (
        probability_range(post, region, label, method=method, tolerance=tolerance, max_nodes=150)
        for method in ("auto", "paper")
    )
    if ours.status != "converged" or theirs.status != "converged":
        return False
    for mine, other in ((ours.min, theirs.min), (ours.max, theirs.max)):
        assert mine.lower <= other.upper
        assert other.lower <= mine.upper
        assert abs(mine.lower - other.lower) <= 2 * tolerance
        assert abs(mine.upper - other.upper) <= 2 * tolerance
    return True


def agreement(queries, seed):
    """The number of random queries, of every link, precision, layout and shape, on which both converge."""
    rng = np.random.default_rng(seed)
    both = 0
    for _ in range(queries):
        case = Case(**{name: values[int(rng.integers(len(values)))] for name, values in SMALL.items()})
        inner = np.random.default_rng(case.seed)
        post = random_case_posterior(case, inner)
        both += agree(post, random_region(case, post, inner), case.label, case.tolerance)
    return both


def test_both_methods_agree():
    assert agreement(40, 1) >= 28


@pytest.mark.full
def test_both_methods_agree_on_500_queries():
    assert agreement(500, 2) >= 380


@pytest.mark.parametrize("inference", ["laplace", "ep"])
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_both_methods_agree_on_trained_models(inference, likelihood):
    """ARD, sides of the box without width, and the whole data set's surroundings."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) > 0
    kernel = RBF([0.8, 0.5, 3.0], 2.0)
    post = GPClassifier(kernel, likelihood=likelihood, inference=inference, max_evals=3).fit(X, y).posterior_
    both = 0
    for _ in range(12):
        x, half = rng.standard_normal(3), 10.0 ** rng.uniform(-2, -0.5, 3)
        half[rng.random(3) < 0.3] = 0.0
        both += agree(post, Box(x - half, x + half), bool(rng.integers(2)), 0.05)
    assert both >= 8


@settings(max_examples=examples(90))
@given(posteriors(n=st.integers(1, 12), d=st.integers(1, 4)), SEEDS)
def test_means_and_variances_are_enclosed(post, seed):
    rng = np.random.default_rng(seed)
    case = random_box(rng, post)
    model, moving = model_of(post), np.arange(post.n_features)
    with np.errstate(all="ignore"):
        slice_ = make_slice(model, case.lower, moving)
        c = covariances(slice_, case.lower, case.upper)
        low, high = c.smallest_sum(slice_.weights).value, -c.smallest_sum(-slice_.weights).value
        least, most = smallest_variance(model, c).value, largest_variance(model, c).value
    X = case.points(rng, 25)
    means, variances = post.latent(X)
    chosen = {int(f(a)) for a in (means, variances) for f in (np.argmin, np.argmax)} | {0, len(X) - 1}
    exact = Truth(post)
    with bits(320):
        for i in chosen:
            mean, variance = exact.latent(X[i])
            mean -= arb(post.mean)
            assert not mean < low
            assert not mean > high
            assert not variance < least
            assert not variance > most


def box_and_model(seed, n=12, d=3, width=0.4):
    post = small_model(n, d, seed=seed)
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-1, 1, d)
    model = model_of(post)
    c = covariances(make_slice(model, lower, np.arange(d)), lower, lower + width * rng.uniform(0.2, 1.0, d))
    return model, c


def by_highs(c, g):
    """min g^T k over the paper's polytope, as it stands: variables k (n) and w (d)."""
    lower, upper = c.lower_plane, c.upper_plane
    n, d = c.v.shape
    A = np.block([[-np.eye(n), lower[:, 1:]], [np.eye(n), -upper[:, 1:]]])
    b = np.concatenate([-lower[:, 0], upper[:, 0]])
    ends = [(None, None)] * n + [(-r, r) for r in c.reach]
    found = linprog(np.concatenate([g, np.zeros(d)]), A_ub=A, b_ub=b, bounds=ends, method="highs")
    assert found.status == 0, found.message
    return found.fun


@pytest.mark.parametrize("seed", range(8))
def test_linear_programmes_agree_with_highs(seed):
    model, c = box_and_model(seed)
    g = np.random.default_rng(seed + 100).standard_normal(len(c.v))
    assert c.smallest_linear(g).value == pytest.approx(by_highs(c, g), abs=1e-8)
    assert c.smallest_linear(g).value <= by_highs(c, g) + 1e-12
    spectrum = decompose(model.parts.positive)
    low, high = rotated_ranges(spectrum, c)
    U = spectrum.positive - spectrum.negative
    for i in (0, 3, len(U) - 1):
        assert low[i] == pytest.approx(by_highs(c, U[:, i]), abs=1e-8)
        assert high[i] == pytest.approx(-by_highs(c, -U[:, i]), abs=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_the_quadratic_programme_is_solved(seed):
    """Weak duality: the certified value is at most the form at any feasible k, and close to the smallest."""
    model, c = box_and_model(seed)
    k, _ = _quadratic_programme(model.parts.positive, c)
    form = float(k @ model.parts.positive @ k)
    certified = model.variance - largest_variance(model, c).value
    assert certified <= form + 1e-9
    assert certified >= form - 2e-3 * model.variance


def slopes(values, sizes):
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


def test_orders_of_convergence():
    """Gaps of the mean and of both variances shrink with the square of the box."""
    post = small_model(15, 2, seed=3)
    model, centre = model_of(post), np.array([0.2, -0.4])
    sizes = 2.0 ** -np.arange(3, 8)
    gaps = []
    for h in sizes:
        box = centre - h, centre + h
        c = covariances(make_slice(model, centre, np.arange(2)), *box)
        side = np.linspace(-h, h, 41)
        X = centre + np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
        mean, S = post.latent(X)
        gaps.append(
            [
                mean.min() - c.smallest_sum(post.weights).value,
                S.min() - smallest_variance(model, c).value,
                largest_variance(model, c).value - S.max(),
            ]
        )
    for gap in np.array(gaps).T:
        assert 1.7 <= slopes(gap, sizes) <= 2.4


@settings(max_examples=examples(100))
@given(SEEDS)
def test_gaussian_masses_are_extreme_where_proposition_2_says(seed):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.normal(0, 3, int(rng.integers(2, 8))))
    mu = tuple(np.sort(rng.normal(0, 3, 2)) if rng.random() < 0.8 else np.full(2, edges[0]))
    S = tuple(np.sort(10.0 ** rng.uniform(-4, 2, 2))) if rng.random() < 0.8 else (0.0, 1.0)
    ends = np.array([-math.inf, *edges, math.inf])
    least, most = masses(ends[:-1], ends[1:], mu, S)
    found = np.array([[mass(a, b, m, s) for a, b in pairwise(ends)] for m, s in grid(mu, S, edges)])
    assert (found >= least).all()
    assert (found <= most).all()
    if S[0] > 0:  # the bounds are attained: nearly, on a grid
        assert (found.min(axis=0) - least <= 1e-9).all()
        assert (most - found.max(axis=0) <= 0.02).all()


def grid(mu, S, edges):
    """Corners, midpoints of the intervals, and a grid of (mean, variance)."""
    middles = np.clip(0.5 * (edges[1:] + edges[:-1]), *mu)
    means = np.concatenate([np.linspace(*mu, 9), middles])
    variances = np.concatenate(
        [np.linspace(*S, 9), np.geomspace(max(S[0], 1e-6), max(S[1], 1e-6), 40).clip(*S)]
    )
    return [(float(m), float(s)) for m in means for s in variances]


def mass(a, b, m, s):
    if s == 0:
        return float(a < m < b)
    root = math.sqrt(2 * s)
    if m > b:
        return 0.5 * (math.erfc((m - b) / root) - math.erfc((m - a) / root))
    if m < a:
        return 0.5 * (math.erfc((a - m) / root) - math.erfc((b - m) / root))
    return 0.5 * (math.erf((m - a) / root) + math.erf((b - m) / root))


def complementary_log_log():
    """1 - exp(-e^f): increasing, not symmetric."""

    def value(f):
        return -np.expm1(-np.exp(np.minimum(f, 700.0)))

    def enclose(lower, upper):
        return value(lower) * (1 - 1e-14), np.minimum(value(upper) * (1 + 1e-14), 1.0)

    return Link(value, enclose, name="cloglog", tolerance=1e-3)


@pytest.mark.parametrize("likelihood", [Probit(), Probit(3.0), Logit(), complementary_log_log()])
def test_proposition_1_encloses_the_expectation(likelihood):
    rng = np.random.default_rng(0)
    p = partition(likelihood, 200)
    for _ in range(60):
        mu, S = np.sort(rng.normal(0, 2, 2) * rng.choice([1.0, 1e-3])), np.sort(rng.uniform(0, 4, 2))
        lower, upper = integral_bounds(p, tuple(mu), tuple(S))
        m, s = rng.uniform(*mu, 20), rng.uniform(*S, 20)
        value, error = likelihood.expectation(m, s), likelihood.expectation_error(m, s)
        assert (value + error >= lower).all()
        assert (value - error <= upper).all()
    lower, upper = integral_bounds(p, (0.3, 0.3), (0.5, 0.5))
    assert upper - lower <= 2.5 / 200  # one step of sigma per interval, and rounding


def test_the_published_lemma_and_the_propositions_agree_for_the_probit():
    """Propositions 1 and 2 on a fine partition are no better than the lemma, and nearly as good."""
    link, p = curves_of(Probit()), partition(Probit(), 4000)
    for mu, S in (((0.2, 0.2), (0.5, 0.5)), ((-1.0, -1.0), (2.0, 2.0)), ((0.5, 0.6), (1.0, 1.1))):
        exact, partitioned = link.bounds(mu, S), integral_bounds(p, mu, S)
        assert partitioned[0] <= exact[0]
        assert partitioned[1] >= exact[1]
    assert integral_bounds(p, (0.2, 0.2), (0.5, 0.5))[0] == pytest.approx(
        link.bounds((0.2, 0.2), (0.5, 0.5))[0], abs=1e-3
    )


def test_candidates_lie_in_the_box_and_splits_are_valid():
    rng = np.random.default_rng(5)
    post = random_posterior(rng, 10, 3)
    box = random_box(rng, post)
    slice_ = make_slice(model_of(post), box.lower, np.arange(3))
    bound = PaperBound(RbfBound(curves_of(post.likelihood), BoxShape(box.lower, box.upper), slice_), None)
    certified = bound.over(box.lower, box.upper, box.reference, 0.9)
    assert (box.lower <= certified.point).all()
    assert (certified.point <= box.upper).all()
    assert 0 <= certified.split < 3
    assert certified.value <= bound.at(certified.point)[1]


def test_method_is_reported_and_checked():
    post = small_model()
    region = Box([0.0, 0.0], [0.1, 0.1])
    assert probability_range(post, region, method="paper").method == "paper"
    with pytest.raises(ValueError, match="method must be 'auto' or 'paper', got 'papers'"):
        probability_range(post, region, method="papers")


@pytest.mark.parametrize("S", [0.0, -0.0])
def test_no_variance_has_no_sign(S):
    """All mass lies at mu = 2: -0.0, which a maximum with 0 may leave, is no other variance than 0."""
    ends = np.array([-np.inf, -1.0, 1.0, 3.0, np.inf])
    least, most = masses(ends[:-1], ends[1:], (2.0, 2.0), (S, S))
    assert (least <= [0.0, 0.0, 1.0, 0.0]).all()
    assert (most >= [0.0, 0.0, 1.0, 0.0]).all()
    with np.errstate(divide="ignore"):
        assert _below(np.array([1.0, -1.0]), S).tolist() == [1.0, 0.0]
        assert _centred(np.array([1.0]), np.array([0.5]), S).tolist() == [1.0]

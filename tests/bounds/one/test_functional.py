"""Theorem 1 and the bound of one box, against ball arithmetic at vertices, random points and minimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxShape
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.functional import RbfLocal
from gpcert.bounds.local.gaussian.majorants import coarse, sharp
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.kernels import RBF
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from helpers.majorants import BUILDERS
from helpers.oracle import (
    BITS,
    OFFSETS,
    PRECISIONS,
    BoxCase,
    Functional,
    around,
    bits,
    examples,
    half_square,
    lengthscale,
    posteriors,
    random_box,
    random_posterior,
)
from judge import Truth

EACH = pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def functionals(draw):
    """tau of both signs and zero, over five orders of magnitude."""
    tau = draw(st.sampled_from([0.0, 1.0, -1.0])) * 10.0 ** draw(st.floats(-3.0, 2.0))
    kappa = draw(st.sampled_from([0.0, 1.0, -1.0])) * 10.0 ** draw(st.floats(-3.0, 1.0))
    return Functional(draw(st.sampled_from([1.0, 1.0, 0.0])), tau, kappa, draw(st.sampled_from([1.0, -1.0])))


def bound_of(build, post, box, f):
    """The functional's bound over the box with all features moving."""
    slice_ = make_slice(model_of(post), box.reference, np.arange(post.n_features), f.sign)
    with np.errstate(all="ignore"):  # as the search calls it
        majorants = build(around(slice_, box.lower, box.upper, box.reference))
        return RbfLocal(majorants).lower_bound(f.a, f.tau, f.kappa)


def check(bound, exact, box, f, x):
    """value <= e^{2r} f(x), latent <= f(x), for certain."""
    with bits(BITS):
        value, r = f.ball(exact, x), half_square(x, box.reference, exact.post)
        assert bound.latent == -math.inf or arb(bound.latent) <= value
        assert bound.value == -math.inf or arb(bound.value) <= value * (2 * r).exp()


def hard_points(post, box, f, rng, bound, count=40):
    """Points where the claim is most likely to fail: small f in doubles, and the relaxation's minimum."""
    X = box.points(rng, count)
    values = f.values(post, X)
    r = 0.5 * (((X - box.reference) / lengthscale(post)) ** 2).sum(axis=1)
    order = np.argsort(np.where(values > 0, values * np.exp(2 * r), values))
    point = np.clip(box.reference + bound.point * lengthscale(post), box.lower, box.upper)
    return [*X[order[:2]], X[np.argmin(values)], point]


def check_everywhere(build, post, box, f, rng):
    bound = bound_of(build, post, box, f)
    assert not math.isnan(bound.value)
    exact = Truth(post)
    for x in hard_points(post, box, f, rng, bound):
        check(bound, exact, box, f, x)


@EACH
@settings(max_examples=examples(250))
@given(post=posteriors(), f=functionals(), seed=seeds)
def test_never_above_the_functional(build, post, f, seed):
    rng = np.random.default_rng(seed)
    check_everywhere(build, post, random_box(rng, post), f, rng)


@pytest.mark.parametrize("build", [coarse, sharp], ids=lambda build: build.__name__)
@settings(max_examples=examples(30))
@given(
    post=posteriors(n=st.integers(1, 4), d=st.integers(25, 40), precisions=("laplace", "psd")),
    f=functionals(),
    seed=seeds,
)
def test_many_features(build, post, f, seed):
    rng = np.random.default_rng(seed)
    check_everywhere(build, post, random_box(rng, post, largest=0.5), f, rng)


@EACH
@settings(max_examples=examples(100))
@given(
    v=st.floats(-3.0, 3.0),
    width=st.floats(0.01, 1.5),
    right=st.booleans(),
    a=st.sampled_from([0.0, 1.0]),
    tau=st.sampled_from([-1.0, 1.0]),
    prior=st.booleans(),
)
def test_one_centre_on_a_line(build, v, width, right, a, tau, prior):
    """Where the majorants lose least; without the prior part (kappa = tau s2) little at the far end."""
    post = Posterior([[v]], [-1.0], [[0.8]], kernel=RBF())
    lower, upper = np.array([0.0]), np.array([width])
    box, f = BoxCase(lower, upper, upper if right else lower), Functional(a, tau, 0.0 if prior else tau)
    bound, exact = bound_of(build, post, box, f), Truth(post)
    for share in (0.0, 0.3, 0.7, 1.0):
        check(bound, exact, box, f, share * upper)


@settings(max_examples=examples(60))
@given(post=posteriors(n=st.integers(1, 10), d=st.integers(2, 5)), f=functionals(), seed=seeds)
def test_features_that_stand_still(post, f, seed):
    """A slice through some features is the full model with the others held."""
    rng = np.random.default_rng(seed)
    box = random_box(rng, post)
    moving = np.sort(rng.permutation(post.n_features)[: rng.integers(1, post.n_features)])
    lower, upper = box.reference.copy(), box.reference.copy()
    lower[moving], upper[moving] = box.lower[moving], box.upper[moving]
    box = BoxCase(lower, upper, box.reference)
    slice_ = make_slice(model_of(post), box.reference, moving, f.sign)
    exact = Truth(post)
    for build in BUILDERS:
        with np.errstate(all="ignore"):
            e = around(slice_, lower[moving], upper[moving], box.reference[moving])
            bound = RbfLocal(build(e)).lower_bound(f.a, f.tau, f.kappa)
        for x in box.points(rng, 10)[rng.permutation(41)[:3]]:
            check(bound, exact, box, f, x)


def symmetric_data(seed, width):
    """Trap 1: four-fold symmetric data in two of 25 features; the cubic cancels to rounding noise.

    After the referee's construction: at (width, -width) the mean is negative, at (width, width) positive.
    """
    rng = np.random.default_rng(seed)
    points, weights, height = [], [], 0.0
    for _ in range(int(rng.integers(1, 4))):
        a, p = rng.uniform(0.2, 1.2), 4.0 * rng.uniform(0.5, 3.0)
        height += 4.0 * p * math.exp(-a * a) * math.sinh(a * width) ** 2
        for x, y, sign in ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1)):
            points.append((x * a, y * a))
            weights.append(sign * p)
    points.append((0.0, 0.0))
    weights.append(0.5 * height)
    order = rng.permutation(len(weights))
    centres = np.zeros((len(weights), 25))
    centres[:, :2] = np.array(points)[order]
    return Posterior(centres, np.array(weights)[order], np.zeros((len(order), len(order))), kernel=RBF())


@pytest.mark.parametrize("seed", range(12))
def test_trap_1_a_cubic_that_cancels_is_not_negative_curvature(seed):
    width = np.full(25, 1e-4)
    width[:2] = 0.2
    post = symmetric_data(seed, 0.2)
    worst = np.zeros(25)
    worst[:2] = 0.2, -0.2
    exact = Truth(post)
    with bits(BITS):
        assert exact.latent(worst)[0] < 0
    for reference in (np.zeros(25), worst, -worst):
        box = BoxCase(-width, width, reference)
        for build in BUILDERS:
            for tau in (0.0, 1e-3, -1e-3):
                f = Functional(1.0, tau, 0.0)
                check(bound_of(build, post, box, f), exact, box, f, worst)


@EACH
@pytest.mark.parametrize("weight", [-1.0, -1e98])
def test_kernels_that_underflow_at_the_reference_count_elsewhere(build, weight):
    """Trap 7: k = e^-760 is 0 in doubles at the reference, but e^-220 at the other end of the box."""
    post = Posterior([[0.0]], [weight], [[0.0]], kernel=RBF())
    box = BoxCase(np.array([21.0]), np.array([39.0]), np.array([39.0]))
    f = Functional(1.0, 0.0, 0.0)
    check(bound_of(build, post, box, f), Truth(post), box, f, box.lower)


@EACH
def test_underflow_through_features_that_stand_still(build):
    """The amplitude e^-747 is 0 in doubles, but e^{2r} brings it back: e^-409 at the other end."""
    post = Posterior([[0.0, 0.0]], [-1.0], [[0.0]], kernel=RBF())
    x = np.array([38.65, 26.0])
    slice_ = make_slice(model_of(post), x, np.array([1]))
    with np.errstate(all="ignore"):
        e = around(slice_, np.array([0.0]), np.array([26.0]), np.array([26.0]))
        bound = RbfLocal(build(e)).lower_bound(1.0, 0.0, 0.0)
    box = BoxCase(np.array([38.65, 0.0]), x, x)
    check(bound, Truth(post), box, Functional(1.0, 0.0, 0.0), box.lower)


@EACH
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("tau", [-2.0, 0.0, 3.0])
def test_order_of_convergence_is_at_least_three(build, offset, tau):
    """Halving the box around its centre: the gap to the true minimum (made 0 by kappa) falls eightfold."""
    for seed in range(3):
        post = random_posterior(np.random.default_rng(seed), 12, 2, offset=offset)
        centre = post.centres[0] + 0.3 * lengthscale(post)
        sizes = 0.2 * 0.5 ** np.arange(5)
        gaps = []
        for size in sizes:
            half = size * lengthscale(post)
            box = BoxCase(centre - half, centre + half, centre)
            f = Functional(1.0, tau / post.kernel.variance, 0.0)
            f = Functional(1.0, f.tau, -minimum(post, box, f))
            gaps.append(-bound_of(build, post, box, f).value)
        scale = np.abs(post.weights) @ post.kernel(post.centres, centre[None])[:, 0] + abs(tau)
        assert min(gaps) >= -1e-9 * scale
        order = np.polyfit(np.log(sizes), np.log(np.maximum(gaps, 1e-11 * scale)), 1)[0]
        assert order >= 2.8 or max(gaps) <= 1e-6 * scale


def minimum(post, box, f):
    """min f over the box in floating point: L-BFGS-B from the best of many points."""
    X = box.points(np.random.default_rng(0), 200)
    start = X[np.argmin(f.values(post, X))]
    width = box.upper - box.lower

    def objective(y):
        return float(f.values(post, np.clip(box.lower + y * width, box.lower, box.upper)[None])[0])

    found = minimize(objective, (start - box.lower) / width, method="L-BFGS-B", bounds=[(0, 1)] * len(width))
    return min(found.fun, f.values(post, start[None])[0])


@EACH
@pytest.mark.parametrize("seed", range(4))
def test_exact_at_a_strict_vertex_minimiser(build, seed):
    """The reference is the vertex where f falls steepest: nothing but rounding is lost."""
    post = random_posterior(np.random.default_rng(seed), 15, 3)
    centre, half = post.centres[0] + 0.2 * lengthscale(post), 1e-3 * lengthscale(post)
    box = BoxCase(centre - half, centre + half, centre)
    for tau in (-1.0, 0.0, 1.0):
        f = Functional(1.0, tau / post.kernel.variance, 0.0)
        vertices = np.array(np.meshgrid(*zip(box.lower, box.upper, strict=True))).reshape(3, -1).T
        values = f.values(post, vertices)
        vertex = vertices[np.argmin(values)]
        bound = bound_of(build, post, BoxCase(box.lower, box.upper, vertex), f)
        size = np.abs(post.weights).sum() * post.kernel.variance + abs(tau) + abs(values.min())
        assert 0.0 <= values.min() - bound.value <= 1e-8 * size


@EACH
@pytest.mark.parametrize(
    ("weight", "lower", "upper"),
    [
        (1.0, -30.0, 30.0),  # s^2 > 709: e^{2r} overflows
        (1.0, 1e3, 1e3 + 1.0),  # a thousand lengthscales from all data
        (1e160, -0.1, 0.1),
        (1e300, -0.1, 0.1),
        (0.0, -0.1, 0.1),
        (1.0, 1e300, 1.1e300),
        (1.0, 5e-324, 1e-323),
        (1e-310, -1.0, 1.0),
    ],
)
def test_trap_7_extremes_weaken_and_never_raise(build, weight, lower, upper):
    post = Posterior([[0.0, 0.0], [0.5, 0.5]], [weight, -0.5 * weight], np.full((2, 2), 0.25), kernel=RBF())
    box = BoxCase(np.full(2, lower), np.full(2, upper), np.full(2, upper))
    exact = Truth(post)
    for tau in (-1.0, 0.0, 1.0):
        f = Functional(1.0, tau, 0.25)
        bound = bound_of(build, post, box, f)
        assert not math.isnan(bound.value)
        for x in (box.lower, box.upper):
            check(bound, exact, box, f, x)


def certified(post, box, target, label):
    slice_ = make_slice(model_of(post), box.reference, np.arange(post.n_features), 2.0 * label - 1.0)
    rbf = RbfBound(curves_of(post.likelihood), BoxShape(box.lower, box.upper), slice_)
    with np.errstate(all="ignore"):
        return rbf.over(box.lower, box.upper, box.reference, target)


@pytest.mark.parametrize("likelihood", [Probit(), Probit(5.0), Logit()], ids=repr)
@pytest.mark.parametrize("kind", PRECISIONS)
@settings(max_examples=examples(60))
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 3),
    seed=seeds,
    offset=st.sampled_from(OFFSETS),
    step=st.sampled_from([-0.3, -1e-2, -1e-5, 0.0, 1e-5, 1e-3, 1e-2, 0.1, 0.3]),
    at_worst=st.booleans(),
)
def test_boxes_never_promise_too_much(likelihood, kind, n, d, seed, offset, step, at_worst):
    """Targets below and above the minimum, both sides of 1/2: what comes back is true at the worst points."""
    rng = np.random.default_rng(seed)
    post = random_posterior(rng, n, d, kind, offset, likelihood)
    box, label = random_box(rng, post), int(rng.integers(2))
    X = box.points(rng, 100)
    p = post.probability(X)[:, label]
    worst = X[np.argmin(p)]
    target = float(np.clip(p.min() + step, 1e-6, 1 - 1e-6))
    box = BoxCase(box.lower, box.upper, worst if at_worst else box.reference)
    answer = certified(post, box, target, label)
    assert (box.lower <= answer.point).all()
    assert (answer.point <= box.upper).all()
    exact = Truth(post)
    for x in (worst, answer.point):
        if answer.value > post.probability(x[None])[0, label] - 1e-6:
            assert exact.at_least(x, label, answer.value)


@pytest.mark.parametrize("kind", PRECISIONS)
@settings(max_examples=examples(40))
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 3),
    seed=seeds,
    likelihood=st.sampled_from([Probit(), Probit(5.0), Logit()]),
)
def test_points_are_enclosed(kind, n, d, seed, likelihood):
    rng = np.random.default_rng(seed)
    post = random_posterior(rng, n, d, kind, float(rng.choice(OFFSETS)), likelihood)
    x, label = random_box(rng, post).reference, int(rng.integers(2))
    slice_ = make_slice(model_of(post), x, np.arange(d), 2.0 * label - 1.0)
    low, high = RbfBound(curves_of(likelihood), BoxShape(x, x), slice_).at(x)
    assert Truth(post).at_least(x, label, low)
    assert Truth(post).at_most(x, label, high)

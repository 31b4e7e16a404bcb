"""Lines and roots above level curves of any link (S3), against mixtures of normal distributions in balls.

Staircases are the links whose expectation is known exactly, and the worst ones: a jump is as steep as a link
can be, and nothing is smooth at small variances.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import gpcert as gc
from gpcert.bounds.levels import steps
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.levels.steps import StepCurves, StepLevel
from helpers.oracle import bits, examples

#: Above this share of what S3 allows, some sums of steps do fall between two points.
_REACHED = 0.3


@bits(120)
def phi(z):
    return (-z / arb(2).sqrt()).erfc() / 2


@bits(120)
def expectation(staircase, mu, s):
    """sum_i a_i Phi((mu - t_i) / s) as a ball; at s = 0 the steps themselves, continuous from the left."""
    total, mu, s = arb(0), arb(mu), arb(s)
    for height, edge in zip(*staircase, strict=True):
        if s == 0:
            total += arb(height) if mu > arb(edge) else arb(0)
        else:
            total += arb(height) * phi((mu - arb(edge)) / s)
    return total


@st.composite
def staircases(draw):
    """Heights of sum 1 at most, and edges, at all magnitudes."""
    k = draw(st.integers(1, 6))
    heights = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=k, max_size=k)))
    size = 10.0 ** draw(st.sampled_from([0, 0, 0, -6, 4]))
    edges = np.sort(draw(st.lists(st.floats(-3.0, 3.0), min_size=k, max_size=k)))
    heights = heights / heights.sum() * draw(st.sampled_from([1.0, 0.9])) * (1.0 - 1e-12)
    return heights.tolist(), (size * edges).tolist()


def curves(staircase):
    """As `StepCurves`: sigma is the staircase itself."""
    heights, edges = staircase
    ends = np.unique(np.array([-1e9, *edges, 1e9]))
    below = np.array([sum(h for h, t in zip(heights, edges, strict=True) if t <= e) for e in ends[:-1]])
    return StepCurves(ends, below, below)


def variances(largest):
    shares = [0.0, 1e-12, 1e-8, 1e-6, 1e-5, *np.geomspace(1e-4, 1.0, 24).tolist()]
    return [min(share * largest, largest) for share in shares]


def tops(level, S, largest):
    """What planes are given at S: functions of a variance, as balls."""
    tau, kappa = level.tangent(S, largest)
    root = level.root(S, largest)
    found = [lambda x: arb(tau) * arb(x) - arb(kappa)] if kappa > -math.inf else []
    if root is not None:
        found.append(lambda x: -(arb(root[0]) * (arb(root[1]) + arb(x)).sqrt() + arb(root[2])))
    return found


@bits(120)
def clears(staircase, p, top, S):
    return bool(expectation(staircase, top(S), arb(S).sqrt()) >= arb(p))


@settings(max_examples=examples(40), deadline=None)
@given(
    staircase=staircases(),
    p=st.sampled_from([0.02, 0.3, 0.5, 0.7, 0.97]) | st.floats(0.01, 0.99),
    largest=st.floats(-4.0, 3.0).map(lambda e: 10.0**e),
    share=st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0),
)
def test_lines_and_roots_clear_the_level_everywhere(staircase, p, largest, share):
    level = StepLevel(curves(staircase), p)
    for top in tops(level, share * largest, largest):
        assert all(clears(staircase, p, top, S) for S in variances(largest))


@settings(max_examples=examples(100), deadline=None)
@given(
    staircase=staircases(),
    ends=st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)),
    s=st.floats(-3.0, 2.0).map(lambda e: 10.0**e),
    share=st.floats(0.1, 1.0),
)
def test_between_two_points_little_is_lost(staircase, ends, s, share):
    """S3 itself, for chords of any slope."""
    end = s * (1.0 + share * steps._APART)
    m = ends[0] * s, ends[1] * s * share * steps._APART + ends[0] * s
    with bits(120):
        slope = (arb(m[1]) - arb(m[0])) / (arb(end) - arb(s))
        allowed = arb(steps.lost(float(abs(slope).upper()), steps._APART))
        least = min((expectation(staircase, m[0], s), expectation(staircase, m[1], end)), key=float)
        for x in (0.25, 0.5, 0.75):
            at = arb(s) + arb(x) * (arb(end) - arb(s))
            between = expectation(staircase, arb(m[0]) + slope * (at - arb(s)), at)
            assert between >= least - allowed - arb(2) ** -90


def test_what_is_lost_between_two_points_is_not_far_from_what_is_allowed():
    """Two steps in balance: with a smaller constant in S3 the test before would be of nothing."""
    s, end, worst = 1.0, 1.0 + steps._APART, 0.0
    for near, far, height in np.random.default_rng(0).uniform([0.3, 1.0, 0.2], [1.2, 3.0, 0.8], (4000, 3)):
        z = np.array([near, -far])
        rise = np.array([height, 1.0 - height]) @ (ndtr(z / end) - ndtr(z / s))
        slope = -rise / (np.array([height, 1.0 - height]) @ np.exp(-0.5 * z * z)) * math.sqrt(2 * math.pi)
        m = [0.0, slope]
        value = [
            np.array([height, 1.0 - height]) @ ndtr((z + mu) / x)
            for mu, x in ((m[0], s), (m[1], end), (0.5 * slope, 0.5 * (s + end)))
        ]
        worst = max(worst, (min(value[:2]) - value[2]) / steps.lost(abs(slope) / steps._APART, steps._APART))
    assert _REACHED < worst < 1.0


def test_the_constants_of_s3():
    """|z^3 - 2 z| phi <= 0.34, |2 - 2 z^2| phi <= 0.8 and |z| phi <= 0.25, on cells of [0, 12]; beyond, all
    three fall.
    """
    with bits(80):
        for i in range(2400):
            z = arb(i / 200.0 + 1 / 400.0, 1 / 400.0)
            density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
            assert abs(z**3 - 2 * z) * density < 0.34
            assert abs(2 - 2 * z**2) * density < 0.8
            assert abs(z) * density < 0.25


@settings(max_examples=examples(60), deadline=None)
@given(
    m=st.lists(st.floats(-5.0, 5.0), min_size=4, max_size=12),
    first=st.floats(-5.0, 5.0),
    scale=st.sampled_from([1.0, 1.0, 1e-8, 1e6]),
    noise=st.floats(-4.0, 2.0).map(lambda e: 10.0**e),
    share=st.floats(0.0, 1.0),
)
def test_lines_and_roots_lie_above_all_chords_and_touch_one_or_are_level(m, first, scale, noise, share):
    """Far coarser tables than those in use: where a chord is highest in between, it is so by much."""
    s = np.geomspace(0.05, 3.0, len(m))
    known = steps.Chords(s, scale * np.array(m), scale * first)
    S = share * 9.0
    tau, minus = known.line_above(S)
    steep, c, kappa = known.root_above(S, noise)
    with bits(200):
        places = [
            (arb(0), arb(known.first)),
            (arb(s[0]) / 2, arb(known.first)),
            (arb(s[0]), arb(known.first)),
        ]
        for a, b, low, high in zip(s[:-1], s[1:], known.m[:-1], known.m[1:], strict=True):
            slope = (arb(high) - arb(low)) / (arb(b) - arb(a))
            inner = [arb(a) + (arb(b) - arb(a)) * i / 16 for i in range(17)]
            if tau > 0 and a < float(slope) / (2 * tau) < b:
                inner.append(slope / (2 * arb(tau)))
            places += [(x, arb(low) + slope * (x - arb(a))) for x in inner]
        lines = [arb(tau) * x * x - arb(minus) - y for x, y in places]
        roots = [-(arb(steep) * (arb(c) + x * x).sqrt() + arb(kappa)) - y for x, y in places]
    for gaps in (lines, roots):
        assert all(bool(gap >= 0) for gap in gaps)
        assert min(map(float, gaps)) <= 1e-9 * scale


@settings(max_examples=examples(80), deadline=None)
@given(staircase=staircases(), p=st.floats(0.02, 0.95), largest=st.floats(-3.0, 2.0).map(lambda e: 10.0**e))
def test_tables_clear_their_goal_at_every_point_and_their_level_before_the_first(staircase, p, largest):
    found, s = curves(staircase), steps.deviations(1e-3, largest, 0.07)
    far = np.full(len(s), 0.1)
    m = steps.cleared(found.along, p, s, np.zeros(len(s)), far)
    exact = [
        expectation(staircase, *pair) if math.isfinite(pair[0]) else arb(1) for pair in zip(m, s, strict=True)
    ]
    assert all(bool(value >= arb(p)) for value in exact)
    if p < sum(staircase[0]):
        less = [expectation(staircase, mu - 1e-6 * (1 + abs(mu) + x), x) for mu, x in zip(m, s, strict=True)]
        assert all(bool(value <= arb(p) + 1e-5) for value in less)
    known = steps._chords(found, p, largest * largest)
    if known is not None:
        assert known.s[-1] >= largest
        for share in (0.0, 1e-6, 0.01, 0.3, 1.0):
            assert expectation(staircase, known.first, share * known.s[0]) >= arb(p)


@pytest.mark.parametrize("link", [ndtr, lambda f: 0.5 * ndtr(f) + 0.5 * (f > 0.3)], ids=["smooth", "jump"])
def test_coarse_steps_are_below_the_fine_ones_and_near(link):
    fine = curves_of(gc.Link(link, lambda a, b: (link(a) - 1e-14, link(b) + 1e-14)))
    heights, edges = fine.coarse
    total = np.cumsum(heights)
    at = np.searchsorted(edges, fine.edges[:-1], side="right")
    below = np.append(0.0, total)[at]
    assert (below <= fine.lower + 1e-13).all()
    assert (below >= fine.lower - 2 * steps._COARSE).all()
    assert len(heights) < 0.6 * len(fine.lower)


@pytest.mark.parametrize("largest", [1e-9, 1.0, 30.0])
@pytest.mark.parametrize("apart", [0.01, 0.07])
def test_deviations_reach_both_ends_and_are_near_enough(largest, apart):
    s = steps.deviations(1e-3 * largest, largest, apart)
    assert s[-1] == largest
    assert s[0] >= 1e-3 * largest
    assert (s[1:] / s[:-1] <= 1.0 + apart * (1 + 1e-9)).all()


@pytest.mark.parametrize("slope", [0.0, 1.0, 4.0])
def test_the_spacing_gives_away_no_more_than_is_given(slope):
    for most in (1e-3, 3e-4):
        assert steps.lost(slope, steps.spacing(slope, most)) <= most * 1.001


@pytest.mark.parametrize("p", [0.05, 0.2, 0.45, 0.55, 0.9])
@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize(("floor", "rise"), [(0.0, 1.0), (0.3, 0.4), (0.26, 0.7), (0.0, 0.2), (0.95, 0.05)])
def test_a_probit_given_as_a_link_is_all_but_touched(p, noise, floor, rise):
    """Not only true, but of use: planes lose little where they are asked, however narrow the link's range."""
    scale = 1.0 / noise

    def at(f):
        return floor + rise * ndtr(scale * f)

    link = gc.Link(at, lambda a, b: (at(a) - 1e-14, at(b) + 1e-14))
    level, exact = curves_of(link).level(floor + rise * p), curves_of(gc.Probit(scale)).level(p)
    assert curves_of(link).noise == pytest.approx(noise**2, rel=0.1)
    for S in (0.1, 1.0, 5.0):
        if level.rises(S, 10.0):
            tau, kappa = level.tangent(S, 10.0)
            mean = tau * S - kappa
        else:
            steep, c, kappa = level.root(S, 10.0)
            mean = -(steep * math.sqrt(c + S) + kappa)
        assert 0.0 <= mean - exact.curve(S)[0] <= 0.04 * math.sqrt(noise**2 + S) / rise


@pytest.mark.parametrize("p", [0.98, 0.995, 0.998, 0.02, 0.005])
def test_near_the_ends_planes_give_away_little_of_what_there_is(p):
    """At p = 0.995 a table once gave away 0.0047, and radii were shorter than for larger thresholds."""
    level = curves_of(gc.Link(ndtr, lambda a, b: (ndtr(a) - 1e-14, ndtr(b) + 1e-14), "normal")).level(p)
    for S in (0.1, 2.0):
        if p > 0.5:
            tau, kappa = level.tangent(S, 4.0)
            mean = tau * S - kappa
        else:
            steep, c, kappa = level.root(S, 4.0)
            mean = -(steep * math.sqrt(c + S) + kappa)
        assert p <= ndtr(mean / math.sqrt(1.0 + S)) <= p + 0.3 * min(p, 1.0 - p)


def test_a_region_that_chords_over_a_range_of_variances_do_not_settle():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = (2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] > 0).astype(int)
    fitted = gc.GPClassifier(kernel=gc.RBF(3.0, 10.0), max_evals=0).fit(X, y).posterior_
    link = gc.Link(ndtr, lambda a, b: (ndtr(a) - 1e-14, ndtr(b) + 1e-14), "normal")
    post = gc.Posterior(X, fitted.weights, fitted.precision, kernel=fitted.kernel, likelihood=link)
    for x in X[:2]:
        mine, probit = (gc.probability_range(m, gc.Ball(x, 0.5), max_nodes=40) for m in (post, fitted))
        assert mine.status == "converged"
        assert mine.lower <= probit.min.upper
        assert mine.upper >= probit.max.lower


@settings(max_examples=examples(40), deadline=None)
@given(staircase=staircases(), p=st.floats(0.01, 0.99), end=st.floats(-4.0, 3.0), share=st.floats(0.0, 1.0))
def test_a_level_of_a_range_has_a_line_that_clears_it_there(staircase, p, end, share):
    """L3: whether it falls or rises."""
    end = 10.0**end
    tau, kappa = StepLevel(curves(staircase), p).within((share * end, end)).tangent(end, end)
    if math.isfinite(kappa):
        for S in np.linspace(share * end, end, 5).clip(share * end, end):
            assert clears(staircase, p, lambda x: arb(tau) * arb(x) - arb(kappa), float(S))


@pytest.mark.parametrize(("link", "tolerance"), [("own", 2e-3), ("logit", 1e-7), ("scikit-learn", 1e-5)])
def test_tight_tolerances_are_reached_where_roots_and_tables_miss_the_curve(link, tolerance):
    """By planes of a short range of variances (X8), whose loss vanishes as the set shrinks."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] > 0).astype(int)
    for kernel in (gc.RBF(1.0, 10.0), gc.Matern52(1.0, 10.0)):
        fitted = gc.GPClassifier(kernel=kernel, likelihood="logit", max_evals=0).fit(X, y).posterior_
        links = {
            "own": gc.Link(ndtr, lambda a, b: (ndtr(a) - 1e-14, ndtr(b) + 1e-14), "normal"),
            "logit": gc.Logit(),
            "scikit-learn": gc.FiveErf(),
        }
        post = gc.Posterior(X, fitted.weights, fitted.precision, kernel=kernel, likelihood=links[link])
        answer = gc.probability_range(post, gc.Ball(X[0], 0.05), tolerance=tolerance, max_nodes=400)
        assert answer.status == "converged"

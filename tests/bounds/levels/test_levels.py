"""Level curves and corner enclosures against expectations in ball arithmetic, probit and logit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.levels.curves import ProbitCurves
from gpcert.bounds.levels.logistic import LogitCurves
from gpcert.bounds.levels.registry import curves_of
from gpcert.likelihoods import Logit, Probit
from helpers.oracle import bits, examples
from judge.logistic import logistic_normal

LIKELIHOODS = [Probit(), Probit(0.05), Probit(30.0), Probit(1e-9), Logit()]
EACH = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
PROBABILITIES = (1e-6, 1e-3, 0.1, 0.4999, 0.5, 0.5001, 0.7, 0.9, 0.99, 1 - 1e-6)

probabilities = st.sampled_from(PROBABILITIES) | st.floats(1e-6, 1 - 1e-6)
variances = st.sampled_from([0.0, 1e-12, 1e4]) | st.floats(-9.0, 4.0).map(lambda e: 10.0**e)


@bits(120)
def expectation(likelihood, mu, S):
    """E sigma(f), f ~ N(mu, S), as a ball; mu and S balls or doubles."""
    mu, S = arb(mu), arb(S)
    if isinstance(likelihood, Probit):
        return (-mu / (2 * (S + 1 / arb(likelihood.scale) ** 2)).sqrt()).erfc() / 2
    return logistic_normal(mu, S if S > 1e-20 else arb(0, S))  # below, a ball around 0 is sharp enough


def grid(largest):
    """Variances from 0 to the largest, where an affine function and a curve may part."""
    shares = [0.0, 1.0, *np.geomspace(1e-9, 1.0, 12).tolist(), *np.linspace(0.0, 1.0, 12).tolist()]
    return [share * largest for share in shares]


@bits(120)
def line(affine, S):
    """tau S - kappa as a ball."""
    tau, kappa = affine
    return arb(tau) * arb(S) - arb(kappa)


@bits(120)
def probit_curve(level, scale, S):
    """t sqrt(scale^-2 + S) as a ball."""
    return arb(level.t) * (1 / arb(scale) ** 2 + arb(S)).sqrt()


@pytest.mark.parametrize("scale", [1e-9, 0.05, 1.0, 30.0, 1e9])
@given(p=probabilities, S=variances, other=variances)
def test_probit_lines_dominate_the_curve_itself(scale, p, S, other):
    """Sharper than through probabilities, which round: tau S' - kappa >= t sqrt(scale^-2 + S') as reals."""
    level = ProbitCurves(scale).level(p)
    start, end = sorted((S, other))
    affine = level.tangent(S, end) if level.concave else level.chord(start, end)
    for x in grid(1e4) if level.concave else np.linspace(start, end, 20).clip(start, end).tolist():
        assert level.t == 0 or line(affine, x) >= probit_curve(level, scale, x)


@EACH
@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("S", [0.0, 0.3, 40.0])
def test_lines_touch_the_curve(likelihood, p, S):
    """Close to the curve where they are asked to be: the probability is not given away."""
    level = curves_of(likelihood).level(p)
    assert level.p == pytest.approx(p, rel=1e-9)
    affine = level.tangent(S, 100.0) if level.concave else level.chord(S, S)
    reached = expectation(likelihood, line(affine, S), S)
    assert abs(float(reached) - p) <= 1e-3 * min(p, 1 - p)


@settings(max_examples=examples(60))
@given(p=probabilities, S=variances)
def test_the_logit_curve_is_enclosed(p, S):
    lower, upper = LogitCurves(Logit()).level(p).curve(S)
    assert expectation(Logit(), lower, S) <= arb(p) <= expectation(Logit(), upper, S)
    # 1 - p is known to rounding only, and the curve no better than that.
    assert upper - lower <= (1e-11 + 1e-14 / min(p, 1 - p)) * (1 + abs(lower)) * (1 + math.sqrt(S))


def test_variances_asked_for_together_are_enclosed_as_alone():
    """Also those that make no sense: nothing is known there, and the others do not suffer."""
    S = [0.3, -1.0, 7.0, math.nan, 1e91, 0.0]
    for p in (1e-200, 0.2, 0.9):
        found = LogitCurves(Logit()).level(p).enclosures(S)
        for x, (lower, upper) in zip(S, found, strict=True):
            if 0.0 <= x < 1e90:
                assert expectation(Logit(), lower, x) <= arb(p) <= expectation(Logit(), upper, x)
            else:
                assert (lower, upper) == (-math.inf, math.inf)


def cleared(level, root, S):
    """Whether mu = -(steep sqrt(c + S) + kappa) has probability at least p at S, for certain (G3)."""
    steep, c, kappa = map(arb, root)
    with bits(120):
        mean = -(steep * (c + arb(S)).sqrt() + kappa)
    return bool(expectation(Logit(), mean, S) >= arb(level.p))


@settings(max_examples=examples(30))
@given(
    p=st.sampled_from([q for q in PROBABILITIES if q < 0.5]) | st.floats(1e-6, 0.4999),
    largest=st.floats(-3.0, 3.5).map(lambda e: 10.0**e),
    share=st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0),
)
def test_the_root_of_the_logistic_clears_its_curve_near_and_far(p, largest, share):
    """Near the variance at which it is asked it all but touches: a root that crosses does so there first."""
    level, S = LogitCurves(Logit()).level(p), share * largest
    root = level.root(S, largest)
    around = [(1.0 + S) * x for x in (0.0, 1e-4, 1e-3, 4e-3, 0.01, 0.03, 0.1, 0.3)]
    asked = [0.0, largest, *(S + x for x in around), *(S - x for x in around), 1e-3 * largest, 0.1 * largest]
    assert all(cleared(level, root, x) for x in asked if 0.0 <= x <= largest)


@pytest.mark.parametrize("p", [1e-3, 0.02, 0.1, 0.2, 0.4, 0.49])
@pytest.mark.parametrize("largest", [1e-3, 1.0, 10.0, 100.0, 400.0])
def test_the_root_of_the_logistic_touches_its_curve(p, largest):
    """A little higher and it would cross: nothing that does not shrink with a box is lost to it."""
    level = LogitCurves(Logit()).level(p)
    for S in (0.0, 0.01 * largest, 0.3 * largest, largest):
        steep, c, kappa = level.root(S, largest)
        assert cleared(level, (steep, c, kappa), S)
        assert not cleared(level, (steep, c, kappa + 1e-4 * math.sqrt(1.0 + S)), S)


@EACH
def test_points_are_enclosed_narrowly(likelihood):
    for mu in (-20.0, -1.0, 0.0, 1e-9, 3.0, 25.0):
        for S in (0.0, 0.1, 7.0, 1e4):
            low, high = curves_of(likelihood).bounds((mu, mu), (S, S))
            assert 0.0 <= low <= high <= 1.0
            assert high - low <= 1e-12


@EACH
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_gives_a_trivial_enclosure(likelihood, bad):
    link = curves_of(likelihood)
    for mu, S in (((-bad, bad), (0.0, 1.0)), ((math.nan, 0.0), (0.0, bad))):
        low, high = link.bounds(mu, S)
        assert low == 0.0
        assert high >= 0.5
    assert link.bounds((1.0, 2.0), (0.0, bad))[0] <= 0.5
    assert link.bounds((-2.0, -1.0), (0.0, bad))[1] >= 0.5


def test_the_other_class_of_a_floored_link_is_the_complement():
    """`Link` takes 1e-12 for symmetric: what is claimed of the other class is true to less."""
    high = 0.7 + 9e-13

    def value(f):
        return np.where(np.asarray(f) < -1, 0.3, np.where(np.asarray(f) > 1, high, 0.5))

    link = gc.Link(value, lambda a, b: (value(a), value(b)), name="steps", symmetric=True)
    post = gc.Posterior(
        [[0.0]], [0.0], [[0.0]], kernel=gc.RBF(1.0, 1.0), likelihood=gc.Floored(link, 0.01), mean=40.0
    )
    found = gc.probability_range(post, gc.Ball([0.0], 0.0), label=0, tolerance=1e-14, max_nodes=5)
    truth = 1 - (Fraction(0.01) + (1 - 2 * Fraction(0.01)) * Fraction(high))  # and Phi(-39) at most
    assert Fraction(found.min.lower) <= truth <= Fraction(found.max.upper)


@pytest.mark.parametrize("likelihood", ["logit", gc.FiveErf(), gc.Floored(Logit(), 0.001)])
def test_a_variance_that_no_root_tells_from_0(likelihood):
    X, variance = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 1e-18
    kernel = gc.RBF(1.0, variance)
    R = np.linalg.inv(kernel(X) + variance * np.eye(3))
    weights = np.array([1.0, -2.0, 1.0]) / variance
    post = gc.Posterior(X, weights, 0.5 * (R + R.T), kernel=kernel, likelihood=likelihood, mean=-0.3)
    found = gc.probability_range(post, gc.Ball(X[0], 0.5))
    p = post.probability(X[0] + np.array([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [0.0, 0.0]]))[:, 1]
    assert found.lower - 1e-9 <= p.min() <= p.max() <= found.upper + 1e-9

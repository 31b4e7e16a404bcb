"""The probabilities that other libraries report: GPflow's floor and scikit-learn's five error functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, arb_series, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.levels.registry import curves_of
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import FiveErf, Floored, Logit, Probit, Softmax, likelihood_from_dict
from gpcert.likelihoods.prediction import COEFFICIENTS, DRIFT, GAP, LAMBDAS, SLOPE, TOTAL
from gpcert_paper.method.latent_space import partition
from helpers.oracle import bits, examples
from judge.logistic import logistic_normal

LIKELIHOODS = [FiveErf(), Floored(), Floored(Logit(), 0.05), Floored(Probit(3.0), 0.4)]
EACH = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)

means = st.sampled_from([0.0, -1e9, 1e9]) | st.floats(-60.0, 60.0)
variances = st.sampled_from([0.0, 1e-12, 1e4]) | st.floats(-9.0, 3.0).map(lambda e: 10.0**e)
probabilities = st.floats(1e-4, 1 - 1e-4) | st.sampled_from([1e-3, 0.4999, 0.5, 0.96, 0.995, 1 - 1e-3])

RADIUS = 2.0**-6
TERMS = 10


@bits(120)
def expectation(likelihood, mu, S):
    """E sigma(f), f ~ N(mu, S), as a ball."""
    mu, S = arb(mu), arb(S)
    if isinstance(likelihood, Probit):
        return (-mu / (2 * (S + 1 / arb(likelihood.scale) ** 2)).sqrt()).erfc() / 2
    if isinstance(likelihood, Logit):
        return logistic_normal(mu, S if S > 1e-20 else arb(0, S))
    if isinstance(likelihood, Floored):
        floor = arb(likelihood.floor)
        return floor + (1 - 2 * floor) * expectation(likelihood.link, mu, S)
    parts = zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)
    return sum(arb(c) * (-mu / (2 * S + 1 / arb(l) ** 2).sqrt()).erfc() / 2 for c, l in parts)


# The constants of the formula, proved by a sweep over the real line in ball arithmetic.


def taylor(x: arb) -> tuple[list[arb], list[arb]]:
    """Taylor coefficients at x of the formula, and of its difference from the logistic."""
    f = arb_series([x, 1])
    formula = arb_series([0])
    for c, l in zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True):
        formula += arb(c) / 2 * (1 + (arb(l) * f).erf())
    difference = formula - 1 / (1 + (-f).exp())
    return [formula[k] for k in range(TERMS + 1)], [difference[k] for k in range(TERMS + 1)]


def enclose(middle: list[arb], around: list[arb], order: int) -> arb:
    """The derivative of the given order over the whole interval: Taylor's formula with its remainder."""
    total, power = arb(0), arb(1)
    for k in range(order, TERMS + 1):
        total += (middle if k < TERMS else around)[k] * math.perm(k, order) * power
        power *= arb(0, RADIUS)
    return total


@bits(160)
def test_the_constants_of_the_formula_hold_on_the_whole_line():
    before, ctx.cap = ctx.cap, TERMS + 1
    try:
        drift = [arb(0), arb(0)]
        for i in range(int(40 / (2 * RADIUS))):
            x = (2 * i + 1) * RADIUS
            (at, gap), (near, spread) = taylor(arb(x)), taylor(arb(x, RADIUS))
            assert abs(enclose(gap, spread, 0)) + abs(arb(1) - arb(TOTAL)) < GAP
            slope = enclose(at, near, 1)
            assert 0 < slope < SLOPE
            # Concave above 0: near 0, where the second derivative vanishes, by the third.
            assert enclose(at, near, 2 if x > 0.5 else 3) < 0
            drift = [d.max(abs(enclose(gap, spread, k))) for k, d in enumerate(drift, 1)]
        assert (drift[0] + drift[1]) / 2 < DRIFT
    finally:
        ctx.cap = before
    # Beyond 40 every erfc(lambda f) is below e^-219: both functions are at their limits, and the slope and
    # its derivative are those of the widest Gaussian, whose coefficient is positive, up to 1 %.
    widest = int(np.argmin(LAMBDAS))
    assert COEFFICIENTS[widest] > 0
    for i, (c, l) in enumerate(zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)):
        if i != widest:
            decay = (-(arb(l) ** 2 - arb(float(LAMBDAS[widest])) ** 2) * 1600).exp()
            assert abs(arb(c)) * arb(l) ** 3 * decay < 1e-3 * float(
                COEFFICIENTS[widest] * LAMBDAS[widest] ** 3
            )
    assert abs(sum((arb(c) for c in COEFFICIENTS.tolist()), arb(0)) - arb(TOTAL)) < 2.0**-53


def test_the_constants_are_those_of_scikit_learn():
    from sklearn.gaussian_process import _gpc

    np.testing.assert_array_equal(_gpc.COEFS[:, 0], COEFFICIENTS)
    np.testing.assert_array_equal(_gpc.LAMBDAS[:, 0], LAMBDAS)


# Laws of the likelihoods.


@EACH
@settings(max_examples=examples(150))
@given(m=means, v=variances)
def test_expectations_are_right_to_their_error(likelihood, m, v):
    exact = expectation(likelihood, m, v)
    p, error = likelihood.expectation(m, v), likelihood.expectation_error(m, v)
    assert 0 <= p <= 1
    assert abs(arb(float(p)) - exact) <= arb(float(error))
    assert error < 1e-10
    log_error = float(likelihood.log_expectation_error(m, v))
    if log_error < np.inf:
        assert abs(arb(float(likelihood.log_expectation(m, v))) - exact.log()) <= arb(log_error)


@EACH
@given(m=st.floats(-8, 8), v=st.floats(0.1, 50.0))
def test_gradients_are_those_of_the_expectation(likelihood, m, v):
    h = 1e-5
    by_mean, by_variance = likelihood.expectation_gradient(m, v)
    mean = (likelihood.expectation(m + h, v) - likelihood.expectation(m - h, v)) / (2 * h)
    variance = (likelihood.expectation(m, v + h) - likelihood.expectation(m, v - h)) / (2 * h)
    np.testing.assert_allclose([by_mean, by_variance], [mean, variance], rtol=0, atol=1e-6)


@EACH
def test_descriptions_and_refusals(likelihood):
    assert likelihood_from_dict(likelihood.to_dict()) == likelihood
    for question in (lambda: likelihood.log_likelihood(1, 0.0), lambda: likelihood.tilted(1, 0.0, 1.0)):
        with pytest.raises(InvalidInputError, match="prediction only"):
            question()


@pytest.mark.parametrize("floor", [0.0, 0.5, -1.0, math.nan, [0.1]])
def test_a_bad_floor_is_one_sentence(floor):
    with pytest.raises(InvalidInputError, match="floor must be"):
        Floored(Probit(), floor)


def test_a_floor_needs_a_symmetric_two_class_link():
    for link in (FiveErf(), Softmax()):
        with pytest.raises(InvalidInputError, match="link must be a symmetric two-class likelihood"):
            Floored(link)
    with pytest.raises(InvalidInputError):
        likelihood_from_dict({"name": "floored", "link": {"name": "softmax"}, "floor": (0.1).hex()})


# The certified counterparts.


@EACH
@pytest.mark.parametrize("side", ["one", "other"])
@settings(max_examples=examples(60))
@given(m=means, width=st.floats(-12, 1), v=variances, spread=st.floats(-12, 1), share=st.floats(0, 1))
def test_bounds_contain_every_value_of_the_rectangle(likelihood, side, m, width, v, spread, share):
    link = curves_of(likelihood)
    mu, S = (m, m + 10.0**width), (v, v + 10.0**spread)
    inside = mu[0] + share * (mu[1] - mu[0]), S[0] + share * (S[1] - S[0])
    inside = min(inside[0], mu[1]), min(inside[1], S[1])
    lower, upper = (link if side == "one" else link.mirrored()).bounds(mu, S)
    with bits(120):
        exact = expectation(likelihood, inside[0], inside[1])
        if side == "other":
            exact = 1 - expectation(likelihood, -arb(inside[0]), inside[1])
        assert lower == 0.0 or arb(lower) <= exact
        assert upper == 1.0 or exact <= arb(upper)


@EACH
@settings(max_examples=examples(60))
@given(p=probabilities, one=variances, other=variances, narrow=st.booleans())
def test_lines_of_a_level_certify_it(likelihood, p, one, other, narrow):
    """mu = tau S - kappa has probability at least `level.p` on the piece (concave: on [0, end])."""
    level = curves_of(likelihood).level(p)
    start, end = sorted((one, other))
    level = level.within((start, end)) if narrow else level
    tau, kappa = level.tangent(start, end) if level.concave else level.chord(start, end)
    if kappa == -math.inf:
        return
    first = 0.0 if level.concave and not narrow else start
    for S in [start, end, *np.linspace(first, end, 12).clip(first, end).tolist()]:
        with bits(120):
            assert expectation(likelihood, arb(tau) * arb(S) - arb(kappa), S) >= arb(level.p)


@EACH
@settings(max_examples=examples(60))
@given(p=probabilities, S=variances, deficit=st.floats(-9.0, 2.0))
def test_a_deficit_costs_at_most_what_is_said(likelihood, p, S, deficit):
    level, drop = curves_of(likelihood).level(p), 10.0**deficit
    tau, kappa = level.tangent(S, S) if level.concave else level.chord(S, S)
    if kappa == -math.inf:
        return
    with bits(120):
        mean = arb(tau) * arb(S) - arb(kappa) - arb(drop)
        certified = level.after_deficit(drop, S)
        assert certified == 0.0 or expectation(likelihood, mean, S) >= arb(certified)


@EACH
def test_the_published_method_encloses_the_link_on_its_partition(likelihood):
    p = partition(likelihood, 200)
    for f, below, above in zip(p.edges.tolist(), p.upper[:-1].tolist(), p.lower[1:].tolist(), strict=True):
        exact = expectation(likelihood, f, 0.0)
        assert exact <= arb(below)
        assert exact >= arb(above)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.7, 0.95, 0.99])
@pytest.mark.parametrize("S", [0.3, 2.0, 40.0])
def test_narrow_pieces_of_the_formula_lose_much_less_than_the_gap(p, S):
    """The loss against the level is of the order of the width of the piece."""
    losses = []
    for width in (0.1, 0.01, 0.001):
        level = curves_of(FiveErf()).level(p).within((S, S + width))
        tau, kappa = level.tangent(S + width / 2, S + width) if level.concave else level.chord(S, S + width)
        losses.append(float(expectation(FiveErf(), tau * (S + width / 2) - kappa, S + width / 2)) - p)
    assert losses[1] < 2e-5
    assert losses[2] < 3e-6

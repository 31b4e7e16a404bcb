"""Any monotone link with an enclosing function: steps, level curves, ranges; known links, sampling."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

import gpcert as gc
from gpcert.bounds.levels.curves import ProbitCurves
from gpcert.bounds.levels.registry import curves_of
from helpers.exact import small_model
from helpers.oracle import examples


def increasing(function):
    """The enclosing function of an increasing one that is right to 1e-14."""
    return lambda a, b: (function(a) - 1e-14, function(b) + 1e-14)


def cloglog(f):
    return -np.expm1(-np.exp(np.minimum(f, 5.0)))


def stairs(f):
    """A jump at 0.3 and flat parts."""
    return np.where(f < 0.3, 0.1, 0.6) + 0.3 * np.clip(f, 0.0, 1.0)


LINKS = {
    "probit": gc.Link(ndtr, increasing(ndtr), "probit", symmetric=True),
    "logit": gc.Link(expit, increasing(expit), "logit", symmetric=True),
    "cloglog": gc.Link(cloglog, increasing(cloglog), "cloglog"),
    "stairs": gc.Link(stairs, increasing(stairs), "stairs"),
    "squashed": gc.Link(
        lambda f: 0.001 + 0.998 * ndtr(f), increasing(lambda f: 0.001 + 0.998 * ndtr(f)), "gpflow"
    ),
}
EACH = pytest.mark.parametrize("name", LINKS)


def truth(name, mu, S):
    """E sigma by a fine midpoint rule in the standard normal's quantiles; right to about 1e-6."""
    u = (np.arange(400_000) + 0.5) / 400_000
    return float(np.mean(LINKS[name].value(mu + math.sqrt(max(S, 0.0)) * ndtri(u))))


@EACH
@settings(max_examples=examples(12))
@given(
    mu=st.floats(-6, 6),
    S=st.floats(0, 30),
    width=st.sampled_from([0.0, 0.1, 2.0]),
    spread=st.sampled_from([0.0, 0.5]),
)
def test_rectangles_are_enclosed(name, mu, S, width, spread):
    low, high = curves_of(LINKS[name]).bounds((mu, mu + width), (S, S + spread))
    for m in (mu, mu + width):
        for s in (S, S + 0.3 * spread, S + spread):
            assert low - 2e-6 <= truth(name, m, s) <= high + 2e-6
    if width == spread == 0.0 and name != "stairs":
        assert high - low < 1e-3


@pytest.mark.parametrize("mu", [-3.0, -0.2, 0.0, 1.0, 4.0])
@pytest.mark.parametrize("S", [0.0, 0.1, 5.0])
def test_steps_enclose_the_exact_probit(mu, S):
    low, high = curves_of(LINKS["probit"]).bounds((mu, mu), (S, S))
    exact = ProbitCurves(1.0).bounds((mu, mu), (S, S))
    assert low <= exact[0]
    assert exact[1] <= high
    assert high - low <= 6e-4


@EACH
@pytest.mark.parametrize("p", [0.15, 0.3, 0.5, 0.62, 0.85])
def test_chords_clear_the_level(name, p):
    link = curves_of(LINKS[name])
    for start, end in ((0.0, 0.0), (0.5, 0.5), (0.1, 0.4), (1.0, 4.0)):
        tau, kappa = link.level(p).chord(start, end)
        if kappa == -math.inf:
            continue
        for S in np.linspace(start, end, 5):
            assert truth(name, tau * S - kappa, S) >= p - 2e-6


@EACH
@pytest.mark.parametrize("kernel", [gc.RBF(0.8, 4.0), gc.Matern52(0.8, 4.0)], ids=["rbf", "matern52"])
def test_ranges_hold_and_converge(name, kernel):
    rng = np.random.default_rng(1)
    base = small_model(n=10, d=2)
    R = np.linalg.inv(kernel(base.centres) + np.eye(10))
    post = gc.Posterior(
        base.centres, base.weights, 0.5 * (R + R.T), kernel=kernel, likelihood=LINKS[name], mean=0.2
    )
    region = gc.Ball([0.2, -0.1], 0.15)
    points = np.vstack(
        [region.box().lower + rng.random((200, 2)) * 0.3, [region.box().lower, region.box().upper]]
    )
    points = np.clip(points, region.inner_box().lower, region.inner_box().upper)
    p = post.probability(points)
    for label in (0, 1):
        answer = gc.probability_range(post, region, label, max_nodes=600)
        assert answer.status == "converged"
        assert answer.lower <= p[:, label].min() + 1e-5
        assert answer.upper >= p[:, label].max() - 1e-5
        for point, bound, sign in (
            (answer.argmin, answer.min.upper, 1),
            (answer.argmax, answer.max.lower, -1),
        ):
            assert sign * float(post.probability([point])[0, label]) <= sign * bound + 1e-5


def test_a_probit_given_as_a_link_agrees_with_probit():
    post = small_model(n=12, d=3)
    same = gc.Posterior(
        post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=LINKS["probit"]
    )
    region = gc.Ball(np.full(3, 0.1), 0.2)
    one, other = gc.probability_range(post, region), gc.probability_range(same, region)
    assert other.status == "converged"
    for a, b in ((one.min, other.min), (one.max, other.max)):
        assert a.lower <= b.upper
        assert b.lower <= a.upper


def test_a_clipped_variance_is_no_loophole():
    """S < 0 before clipping, an increasing level curve: chords must allow for it (L5)."""
    post = gc.Posterior([[0.0]], [0.6], [[3.0]], kernel=gc.RBF(1.0, 1.0), likelihood=LINKS["probit"])
    region = gc.Box([-0.4], [0.4])
    line = np.linspace(-0.4, 0.4, 801)[:, None]
    p = post.probability(line)[:, 1]
    answer = gc.probability_range(post, region, tolerance=0.01, max_nodes=400)
    assert answer.lower <= p.min() + 1e-5
    assert answer.upper >= p.max() - 1e-5

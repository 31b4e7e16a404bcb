"""What a box proves of a softmax's label, rival by rival: Theorems 4 and 5, in ball arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import acb, arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds import BoundFactory, shape_of
from gpcert.bounds.several.labels import _BOTH, _SLOPE, LabelBound, third_share
from gpcert.likelihoods import Softmax
from helpers.oracle import examples
from helpers.several import Setting, random_box, random_model
from judge import Truth
from judge.latents import Latents


def sigma(x):
    return 1 / (1 + (-x).exp())


def test_the_constant_of_theorem_5():
    p = arb(_SLOPE) + arb("0.5")
    assert arb(_BOTH) >= p * p.log() + (1 - p) * (1 - p).log()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(80), deadline=None)
def test_theorem_5_whatever_is_independent_of_the_difference(seed):
    """Its proof for any law of a, here of five points: u outweighs -u if E D > s E sigma(a + h)."""
    rng = np.random.default_rng(seed)
    V = arb(float(10.0 ** rng.uniform(-1, 2)))
    beta, u = arb(float(_SLOPE * rng.uniform(0.01, 1.0))), arb(float(10.0 ** rng.uniform(-2, 1.5)))
    a = [arb(float(v)) for v in rng.uniform(-6, 6, 5)]
    law = [arb(float(v)) for v in rng.dirichlet(np.ones(5))]
    share = sum((w * sigma(x + arb(_BOTH)) for w, x in zip(law, a, strict=True)), arb(0))
    gap = beta * V * share * (1 + arb("1e-9"))

    def average(sign):
        both = (u / 2).exp() + (-u / 2).exp()
        return sum((w / (both + (x + sign * beta * u).exp()) for w, x in zip(law, a, strict=True)), arb(0))

    assert bool((2 * u * gap / V).exp() * average(1) > average(-1))


@given(mean=st.floats(-30.0, 3.0), variance=st.floats(0.01, 30.0), less=st.floats(0.0, 1.0))
@settings(max_examples=examples(60), deadline=None)
def test_a_share_is_at_least_its_expectation(mean, variance, less):
    """Also for smaller means and variances; the integral without its tails, which is less."""
    deviation = (arb(variance) * arb(less)).sqrt()
    centre = arb(mean) - arb(less) + arb(_BOTH)

    def density(z, _):
        return (-z * z / 2).exp() / (1 + (-(centre + deviation * z)).exp())

    expectation = acb.integral(density, -8, 8).real / (2 * arb.pi()).sqrt()
    assert not bool(expectation > arb(third_share(mean, variance)))


def test_nothing_is_known_of_a_share_where_its_inputs_are_not_known():
    for mean, variance in ((math.nan, 1.0), (0.0, math.nan), (math.inf, 1.0), (-math.inf, math.inf)):
        assert third_share(mean, variance) == 1.0


def close(third: float, precision: float) -> gc.Posterior:
    """Class 0 leads class 1 by little and falls with D; class 2 has the mean `third`."""
    R = np.zeros((3, 3, 1, 1))
    R[0, 0], R[1, 1], R[2, 2] = precision, 0.1, 0.1
    weights, mean = np.array([[-0.02, 0.0, 0.0]]), [0.1, 0.0, third]
    return gc.Posterior([[0.0]], weights, R, kernel=gc.RBF(1.0, 4.0), likelihood=Softmax(), mean=mean)


def margin(post: gc.Posterior, label: int, box: gc.Box) -> LabelBound:
    moving = box.lower < box.upper
    bound = BoundFactory(post).margin(label, shape_of(box, moving), box.lower, moving)
    assert isinstance(bound, LabelBound)
    return bound


@pytest.mark.parametrize(("third", "decided"), [(-6.0, True), (1.0, False)])
def test_a_third_class_that_is_improbable_hardly_counts(third, decided):
    """s = (Sigma_11 - Sigma_00) / 2 exceeds E D on the whole box: Theorem 4 is silent."""
    post, box = close(third, 0.2), gc.Box([0.5], [0.7])
    bound, exact = margin(post, 0, box), Latents(post)
    for z in (0.5, 0.6, 0.7):
        m, S = exact.all([z])
        assert m[0] - m[1] < (S[1][1] - S[0][0]) / 2
    assert (1 not in bound.undecided(box.lower, box.upper, box.lower)[0]) == decided
    for z in (0.5, 0.6, 0.7):
        p = Truth(post).probabilities([z])
        assert not decided or p[0] > p[1]


@given(
    kind=st.sampled_from(["correlated", "independent"]),
    classes=st.sampled_from([3, 3, 4, 6]),
    width=st.sampled_from([1e-6, 0.05, 0.2]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=examples(30), deadline=None)
def test_what_is_known_of_rivals_holds_at_points(kind, classes, width, seed):
    """A row of all: the label is more probable; else E D >= s_k, one by one; and parts know as much."""
    setting = Setting(kind, classes, 6, 2, width, seed)
    post, rng = random_model(setting), np.random.default_rng(seed)
    box = random_box(setting, post)
    if not (box.lower < box.upper).all():
        return
    label = int(post.probability(box.centre[None])[0].argmax())
    bound = margin(post, label, box)
    bound.undecided(box.lower, box.upper, box.centre)
    known = bound.known.on(box.lower, box.upper, classes, classes)
    exact, truth = Latents(post), Truth(post)
    for x in box.lower + rng.random((3, 2)) * (box.upper - box.lower):
        z = np.clip(x, box.lower, box.upper)
        m, S = exact.all(z)
        p = truth.probabilities(z)
        for j in bound.rivals:
            if known[j].all():
                assert not bool(p[label] <= p[j])
                continue
            for k in np.flatnonzero(known[j]):
                s = S[label][k] - S[j][k] - (S[label][label] - S[j][j]) / 2
                assert not bool(m[label] - m[j] < s)
    half = box.lower + 0.5 * (box.upper - box.lower)
    assert not set(bound.undecided(box.lower, half, box.lower)[0]) & set(np.flatnonzero(known.all(axis=1)))

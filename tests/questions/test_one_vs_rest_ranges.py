"""Ranges of one-vs-rest probabilities contain what sampling and local search find; corners of ratios."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.several.one_vs_rest import ClassMargin, ClassShare, OthersShare
from gpcert.errors import InvalidInputError
from helpers.oracle import bits, examples
from helpers.several import Setting, falsehoods, random_box, random_model

SETTINGS = st.builds(
    Setting,
    kind=st.sampled_from(["probit", "logit"]),
    classes=st.sampled_from([2, 3, 5, 12]),
    n=st.sampled_from([3, 12]),
    d=st.sampled_from([1, 2, 4]),
    width=st.sampled_from([1e-6, 0.1, 0.5, 3.0]),
    seed=st.integers(0, 10**6),
)


@given(setting=SETTINGS, data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_ranges_contain_the_truth(setting, data):
    post = random_model(setting)
    box = random_box(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = gc.probability_range(post, box, label, tolerance=0.05, max_nodes=20)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_small_boxes_converge_at_the_root(link):
    setting = Setting(link, 4, 12, 3, 0.02, 5)
    post = random_model(setting)
    answer = gc.probability_range(post, random_box(setting, post), 2, tolerance=1e-3)
    assert answer.status == "converged"
    assert answer.nodes <= 4


@given(data=st.data())
@settings(max_examples=examples(200))
def test_quantities_contain_their_values(data):
    C = data.draw(st.integers(2, 6))
    unit = st.one_of(st.floats(0, 1), st.floats(0, 1e-300), st.just(0.0))
    ends = np.array([sorted(data.draw(st.tuples(unit, unit))) for _ in range(C)])
    t = np.array(data.draw(st.lists(st.floats(0, 1), min_size=C, max_size=C)))
    p = np.clip(ends[:, 0] + t * (ends[:, 1] - ends[:, 0]), ends[:, 0], ends[:, 1])
    total = p.sum()
    if not total > 1e-290:
        return
    P = p / total
    c = data.draw(st.integers(0, C - 1))
    rivals = np.delete(P, c)
    truth = {ClassShare: P[c], OthersShare: rivals.sum(), ClassMargin: 0.5 + 0.5 * (P[c] - rivals.max())}
    for quantity, value in truth.items():
        lower, upper = quantity(c).bounds(ends[:, 0], ends[:, 1])
        assert 0.0 <= lower <= value + 1e-13
        assert value - 1e-13 <= upper <= 1.0


def test_a_point_gives_a_point():
    p = np.array([0.3, 0.1, 0.45])
    for quantity, value in (
        (ClassShare(2), 0.45 / 0.85),
        (OthersShare(2), 0.4 / 0.85),
        (ClassMargin(2), 0.5 + 0.15 / 1.7),
    ):
        lower, upper = quantity.bounds(p, p)
        assert lower <= value <= upper
        assert upper - lower < 1e-14


def test_bad_input():
    post = random_model(Setting("probit", 3, 5, 2, 0.1, 0))
    box = gc.Box([0.0, 0.0], [0.1, 0.1])
    with pytest.raises(InvalidInputError, match="label must be one of 0, 1, 2, got 3"):
        gc.probability_range(post, box, 3)
    with pytest.raises(InvalidInputError, match="method 'paper' needs two classes or softmax"):
        gc.probability_range(post, box, 1, method="paper")
    with pytest.raises(InvalidInputError, match="one-vs-rest to be taken apart"):
        random_model(Setting("independent", 3, 5, 2, 0.1, 0)).one_vs_rest()


@pytest.mark.parametrize("mean", np.linspace(-38.5, -38.3, 12))
def test_a_share_too_small_for_a_normal_number_is_enclosed(mean: float) -> None:
    """The quotient is a subnormal number: off by half a step, however small its relative error would be."""
    C, variance = 5, 1e-3
    post = gc.Posterior(
        [[0.0]],
        np.zeros((1, C)),
        np.zeros((C, 1, 1)),
        kernel=gc.RBF(1.0, variance),
        likelihood=gc.OneVsRest(gc.Probit()),
        mean=[mean] + [2.0] * (C - 1),
    )
    found = gc.probability_range(post, gc.Box([0.3], [0.3]), 0)
    with bits(200):
        p = [(-arb(float(m)) / (2 * (1 + arb(variance))).sqrt()).erfc() / 2 for m in post.mean]
        share = p[0] / sum(p, arb(0))
        assert arb(found.min.lower) <= share <= arb(found.max.upper)
        assert arb(found.min.upper) >= share >= arb(found.max.lower)

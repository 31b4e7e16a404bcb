"""Rows of scikit-learn's link and of links with a floor (J21): values and bounds against ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend
from gpcert.engine.facts import knows
from gpcert.engine.lines import Lines, after_deficit, probabilities
from gpcert.questions.rooted import classes
from helpers.exact import small_model

LINKS = (gc.FiveErf(), gc.Floored(gc.Probit(), 0.01), gc.Floored(gc.Logit(), 0.2), gc.Logit())


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_deficits_cost_at_most_the_slope(link):
    rng, curves, h = np.random.default_rng(2), curves_of(link), 1e-4
    mu, S = rng.uniform(-6.0, 6.0, 200), 10.0 ** rng.uniform(-3, 1, 200)
    below, above = (curves.bounds_of_rows((m, m), (S, S)) for m in (mu - h, mu + h))
    assert (above[0] - below[1] <= 2.0 * h * curves.slope).all()
    assert (above[1] - below[0] >= 0.0).all()
    certified = curves.bounds_of_rows((mu, mu), (S, S))[0]
    known = Lines(mu > 0, *(mu * 0.0 for _ in range(3)), certified, mu * 0.0)
    for deficit in (mu * 0.0 + 0.05, rng.random(200)):  # steep near 0: half the slope would not do
        left = after_deficit(Backend(), curves, known, deficit)
        assert (left <= curves.bounds_of_rows((mu - deficit,) * 2, (S, S))[1]).all()
        assert ((left > 0.0) | (certified < deficit)).all()


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_many_enclosures_are_those_of_one(link):
    rng, curves = np.random.default_rng(3), curves_of(link)
    a, c = rng.standard_normal(40), rng.uniform(-0.1, 3.0, 40)
    b, d = a + rng.random(40), c + rng.random(40)
    a[:4], d[4:8] = [np.nan, np.inf, -np.inf, 0.0], np.inf
    low, high = curves.bounds_of_rows((a, b), (c, d))
    for i, ends in enumerate(zip(*(each.tolist() for each in (a, b, c, d)), strict=True)):
        one = curves.bounds(ends[:2], ends[2:])
        assert (low[i], high[i]) == pytest.approx(one, abs=1e-15)


def test_a_label_within_what_the_formula_lacks_of_one_is_neither_kept_nor_lost():
    """P(1) is 1/2 - 5e-9 where the mean is 0, P(0) as much above: a mean of 0 is not enough."""
    curves, zero = curves_of(gc.FiveErf()), np.zeros(1)
    low, high = probabilities(Backend(), curves, (zero, zero), (zero, zero + 1.0))
    assert low[0] < 0.5 < high[0]


def test_models_as_they_are_imported_are_asked_in_batches():
    X = np.random.default_rng(4).standard_normal((30, 3))
    for link in LINKS:
        post = small_model(n=30, d=3, likelihood=link)
        assert knows(post)
        clear = classes(post, X, "cpu")
        assert ((clear < 0) | (clear == post.probability(X).argmax(axis=1))).all()
        assert (clear < 0).all() == (not link.symmetric)
    assert not knows(small_model(n=30, d=3, likelihood=gc.Floored(gc.Probit(), 0.4)))

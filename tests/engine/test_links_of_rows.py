"""Rows of scikit-learn's link and of links with a floor (J21): values and bounds against ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend
from gpcert.engine.facts import knows
from gpcert.engine.lines import Lines, after_deficit, probabilities
from gpcert.engine.root import smallest, verdicts
from gpcert.questions.rooted import classes
from helpers.exact import small_model
from helpers.oracle import BITS, bits, examples
from helpers.rows import random_batch
from judge import Truth

LINKS = (gc.FiveErf(), gc.Floored(gc.Probit(), 0.01), gc.Floored(gc.Logit(), 0.2), gc.Logit())


def batches(seed, count, link):
    rng, found = np.random.default_rng(seed), 0
    while found < count:
        batch = random_batch(rng, rows=8, kind=("laplace", "psd")[found % 2], likelihood=link)
        if batch is not None and batch.facts.has_planes:
            found += 1
            yield rng, batch


@pytest.mark.parametrize("link", LINKS, ids=repr)
def test_bounds_of_rows_hold_and_say_something(link):
    narrow = 0
    for rng, batch in batches(1, examples(8), link):
        facts, rows, truth, curves = batch.facts, batch.rows, Truth(batch.post), curves_of(link)
        with np.errstate(all="ignore"):
            found, signs = smallest(facts, curves, rows, 0.02), verdicts(facts, curves, rows)
            low, high = batch.at.mean()
            plus = rows.sign > 0
            mean = np.where(plus, low, -high), np.where(plus, high, -low)
            values = probabilities(facts.backend, curves, mean, batch.at.variance)
        narrow += int((found.upper - found.lower <= 0.02).sum())
        with bits(BITS):
            for row, sign in enumerate(rows.sign):
                label = int(sign > 0)
                here = truth.probability(batch.point(row, batch.references[row]), label)
                assert values[0][row] == 0.0 or arb(values[0][row]) <= here
                assert values[1][row] == 1.0 or here <= arb(values[1][row])
                for each in (found, signs):
                    at = truth.probability(batch.point(row, each.witness[row]), label)
                    assert each.upper[row] == 1.0 or at <= arb(each.upper[row])
                    for x in batch.inside(row, rng, 2):
                        assert each.lower[row] == 0.0 or arb(each.lower[row]) <= truth.probability(x, label)
    assert narrow > 4 * examples(8)


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

"""What one plane leaves, again: halves that cover the box, and forms."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine import later
from gpcert.engine.backend import Backend
from gpcert.engine.facts import facts_of
from gpcert.engine.later import halved
from gpcert.engine.root import smallest, verdicts
from gpcert.engine.rows import Rows
from gpcert.questions.rooted import _splits
from helpers.exact import small_model
from helpers.oracle import BITS, bits
from helpers.rows import random_batch
from judge import Truth


def batches(seed, count):
    """Boxes on features that all models know, with planes."""
    rng, found = np.random.default_rng(seed), 0
    while found < count:
        batch = random_batch(rng, rows=10, kind=("laplace", "psd")[found % 2])
        if batch is not None and batch.facts.has_planes:
            found += 1
            yield rng, batch


def test_halves_cover_their_box_and_lie_in_it():
    for rng, batch in batches(1, 20):
        rows = batch.rows
        room = (rows.upper - rows.lower) * rng.choice([0.0, 1e-16, 0.2], rows.lower.shape)
        rows = type(rows)(
            rows.lower, rows.upper, rows.lower + room, rows.upper - room, rows.standing, rows.sign
        )
        with np.errstate(all="ignore"):
            halves = halved(batch.facts, rows, batch.references)
        count = len(rows)
        for i in range(count):
            low, high = halves.take(np.array([i])), halves.take(np.array([i + count]))
            cut = (low.upper != rows.upper[i]) | (high.lower != rows.lower[i])
            assert cut.sum() <= 1
            # Doubles, compared exactly: below the cut, above it, and the cut itself in both.
            assert (low.lower == rows.lower[i]).all()
            assert (high.upper == rows.upper[i]).all()
            assert (low.upper == high.lower)[cut].all()
            assert (low.upper[~cut] == rows.upper[i][None][~cut]).all()
            assert (high.lower[~cut] == rows.lower[i][None][~cut]).all()
            for half in (low, high):
                assert (rows.inner_lower[i] <= half.inner_lower).all()
                assert (half.inner_lower <= half.inner_upper).all()
                assert (half.inner_upper <= rows.inner_upper[i]).all()
                assert (half.lower <= half.inner_lower).all()
                assert (half.inner_upper <= half.upper).all()
                assert half.standing.tolist() == rows.standing[i][None].tolist()
                assert half.sign == rows.sign[i]


def test_bounds_by_halves_lie_below_the_probability_and_settle_more():
    settled = np.zeros(2)
    for rng, batch in batches(3, 10):  # fewer may all be settled at once
        facts, rows, truth = batch.facts, batch.rows, Truth(batch.post)
        curves = curves_of(batch.post.likelihood)
        with np.errstate(all="ignore"):
            once, more = (smallest(facts, curves, rows, 0.003, splits=splits) for splits in (0, 3))
            signs = verdicts(facts, curves, rows, 3)
        assert (more.lower >= once.lower).all()
        assert (more.upper <= once.upper).all()
        assert (more.nodes <= 7).all()
        settled += [(each.upper - each.lower <= 0.003).sum() for each in (once, more)]
        assert ((rows.inner_lower <= more.witness) & (more.witness <= rows.inner_upper)).all()
        with bits(BITS):
            for row, sign in enumerate(rows.sign):
                label = int(sign > 0)
                at = truth.probability(batch.point(row, more.witness[row]), label)
                assert more.upper[row] == 1.0 or at <= arb(more.upper[row])
                for x in batch.inside(row, rng, 2):
                    p = truth.probability(x, label)
                    assert arb(more.lower[row]) <= p
                    assert arb(signs.lower[row]) <= p
    assert settled[1] > settled[0]


def test_a_box_is_split_no_more_often_than_its_nodes_allow():
    assert [_splits(nodes) for nodes in (1, 2.5, 3, 4, 5, 6.5, 7, np.inf)] == [0, 0, 1, 1, 2, 2, 3, 3]
    post, X = small_model(n=30, d=3), np.random.default_rng(3).uniform(-1.0, 1.0, (20, 3))
    for most in (2, 6):
        for answer in gc.probability_range(post, gc.balls(X, 0.6), tolerance=1e-3, max_nodes=most, n_jobs=1):
            assert answer.nodes <= most


def test_order_three_as_a_form_settles_more_and_says_what_is_true():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 34))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    post = gc.GPClassifier(gc.RBF(6.0, 20.0), max_evals=0).fit(X, y).posterior_
    x, truth, found = X[:12], Truth(post), []
    rows = Rows(x - 0.4, x + 0.4, x - 0.4, x + 0.4, x[:, :0], np.where(y[:12] > 0, 1.0, -1.0))
    facts = facts_of(post, np.arange(34), Backend())
    for cheap in (0.0, np.inf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(later, "_CHEAP", cheap)
            found.append(smallest(facts, curves_of(post.likelihood), rows, 0.02))
    once, more = found
    assert (once.upper - once.lower > 0.02).all()
    assert (more.upper - more.lower <= 0.02).mean() > 0.6
    with bits(BITS):
        for row in range(12):
            ends = np.where(rng.random((6, 34)) < 0.5, rows.lower[row], rows.upper[row])
            for z in (more.witness[row], *ends, x[row], 0.5 * (x[row] + more.witness[row])):
                assert arb(more.lower[row]) <= truth.probability(z, int(y[row]))


def test_labels_are_kept_by_a_form_of_the_centres_with_weight():
    """Of a mean, with the others in a number: more is proved, and the sign is the true one."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 34))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    fitted = gc.GPClassifier(gc.RBF(6.0, 20.0), max_evals=0).fit(X, y).posterior_
    weights = fitted.weights * np.where(np.arange(60) % 3, 1.0, 1e-3)  # as where a classifier is sure
    post = gc.Posterior(X, weights, fitted.precision, kernel=fitted.kernel)
    x, truth = np.repeat(X[:20], 24, axis=0), Truth(post)
    label = post.probability(x).argmax(axis=1)
    reach = np.tile(np.linspace(0.1, 1.0, 24), 20)[:, None]
    ends = x - reach, x + reach
    rows = Rows(*ends, *ends, x[:, :0], np.where(label > 0, 1.0, -1.0))
    facts, found = facts_of(post, np.arange(34), Backend()), []
    for most in (0.0, np.inf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(later, "_CHEAP", 0.0)
            patch.setattr(later, "_FEWER", most)
            patch.setattr(later, "_LIGHT", 0.01)
            centres = later._centres(facts, None)
            assert 0 < centres < 60 if most else centres == 0
            assert later._centres(facts, 1.0) == 0
            found.append(verdicts(facts, curves_of(post.likelihood), rows))
    once, more = (each.lower > 0.5 for each in found)
    assert not (once & ~more).any()
    assert (more & ~once).sum() >= 5
    with bits(BITS):
        for row in np.flatnonzero(more & ~once):
            sign = arb(float(rows.sign[row]))
            some = np.where(rng.random((4, 34)) < 0.5, rows.lower[row], rows.upper[row])
            for z in (found[1].witness[row], *some):
                assert sign * truth.latent(z)[0] > 0

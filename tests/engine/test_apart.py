"""Labels of one-vs-rest in a batch (docs/maths/batches.md, J19), in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.engine.apart import kept_apart, parts_of
from gpcert.engine.backend import Backend
from gpcert.engine.facts import facts_of
from gpcert.engine.labels import knows_labels
from gpcert.engine.rows import Rows
from gpcert.questions import rooted
from gpcert.settings import Settings
from helpers.oracle import BITS, bits, examples
from judge import Truth
from judge.models import Model


@pytest.mark.parametrize("link", ["probit", "logit", "erf"])
def test_a_label_that_is_kept_wins_on_the_whole_row(link):
    rng, kept, lost, told = np.random.default_rng(len(link)), 0, 0, 0
    for seed in range(examples(6)):
        post = Model(kind=f"one-vs-rest {link}", n=int(rng.integers(3, 9)), d=2, seed=seed).posterior()
        if not knows_labels(post):
            continue
        told += 1
        scale = np.min([np.broadcast_to(k.lengthscale, (2,)) for k in post.kernels], axis=0)
        x = post.centres[rng.integers(post.n_centres, size=12)] + 0.3 * scale * rng.standard_normal((12, 2))
        half = scale * 10.0 ** rng.uniform(-3, -0.5, (12, 1))
        labels = rng.integers(post.n_classes, size=12)  # most are not those of the model
        labels[:8] = post.probability(x[:8]).argmax(axis=1)
        low, high = x - half, x + half
        rows = Rows(low, high, low, high, x[:, :0], labels.astype(float))
        parts = parts_of(post)
        found = kept_apart(parts, facts_of(parts[0], np.arange(2), Backend()), rows)
        assert not np.isnan(found.witness).any()
        truth = Truth(post)
        with bits(BITS):
            for row in np.flatnonzero(found.lower > 0.5):
                kept += 1
                vertices = np.where(rng.random((2, 2)) < 0.5, low[row], high[row])
                for point in (x[row], found.witness[row], *vertices):
                    assert truth.margin(point, int(labels[row])) > 0
            for row in np.flatnonzero(found.upper < 0.5):
                lost += 1
                assert ((low[row] <= found.witness[row]) & (found.witness[row] <= high[row])).all()
                assert truth.margin(found.witness[row], int(labels[row])) < 0
    assert told > 0.5 * examples(6)
    assert min(kept, lost) >= examples(6)


def test_most_of_an_easy_batch_is_settled_at_the_root():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((15, 3)) + 4.0 * np.eye(3)[c] for c in range(3)])
    y = np.repeat([0, 1, 2], 15)
    post = gc.GPClassifier(gc.RBF(2.0, 4.0), max_evals=0, likelihood="probit").fit(X, y).posterior_
    labels = post.probability(X).argmax(axis=1)
    for regions in (gc.balls(X, 0.05), [gc.Box(x - 0.05, x + 0.05) for x in X], gc.balls(X, 0.05, 2.0)):
        (found,) = rooted.decisions(post, regions, labels, 0.5, Settings(0.02), "cpu")
        assert (found.lower[0] > 0.5).mean() > 0.8
        assert (found.upper[found.lower > 0.5] == 1.0).all()
    (wrong,) = rooted.decisions(post, gc.balls(X, 0.05), (labels + 1) % 3, 0.5, Settings(0.02), "cpu")
    assert (wrong.lower == 0.0).all()
    assert (wrong.upper < 0.5).all()

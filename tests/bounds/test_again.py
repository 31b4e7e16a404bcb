"""Boxes that a bound names to be asked about next: none comes back for ever, nothing settled is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import shape_of
from gpcert.bounds.interface import Certified
from gpcert.bounds.one.level import Left
from gpcert.search.frontier import Minimiser


def model(likelihood):
    """Three classes, 30 features: cells are gone on with from call to call."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), rng.integers(0, 3, 40)
    X[np.arange(40), y] += 2.0
    K = gc.RBF(np.sqrt(30.0), 1.0)(X)
    R = np.linalg.inv(K + 4.0 * np.eye(40))
    weights = np.linalg.solve(K + 0.5 * np.eye(40), np.where(y[:, None] == np.arange(3), 1.0, -0.5))
    return gc.Posterior(
        X,
        weights,
        np.array([0.5 * (R + R.T)] * 3),
        kernel=gc.RBF(np.sqrt(30.0), 1.0),
        likelihood=likelihood,
    )


@pytest.mark.parametrize("likelihood", [gc.OneVsRest(gc.Probit()), gc.Softmax()], ids=["rest", "softmax"])
def test_no_box_of_norm_0_comes_back_as_it_was(likelihood, monkeypatch):
    """All features may change: the box is asked about as a whole, by a bound that is made anew each time."""
    asked, take = [], Minimiser._take

    def counted(self, box, *rest):
        asked.append((id(self), box.lower.tobytes(), box.upper.tobytes()))
        return take(self, box, *rest)

    monkeypatch.setattr(Minimiser, "_take", counted)
    post = model(likelihood)
    x = post.centres[0]
    ball = gc.Ball(x, 30, norm=0, domain=[x - 0.3, x + 0.3])
    answer = gc.probability_range(post, ball, label=1, tolerance=0.01, max_nodes=20)
    assert answer.nodes == len(asked) == len(set(asked))


@pytest.mark.parametrize("mean", [0.0, 50.0, -50.0])
def test_latents_above_1_are_settled_as_those_below(mean):
    """Parts of a ball of norm 1 leave no rest: as a bound of the rest, 1 is one of probabilities alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6))
    kernel = gc.RBF(np.sqrt(6.0), 1.0)
    R = np.linalg.inv(kernel(X) + 0.3 * np.eye(20))
    weights = 3.0 * np.linalg.solve(kernel(X) + 0.3 * np.eye(20), np.sign(X[:, 0]))
    post = gc.Posterior(X, weights, 0.5 * (R + R.T), kernel=kernel, likelihood="probit", mean=mean)
    answer = gc.latent_range(post, gc.Ball(X[0], 2.0, norm=1), tolerance=0.1, max_nodes=3000)
    assert answer.mean.min.width <= 0.1
    assert answer.mean.max.width <= 0.1


def test_what_is_whole_has_no_rest():
    lower, upper = np.zeros(5), np.ones(5)
    region = gc.Ball(np.full(5, 0.5), 0.9, norm=1)
    shape = shape_of(region, np.ones(5, dtype=bool))
    found = Left(lower, upper).divided(Certified(7.0, lower, 0, False), shape, np.ones(5), 8.0)
    assert found.pieces is not None
    assert found.elsewhere == np.inf

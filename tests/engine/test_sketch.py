"""What the local search sees of a model with many centres: nearly what the model says."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from gpcert.bounds.levels.registry import curves_of
from gpcert.engine import sketch
from gpcert.engine.backend import Backend
from gpcert.engine.facts import facts_of
from gpcert.engine.root import smallest
from gpcert.engine.rows import Around
from gpcert.engine.search import Objective
from gpcert.estimator import GPClassifier
from gpcert.kernels import RBF
from helpers.oracle import BITS, bits
from judge import Truth

CPU = Backend()


@pytest.fixture
def model(monkeypatch):
    """Of 80 centres, 20 of which have nearly all the weight, 40 stand for all."""
    monkeypatch.setattr(sketch, "MANY", 1)
    monkeypatch.setattr(sketch, "SOME", 40)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 3))
    return GPClassifier(RBF(1.0, 4.0), max_evals=0).fit(X, X[:, 0] > 0).posterior_


@pytest.mark.parametrize("noise", [None, 1.0])
def test_the_search_sees_means_and_variances_of_all_centres(model, noise):
    facts = facts_of(model, np.arange(3), CPU)
    assert len(facts.sketch.Z) == 40
    X = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    x, rows, sign = facts.scaled(X).astype(np.float32), np.arange(50), np.ones(50, dtype=np.float32)
    value, slope = Objective(facts, noise, None)(x, rows, sign)
    mu, S = model.latent(X)
    exact = mu if noise is None else mu / np.sqrt(noise + S)
    np.testing.assert_allclose(value, exact, atol=0.05)
    step = np.float32(1e-2)
    for j in range(3):
        ahead, behind = (
            Objective(facts, noise, None)(x + h * np.eye(3, dtype=np.float32)[j], rows, sign)[0]
            for h in (step, -step)
        )
        np.testing.assert_allclose(slope[:, j], (ahead - behind) / (2 * step), atol=0.02)


@pytest.mark.parametrize("features", [[0, 1, 2], [0, 2]])
def test_what_it_leads_to_is_valued_with_all_centres(model, features):
    features = np.array(features)
    rng = np.random.default_rng(2)
    facts, x = facts_of(model, features, CPU), rng.uniform(-1, 1, (16, 3))
    rows = Around(x, np.full(16, 0.2), None, np.ones(16), features, facts.rest)
    found, truth = smallest(facts, curves_of(model.likelihood), rows, 0.02), Truth(model)
    assert (found.upper - found.lower <= 0.02).mean() > 0.5
    with bits(BITS):
        for centre, witness, upper, lower in zip(x, found.witness, found.upper, found.lower, strict=True):
            here = centre.copy()
            here[features] = witness
            mu, S = truth.latent(here)
            P = (-(mu / (1 + S).sqrt()) / arb(2).sqrt()).erfc() / 2
            assert arb(upper) >= P
            assert arb(lower) <= P

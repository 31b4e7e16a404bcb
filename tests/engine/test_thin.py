"""J17: variances and planes by predictors of few directions, in ball arithmetic at random rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from gpcert.bounds.levels.registry import curves_of
from gpcert.engine import thin
from gpcert.engine.backend import Backend
from gpcert.engine.lines import lines
from gpcert.engine.planes import plane
from gpcert.engine.sums import Sums
from gpcert.kernels import RBF, Matern52
from gpcert.posterior import Posterior
from helpers.oracle import BITS, bits, examples, random_posterior
from helpers.rows import post_model, random_batch
from judge import Truth

CPU = Backend()


@pytest.fixture(autouse=True)
def few_directions(monkeypatch):
    """Models of a dozen centres are large ones here, and two directions suffice."""
    monkeypatch.setattr(thin, "MANY", 1)
    monkeypatch.setattr(thin, "RANK", 2)
    monkeypatch.setattr(thin, "_SMALL", np.inf)


def batches(seed, count, **options):
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(8 * count):
        batch = random_batch(rng, kind="sites", **options)
        if batch is not None and batch.at.thin is not None:
            found += 1
            yield rng, batch
        if found == count:
            return
    raise AssertionError("too few models with predictors")


@pytest.mark.parametrize("make", [RBF, Matern52])
def test_variances_are_enclosed_whatever_the_predictor(make):
    near = rows = 0
    for _, batch in batches(1, examples(12), make=make):
        truth, (low, high) = Truth(batch.post), batch.at.variance
        with bits(BITS):
            for row, x in enumerate(batch.references):
                S = truth.latent(batch.point(row, x))[1]
                assert not np.isfinite(low[row]) or arb(low[row]) <= S
                assert not np.isfinite(high[row]) or arb(high[row]) >= S
                near += bool(high[row] - low[row] <= 0.1 * batch.post.kernel.prior_variance)
                rows += 1
    assert near > 0.5 * rows  # and it says something


@pytest.mark.parametrize("balls", [False, True])
def test_planes_of_predictors_lie_below_the_level_on_the_whole_row(balls):
    tight = 0
    for rng, batch in batches(2, examples(16), balls=balls):
        truth, targets = Truth(batch.post), rng.uniform(0.03, 0.97, len(batch.rows))
        with np.errstate(all="ignore"):
            low, high = batch.at.variance
            line = lines(CPU, curves_of(batch.post.likelihood), targets, 0.5 * (low + high), low, 0.02)
            sums = Sums(batch.at, batch.boxes, plane(batch.at, batch.rows.sign, line))
            bounds = sums.order_two(), sums.order_three(2)
        with bits(BITS):
            for row, sign in enumerate(batch.rows.sign):
                for x in batch.inside(row, rng, 2):
                    mu, S = truth.latent(x)
                    curve = (arb(1) + S.max(arb(0))).sqrt() * arb(float(line.t[row]))
                    value = batch.grown(row, x) * (arb(sign) * mu - curve)
                    for bound in bounds:
                        assert not bound[row] > -np.inf or value >= arb(float(bound[row]))
                        tight += bool(value - arb(float(bound[row])) < 0.1) if bound[row] > -np.inf else 0
    assert tight > 20 * examples(16)


def test_all_directions_give_what_the_precision_gives(monkeypatch):
    monkeypatch.setattr(thin, "RANK", 12)
    for _, batch in batches(3, 4):
        exact = replace(batch.at, thin=None)
        s2 = batch.post.kernel.prior_variance
        for mine, other in zip(batch.at.variance, exact.variance, strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-5 * s2)
        np.testing.assert_allclose(batch.at.k @ batch.at.r.T, batch.at.k @ exact.r.T, atol=1e-5 * s2)


def test_only_inverses_with_known_sites_and_enough_centres_have_predictors(monkeypatch):
    rng = np.random.default_rng(4)
    for kind, known in (("sites", True), ("laplace", False), ("psd", False), ("indefinite", False)):
        model = post_model(random_posterior(rng, 10, 3, kind=kind))
        assert (thin.basis_of(model, lambda model=model: model.unit_gram[0]) is not None) == known
    mine = random_posterior(rng, 10, 3, kind="sites")
    sites = mine.factors["site_precision"] * np.linspace(1.0, 1.001, 10)  # of another model
    model = post_model(
        Posterior(
            mine.centres, mine.weights, mine.precision, kernel=mine.kernel, factors={"site_precision": sites}
        )
    )
    assert thin.basis_of(model, lambda: model.unit_gram[0]) is None
    monkeypatch.setattr(thin, "_SMALL", 0.0)
    model = post_model(random_posterior(rng, 10, 3, kind="sites"))
    assert thin.basis_of(model, lambda: model.unit_gram[0]) is None

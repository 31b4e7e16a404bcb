"""J18: the form of the remainders from above by a factor of low rank, in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from gpcert.engine import tails
from gpcert.engine.planes import mean_plane
from gpcert.engine.sums import Sums
from helpers.oracle import BITS, bits, examples
from helpers.rows import random_batch
from judge import Truth


@pytest.fixture(autouse=True)
def few_directions(monkeypatch):
    monkeypatch.setattr(tails, "MANY", 1)
    monkeypatch.setattr(tails, "RANK", 3)
    monkeypatch.setattr(tails, "_SMALL", np.inf)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_the_form_is_bounded_from_above(monkeypatch, rank):
    monkeypatch.setattr(tails, "RANK", rank)
    rng = np.random.default_rng(rank)
    for _ in range(examples(6)):
        n, d = 9, int(rng.integers(1, 4))
        units = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 0.3)
        weights = rng.standard_normal(n) * 10.0 ** rng.uniform(-4, 2, n)
        found = tails.factored(units, weights, np.ones((1, n)), np.zeros(1))
        assert found is not None
        U = rng.standard_normal((4, n)) * 10.0 ** rng.uniform(-3, 3, (4, n))
        upper = ((U @ found.factor) ** 2).sum(axis=1) + (U * U) @ found.rest
        size = np.abs(U) @ np.exp(0.5 * (units**2).sum(axis=1))
        with bits(BITS):
            z = [[arb(v) for v in row] for row in units.tolist()]
            E = [[sum((a * b for a, b in zip(p, q, strict=True)), arb(0)).exp() for q in z] for p in z]
            for u, bound, whole in zip(U.tolist(), upper.tolist(), size.tolist(), strict=True):
                exact = sum((arb(u[i]) * arb(u[j]) * E[i][j] for i in range(n) for j in range(n)), arb(0))
                assert exact <= arb(bound) + arb(1e-13) * arb(whole) ** 2  # J2 (i), paid for by the remainder
                if rank == n:
                    assert arb(bound) - exact <= arb(1e-6) * arb(whole) ** 2


def test_bounds_of_means_lie_below_the_mean_with_few_directions():
    rng, thin, told = np.random.default_rng(7), 0, 0
    for i in range(examples(16)):
        batch = random_batch(rng, kind="laplace", offset=float(i % 2) * 1e3)
        if batch is None:
            continue
        truth = Truth(batch.post)
        with np.errstate(all="ignore"):
            thin += batch.facts.tails is not None
            sums = Sums(batch.at, batch.boxes, mean_plane(batch.at, batch.rows.sign))
            bounds = sums.order_two(), sums.order_three(2)
        with bits(BITS):
            for row, sign in enumerate(batch.rows.sign):
                for x in batch.inside(row, rng, 2):
                    mu = arb(sign) * truth.latent(x)[0]
                    for bound in bounds:
                        assert not bound[row] > -np.inf or batch.grown(row, x) * mu >= arb(float(bound[row]))
                        told += bool(bound[row] > -np.inf)
    assert thin > 0.5 * examples(16)
    assert told > 6 * examples(16)


def test_a_factor_that_leaves_much_is_not_used(monkeypatch):
    monkeypatch.setattr(tails, "_SMALL", 0.2)
    rng = np.random.default_rng(8)
    units, weights = 3.0 * rng.standard_normal((30, 6)), np.ones(30)
    planes = rng.standard_normal((4, 30))
    assert tails.factored(units, weights, planes, np.zeros(4)) is None
    assert tails.factored(units * 1e-3, weights, planes, np.zeros(4)) is not None
    assert tails.factored(units * np.nan, weights, planes, np.zeros(4)) is None
    assert tails.factored(units, 0.0 * weights, planes, np.zeros(4)) is None

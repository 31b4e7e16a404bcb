"""Balls of norm 2 as rows (docs/maths/batches.md, J12 and J13), in ball arithmetic and exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb

import gpcert as gc
from gpcert.engine.backend import Backend
from gpcert.engine.balls import Cap, cap, farthest, nearest, placed, separable
from gpcert.engine.planes import mean_plane
from gpcert.engine.sums import Sums
from gpcert.rounding import gamma
from helpers.oracle import bits, examples
from helpers.rows import random_batch

CPU = Backend()


def fraction(x):
    return Fraction(float(x))


def random_balls(rng, N=6):
    """Centres, half axes, boxes around the centres and references in the balls, of all magnitudes."""
    d = int(rng.integers(1, 6))
    axes = 10.0 ** rng.uniform(-3, 1, (N, d)) * 10.0 ** rng.uniform(-40, 40, (N, 1))
    centre = axes * rng.standard_normal((N, d)) * 10.0 ** rng.uniform(-2, 8, (N, 1))
    low, high = (centre + s * axes * rng.uniform(0.1, 1.0, (N, d)) for s in (-1.0, 1.0))
    regions = [
        gc.Ball(c, 1.0, 2.0, domain=(a, b), scale=h)
        for c, a, b, h in zip(centre, low, high, axes, strict=True)
    ]
    far = centre + 2.0 * axes * rng.standard_normal((N, d))
    references = np.stack([region.project(x) for region, x in zip(regions, far, strict=True)])
    return regions, references, axes, 10.0 ** rng.uniform(-2, 2, d)


def displacements(regions, references, lengths, rng):
    """Exact (x - reference) / length for points x of the balls, most of them on the sphere."""
    for row, (region, here) in enumerate(zip(regions, references, strict=True)):
        for _ in range(3):
            x = region.project(region.x + 2.0 * region.scale * rng.standard_normal(len(here)))
            yield (
                row,
                [(fraction(a) - fraction(b)) / fraction(s) for a, b, s in zip(x, here, lengths, strict=True)],
            )


def test_caps_hold_the_ball_and_their_suprema_are_suprema():
    rng = np.random.default_rng(1)
    sharp = 0
    for _ in range(examples(20)):
        regions, here, axes, lengths = random_balls(rng)
        centre = np.stack([region.x for region in regions])
        inside = cap(np, centre, axes, here, lengths)
        metric = 10.0 ** rng.uniform(-1, 1, len(lengths))
        most = farthest(CPU, inside, metric, np.full(len(axes), np.inf))
        for row, d in displacements(regions, here, lengths, rng):
            o, w = ([fraction(v) for v in each[row]] for each in inside)
            length = sum(b * (e - a) ** 2 for a, b, e in zip(o, w, d, strict=True))
            assert length <= 1
            sharp += length > 0.9
            assert sum(fraction(m) * e * e for m, e in zip(metric, d, strict=True)) <= fraction(most[row])
    assert sharp > 2 * examples(20)


def test_separable_forms_are_bounded():
    rng = np.random.default_rng(2)
    for _ in range(examples(20)):
        regions, here, axes, lengths = random_balls(rng)
        N, d = axes.shape
        h = axes / lengths
        centre = np.stack([region.x for region in regions])
        low = (np.stack([region.box().lower for region in regions]) - here) / lengths * (1 + 1e-15)
        high = (np.stack([region.box().upper for region in regions]) - here) / lengths * (1 + 1e-15)
        g = rng.standard_normal((N, d)) / h
        lam = 10.0 ** rng.uniform(-4, 0, (N, d)) / h**2
        with np.errstate(all="ignore"):
            found, size = separable(CPU, cap(np, centre, axes, here, lengths), g, lam, low, high)
        found = found - gamma(2 * d + 80) * size
        for row, e in displacements(regions, here, lengths, rng):
            value = sum(
                fraction(a) * x - fraction(b) * x * x for a, b, x in zip(g[row], lam[row], e, strict=True)
            )
            assert value >= fraction(found[row])


def test_points_are_placed_in_the_regions_and_nan_at_the_centre():
    rng = np.random.default_rng(3)
    moved = 0
    for _ in range(examples(20)):
        regions, _, axes, _ = random_balls(rng)
        centre = np.stack([region.x for region in regions])
        inner = [region.inner_box() for region in regions]
        low, high = np.stack([b.lower for b in inner]), np.stack([b.upper for b in inner])
        u = nearest(np, 3.0 * rng.standard_normal(axes.shape), (low - centre) / axes, (high - centre) / axes)
        x = placed(np, u, centre, axes, low, high)
        assert all(region.contains(point) for region, point in zip(regions, x, strict=True))
        moved += int((x != centre).any(axis=1).sum())
        lost = placed(np, u * np.nan, centre, axes, low, high)
        assert lost.tolist() == centre.tolist()
    assert moved > 5 * examples(20)


def test_balls_far_from_their_reference_are_left_to_their_boxes_and_nan_certifies_nothing():
    inside = cap(np, np.array([[1.0, 0.0]]), np.full((1, 2), 1e-7), np.zeros((1, 2)), np.ones(2))
    assert inside.w.tolist() == [[0.0, 0.0]]
    with np.errstate(all="ignore"):
        assert farthest(CPU, inside, np.ones(2), np.array([5.0])).tolist() == [5.0]
    rng = np.random.default_rng(4)
    batch = None
    while batch is None:
        batch = random_batch(rng, balls=True)
    ball = Cap(batch.boxes.ball.o * np.nan, batch.boxes.ball.w)
    lost = type(batch.boxes)(batch.facts, batch.boxes.low, batch.boxes.high, ball)
    with np.errstate(all="ignore"):
        sums = Sums(batch.at, lost, mean_plane(batch.at, batch.rows.sign))
        assert not (sums.order_two() >= -1e300).any()
        assert not (sums.order_three(2) >= -1e300).any()


def test_a_ball_costs_less_than_its_box():
    """The multiplier is not idle: over a ball of many features the bound is far above that over its box."""
    rng = np.random.default_rng(5)
    g, lam = rng.standard_normal((4, 50)), np.full((4, 50), 0.01)
    low, high, o = -np.ones((4, 50)), np.ones((4, 50)), np.zeros((4, 50))
    found, _ = separable(CPU, Cap(o, o + 1.0), g, lam, low, high)
    with bits(200):
        for row in range(4):
            exact = -sum((arb(float(v)) ** 2 for v in g[row]), arb(0)).sqrt()
            assert arb(float(found[row])) >= exact - arb(0.0101)
            assert arb(float(found[row])) <= exact

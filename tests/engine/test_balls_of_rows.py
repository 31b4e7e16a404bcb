"""Balls of norm 2 as rows (docs/maths/batches.md, J12 and J13), in ball arithmetic and exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb

import gpcert as gc
from gpcert.engine.backend import Backend
from gpcert.engine.balls import Cap, cap, farthest, separable
from helpers.oracle import bits, examples

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

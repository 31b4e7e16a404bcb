"""Constants that must grow with the number of features, decided exactly with thousands of them."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.geometry.ball import BallShape
from gpcert.bounds.geometry.unit_ball import UnitBall
from gpcert.regions import Ball
from helpers.oracle import bits, examples, rational

COUNTS = (1, 2, 4_000, 5_000, 20_000)


def inside(u: np.ndarray, norm: float) -> bool:
    """Whether |u|_p <= 1 for certain."""
    moved = [float(abs(v)) for v in u if v]
    if norm in (1.0, 2.0):
        return sum((rational(v) ** int(norm) for v in moved), fmpq(0)) <= 1
    with bits(200):
        return bool(sum((arb(v) ** arb(norm) for v in moved), arb(0)) <= 1)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("norm", [1.0, 1.3, 2.0, 5.0])
def test_a_box_that_touches_the_ball_is_kept(count, norm):
    """The corner nearest to the centre is just inside the sphere; the other features start at the centre."""
    for few in (1, 3, min(count, 40)):
        for short in (1e-15, 1e-14, 2e-13, 1e-12):
            low = np.zeros(count)
            low[:few] = few ** (-1.0 / norm) * (1.0 - short)
            if inside(low, norm):
                assert not UnitBall(low, np.ones(count), norm).is_empty(), (few, short)


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 2**32 - 1), count=st.sampled_from(COUNTS), norm=st.sampled_from([1.0, 1.7, 2.0, 3.0])
)
def test_a_region_is_never_lost(seed, count, norm):
    """`BallShape.domain` is None only if the box misses the ball: here a point of both is known exactly."""
    rng = np.random.default_rng(seed)
    u = rng.random(count) * (rng.random(count) < rng.choice([3.0 / count, 0.5, 1.0]))
    with np.errstate(all="ignore"):
        u /= np.linalg.norm(u, norm) / (1.0 - 10.0 ** rng.uniform(-15, -11))
    u = np.nan_to_num(u)
    radius = 2.0 ** float(rng.integers(-3, 3))
    shape = BallShape(Ball(np.zeros(count), radius, norm=norm), np.ones(count, dtype=bool))
    if inside(u, norm):  # radius * u is exact
        corner = radius * u
        domain = shape.domain(corner, np.full(count, radius), corner, np.ones(count))
        assert domain is not None


def test_far_boxes_are_still_discarded():
    for count in COUNTS:
        low = np.full(count, 1.0001 * count**-0.5)
        assert UnitBall(low, np.ones(count), 2.0).is_empty()

"""Geometry of p-balls: points of them, certified suprema and quadratic bounds, decided exactly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.geometry.ball import BallShape, _caps
from gpcert.bounds.geometry.ball_quadratic import unit_lower_bound
from gpcert.bounds.geometry.unit_ball import UnitBall
from gpcert.regions import Ball, lowest, nearest
from helpers.oracle import bits, examples, rational
from helpers.quadratics import exact, matrix

NORMS = (1.0, 2.0, 1.5, 3.0, 1.01, 2.0 + 1e-9, 7.3, 60.0, 1.0 + 1e-7, 200.0, 2000.0, 1e6)


def inside(u: np.ndarray, norm: float) -> bool:
    """Whether |u|_p <= 1 for certain, in ball arithmetic."""
    with bits(200):
        total = sum((arb(float(abs(v))) ** arb(norm) for v in u if v), arb(0))
        return bool(total <= 1)


@dataclass(frozen=True)
class Setting:
    """A normalised set, some of its points (m, d), and a source of numbers."""

    ball: UnitBall
    points: np.ndarray
    rng: np.random.Generator


@st.composite
def settings_of_balls(draw) -> Setting:
    """Sets with the centre in the box, on its edge, or outside it; some coordinates very short."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, norm = draw(st.integers(1, 12)), draw(st.sampled_from(NORMS))
    low, high = -rng.random(n), rng.random(n)
    kind = draw(st.sampled_from(["whole", "clipped", "one-sided", "aside", "short"]))
    if kind == "whole":
        low, high = -np.ones(n), np.ones(n)
    if kind == "one-sided":
        low = np.where(rng.random(n) < 0.6, 0.0, low)
    if kind == "aside":
        low = np.where(rng.random(n) < 0.4, 0.3 * high / n, low)
    if kind == "short":
        low, high = low * 10.0 ** rng.uniform(-9, 0, n), high * 10.0 ** rng.uniform(-9, 0, n)
    ball = UnitBall(low, high, norm)
    raw = rng.standard_normal((12, n)) * 10.0 ** rng.uniform(-1, 2, (12, 1))
    drawn = [nearest(z, low, high, norm) for z in raw]
    drawn += [lowest(z, low, high, norm) for z in raw]
    drawn = [rest + (1.0 - 1e-13) * (u - rest) for u in drawn for rest in [ball.rest]]
    points = [u for u in drawn if inside(u, norm) and (low <= u).all() and (u <= high).all()]
    return Setting(ball, np.array(points).reshape(len(points), n), rng)


def test_powers_are_as_exact_as_assumed():
    """R6, for bases in [0, 1] and exponents from near 0 to 1e7, bases near 1 where others underflow."""
    rng = np.random.default_rng(1)
    exponent = 10.0 ** rng.uniform(-6, 7, 6000)
    base = 1.0 - rng.random(6000) * np.minimum(1.0, 500.0 / exponent)
    with bits(200):
        for x, y, power in zip(base, exponent, base**exponent, strict=True):
            if power > 1e-290:
                assert abs(arb(float(power)) / arb(float(x)) ** arb(float(y)) - 1) < 32 * arb(2) ** -52


@settings(max_examples=examples(150))
@given(settings_of_balls())
def test_nearest_and_lowest_points_are_optimal(case):
    ball, rng = case.ball, case.rng
    for _ in range(3):
        z = rng.standard_normal(len(ball.low)) * 3
        u, v = (f(z, ball.low, ball.high, ball.norm) for f in (nearest, lowest))
        for point in (u, v):
            assert (ball.low <= point).all()
            assert (point <= ball.high).all()
            assert (np.abs(point) ** ball.norm).sum() <= 1 + 1e-9
        for other in case.points:
            assert (z - u) @ (other - u) <= 1e-6 * (1 + np.abs(z).max())
            assert z @ v <= z @ other + 1e-6 * np.abs(z).max()


@settings(max_examples=examples(100))
@given(settings_of_balls(), st.integers(0, 2**32 - 1))
def test_the_nearest_point_of_norm_1_is_that_of_rational_arithmetic(case, seed):
    """B2: |u_j| = clip(|z_j| - c, least_j, most_j); the sum is a line between kinks, where it is tried."""
    low, high = case.ball.low, case.ball.high
    least = np.abs(np.clip(0.0, low, high))
    z = 3.0 * np.random.default_rng(seed).standard_normal(len(low))
    if sum(map(rational, least)) > 1 or sum(map(rational, np.abs(np.clip(z, low, high)))) <= 1:
        return
    sides = [(-h, -l) if x < 0 else (l, h) for x, l, h in zip(z, low, high, strict=True)]
    ends = [tuple(map(rational, side)) for side in sides]
    kinks = sorted({k for x, side in zip(z, ends, strict=True) for k in (abs(rational(x)) - e for e in side)})
    kinks = sorted({fmpq(0), *(abs(rational(x)) for x in z), *(k for k in kinks if k > 0)})

    def at(c):
        shrunk = (max(abs(rational(x)) - c, fmpq(0)) for x in z)
        return [min(max(e, side[0]), side[1]) for e, side in zip(shrunk, ends, strict=True)]

    sizes = [sum(map(abs, at(c)), fmpq(0)) for c in kinks]
    k = max(i for i, size in enumerate(sizes) if size > 1)
    c = kinks[k] + (sizes[k] - 1) * (kinks[k + 1] - kinks[k]) / (sizes[k] - sizes[k + 1])
    for found, x, exactly in zip(nearest(z, low, high, 1.0), z, at(c), strict=True):
        assert abs(rational(found) * (-1 if x < 0 else 1) - exactly) <= fmpq(1, 10**13)


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_concave_forms_over_the_cross_polytope_are_exact(low):
    """B7: a concave quadratic attains its minimum over an L1 ball at a vertex, and so does the bound."""
    rng = np.random.default_rng(3)
    for n in (1, 2, 6, 20):
        H = matrix(rng, "negative", n)
        g = rng.standard_normal(n)
        value = unit_lower_bound(g, H, UnitBall(np.full(n, low), np.ones(n), 1.0)).value
        signs = [1.0] if low == 0.0 else [1.0, -1.0]
        best = min([0.0] + [s * g[j] + 0.5 * H[j, j] for j in range(n) for s in signs])
        assert best - 1e-9 * (1 + abs(best)) <= value <= best + 1e-12


@settings(max_examples=examples(300))
@given(st.integers(0, 2**32 - 1), st.sampled_from((*NORMS, 0.0, np.inf)))
def test_projections_are_exactly_inside(seed, norm):
    ball, rng = random_ball(seed, norm)
    for _ in range(5):
        z = ball.x + (ball.box().upper - ball.box().lower) * rng.standard_normal(ball.n_features) * 3
        assert ball.contains(ball.project(z))


def random_ball(seed: int, norm: float) -> tuple[Ball, np.random.Generator]:
    """Radii of 1e-18 to 1e6 around points from 0 to 1e6, some clipped, scaled, or with few features."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    x = rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 6)
    radius = float(rng.integers(0, d + 1)) if norm == 0 else 10.0 ** rng.uniform(-18, 6)
    reach = 10.0 ** rng.uniform(-18, 6)
    domain = (x - rng.integers(0, 2, d) * reach, x + rng.integers(0, 2, d) * reach)
    return Ball(
        x,
        radius,
        norm,
        features=rng.permutation(d)[: rng.integers(1, d + 1)] if rng.random() < 0.3 else None,
        domain=domain if norm == 0 or rng.random() < 0.5 else None,
        scale=10.0 ** rng.uniform(-3, 3, d) if rng.random() < 0.5 else None,
    ), rng


@settings(max_examples=examples(200))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    norm=st.sampled_from([1.0, 2.0]),
    size=st.integers(-280, 140),
)
def test_nothing_is_lost_to_underflow(seed, n, norm, size):
    """Caps down to 1e-200 and weights of every magnitude: suprema and minima at corners, exactly."""
    rng = np.random.default_rng(seed)
    low, high = (sign * rng.random(n) * 10.0 ** rng.uniform(-200, 0, n) for sign in (-1.0, 1.0))
    ball = UnitBall(low, high, norm)
    rows = rng.standard_normal((2, n)) * 10.0 ** (size - rng.uniform(0, 20, (2, n)))
    H = matrix(rng, "indefinite", n) * 10.0 ** (size - rng.uniform(0, 10))
    with np.errstate(all="ignore"):
        most, square, least = ball.support(rows), ball.square(np.abs(rows[0])), ball.least(rows[0])
        found = unit_lower_bound(rows[0], H, ball)
    for _ in range(8):
        u = np.where(rng.random(n) < 0.5, low, high) * rng.choice([0.0, 0.5, 1.0], n)
        if sum((abs(rational(v)) ** int(norm) for v in u), fmpq(0)) > 1:
            continue
        values = [exact(row, np.zeros((n, n)), u) for row in rows]
        assert all(value <= rational(bound) for value, bound in zip(values, most, strict=True))
        assert values[0] >= rational(least)
        assert 2 * exact(np.zeros(n), np.diag(np.abs(rows[0])), u) <= rational(square)
        assert not np.isfinite(found.value) or exact(rows[0], H, u) >= rational(found.value)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.sampled_from([2, 5, 40]))
def test_no_point_of_the_ball_leaves_its_caps(seed, norm, d):
    """B13: points as near to the sphere as doubles come, seen from boxes that begin at or before them."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(d) * 10.0 ** -rng.uniform(0, 3, d)
    u /= np.abs(u).max() * (np.abs(u / np.abs(u).max()) ** norm).sum() ** (1.0 / norm)
    while not inside(u, norm):
        u *= 1.0 - 2.0**-50
    least = np.abs(u) * rng.choice([0.0, 0.5, 1.0], d)
    caps = _caps(least, norm)
    assert (np.abs(u) <= caps).all()
    assert (caps <= 1.0).all()
    shape = BallShape(Ball(np.zeros(d), 1.0, norm=norm), np.ones(d, dtype=bool))
    lower, upper = np.where(u < 0, -1.0, least), np.where(u < 0, -least, 1.0)
    domain = shape.domain(lower, upper, u, np.ones(d))
    assert ((domain.ball.low <= u) & (u <= domain.ball.high)).all()


def test_caps_are_what_the_norm_leaves():
    assert _caps(np.array([0.5, 0.25, 0.0]), 1.0) == pytest.approx([0.75, 0.5, 0.25], abs=1e-12)
    assert _caps(np.array([0.6, 0.0]), 2.0) == pytest.approx([1.0, 0.8], abs=1e-12)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e308]))
def test_parts_of_a_box_cover_it(seed, norm, radius):
    """B12: neighbours share their ends, the first and the last those of the box, no part is empty."""
    rng = np.random.default_rng(seed)
    shape = BallShape(Ball(rng.standard_normal(4), radius, norm=norm), np.ones(4, dtype=bool))
    lower = shape.centre - radius * rng.choice([0.0, 1e-17, 0.3, 1.0, 1.5], 4)
    upper = shape.centre + radius * rng.choice([0.0, 1e-17, 0.3, 1.0, 1.5], 4)
    for j in range(4):
        parts = shape.parts(lower, upper, j)
        inside_of_it = lower[j] < shape.centre[j] < upper[j]
        assert parts is None or (norm < 2.0 and len(parts) == (3 if inside_of_it else 2))
        if parts is None:
            continue
        ends = [lower[j], *(high[j] for _, high in parts)]
        assert [low[j] for low, _ in parts] == ends[:-1]
        assert ends[-1] == upper[j]
        assert all(first < second for first, second in pairwise(ends))
        for low, high in parts:
            low[j], high[j] = lower[j], upper[j]
            assert (low == lower).all()
            assert (high == upper).all()

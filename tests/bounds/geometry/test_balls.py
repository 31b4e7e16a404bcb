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


@settings(max_examples=examples(200))
@given(settings_of_balls())
def test_suprema_over_the_normalised_set_hold(case):
    ball, rng = case.ball, case.rng
    n = len(ball.low)
    rows = rng.standard_normal((6, n)) * 10.0 ** rng.uniform(-6, 6, (6, 1)) * (rng.random((6, n)) < 0.7)
    bounds, squares = ball.support(rows), rng.random(n) * 10.0 ** rng.uniform(-6, 6, n)
    largest, least = ball.square(squares), [ball.least(row) for row in rows]
    penalty = rng.random(n) * np.abs(rows).max()
    for u in case.points:
        v = [rational(x) for x in u]
        for row, bound, smallest in zip(rows, bounds, least, strict=True):
            value = sum((rational(a) * x for a, x in zip(row, v, strict=True)), fmpq(0))
            assert rational(smallest) <= value <= rational(bound)
            if ball.norm == 1.0:
                kinks = sum((rational(a) * abs(x) for a, x in zip(penalty, v, strict=True)), fmpq(0))
                assert rational(ball.least(row, penalty)) <= value - kinks
        assert sum((rational(a) * x * x for a, x in zip(squares, v, strict=True)), fmpq(0)) <= rational(
            largest
        )


KINDS = ("psd", "indefinite", "low rank", "negative", "diagonal", "zero")


@settings(max_examples=examples(150), deadline=None)
@given(settings_of_balls(), st.sampled_from(KINDS), st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
def test_quadratic_bounds_over_the_normalised_set_hold(case, kind, slope):
    ball, rng = case.ball, case.rng
    n = len(ball.low)
    H = matrix(rng, kind, n) * 10.0 ** rng.uniform(-6, 6)
    g = rng.standard_normal(n) * slope * (np.abs(H).max() or 1.0)
    found = unit_lower_bound(g, H, ball)
    assert found.value > -np.inf
    for u in [*case.points, *(descend(g, H, ball, u) for u in case.points[:6])]:
        if inside(u, ball.norm) and (ball.low <= u).all() and (u <= ball.high).all():
            assert rational(found.value) <= exact(g, H, u)


def descend(g, H, ball, u):
    """Projected gradients from u, drawn in a little at the end."""
    length = 1.0 / (np.abs(H).sum(axis=0).max() + 1e-300)
    for _ in range(60):
        u = nearest(u - length * (g + H @ u), ball.low, ball.high, ball.norm)
    return ball.rest + (1.0 - 1e-13) * (u - ball.rest)


@pytest.mark.parametrize("norm", [2.0, 3.0, 2.5])
@pytest.mark.parametrize("kind", ["psd", "indefinite", "negative"])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_quadratic_bounds_are_sharp_for_steep_slopes(norm, kind, low):
    """The ball's multiplier exceeds the curvature: the relaxation is exact (B6), also when clipped."""
    rng = np.random.default_rng(5)
    for n in (1, 3, 10, 40):
        ball = UnitBall(np.full(n, low), np.ones(n), norm)
        H = matrix(rng, kind, n) / n
        g = 20.0 * rng.standard_normal(n)
        value = unit_lower_bound(g, H, ball).value
        best = min(
            float(g @ u + 0.5 * u @ H @ u)
            for u in (descend(g, H, ball, lowest(g, ball.low, ball.high, norm)) for _ in range(2))
        )
        assert best - 1e-6 * abs(best) <= value <= best + 1e-9 * abs(best)


SLIVERS = ((0.0, 4.6e-17), (-3e-14, 0.0), (0.2, 0.2 + 1e-10), (-2e-10, 2e-10))


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize(("start", "end"), SLIVERS)
def test_coordinates_almost_without_width_are_held_at_their_price(norm, start, end):
    """B5: steep enough, what is left out is more than all rounding; at an end of the sliver, exactly."""
    rng = np.random.default_rng(8)
    for steep, kind in ((1.0, "indefinite"), (1e11, "negative"), (1e11, "psd"), (-1e11, "indefinite")):
        low, high = np.array([-0.7, start, -0.2, start]), np.array([0.4, end, 0.7, end])
        ball, H, g = UnitBall(low, high, norm), matrix(rng, kind, 4), rng.standard_normal(4)
        g[1], H[1, 3], H[3, 1] = steep, -steep, -steep
        value = unit_lower_bound(g, H, ball).value
        for u in [0.3 * low, 0.3 * high, ball.rest, 0.9 * descend(g, H, ball, ball.rest)]:
            for ends in ((start, start), (start, end), (end, end)):
                u[[1, 3]] = ends
                assert inside(u, norm)
                assert rational(value) <= exact(g, H, u)


@pytest.mark.parametrize("norm", [1.5, 3.0])
@pytest.mark.parametrize(("start", "end"), SLIVERS[:2])
def test_coordinates_almost_without_width_cost_almost_nothing(norm, start, end):
    """A halving of the search that misses the ball's centre by rounding leaves such a coordinate."""
    rng = np.random.default_rng(9)
    H, g, free = matrix(rng, "indefinite", 5), rng.standard_normal(5), np.array([0, 1, 3, 4])
    low, high = -0.5 * np.ones(5), np.ones(5)
    low[2], high[2] = start, end
    value = unit_lower_bound(g, H, UnitBall(low, high, norm)).value
    without = unit_lower_bound(g[free], H[np.ix_(free, free)], UnitBall(low[free], high[free], norm)).value
    assert without - 1e-9 * abs(without) <= value


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


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS))
def test_displacements_of_the_exact_ball_are_covered(seed, norm):
    """Every point of the stored ball in a box obeys what the domain around any reference claims: B1."""
    ball, rng = random_ball(seed, norm)
    box = ball.box()
    moving = box.lower < box.upper
    if not moving.any():
        return
    low, high = box.lower[moving], box.upper[moving]
    if rng.random() < 0.5:  # a box of the search
        cut = low + rng.random((2, len(low))) * (high - low)
        low, high = cut.min(axis=0), np.maximum(cut.max(axis=0), np.nextafter(cut.min(axis=0), np.inf))
    reference = np.clip(low + rng.random(len(low)) * (high - low), low, high)
    lengthscale = 10.0 ** rng.uniform(-3, 3, len(low))
    domain = BallShape(ball, moving).domain(low, high, reference, lengthscale)
    points = []
    for _ in range(8):
        z = ball.x.copy()
        z[moving] = np.where(rng.random(len(low)) < 0.3, low, low + rng.random(len(low)) * (high - low))
        z = ball.project(z)
        if ball.contains(z) and (low <= z[moving]).all() and (z[moving] <= high).all():
            points.append(z[moving])
    if domain is None:
        assert points == []
        return
    n = len(low)
    metric, rows = rng.random(n) * lengthscale, rng.standard_normal((4, n)) / lengthscale
    H = matrix(rng, "indefinite", n)
    g = rng.standard_normal(n)
    norm_bound, supports, quadratic = domain.norm(metric), domain.support(rows), domain.minimise(g, H)
    for z in points:
        d = [
            (rational(a) - rational(b)) / rational(s)
            for a, b, s in zip(z, reference, lengthscale, strict=True)
        ]
        square = sum((rational(m) * v * v for m, v in zip(metric, d, strict=True)), fmpq(0))
        assert square <= rational(norm_bound) ** 2
        for row, bound in zip(rows, supports, strict=True):
            assert sum((rational(a) * v for a, v in zip(row, d, strict=True)), fmpq(0)) <= rational(bound)
        assert all(
            rational(a) <= v <= rational(b) for a, v, b in zip(domain.low, d, domain.high, strict=True)
        )
        if quadratic.value > -np.inf:
            form = sum(
                (
                    v
                    * (rational(a) + sum((rational(h) * w for h, w in zip(row, d, strict=True)), fmpq(0)) / 2)
                    for v, a, row in zip(d, g, H, strict=True)
                ),
                fmpq(0),
            )
            assert rational(quadratic.value) <= form


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

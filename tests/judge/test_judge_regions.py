"""The judge of regions and of lines, against exact rational arithmetic and dense samples."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from helpers.exact import small_model
from helpers.oracle import bits
from judge import Truth, extremes, inside, points

NORMS = (0.0, 1.0, 1.0 + 1e-7, 1.5, 2.0, 3.0, 200.0, 2000.0, 1e6, math.inf)
MAGNITUDES = ((1.0, 0.5), (1e16, 4.0), (1e300, 1e299), (1e-300, 1e-301), (1e308, 5e307), (5.0, 1e-18))


def by_definition(ball: gc.Ball, z: np.ndarray) -> bool:
    """|(z - x) / scale|_p <= radius in fractions, p = 1, 2, 3, inf; only `features` moving, in `domain`."""
    scale = np.ones(len(z)) if ball.scale is None else ball.scale
    steps = [
        abs(Fraction(a) - Fraction(b)) / Fraction(s)
        for a, b, s in zip(z.tolist(), ball.x.tolist(), scale.tolist(), strict=True)
    ]
    still = [v for j, v in enumerate(steps) if ball.features is not None and j not in ball.features]
    low, high = ball.domain or (np.full(len(z), -np.inf), np.full(len(z), np.inf))
    radius = Fraction(ball.radius)
    if ball.norm == math.inf:
        short = max(steps) <= radius
    else:
        short = sum(v ** int(ball.norm) for v in steps) <= radius ** int(ball.norm)
    return short and not any(still) and bool((low <= z).all() and (z <= high).all())


def random_ball(rng: np.random.Generator, norm: float, magnitude: float, radius: float) -> gc.Ball:
    d = int(rng.integers(1, 5))
    x = rng.standard_normal(d) * (0.05 * magnitude)
    domain = (x - 0.1 * radius * rng.random(d), x + radius * rng.random(d))
    scale = 0.1 + rng.random(d) if rng.random() < 0.5 else None
    features = rng.permutation(d)[: rng.integers(1, d + 1)].tolist() if rng.random() < 0.3 else None
    cut = norm == 0 or rng.random() < 0.3
    return gc.Ball(x, 2 if norm == 0 else radius, norm, features, domain if cut else None, scale)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, math.inf])
def test_membership_is_the_definition(norm):
    rng = np.random.default_rng(0)
    for magnitude, radius in MAGNITUDES:
        for _ in range(5):
            ball = random_ball(rng, norm, magnitude, radius)
            for z in points(ball, rng, 6):
                assert inside(ball, z) is True
                assert by_definition(ball, z)
                for j in range(len(z)):  # just outside, or not
                    other = z.copy()
                    other[j] = np.nextafter(z[j], math.copysign(math.inf, z[j] - ball.x[j]))
                    if np.isfinite(other).all():
                        assert inside(ball, other) is by_definition(ball, other)


@pytest.mark.parametrize("norm", NORMS)
def test_points_are_inside_and_reach_the_boundary(norm):
    rng = np.random.default_rng(1)
    for magnitude, radius in MAGNITUDES:
        ball = random_ball(rng, norm, magnitude, radius)
        found = points(ball, rng, 25)
        assert found.shape == (25, ball.n_features)
        assert all(inside(ball, z) is True for z in found)
    ball = gc.Ball([0.1, -0.2, 0.3], 1.0 if norm else 2.0, norm, domain=(-2.0, 2.0))
    found = points(ball, rng, 40)
    assert any(not inside(ball, ball.x + (z - ball.x) * 1.001) for z in found)
    if norm:  # each axis ends at the radius
        assert inside(gc.Ball([0.0, 0.0], 0.5, norm), [0.5, 0.0]) is True
        assert inside(gc.Ball([0.0, 0.0], 0.5, norm), [math.nextafter(0.5, 1), 0.0]) is False


def test_membership_between_norms():
    """A point on the boundary of one norm is outside for a smaller p and inside for a larger one."""
    z = [0.6, 0.6]
    for norm in NORMS[1:]:
        radius = float(0.6 * 2 ** (1 / norm)) if norm < math.inf else 0.6
        for factor, expected in ((1 + 1e-12, True), (1 - 1e-12, False)):
            assert inside(gc.Ball([0.0, 0.0], radius * factor, norm), z) is expected
    assert inside(gc.Ball([0.0], 1.0), [math.nan]) is False
    assert inside(gc.Ball([0.0], 1.0), [math.inf]) is False
    assert inside(gc.Ball([0.0], 0.0, 1.5), [0.0]) is True
    assert inside(gc.Ball([0.3], 0.1), [0.4]) is False  # as docs/regions.md tells
    assert inside(gc.Box([0.0], [0.1]), [Fraction(1, 10)]) is True
    assert inside(gc.Box([0.0], [0.3]), [Fraction(3, 10)]) is False


def test_points_of_boxes():
    rng = np.random.default_rng(2)
    for box in (gc.Box([-1e308, 0.0], [1e308, 1e-320]), gc.Box([1e16], [1e16 + 4]), gc.Box([0.5], [0.5])):
        found = points(box, rng, 20)
        assert all(inside(box, z) is True for z in found)
        assert any((z == box.lower).all() for z in found)
        assert any((z == box.upper).all() for z in found)


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
@pytest.mark.parametrize("kernel", [gc.RBF(0.8, 4.0), gc.Matern12(0.8, 4.0)], ids=repr)
def test_extremes_along_a_line_enclose_those_of_samples(likelihood, kernel):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6, 2))
    R = np.linalg.inv(kernel(X) + np.eye(6))
    post = gc.Posterior(
        X, rng.standard_normal(6), 0.5 * (R + R.T), kernel=kernel, likelihood=likelihood, mean=0.2
    )
    truth, x = Truth(post), X[0]  # a cone of Matern 1/2 is on the line
    low, high = extremes(lambda z: truth.probability(z, 1), x, 0, Fraction(-1, 3), 0.7, width=1e-4)
    assert low.rad() < 1e-4
    assert high.rad() < 1e-4
    with bits(128):
        t = [Fraction(-1, 3) + Fraction(k, 60) * (Fraction(0.7) + Fraction(1, 3)) for k in range(61)]
        p = [truth.probability([Fraction(x[0]) + s, x[1]], 1) for s in t]
    assert all(low.lower() <= v.upper() and v.lower() <= high.upper() for v in p)
    assert min(v.mid() for v in p) < low.upper() + 1e-2
    assert max(v.mid() for v in p) > high.lower() - 1e-2


def test_extremes_are_honest_at_the_budget():
    truth = Truth(small_model(n=8, likelihood="logit"))
    f = lambda z: truth.probability(z, 1)  # noqa: E731
    low, high = extremes(f, [0.1, 0.2], 1, -2.0, 2.0, width=1e-9, budget=40)
    fine = extremes(f, [0.1, 0.2], 1, -2.0, 2.0, width=1e-5)
    assert low.overlaps(fine[0])
    assert high.overlaps(fine[1])
    assert low.rad() > fine[0].rad()
    one = extremes(f, [0.1, 0.2], 1, 0.5, 0.5)
    assert one[0].overlaps(one[1])
    assert extremes(lambda z: arb("nan"), [0.0], 0, 0.0, 1.0, budget=50)[0].rad() > 1.0

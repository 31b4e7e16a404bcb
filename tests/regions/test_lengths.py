"""Lengths |z|_p of every p and every magnitude: membership, the radius of a point, of a domain, projections.

The truth is |s|_p^p in rational numbers or in ball arithmetic, whose exponents know no underflow.
"""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.geometry.ball import BallShape
from gpcert.questions.balls import Balls
from gpcert.regions import Ball
from gpcert.regions.points import _shrink
from gpcert.rounding import norm_up
from helpers.oracle import bits, examples
from judge import Truth

INF = math.inf
POWERS = [1.0, 1.0 + 1e-7, 1.5, 2.0, 3.0, 200.0, 2000.0, 1e6]
NORMS = [*POWERS, INF]
norms = st.sampled_from(NORMS)
seeds = st.integers(0, 2**32 - 1)
MAGNITUDES = [1e-300, 1e-150, 1e-8, 1.0, 1e8, 1e150, 1e300]


def within(z, x, scale, p, radius):
    """Whether |(z - x) / scale|_p <= radius, decided: rational where that can be, else in balls."""
    pairs = zip(z, x, scale, strict=True)
    steps = [abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(float(s)) for a, b, s in pairs]
    steps = [step for step in steps if step]
    if p == INF or len(steps) <= 1:
        return all(step <= radius for step in steps)
    if p in (1.0, 2.0, 3.0):
        return sum(step ** int(p) for step in steps) <= Fraction(radius) ** int(p)
    with bits(1000):
        total = sum((ball(step / Fraction(radius)) ** arb(p) for step in steps), arb(0)) if radius else arb(2)
        assert total <= 1 or total > 1
        return total <= 1


def ball(value):
    return arb(fmpq(value.numerator, value.denominator))


def times(size, factor):
    """The double below size * factor."""
    return float(Fraction(size) * Fraction(factor)) if size < INF else sys.float_info.max


def sample(seed, p):
    """A ball with coordinates, units and radii of any magnitude, and a point about on its sphere."""
    rng = np.random.default_rng(seed)
    d, size, unit = int(rng.integers(1, 6)), rng.choice(MAGNITUDES), 10.0 ** rng.uniform(-5, 5)
    scale = unit * 10.0 ** rng.uniform(-1, 1, d) if rng.random() < 0.5 else np.ones(d)
    x = np.where(rng.random(d) < 0.5, 0.0, rng.normal(size=d) * size * rng.choice([1.0, 1e-3, 1e3]))
    steps = rng.choice([0.0, 1.0, 0.999, 0.5, 1e-3], d) * rng.uniform(0.999, 1.0, d)
    radius = float(size / scale.max())
    steps = steps / max(float(np.linalg.norm(steps, INF)), 1e-3) * len(steps) ** (-1 / p if p < INF else 0)
    z = x + rng.choice([-1, 1], d) * steps * radius * scale * rng.choice(
        [1.0, 1.0 + 1e-6, 1.0 - 1e-6, 0.9, 3.0]
    )
    return rng, x, z, scale, radius


@settings(max_examples=examples(400))
@given(seeds, norms)
def test_membership_and_the_radius_of_a_point(seed, p):
    """Decided as the balls decide; the ball of `radius_of` holds the point, one smaller by 1e-14 does not."""
    _, x, z, scale, radius = sample(seed, p)
    region = Ball(x, radius, p, scale=scale)
    assert region.contains(z) == within(z, x, scale, p, radius)
    nearest = region.radius_of(z)
    if nearest < INF:
        assert within(z, x, scale, p, nearest)
        assert Ball(x, nearest, p, scale=scale).contains(z)
    smaller = min(times(nearest, 1 - 1e-14), math.nextafter(nearest, 0.0))
    assert nearest == 0.0 or not within(z, x, scale, p, smaller)


@settings(max_examples=examples(300))
@given(seeds, norms)
def test_beyond_the_largest_radius_the_domain_is_the_region(seed, p):
    """`Balls.largest` is at least the distance of the farthest corner, and not much more."""
    rng, x, _, scale, radius = sample(seed, p)
    d = len(x)
    reach = radius * scale * 10.0 ** rng.uniform(-3, 0, d) * (rng.random((2, d)) < 0.8)
    domain = x - reach[0], x + reach[1]
    features = None if rng.random() < 0.6 else np.flatnonzero(rng.random(d) < 0.7).tolist()
    largest = Balls(Ball(x, 0.0, p, features, domain, scale), x[None], np.array([INF])).largest(0)
    corners = np.array(np.meshgrid(*np.transpose(domain))).reshape(d, -1).T
    if features is not None:
        corners = np.where(np.isin(np.arange(d), features), corners, x)
    assert largest == INF or all(within(far, x, scale, p, largest) for far in corners)
    assert largest < 1e-300 or not all(within(far, x, scale, p, times(largest, 0.4)) for far in corners)


@settings(max_examples=examples(200))
@given(seeds, st.sampled_from(NORMS), st.sampled_from(MAGNITUDES))
def test_norms_rounded_up(seed, p, size):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, 7)) * size * 10.0 ** rng.uniform(-20, 0, 7)
    for row, norm in zip(rows, norm_up(rows, p).tolist(), strict=True):
        assert norm == INF or within(row, np.zeros(7), np.ones(7), p, norm)
        assert norm < 1e-300 or not within(row, np.zeros(7), np.ones(7), p, times(norm, 0.37))


@settings(max_examples=examples(200))
@given(seeds, st.sampled_from(POWERS))
def test_projections_are_points_of_the_ball_and_reach_its_sphere(seed, p):
    rng, x, z, scale, radius = sample(seed, p)
    region = Ball(x, radius, p, scale=scale)
    far = x + (z - x) * 10.0 ** rng.uniform(0, 3)
    if not np.isfinite(far).all():
        return
    point = region.project(far)
    assert within(point, x, scale, p, radius)
    fine = (np.spacing(np.abs(x)) < 1e-6 * radius * scale).all()  # else no double is near the sphere
    if fine and not within(far, x, scale, p, radius):
        assert not within(point, x, scale, p, 0.99 * radius)


@settings(max_examples=examples(100))
@given(seeds, st.sampled_from(POWERS))
def test_the_set_of_displacements_contains_the_ball(seed, p):
    """B1 with units and lengthscales of any magnitude: half axes and the normalised box are outward."""
    rng, x, z, scale, radius = sample(seed, p)
    with np.errstate(over="ignore"):
        lengthscale = scale * radius * 10.0 ** rng.uniform(-40, 40, len(x))
    if not ((lengthscale > 0) & np.isfinite(lengthscale)).all():
        return
    point = Ball(x, radius, p, scale=scale).project(z)
    moving = np.ones(len(x), dtype=bool)
    box = np.minimum(x, point), np.maximum(x, point)
    with np.errstate(all="ignore"):
        domain = BallShape(Ball(x, radius, p, scale=scale), moving).domain(*box, x, lengthscale)
    assert domain is not None
    if hasattr(domain, "unit"):
        for z_j, x_j, s, l, *ends in np.transpose(
            [point, x, scale, lengthscale, domain.unit, domain.ball.low, domain.ball.high]
        ):
            unit, low, high = map(Fraction, ends)
            assert unit >= Fraction(radius) * Fraction(s) / Fraction(l)
            assert low <= (Fraction(z_j) - Fraction(x_j)) / Fraction(l) / unit <= high


@pytest.mark.parametrize("norm", [*POWERS, INF])
@pytest.mark.parametrize("unit", [1e-200, 1e-4, 1.0, 1e200])
def test_no_radius_is_safe_that_holds_another_label(norm, unit):
    """A valley inside the domain: at any p the safe radius ends before it, and attacks find it."""
    centres, x = np.array([[0.9 * unit, 0.5 * unit]]), np.full(2, 0.5 * unit)
    post = gc.Posterior(centres, [-4.0], [[0.0]], kernel=gc.RBF(0.1 * unit, 1.0), mean=1.0)
    for most in (unit, INF):
        r = gc.certified_radius(post, x, norm=norm, domain=(0.0, unit), max_radius=most, rtol=0.01)
        assert r.status == "converged"
        assert 0.2 * unit < r.safe < r.unsafe < 0.3 * unit
        assert Truth(post).at_most(centres[0], r.label, 0.5)
        assert Ball(x, r.unsafe, norm, domain=(0.0, unit)).contains(r.counterexample)
    found = gc.attack(post, Ball(x, 0.39 * unit, norm, domain=(0.0, unit)))
    assert found.success
    assert within(found.x, x, np.ones(2), norm, 0.39 * unit)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0])
def test_closed_forms_of_the_projection_solve_their_equation(norm):
    """B2: e + c e^(norm - 1) = a, at every magnitude, to 1e-12 of the larger term in ball arithmetic."""
    sizes = 10.0 ** np.array([-200.0, -80.0, -3.0, 0.0, 2.0, 60.0, 140.0])
    for c in (1e-150, 1e-3, 1.0, 7.0, 1e5, 1e100):
        for a, e in zip(sizes, _shrink(sizes, c, norm), strict=True):
            assert 0.0 <= e <= a
            if norm == 1.0:
                assert e == max(a - c, 0.0)
            elif e > 1e-300:
                left = arb(e) + arb(c) * arb(e) ** (arb(norm) - 1)
                assert abs(left - arb(a)) <= arb(1e-12) * arb(a)

"""Regions as exact sets: membership in rational arithmetic, outer and inner boxes, one-sentence errors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpcert.errors import InvalidInputError
from gpcert.regions import Ball, Box
from helpers.oracle import bits, examples

INF = math.inf
coordinates = st.floats(-1e6, 1e6) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1e16, -1e16, 1e16 + 2, 1.7e9, 1734393600.0, 0.1, 1 / 3, 1e300]
)
sizes = st.floats(0.0, 1e6) | st.sampled_from([0.0, 5e-324, 1e-300, 2.0**-53, 0.1, 1.0, 1e16, 1e300])
scales = st.floats(1e-6, 1e6) | st.sampled_from([5e-324, 1e-300, 3.0, 1 / 3, 1e16])


@st.composite
def balls(draw, norms=(INF,)):
    """Balls with every option present or absent."""
    d = draw(st.integers(1, 4))
    x = [draw(coordinates) for _ in range(d)]
    features = draw(st.none() | st.lists(st.integers(0, d - 1), unique=True))
    scale = draw(st.none() | st.lists(scales, min_size=d, max_size=d))
    domain = None
    if draw(st.booleans()):
        ends = [sorted((v, v + draw(st.floats(-10, 10)))) for v in x]
        domain = [e[0] for e in ends], [e[1] for e in ends]
    return Ball(x, draw(sizes), draw(st.sampled_from(norms)), features, domain, scale)


def interval(ball, j):
    """The exact range of coordinate j of a ball of norm inf, as Fractions."""
    x = Fraction(float(ball.x[j]))
    if not ball.moving()[j]:
        return x, x
    step = Fraction(ball.radius) * Fraction(1.0 if ball.scale is None else float(ball.scale[j]))
    low, high = x - step, x + step
    if ball.domain is not None:
        low, high = (
            max(low, Fraction(float(ball.domain[0][j]))),
            min(high, Fraction(float(ball.domain[1][j]))),
        )
    return low, high


def finite_box(ball, name):
    """A box of the ball, or no example: a region beyond the doubles is refused."""
    try:
        return getattr(ball, name)()
    except InvalidInputError as error:
        assume("finite" not in str(error))
        raise


@settings(max_examples=examples(400))
@given(ball=balls())
def test_box_is_the_smallest_box_of_doubles_around_the_ball(ball):
    box = finite_box(ball, "box")
    for j in range(ball.n_features):
        low, high = interval(ball, j)
        assert Fraction(float(box.lower[j])) <= low
        assert high <= Fraction(float(box.upper[j]))
        assert Fraction(math.nextafter(box.lower[j], INF)) > low
        assert Fraction(math.nextafter(box.upper[j], -INF)) < high


@settings(max_examples=examples(400))
@given(ball=balls())
def test_inner_box_lies_in_the_ball_and_is_the_largest(ball):
    inner = finite_box(ball, "inner_box")
    assert ball.contains(inner.lower)
    assert ball.contains(inner.upper)
    assert ball.contains(inner.centre)
    assert (inner.lower <= ball.x).all()
    assert (ball.x <= inner.upper).all()
    for j in range(ball.n_features):
        low, high = interval(ball, j)
        below, above = math.nextafter(inner.lower[j], -INF), math.nextafter(inner.upper[j], INF)
        assert math.isinf(below) or Fraction(below) < low
        assert math.isinf(above) or Fraction(above) > high


@settings(max_examples=examples(400))
@given(ball=balls(), data=st.data())
def test_membership_at_the_edge_is_exact(ball, data):
    """Single coordinates at the doubles nearest the exact ends: inside exactly when the interval says so."""
    box = finite_box(ball, "box")
    j = data.draw(st.integers(0, ball.n_features - 1))
    end = data.draw(st.sampled_from([float(box.lower[j]), float(box.upper[j])]))
    value = data.draw(st.sampled_from([end, math.nextafter(end, INF), math.nextafter(end, -INF)]))
    assume(math.isfinite(value))
    z = ball.x.copy()
    z[j] = value
    low, high = interval(ball, j)
    assert ball.contains(z) == (low <= Fraction(value) <= high)


@settings(max_examples=examples(300))
@given(ball=balls(norms=(1.0, 2.0)), data=st.data())
def test_membership_for_norms_1_and_2_is_exact(ball, data):
    share = data.draw(st.lists(st.floats(-1.5, 1.5), min_size=ball.n_features, max_size=ball.n_features))
    scale = np.ones(ball.n_features) if ball.scale is None else ball.scale
    with np.errstate(over="ignore"):
        z = np.where(ball.moving(), ball.x + np.array(share) * ball.radius * scale, ball.x)
    assume(np.isfinite(z).all())
    if ball.domain is not None:
        z = np.clip(z, *ball.domain)
    steps = [
        abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(float(s))
        for a, b, s in zip(z, ball.x, scale, strict=True)
    ]
    p = int(ball.norm)
    assert ball.contains(z) == (sum(step**p for step in steps) <= Fraction(ball.radius) ** p)


@settings(max_examples=examples(200))
@given(
    norm=st.sampled_from([1.5, 3.0, 7.0, 1e3, 1e8]),
    exponent=st.sampled_from([0, -150, 150, -300, 300]),
    steps=st.lists(st.floats(0.1, 1.3), min_size=1, max_size=4),
)
def test_membership_for_other_norms_is_true_only_if_certain(norm, exponent, steps):
    """Also where powers of the steps leave the range of doubles."""
    unit = 10.0**exponent
    z = np.array(steps) * unit
    with bits(400):
        total = sum((arb(float(v)) ** arb(norm) for v in z), arb(0))
        outside = total > arb(unit) ** arb(norm)
        well_inside = total < (arb(unit) * arb(0.99)) ** arb(norm)
    inside = Ball(np.zeros(len(steps)), unit, norm=norm).contains(z)
    assert not (inside and outside)
    if exponent == 0 and norm < 1e3:
        assert inside or not well_inside


def test_membership_for_a_huge_norm_counts_the_rounding_of_the_steps():
    """step / radius rounds down across 2^(-1/p): the power p magnifies half an ulp beyond a fixed margin."""
    p, radius, z = 4e6, 1.8050029237453802, 1.8050026109622355
    with bits(200):
        assert 2 * (arb(z) / arb(radius)) ** arb(p) > 1
    assert not Ball([0.0, 0.0], radius, norm=p).contains([z, z])


@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_norm_0_counts_coordinates(radius):
    ball = Ball([0.5, 0.5, 0.5], radius, norm=0, domain=(0.0, 1.0))
    for moved in range(4):
        z = np.array([0.9] * moved + [0.5] * (3 - moved))
        assert ball.contains(z) == (moved <= radius)
    box = ball.box()
    expected = (0.0, 1.0) if radius else (0.5, 0.5)
    assert (box.lower == expected[0]).all()
    assert (box.upper == expected[1]).all()


def test_zero_radius_is_one_point():
    x = np.array([0.1, 1e16, -5e-324])
    for norm in (0, 1, 1.5, 2, INF):
        ball = Ball(x, 0, norm=norm, domain=(-1e17, 1e17), scale=[3.0, 1 / 3, 5e-324])
        assert ball.contains(x)
        assert not ball.contains(np.nextafter(x, INF))
        for box in (ball.box(), ball.inner_box()):
            np.testing.assert_array_equal(box.lower, x)
            np.testing.assert_array_equal(box.upper, x)


def test_a_domain_cuts_and_touches():
    ball = Ball([0.0, 1.0], 0.25, domain=(0.0, 1.0))
    np.testing.assert_array_equal(ball.box().lower, [0.0, 0.75])
    np.testing.assert_array_equal(ball.box().upper, [0.25, 1.0])
    assert ball.contains([0.25, 0.75])
    assert not ball.contains([-5e-324, 1.0])
    point = Ball([0.3], 0.25, domain=(0.3, 0.3)).box()
    assert point.lower == point.upper == 0.3
    one_sided = Ball([0.5], 1.0, domain=(0.0, INF)).box()
    assert (one_sided.lower, one_sided.upper) == (0.0, 1.5)


@pytest.mark.parametrize("scale", [None, [10.0]])
def test_a_domain_keeps_a_huge_ball_finite(scale):
    ball = Ball([1e308], 1.7e308, domain=(0.0, 1e308), scale=scale)
    for box in (ball.box(), ball.inner_box()):
        assert (box.lower, box.upper) == (0.0, 1e308)


def test_features_that_stand_still_stand_exactly():
    ball = Ball([0.1, 0.2, 0.3], 1.0, features=[2, 0])
    assert ball.features == (0, 2)
    assert ball.contains([1.0, 0.2, -0.7])
    assert not ball.contains([0.1, math.nextafter(0.2, 1.0), 0.3])
    assert ball.box().lower[1] == ball.box().upper[1] == 0.2
    assert Ball([0.1], 1.0, features=[]).box().upper == 0.1


@given(low=st.lists(coordinates, min_size=1, max_size=3), width=st.floats(0.0, 1e6))
def test_boxes_contain_their_ends_and_centre(low, width):
    lower = np.array(low)
    box = Box(lower, lower + width)
    for z in (box.lower, box.upper, box.centre):
        assert box.contains(z)
    assert box.box() is box
    assert box.inner_box() is box
    assert not box.contains(np.nextafter(box.upper, INF))


def test_the_centre_of_the_widest_box_is_finite():
    assert Box([-1.7e308], [1.7e308]).centre == 0.0
    assert Box([1.7e308], [1.7e308]).centre == 1.7e308


def test_regions_are_immutable_copies():
    x = np.zeros(2)
    ball, box = Ball(x, 1.0), Box(x, x)
    x[0] = 7.0
    assert ball.x[0] == box.lower[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        box.lower[0] = 1.0


NAN = math.nan
ERRORS = {
    "lower must be <= upper, got 2.0 > 1.0 at feature 0": lambda: Box([2.0, 1.0], [1.0, 1.0]),
    "upper must have length 2, got 1": lambda: Box([1.0, 1.0], [2.0]),
    "lower must be one-dimensional, got shape ()": lambda: Box(1.0, 2.0),
    "lower must have at least one feature, got none": lambda: Box([], []),
    "lower must be finite, got inf at index 0": lambda: Box([INF], [INF]),
    "x must have at least one feature, got none": lambda: Ball([], 1.0),
    "x must be finite, got nan at index 1": lambda: Ball([0.0, NAN], 1.0),
    "radius must be >= 0, got -0.1": lambda: Ball([0.0], -0.1),
    "radius must be finite, got inf": lambda: Ball([0.0], INF),
    "radius must be one number, got shape (2,)": lambda: Ball([0.0], [1.0, 2.0]),
    "radius must be an integer with norm=0, got 0.5": lambda: Ball([0.0], 0.5, norm=0, domain=(0, 1)),
    "radius must keep the region finite, got 1e+308": lambda: Ball([1.7e308], 1e308).box(),
    "norm must be 0, >= 1 or inf, got 0.5": lambda: Ball([0.0], 1.0, norm=0.5),
    "norm must be 0, >= 1 or inf, got 'two'": lambda: Ball([0.0], 1.0, norm="two"),
    "norm must be one number, got shape (2,)": lambda: Ball([0.0], 1.0, norm=[1, 2]),
    "domain must be given with norm=0, got None": lambda: Ball([0.0], 1, norm=0),
    "domain must be finite with norm=0, got -inf": lambda: Ball([0.5], 1, norm=0, domain=(-INF, 1.0)).box(),
    "domain must be (low, high), got 3 values": lambda: Ball([0.0], 1.0, domain=(0, 1, 2)),
    "domain must be (low, high), got 5": lambda: Ball([0.0], 1.0, domain=5),
    "domain must be numbers, got 'a'": lambda: Ball([0.0], 1.0, domain=("a", 1)),
    "domain must not be NaN, got nan": lambda: Ball([0.0], 1.0, domain=(NAN, 1)),
    "domain must have low <= high, got 1.0 > 0.0": lambda: Ball([0.0], 1.0, domain=(1, 0)),
    "domain must be one number or 1, got shape (2,)": lambda: Ball([0.0], 1.0, domain=([0, 0], 1)),
    "x must lie in domain, got 2.0 outside [0.0, 1.0] at feature 0": lambda: Ball([2.0], 1.0, domain=(0, 1)),
    "features must be indices in 0..0, got 1": lambda: Ball([0.0], 1.0, features=[1]),
    "features must be indices in 0..0, got -1": lambda: Ball([0.0], 1.0, features=[-1]),
    "features must be indices in 0..0, got 0.0": lambda: Ball([0.0], 1.0, features=[0.0]),
    "features must be indices in 0..0, got True": lambda: Ball([0.0], 1.0, features=[True, 0]),
    "features must be distinct, got [0, 0]": lambda: Ball([0.0], 1.0, features=[0, 0]),
    "features must be a sequence of indices or names, got 0": lambda: Ball([0.0], 1.0, features=0),
    "scale must be > 0, got 0.0": lambda: Ball([0.0], 1.0, scale=0.0),
    "scale must be one number or 1, got shape (2,)": lambda: Ball([0.0], 1.0, scale=[1, 2]),
    "z must have length 1, got 2": lambda: Ball([0.0], 1.0).contains([0.0, 0.0]),
    "z must be finite, got nan at index 0": lambda: Box([0.0], [1.0]).contains([NAN]),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_are_one_sentence(message):
    with pytest.raises(InvalidInputError) as caught:
        ERRORS[message]()
    assert str(caught.value) == message

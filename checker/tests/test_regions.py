"""Regions are exact sets of rational ends; points are in them or not."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

import pytest
from flint import arb

from gpcert_check.balls import read_region
from gpcert_check.reading import Reject
from making import ball, box

F = Fraction


def test_a_box() -> None:
    region = read_region(box([0.0, 1.0], [0.5, 1.0]), 2)
    assert region.moving == [0]
    assert region.contains([0.5, 1.0])
    assert region.contains([0.0, 1.0])
    for outside in (
        [nextafter(0.5, 1), 1.0],
        [-5e-324, 1.0],
        [0.2, nextafter(1.0, 2)],
        [0.2, nextafter(1.0, 0)],
    ):
        assert not region.contains(outside)


def test_a_ball_of_norm_inf_has_ends_that_are_no_doubles() -> None:
    region = read_region(
        ball([0.1, 0.2, 0.3], 0.1, "inf", [0, 2], [[-inf, -inf, 0.25], [0.15, inf, inf]], [1.0, 1.0, 0.3]), 3
    )
    assert region.moving == [0, 2]
    assert region.lower == [F(0.1) - F(0.1), F(0.2), F(0.3) - F(0.1) * F(0.3)]
    assert region.lower[2] > F(0.25)
    assert region.upper == [F(0.15), F(0.2), F(0.3) + F(0.1) * F(0.3)]


@pytest.mark.parametrize(
    ("norm", "radius", "inside", "outside"),
    [
        ("2", 5.0, [[3.0, 4.0, 0.0], [5.0, 0.0, 0.0]], [[3.0, nextafter(4.0, 5), 0.0], [4.0, 4.0, 0.0]]),
        ("1", 2.0, [[1.0, -1.0, 0.0], [0.0, 2.0, 0.0]], [[1.0, nextafter(1.0, 2), 0.0], [1.0, 1.0, 5e-324]]),
        ("0", 2.0, [[6.0, -6.0, 0.0], [0.0, 0.0, 5e-324]], [[1.0, 1.0, 5e-324], [6.5, 0.0, 0.0]]),
        ("inf", 2.0, [[2.0, -2.0, 2.0]], [[nextafter(2.0, 3), 0.0, 0.0]]),
    ],
)
def test_membership(norm: str, radius: float, inside, outside) -> None:
    region = read_region(ball([0.0] * 3, radius, norm, None, [[-6.0] * 3, [6.0] * 3]), 3)
    assert all(region.contains(z) for z in inside)
    assert not any(region.contains(z) for z in outside)


def test_scale_and_features_of_a_ball() -> None:
    region = read_region(ball([1.0, 1.0], 1.0, "2", [0], None, [2.0, 1.0]), 2)
    assert region.contains([3.0, 1.0])
    assert not region.contains([1.0, 1.5])
    assert (region.lower, region.upper) == ([-1, 1], [3, 1])


def test_norm_0_reaches_the_ends_of_its_domain() -> None:
    region = read_region(ball([0.5, 0.5], 1.0, "0", [0], [[0.0, 0.0], [1.0, 1.0]]), 2)
    assert (region.lower, region.upper) == ([0, 0.5], [1, 0.5])


def test_norm_0_stands_still_at_radius_0() -> None:
    assert read_region(ball([0.0], 0.0, "0", None, [[-1.0], [1.0]]), 1).moving == []


def test_reach_of_norm_0_takes_the_largest_moves() -> None:
    region = read_region(ball([0.0] * 3, 2.0, "0", None, [[-1.0, -3.0, 0.0], [2.0, 1.0, 1.0]]), 3)
    cell = region.cell(region.lower, region.upper, [0.0] * 3, [1.0] * 3)
    assert cell.reach([1, 1, 1]) == arb(13)


WRONG = {
    "x outside the domain": ball([0.0], 1.0, "inf", None, [[1.0], [2.0]]),
    "a feature that is none": ball([0.0], 1.0, "inf", [1]),
    "features that fall": ball([0.0, 0.0], 1.0, "inf", [1, 0]),
    "a feature twice": ball([0.0, 0.0], 1.0, "inf", [0, 0]),
    "a negative radius": ball([0.0], -1.0),
    "scale 0": ball([0.0], 1.0, "inf", None, None, [0.0]),
    "a norm that is none": ball([0.0], 1.0, "3"),
    "norm 0 without a domain": ball([0.0], 1.0, "0"),
    "norm 0 with an infinite domain": ball([0.0], 1.0, "0", None, [[-inf], [1.0]]),
    "norm 0 with half a feature": ball([0.0], 0.5, "0", None, [[-1.0], [1.0]]),
    "a domain upside down": ball([0.0], 1.0, "inf", None, [[inf], [-inf]]),
    "a domain with one side": ball([0.0], 1.0) | {"domain": [[(0.0).hex()]]},
    "a kind that is none": box([0.0], [1.0]) | {"kind": "cone"},
    "a box with a radius": box([0.0], [1.0]) | {"radius": (1.0).hex()},
    "an empty box": box([1.0], [0.0]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_region_that_is_none_is_refused(kind: str) -> None:
    with pytest.raises(Reject):
        read_region(WRONG[kind], len(WRONG[kind].get("x", [0])))

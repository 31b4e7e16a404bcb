"""What a bound that fails leaves of a box (Q3, Q4), in exact rationals; planes on it, in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from gpcert.bounds.geometry.domain import BoxDomain, BoxShape
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.interface import Certified
from gpcert.bounds.one.level import Left


def test_the_norm_of_a_remnant_is_that_of_a_knapsack():
    """One of ten features may leave its end, or two half-way: the norm is that of one."""
    domain, one = BoxDomain(np.zeros(10), np.ones(10)), np.ones(10)
    part = remnant(domain, -0.5, 0.5 * one)
    assert part.norm(one) == pytest.approx(1.0, rel=1e-12)
    assert BoxDomain.norm(part, one) == pytest.approx(np.sqrt(10.0), rel=1e-12)
    away = remnant(BoxDomain(-2.0 * one, one), -0.5, -one)  # far from 0, and near an end
    assert (away.low >= 0.5 - 1e-12).all()
    assert away.support(-np.eye(10)) == pytest.approx(-0.5 * one, rel=1e-12)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 0.0, 1.0])
def test_nothing_is_made_of_what_is_unknown_or_settled(value):
    domain, one = BoxDomain(-np.ones(2), np.ones(2)), np.ones(2)
    assert remnant(domain, value, one) is None
    assert remnant(domain, -1.0, np.array([1.0, np.nan])) is None
    assert remnant(domain, -1.0, None) is None


def test_a_part_that_is_no_shorter_box_still_counts_with_the_target():
    """A hyperplane may leave less than the box and shorten it nowhere: no surplus, and halves come next."""
    lower, upper, one = np.zeros(2), np.ones(2), np.ones(2)
    left, found = Left(lower, upper), Certified(0.9, lower, 0, False)
    assert left.proved(found, 0.6).value == 0.9
    left.shorten(lower.copy(), upper.copy())
    assert left.proved(found, 0.6).value == 0.6
    assert left.divided(found, BoxShape(lower, upper), one, 0.6).pieces is None


@pytest.mark.parametrize("width", [1.0, 1e-160, 1e-170, 1e-300])
def test_what_is_left_is_smaller_than_the_box_at_all_magnitudes(width):
    """The search would never end with a piece that is the box; a file of a proof knows halves alone."""
    lower, upper, one = np.zeros(2), np.full(2, width), np.ones(2)
    left, found = Left(lower, upper), Certified(0.5, lower, 0, False)
    left.shorten(lower, np.array([0.25 * width, 0.9 * width]))
    pieces = left.divided(found, BoxShape(lower, upper), one, 0.6).pieces
    assert pieces
    assert all((low >= lower).all() and (high <= left.upper).all() for low, high in pieces)
    assert left.divided(found, BoxShape(lower, upper, capped=False), one, 0.6).pieces is None
    left.shorten(lower, lower)
    assert left.divided(found, BoxShape(lower, upper), one, 0.6).pieces in (None, ((lower, lower),))

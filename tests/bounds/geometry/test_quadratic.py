"""The certified lower bound of a quadratic over a box, against exact values at vertices and minimisers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.geometry.box_quadratic import convexified, quadratic_lower_bound
from helpers.oracle import examples, is_psd, rational
from helpers.quadratics import exact, matrix, symmetric

KINDS = ("psd", "indefinite", "low rank", "negative", "diagonal", "badly scaled", "zero")


@st.composite
def problems(draw, kinds=KINDS, exponents=(0, 0, -12, 12, -100, 150)):
    """(g, H, low, high, rng): the box around 0 from a vertex, an edge, or inside; some widths tiny."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 12))
    H = matrix(rng, draw(st.sampled_from(kinds)), n) * 10.0 ** draw(st.sampled_from(exponents))
    size = np.abs(H).max() or 1.0
    g = rng.standard_normal(n) * size * draw(st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 1e3]))
    if draw(st.booleans()):
        g *= rng.random(n) < 0.5
    width = 10.0 ** rng.uniform(-4, 1, n) if draw(st.booleans()) else np.full(n, 10.0 ** rng.uniform(-6, 2))
    share = draw(st.sampled_from(["vertex", "mixed", "inside"]))
    t = {
        "vertex": rng.integers(0, 2, n),
        "mixed": rng.choice([0.0, 0.5, 1.0, 0.3], n),
        "inside": rng.random(n),
    }[share]
    return g, H, -width * t, width * (1.0 - t), rng


def descend(g, H, low, high, start):
    """Exact coordinate minimisation in floating point from `start`, a few sweeps."""
    x = start.copy()
    for _ in range(12):
        for j in range(len(x)):
            slope = g[j] + H[j] @ x - H[j, j] * x[j]
            ends = [low[j], high[j]]
            if H[j, j] > 0:
                ends.append(float(np.clip(-slope / H[j, j], low[j], high[j])))
            x[j] = min(ends, key=lambda t, j=j, slope=slope: slope * t + 0.5 * H[j, j] * t * t)
    return x


def low_points(g, H, low, high, rng, extra):
    """Points of the box with small values: the best of many, and what coordinate descent makes of them."""
    n = len(g)
    if n <= 7:
        vertices = np.array(list(itertools.product(*zip(low, high, strict=True))))
    else:
        vertices = np.where(rng.random((256, n)) < 0.5, low, high)
    inside = low + rng.random((128, n)) * (high - low)
    X = np.concatenate(
        [vertices, inside, np.where(rng.random((64, n)) < 0.5, inside[:64], 0.0), [extra, np.zeros(n)]]
    )
    values = X @ g + 0.5 * np.einsum("ij,jk,ik->i", X, H, X)
    best = X[np.argsort(values)[:3]]
    return [*best, *(descend(g, H, low, high, x) for x in best[:2])]


def bound(g, H, low, high, **options):
    with np.errstate(all="ignore"):  # as the search calls it: overflow may only weaken the bound
        return quadratic_lower_bound(g, H, low, high, **options)


@settings(max_examples=examples(150))
@given(problem=problems(kinds=("psd", "low rank", "zero"), exponents=(0, -6, 6)))
def test_convex_problems_are_solved(problem):
    g, H, low, high, rng = problem
    found = bound(g, H, low, high)
    width = high - low
    size = np.abs(g) @ width + width @ np.abs(H) @ width
    least = min(exact(g, H, x) for x in low_points(g, H, low, high, rng, found.point))
    assert float(Fraction(int(least.p), int(least.q))) - found.value <= 2e-5 * size


@settings(max_examples=examples(100))
@given(problem=problems(kinds=("psd", "indefinite", "negative"), exponents=(0, -6, 6)))
def test_a_strict_vertex_is_found_exactly(problem):
    """0 is a vertex and the gradient points into the box everywhere: minimum and bound are 0."""
    _, H, low, high, _ = problem
    width = high - low
    g = 1.01 * np.abs(H) @ width + 1e-3
    zero = np.zeros_like(width)
    assert bound(g, H, zero, width).value == 0.0
    assert bound(-g, H, -width, zero).value == 0.0
    assert (bound(g, H, zero, width).point == 0.0).all()


def test_slopes_are_sharp():
    """Linear, and linear beside a bowl: the slopes of Q3 are those of the function."""
    low, high = np.array([-1.0, -2.0]), np.array([3.0, 1.0])
    found = bound(np.array([0.5, -2.0]), np.zeros((2, 2)), low, high)
    assert found.slopes == pytest.approx([0.5, -2.0], rel=1e-12)
    found = bound(np.array([0.5, 0.1]), np.diag([0.0, 1.0]), low, high)
    assert found.slopes == pytest.approx([0.5, 0.0], abs=1e-4)


@pytest.mark.parametrize("g", [1e-307, 1e-318, 1e-320])
def test_underflow_in_the_substitution_is_counted(g):
    low, high = np.array([-1.5617e-4]), np.array([1.5617e-4])
    assert rational(bound(np.array([-g]), np.zeros((1, 1)), low, high).value) <= exact([-g], [[0.0]], high)


@pytest.mark.parametrize(
    ("g", "H", "width"),
    [
        (0.0, 1e300, 1e10),
        (0.0, -1e300, 1e10),
        (1e308, 1e308, 1e308),
        (np.nan, 1.0, 1.0),
        (1.0, np.inf, 1.0),
        (0.0, -1.0, 1e-200),
        (1e-300, -1e-300, 1e-100),
    ],
)
def test_overflow_and_nan_only_weaken(g, H, width):
    low, high = np.full(2, -width), np.full(2, width)
    found = bound(np.full(2, g), np.full((2, 2), H), low, high)
    assert found.value <= 0.0
    assert (np.clip(found.point, low, high) == found.point).all()


@settings(max_examples=examples(300))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 6),
    size=st.sampled_from([0, 4, 8, 12]),
    odd=st.booleans(),
)
def test_what_makes_a_matrix_convex_does_so_exactly(seed, n, size, odd):
    """H + diag(D') >= 0 in rational numbers, also where D' is large beside what H + D leaves."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    H = symmetric(A @ A.T * 10.0 ** rng.uniform(-9, 0))
    if odd:  # a row that is positive definite only by what verification adds
        H[0, 1:] = H[1:, 0] = 0.0
        H[0, 1] = H[1, 0] = 10.0 ** rng.uniform(-9, -7.5) * H[1, 1]
        H[0, 0] = 0.0
    large = np.zeros(n)
    large[0] = 2.0 ** rng.integers(0, 4) * 10.0**size
    H[0, 0] -= large[0]
    found = convexified(H, large, np.ones(n))
    if found is not None:
        assert is_psd(H, found)


def test_a_bump_below_the_last_digit_of_its_multiplier_counts():
    """H_00 + D_0 = 0 and H_01 = 1e-8: definite only with the bump, which 1e10 + 1e-14 would lose."""
    H = np.array([[-1e10, 1e-8], [1e-8, 1.0]])
    found = convexified(H, np.array([1e10, 0.0]), np.ones(2))
    assert found is not None
    assert is_psd(H, found)

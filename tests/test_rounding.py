"""One-sided functions against ball arithmetic, sums and definiteness against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.rounding import (
    UNIT,
    down,
    exp_down,
    exp_up,
    expm1_up,
    gamma,
    is_certainly_psd,
    normal_cdf_bounds,
    normal_cdf_down,
    normal_cdf_up,
    sqrt_down,
    sqrt_up,
    sum_up,
    tail_norm_up,
    up,
)
from helpers.oracle import bits, examples, is_psd

finite = st.floats(allow_nan=False, allow_infinity=False)


def sweep(low, high, count=400, seed=0):
    return np.concatenate(
        [np.linspace(low, high, count), np.random.default_rng(seed).uniform(low, high, count)]
    )


@given(x=finite)
def test_up_and_down_are_the_neighbours(x):
    assert down(x) < x < up(x)
    assert up(down(x)) == x or math.isinf(down(x))


@given(k=st.integers(0, 10**9))
def test_gamma_bounds_k_roundings(k):
    u = Fraction(UNIT)
    assert Fraction(gamma(k)) >= k * u / (1 - k * u)


def test_gamma_is_infinite_where_it_says_nothing():
    assert gamma(2**53) == math.inf


@given(
    st.lists(
        st.floats(0.0, 1e300) | st.sampled_from([5e-324, 2.0**-1022, 1.0, 1.0 + 2.0**-52, 2.0**-53]),
        max_size=300,
    )
)
def test_sum_up_is_never_below_the_exact_sum(terms):
    total = sum_up(np.array(terms))
    exact = sum(map(Fraction, terms), Fraction(0))
    assert math.isinf(total) or Fraction(total) >= exact
    assert total <= math.fsum(terms) * (1 + 1e-12) + 1e-290


def test_sum_up_where_every_rounding_goes_down():
    terms = np.full(2**16, 1.0 + 2.0**-52)
    terms[1::2] = 2.0**-53
    assert Fraction(sum_up(terms)) >= sum(map(Fraction, terms.tolist()), Fraction(0))


def test_exponentials_enclose():
    points = np.concatenate([sweep(-760.0, 709.5), sweep(-1.0, 1.0), [0.0, -0.0, 5e-324, -5e-324, 709.0]])
    for x in points.tolist():
        with bits(200):
            exact = arb(x).exp()
        assert arb(exp_down(x)) <= exact
        assert math.isinf(exp_up(x)) or exact <= arb(exp_up(x))
        if -650 < x <= 709:  # and not by much
            assert exp_up(x) - exp_down(x) <= 1e-14 * exp_up(x)


def test_exponentials_at_the_ends_of_the_line():
    for x in (709.9, 1e10, math.inf):
        assert exp_up(x) == expm1_up(x) == math.inf
    assert exp_up(-math.inf) >= 0.0 == exp_down(-math.inf)
    assert exp_down(math.inf) <= exp_up(math.inf)
    assert not exp_up(math.nan) >= 0


def test_expm1_is_an_upper_bound():
    for x in [*np.geomspace(1e-320, 709.0, 800).tolist(), 0.0]:
        with bits(200):
            exact = arb(x).expm1()
        assert exact <= arb(expm1_up(x))
        if x > 1e-280:
            assert expm1_up(x) <= float(exact) * (1 + 1e-14)


@given(x=st.floats(0.0, allow_infinity=False, allow_nan=False))
def test_square_roots_enclose(x):
    low, high = Fraction(sqrt_down(x)), Fraction(sqrt_up(x))
    assert 0 <= low * low <= Fraction(x) <= high * high


def test_square_roots_of_what_is_not_positive():
    assert sqrt_up(-1.0) == sqrt_down(-1.0) == 0.0
    assert math.isnan(sqrt_up(math.nan))
    assert math.isnan(sqrt_down(math.nan))


@pytest.mark.parametrize("order", range(6))
def test_tail_norm_is_an_upper_bound_and_close(order):
    points = np.concatenate([np.geomspace(1e-8, 26.0, 120), [21.9, 22.0, 22.5, 26.4]])
    for s in points.tolist():
        with bits(800):  # e^x less its first terms cancels
            x = arb(s) ** 2
            tail = (x.exp() - sum((x**p / math.factorial(p) for p in range(order)), arb(0))).sqrt()
        assert tail <= arb(tail_norm_up(order, s))
        assert tail_norm_up(order, s) <= float(tail) * (1 + 1e-9) + 1e-140


@pytest.mark.parametrize("s", [0.0, 1e-200, 5e-324])
def test_tail_norm_of_almost_nothing(s):
    assert tail_norm_up(0, s) >= 1.0
    assert 0.0 <= tail_norm_up(3, s) <= 1e-140


@pytest.mark.parametrize("s", [26.5, 100.0, math.inf, math.nan])
def test_tail_norm_gives_up_upward(s):
    assert tail_norm_up(2, s) == math.inf


def test_normal_cdf_encloses_from_one_tail_to_the_other():
    for x in np.concatenate([sweep(-45.0, 45.0), sweep(-9.0, 9.0), [0.0, 5e-324, -37.6, -38.5]]).tolist():
        with bits(2000):  # 1 - Phi(45) is about 2^-1460
            exact = (-arb(x) / arb(2).sqrt()).erfc() / 2
        low, high = normal_cdf_bounds(x)
        assert arb(low) <= exact <= arb(high)
        assert (low, high) == (normal_cdf_down(x), normal_cdf_up(x))
        assert 0.0 <= low <= high <= 1.0
        if x > -37:
            assert high - low <= 1e-12 * high
        with bits(10):  # whatever precision a user left behind
            assert normal_cdf_bounds(x)[0] <= high
            assert low <= normal_cdf_bounds(x)[1]


def test_normal_cdf_beyond_everything():
    assert normal_cdf_bounds(math.nan) == (0.0, 1.0)
    assert normal_cdf_bounds(-math.inf)[0] == 0.0
    assert normal_cdf_bounds(math.inf)[1] == 1.0
    assert normal_cdf_bounds(math.inf)[0] < 1.0


@st.composite
def almost_singular(draw):
    """Gram matrices of small integers, some rank-deficient, badly scaled, shifted by about their rounding."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 9))
    B = rng.integers(-3, 4, size=(n, draw(st.integers(1, 10)))).astype(float)
    scale = np.exp2(rng.integers(-draw(st.sampled_from([0, 20, 200])), 1, size=n))
    A = (B @ B.T) * np.outer(scale, scale)
    shift = draw(st.sampled_from([0.0, -1e-15, 1e-15, -1e-13, 1e-13, -1e-8, 1e-8, -1.0, 1.0]))
    A[np.diag_indices(n)] += shift * (np.trace(A) if draw(st.booleans()) else np.diagonal(A))
    return A


@settings(max_examples=examples(300))
@given(A=almost_singular())
def test_never_certain_of_a_matrix_that_is_not_psd(A):
    assert is_psd(A) or not is_certainly_psd(A)


@pytest.mark.parametrize("n", [2, 5, 40, 150])
def test_one_slightly_negative_eigenvalue_is_never_certain(n):
    """ones(n, n) has the eigenvalue 0 n - 1 times: less 1e-15 of the trace, it is indefinite."""
    A = np.ones((n, n)) - 1e-15 * n * np.eye(n)
    v = np.zeros(n)
    v[:2] = 1.0, -1.0
    assert sum(Fraction(a) * Fraction(x) * Fraction(y) for a, x, y in quadratic(A, v)) < 0
    assert not is_certainly_psd(A)
    assert not is_certainly_psd(np.ones((n, n)))


def quadratic(A, v):
    return [(A[i, j], v[i], v[j]) for i in np.flatnonzero(v) for j in np.flatnonzero(v)]


@pytest.mark.parametrize("n", [60, 100, 300, 1000])
def test_roundings_that_all_go_one_way_are_counted(n):
    """[[I, c], [c^T, a]], a just below |c|^2: a plain Cholesky loses small squares beside the large one."""
    c = np.full(n - 1, math.sqrt(0.45 * UNIT))
    c[0] = 1.0
    square = sum((Fraction(v) ** 2 for v in c.tolist()), Fraction(0))
    a = float(square)
    a = a if Fraction(a) < square else down(a)
    A = np.eye(n)
    A[-1, :-1] = A[:-1, -1] = c
    A[-1, -1] = a
    assert not is_certainly_psd(A)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 300])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_certain_of_comfortably_definite_matrices(n, scale):
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n, n + 5))
    assert is_certainly_psd((B @ B.T + 0.1 * n * np.eye(n)) * scale)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_certain_of_what_is_not_finite(bad):
    for where in ((0, 0), (2, 0)):
        A = 4.0 * np.eye(3)
        A[where] = A[where[::-1]] = bad
        assert not is_certainly_psd(A)


@pytest.mark.parametrize("n", [3, 10, 100, 300])
def test_overflow_inside_the_factorisation_is_not_certain(n):
    """The minor of the first and last rows is negative; the factor overflows and its pivots become NaN."""
    A = np.eye(n)
    A[0, 0] = 0.5
    A[0, -1] = A[-1, 0] = 1.7e308
    assert not is_certainly_psd(A)

"""The vocabulary of rounding: what is assumed of the machine, and functions whose side is proved.

Every certified number of gpcert rests on these statements of docs/maths/bounds.md and docs/maths/regions.md:

* R1  sums and matrix products: |fl(AB) - AB| <= gamma(n) |A||B| in any order of summation, FMA included;
* R2  one-sided elementary functions: the library value moved outward by more than its error;
* R3  the normal distribution function, enclosed in ball arithmetic (python-flint);
* R4  verified positive semidefiniteness by one Cholesky factorisation (Rump 2006);
* R6  powers of non-negative numbers, and norms made of them;
* R7  underflow: TINY covers one sum, UNDERFLOW all of an expansion whose numbers are at most LARGEST.

Names say which side a number lies on: `..._up` is never below the exact value, `..._down` never above it.
Overflow gives an infinity on the safe side, and NaN is never certain: callers accept only `value >= bound`.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb
from scipy.linalg import lapack

from gpcert.clock import check
from gpcert.validation import Float

#: Unit roundoff of float64, rounding to nearest.
UNIT = 2.0**-53
#: Larger than any absolute error that gradual underflow can cause in one operation, times 2**70.
TINY = 2.0**-1000
#: R7: numbers that expansions may be made of are at most this, and variances at least its reciprocal ...
LARGEST = 2.0**100
#: ... then this exceeds all that underflow, at any place and through any later factor, can do to a bound.
UNDERFLOW = 2.0**-400
#: Assumed error of the library's exp, expm1, log: `LIBRARY_ULPS` ulps (glibc and numpy document at most 4).
LIBRARY_ULPS = 8
#: R6: assumed relative error of a power with a positive base.
POWER = 64 * UNIT


def gamma(operations: int) -> float:
    """R1: an upper bound of k u / (1 - k u), with a spare unit so that its own rounding does not matter."""
    k = (operations + 2) * UNIT
    return k / (1.0 - k) if k < 0.5 else math.inf


def up(x: float) -> float:
    """The next double above x."""
    return math.nextafter(x, math.inf)


def down(x: float) -> float:
    """The next double below x."""
    return math.nextafter(x, -math.inf)


def sum_up(terms: Float) -> float:
    """An upper bound of the exact sum of non-negative terms (R1)."""
    return float(np.sum(terms)) * (1.0 + 2.0 * gamma(terms.size)) + TINY


def norm_up(rows: Float, exponent: float) -> Float:
    """R6: at least the norms of the rows (n, d) with exponent >= 1, inf included: (n,).

    Powers are those of shares of the largest entry, so that no exponent underflows or overflows: the sum lies
    between 1 and d.
    """
    size = np.abs(rows)
    top = size.max(axis=-1, initial=0.0)
    if exponent == np.inf:
        return np.asarray(top)
    if exponent == 1.0:
        total = size.sum(axis=-1)
    elif exponent == 2.0:
        total = np.sqrt(np.einsum("...j,...j->...", size, size))
        total = np.where((top > 1e-150) & (top < 1e150), total, top * np.sqrt(rows.shape[-1]))
    else:
        unit = np.where(top > 0, top, 1.0)
        shares = size / unit[..., None]
        total = unit * (shares**exponent).sum(axis=-1) ** (1.0 / exponent)
    return np.asarray(total * (1.0 + 2.0 * gamma(rows.shape[-1] + 400)) + TINY)


def exp_up(x: float) -> float:
    """R2: an upper bound of e^x; inf where it overflows."""
    if x > 709.0:
        return math.inf
    return math.exp(x) * (1.0 + 2 * LIBRARY_ULPS * UNIT) + TINY


def exp_down(x: float) -> float:
    """R2: a lower bound of e^x, never negative."""
    return max(0.0, math.exp(min(x, 709.0)) * (1.0 - 2 * LIBRARY_ULPS * UNIT) - TINY)


def expm1_up(x: float) -> float:
    """R2: an upper bound of e^x - 1 for x >= 0; inf where it overflows."""
    if x > 709.0:
        return math.inf
    return math.expm1(x) * (1.0 + 2 * LIBRARY_ULPS * UNIT) + TINY


def sqrt_up(x: float) -> float:
    """An upper bound of the square root of max(0, x)."""
    return up(math.sqrt(x)) if x > 0.0 else (0.0 if x <= 0.0 else math.nan)


def sqrt_down(x: float) -> float:
    """A lower bound of the square root of max(0, x)."""
    return max(0.0, down(math.sqrt(x))) if x > 0.0 else (0.0 if x <= 0.0 else math.nan)


def tail_norm_up(order: int, s: float) -> float:
    """R5: an upper bound of tp(m, s) = sqrt(sum_{p >= m} s^(2p) / p!), by a geometric majorant of the
    tail.
    """
    x = s * s * (1.0 + 4 * UNIT)
    if not x < 700.0:
        return math.inf
    term = 1.0
    for p in range(1, order + 1):
        term *= x / p
    total, p = 0.0, order
    while True:
        total += term
        p += 1
        ratio = x / p
        term *= ratio
        # Beyond here every ratio is at most `ratio`, so the rest is at most term / (1 - ratio).
        if ratio < 0.5 and term < 1e-18 * total:
            total += 2.0 * term
            break
        if term == 0.0:
            break
    return sqrt_up(total * (1.0 + 2.0 * gamma(4 * (p + 4))) + TINY)


def _normal_cdf(x: float) -> arb:
    """Phi(x) = erfc(-x / sqrt 2) / 2 as a ball."""
    return (-arb(x) / arb(2).sqrt()).erfc() / 2


def normal_cdf_bounds(x: float) -> tuple[float, float]:
    """R3: doubles (lower, upper) with lower <= Phi(x) <= upper; (0, 1) for NaN."""
    if math.isnan(x):
        return 0.0, 1.0
    if x <= -40.0:
        return 0.0, 2.0**-1000  # Phi(-40) < 1e-349
    if x >= 40.0:
        return down(1.0), 1.0
    ball = _normal_cdf(
        x
    )  # a true enclosure at any precision of the context (53 bits unless a user changed it)
    lower, upper = float(ball.lower()), float(ball.upper())
    # float() rounds the ball's ends to nearest: one ulp outward makes them certain.
    return max(0.0, down(lower)), min(1.0, up(upper))


def normal_cdf_down(x: float) -> float:
    """R3: a lower bound of Phi(x)."""
    return normal_cdf_bounds(x)[0]


def normal_cdf_up(x: float) -> float:
    """R3: an upper bound of Phi(x)."""
    return normal_cdf_bounds(x)[1]


def symmetric(A: Float) -> Float:
    """Products round differently on the two sides of the diagonal; what is verified must be what is used."""
    return np.asarray(0.5 * (A + A.T))


def is_certainly_psd(matrix: Float) -> bool:
    """R4: True only if the stored symmetric matrix (n, n) is positive semidefinite, proved by one Cholesky.

    If the factorisation of A - c I runs to completion, c >= gamma(n + 1) tr(A) / (1 - gamma(n + 1)), its
    backward error is smaller than c in norm, so A is positive definite (Rump, BIT 46, 2006).
    """
    check()  # a factorisation may take long
    n = matrix.shape[0]
    diagonal = np.diagonal(matrix)
    largest = max(matrix.max(initial=0.0), -matrix.min(initial=0.0))  # NaN if there is one
    if (
        not (diagonal >= 0).all() or not largest <= diagonal.max(initial=0.0) < np.inf
    ):  # |a_ij|^2 <= a_ii a_jj
        return False
    g = gamma(n + 3)
    shift = 2.0 * g / (1.0 - g) * float(diagonal.sum()) + n * TINY
    shifted = np.array(matrix.T, order="F")  # symmetric: the transpose is copied in one piece
    # Rounding the shifted diagonal to nearest costs one ulp more: take it off explicitly.
    shifted[np.diag_indices(n)] = np.nextafter(diagonal - shift, -np.inf)
    factor, info = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
    # An overflow inside can turn pivots into NaN, which LAPACK takes for positive.
    return bool(info == 0 and np.isfinite(np.diagonal(factor)).all())

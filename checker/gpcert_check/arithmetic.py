"""Balls (Arb, through python-flint): sums, the normal law, and the quadratic programme of V5.

A ball encloses the exact result of every operation; a comparison is True only if it holds for all members.
Floats occur as exact inputs (a double is a rational number) and in `cholesky`, whose result is a guess that
is then verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

from flint import arb, arb_mat, ctx, fmpq, fmpz

from gpcert_check.reading import Reject, need

ctx.prec = 100  # any precision is sound; this one leaves 47 bits of room beyond a double

Sides = Sequence[tuple[arb, arb]]  # of a box
_SHIFTS = 16  # how often a guess is tried again with ten times the shift


def ball(value: Fraction) -> arb:
    """A rational number."""
    return arb(fmpq(value.numerator, value.denominator))


def dot(xs: Iterable[Any], ys: Iterable[Any]) -> arb:
    """The sum of products."""
    return sum(map(mul, xs, ys), arb(0))


def product(matrix: arb_mat, columns: Sequence[list[Any]]) -> list[list[arb]]:
    """The matrix, symmetric, times every column, in one product."""
    return (arb_mat(columns) * matrix).tolist() if columns else []


def largest(xs: Iterable[arb]) -> arb:
    """An exact number >= 0 and >= every member."""
    best = arb(0)
    for x in xs:
        need(x.is_finite(), "a number is not finite")
        best = best.max(x.upper())
    return best


def norm(A: arb_mat) -> arb:
    """At least every row sum of |A|."""
    return largest(sum(map(abs, row), arb(0)) for row in A.tolist())


def integers(A: arb_mat, bits: int) -> tuple[list[fmpz], int]:
    """Integers within 2.01 of 2^b A, row by row, and b <= bits: floors of midpoints of radii up to 1.01."""
    n = A.nrows()
    wide = arb_mat(n, 1, [1] * n) * arb_mat(1, n, [arb(0, 1)] * n)
    while not wide.contains((scaled := A * arb(2) ** bits) - scaled.mid()):
        bits -= 8
        need(bits > 1, "a matrix is known too badly to be rounded to integers")
    return [x.floor().fmpz() for x in scaled.mid().entries()], bits


def normal(x: arb) -> arb:
    """The distribution function of the standard normal law."""
    return (-x / arb(2).sqrt()).erfc() / 2


def cholesky(A: Sequence[Sequence[float]]) -> list[list[float]] | None:
    """A guess of the Cholesky factor in floats: rows of the lower triangle; None if it breaks down."""
    L: list[list[float]] = []
    for i, row in enumerate(A):
        new: list[float] = []
        for a, done in zip(row, L, strict=False):
            new.append((a - sum(map(mul, new, done))) / done[-1])
        pivot = row[i] - sum(map(mul, new, new))
        if not 0 < pivot < float("inf"):
            return None
        L.append([*new, pivot**0.5])
    return L


def indefiniteness(A: arb_mat, what: str) -> arb:
    """A number e >= 0 with A + e I positive semidefinite, A symmetric (V5).

    A = L L^T + E for any L at all, and E + e I is semidefinite where e is at least every row sum of |E|.
    """
    d = A.nrows()
    guess = [[float(x.mid()) for x in row] for row in A.tolist()]
    shift = 1e-14 * sum(abs(guess[i][i]) for i in range(d)) + 1e-300
    for _ in range(_SHIFTS):
        L = cholesky([[*row[:i], row[i] + shift] for i, row in enumerate(guess)])
        if L is not None:
            factor = arb_mat([row + [0.0] * (d - len(row)) for row in L])
            return norm(A - factor * factor.transpose())
        shift *= 10
    raise Reject(f"V5: {what} is not positive semidefinite")


def quadratic(
    g: Sequence[arb], H: arb_mat, box: Sides, D: Sequence[float], y: Sequence[float], least: Any = None
) -> arb:
    """V5: a lower bound of g.d + d^T H d/2 over the box, for any D >= 0 and any y.

    `least(j, G)`: a lower bound of the linear function G d_j on coordinate j, by default its smallest value
    at the two ends; a ball has other ones (V7).
    """
    d = len(g)
    need(all(x >= 0 for x in D), "V5: a multiplier is negative")
    A = arb_mat(H.tolist())
    for j in range(d):
        A[j, j] += D[j]
    e = indefiniteness(A, "H + diag(D)")
    Ay = (A * arb_mat(d, 1, list(y))).entries()
    total = arb(0)
    for j, (low, high) in enumerate(box):
        multiplier, slope = D[j] + e, Ay[j] + e * y[j]
        G = g[j] - multiplier * (low + high) / 2 + slope
        total += (multiplier * low * high - slope * y[j]) / 2
        total += (G * low).min(G * high) if least is None else least(j, G)
    return total

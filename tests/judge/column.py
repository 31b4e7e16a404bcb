"""Kernel vectors k(centres, x) where x is a point, or an interval along one coordinate.

Over an interval x_i + t, |t| <= r, every kernel value is a Taylor polynomial about the middle plus a
remainder: the coefficient of the last order, enclosed over the whole interval (Lagrange), times t^order.
Bilinear forms of such vectors cancel as they do at a point, which the forms of intervals would not.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, arb_mat, arb_series

from gpcert.kernels import Kernel
from judge.kernels import covariance

_ORDER = 6  # of the remainder


class Column:
    """k(centres, x): `values` (n, 1), and, over an interval, `terms` (n, order + 1), the remainder last.

    The terms are those in t / r, so that they are summed with powers of [-1, 1].
    """

    def __init__(self, kernel: Kernel, centres: Sequence[Sequence[arb]], point: Sequence[arb]) -> None:
        rows = [[c - p for c, p in zip(centre, point, strict=True)] for centre in centres]
        values = [covariance(kernel, row) for row in rows]
        self.values = arb_mat(len(rows), 1, values)
        wide = [i for i, v in enumerate(point) if v != 0 and v.rel_accuracy_bits() < 50 and v.rad() > 0]
        self.terms: arb_mat | None = None
        if len(wide) == 1:
            terms = [_expansion(kernel, row, wide[0], value) for row, value in zip(rows, values, strict=True)]
            self.terms = arb_mat(len(rows), _ORDER + 1, [v for row in terms for v in row])


def product(left: arb_mat, column: Column) -> arb:
    """left (1, n) times the column."""
    value = (left * column.values)[0, 0]
    if column.terms is None:
        return value
    return _common(value, _sum((left * column.terms).tolist()[0]))


def form(left: Column, matrix: arb_mat, right: Column) -> arb:
    """left^T matrix right."""
    value = (left.values.transpose() * (matrix * right.values))[0, 0]
    if left.terms is None or right.terms is None:
        return value
    rows = (left.terms.transpose() * (matrix * right.terms)).tolist()
    orders = [arb(0)] * (2 * _ORDER - 1)
    rest = rows[-1][-1]
    for k in range(_ORDER):
        for l in range(_ORDER):
            orders[k + l] += rows[k][l]
    rest += sum((_unit(k) * (rows[k][-1] + rows[-1][k]) for k in range(_ORDER)), arb(0))
    return _common(value, _sum([*orders, rest]))


def _expansion(kernel: Kernel, difference: list[arb], i: int, value: arb) -> list[arb]:
    """Terms of orders 0, ..., order - 1 and the remainder, of k along coordinate i of the difference."""
    middle, radius = difference[i].mid(), difference[i].rad()
    centre = [arb(middle) if j == i else v for j, v in enumerate(difference)]
    try:
        narrow, whole = (
            covariance(
                kernel,
                [arb_series([start, radius], prec=_ORDER + 1) if j == i else v for j, v in enumerate(centre)],
            ).coeffs()
            for start in (arb(middle), difference[i])
        )
    except (ValueError, ZeroDivisionError):  # a root at 0
        narrow, whole = [], []
    narrow, whole = (list(c) + [arb(0)] * (_ORDER + 1 - len(c)) for c in (narrow, whole))
    terms = [*narrow[:_ORDER], whole[_ORDER] * _unit(_ORDER)]
    constant = covariance(kernel, centre)
    if not any(terms) or not all(v.is_finite() for v in terms):
        return [constant, *[arb(0)] * (_ORDER - 1), value - constant]
    return terms


def _unit(k: int) -> arb:
    """The range of t^k over [-1, 1]."""
    return arb(1) if k == 0 else arb(0.5, 0.5) if k % 2 == 0 else arb(0, 1)


def _sum(terms: Sequence[arb]) -> arb:
    """The terms of a polynomial over [-1, 1], the remainder last."""
    return sum((_unit(k) * v for k, v in enumerate(terms[:-1])), arb(0)) + terms[-1]


def _common(a: arb, b: arb) -> arb:
    """Two enclosures of one number or range as one."""
    if not (a.is_finite() and b.is_finite()):
        return b if b.is_finite() else a
    return a.intersection(b)

"""Two strengths that a leaf may ask for: higher orders as forms (V2), and the envelope of the mean (V8)."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import ball, dot, largest
from gpcert_check.reading import fields, integer, need, real, reals
from gpcert_check.regions import Cell, Ends

_MOST_FORMS, _MOST_NORMS = 4, 4
_SMALL = 24  # features up to which the cubic form is made from its tensor


def expanded(H: arb_mat, cell: Cell, v: Sequence[list[arb]], bk: list[arb], hint: Any) -> tuple[int, arb_mat]:
    """V2 (b), (c): orders from three on as forms; the first order that is left, and what H becomes."""
    if hint is None:
        return 3, H
    metric_, thetas_, norms_ = fields(hint, "metric thetas norms")
    d, n = H.nrows(), len(bk)
    metric = [arb(x) for x in reals(metric_, d)]
    few = isinstance(thetas_, list) and len(thetas_) <= _MOST_FORMS
    need(few, f"at most {_MOST_FORMS} orders may be forms")
    thetas, norms = [arb(real(x)) for x in thetas_], integer(norms_, 0, _MOST_NORMS)
    need(all(x > 0 for x in metric) and all(x > 0 for x in thetas), "V2: metric and thetas must be positive")
    span = cell.reach(metric).sqrt()
    roots = [x.sqrt() for x in metric]
    U = [[a / root for a, root in zip(row, roots, strict=True)] for row in v]
    power = _Powers(U)
    H, order = arb_mat(H.tolist()), 3
    for theta in thetas:
        Z = arb_mat(n, d, [w * a / factorial(order) for w, row in zip(bk, v, strict=True) for a in row])
        H = H - power.form(Z, order - 1) * (span ** (order - 2) / theta)
        _less(H, span ** (order - 2) * theta, metric)
        order += 1
    for _ in range(norms):
        square = power.form(arb_mat(n, 1, bk), order)[0, 0].nonnegative_part()
        _less(H, 2 * span ** (order - 2) * square.sqrt() / factorial(order), metric)
        order += 1
    return order, H


class _Powers:
    """Schur powers of the Gram matrix U U^T; the last one is kept."""

    def __init__(self, U: list[list[arb]]) -> None:
        self.U, self.exponent = U, 0
        self.first: list[arb] = []
        self.last: list[arb] = []

    def form(self, Z: arb_mat, exponent: int) -> arb_mat:
        """Z^T (U U^T)^(Schur power) Z."""
        d = len(self.U[0])
        if exponent == 2 and d <= _SMALL:  # T T^T with T = Z^T (u x u)
            T = Z.transpose() * arb_mat(len(self.U), d * d, [a * b for u in self.U for a in u for b in u])
            return T * T.transpose()
        if not self.first:
            U = arb_mat(self.U)
            self.first = (U * U.transpose()).entries()
            self.last, self.exponent = self.first, 1
        while self.exponent < exponent:
            self.last = [a * b for a, b in zip(self.last, self.first, strict=True)]
            self.exponent += 1
        n = len(self.U)
        return Z.transpose() * (arb_mat(n, n, self.last) * Z)


def _less(H: arb_mat, amount: arb, metric: list[arb]) -> None:
    for j, weight in enumerate(metric):
        H[j, j] -= amount * weight


def higher(point: Any, bk: list[arb], norm: arb) -> tuple[arb_mat, arb]:
    """V2: H and rest with the orders from two on at least d^T (H - rest I) d/2; `norm`: of all orders."""
    known = point.f0**2 + dot(point.f1, point.f1) + dot(point.f2.entries(), point.f2.entries()) / 2
    order, H = expanded(point.f2, point.cell, point.v, bk, point.leaf.get("forms"))
    return H, 2 * largest([(norm - known) * tail(order, point.x)]).sqrt() / point.x


def tail(m: int, x: arb) -> arb:
    """At least e^x less its terms below order m, x >= 0 (V2); where that cancels, x^m/m! e^x."""
    term, rest = arb(1), x.exp()
    for q in range(m):
        rest -= term
        term = term * x / (q + 1)
    return (term * x.exp()).min(largest([rest]))


def envelope(view: Any, lower: Ends, upper: Ends) -> arb:
    """V8: at most the mean anywhere in the box: every kernel between its values far and near."""
    ends = [(ball(a) / s, ball(b) / s) for a, b, s in zip(lower, upper, view.scale, strict=True)]
    total = arb(view.m0)
    for i, (a, row) in enumerate(zip(view.alpha, view.Z, strict=True)):
        gaps = [(low - z, z - high) for (low, high), z in zip(ends, row, strict=True)]
        steps = [p.min(q) if a > 0 else p.max(q).nonnegative_part() for p, q in gaps]
        total += a * view.kernel(i, dot(steps, steps))
    return total

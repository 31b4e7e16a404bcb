"""Two strengths that a leaf may ask for: higher orders as forms (V2), second-order planes (V7)."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot
from gpcert_check.model import Latent
from gpcert_check.planes import Bow
from gpcert_check.reading import fields, integer, need, real, reals
from gpcert_check.regions import Cell

__all__ = ["bowed", "expanded"]

_MOST_FORMS, _MOST_NORMS = 4, 4
_SMALL = 24  # features up to which the cubic form is made from its tensor


def expanded(H: arb_mat, cell: Cell, v: Sequence[list[arb]], bk: list[arb], hint: Any) -> tuple[int, arb_mat]:
    """V2 (b), (c): orders from three on as forms; the first order that is left, and what H becomes."""
    if hint is None:
        return 3, H
    metric_, thetas_, norms_ = fields(hint, "metric thetas norms")
    d, n = H.nrows(), len(bk)
    metric = [arb(x) for x in reals(metric_, d)]
    need(
        isinstance(thetas_, list) and len(thetas_) <= _MOST_FORMS,
        f"at most {_MOST_FORMS} orders may be forms",
    )
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


def bowed(
    H: arb_mat, bow: Bow, latent: Latent, x: arb, v: Sequence[list[arb]], k: list[arb], r: list[arb]
) -> arb_mat:
    """V7: the second order of a plane: what the posterior distance to the reference adds or costs."""
    d, theta = H.nrows(), bow.theta
    prior = latent.s2 + latent.lift
    most = prior + latent.negative * latent.s2
    step = (2 * most * (1 - (-x / 2).exp())).sqrt()
    kv = arb_mat(len(k), d, [a * b for a, row in zip(k, v, strict=True) for b in row])
    J = kv.transpose() * (latent.R * kv)
    q1 = [dot(r, column) for column in kv.transpose().tolist()]
    Q = J * arb(-1) - arb_mat(d, d, [a * b / bow.root**2 for a in q1 for b in q1])
    for j in range(d):
        Q[j, j] += prior
    if bow.rises:
        least = bow.root - step
        need(least > 0, "V7: the leaf is too large for a rising plane of second order")
        weight, near, far = -(x / 2).exp() * bow.steep / least, 1 + theta, 1 + 1 / theta
    else:
        weight, near, far = bow.steep / (bow.root + step), 1 - theta, 1 - 1 / theta
    H = H + Q * (weight * near)
    for j in range(d):
        H[j, j] += weight * far * 3 * most * x / 4
    return H

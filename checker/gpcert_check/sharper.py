"""Strengths that a leaf may ask for: higher orders as forms (V2), the envelope of the mean (V8), and that of
the variance (V8').
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from math import factorial
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import ball, dot, largest, product
from gpcert_check.reading import fields, need, real, reals
from gpcert_check.regions import Cell, Ends
from gpcert_check.work import spend

_MOST_FORMS = 4
_SMALL = 24  # features up to which the cubic form is made from its tensor


class Forms:
    """How a leaf bounds its orders from three on (V2): one form for each theta, and the norm of the rest, in
    the metric if it is its `own`, else in the plain one.
    """

    def __init__(self, hint: Any, d: int) -> None:
        plain: tuple[Any, Any, Any] = ([(1.0).hex()] * d, [], False)
        metric, thetas, own = plain if hint is None else fields(hint, "metric thetas own")
        need(isinstance(thetas, list) and len(thetas) <= _MOST_FORMS, "V2: at most 4 orders may be forms")
        need(isinstance(own, bool), "V2: own must be true or false")
        self.own, self.order = own, 3
        self.metric, self.thetas = reals(metric, d), [arb(real(x)) for x in thetas]
        positive = all(x > 0 for x in self.metric) and all(x > 0 for x in self.thetas)
        need(positive, "V2: metric and thetas must be positive")
        self.square = arb(0)  # of the norm of the orders that are forms, in the metric

    @property
    def key(self) -> tuple[float, ...]:
        """Of the Gram matrix of the norm."""
        return tuple(self.metric) if self.own else ()

    def subtract(self, H: arb_mat, cell: Cell, v: Sequence[list[arb]], bk: list[arb]) -> arb_mat:
        """V2 (b): what H becomes."""
        d, n, H = H.nrows(), len(bk), arb_mat(H.tolist())
        if not self.thetas:
            return H
        span = cell.reach(self.metric).sqrt()
        roots = [arb(x).sqrt() for x in self.metric]
        power = _Powers([[a / root for a, root in zip(row, roots, strict=True)] for row in v])
        for theta in self.thetas:
            share, reach = arb(1) / factorial(self.order), span ** (self.order - 2)
            Z = arb_mat(n, d, [w * a for w, row in zip([share * w for w in bk], v, strict=True) for a in row])
            N = power.form(Z, self.order - 1)
            H = H - N * (reach / theta)
            _less(H, reach * theta, self.metric)
            self.square += sum((N[j, j] / m for j, m in enumerate(self.metric)), arb(0)) / share
            self.order += 1
        return H

    def rest(self, point: Any, norm: arb) -> arb:
        """V2 (a): all other orders are at most this times |L d|^2; `norm`: the square of that of all."""
        weights = [1 / arb(m if self.own else 1) for m in self.metric]
        rows = [dot([x * x for x in row], weights) for row in point.f2.tolist()]
        known = point.f0 * point.f0 + dot([x * x for x in point.f1], weights) + dot(rows, weights) / 2
        known += self.square if self.own else 0
        reach: arb = point.cell.reach(self.metric) if self.own else point.x
        return largest([(norm - known) * tail(self.order, reach)]).sqrt() / reach


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


def _less(H: arb_mat, amount: arb, metric: list[float]) -> None:
    for j, weight in enumerate(metric):
        H[j, j] -= amount * weight


def higher(view: Any, points: Sequence[Any]) -> None:
    """V2: H and rest with the orders from two on at least d^T (H - rest I) d/2."""
    groups: dict[tuple[float, ...], list[Any]] = {}
    for point in points:
        point.forms = Forms(point.leaf.get("forms"), len(view.moving))
        groups.setdefault(point.forms.key, []).append(point)
    for metric, group in groups.items():
        y = [_smoothed(view, point, metric) for point in group]
        smooth = product(view.latent.gram(view.moving, metric), y)
        for point, left, right in zip(group, y, smooth, strict=True):
            point.H = point.forms.subtract(point.f2, point.cell, point.v, point.bk)
            point.rest = 2 * point.forms.rest(point, dot(left, right))
            if metric:
                _less(point.H, point.rest, point.forms.metric)
                point.rest = arb(0)


def _smoothed(view: Any, point: Any, metric: tuple[float, ...]) -> list[arb]:
    """b_i k_i e^{|L^-1 v_i|^2/2}."""
    if not metric:
        return [a * b for a, b in zip(view.amplitude, point.b, strict=True)]
    halves = [1 / (2 * arb(m)) for m in metric]
    squares = (dot([a * a for a in v], halves) for v in point.v)
    return [w * x.exp() for w, x in zip(point.bk, squares, strict=True)]


def extra(n: int, d: int, parts: Sequence[dict[str, Any]]) -> int:
    """The work of powers of Gram matrices, counted as that of a leaf is."""
    hints = [leaf.get("forms") for leaf in parts]
    large = [hint for hint in hints if isinstance(hint, dict) and (d > _SMALL or hint.get("own"))]
    return len(large) * (n * n * (d + 100) // 100)


def tail(m: int, x: arb) -> arb:
    """At least e^x less its terms below order m, x >= 0 (V2); where that cancels, x^m/m! e^x."""
    term, rest = arb(1), x.exp()
    for q in range(m):
        rest -= term
        term = term * x / (q + 1)
    return (term * x.exp()).min(largest([rest]))


def envelope(view: Any, lower: Ends, upper: Ends) -> arb:
    """V8: at most the mean anywhere in the box: every kernel between its values far and near."""
    total = arb(view.m0)
    for i, (a, gaps) in enumerate(zip(view.alpha, _gaps(view, lower, upper), strict=True)):
        total += a * (_far(view, i, gaps) if a > 0 else _near(view, i, gaps))
    return total


def narrowed(view: Any, lower: Ends, upper: Ends, leaf: dict[str, Any]) -> Any:
    """V8': the latent with the ends of max(S, 0) that its kernels leave on the box, if a leaf asks for it."""
    latent = view.latent
    if "spread" not in leaf:
        return latent
    need(leaf["spread"] is True, "V8': spread must be true")
    spend(latent.n * (latent.n // 10 + 2 * len(lower)))
    gaps = enumerate(_gaps(view, lower, upper))
    k = [_far(view, i, each).union(_near(view, i, each)) for i, each in gaps]
    m = [x.mid() for x in k]
    e = [x - y for x, y in zip(k, m, strict=True)]
    r, s = product(latent.R, [m, e])
    S = latent.s2 - dot(m, r) - 2 * dot(e, r) - dot(e, s)
    latent = copy(latent)
    latent.bottom, latent.top = S.lower().nonnegative_part(), latent.top.min(S.upper().nonnegative_part())
    return latent


def _gaps(view: Any, lower: Ends, upper: Ends) -> Iterator[list[tuple[arb, arb]]]:
    """For each centre, feature by feature, how far it lies below and above the box, in lengthscales."""
    ends = [(ball(a) / s, ball(b) / s) for a, b, s in zip(lower, upper, view.scale, strict=True)]
    for row in view.Z:
        yield [(low - z, z - high) for (low, high), z in zip(ends, row, strict=True)]


def _far(view: Any, i: int, gaps: Sequence[tuple[arb, arb]]) -> arb:
    """The smallest k_i on the box."""
    steps = [p.min(q) for p, q in gaps]
    smallest: arb = view.kernel(i, dot(steps, steps))
    return smallest


def _near(view: Any, i: int, gaps: Sequence[tuple[arb, arb]]) -> arb:
    """The largest k_i on the box."""
    steps = [p.max(q).nonnegative_part() for p, q in gaps]
    largest_: arb = view.kernel(i, dot(steps, steps))
    return largest_

"""Orders three and four of Gaussian sums as forms, and what lies beyond (docs/maths/batches.md, J27).

    forms = Forms(Sums(at, boxes, plane))            # once per reference: no form depends on the boxes
    base, g, H, excess = forms.minorant(aim, sharp)  # e^r f >= base + g.d + d^T H d / 2 - excess on the boxes
    forms.on(others).minorant(aim, sharp)            # of remnants: boxes need not hold the reference
    forms.minorant(aim, True, squares, joined)       # raised by the squares that the planes leave out

`aim` (N, d): displacements where the minimum is expected; any is sound. `sharp`: with forms, else all orders
from three on by one norm (J5). H is symmetric to the last bit; `excess` has all that is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.engine.backend import Array
from gpcert.engine.boxes import Boxes
from gpcert.engine.facts import Facts
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.squares import Squares, packed_shares, packed_sums
from gpcert.engine.sums import Sums
from gpcert.rounding import UNDERFLOW, UNIT, gamma

#: Features up to which order three is a tensor, n d^3 products, if these are few; to which it is alone.
_TENSOR, _ALONE, _FEW_PRODUCTS = 24, 12, 4e7
#: Products of all pairs of centres beyond which order four is left to norms where order three is a tensor.
_DEAR = 5e6
#: Least theta, as a share of its mean over all directions.
_LEAST = 1e-2
#: Exponents of what is bounded centre by centre.
_LARGEST = 300.0
_MORE = 1.0 + 1e-9


class Minorant(NamedTuple):
    """e^r f >= base + g.d + d^T H d / 2 - excess: (N,), (N, d), (N, d, d), (N,)."""

    base: Array
    g: Array
    H: Array
    excess: Array


class Form(NamedTuple):
    """|order p| <= |D|^(p - 1) (D^T Gamma D)^(1/2) + wrong |D|^p, D = L d; Gamma <= `matrix` + `lack` I, and
    `head` (N,) is at most the squared norm of the order.
    """

    order: int
    matrix: Array
    lack: Array
    wrong: Array
    head: Array

    def take(self, rows: Array) -> Form:
        """Those of some rows."""
        return Form(self.order, *(each[rows] for each in self[1:]))


@dataclass(frozen=True, eq=False)
class Forms:
    """The sums of a batch of planes with what their points alone say of orders two to four."""

    sums: Sums

    def take(self, rows: Array) -> Forms:
        """Those of some rows, with what is known of them."""
        few = Forms(self.sums.take(rows))
        for name in ("hessian", "v", "lengths"):
            if name in self.__dict__:
                few.__dict__[name] = self.__dict__[name][rows]
        if "tensor" in self.__dict__:
            T, form = self.tensor
            few.__dict__["tensor"] = T[rows], form.take(rows)
        if "orders" in self.__dict__:
            few.__dict__["orders"] = tuple(form.take(rows) for form in self.orders)
        return few

    def on(self, boxes: Boxes) -> Forms:
        """The same on other boxes."""
        other = Forms(self.sums.on(boxes))
        other.__dict__.update({name: each for name, each in self.__dict__.items() if name != "sums"})
        return other

    def minorant(
        self, aim: Array, sharp: bool = True, squares: Squares | None = None, joined: bool = False
    ) -> Minorant:
        """J27 with forms, or J5; with the squares that the planes leave out (J25), or `joined` with the cubic
        (J28, where order three is a tensor).
        """
        sums, seen, box = self.sums, self.sums.seen, self.sums.boxes
        xp, metric = self._facts.backend.xp, self._facts.metrics[0]
        span, root = sqrt_up(self._facts.backend, seen.boxes.span), xp.sqrt(metric)
        taken, spent, rest = xp.zeros_like(self.hessian), span * 0.0, span * 0.0
        known, order, steps = seen.known(self.hessian), 3, aim * root
        orders, raised = self.orders if sharp else (), None
        if squares is not None:
            joined = joined and sharp and self._has_tensor and squares.has_cubic
            raised = (squares.joined if joined else squares.within)(box.squares, aim)
            if joined and bool(xp.any(raised.scale > 0)):
                orders = self._joined(squares, 0.5 * raised.scale), *orders[1:]
        for form in orders:
            power = span ** (form.order - 2) * _MORE
            theta = self._theta(form, steps, seen.boxes.span)
            taken = taken + (power / theta)[:, None, None] * form.matrix
            spent = spent + power * (theta + form.lack / theta) * _MORE
            rest, known, order = rest + power * form.wrong * _MORE, known + form.head, form.order + 1
        rest = rest + self._beyond(order, known, span)
        taken = taken * (root[:, None] * root[None, :])
        along = (sums.slope - 2.0 * sums.apart)[:, None] - (2.0 * rest + spent)[:, None] * metric
        H, excess = self.hessian - taken + along[:, :, None] * self._eye, sums.excess
        matrices = [self.hessian, taken]
        if raised is not None:
            H, excess = H + raised.matrix, excess + raised.loss
            matrices.append(raised.matrix)
        norms = (xp.sqrt(xp.sum(each * each, axis=(1, 2))) for each in matrices)
        size = xp.sum(xp.abs(along) * box.reach * box.reach, axis=1) + sum(norms) * box.squares
        base = sums.value + sums.plane.still + sums.plane.constant
        return Minorant(base, sums.gradient, H, (excess + 1.01 * gamma(64) * size) * (1.0 + 4 * UNIT))

    def _joined(self, squares: Squares, sigma: Array) -> Form:
        """J28: order three of the sums and sigma times that of the squares."""
        xp, (T, form), (more, wrong) = self._facts.backend.xp, self.tensor, squares.cubic
        raised = (sigma > 0)[:, None, None]
        T = xp.where(raised, T + sigma[:, None, None] * more, T)
        wrong = form.wrong + xp.where(sigma > 0, sigma * wrong, sigma * 0.0)
        return self._of_tensor(T, wrong, form.head)

    def _theta(self, form: Form, steps: Array, squares: Array) -> Array:
        """Any is sound: the best where the minimum is expected, or in the mean."""
        xp, d = self._facts.backend.xp, steps.shape[1]
        length, mean = xp.sum(steps * steps, axis=1), xp.sum(form.matrix * self._eye, axis=(1, 2)) / d
        along = xp.sum((form.matrix @ steps[:, :, None])[:, :, 0] * steps, axis=1) / (length + UNDERFLOW)
        chosen = xp.where(length > 1e-6 * squares, xp.maximum(along, _LEAST * _LEAST * d * mean), mean)
        return xp.sqrt(xp.maximum(chosen, form.lack)) + UNDERFLOW

    def _beyond(self, order: int, known: Array, span: Array) -> Array:
        """t (N,): all orders from `order` on are at most t |D|^2: by one norm (J2), or centre by centre."""
        xp, smooth = self._facts.backend.xp, self.sums.seen.remainder(known, order)
        if "v" not in self.__dict__:
            return smooth
        box, root, d = self.sums.boxes, xp.sqrt(self._facts.metrics[0]), self.v.shape[1]
        most = long = self.lengths * span[:, None]
        if d <= _TENSOR:  # of many features the norm is nearly always the smaller
            middle, half = 0.5 * (box.low + box.high) * root, 0.5 * (box.high - box.low) * root
            signed = (middle[:, None, :] @ self.v + half[:, None, :] @ xp.abs(self.v))[:, 0, :]
            most = xp.clip(xp.minimum(signed + gamma(2 * d + 64) * long, long), 0.0, None)
        terms = xp.abs(self.sums.seen.bk) * self.lengths**order * xp.exp(xp.clip(most, None, _LARGEST))
        plain = xp.sum(terms, axis=1) * span ** (order - 2) * (_MORE**2 / math.factorial(order))
        smooth = xp.where(smooth == smooth, smooth, xp.full_like(smooth, math.inf))
        return xp.where((xp.max(most, axis=1) < _LARGEST) & (plain < smooth), plain, smooth)

    @property
    def _facts(self) -> Facts:
        return self.sums.seen.at.facts

    @cached_property
    def _eye(self) -> Array:
        return self._facts.backend.array(np.eye(self.sums.at.y.shape[1]))

    @cached_property
    def hessian(self) -> Array:
        """C_2 (N, d, d)."""
        return self.sums.seen.hessian()

    @cached_property
    def v(self) -> Array:
        """L^-1 v (N, d, n)."""
        facts = self._facts
        v = facts.Z[None, :, :] - self.sums.at.y[:, None, :]
        return facts.backend.transposed(v / facts.backend.xp.sqrt(facts.metrics[0]))

    @cached_property
    def lengths(self) -> Array:
        """At least |L^-1 v_i| (N, n)."""
        return self._facts.backend.xp.sqrt(self._facts.backend.xp.sum(self.v * self.v, axis=1)) * _MORE

    @cached_property
    def orders(self) -> tuple[Form, ...]:
        """Of order three, and of order four where that is cheap or there are many features."""
        _, d, n = self.v.shape
        if not self._has_tensor:
            return self._grams(3, 4)
        alone = d <= _ALONE or n * n * d > _DEAR
        return (self.tensor[1],) if alone else (self.tensor[1], *self._grams(4))

    @property
    def _has_tensor(self) -> bool:
        d, n = int(self.sums.at.y.shape[1]), int(self.sums.seen.bk.shape[1])
        return d <= _TENSOR and (d * d <= 2 * n or n * d**3 <= _FEW_PRODUCTS)

    @cached_property
    def tensor(self) -> tuple[Array, Form]:
        """C1: the tensor of order three, packed (N, d (d + 1) / 2, d), and its form."""
        xp, n, beta = self._facts.backend.xp, self.sums.seen.bk.shape[1], self.sums.seen.bk
        T = packed_sums(self._facts, self.v, self.v * beta[:, None, :]) * self._shares[None, :, None]
        wrong = gamma(n + 96) * (_MORE / 6.0) * self._size(3)
        length = xp.sqrt(xp.sum(T * T, axis=(1, 2))) * (1.0 - 1e-9)
        return T, self._of_tensor(T, wrong, 6.0 * xp.clip(length - wrong, 0.0, None) ** 2 * (1.0 - 1e-9))

    @cached_property
    def _shares(self) -> Array:
        """1/6 of packed pairs, and the root of 2 off the diagonal."""
        return self._facts.backend.array(packed_shares(self.sums.at.y.shape[1]) / 6.0)

    def _of_tensor(self, T: Array, wrong: Array, head: Array) -> Form:
        xp, backend, d = self._facts.backend.xp, self._facts.backend, T.shape[2]
        matrix, lack = backend.transposed(T) @ T, 1.01 * gamma(d * d + 40) * xp.sum(T * T, axis=(1, 2))
        return Form(3, 0.5 * (matrix + backend.transposed(matrix)), lack, wrong, head)

    def _grams(self, *orders: int) -> tuple[Form, ...]:
        """J11, J27: by products of all pairs of centres, a few rows at a time."""
        backend, (N, d, n) = self._facts.backend, self.v.shape
        xp, step = backend.xp, backend.rows(3.0 * n * n, 1)
        parts: dict[int, list[Array]] = {order: [] for order in orders}
        for start in range(0, N, step):
            v = backend.transposed(self.v[start : start + step])
            B = v * self.sums.seen.bk[start : start + step, :, None]
            G = backend.grams(v)
            power = G
            for order in range(3, max(orders) + 1):
                power = power * G
                if order in orders:
                    product = backend.transposed(B) @ (power @ B)
                    parts[order].append(product * (1.0 / math.factorial(order) ** 2))
        found = []
        for order, some in parts.items():
            matrix = backend.concat(some)
            lack = gamma(2 * n + 4 * d + 400) * (_MORE / math.factorial(order) ** 2) * self._size(order) ** 2
            trace = xp.sum(matrix * self._eye, axis=(1, 2)) * (1.0 - 1e-12) - lack
            head = math.factorial(order) * xp.clip(trace, 0.0, None) * (1.0 - 1e-12)
            found.append(Form(order, 0.5 * (matrix + backend.transposed(matrix)), lack, lack * 0.0, head))
        return tuple(found)

    def _size(self, order: int) -> Array:
        """At least sum_i |beta_i| |L^-1 v_i|^order (N,)."""
        xp = self._facts.backend.xp
        return xp.sum(xp.abs(self.sums.seen.bk) * self.lengths**order, axis=1) * _MORE + UNDERFLOW

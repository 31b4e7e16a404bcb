"""Lower bounds of one sum of Gaussian kernels over a set (docs/maths/bounds.md, D1 and G4).

    f(x) = sum_i b_i k_i(x) + still k(x, reference) / s2 + constant

is what a latent mean looks like, and every supporting plane (G1, G2). With d the scaled displacement
from the reference, r = |d|^2 / 2, a_i = d.v_i and k_i(x) = e^{-r} k_i e^{a_i},

    e^r f = still + sum_i b_i k_i e^{a_i} + constant e^r:

orders zero to two are exact, the rest is bounded at two prices, and one quadratic programme finishes it. No
product with the precision is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from gpcert.bounds.geometry.domain import NARROWEST, Domain
from gpcert.bounds.local.forms import Form, FunctionalBound, Pieces, Remainder, balance, largest_root, least
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS, Slice
from gpcert.rounding import LARGEST, TINY, UNDERFLOW, UNIT, exp_up, gamma, sqrt_up, sum_up, tail_norm_up
from gpcert.validation import Float

#: Any theta is sound; this share of the balanced one was best on whole images.
_THETA = 0.35
#: Orders bounded as forms; of so few features, or where n^2 d is more, the cubic alone, by its tensor.
_FORMS, _TENSOR, _DEAR = (3, 4), 12, 5e6
#: The metric's scale is a power of this, so that few Gram matrices serve all boxes.
_STEP = 16.0


@dataclass(frozen=True, eq=False)
class Covariances:
    """The kernels of all centres around one reference: v (n, d), k (n,), the relative errors of k (n,).

    `whole`: the same on a larger set, whose metric is kept.
    """

    slice: Slice
    domain: Domain
    v: Float
    k: Float
    relative: Float
    whole: Covariances | None = field(default=None, kw_only=True)

    @cached_property
    def s(self) -> float:
        """sup |d|, up."""
        return max(self.domain.norm(np.ones(self.v.shape[1])), NARROWEST)

    @cached_property
    def radius(self) -> float:
        """sup r, up."""
        return 0.5 * self.s * self.s * (1.0 + 4 * UNIT)

    @cached_property
    def squares(self) -> Float:
        """v_ij^2 (n, d)."""
        return self.v * self.v

    @cached_property
    def metric(self) -> Float:
        """L^2 (d,): |L d|^2 = sum_j metric_j d_j^2 (X1): one of a few, whose Gram matrices are kept.

        With many features the two factors of a_i = (L d).(L^-1 v_i) are about equal, which X5 likes; boxes of
        few features are too many, and of too many sizes: there |L^-1 v_i| is at most |v_i|.
        """
        if self.whole is not None:
            return self.whole.metric
        metric = self.domain.metric(self.slice.spread)
        if len(metric) <= CHEAP_DIMENSIONS:
            return np.asarray(metric / metric.min())
        lengths = self.squares @ (1.0 / metric)
        ratio = np.divide(self.k @ lengths, self.k.sum() * max(self.domain.norm(metric), NARROWEST) ** 2)
        scale = _STEP ** round(0.5 * math.log(ratio, _STEP)) if TINY < ratio < LARGEST else 1.0
        return np.asarray(metric * scale)

    @cached_property
    def span(self) -> float:
        """sup |L d|, up."""
        return max(self.domain.norm(self.metric), NARROWEST)

    @cached_property
    def norm(self) -> Float:
        """(n,), up: |a_i| <= norm_i |L d| / span."""
        lengths = self.squares @ (1.0 / self.metric)
        return np.asarray(np.sqrt(lengths) * self.span * (1.0 + 4.0 * gamma(2 * self.v.shape[1] + 16)))

    @cached_property
    def most(self) -> Float:
        """At least k_i itself (n,)."""
        return (self.k + self.slice.tiny) * (1.0 + 2.0 * self.relative + 64 * UNIT)

    @cached_property
    def rough(self) -> Float:
        """At least k_i e^{a_i} (n,), whatever the signs of the features: roundings act over it (X4)."""
        return np.asarray(self.most * np.exp(np.minimum(self.domain.absolute(self.v), self.norm)))

    @cached_property
    def grown(self) -> Float:
        """At least k_i e^{a_i} (n,)."""
        return np.asarray(self.most * np.exp(np.minimum(self.domain.linear(self.v), self.norm)))

    @cached_property
    def unit(self) -> Float:
        """Relative errors of k_i e^{a_i} and of sums over i (n,)."""
        return self.relative + gamma(len(self.k) + 60)

    @cached_property
    def elliptic(self) -> Float:
        """The form |L d|^2 / span^2 (d,): at most 1 on the domain."""
        return self.metric / (self.span * self.span) * (1.0 + 8 * UNIT)


class Head(NamedTuple):
    """Of sum_i b_i k_i e^{a_i} at the reference."""

    value: float
    gradient: Float
    hessian: Float


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The sum f with weights b (n,); e^r f may lack `excess` besides, at most.

    `whole`: the same on a larger set, whose coefficients hold here.
    """

    around: Covariances
    b: Float
    constant: float
    still: float = 0.0
    excess: float = 0.0
    whole: KernelSum | None = field(default=None, kw_only=True)

    def on(self, domain: Domain) -> Self:
        """The same on a part of its set: only what depends on the set's size is computed again."""
        around = replace(self.around, domain=domain, whole=self.around)
        return replace(self, around=around, whole=self)

    def lower_bound(self, sharp: bool, enough: float = 0.0) -> FunctionalBound:
        """f on the whole domain; `sharp`: with the orders from three on as forms, else by one norm (X5)."""
        return self.least(lambda: self.pieces(sharp), enough)

    def least(self, pieces: Callable[[], Pieces], enough: float = 0.0) -> FunctionalBound:
        """f on the whole domain, from pieces of e^r f."""
        c = self.around
        grow = exp_up(c.radius)
        if not math.isfinite(grow):
            return FunctionalBound(-np.inf, -np.inf, 0.0 * c.domain.reach, 0.0, c.domain.reach**2)
        bound = least(c.domain, [pieces()], (enough * grow if enough > 0 else enough, 1e-6))
        latent = bound.value if bound.value <= 0 else bound.value / grow * (1.0 - 4 * UNIT)
        return FunctionalBound(
            bound.value, latent, bound.point, bound.rounding, bound.loss, slopes=bound.slopes
        )

    def pieces(self, sharp: bool) -> Pieces:
        """e^r f before the last step; e^r has to be finite."""
        c, d = self.around, self.around.v.shape[1]
        M0, g, H = self.head
        # constant e^r >= constant + slope r: the tangent where convex, else the chord (X6).
        grow = exp_up(c.radius)
        concave = self.constant < 0 and c.radius > 0
        slope = self.constant * (math.expm1(c.radius) / c.radius if concave else 1.0)
        slope -= 64 * UNIT * abs(self.constant) * grow
        excess = self.excess + sum_up(np.abs(self.b) * c.rough * c.unit) * 1.01 + UNDERFLOW
        excess += gamma(60) * (abs(M0) + abs(self.still) + abs(self.constant)) * grow
        remainders = [*self._orders] if sharp else [Remainder(None, 2.0 * self.tail(3) * c.elliptic)]
        return Pieces(M0 + self.still + self.constant, g, [H, slope * np.eye(d)], remainders, excess)

    @staticmethod
    def total(parts: Sequence[tuple[float, KernelSum]]) -> KernelSum:
        """sum_l factor_l f_l, factors >= 0, of sums of the same kernels around the same reference (O6)."""
        c = parts[0][1].around
        b = sum((factor * each.b for factor, each in parts), np.zeros_like(c.k))
        constant = sum(factor * each.constant for factor, each in parts)
        still = sum(factor * each.still for factor, each in parts)
        size = sum_up(sum((factor * np.abs(each.b) for factor, each in parts), np.zeros_like(c.k)) * c.rough)
        size += exp_up(c.radius) * sum(factor * (abs(each.constant) + each.still) for factor, each in parts)
        excess = sum(factor * each.excess for factor, each in parts) * (1.0 + 1e-12)
        return KernelSum(c, b, constant, still, excess + gamma(2 * len(parts) + 8) * size)

    @cached_property
    def head(self) -> Head:
        """The orders zero to two."""
        if self.whole is not None:
            return self.whole.head
        bk, v = self.b * self.around.k, self.around.v
        scaled = np.sqrt(np.abs(bk))[:, None] * v
        more, less = scaled[bk > 0], scaled[bk < 0]  # a product with its own transpose takes half the time
        return Head(float(bk.sum()), bk @ v, more.T @ more - less.T @ less)

    @property
    def here(self) -> float:
        """About what is certain of f at the reference: it only guides."""
        return self.head.value + self.still + self.constant - self.excess

    @cached_property
    def _squares(self) -> tuple[float, float, float]:
        """X5: the squared norm of the sum in the metric, that of its orders zero to two, and the error of
        their difference, with up to two orders more subtracted.
        """
        if self.whole is not None:
            return self.whole._squares
        c = self.around
        n, d = c.v.shape
        gram, entry = c.slice.gram(c.metric)
        squares, inverse = c.squares, 1.0 / c.metric
        y = self.b * c.slice.amplitude * np.exp(0.5 * (squares @ (inverse - 1.0)))  # b k e^{|L^-1 v|^2 / 2}
        exponents = squares @ (inverse + 1.0)
        most = np.abs(y) + np.abs(self.b) * c.slice.tiny * (2.0 + 2.0 * exponents)
        error = sum_up(most * (4.0 * c.unit + gamma(6 * n + 16 * d + 600) * (1.0 + exponents)))
        size = sum_up(most)
        constant, gradient, hessian = self.head
        known = constant * constant + float((gradient * gradient) @ inverse)
        known += 0.5 * float(inverse @ (hessian * hessian) @ inverse)
        return (
            float(y @ (gram @ y)),
            known,
            8.0 * error * (size + math.sqrt(known)) + 1.01 * entry * size * size,
        )

    def tail(self, order: int, more: float = 0.0) -> float:
        """X5: times the elliptic form it bounds all orders from `order` >= 3 on; `more`: the squared norm of
        those above two that are known besides.
        """
        c = self.around
        square, known, slack = self._squares
        rest = sqrt_up(
            max(square - known - more, 0.0) + slack + gamma(c.v.shape[1] ** 2 + 20) * (known + more)
        )
        return rest * tail_norm_up(order, c.span) * (1.0 + 1e-12)

    @cached_property
    def _orders(self) -> list[Remainder]:
        """C1 for the lowest orders, norms for the others; subtracted as d^T (.) d / 2."""
        c, last, more, found = self.around, 2, 0.0, []
        for order, form in self._forms:
            # |order p| <= |L d|^{p-1} sqrt(N(d)) <= span^{p-2} (theta |L d|^2 + N(d) / theta) / 2
            theta = _THETA * balance(largest_root(form, c.domain), c.span)
            power = c.span ** (order - 2) * (1.0 + 1e-12)
            matrix, rounding = (power / theta) * form.matrix, 0.5 * (power / theta) * form.excess
            found.append(Remainder(matrix, power * theta * c.metric, rounding))
            more += math.factorial(order) * float(np.diagonal(form.matrix) @ (1.0 / c.metric))
            last = order
        return [*found, Remainder(None, 2.0 * self._beyond(last + 1, more) * c.elliptic)]

    @cached_property
    def _forms(self) -> list[tuple[int, Form]]:
        """The lowest orders beyond the second, and their forms N."""
        if self.whole is not None:
            return self.whole._forms
        n, d = self.around.v.shape
        few = d <= _TENSOR or (d <= CHEAP_DIMENSIONS and n * n * d > _DEAR)
        return list(self._tensor() if few else self._flattened())

    def _tensor(self) -> Iterator[tuple[int, Form]]:
        """C1: the cubic by its symmetric tensor, for few features."""
        n, d = self.around.v.shape
        bk, root = self.b * self.around.k, np.sqrt(self.around.metric)
        scaled = self.around.v / root
        pairs = (scaled[:, :, None] * scaled[:, None, :]).reshape(n, d * d)
        T = (((bk / 6.0)[:, None] * scaled).T @ pairs).reshape(d, d, d)
        flat = ((T + T.transpose(1, 0, 2) + T.transpose(2, 1, 0)) / 3.0).reshape(d, d * d)
        N = flat @ flat.T
        # The float tensor is what is bounded (its own rounding is X4's): only the Gram product rounds.
        size = float(np.sqrt(np.diagonal(N)) @ (root * self.around.domain.reach)) * 1.01
        N = 0.5 * (N + N.T) * np.outer(root, root)
        yield 3, Form(N, 2.2 * gamma(d * d + 40) * size * size + TINY)

    def _flattened(self) -> Iterator[tuple[int, Form]]:
        """C1 of orders three and four: N_p = Z^T G^{o(p-1)} Z with Z = b k v / p!."""
        c = self.around
        n, d = c.v.shape
        scaled = c.v / np.sqrt(c.metric)
        G = scaled @ scaled.T
        Z = (self.b * c.k)[:, None] * c.v
        power = G * G
        unit = c.relative + gamma(2 * n + 8 * d + 200)
        for order in _FORMS:
            N = Z.T @ (power @ Z) / math.factorial(order) ** 2
            y = np.abs(self.b) * c.rough * c.norm**order / math.factorial(order)
            noise = 2.2 * sum_up(y) * sum_up(y * unit) / c.span ** (2 * order - 2)
            yield order, Form(0.5 * (N + N.T), noise + TINY)
            power = power * G

    def _beyond(self, order: int, more: float) -> float:
        """The same by absolute values (X2) or by their norm (X5)."""
        c = self.around
        plain = sum_up(np.abs(self.b) * c.grown * c.norm**order / math.factorial(order)) * (1.0 + 1e-12)
        smooth = self.tail(order, more)
        return smooth if smooth < plain else plain  # NaN is not smaller

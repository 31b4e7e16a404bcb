"""A certified lower bound of a * mu - tau * S + kappa over a box (docs/maths/bounds.md, Theorem 1).

With d the scaled displacement from the reference, r = |d|^2 / 2 and f = a mu - tau S + kappa,
    e^{2r} f >= base + g.d + d^T H d / 2 - excess        on the box,
where base is f at the reference, g the gradient there, and H the exact Hessian less quadratic majorants
of all higher orders (section 6), at two prices. `coarse`: everything from order three on by norms in the
reproducing-kernel Hilbert space; no further n x n products. `sharp`: the cubic through its tensor (n d^3)
or, with many features, through G = v L^-2 v^T, which flattens the orders two and three of V kappa, too. A
quadratic programme with a certified dual value finishes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.forms import Form, FunctionalBound, Loss, Remainder, balance, largest_root, subtract
from gpcert.bounds.local.gaussian.expansion import COLUMN_DIMENSIONS, Expansion, Tail, partial_traces
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.rounding import (
    LARGEST,
    TINY,
    UNDERFLOW,
    UNIT,
    exp_up,
    expm1_up,
    gamma,
    sqrt_up,
    sum_up,
    symmetric,
)
from gpcert.validation import Float


class Cubic(NamedTuple):
    """The Gram matrix of the cubic of a M + tau q: N[0] + tau N[1] + tau^2 N[2], and its rounding."""

    N: tuple[Float, Float, Float]  #: each (d, d)
    size: tuple[float, float]  #: (absolute, error) of the part from M ...
    size_q: tuple[float, float]  #: ... and from q: the form is wrong by at most 2.2 * absolute * error


class Quartic(NamedTuple):
    """C4: the forms of (alpha k, R k k) with G o G o G o G; |G_ij| <= norm_i norm_j / span^2."""

    forms: Float  #: (2, 2)
    sizes: Float  #: (2,): the forms are wrong by at most 2 relative times the product of two of them
    relative: float

    def tail(self, e: Expansion, a: float, tau: float) -> Tail:
        """|sum_i b_i k_i a_i^4 / 24| <= |L d|^4 sqrt((bk)^T (G o G o G o G) bk) / 24 for the weights
        b = a alpha + 2 tau R k.
        """
        b = np.array([a, 2.0 * tau])
        size = float(np.abs(b) @ self.sizes)
        square = max(float(b @ self.forms @ b), 0.0) + 2.0 * self.relative * size * size
        return Tail(sqrt_up(square) * e.span**4 / 24.0 * (1.0 + 1e-14), e.elliptic)


@dataclass(frozen=True, eq=False)
class Majorants:
    """What bounds the high orders at one expansion: the cubic if it has one, tails, and |V kappa|^2."""

    expansion: Expansion
    cubic: Cubic | None  #: None: tails start at order three
    second: Form  #: |V kappa_{>=2}|^2, V^T V = positive + negative part
    third: Form  #: |V kappa_{>=3}|^2
    quartic: Quartic | None

    @cached_property
    def root_first(self) -> float:
        """About sup |V kappa_1|."""
        return largest_root(Form(self.expansion.J_size, self.expansion.error_q), self.expansion.domain)

    @cached_property
    def root_second(self) -> float:
        """About sup |V kappa_{>=2}|."""
        return largest_root(self.second, self.expansion.domain)

    @cached_property
    def root_third(self) -> float:
        """About sup |V kappa_{>=3}|."""
        return largest_root(self.third, self.expansion.domain)

    def cubic_form(self, a: float, tau: float) -> Form:
        """C1: |cubic(d)| <= |L d|^2 sqrt(form(d)) for a in {0, 1}."""
        assert self.cubic is not None
        N, size, size_q = self.cubic
        matrix = a * N[0] + (a * tau) * N[1] + (tau * tau) * N[2]
        absolute = a * size[0] + abs(tau) * size_q[0]
        error = a * size[1] + abs(tau) * size_q[1]
        return Form(matrix, 2.2 * absolute * error + TINY)

    def tails(self, a: float, tau: float, order: int) -> list[Tail]:
        """C4: tails whose sum bounds a M + 2 tau (linear part of q) from `order` on."""
        e = self.expansion
        factors = ((a, e.tail_M), (2.0 * abs(tau), e.tail_q))
        best = [_times(factor, tail(order)) for factor, tail in factors if factor]
        if self.cubic is None:
            best = min(best, self._pythagoras(a, tau, order), key=_total)
        if self.quartic is not None and order == 4:
            best = min(best, [self.quartic.tail(self.expansion, a, tau), *self.tails(a, tau, 5)], key=_total)
        return best

    def _pythagoras(self, a: float, tau: float, order: int) -> list[Tail]:
        """X5 for the weights a alpha + 2 tau R k; what these are wrong by counts by absolute values."""
        e, power = self.expansion, self.expansion.powers[order]
        one, two = a * e.slice.weights, 2.0 * tau * e.r
        around = Covariances(e.slice, e.domain, e.v, e.k, e.relative)  # in a metric whose Gram matrix is kept
        wrong = gamma(8) * sum_up((np.abs(one) + np.abs(two)) * power)
        wrong += 2.0 * abs(tau) * e.error_r * e.weighted(power)
        norm = Tail(KernelSum(around, one + two, 0.0).tail(order), around.elliptic)
        return [norm, Tail(wrong * (1.0 + 1e-12), e.elliptic)]


def _times(factor: float, tail: Tail) -> Tail:
    return Tail(factor * tail.value * (1.0 + 4 * UNIT), tail.form)


def _total(tails: list[Tail]) -> float:
    return sum(tail.value for tail in tails)


#: Majorants of one price.
Builder = Callable[[Expansion], Majorants]


def coarse(e: Expansion) -> Majorants:
    """C6: no cubic at all; every tail from the contraction of the posterior and the RKHS norm."""
    second, third = (_diagonal(e.tail_V(m)) for m in (2, 3))
    return Majorants(e, None, second, third, None)


def sharp(e: Expansion) -> Majorants:
    """C1-C3. With a middling number of features X3 takes the place of C2 and C3, whose products with the
    precision cost more there than they gain (measured).
    """
    d = e.v.shape[1]
    if d > CHEAP_DIMENSIONS:
        return _flattened(e)
    if d <= COLUMN_DIMENSIONS:
        errors = _flat_errors(e)
        N2, N3 = partial_traces(e.gram, e.metric)
        second, third = _with_tails(e, Form(N2, errors.second), Form(N3, errors.third))
    else:
        second, third = (_diagonal(e.tail_V(m)) for m in (2, 3))
    return Majorants(e, _tensor(e), second, third, None)


def _tensor(e: Expansion) -> Cubic:
    """C1 by the symmetric tensor: n d^3, so for few features only."""
    n, d = e.v.shape
    scaled = e.v / np.sqrt(e.metric)
    pairs = (scaled[:, :, None] * scaled[:, None, :]).reshape(n, d * d)
    ak, rk = e.slice.weights * e.k, e.r * e.k
    root = np.sqrt(e.metric)
    Z = np.concatenate(
        [(ak / 6.0)[:, None] * scaled, (rk / 3.0)[:, None] * scaled + e.k[:, None] * (e.Y / root)], axis=1
    )
    tensors = (Z.T @ pairs).reshape(2, d, d, d)
    tensors = (tensors + tensors.transpose(0, 2, 1, 3) + tensors.transpose(0, 3, 2, 1)) / 3.0
    flat = tensors.reshape(2 * d, d * d)
    N = flat @ flat.T
    sizes = np.sqrt(np.diagonal(N)).reshape(2, d) @ (root * e.domain.reach)
    # The float tensor is what is bounded (its own rounding is in error_M, error_q): only the Gram product
    # rounds.
    relative = gamma(d * d + 40)
    size, size_q = ((float(x) * 1.01, relative * float(x)) for x in sizes)
    return Cubic(_parts(N, d, root), size, size_q)


def _flattened(e: Expansion) -> Majorants:
    """C1 through G o G, C2 and C3 through R o G and R o G o G, for many features."""
    d = e.v.shape[1]
    scaled = e.v / np.sqrt(e.metric)
    G = scaled @ scaled.T
    ak, rk = e.slice.weights * e.k, e.r * e.k
    Z = np.concatenate([(ak / 6.0)[:, None] * e.v, (rk / 3.0)[:, None] * e.v + e.k[:, None] * e.Y], axis=1)
    errors = _flat_errors(e)
    G2 = G * G
    cubic = Cubic(_parts(Z.T @ (G2 @ Z), d, np.ones(d)), errors.mean, errors.explained)
    RG = e.slice.model.magnitude * G
    N2 = Form(symmetric(e.kv.T @ (RG @ e.kv)), errors.second)
    RG *= G
    second, third = _with_tails(e, N2, Form(symmetric(e.kv.T @ (RG @ e.kv)), errors.third))
    fourth = _quartic(e, G2, np.stack([ak, rk], axis=1))
    return Majorants(e, cubic, second, third, fourth)


def _quartic(e: Expansion, G2: Float, b: Float) -> Quartic:
    n, d = e.v.shape
    power = e.norm**4 / max(e.span**4, TINY)
    relative = 2.0 * float(np.max(e.relative, initial=0.0)) + 3.0 * gamma(2 * n + 8 * d + 160)
    sizes = np.array([sum_up(each) for each in (np.abs(b) * power[:, None]).T])
    sizes[1] += e.weighted(e.grown * power) * e.error_r / min(relative, 1.0)  # R k is not known better
    return Quartic(b.T @ ((G2 * G2) @ b), sizes, relative)


def _with_tails(e: Expansion, N2: Form, N3: Form) -> tuple[Form, Form]:
    """C2, C3: |V kappa_{>=2}|^2 and |V kappa_{>=3}|^2 from the pure orders two and three, and tails."""
    span2 = e.span * e.span
    third = _add(_scale(N3, 2.0 * span2 * span2 / 36.0), _scale(_diagonal(e.tail_V(4)), 2.0))
    return _sum_of_squares(_scale(N2, 0.25 * span2), third, e), third


def _sum_of_squares(x: Form, y: Form, e: Expansion) -> Form:
    """(|x| + |y|)^2 <= (1 + t) x^2 + (1 + 1/t) y^2, t balancing the two at the size of the box."""
    t = min(max(np.sqrt(_size(y, e) / max(_size(x, e), TINY)), 1e-3), LARGEST)
    return _add(_scale(x, 1.0 + t), _scale(y, 1.0 + 1.0 / t))


class Errors(NamedTuple):
    """C5: rounding of the flattened forms as bounds of their values over the box."""

    mean: tuple[float, float]  #: as `Cubic.size`
    explained: tuple[float, float]  #: as `Cubic.size_q`
    second: float
    third: float


def _flat_errors(e: Expansion) -> Errors:
    """C5."""
    n, d = e.v.shape
    unit = e.relative + gamma(2 * n + 4 * d + 120)
    span2 = max(e.span * e.span, TINY)
    absolute = np.abs(e.slice.weights) * e.grown * e.norm**3 / 6.0
    size_M = (sum_up(absolute) / span2, sum_up(absolute * unit) / span2)
    linear = e.grown * e.norm**3 / 3.0
    square, single = e.grown * e.norm**2, e.grown * e.norm
    size_q = (
        sum_up(np.abs(e.r) * linear)
        + e.weighted(linear) * e.error_r
        + e.weighted(square) * e.weighted(single)
    ) / span2
    error_q = (
        sum_up(np.abs(e.r) * linear * unit)
        + e.weighted(linear) * e.error_r
        + e.weighted(square * unit) * e.weighted(single)
        + e.weighted(square) * e.weighted(single * unit)
    ) / span2
    error_2 = 2.2 * e.weighted(square * unit) * e.weighted(square) / span2
    cube = e.grown * e.norm**3
    error_3 = 2.2 * e.weighted(cube * unit) * e.weighted(cube) / (span2 * span2)
    return Errors(size_M, (size_q, error_q), error_2, error_3)


def _parts(N: Float, d: int, root: Float) -> tuple[Float, Float, Float]:
    """The three (d, d) blocks of a (2d, 2d) Gram matrix, in the units of d."""
    unit = np.outer(root, root)
    cross = N[:d, d:]
    return symmetric(N[:d, :d]) * unit, (cross + cross.T) * unit, symmetric(N[d:, d:]) * unit


def _diagonal(tail: Tail) -> Form:
    """|V kappa|^2 <= value^2 * form."""
    return Form(np.diag(tail.value * tail.value * (1.0 + 1e-15) * tail.form), TINY)


def _scale(form: Form, c: float) -> Form:
    return Form(c * form.matrix, c * form.excess)


def _add(x: Form, y: Form) -> Form:
    return Form(x.matrix + y.matrix, x.excess + y.excess)


def _size(form: Form, e: Expansion) -> float:
    """An estimate of the form's largest value on the box: only balances constants, never certifies."""
    return abs(float(np.diagonal(form.matrix) @ e.domain.reach**2)) + form.excess


#: Any theta is sound. The estimated roots overshoot: no one direction is worst for both factors of a product;
#: these shares were best on whole images, where nothing else helps.
_CUBIC, _PRODUCT = 0.6, 0.8


@dataclass(frozen=True, eq=False)
class RbfLocal:
    """A `LocalModel` of the Gaussian kernel."""

    majorants: Majorants

    @property
    def S(self) -> float:
        return self.majorants.expansion.S

    def only(self, tau: float) -> RbfLocal:
        """Nothing is saved."""
        return self

    def lower_bound(
        self,
        a: float,
        tau: float,
        kappa: float,
        enough: float = np.inf,
        accuracy: float = 1e-6,
        less: Loss | None = None,
    ) -> FunctionalBound:
        """Theorem 1 for a in {0, 1}, any tau and kappa (the prior mean belongs into kappa); `less` is
        subtracted from the functional.
        """
        m, e = self.majorants, self.majorants.expansion
        radius, reach = e.radius, e.domain.reach
        grow = exp_up(2.0 * radius)
        if not math.isfinite(grow):
            return FunctionalBound(-np.inf, -np.inf, np.zeros_like(reach), 0.0, reach**2)
        model = e.slice.model
        base = a * e.M.value + kappa - tau * (model.prior - e.q.value)
        g = a * e.M.gradient + 2.0 * tau * e.q.gradient
        parts = [a * e.M.hessian, 2.0 * tau * e.q.hessian, 2.0 * tau * e.J]
        prior = kappa - tau * model.prior
        diagonals = [np.full_like(g, _slope(a * e.M.value, prior, radius))]
        excess = a * e.error_M * grow + abs(tau) * e.error_q + abs(tau) * model.excess_variance(e.grown)
        sizes = abs(a * e.M.value) + abs(kappa) + 2.0 * abs(tau) * (abs(model.prior) + abs(e.q.value))
        excess += gamma(40) * sizes * grow
        excess += (1.0 + abs(tau)) * UNDERFLOW
        remainders = list(_remainders(m, a, tau, radius))
        if less is not None:  # e^{2r} less <= grow less
            g = g - grow * less.gradient
            remainders.append(Remainder(2.0 * grow * less.matrix, None, constant=grow * less.constant))
        bound = subtract(e.domain, base, g, parts, diagonals, remainders, excess, (enough, accuracy))
        value = bound.value
        # 1 <= e^{2r} <= grow: a negative bound holds for f as it is, a positive one divided by grow.
        latent = value if value <= 0 else value / grow * (1.0 - 4 * UNIT)
        return FunctionalBound(value, latent, bound.point, bound.rounding, bound.loss)


def _remainders(m: Majorants, a: float, tau: float, radius: float) -> Iterator[Remainder]:
    """The majorants of Theorem 1 as (matrix, diagonal, constant): each is subtracted as d^T (.) d / 2 +
    constant.
    """
    e = m.expansion
    size = abs(tau)
    span = max(e.span, TINY)
    order = 3 if m.cubic is None else 4
    if m.cubic is not None:
        # |cubic| <= |L d|^2 sqrt(N(d)) <= span (theta |L d|^2 + N(d) / theta) / 2
        cubic = m.cubic_form(a, tau)
        theta = _CUBIC * balance(largest_root(cubic, e.domain), span)
        yield Remainder(
            (span / theta) * cubic.matrix, span * theta * e.metric, 0.5 * (span / theta) * cubic.excess
        )
    for tail in m.tails(a, tau, order):
        yield Remainder(None, 2.0 * tail.value * tail.form, 0.0)
    if size > 0:
        # 2 |tau| |V kappa_1| |V kappa_rest| <= |tau| (theta J(d) + rest(d) / theta)
        rest, root = (m.second, m.root_second) if m.cubic is None else (m.third, m.root_third)
        theta = _PRODUCT * balance(root, m.root_first)
        yield Remainder(2.0 * size * theta * e.J_size, None, size * theta * e.error_q)
        yield Remainder((2.0 * size / theta) * rest.matrix, None, (size / theta) * rest.excess)
    if tau < 0 or (tau > 0 and not e.slice.model.definite):  # what bounds the sum of both parts bounds one
        yield Remainder(2.0 * size * m.second.matrix, None, size * m.second.excess)
    if a:
        yield from _growth_of_M(m, radius)


def _growth_of_M(m: Majorants, radius: float) -> Iterator[Remainder]:
    """(e^r - 1)(M_1 + M_2 + M_{>=3}), with e^r - 1 <= growth and e^r - 1 <= r growth / radius."""
    e = m.expansion
    growth = expm1_up(radius)
    falling = float(e.domain.support(-e.M.gradient[None])[0]) + 2.0 * e.error_M
    slope = growth / radius if radius > 0 else 1.0
    yield Remainder(None, np.full_like(e.metric, max(falling, 0.0) * slope * (1.0 + 1e-12)), 0.0)
    yield Remainder(growth * e.M2_negative, None, growth * e.error_M)
    for tail in m.tails(1.0, 0.0, 3):
        yield Remainder(None, 2.0 * growth * tail.value * tail.form, 0.0)


def _slope(A: float, B: float, radius: float) -> float:
    """X6: a slope c with A e^r + B e^{2r} >= A + B + c r on [0, radius]."""
    if radius <= 0:
        return min(A, 0.0) + 2.0 * min(B, 0.0)
    first = math.expm1(radius) / radius
    second = math.expm1(2.0 * radius) / radius
    tangent, chord = A + 2.0 * B, A * first + B * second
    slack = 64 * UNIT * (abs(A) * first + abs(B) * second)
    if (
        A + 4.0 * B >= 0 and A + 4.0 * B * math.exp(radius) >= 0
    ):  # convex, to rounding, which the slack covers
        return tangent - slack
    if A > 0:  # concave, or convex and then concave: the secant from 0 is smallest at an end
        return min(tangent, chord) - slack
    if B <= 0:  # concave
        return chord - slack
    return A * first + 2.0 * B - slack  # concave, then convex: chord of the first term, tangent of the second

"""Quadratic majorants of the third and higher orders of an expansion, at two prices (docs/maths.md, section 4).

`cheap`: the cubic through its tensor (n d^3), tails by the contraction of the posterior; no n x n work.
`sharp`: the cubic and the tails flattened through G = v L^-2 v^T (five n x n products with d columns).
Both answer the same three questions for the functional a mu - tau S + kappa, so the functional does not know which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.expansion import Expansion, Tail
from gpcert.rounding import TINY, gamma, sqrt_up, sum_up, tail_norm_up
from gpcert.validation import Float

__all__ = ["CHEAP_DIMENSIONS", "Form", "Majorants", "cheap", "sharp"]

#: Above this many moving features the cubic tensor costs more than the flattened form.
CHEAP_DIMENSIONS = 24


class Form(NamedTuple):
    """A quadratic form d^T matrix d + excess on the box; `excess` >= 0 covers the rounding of `matrix`."""

    matrix: Float
    excess: float


@dataclass(frozen=True, eq=False)
class Majorants:
    """What bounds orders three and up at one expansion; see `cubic`, `second`, `third`, `fourth`."""

    expansion: Expansion
    N: tuple[Float, Float, Float]  #: the cubic's Gram matrix is N[0] + tau N[1] + tau^2 N[2], each (d, d)
    cubic_size: tuple[float, float]  #: (absolute, error) scale of the cubic of M ...
    cubic_size_q: tuple[float, float]  #: ... and of q: N is wrong by at most 2.2 * absolute * error
    second: Form  #: |V kappa_{>=2}|^2
    third: Form  #: |V kappa_{>=3}|^2
    norms: tuple[float, float, float] | None  #: RKHS forms (alpha, alpha), (alpha, R k), (R k, R k)
    norms_error: tuple[float, float, float]  #: (sum |alpha| amplitude, sum |r| amplitude, relative error)

    def cubic(self, a: float, tau: float) -> Form:
        """C1: |cubic(d)| <= |L d|^2 sqrt(form(d)) for a in {0, 1}."""
        matrix = a * self.N[0] + (a * tau) * self.N[1] + (tau * tau) * self.N[2]
        size = a * self.cubic_size[0] + abs(tau) * self.cubic_size_q[0]
        error = a * self.cubic_size[1] + abs(tau) * self.cubic_size_q[1]
        return Form(matrix, 2.2 * size * error + TINY)

    def fourth(self, a: float, tau: float) -> Tail:
        """C4: the tail of a M + 2 tau (linear part of q) from order four on."""
        e = self.expansion
        plain, linear = e.tail_M(4), e.tail_q(4)
        absolute = Tail(a * plain.value + 2.0 * abs(tau) * linear.value, plain.form)
        return self._smaller(absolute, a, tau, 4)

    def third_M(self) -> Tail:
        """C4: |M_{>=3}|."""
        return self._smaller(self.expansion.tail_M(3), 1.0, 0.0, 3)

    def _smaller(self, absolute: Tail, a: float, tau: float, order: int) -> Tail:
        """The absolute tail, or the RKHS tail by Pythagoras (X5) where that is smaller."""
        if self.norms is None:
            return absolute
        e, f = self.expansion, self.norms
        square = a * f[0] + 4.0 * tau * a * f[1] + 4.0 * tau * tau * f[2]
        size = a * self.norms_error[0] + 2.0 * abs(tau) * self.norms_error[1]
        constant = a * e.M0 + 2.0 * tau * e.q0
        gradient = a * e.M1 + 2.0 * tau * e.q1
        hessian = a * e.M2 + 2.0 * tau * e.q2
        head = constant * constant + float(gradient @ gradient) + 0.5 * float(np.vdot(hessian, hessian))
        relative = self.norms_error[2]
        slack = 2.0 * size * relative * (size + np.sqrt(head)) + gamma(len(gradient) ** 2 + 20) * head
        rest = sqrt_up(max(square - head, 0.0) + slack) * tail_norm_up(order, e.s)
        return absolute if absolute.value <= rest else Tail(rest, e.isotropic)


def cheap(e: Expansion) -> Majorants:
    """C1-C3 without n x n work: the symmetric cubic tensor, and the contraction for the tails of V kappa."""
    n, d = e.v.shape
    scaled = e.v / np.sqrt(e.metric)
    pairs = (scaled[:, :, None] * scaled[:, None, :]).reshape(n, d * d)
    ak, rk = e.slice.weights * e.k, e.r * e.k
    root = np.sqrt(e.metric)
    Z = np.concatenate([(ak / 6.0)[:, None] * scaled, (rk / 3.0)[:, None] * scaled + e.k[:, None] * (e.Y / root)], axis=1)
    tensors = (Z.T @ pairs).reshape(2, d, d, d)
    tensors = (tensors + tensors.transpose(0, 2, 1, 3) + tensors.transpose(0, 3, 2, 1)) / 3.0
    flat = tensors.reshape(2 * d, d * d)
    N = flat @ flat.T
    sizes = np.sqrt(np.diagonal(N)).reshape(2, d) @ (root * e.reach)
    # The float tensor is what is bounded (its own rounding is in error_M, error_q): only the Gram product rounds.
    relative = gamma(d * d + 40)
    second, third = (_diagonal(e.tail_V(m)) for m in (2, 3))
    return Majorants(
        expansion=e,
        N=_parts(N, d, root),
        cubic_size=(float(sizes[0]) * 1.01, relative * float(sizes[0])),
        cubic_size_q=(float(sizes[1]) * 1.01, relative * float(sizes[1])),
        second=second,
        third=third,
        norms=None,
        norms_error=(0.0, 0.0, 0.0),
    )


def sharp(e: Expansion) -> Majorants:
    """C1-C3 flattened: |V kappa_2|^2 and |V kappa_3|^2 through R o G and R o G o G, the cubic through G o G."""
    d = e.v.shape[1]
    R = e.slice.model.shifted
    scaled = e.v / np.sqrt(e.metric)
    G = scaled @ scaled.T
    ak, rk = e.slice.weights * e.k, e.r * e.k
    Z = np.concatenate([(ak / 6.0)[:, None] * e.v, (rk / 3.0)[:, None] * e.v + e.k[:, None] * e.Y], axis=1)
    N = Z.T @ ((G * G) @ Z)
    RG = R * G
    N2 = e.kv.T @ (RG @ e.kv)
    RG *= G
    N3 = e.kv.T @ (RG @ e.kv)
    span2 = e.span * e.span
    errors = _sharp_errors(e)
    fourth = _diagonal(e.tail_V(4))
    third = _add(_scale(Form(_symmetric(N3), errors[3]), 2.0 * span2 * span2 / 36.0), _scale(fourth, 2.0))
    pure = _scale(Form(_symmetric(N2), errors[2]), 0.25 * span2)
    # (x + y)^2 <= (1 + t) x^2 + (1 + 1/t) y^2, t balancing the two at the size of the box.
    t = max(np.sqrt(_size(third, e) / max(_size(pure, e), TINY)), 1e-3)
    second = _add(_scale(pure, 1.0 + t), _scale(third, 1.0 + 1.0 / t))
    norms, norms_error = _rkhs(e)
    return Majorants(
        expansion=e,
        N=_parts(N, d, np.ones(d)),
        cubic_size=errors[0],
        cubic_size_q=errors[1],
        second=second,
        third=third,
        norms=norms,
        norms_error=norms_error,
    )


def _sharp_errors(e: Expansion) -> tuple[tuple[float, float], tuple[float, float], float, float]:
    """C5: rounding of N, N2, N3 as bounds of their quadratic forms over the box."""
    n, d = e.v.shape
    unit = e.relative + gamma(2 * n + 4 * d + 120)
    span2 = max(e.span * e.span, TINY)
    absolute = np.abs(e.slice.weights) * e.grown * e.norm**3 / 6.0
    size_M = (sum_up(absolute) / span2, sum_up(absolute * unit) / span2)
    linear = e.grown * e.norm**3 / 3.0
    square, single = e.grown * e.norm**2, e.grown * e.norm
    size_q = (sum_up(np.abs(e.r) * linear) + e.weighted(linear) * e.error_r + e.weighted(square) * e.weighted(single)) / span2
    error_q = (
        sum_up(np.abs(e.r) * linear * unit)
        + e.weighted(linear) * e.error_r
        + e.weighted(square * unit) * e.weighted(single)
        + e.weighted(square) * e.weighted(single * unit)
    ) / span2
    error_2 = 2.2 * e.weighted(square * unit) * e.weighted(square) / span2
    cube = e.grown * e.norm**3
    error_3 = 2.2 * e.weighted(cube * unit) * e.weighted(cube) / (span2 * span2)
    return size_M, (size_q, error_q), error_2, error_3


def _rkhs(e: Expansion) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """X5: the squared RKHS norms of M and of the linear part of q on the slice, and their error scale."""
    K, entry = e.slice.gram
    n = len(K)
    amplitude = e.slice.amplitude
    b = np.stack([e.slice.weights * amplitude, e.r * amplitude], axis=1)
    forms = b.T @ (K @ b)
    sums = np.abs(b).sum(axis=0)
    relative = np.max((e.relative + gamma(n + 60)) * (np.abs(b).sum(axis=1) > 0), initial=0.0)
    drift = e.weighted(amplitude) * e.error_r / max(float(sums[1]), TINY)
    error = 2.0 * (entry + gamma(2 * n + 40) + 4.0 * float(relative) + 4.0 * drift)
    return (float(forms[0, 0]), float(forms[0, 1]), float(forms[1, 1])), (float(sums[0]), float(sums[1]), error)


def _parts(N: Float, d: int, root: Float) -> tuple[Float, Float, Float]:
    """The three (d, d) blocks of a (2d, 2d) Gram matrix, in the units of d."""
    unit = np.outer(root, root)
    cross = N[:d, d:]
    return _symmetric(N[:d, :d]) * unit, (cross + cross.T) * unit, _symmetric(N[d:, d:]) * unit


def _symmetric(A: Float) -> Float:
    return 0.5 * (A + A.T)


def _diagonal(tail: Tail) -> Form:
    """|V kappa|^2 <= value^2 * form."""
    return Form(np.diag(tail.value * tail.value * (1.0 + 1e-15) * tail.form), TINY)


def _scale(form: Form, c: float) -> Form:
    return Form(c * form.matrix, c * form.excess)


def _add(x: Form, y: Form) -> Form:
    return Form(x.matrix + y.matrix, x.excess + y.excess)


def _size(form: Form, e: Expansion) -> float:
    """An estimate of the form's largest value on the box: only balances constants, never certifies."""
    return abs(float(np.diagonal(form.matrix) @ (e.reach * e.reach))) + form.excess

"""Quadratic majorants of the higher orders of a radial expansion (docs/maths/kernels.md, section 4).

Norms |V .| of pure powers of a are flattened through G = v L^-2 v^T (n x n products with d columns); the
cubic through its tensor where features are few (n d^3), else through G o G; all else through F4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.local.forms import Form
from gpcert.bounds.local.radial.expansion import Component, RadialExpansion, second_moment
from gpcert.rounding import TINY, gamma, sum_up, symmetric
from gpcert.validation import Float

#: Above this many moving features the cubic tensor costs more than the flattened form.
TENSOR_DIMENSIONS = 24
#: Up to this many, powers of a are flattened through columns, without any n x n product.
COLUMN_DIMENSIONS = 3


@dataclass(frozen=True, eq=False)
class RadialForms:
    """What bounds the high orders: the cubic, and squared norms of parts of kappa."""

    expansion: RadialExpansion
    cubic: Callable[[float, float], list[Form]]  #: |cubic| <= |L d|^2 sum sqrt(form), for (a, tau)
    second: Form  #: |V kappa_{>=2}|^2
    third: Form  #: |V kappa_{>=3}|^2


def forms_of(e: RadialExpansion, only: float | None = None) -> RadialForms:
    """Everything flattened. `only`: the one tau >= 0 to be asked for, with a = 1, of a definite model."""
    tensor = e.U.shape[1] <= TENSOR_DIMENSIONS
    seconds: list[Form] = []
    thirds: list[Form] = []
    cubics: list[Callable[[float, float], Form]] = []
    for c in e.components:
        if tensor and only == 0.0:  # the mean alone: no norms, and the cubic below
            continue
        scaled = c.v / np.sqrt(e.metric)
        G = scaled @ scaled.T if e.U.shape[1] > COLUMN_DIMENSIONS else None
        if only != 0.0:
            second, third = _norms_of(e, c, G, only is None)
            seconds += second
            thirds += third
        if G is not None and not tensor:
            G *= G
            cubics.append(_cubic_flat(e, c, G, only))
    third_form = _smaller(e, _combine(e, thirds), _smooth(e, 3))
    infinite = Form(np.zeros_like(e.J), np.inf)  # with tau >= 0 alone nobody asks for it
    second_form = infinite
    if only is None:
        second_form = _smaller(e, _combine(e, [*seconds, third_form]), _smooth(e, 2))
    cubic = _cubic_tensor(e) if tensor else lambda a, tau: [cubic(a, tau) for cubic in cubics]
    return RadialForms(e, cubic, second_form, third_form)


def _norms_of(e: RadialExpansion, c: Component, G: Float | None, both: bool) -> tuple[list[Form], list[Form]]:
    """Pieces of |V kappa_2| (only if `both`) and of |V kappa_{>=3}|; G None: through columns."""
    magnitude = e.slice.model.magnitude
    RG = None if G is None else magnitude * G
    seconds = []
    if both:
        seconds = [_flat(e, c, RG, c.P[1], 1), _around(e, c, float(c.P[0] @ (magnitude @ c.P[0])))]
    thirds = [_exact(e, c), *_rest(e, c)]
    if c.P[2].any():
        if RG is not None and G is not None:
            RG *= G
        thirds.append(_flat(e, c, RG, c.P[2], 2))
    return seconds, thirds


def _by_columns(e: RadialExpansion, c: Component, P: Float, power: int) -> Float:
    """(P v)^T (R o G^(o power)) (P v) as a partial trace of products with d^(power+1) columns."""
    scaled = c.v / np.sqrt(e.metric)
    n, d = scaled.shape
    columns = P[:, None] * c.v
    for _ in range(power):
        columns = (columns.reshape(n, -1)[:, :, None] * scaled[:, None, :]).reshape(n, -1)
    products = e.slice.model.magnitude @ columns
    shape = (n, d, d**power)
    return np.tensordot(columns.reshape(shape), products.reshape(shape), axes=([0, 2], [0, 2]))


def _smooth(e: RadialExpansion, order: int) -> Form:
    """K6: |V kappa_{>=order}|^2 from the derivatives of phi at 0; infinite where that does not apply."""
    c = e.slice.model.contraction
    diagonal = np.zeros_like(e.metric)
    for part in e.components:
        size = part.at_zero[order - 2] if part.order >= (3 if order == 3 else 1) else np.inf
        factor = 1.5 * part.R if order == 2 else 5.0 / 3.0 * part.R * part.R
        diagonal = diagonal + c * size * factor * np.abs(part.rho)
    if not np.isfinite(diagonal).all():
        return Form(np.zeros_like(e.J), np.inf)
    return Form(np.diag(diagonal * (1.0 + 1e-12)), TINY)


def _smaller(e: RadialExpansion, one: Form, other: Form) -> Form:
    return one if _size(one, e) <= _size(other, e) else other


def _combine(e: RadialExpansion, pieces: list[Form]) -> Form:
    """(sum of |x_p|)^2 <= sum x_p^2 / w_p for any w_p > 0 of sum 1: here as their sizes."""
    sizes = np.array([np.sqrt(_size(piece, e)) for piece in pieces])
    total = float(sizes.sum())
    if not 0 < total < np.inf:
        d = e.U.shape[1]
        return Form(np.zeros((d, d)), TINY if total == 0 else np.inf)
    shares = np.maximum(sizes / total, 1e-6)
    factors = shares.sum() / shares * (1.0 + 1e-12)
    matrix = sum((f * piece.matrix for f, piece in zip(factors, pieces, strict=True)), 0.0 * pieces[0].matrix)
    return Form(matrix, float(sum(f * p.excess for f, p in zip(factors, pieces, strict=True))))


def _size(form: Form, e: RadialExpansion) -> float:
    """An estimate of the form's largest value: only balances constants, never certifies."""
    return abs(float(np.diagonal(form.matrix) @ e.domain.reach**2)) + form.excess


def _rows(e: RadialExpansion, c: Component, coefficient: Float) -> Form:
    """F4: |V y|^2 for |y_i| <= coefficient_i |a_i|."""
    weights = e.slice.model.diagonal * coefficient * coefficient * e.slack
    return Form(second_moment(weights, c.v), _noise(e) * sum_up(weights * c.X_abs**2))


def _along(e: RadialExpansion, c: Component, coefficient: Float) -> Form:
    """F4: |V y|^2 for |y_i| <= coefficient_i |r|."""
    return _along_r(e, c, sum_up(e.slice.model.diagonal * coefficient * coefficient) * e.slack)


def _along_r(e: RadialExpansion, c: Component, square: float) -> Form:
    """r^2 square <= R |r| square."""
    bounded = max(square, 0.0) + 2.0 * e.error_q / max(c.R * c.R, TINY) if square else 0.0
    return Form(np.diag(0.5 * bounded * c.R * np.abs(c.rho) * e.slack), TINY)


def _around(e: RadialExpansion, c: Component, square: float) -> Form:
    """K8: (r - middle)^2 square, a constant where the middle is not 0."""
    if not c.middle:
        return _along_r(e, c, square)
    d = e.U.shape[1]
    return Form(np.zeros((d, d)), (max(square, 0.0) * c.middle**2 + 2.0 * e.error_q) * e.slack)


def _noise(e: RadialExpansion) -> float:
    """Relative rounding of a sum over centres of products of features."""
    n, d = e.U.shape
    return gamma(n + 2 * d + 100)


def _rest(e: RadialExpansion, c: Component) -> list[Form]:
    """By rows: what kappa has from order three on, less P2 r a and P3 a^3 / 6."""
    two, three = np.abs(c.P[1]), np.abs(c.P[2])
    square = np.maximum(*c.remainder.square)
    whole = square * (c.X + c.R)
    along_a = three * c.R * (0.5 * c.X + 0.5 * c.R) + whole
    along_r = 0.5 * two * c.R + three * c.R * c.R / 6.0 + whole + c.remainder.linear
    pieces = [_rows(e, c, along_a), _along(e, c, along_r)]
    constant = np.maximum(*c.remainder.constant)
    if constant.any():
        d = e.U.shape[1]
        total = sum_up(e.slice.model.diagonal * constant * constant) * e.slack
        pieces.append(Form(np.zeros((d, d)), total))
    return pieces


def _exact(e: RadialExpansion, c: Component) -> Form:
    """|V P2 r a|^2 <= R^2 d^T (P2 v)^T R (P2 v) d."""
    scaled = c.P[1][:, None] * c.v
    product = scaled.T @ (e.slice.model.magnitude @ scaled)
    size = e.weighted(np.abs(c.P[1]) * c.X_abs) * e.weighted(np.abs(c.P[1]) * c.X_abs * _unit(e))
    factor = c.R * c.R * e.slack
    return Form(0.5 * factor * (product + product.T), 2.2 * factor * size)


def _unit(e: RadialExpansion) -> Float:
    """Relative error of one centre's contribution to a flattened form (n,)."""
    n, d = e.U.shape
    return e.relative + gamma(2 * n + 4 * d + 120)


def _norms(e: RadialExpansion, c: Component) -> Float:
    """|L^-1 v_i| span, up (n,): |a_i| <= norm_i |L d| / span, |G_ij| <= norm_i norm_j / span^2."""
    squares = np.einsum("ij,ij->i", c.v, c.v / e.metric)
    return np.asarray(np.sqrt(squares) * e.span * (1.0 + 4.0 * gamma(2 * len(e.metric) + 24)))


def _flat(e: RadialExpansion, c: Component, RG: Float | None, P: Float, power: int) -> Form:
    """C2, C3: |V P a^(power+1) / (power+1)!|^2 with RG = R o G^(o power); None: through columns."""
    if RG is None:
        product = _by_columns(e, c, P, power)
    else:
        scaled = P[:, None] * c.v
        product = scaled.T @ (RG @ scaled)
    span2 = max(e.span * e.span, TINY)
    norms = _norms(e, c)
    size = np.abs(P) * norms ** (power + 1) / span2 ** (0.5 * power)
    factor = span2**power / (4.0 if power == 1 else 36.0) * e.slack
    error = 2.2 * e.weighted(size * _unit(e)) * e.weighted(size)
    return Form(0.5 * factor * (product + product.T), factor * error)


def _parts(e: RadialExpansion, c: Component) -> tuple[Float, Float]:
    """Z of the cubic sum_i (Z_i.d)(v_i.d)^2 (n, d), as a Z[0] + tau Z[1]."""
    third = c.P[2] / 6.0
    Z_M = -(e.slice.weights * third)[:, None] * c.v
    Z_q = -2.0 * (e.centred[0] * third)[:, None] * c.v + c.P[1][:, None] * e.RU
    return Z_M, Z_q


def is_joined(d: int) -> bool:
    """Whether r (l.d) is part of the cubic; with few features a supremum of its own is sharper (measured)."""
    return COLUMN_DIMENSIONS < d <= TENSOR_DIMENSIONS


def lines(e: RadialExpansion, i: int) -> Float:
    """l of the cubic r (l.d) of a component (2, d): a l[0] + tau l[1]."""
    c = e.components[i]
    weights = np.stack([e.slice.weights, 2.0 * e.centred[0]])
    found = -(weights * c.P[1]) @ c.v
    found[1] += 2.0 * (e.RP[:, i] @ e.U)
    return np.asarray(found)


def _cubic_tensor(e: RadialExpansion) -> Callable[[float, float], list[Form]]:
    """C1 with the symmetric tensor, r (l.d) too where it joins: what is bounded is the float tensor, its
    rounding is in the errors.
    """
    n, d = e.U.shape
    root = np.sqrt(e.metric)
    tensors = np.zeros((2, d, d, d))
    every = np.arange(d)
    for i, c in enumerate(e.components):
        scaled = c.v / root
        pairs = (scaled[:, :, None] * scaled[:, None, :]).reshape(n, d * d)
        Z = np.concatenate([part / root for part in _parts(e, c)], axis=1)
        tensors += (Z.T @ pairs).reshape(2, d, d, d)
        if is_joined(d):
            tensors[:, :, every, every] += (lines(e, i) / root)[:, :, None] * (0.5 * c.rho / e.metric)
    tensors = (tensors + tensors.transpose(0, 2, 1, 3) + tensors.transpose(0, 3, 2, 1)) / 3.0
    unit = np.outer(root, root)

    def form(a: float, tau: float) -> list[Form]:
        flat = (a * tensors[0] + tau * tensors[1]).reshape(d, d * d)
        N = flat @ flat.T
        size = float(np.sqrt(np.diagonal(N)) @ (root * e.domain.reach))
        return [Form(symmetric(N) * unit, 2.2 * gamma(d * d + 40) * size * size * 1.01 + TINY)]

    return form


def _cubic_flat(
    e: RadialExpansion, c: Component, G2: Float, only: float | None
) -> Callable[[float, float], Form]:
    """C1 with N = Z^T (G o G) Z, quadratic in tau, and C5 for its rounding."""
    Z_M, Z_q = _parts(e, c)
    span2 = max(e.span * e.span, TINY)
    squares = _norms(e, c) ** 2
    unit = _unit(e)
    M = np.abs(e.slice.weights) * np.abs(c.P[2]) * c.X_abs * squares / 6.0
    cube, square = np.abs(c.P[2]) * c.X_abs * squares / 3.0, np.abs(c.P[1]) * squares
    first = np.abs(e.U) @ e.domain.reach
    sizes = [sum_up(M), sum_up(np.abs(e.centred[0]) * cube) + e.weighted(square) * e.weighted(first)]
    sizes[1] += e.weighted(cube) * e.error_r
    drift = e.weighted(square * unit) * e.weighted(first) + e.weighted(square) * e.weighted(first * unit)
    errors = [
        sum_up(M * unit),
        sum_up(np.abs(e.centred[0]) * cube * unit) + e.weighted(cube) * e.error_r + drift,
    ]

    def excess(a: float, tau: float) -> float:
        size = (a * sizes[0] + abs(tau) * sizes[1]) / span2
        error = (a * errors[0] + abs(tau) * errors[1]) / span2
        return 2.2 * size * error + TINY

    if only is not None:
        Z = Z_M + only * Z_q
        single = Z.T @ (G2 @ Z)
        single = symmetric(single)
        return lambda a, tau: Form(single, excess(a, tau))
    d = Z_M.shape[1]
    both = np.concatenate([Z_M, Z_q], axis=1)
    N = both.T @ (G2 @ both)
    N = symmetric(N)
    cross = N[:d, d:] + N[d:, :d]
    return lambda a, tau: Form(a * N[:d, :d] + (a * tau) * cross + (tau * tau) * N[d:, d:], excess(a, tau))

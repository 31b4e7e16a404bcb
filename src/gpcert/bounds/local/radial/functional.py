"""A certified lower bound of a mu - tau S + kappa for any radial kernel (docs/maths/kernels.md, Theorem K).

With kappa_i = k_i(x) - k_i and b = a alpha + 2 tau precision k, exactly

    f = f(reference) + sum_i b_i kappa_i + tau |V kappa|^2 - tau sum_i defect_i kappa_i^2.

Orders one and two are kept, everything else is a quadratic form that vanishes at the reference, or (where a
kernel has no derivatives) a constant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpcert.bounds.local.forms import Form, Pieces, Remainder, balance, largest_root, least, negative_part
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.local.radial.expansion import Component, RadialExpansion, second_moment
from gpcert.bounds.local.radial.forms import RadialForms, is_joined, lines
from gpcert.rounding import TINY, UNDERFLOW, gamma, sum_up
from gpcert.validation import Float


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def radial_lower_bound(
    m: RadialForms, a: float, tau: float, kappa: float, enough: float = np.inf, accuracy: float = 1e-6
) -> FunctionalBound:
    """Theorem K for a in {0, 1}, any tau and kappa (the prior mean belongs into kappa)."""
    bound = least(m.expansion.domain, [radial_pieces(m, a, tau, kappa)], (enough, accuracy))
    return FunctionalBound(bound.value, bound.value, bound.point, bound.rounding, bound.loss)


@np.errstate(all="ignore")
def radial_pieces(m: RadialForms, a: float, tau: float, kappa: float) -> Pieces:
    """Theorem K before the last step."""
    e = m.expansion
    model = e.slice.model
    low, high = e.slice.prior
    centred, square = e.centred
    base = a * e.M0 + kappa - tau * (model.prior - e.q0 + square)
    g = (a * e.slice.weights + 2.0 * tau * e.r) @ e.U
    weights = a * e.slice.weights + 2.0 * tau * centred
    M2, q2 = e.hessians
    parts = [a * M2, 2.0 * tau * q2, 2.0 * tau * e.J]
    excess = a * e.error_M + abs(tau) * (e.error_q + model.excess_variance(e.moved) + (high - low))
    excess += (
        2.0 * abs(tau) * e.error_r * e.weighted(sum((c.largest_remainder for c in e.components), e.k * 0))
    )
    excess += gamma(40) * (
        abs(a * e.M0) + abs(kappa) + 2.0 * abs(tau) * (abs(model.prior) + abs(e.q0) + square)
    )
    excess += (1.0 + abs(tau)) * UNDERFLOW
    return Pieces(base, g, parts, list(_remainders(m, a, tau, weights)), excess)


def _remainders(m: RadialForms, a: float, tau: float, b: Float) -> Iterator[Remainder]:
    e = m.expansion
    size, domain = abs(tau), e.domain
    span = max(e.span, TINY)
    for i in range(len(e.components)):
        yield from _of_component(e, i, a, tau, b)
    for cubic in m.cubic(a, tau):
        # |cubic| <= |L d|^2 sqrt(N(d)) <= span (theta |L d|^2 + N(d) / theta) / 2
        theta = balance(largest_root(cubic, domain), span)
        yield Remainder(
            (span / theta) * cubic.matrix, span * theta * e.metric, 0.5 * (span / theta) * cubic.excess
        )
    if size > 0:
        # 2 |tau| |V kappa_1| |V kappa_{>=3}| <= |tau| (theta J(d) + third(d) / theta)
        first = Form(e.J_size, e.error_q)
        theta = balance(largest_root(m.third, domain), largest_root(first, domain))
        yield Remainder(2.0 * size * theta * e.J_size, None, size * theta * first.excess)
        yield Remainder((2.0 * size / theta) * m.third.matrix, None, 0.0, (size / theta) * m.third.excess)
    if tau < 0 or (tau > 0 and not e.slice.model.definite):
        yield Remainder(2.0 * size * m.second.matrix, None, 0.0, size * m.second.excess)


def _of_component(e: RadialExpansion, i: int, a: float, tau: float, b: Float) -> Iterator[Remainder]:
    """What sum_i b_i kappa_i and <V kappa_1, V kappa_2> have beyond order two, but for the cubic in a."""
    c = e.components[i]
    rho = np.abs(c.rho)
    # r (line.d) where it is not in the tensor, r^2 C2 / 2, -r^2 (cube.d) / 2, r^3 C3 / 6
    steepness = 0.0 if is_joined(len(rho)) else _falling(e, c, np.array([a, tau]) @ lines(e, i))
    steepness += 0.5 * c.R * max(-float(b @ c.P[1]), 0.0)
    if c.P[2].any():
        steepness += 0.5 * c.R * _falling(e, c, -((b * c.P[2]) @ c.v))
        steepness += c.R * c.R / 6.0 * max(-float(b @ c.P[2]), 0.0)
        M, q = e.cubes[i]
        # r d^T B d / 2 >= -(R / 2) d^T B^- d
        yield Remainder(c.R * negative_part(a * M + 2.0 * tau * q, e.metric, e.domain.reach), None)
    yield Remainder(None, steepness * e.slack * rho)
    yield from _leftover(e, c, b)


def _falling(e: RadialExpansion, c: Component, line: Float) -> float:
    """sup of -line.d, or of |line.d| where r takes both signs; its rounding is in the errors of M and q."""
    rows = line[None] if c.definite else np.stack([line, -line])
    return max(float(e.domain.support(-rows).max()), 0.0)


def _leftover(e: RadialExpansion, c: Component, b: Float) -> Iterator[Remainder]:
    """sum_i b_i e_i >= -sum b^- e^high - sum b^+ e^low."""
    up, down = np.maximum(b, 0.0), np.maximum(-b, 0.0)
    rest = c.remainder
    square = (up * rest.square[0] + down * rest.square[1]) * e.slack
    rho = np.abs(c.rho)
    if square.any():
        along_a, along_r = c.split
        weights = square * along_a
        n, d = c.v.shape
        noise = gamma(n + 2 * d + 100) * sum_up(weights * c.X_abs**2)
        yield Remainder(2.0 * second_moment(weights, c.v), sum_up(square * along_r) * c.R * rho, noise)
    if rest.linear.any():
        yield Remainder(None, sum_up(down * rest.linear) * e.slack * rho)
    constant = sum_up(up * rest.constant[0] + down * rest.constant[1]) * e.slack
    if not constant <= TINY:  # NaN is a constant, too
        yield Remainder(None, None, 0.0, constant)

"""Bounds of any radial kernel around a reference (docs/maths/kernels.md): Theorem K, and the planes of
levels (G5).

With kappa_i = k_i(x) - k_i and b = a alpha + 2 tau precision k, exactly

    f = f(reference) + sum_i b_i kappa_i + tau |V kappa|^2 - tau sum_i defect_i kappa_i^2.

Orders one and two are kept, everything else is a quadratic form that vanishes at the reference, or (where
a kernel has no derivatives) a constant. A plane has tau = 0 and weights of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.forms import (
    Form,
    FunctionalBound,
    Pieces,
    Remainder,
    Supported,
    balance,
    largest_root,
    least,
    negative_part,
)
from gpcert.bounds.local.planes import support
from gpcert.bounds.local.radial.expansion import Component, RadialExpansion, expand_radial, second_moment
from gpcert.bounds.local.radial.forms import RadialForms, forms_of, is_joined, lines
from gpcert.bounds.local.radial.slice import RadialSlice, SliceGroup
from gpcert.rounding import TINY, UNDERFLOW, UNIT, gamma, sum_up
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


#: Where the plane's own kernel is touched by a line in r, as a share of the largest r; any is sound.
_TOUCH = 0.25


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def radial_plane(
    slice_: RadialSlice, domain: Domain, reference: Float, level: Level | Line, largest: float
) -> Supported | None:
    """A lower bound of the plane at `reference` (d,) over the set; None: none is known."""
    pieces = plane_pieces(slice_, domain, reference, level, largest)
    if pieces is None:
        return None
    bound = least(domain, [pieces], (0.0, 1e-6))
    found = FunctionalBound(bound.value, bound.value, bound.point, bound.rounding, bound.loss, bound.slopes)
    here = pieces.base - pieces.excess - sum(each.rounding + each.constant for each in pieces.remainders)
    return Supported(found, remnant(domain, bound.value, bound.slopes) or domain, here)


@np.errstate(all="ignore")
def plane_pieces(
    slice_: RadialSlice, domain: Domain, reference: Float, level: Level | Line, largest: float
) -> Pieces | None:
    """The plane before the last step: Theorem K for its weights, tau = 0."""
    model, alpha = slice_.model, slice_.weights
    found = support(model, level, slice_.mean, slice_.prior, slice_.latent(reference)[1], largest)
    if found is None:
        return None
    share, curl = kernel_below(slice_, domain)
    curl = curl * (found.still * (1.0 + 64 * UNIT))
    if not np.isfinite(curl).all():
        return None
    k, _ = slice_.values(reference)
    r = model.precision @ k
    b = found.weights(alpha, r)
    e = expand_radial(slice_, domain, reference, b < 0)
    unit = e.relative + gamma(len(k) + 60)
    excess = found.rounding(model, alpha, r, e.most, (k + slice_.tiny) * unit) + found.lost
    if found.factor > 0:  # R is positive semidefinite up to its defect, which acts on differences of k
        excess += 0.5 * found.factor * model.excess_variance(e.moved)
    excess += gamma(40) * (abs(found.constant) + found.still)
    own = replace(e, slice=replace(slice_, own=b), error_M=sum_up(np.abs(b) * e.grown * unit) * 1.01)
    pieces = radial_pieces(forms_of(own, 0.0), 1.0, 0.0, found.constant)
    parts = [*pieces.parts, -np.diag(curl)]
    still = found.still * share * (1.0 - 4 * UNIT)
    return pieces._replace(base=pieces.base + still, parts=parts, excess=pieces.excess + excess)


def has_a_kink(slice_: RadialSlice) -> bool:
    """Whether a factor's slope at 0 is infinite."""
    slopes = [group.phi.derivatives(np.zeros(1), 1)[1] for term in slice_.terms for group in term]
    return not np.isfinite(slopes).all()


def kernel_below(slice_: RadialSlice, domain: Domain) -> tuple[float, Float]:
    """G5: (share, curl (d,)) with k(x, xh) / s2 >= share - sum_j curl_j d_j^2 / 2 for all x."""
    curl, low, high = np.zeros(len(slice_.lengthscale)), 0.0, 0.0
    for term in slice_.terms:
        ends = [_tangent(slice_, group, domain) for group in term]
        values = [value for value, _ in ends]
        low += math.prod(values)
        high += float(np.prod([float(group.phi.value(np.zeros(1))[0]) for group in term]))
        for i, (group, (_, slope)) in enumerate(zip(term, ends, strict=True)):
            curl = curl + math.prod([*values[:i], *values[i + 1 :]]) * slope * group.rho
    slack = 256 * UNIT * (1 + len(slice_.terms))
    return low / high * (1.0 - slack), np.asarray(curl / high * (1.0 + slack))


def away(slice_: RadialSlice, domain: Domain) -> float:
    """At least 1 - k(x, xh) / s2 on the domain."""
    share, curl = kernel_below(slice_, domain)
    return (max(1.0 - share, 0.0) + 0.5 * domain.norm(curl) ** 2) * (1.0 + 32 * UNIT)


def _tangent(slice_: RadialSlice, group: SliceGroup, domain: Domain) -> tuple[float, float]:
    """(value, slope), down and up, with phi(r) >= value - slope r: the tangent at a point of the range."""
    touch = np.array([_TOUCH * 0.5 * domain.norm(group.rho) ** 2])
    relative = float(slice_.relative(group, touch)[0])
    value, slope = (abs(float(each[0])) for each in group.phi.derivatives(touch, 1))
    return (value + slope * float(touch[0])) * (1.0 - 2.0 * relative), slope * (1.0 + 2.0 * relative)

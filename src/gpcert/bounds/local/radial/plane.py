"""The supporting plane of a level for any radial kernel (docs/maths/kernels.md, G5)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.levels.curves import Level, Line
from gpcert.bounds.local.forms import Pieces, least
from gpcert.bounds.local.planes import support
from gpcert.bounds.local.protocol import FunctionalBound, Supported
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.forms import forms_of
from gpcert.bounds.local.radial.functional import radial_pieces
from gpcert.bounds.local.radial.slice import RadialSlice, SliceGroup
from gpcert.rounding import UNIT, gamma, sum_up
from gpcert.validation import Float

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

"""The supporting plane of a level for any radial kernel (docs/maths-kernels.md, G5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.forms import Pieces, least
from gpcert.bounds.local.planes import support
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.forms import forms_of
from gpcert.bounds.local.radial.functional import radial_pieces
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import UNIT, gamma, sum_up
from gpcert.validation import Float


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def radial_plane(
    slice_: RadialSlice, domain: Domain, reference: Float, level: Level, largest: float
) -> FunctionalBound | None:
    """A lower bound of the plane at `reference` (d,) over the set; None: none is known."""
    pieces = plane_pieces(slice_, domain, reference, level, largest)
    if pieces is None:
        return None
    bound = least(domain, [pieces], (0.0, 1e-6))
    return FunctionalBound(bound.value, bound.value, bound.point, bound.rounding, bound.loss)


@np.errstate(all="ignore")
def plane_pieces(
    slice_: RadialSlice, domain: Domain, reference: Float, level: Level, largest: float
) -> Pieces | None:
    """The plane before the last step: Theorem K for its weights, tau = 0."""
    model, alpha = slice_.model, slice_.weights
    found = support(model, level, slice_.mean, slice_.prior, slice_.latent(reference)[1], largest)
    if found is None:
        return None
    curl = curl_of(slice_) * (found.still * (1.0 + 64 * UNIT))
    if not np.isfinite(curl).all():  # a kernel with a kink at 0
        return None
    e = expand_radial(slice_, domain, reference)
    unit = e.relative + gamma(len(e.k) + 60)
    b = found.weights(alpha, e.r)
    excess = found.rounding(model, alpha, e.r, e.most, (e.k + slice_.tiny) * unit) + found.lost
    if found.factor > 0:  # R is positive semidefinite up to its defect, which acts on differences of k
        excess += 0.5 * found.factor * model.excess_variance(e.moved)
    excess += gamma(40) * (abs(found.constant) + found.still)
    own = replace(e, slice=replace(slice_, own=b), error_M=sum_up(np.abs(b) * e.grown * unit) * 1.01)
    pieces = radial_pieces(forms_of(own, 0.0), 1.0, 0.0, found.constant)
    parts = [*pieces.parts, -np.diag(curl)]
    return pieces._replace(base=pieces.base + found.still, parts=parts, excess=pieces.excess + excess)


def curl_of(slice_: RadialSlice) -> Float:
    """(d,), up, with k(x, xh) / s2 >= 1 - sum_j curl_j d_j^2 / 2: convex, falling, positive factors (G5)."""
    curl, total = np.zeros(len(slice_.lengthscale)), 0.0
    for term in slice_.terms:
        at_zero = [group.phi.derivatives(np.zeros(1), 1) for group in term]
        product = float(np.prod([values[0][0] for values in at_zero]))
        total += product
        for group, (value, slope) in zip(term, at_zero, strict=True):
            curl = curl + product * abs(float(slope[0]) / float(value[0])) * group.rho
    return np.asarray(curl / total * (1.0 + 256 * UNIT * (1 + len(slice_.terms))))

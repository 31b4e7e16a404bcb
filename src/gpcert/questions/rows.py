"""Bounds of many boxes of one question together, in the place of one after the other, where there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpcert.bounds.geometry.domain import BoxShape, Shape
from gpcert.bounds.interface import BoxBound
from gpcert.bounds.levels.curves import ProbitCurves
from gpcert.bounds.one.latent import LatentBound
from gpcert.bounds.one.radial import RadialBound
from gpcert.bounds.one.sign import SignBound
from gpcert.posterior import Posterior
from gpcert.validation import Float, Mask

if TYPE_CHECKING:
    from gpcert.engine.bound import Quantity

#: Roots and tangents of other links than the probit lose up to 0.004 of a probability, on boxes of any size.
_ROUGH = 0.01
#: Region, a point with the standing features, the moving ones.
Where = tuple[Shape, Float, Mask]


def in_rows(
    post: Posterior, bound: BoxBound, where: Where, sign: float, tolerance: float = np.inf
) -> BoxBound:
    """`bound`, of a probability by the latent (sign 1) or its negative (-1), or of a latent, in rows: of
    stationary kernels other than the Gaussian, on boxes, where no proof needs halves of boxes and what roots
    and tangents of the link lose is small beside the tolerance.
    """
    shape, x, moving = where
    base = bound.base if isinstance(bound, LatentBound | SignBound) else bound
    boxes = isinstance(shape, BoxShape) and shape.capped and moving.any()
    if not (boxes and isinstance(base, RadialBound)):
        return bound
    latent = bound if isinstance(bound, LatentBound) else None
    if latent is None and not isinstance(base.curves, ProbitCurves) and tolerance < _ROUGH:
        return bound
    # On demand: other questions need nothing of the engine.
    from gpcert.engine.backend import Backend
    from gpcert.engine.bound import Latent, Probability, RowsBound
    from gpcert.engine.facts import facts_of, knows
    from gpcert.engine.values import amplitudes

    if not knows(post):
        return bound
    facts = facts_of(post, np.flatnonzero(moving), Backend())
    if not facts.has_planes:
        return bound
    if latent is not None:
        quantity: Quantity = Latent(latent.variance, latent.sign)
    else:
        quantity = Probability(base.curves, sign)
    with np.errstate(all="ignore"):
        around = amplitudes(facts, x[None, facts.rest])
    return RowsBound(latent or base, quantity, facts, around)

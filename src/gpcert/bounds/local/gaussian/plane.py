"""The supporting plane of a level for the Gaussian kernel (docs/maths.md, G1, G2 and G4)."""

from __future__ import annotations

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.planes import support
from gpcert.rounding import UNIT, exp_up
from gpcert.validation import Float


def plane_at(
    slice_: Slice, domain: Domain, reference: Float, level: Level, largest: float
) -> KernelSum | None:
    """The plane of a level at `reference` (d,), raw units; S <= `largest` on the slice. None: none known.

    Where the sum is >= 0, mu >= m_p(max(S, 0)).
    """
    model, alpha = slice_.model, slice_.weights
    S = slice_.latent(reference)[1]
    found = support(model, level, slice_.mean, slice_.prior, S, largest)
    if found is None:
        return None
    v, k, relative, r = slice_.visit(reference)
    around = Covariances(slice_, domain, v, k, relative)
    lost = found.lost
    if found.factor > 0:  # R is positive semidefinite up to its defect
        lost += 0.5 * found.factor * model.excess_variance(around.rough)
    excess = found.rounding(model, alpha, r, around.rough, (k + slice_.tiny) * around.unit)
    excess = (excess + lost * exp_up(around.radius)) * (1.0 + 16 * UNIT)
    return KernelSum(around, found.weights(alpha, r), found.constant, found.still, excess)

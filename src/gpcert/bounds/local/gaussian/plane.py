"""Theorem H: mu - m_p(S) from below by a supporting hyperplane in feature space, a plain sum of kernels.

C(x, x') = (prior / s2) k(x, x') - k(x)^T R k(x') is nearly positive semidefinite (F3), so Cauchy-Schwarz gives
sqrt(c + S(x)) sqrt(c + S(xh)) >= c + C(x, xh). Where the level curve falls with S (p <= 1/2), mu - m_p(S) is
therefore at least a sum of kernels of x, equal in value and gradient at the reference xh (H1). Where it
rises, a tangent -tau S is one of |V k(x)|^2, which is convex as well (H2). No range of S over the set is
needed.
"""

from __future__ import annotations

import math

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.rounding import UNIT, exp_up, gamma, sqrt_down, sqrt_up, sum_up
from gpcert.validation import Float

__all__ = ["plane_at"]

#: Planes are for models whose variance is negative by rounding alone: this share of the prior variance.
_DEEPEST = 1e-3


def plane_at(
    slice_: Slice, domain: Domain, reference: Float, level: Level, largest: float
) -> KernelSum | None:
    """The plane of a level at `reference` (d,), raw units; S <= `largest` on the slice. None: none known.

    Where the sum is >= 0, mu >= m_p(max(S, 0)).
    """
    model = slice_.model
    lift = model.deepest  # inf unless definite
    if not lift <= _DEEPEST * model.prior:
        return None
    v, k, relative, r = slice_.visit(reference)
    around = Covariances(slice_, domain, v, k, relative)
    grow = exp_up(around.radius)
    low, high = slice_.latent(reference)[1]
    # e^r |k(x)^T (r - R k(xh))|: the stored r is a rounded product with rounded kernels.
    wrong = model.weighted(around.rough) * model.weighted((k + slice_.floor) * around.unit) * 1.02
    found = (_tangent if level.concave else _root)(slice_, level, (low, high), lift, largest)
    if found is None:
        return None
    factor, still, constant, lost = found
    b = slice_.weights + factor * r
    size = abs(factor)
    excess = size * wrong + gamma(8) * sum_up((abs(slice_.weights) + size * abs(r)) * around.rough)
    if factor > 0:  # R is positive semidefinite up to its defect, which acts on differences of k
        lost += 0.5 * factor * model.excess_variance(around.rough)
    return KernelSum(around, b, constant, still, (excess + lost * grow) * (1.0 + 16 * UNIT))


def _root(
    slice_: Slice, level: Level, S: tuple[float, float], lift: float, largest: float
) -> tuple[float, float, float, float] | None:
    """H1: (factor of R k(xh), still, constant, what may be missing), for a curve that falls with S."""
    root = level.root(0.5 * (max(S[0], 0.0) + max(S[1], 0.0)), largest)
    if root is None:
        return None
    steep, c, kappa = root
    longest = sqrt_up(c + max(S[1] + lift, 0.0)) * (1.0 + 8 * UNIT)
    factor = steep / longest * (1.0 - 8 * UNIT)  # any smaller one is sound
    constant = kappa + slice_.mean + factor * c
    lost = steep * lift / (sqrt_down(c) + sqrt_down(c + lift)) * (1.0 + 16 * UNIT)
    lost += 8 * UNIT * (abs(kappa) + abs(slice_.mean) + factor * c)
    return -factor, factor * slice_.model.prior * (1.0 - 4 * UNIT), constant, lost


def _tangent(
    slice_: Slice, level: Level, S: tuple[float, float], lift: float, largest: float
) -> tuple[float, float, float, float] | None:
    """H2, likewise, for a tangent of a curve that rises with S."""
    tau, kappa = level.tangent(0.5 * (S[0] + S[1]), largest)
    if not (tau >= 0 and math.isfinite(kappa)):
        return None
    prior = slice_.model.prior
    taken = tau * (2.0 * prior - S[0] + lift)  # tau (prior + q0 + lift), q0 <= prior - S[0]
    sizes = abs(kappa) + abs(slice_.mean) + tau * (2.0 * abs(prior) + abs(S[0]) + lift)
    return 2.0 * tau, 0.0, kappa + slice_.mean - taken, 16 * UNIT * sizes

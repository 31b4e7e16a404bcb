"""Supporting planes: which sum of kernels lies below mu - m_p(S), for any kernel (docs/maths.md, G1 to G3).

C(x, x') = (prior / s2) k(x, x') - k(x)^T R k(x') is nearly positive semidefinite (F3): by Cauchy-Schwarz
sqrt(c + S(x)) sqrt(c + S(xh)) >= c + C(x, xh). Where the level curve falls with S (p <= 1/2), mu - m_p(S) is
therefore at least a sum of kernels of x, equal in value and gradient at the reference xh (G1). Where it
rises, a tangent -tau S is one of |V k(x)|^2, which is convex as well (G2). No range of S over the set is
needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gpcert.bounds.facts.model import Model
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.enclosures import Interval
from gpcert.rounding import UNIT, gamma, sqrt_down, sqrt_up, sum_up
from gpcert.validation import Float

#: Planes are for models whose variance is negative by rounding alone: this share of the prior variance.
_DEEPEST = 1e-3


class Bend(NamedTuple):
    """What G6 needs of G1: steep, a positive lower and an upper end of A, and at least prior and lift; G7
    of G2: 2 tau, and A is infinite.
    """

    steep: float
    shortest: float
    longest: float
    prior: float

    @property
    def falls(self) -> bool:
        """Whether the curve falls with S."""
        return self.shortest < math.inf


class Support(NamedTuple):
    """mu - m_p(max(S, 0)) >= sum_i (alpha_i + factor r_i) k_i(x) + still k(x, xh) / s2 + constant - lost,
    with r = R k(xh).
    """

    factor: float
    still: float
    constant: float
    lost: float
    bend: Bend

    def weights(self, alpha: Float, r: Float) -> Float:
        """b (n,)."""
        return alpha + self.factor * r

    def rounding(self, model: Model, alpha: Float, r: Float, most: Float, error: Float) -> float:
        """What b costs if r and b are rounded, k_i(x) <= most (n,), and k(xh) is wrong by `error` (n,)."""
        size = abs(self.factor)
        wrong = size * model.weighted(most) * model.weighted(error) * 1.02
        return wrong + gamma(8) * sum_up((abs(alpha) + size * abs(r)) * most)


def support(
    model: Model, level: Level, mean: float, prior: Interval, S: Interval, largest: float
) -> Support | None:
    """For a reference with its variance in S, and variances up to `largest`; None: no plane is known."""
    lift = model.lift + 2.0 * (prior[1] - prior[0])
    if not lift <= _DEEPEST * prior[0] or (level.concave and not model.definite):
        return None
    find = _rising if level.concave else _falling
    return find(level, mean, prior, S, lift, largest)


def _falling(
    level: Level, mean: float, prior: Interval, S: Interval, lift: float, largest: float
) -> Support | None:
    """G1, for a curve that falls with S."""
    root = level.root(0.5 * (max(S[0], 0.0) + max(S[1], 0.0)), largest)
    if root is None:
        return None
    steep, c, kappa = root
    longest = sqrt_up(c + max(S[1] + lift, 0.0)) * (1.0 + 8 * UNIT)
    factor = steep / longest * (1.0 - 8 * UNIT)  # any smaller one is sound
    lost = steep * lift / (sqrt_down(c) + sqrt_down(c + lift)) * (1.0 + 16 * UNIT)
    lost += 8 * UNIT * (abs(kappa) + abs(mean) + factor * c)
    shortest = sqrt_down(c + max(S[0] + lift, 0.0)) * (1.0 - 8 * UNIT)
    bend = Bend(steep, shortest, longest, (prior[1] + lift) * (1.0 + 4 * UNIT))
    return Support(-factor, factor * prior[0] * (1.0 - 4 * UNIT), kappa + mean + factor * c, lost, bend)


def _rising(
    level: Level, mean: float, prior: Interval, S: Interval, lift: float, largest: float
) -> Support | None:
    """G2, for a tangent of a curve that rises with S."""
    tau, kappa = level.tangent(0.5 * (S[0] + S[1]), largest)
    if not (tau >= 0 and math.isfinite(kappa)):
        return None
    taken = tau * (2.0 * prior[1] - S[0] + lift)  # tau (prior + q0 + lift), q0 <= prior - S
    sizes = abs(kappa) + abs(mean) + tau * (2.0 * prior[1] + abs(S[0]) + lift)
    bend = Bend(2.0 * tau, math.inf, math.inf, (prior[1] + lift) * (1.0 + 4 * UNIT))
    return Support(2.0 * tau, 0.0, kappa + mean - taken, 16 * UNIT * sizes, bend)

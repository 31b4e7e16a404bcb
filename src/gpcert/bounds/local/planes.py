"""Supporting planes: sums of kernels below mu - m_p(S), any kernel (docs/maths/bounds.md, G1 to G3, G8).

C(x, x') = (prior / s2) k(x, x') - k(x)^T R k(x') is nearly positive semidefinite (F3): by Cauchy-Schwarz
sqrt(c + S(x)) sqrt(c + S(xh)) >= c + C(x, xh). Where the level curve falls with S (p <= 1/2), mu - m_p(S) is
therefore at least a sum of kernels of x, equal in value and gradient at the reference xh (G1). Where it
rises, a tangent -tau S is one of |V k(x)|^2, which is convex as well, up to what a negative part of R costs
(G2, J4). The variance itself has both kinds (G8). No range of S over the set is needed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.bounds.levels.curves import Level, Line, Root
from gpcert.bounds.local.enclosures import Interval
from gpcert.rounding import UNIT, gamma, sqrt_down, sqrt_up, sum_up
from gpcert.validation import Float

#: Planes are for models whose variance is negative by rounding alone: this share of the prior variance.
_DEEPEST = 1e-3


class Bend(NamedTuple):
    """What G6 needs of G1: steep, a positive lower and an upper end of A; G7 and G8 of a line: 2 |tau|, and A
    is infinite.
    """

    steep: float
    shortest: float
    longest: float
    falls: bool  #: whether the curve falls with S


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


def lift_of(model: Model, prior: Interval) -> float:
    """delta: S >= -delta everywhere; inf: not known."""
    return model.lift + 2.0 * (prior[1] - prior[0])


def most_of(model: Model, prior: Interval) -> float:
    """At least E of G6: the square of psi(g) is at most E / s2 that of g in the RKHS."""
    negative = model.contraction_negative * (model.variance + prior[1] - prior[0])
    defect = model.excess_variance(np.full(len(model.centres), model.variance))
    return (prior[1] + lift_of(model, prior) + negative + defect) * (1.0 + 16 * UNIT)


def variances(model: Model, prior: Interval, S: Interval, away: float, largest: float) -> Interval:
    """X8: max(S, 0) where 1 - k(x, xh) / s2 <= away, S at the reference in `S`, and at most `largest`."""
    lift = lift_of(model, prior)
    step = sqrt_up(2.0 * most_of(model, prior) * away * (1.0 + 16 * UNIT))
    if not step < math.inf:
        return 0.0, largest
    low = max(sqrt_down(max(S[0] + lift, 0.0)) - step, 0.0) ** 2 * (1.0 - 16 * UNIT) - lift * (1.0 + 4 * UNIT)
    high = (sqrt_up(max(S[1] + lift, 0.0)) + step) ** 2 * (1.0 + 16 * UNIT) - lift * (1.0 - 4 * UNIT)
    high = min(max(high, 0.0), largest)
    return min(max(low - 8 * UNIT * lift, 0.0), high), high


def support(
    model: Model, level: Level | Line, mean: float, prior: Interval, S: Interval, largest: float
) -> Support | None:
    """For a reference with its variance in S, and variances up to `largest`; None: no plane is known.

    A line (tau, kappa) instead of a level: of mu - tau S + kappa itself, S not clipped.
    """
    lift = lift_of(model, prior)
    if not lift <= _DEEPEST * prior[0]:
        return None
    middle = 0.5 * (max(S[0], 0.0) + max(S[1], 0.0))
    if not isinstance(level, Level):
        above, clipped = level, 0.0
    elif not middle < math.inf:
        return None
    elif not level.rises(middle, largest):
        return _falling(level.root(middle, largest), mean, prior, S, lift)
    else:
        above, clipped = level.tangent(middle, largest), lift
    return _line(model, above, mean, prior, S, (lift, clipped))


def _falling(root: Root | None, mean: float, prior: Interval, S: Interval, lift: float) -> Support | None:
    """G1, for a curve that falls with S."""
    if root is None:
        return None
    steep, c, kappa = root
    longest = sqrt_up(c + max(S[1] + lift, 0.0)) * (1.0 + 8 * UNIT)
    if not math.isfinite(longest):  # inf stands for a line
        return None
    factor = steep / longest * (1.0 - 8 * UNIT)  # any smaller one is sound
    lost = steep * lift / (sqrt_down(c) + sqrt_down(c + lift)) * (1.0 + 16 * UNIT)
    lost += 8 * UNIT * (abs(kappa) + abs(mean) + factor * c)
    shortest = sqrt_down(c + max(S[0] + lift, 0.0)) * (1.0 - 8 * UNIT)
    bend = Bend(steep, shortest, longest, True)
    return Support(-factor, factor * prior[0] * (1.0 - 4 * UNIT), kappa + mean + factor * c, lost, bend)


def _line(
    model: Model, line: Line, mean: float, prior: Interval, S: Interval, lifts: tuple[float, float]
) -> Support | None:
    """G2, or G8 where tau < 0; `lifts`: of the precision, and of S where it is clipped."""
    (tau, kappa), (lift, clipped), size = line, lifts, abs(line[0])
    # J4: what the negative part may cost, times 1 - k(x, xh) / s2
    fall = 2.0 * max(tau, 0.0) * model.contraction_negative * (model.variance + prior[1] - prior[0])
    fall *= 1.0 + 16 * UNIT
    if not math.isfinite(fall + kappa):
        return None
    bend = Bend(2.0 * size, math.inf, math.inf, tau < 0)
    sizes = abs(kappa) + abs(mean) + size * (2.0 * prior[1] + abs(S[0]) + abs(S[1]) + lift) + fall
    if tau < 0:
        still, lost = 2.0 * size * prior[0] * (1.0 - 4 * UNIT), 2.0 * size * lift
        return Support(2.0 * tau, still, kappa + mean - size * S[1], lost + 16 * UNIT * sizes, bend)
    taken = tau * (2.0 * prior[1] - S[0] + clipped) + fall  # tau (prior + q0 + lift), q0 <= prior - S
    return Support(2.0 * tau, fall, kappa + mean - taken, 16 * UNIT * sizes, bend)

"""The supporting plane of each row (docs/maths/bounds.md, G1 and G2; any precision: docs/maths/batches.md,
J4).
"""

from __future__ import annotations

from typing import NamedTuple

from gpcert.engine.backend import Array
from gpcert.engine.lines import Lines
from gpcert.engine.rounding import sqrt_down, sqrt_up
from gpcert.engine.values import Points
from gpcert.rounding import UNIT, gamma


class Plane(NamedTuple):
    """mu - m_p(S) >= sum_i b_i k_i(x) + still k(x, xh)/s2 + constant - lost - bend 2(1 - e^{-r}), b (N, n).

    `size` (N,): at least sum_i |b_i| amplitude_i; `blur` (N,): of the rounding of b, in e^r f e^{-R};
    `parts` (N, j): b in terms of the functions that J23 knows, or None.
    """

    b: Array
    still: Array
    constant: Array
    lost: Array
    bend: Array
    size: Array
    blur: Array
    parts: Array = None

    def take(self, rows: Array) -> Plane:
        """Those of some rows."""
        return Plane(*(None if each is None else each[rows] for each in self))


def mean_plane(at: Points, sign: Array) -> Plane:
    """The mean of a class alone: sign (N,) = 1 for class 1, -1 for class 0."""
    facts, zero = at.facts, sign * 0.0
    size = zero + at.amplitudes.sum(facts.backend.xp.abs(facts.alpha))
    own = sign[:, None]
    return Plane(own * facts.alpha, zero, sign * facts.model.mean, zero, zero, size, zero, own)


def plane(at: Points, sign: Array, line: Lines) -> Plane:
    """G1 where the curve falls with S, G2 where it rises."""
    facts, backend, model = at.facts, at.facts.backend, at.facts.model
    xp, mean, prior, lift = backend.xp, sign * model.mean, model.prior, facts.lift
    low, high = at.supported
    rising, slope, c = line.rising, line.slope, line.c
    # G1: any smaller factor is sound.
    factor = (
        slope / (sqrt_up(backend, c + xp.clip(high + lift, 0.0, None)) * (1.0 + 8 * UNIT)) * (1.0 - 8 * UNIT)
    )
    lost_falling = slope * lift / (sqrt_down(backend, c) + sqrt_down(backend, c + lift)) * (1.0 + 64 * UNIT)
    lost_falling = lost_falling + 16 * UNIT * (xp.abs(line.constant) + xp.abs(mean) + factor * c)
    # G2: q0 <= prior - S.
    taken = slope * (2.0 * prior - low + lift)
    lost_rising = (
        32 * UNIT * (xp.abs(line.constant) + xp.abs(mean) + slope * (2.0 * prior + xp.abs(low) + lift))
    )
    lost_rising = lost_rising + slope * at.amplitudes.defect * (1.0 + 8 * UNIT)
    beta = xp.where(rising, 2.0 * slope, -factor)
    still = xp.where(rising, slope * 0.0, factor * (prior * (1.0 - 8 * UNIT)))
    constant = line.constant + mean + xp.where(rising, -taken, factor * c)
    bend = xp.where(rising, slope, slope * 0.0) * (
        model.contraction_negative * model.variance * (1.0 + 8 * UNIT)
    )
    own = sign[:, None]
    b = own * facts.alpha + beta[:, None] * at.r
    c = at.coefficients
    in_parts = None if c is None else backend.concat([own, beta[:, None] * c], axis=1)
    parts = at.amplitudes.sum(xp.abs(facts.alpha)) + xp.abs(beta) * at.amplitudes.sum(xp.abs(at.r))
    blur = xp.abs(beta) * at.wrong() + gamma(8) * parts
    lost = xp.where(rising, lost_rising, lost_falling)
    return Plane(b, still, constant, lost, bend, parts * (1.0 + 8 * UNIT), blur, in_parts)

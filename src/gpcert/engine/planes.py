"""The supporting plane of each row (docs/maths/bounds.md, G1 and G2; any precision: docs/maths/batches.md,
J4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpcert.engine.backend import Array
from gpcert.engine.lines import Lines
from gpcert.engine.rounding import sqrt_down, sqrt_up
from gpcert.engine.values import Points
from gpcert.rounding import UNIT, gamma


class Square(NamedTuple):
    """What a plane leaves out, all (N,): sigma |the part of psi(x) - psi(xh) that it does not see|^2 (J25).

    `root`: of G1, sigma = steep / (2 sqrt(c + S) on the set), and A lies in [shortest, longest]; else
    sigma = steep / 2. `falls`: psi is the feature of the posterior's covariance, else V k (G7).
    """

    steep: Array
    shortest: Array
    longest: Array
    root: Array
    falls: Array

    def take(self, rows: Array) -> Square:
        """Those of some rows."""
        return Square(*(each[rows] for each in self))


class Plane(NamedTuple):
    """mu - m_p(S) >= sum_i b_i k_i(x) + still k(x, xh)/s2 + constant - lost - bend 2(1 - e^{-r}), b (N, n).

    `size` (N,): at least sum_i |b_i| amplitude_i; `blur` (N,): of the rounding of b, in e^r f e^{-R};
    `parts` (N, j): b in terms of the functions that J23 knows, or None; `square`: None where nothing is known
    of what the plane leaves out.
    """

    b: Array
    still: Array
    constant: Array
    lost: Array
    bend: Array
    size: Array
    blur: Array
    parts: Array = None
    square: Square | None = None

    def take(self, rows: Array) -> Plane:
        """Those of some rows."""
        return Plane(*(_some(each, rows) for each in self))


def _some(each: Array | Square | None, rows: Array) -> Any:
    if isinstance(each, Square):
        return each.take(rows)
    return None if each is None else each[rows]


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
    longest = sqrt_up(backend, c + xp.clip(high + lift, 0.0, None)) * (1.0 + 8 * UNIT)
    factor = slope / longest * (1.0 - 8 * UNIT)
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
    shortest = sqrt_down(backend, c + xp.clip(low + lift, 0.0, None)) * (1.0 - 8 * UNIT)
    square = Square(xp.where(rising, 2.0 * slope, slope), shortest, longest, ~rising, ~rising)
    lost = xp.where(rising, lost_rising, lost_falling)
    return _made(at, sign, beta, Plane(beta, still, constant, lost, bend, beta, beta, None, square))


def variance_plane(at: Points, side: Array, target: Array) -> Plane:
    """G8: S - target where `side` (N,) is 1, -S - target where it is -1; S is not clipped."""
    facts, xp, model = at.facts, at.facts.backend.xp, at.facts.model
    prior, lift, (low, high), up = model.prior, facts.lift, at.supported, side > 0
    zero = target * 0.0
    still = xp.where(up, zero + 2.0 * prior * (1.0 - 8 * UNIT), zero)
    constant = xp.where(up, -high, low - 2.0 * prior) - target
    negative = model.contraction_negative * model.variance * (1.0 + 8 * UNIT)
    below = at.amplitudes.defect * (1.0 + 8 * UNIT) + (0.0 if at.thin is None else lift)
    lost = xp.where(up, zero + 2.0 * lift, zero + below)
    lost = lost + 32 * UNIT * (2.0 * prior + lift + xp.abs(low) + xp.abs(high) + xp.abs(target))
    beta, bend = xp.where(up, zero - 2.0, zero + 2.0), xp.where(up, zero, zero + negative)
    square = Square(zero + 2.0, zero, zero, up & ~up, up)
    return _made(at, zero, beta, Plane(beta, still, constant, lost, bend, beta, beta, None, square))


def _made(at: Points, own: Array, beta: Array, rest: Plane) -> Plane:
    """With the weights own alpha + beta r (N, n)."""
    facts, xp, amplitudes, c = at.facts, at.facts.backend.xp, at.amplitudes, at.coefficients
    b = own[:, None] * facts.alpha + beta[:, None] * at.r
    in_parts = None if c is None else facts.backend.concat([own[:, None], beta[:, None] * c], axis=1)
    size = xp.abs(own) * amplitudes.sum(xp.abs(facts.alpha)) + xp.abs(beta) * amplitudes.sum(xp.abs(at.r))
    blur = xp.abs(beta) * at.wrong() + gamma(8) * size
    square = rest.square if at.thin is None else None
    return rest._replace(b=b, size=size * (1.0 + 8 * UNIT), blur=blur, parts=in_parts, square=square)

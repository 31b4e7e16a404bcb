"""Levels of the links that proofs know (docs/maths/proof.md, V4, V10, V17): probit, logistic, with a floor.

The search knows the curve of a logistic level to 4e-13, which is more than what its answers have to spare, so
it is computed again to a few units in the last place. Nothing here is certified: a checker encloses the
integral itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy.special import ndtr, ndtri

from gpcert.bounds.levels.logistic import LogitCurves, LogitLevel, root_below
from gpcert.bounds.one.level import LevelBound
from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Logit, Probit
from gpcert.proofs.facts import Fact
from gpcert.proofs.five_erf import FiveErfLevels
from gpcert.proofs.levels import Ends, LinkLevels, Place, ProofLevel, ProofPlane, terms_at, variance_at
from gpcert.rounding import down, normal_cdf_down, up
from gpcert.validation import Float

#: Variances beyond it need too many nodes.
_LARGEST = 10.0
#: Nodes reach so many standard deviations beyond where e^u puts its weight; the width of a strip in which all
#: is analytic, at most; how many powers of e the rule is right to; binary digits.
_FAR, _STRIP, _SMALL, _BITS = 12.0, 6.0, 60.0, 100
#: What a checker surely sees of a number, relative to it; and what the rule is surely right to.
_SEEN, _RIGHT = 1e-26, 1e-23


@lru_cache(maxsize=4096)
def sharpened(p: float, S: float, low: float, high: float) -> tuple[float, float]:
    """A narrower enclosure of m_p(S), of one of width about 1e-12; or that itself."""
    if not (0.0 < S <= _LARGEST and high - low < 1e-9):
        return low, high
    if p <= 0.5:
        return _narrower(p, S, low, high, p)
    low, high = _narrower(1.0 - p, S, -high, -low, 1.0)  # exact: p is not small
    return -high, -low


def _narrower(q: float, S: float, low: float, high: float, unit: float) -> tuple[float, float]:
    """Of a level up to 1/2; `unit`: the size of the number that a checker compares."""
    saved, ctx.prec = ctx.prec, _BITS
    try:
        m = 0.5 * (low + high)
        value, slope = _expected(m, S)
        m += float((arb(q) - value) / slope)
    finally:
        ctx.prec = saved
    room = max(2.0 * math.ulp(m), (_SEEN * unit + _RIGHT * q) / float(slope))
    return max(low, down(m - room)), min(high, up(m + room))


def _expected(m: float, S: float) -> tuple[arb, arb]:
    """E sigma and E sigma' by the trapezoid rule, whose error is e^(-2 pi y/h) with a strip of width y."""
    root = math.sqrt(S)
    y = min(0.5 * math.pi / root, _STRIP)
    h = 2.0 * math.pi * y / (_SMALL + 0.5 * y * y)
    last = math.ceil((_FAR + root) / h)
    value = slope = arb(0)
    weights, step = _weights(h, last), arb(S).sqrt() * h
    for n in range(-last, last + 1):
        share = 1 / (1 + (-(m + step * n)).exp())
        part = weights[abs(n)] * share
        value, slope = value + part, slope + part * (1 - share)
    return value, slope


@lru_cache(maxsize=64)
def _weights(h: float, last: int) -> list[arb]:
    scale = h / (2 * arb.pi()).sqrt()
    return [scale * (-((arb(h) * n) ** 2) / 2).exp() for n in range(last + 1)]


#: Of the inner link: levels below it are left to the floor.
_LEAST_LEVEL = 1e-12


@dataclass(frozen=True, eq=False)
class _FlooredAt(ProofLevel):
    """P >= floor + (1 - 2 floor) p where the inner link has p; `t` is the inner one's."""

    inner: ProofLevel
    floor: float

    @property
    def t(self) -> float:  # type: ignore[override]
        return self.inner.t

    @property
    def fact(self) -> Fact:  # type: ignore[override]
        return self.inner.fact

    @property
    def p(self) -> float:
        floor = Fraction(self.floor)
        return down(float(floor + (1 - 2 * floor) * Fraction(self.inner.p)))

    @property
    def entry(self) -> dict[str, Any]:
        return self.inner.entry

    @property
    def outright(self) -> dict[str, Any]:
        return self.inner.outright

    def clears(self, mean: float) -> bool:
        return self.inner.clears(mean)

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        return self.inner.cleared(mean, ends)

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        return self.inner.between(ends)

    def plane(self, place: Place) -> ProofPlane:
        return self.inner.plane(place)

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        return self.inner.growth(place)


class FlooredLevels(LinkLevels):
    """With a floor; `inner`: those of the link."""

    def __init__(self, inner: LinkLevels, floor: float) -> None:
        self._inner, self.free, self.most, self.mixed = inner, floor, inner.most, inner.mixed

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        floor, claimed = Fraction(self.free), 1 - Fraction(value) if other else Fraction(value)
        inner = min(max(up(float((claimed - floor) / (1 - 2 * floor))), _LEAST_LEVEL), 1.0)
        return _FlooredAt(self._inner.of(inner, False, flat, near), self.free)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        return _FlooredAt(self._inner.at(t, flat, near), self.free)


#: Points near the variances of a box at which the curve of a logistic level is written.
_NEAR = 9
#: Expectations of the logistic below it are 0 to a checker, which knows them to an absolute error.
_LEAST = 1e-30
_MOST = 1.0 - 1e-9
#: What a mean has above a level of the logistic is relative to it.
_BELOW = 1e-14
#: A variance this far below 0 costs a level something; noise of a probit that is like the logistic.
_CLIPPED, _LIKE = 1e-9, 2.5
#: How far apart they are about, as a share of the largest variance, or of the scale of the curve there; and
#: how far from them others are added.
_APART, _REACH = 1e-4, 0.3
#: By how much less c is than the one that fits a logistic level best, and from which variance on even less.
_BENT, _WIDE = 2.0, 20.0


@dataclass(frozen=True, eq=False)
class ProbitAt(ProofLevel):
    """mu >= t sqrt(noise + S), hence P >= Phi(t); `flat`: above 1/2 by the mean alone."""

    t: float
    fact: Fact
    scale: float
    top: float  #: the largest variance
    flat: bool

    @property
    def noise(self) -> float:
        """c, the variance that the scale stands for."""
        return 1.0 / (self.scale * self.scale)

    @property
    def p(self) -> float:
        return 0.0 if self.t == -np.inf else normal_cdf_down(self.t)

    @property
    def entry(self) -> dict[str, Any]:
        return {"t": self.t}

    @property
    def height(self) -> float:
        """A mean of it clears the level, but for rounding."""
        return self.t * math.sqrt(self.noise + (self.top if self.t > 0.0 else 0.0))

    def clears(self, mean: float) -> bool:
        if not np.isfinite([mean, self.t]).all():
            return False
        variance = 1 / arb(self.scale) ** 2 + (arb(self.top) if self.t > 0.0 else 0)
        return bool(arb(mean) >= arb(self.t) * variance.sqrt())

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        least, most = ends or (0.0, self.top)
        return mean / math.sqrt(self.noise + (most if mean > 0.0 else least))

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        height = self.t * math.sqrt(self.noise + ends[self.t > 0.0])
        return height + _BELOW * abs(height), {"tau": 0.0, "spread": True}

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        root = math.sqrt(self.noise + max(variance_at(place), 0.0))
        return math.exp(-0.5 * self.t * self.t) / math.sqrt(2.0 * math.pi) / root, {}

    def plane(self, place: Place) -> ProofPlane:
        t = self.t
        if t == 0.0 or (self.flat and t > 0.0):
            return self.mean(place, self.height, {"tau": 0.0} if t > 0.0 else {})
        if t < 0.0 and variance_at(place) <= 0.0:
            return self.mean(place, self.height, {"tau": 0.0})
        if t < 0.0:
            return self.falling(place, 0.0, -t, self.noise, {})
        S, (_, most, below) = variance_at(place), self.variances(place)
        # Slopes up to 1/2 t / (c^(1/2) + below^(1/2)) lose nothing where S < 0.
        root = max(math.sqrt(self.noise + max(S, 0.0)), math.sqrt(self.noise) + math.sqrt(below))
        tau, floor = 0.5 * t / root, t * math.sqrt(self.noise)
        above = tau * self.noise + 0.25 * t * t / tau
        height = t * math.sqrt(self.noise + most)
        if height < above + tau * S:
            return self.mean(place, height, {"tau": 0.0})
        return self.rising(place, (-above,), tau, {"tau": tau}, above - floor)


@dataclass(frozen=True, eq=False)
class LogitAt(ProofLevel):
    """mu >= m_p(S) of the logistic, through points above the curve, next to it."""

    probability: float
    fact: Fact
    top: float
    flat: bool
    near: tuple[float, ...]  #: variances at which the curve should be known well

    @property
    def t(self) -> float:  # type: ignore[override]
        return float(ndtri(self.probability))

    @property
    def p(self) -> float:
        return self.probability

    @cached_property
    def _level(self) -> LogitLevel:
        return LogitLevel(LogitCurves(Logit()), self.probability)

    @cached_property
    def _grid(self) -> tuple[float, list[float], list[float]]:
        """c, and points (S, m) on or above the curve, from S = 0 to the largest variance.

        Roots of a c less than the fitted one bend away from the curve, as far as chords that double do.
        """
        first, *inner, last = self._level.grid(self.top)
        near = self._around(last)
        S = [first, last]
        for x in (*near, *(x for x in inner if not (near and min(near) < x < max(near)))):
            # slopes between points that nearly coincide would be rounding
            if min(abs(x - y) for y in S) >= 0.5 * _APART * min(self.top, 1.0 + x):
                S.append(x)
        S.sort()
        c = self._level.c / (_BENT * (1.0 + (near[0] if near else 0.0) / _WIDE))
        m = {x: upper for x, (_, upper) in zip(S, self._level.enclosures(S), strict=True)}
        if near and max(self.near) - near[0] < _APART:  # else chords between them cost more
            m[near[0]] = self._tangent(near[0])[2]
        return c, S, [m[x] for x in S]

    def _around(self, last: float) -> list[float]:
        """The variances at which the curve should be known well, then others on both sides at distances that
        double.
        """
        if not self.near:
            return []
        low, high = min(self.near), max(self.near)
        found = [*self.near]
        for end, sign in ((low, -1.0), (high, 1.0)):
            step = max(_APART * (1.0 + end), (high - low) / len(self.near))
            while step < _REACH * (1.0 + end) and 0.0 < end + sign * step < last:
                found.append(end + sign * step)
                step *= 2.0
        return found

    @property
    def entry(self) -> dict[str, Any]:
        if self.probability >= 0.5:
            return {"p": self.probability}
        c, S, m = self._grid
        return {"p": self.probability, "curve": {"c": c, "S": S, "m": m}}

    def clears(self, mean: float) -> bool:
        p = self.probability
        height = self._tangent(self.top)[2] if p > 0.5 else math.log(p) - math.log1p(-p)
        return bool(mean >= height + _BELOW * abs(height))

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        least, most = ends or (0.0, self.top)
        return float(ndtri(Logit().expectation(mean, most if mean > 0.0 else least)))

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        if self.probability == 0.5:
            return None
        tangent = self._tangent(ends[self.probability > 0.5])
        height = tangent[2] + _BELOW * abs(tangent[2])
        return height, {"tau": 0.0, "tangent": tangent, "spread": True}

    @property
    def outright(self) -> dict[str, Any]:
        return {"tangent": self._tangent(self.top)} if self.probability > 0.5 else {}

    def _tangent(self, S: float) -> list[float]:
        return [S, *sharpened(self.p, S, *self._level.curve(S))]

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        rate = self._tangent(max(variance_at(place), 0.0))
        return float(Logit().expectation_gradient(rate[2], rate[0])[0]), {"rate": rate}

    def plane(self, place: Place) -> ProofPlane:
        if self.probability == 0.5:
            return self.mean(place, 0.0, {})
        if self.probability > 0.5 and self.flat:
            tangent = self._tangent(self.top)
            return self.mean(place, tangent[2], {"tau": 0.0, "tangent": tangent})
        S = max(variance_at(place), 0.0)
        if self.probability < 0.5 and S == 0.0:
            p = self.probability
            return self.mean(place, math.log(p) - math.log1p(-p) + 1e-14, {"tau": 0.0})
        if self.probability > 0.5:
            return self._above(place, S)
        c, grid, m = self._grid
        found = root_below(c, grid, [-height for height in m], S)
        steep, c, kappa = (0.0, c, -np.inf) if found is None else found
        return self.falling(place, kappa, steep, c, {"nu": steep})

    def _above(self, place: Place, S: float) -> ProofPlane:
        """Of a level above 1/2: a tangent of m_p, which lies above m_p(0) by its room."""
        _, most, below = self.variances(place)
        if below > _CLIPPED:  # as with the probit: from this variance on nothing is lost where S < 0
            S = min(max(S, below + 2.0 * math.sqrt(_LIKE * below)), self.top)
        tangent = self._tangent(S)
        slope, curl = Logit().expectation_gradient(tangent[2], S)
        tau = -float(curl) / float(slope)
        unknown = (tangent[2] - tangent[1]) * (terms_at(place) + S)  # a checker's slope is a ball
        room = tangent[2] - tau * S - unknown - math.log(self.p) + math.log1p(-self.p)
        if below > _CLIPPED:
            flat = self._tangent(most * (1.0 + _BELOW) + _BELOW)
            lost = max(tau * below - room, 0.0)
            if flat[2] < tangent[2] + tau * (variance_at(place) - S) + lost:
                return self.mean(place, flat[2], {"tau": 0.0, "tangent": flat})
        return self.rising(place, (tau * S, -tangent[2], -unknown), tau, {"tangent": tangent}, room)


@dataclass(frozen=True, eq=False)
class ProbitLevels(LinkLevels):
    """Of Phi(scale f)."""

    fact: Fact
    scale: float
    top: float

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        p = 1 - arb(value) if other else arb(value)
        t = 0.0 if value == 0.5 else float(ndtri(value)) * (-1.0 if other else 1.0)
        step = float(np.spacing(max(abs(t), 2.0**-10)))
        while np.isfinite(t) and not (-arb(t) / arb(2).sqrt()).erfc() / 2 >= p:
            t, step = t + step, 2.0 * step
        return self.at(t, flat)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        return ProbitAt(t, self.fact, self.scale, self.top, flat)


@dataclass(frozen=True, eq=False)
class LogitLevels(LinkLevels):
    """Of the logistic; quadratures have an absolute error, and levels of leaves are long to write."""

    fact: Fact
    top: float

    least, most, mixed = _LEAST, _MOST, False

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        p, guess = (1 - arb(value), 1.0 - value) if other else (arb(value), value)
        guess = guess if arb(guess) >= p else float(np.nextafter(guess, 1.0))
        return LogitAt(guess, self.fact, self.top, flat, near)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        return LogitAt(float(ndtr(t)), self.fact, self.top, flat, near)


def variances(bound: LevelBound, lower: Float, upper: Float, reference: Float) -> tuple[float, ...]:
    """Some between the smallest and the largest S at corners and in the middle of a box."""
    points = (lower, upper, reference, 0.5 * lower + 0.5 * upper)
    found = [bound.slice.latent(bound.shape.project(x))[1][1] for x in points]
    return tuple(np.linspace(max(min(found), 0.0), max(*found, 0.0), _NEAR).tolist())


def levels_of(likelihood: BinaryLikelihood, fact: Fact, variance: float) -> LinkLevels:
    """For a model with this prior variance."""
    top = variance * (1.0 + fact.negative) * (1.0 + 1e-12)
    if isinstance(likelihood, Floored):
        return FlooredLevels(levels_of(likelihood.link, fact, variance), likelihood.floor)
    if isinstance(likelihood, FiveErf):
        return FiveErfLevels(fact, top)
    if isinstance(likelihood, Logit):
        return LogitLevels(fact, top)
    assert isinstance(likelihood, Probit)
    return ProbitLevels(fact, likelihood.scale, top)

"""Levels of scikit-learn's formula (docs/maths/proof.md, V16): numbers, lines and roots above a curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.likelihoods import FiveErf
from gpcert.likelihoods.prediction import COEFFICIENTS, TOTAL
from gpcert.proofs.facts import Fact
from gpcert.proofs.levels import Ends, LinkLevels, Place, ProofLevel, ProofPlane, variance_at
from gpcert.rounding import down
from gpcert.validation import Float

_FORMULA = FiveErf()
#: The least of the formula's variances; a root's c is one about the logistic's.
_NOISE, _C = 2.58, 0.31
#: What is added to a height, relative to 1 + |m|: more than what a checker loses.
_ABOVE = 1e-12
#: Relative room of the variances of a box, which a checker computes again.
_ROOM = 1e-9
#: Variances at which a curve is looked at, and how often again around the highest.
_LOOKS, _ROUNDS = 9, 8
#: Steps of Newton's method, and after which, relative, the next is rounding; means beyond count as one.
_STEPS, _NEAR, _LARGEST = 60, 1e-8, 1e100
#: Where a curve bends upward and both ends are near, what is added besides, as a share of the bulge.
_MORE = 0.1
#: Nearer to the largest probability, slopes are rounding.
_UNREACHED = 1e-11
#: Slopes below it are 0.
_FLAT = 1e-7


class Psi(NamedTuple):
    """a + rate S - steep sqrt(c + S), one of the two 0; it comes nearest to a curve at `touch`."""

    a: float
    rate: float
    steep: float
    c: float
    touch: float

    def at(self, S: Any) -> Any:
        return self.a + self.rate * S - self.steep * np.sqrt(self.c + S)

    def change(self, least: float) -> float:
        """At least |psi'| from this variance on."""
        return self.rate + 0.5 * self.steep / math.sqrt(self.c + least)


@dataclass(frozen=True, eq=False)
class FiveErfAt(ProofLevel):
    """mu >= psi(S), psi above the level's curve wherever it is used."""

    probability: float
    fact: Fact
    top: float
    flat: bool
    spare: Fraction  #: what the claimed class has besides
    _last: dict[int, tuple[Place, Psi]] = field(default_factory=dict, init=False)

    @property
    def t(self) -> float:  # type: ignore[override]
        return float(ndtri(self.probability))

    @property
    def p(self) -> float:
        return down(float(Fraction(self.probability) + self.spare)) if self.spare else self.probability

    @property
    def entry(self) -> dict[str, Any]:
        return {"p": self.probability}

    @property
    def _rises(self) -> bool:
        """Whether m_p rises with S: m_p >= 0, from TOTAL/2 on, which lies 5e-9 below 1/2."""
        return self.probability >= 0.5 * TOTAL

    @cached_property
    def number(self) -> tuple[float, float]:
        """A mean that clears the level whatever the variance, and where it is needed."""
        S = self.top if self._rises else 0.0
        return _reaching(self._height(S), self.probability, S), S

    @property
    def outright(self) -> dict[str, Any]:
        a, touch = self.number
        return {"line": [a, 0.0, touch]}

    def clears(self, mean: float) -> bool:
        return bool(mean >= self.number[0])

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        least, most = ends or (0.0, self.top)
        return float(ndtri(_FORMULA.expectation(mean, most if mean > 0.0 else least)))

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        S = ends[self._rises]
        a = _reaching(self._height(S), self.probability, S)
        return a, {"line": [a, 0.0, S], "spread": True}

    def curve(self, S: Float, start: Float | None = None) -> Float:
        """m_p(S), (n,): Newton's method, by default from the logistic's scale."""
        p = self.probability
        m = self.t * np.sqrt(8.0 / math.pi + S) if start is None else start
        for _ in range(_STEPS):
            value, slope = _FORMULA.expectation(m, S), _FORMULA.expectation_gradient(m, S)[0]
            most = 1.0 + 0.2 * np.abs(m)
            step = np.clip((p - value) / slope, -most, most)
            m = np.nan_to_num(m + step, nan=_LARGEST)
            if (np.abs(step) <= _NEAR * (1.0 + np.abs(m))).all():
                break
        return np.asarray(m)

    @cached_property
    def _known(self) -> dict[float, float]:
        return {}

    def _height(self, S: float) -> float:
        if S not in self._known:
            self._known[S] = float(self.curve(np.array([S]))[0])
        return self._known[S]

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        S = max(variance_at(place), 0.0)
        m = float(self.psi(place).at(S))
        return (float(_FORMULA.expectation_gradient(m, S)[0]) if math.isfinite(m) else math.nan), {}

    def plane(self, place: Place) -> ProofPlane:
        psi = self.psi(place)
        if psi.rate > 0.0:
            return self.rising(place, (-psi.a,), psi.rate, {"line": [psi.a, psi.rate, psi.touch]})
        if psi.steep > 0.0:
            return self.falling(
                place, -psi.a, psi.steep, psi.c, {"root": [psi.a, psi.steep, psi.c, psi.touch]}
            )
        return self.mean(place, psi.a, self.outright)

    def psi(self, place: Place) -> Psi:
        """Above the curve at all variances of the place, and next to it at the reference's."""
        known = self._last.get(id(place.domain))
        if known is None or known[0].domain is not place.domain or known[0].reference is not place.reference:
            self._last.clear()
            known = self._last[id(place.domain)] = (place, self._psi(place))
        return known[1]

    def _psi(self, place: Place) -> Psi:
        S = max(variance_at(place), 0.0)
        slope = _slope(self._height(S), S)
        if self.flat or not abs(slope) >= _FLAT or (slope < 0.0 and variance_at(place) <= 0.0):
            return Psi(self.number[0], 0.0, 0.0, 1.0, self.number[1])
        least, most, _ = self.variances(place) if isinstance(place.slice, Slice) else (0.0, self.top, 0.0)
        ends = max(least - _ROOM * most, 0.0), min(most * (1.0 + _ROOM), self.top)
        c = 1.0 / math.hypot(4.0 * self.probability * (1.0 - self.probability), _C)
        if slope > 0.0:
            return self._raised(Psi(0.0, slope, 0.0, c, S), ends)
        return self._raised(Psi(0.0, 0.0, -2.0 * slope * math.sqrt(c + S), c, S), ends)

    def _raised(self, psi: Psi, ends: tuple[float, float]) -> Psi:
        """Moved above the curve between the ends; it touches where it comes nearest."""
        low, high = ends
        here = self._height(psi.touch) - float(psi.at(psi.touch))
        best, a = psi.touch, here
        for _ in range(_ROUNDS):
            x = np.exp(np.linspace(np.log(_NOISE + low), np.log(_NOISE + high), _LOOKS)) - _NOISE
            x = np.clip(x, *ends)
            line = psi.at(x)
            over = self.curve(x, a + line) - line
            i = int(np.argmax(over))
            if not over[i] > a + _ABOVE * (1.0 + abs(a)):
                break
            a, best, around = float(over[i]), float(x[i]), 2.0 * (high - low) / (_LOOKS - 1)
            low, high = max(ends[0], best - around), min(ends[1], best + around)
        height = float(psi.at(best))
        a = _reaching(a + height, self.probability, best) - height + _MORE * (a - here)
        return psi._replace(a=a, touch=best)


def _slope(m: float, S: float) -> float:
    """m_p'(S); nan where the formula is flat to the eye of a double."""
    by_mean, by_variance = _FORMULA.expectation_gradient(m, S)
    return -float(by_variance) / float(by_mean) if by_mean > 0.0 else math.nan


def _reaching(m: float, p: float, S: float) -> float:
    """A mean at which the formula surely reaches p, next to m."""
    slope = float(_FORMULA.expectation_gradient(m, S)[0])
    if not (slope > 0.0 and p < TOTAL - _UNREACHED):
        return math.inf
    return m + 2.0 * float(_FORMULA.expectation_error(m, S)) / slope + _ABOVE * (1.0 + abs(m))


@dataclass(frozen=True, eq=False)
class FiveErfLevels(LinkLevels):
    """Of the formula; `mirrored`: of class 0, whose latent is -f: 1 - P(f) = P(-f) + 1 - TOTAL."""

    fact: Fact
    top: float
    mirrored: bool = False

    least, most = 1e-30, 1.0 - 2e-8

    @property
    def free(self) -> float:  # type: ignore[override]
        return down(float(self._spare)) if self.mirrored else 0.0

    @property
    def other(self) -> FiveErfLevels:
        return replace(self, mirrored=not self.mirrored)

    @property
    def _spare(self) -> Fraction:
        return 1 - sum(map(Fraction, COEFFICIENTS.tolist()), Fraction(0)) if self.mirrored else Fraction(0)

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        p = (1 - Fraction(value) if other else Fraction(value)) - self._spare
        guess = float(p)
        return self._level(guess if guess >= p else float(np.nextafter(guess, 1.0)), flat)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        return self._level(float(ndtr(t)), flat)

    def _level(self, p: float, flat: bool) -> ProofLevel:
        return FiveErfAt(p, self.fact, self.top, flat, self._spare)

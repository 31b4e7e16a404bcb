"""Level curves of scikit-learn's five error functions, by those of the logistic near by.

The two expectations differ by at most GAP, and the difference drifts slowly along a level curve of the
logistic: docs/maths/bounds.md#derived-links, W2 to W4. The curves of the formula itself are not all concave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from gpcert.bounds.levels.curves import ComputedCurves, Level, LevelCurves, Line, Root
from gpcert.bounds.levels.logistic import LogitCurves
from gpcert.likelihoods import FiveErf, Logit
from gpcert.likelihoods.prediction import DRIFT, GAP, SLOPE, TOTAL
from gpcert.rounding import UNIT, down, up
from gpcert.validation import Float

_LOGIT = LogitCurves(Logit())
_FORMULA = FiveErf()
_MARGIN = 1e-10  # well above the rounding of both expectations, so that a guess is confirmed


@dataclass(frozen=True)
class FiveErfCurves(ComputedCurves):
    """P(mu, S) = sum_i c_i Phi(mu / sqrt(v_i + S)); `other`: 1 - P(-mu, S) = P(mu, S) + (1 - TOTAL).

    W2: the corner lemma holds for the formula, which is odd around TOTAL / 2 and concave above 0.
    """

    other: bool = False

    @property
    def noise(self) -> float:
        return _LOGIT.noise

    def mirrored(self) -> LevelCurves:
        return FiveErfCurves(not self.other)

    @property
    def slope(self) -> float:
        return SLOPE

    def expectation(self, mu: Float, S: Float) -> tuple[Float, Float]:
        value = _FORMULA.expectation(mu, S) + (1.0 - TOTAL if self.other else 0.0)
        return value, _FORMULA.expectation_error(mu, S) * (1.0 + 8 * UNIT) + (8 * UNIT if self.other else 0.0)

    def level(self, p: float) -> Level:
        """See `LevelCurves.level`; the 1e-8 that the other class has more is not used."""
        return FiveErfLevel(p)


@dataclass(frozen=True)
class FiveErfLevel(Level):
    """Certifies p by clearing a level curve of the logistic; which one suffices depends on the range of S.

    `range`: S is known to stay there; None: any S >= 0.
    """

    target: float
    range: tuple[float, float] | None = None

    @property
    def p(self) -> float:
        return self.target

    @cached_property
    def _logistic(self) -> Level | None:
        """W3, W4: the lowest level of the logistic that is proved to suffice; None: there is none."""
        q = self.p + GAP
        if self.range is not None:
            q = min(q, self._sufficient(*self.range))
        if not 0.0 < q < 1.0 - 1e-12:
            return None
        return _LOGIT.level(q) if self.range is None else _LOGIT.level(q).within(self.range)

    @property
    def concave(self) -> bool:
        """As the logistic's level; the formula's own is not known to be."""
        return self._logistic is not None and self._logistic.concave

    def within(self, variances: tuple[float, float]) -> Level:
        """W4: the shorter the range, the lower the logistic's level."""
        return FiveErfLevel(self.target, variances)

    def curve(self, S: float) -> tuple[float, float]:
        """W3 at one S: below and above, the logistic at p less and plus GAP."""
        lower, upper = (_LOGIT.level(_inside(self.p + gap)).curve(S) for gap in (-GAP, GAP))
        return (lower[0] if self.p > GAP else -math.inf), (upper[1] if self.p + GAP < 1.0 else math.inf)

    def tangent(self, S: float, largest: float) -> Line:
        return (0.0, -math.inf) if self._logistic is None else self._logistic.tangent(S, largest)

    def chord(self, start: float, end: float) -> Line:
        return (0.0, -math.inf) if self._logistic is None else self._logistic.chord(start, end)

    def root(self, S: float, largest: float) -> Root | None:
        return None if self._logistic is None else self._logistic.root(S, largest)

    def after_deficit(self, deficit: float, smallest: float) -> float:
        """The formula's slope in the mean is at most SLOPE."""
        return max(0.0, down(self.p - SLOPE * deficit * (1.0 + 4 * UNIT)))

    def _sufficient(self, start: float, end: float) -> float:
        """W4: q with P(m, S) >= p on the logistic's curve of q for S in [start, end]; inf: none found."""
        S = 0.5 * (start + end)
        asked = self.p + DRIFT * up(max(end - S, S - start))
        if not (asked < self.p + 2.0 * GAP and S < 1e90):
            return math.inf
        m = _root(asked + _MARGIN, S)
        q = float(_LOGIT.likelihood.expectation(m, S)) + _MARGIN
        if not 0.0 < q < 1.0 - 1e-12:
            return math.inf
        lowest = _LOGIT.level(q).curve(S)[0]
        if not math.isfinite(lowest):
            return math.inf
        reached = float(_FORMULA.expectation(lowest, S)) - float(_FORMULA.expectation_error(lowest, S))
        return q if down(reached) >= up(asked) else math.inf


def _inside(p: float) -> float:
    return min(max(p, 1e-12), 1.0 - 1e-12)


def _root(p: float, S: float) -> float:
    """Nearly the mean at which the formula reaches p: Newton's method, for guidance only."""
    m = math.log(_inside(p) / (1.0 - _inside(p))) * math.sqrt(1.0 + S / _LOGIT.noise)
    for _ in range(50):
        value = float(_FORMULA.expectation(m, S))
        slope = max(float(_FORMULA.expectation_gradient(m, S)[0]), 1e-300)
        step = (p - value) / slope
        m += math.copysign(min(abs(step), 1.0 + 0.5 * abs(m)), step)
        if not abs(m) < 1e90 or abs(step) <= 1e-13 * (1.0 + abs(m)):
            break
    return m if abs(m) < 1e90 else 0.0

"""Level curves of the Gaussian expectation: which latent mean gives probability p at latent variance S.

For a symmetric link, E sigma(f) >= p at (mu, S) exactly when mu >= m_p(S). For probit and logit, m_p is
concave in S for p >= 1/2 and convex for p <= 1/2 (docs/maths.md, L1). So an affine functional mu - tau S +
kappa >= 0 with
    tau S - kappa >= m_p(S)
proves probability p: one tangent serves all S where m_p is concave (L2), one chord per piece where convex
(L3). Curves hold for S >= 0; the predictor clips the variance at 0, and so do the callers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from scipy.special import ndtri

from gpcert.likelihoods import Logit
from gpcert.rounding import UNIT, down, normal_cdf_bounds, normal_cdf_down, sqrt_down, sqrt_up, up

Line = tuple[float, float]
Root = tuple[float, float, float]


class Level(ABC):
    """The curve mu = m_p(S) of one probability `p`; `p` itself is certified when the curve is cleared."""

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that is certified when the curve is cleared."""

    @property
    @abstractmethod
    def concave(self) -> bool:
        """m_p concave in S (p >= 1/2): tangents; else chords."""

    @abstractmethod
    def tangent(self, S: float, largest: float) -> Line:
        """(tau, kappa) with tau S' - kappa >= m_p(S') for all S' in [0, largest], nearly equal at S."""

    @abstractmethod
    def curve(self, S: float) -> tuple[float, float]:
        """[lower, upper] containing m_p(S)."""

    def chord(self, start: float, end: float) -> Line:
        """L3: (tau, kappa) with tau S' - kappa >= m_p(S') for S' in [start, end], for a convex curve."""
        a, b = -self.curve(start)[1], -self.curve(end)[1]
        if not (math.isfinite(a) and math.isfinite(b)):
            return 0.0, -math.inf
        tau = -(b - a) / (end - start) if end > start else 0.0
        kappa = min(down(a + tau * start), down(b + tau * end))
        return tau, kappa - 8 * UNIT * (abs(a) + abs(b) + abs(tau) * end)

    def root(self, S: float, largest: float) -> Root | None:
        """G3: (steep, c, kappa), steep >= 0, c > 0, with m_p(S') <= -(steep sqrt(c + S') + kappa) for all S'
        in [0, largest], for a convex curve, nearly equal to first order at S; None: none is known.
        """
        return None

    def within(self, variances: Callable[[], tuple[float, float]]) -> Level:
        """A level that certifies the same p where S stays in variances(): this one, or one that asks."""
        return self

    @abstractmethod
    def after_deficit(self, deficit: float, smallest: float) -> float:
        """A certified probability if mu >= m_p(S) - deficit on a box where S >= smallest; deficit > 0."""

    def after_surplus(self, surplus: float, largest: float) -> float:
        """A certified probability if mu >= m_p(S) + surplus on a box where S <= largest; surplus >= 0: p as
        it is, where the density has no bound from below.
        """
        return self.p


class LevelCurves(ABC):
    """The link as the bounds use it: rigorous values at points, and level curves."""

    @abstractmethod
    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        """Enclosure of E sigma over mu in [mu_0, mu_1], S in [S_0, S_1] (S clipped at 0): the corner
        lemma L4.
        """

    @abstractmethod
    def level(self, p: float) -> Level:
        """The level curve of a probability at most p (and as close as rounding allows), 0 < p < 1."""

    def mirrored(self) -> LevelCurves:
        """The link of the other class, f -> 1 - sigma(-f): itself where symmetric."""
        return self

    @property
    @abstractmethod
    def noise(self) -> float:
        """c with E sigma(f) close to Phi(mu / sqrt(c + S)): guides the local search only."""


def corners(
    mu: tuple[float, float], S: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """L4: the (mu, S) corners of the smallest and largest probability: far from 0 S shrinks towards 1/2."""
    low, high = max(S[0], 0.0), max(S[1], 0.0)
    return (mu[0], high if mu[0] >= 0 else low), (mu[1], low if mu[1] >= 0 else high)


@dataclass(frozen=True)
class ProbitCurves(LevelCurves):
    """E Phi(scale f) = Phi(mu / sqrt(scale^-2 + S))."""

    scale: float

    @property
    def noise(self) -> float:
        return 1.0 / (self.scale * self.scale)

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        lower, upper = (self._standard(*corner) for corner in corners(mu, S))
        return normal_cdf_bounds(lower - 16 * UNIT * abs(lower))[0], normal_cdf_bounds(
            upper + 16 * UNIT * abs(upper)
        )[1]

    def _standard(self, mu: float, S: float) -> float:
        return mu / math.sqrt(self.noise + S) if math.isfinite(mu) else mu

    def level(self, p: float) -> Level:
        return ProbitLevel(float(ndtri(p)), self.noise * (1.0 - 4 * UNIT), self.noise * (1.0 + 4 * UNIT))


@dataclass(frozen=True)
class ProbitLevel(Level):
    """m(S) = t sqrt(c + S), c in [c_low, c_high]; certifies Phi(t)."""

    t: float
    c_low: float
    c_high: float

    @property
    def p(self) -> float:
        """Phi(t), rounded down."""
        return normal_cdf_down(self.t)

    @property
    def concave(self) -> bool:
        return self.t >= 0

    def tangent(self, S: float, largest: float) -> Line:
        """L2: for any tau > 0, sup_S (t sqrt(c + S) - tau S) = tau c + t^2 / (4 tau)."""
        if self.t == 0:
            return 0.0, 0.0
        tau = self.t / (2.0 * math.sqrt(self.c_high + max(S, 0.0)))
        top = tau * self.c_high + self.t * self.t / (4.0 * tau)
        return tau, -up(top * (1.0 + 8 * UNIT))

    def curve(self, S: float) -> tuple[float, float]:
        """t sqrt(c + S), rounded outward."""
        roots = sqrt_down(self.c_low + S), sqrt_up(self.c_high + S)
        ends = sorted(self.t * root for root in roots)
        return ends[0] - 4 * UNIT * abs(ends[0]), ends[1] + 4 * UNIT * abs(ends[1])

    def root(self, S: float, largest: float) -> Root | None:
        """t sqrt(c + S) itself; with the smaller c, since t <= 0."""
        return (-self.t, self.c_low, 0.0) if self.t <= 0.0 < self.c_low else None

    def after_deficit(self, deficit: float, smallest: float) -> float:
        """mu / sqrt(c + S) >= t - deficit / sqrt(c + smallest)."""
        drop = deficit / sqrt_down(self.c_low + max(smallest, 0.0)) * (1.0 + 8 * UNIT)
        return normal_cdf_down(self.t - drop - 4 * UNIT * (abs(self.t) + drop))

    def after_surplus(self, surplus: float, largest: float) -> float:
        """mu / sqrt(c + S) >= t + surplus / sqrt(c + largest)."""
        gain = surplus / sqrt_up(self.c_high + max(largest, 0.0)) * (1.0 - 8 * UNIT)
        return normal_cdf_down(self.t + gain - 4 * UNIT * (abs(self.t) + gain))


@dataclass(frozen=True)
class LogitCurves(LevelCurves):
    """E sigma(f) by the quadrature of `Logit`, with its proved error."""

    likelihood: Logit

    @property
    def noise(self) -> float:
        """8 / pi: the slopes of the logistic and of Phi(f / sqrt(8/pi)) agree at 0."""
        return 8.0 / math.pi

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        if not all(map(math.isfinite, (*mu, *S))):
            return 0.0, 1.0
        lower, upper = corners(mu, S)
        return self.enclose(*lower)[0], self.enclose(*upper)[1]

    def enclose(self, mu: float, S: float) -> tuple[float, float]:
        """E sigma(f) at one (mu, S)."""
        value = float(self.likelihood.expectation(mu, S))
        error = float(self.likelihood.expectation_error(mu, S)) * (1.0 + 8 * UNIT)
        return max(0.0, down(value - error)), min(1.0, up(value + error))

    def level(self, p: float) -> Level:
        return LogitLevel(self, p)


@dataclass(frozen=True)
class LogitLevel(Level):
    """m_p(S) of the logistic, enclosed by bracketing the proved quadrature."""

    curves: LogitCurves
    target: float

    @property
    def p(self) -> float:
        """The target itself: the curve is enclosed, not the probability."""
        return self.target

    @property
    def concave(self) -> bool:
        return self.p >= 0.5

    def curve(self, S: float) -> tuple[float, float]:
        """[lower, upper] containing m_p(S): the quadrature with its error brackets p there."""
        return _logistic_curve(self.curves, self.p, S)

    def tangent(self, S: float, largest: float) -> Line:
        """L2: three enclosures of a concave curve bound it everywhere, without derivatives."""
        gap = 1e-3 * (1.0 + max(S, 0.0))
        points = [max(S, gap) + i * gap for i in (-1, 0, 1)]
        points[0] = max(points[0], 0.0)
        curve = [self.curve(x) for x in points]
        tau = 0.5 * (sum(curve[2]) - sum(curve[0])) / (points[2] - points[0])
        if not math.isfinite(tau):
            return 0.0, -math.inf
        # h(S') = m_p(S') - tau S' is concave: outside two points it lies below the line through them.
        size = 16 * UNIT * (max(abs(c) for pair in curve for c in pair) + abs(tau) * (points[2] + largest))
        lower = [pair[0] - tau * x - size for pair, x in zip(curve, points, strict=True)]
        upper = [pair[1] - tau * x + size for pair, x in zip(curve, points, strict=True)]
        left, right = points[1] - points[0], points[2] - points[1]
        rises = (
            max(0.0, (upper[1] - lower[0]) / left) * right,  # between the second and the third point
            max(0.0, (upper[1] - lower[2]) / right) * left,  # between the first and the second
            max(0.0, (upper[2] - lower[1]) / right) * max(0.0, largest - points[2]),
            max(0.0, (upper[0] - lower[1]) / left) * points[0],
        )
        return tau, -up(max(upper) + max(rises) + size)

    def root(self, S: float, largest: float) -> Root | None:
        """F = -m_p is concave in S, above its chords: the secant of F in w = sqrt(c + S) next to S, lowered
        to what is certain. Chord - steep w is convex, smallest at an end or where w = steep / (2 slope).
        """
        t = float(ndtri(self.p))
        if not (t < 0.0 < largest < 1e90):
            return None
        c = min(0.98 * self.curves.noise, (t / (1.0 - 2.0 * self.p)) ** 2)  # the slope of F at S = 0, far out
        grid = _grid(0.05 * c, largest)
        F = [-self.curve(x)[1] for x in grid]
        if not all(map(math.isfinite, F)):
            return None
        i = min(bisect_right(grid, max(S, 0.0)), len(grid) - 1)
        steep = max((F[i] - F[i - 1]) / (math.sqrt(c + grid[i]) - math.sqrt(c + grid[i - 1])), 0.0)
        kappa = math.inf
        for (x, one), (y, two) in pairwise(zip(grid, F, strict=True)):
            slope = (two - one) / (y - x)
            kappa = min(kappa, one - steep * sqrt_up(c + x), two - steep * sqrt_up(c + y))
            if slope > 0 and x < (0.5 * steep / slope) ** 2 - c < y:
                kappa = min(kappa, one - slope * (x + c) - 0.25 * steep * steep / slope)
        size = abs(kappa) + max(map(abs, F)) + steep * math.sqrt(c + largest)
        return steep, c, kappa - 64 * UNIT * size

    def after_deficit(self, deficit: float, smallest: float) -> float:
        """The density of the logistic is at most 1/4, so the probability drops by at most deficit / 4."""
        return max(0.0, down(self.p - 0.25 * deficit * (1.0 + 4 * UNIT)))


def _grid(first: float, largest: float) -> list[float]:
    """0, then up to `largest` by factors of 2: the same for all references, so that values are kept."""
    count = max(0, math.ceil(math.log(max(largest / first, 1.0)) / math.log(2.0)))
    return [0.0, *sorted({largest * 2.0**-i for i in range(count + 1)})]


@lru_cache(maxsize=2**14)
def _logistic_curve(curves: LogitCurves, p: float, S: float) -> tuple[float, float]:
    """See `LogitLevel.curve`; kept, since neighbouring pieces and their refinements share their ends."""
    if not 0.0 <= S < 1e90:
        return -math.inf, math.inf
    m = float(ndtri(p)) * math.sqrt(curves.noise + S)
    for _ in range(50):
        value = float(curves.likelihood.expectation(m, S))
        slope = max(float(curves.likelihood.expectation_gradient(m, S)[0]), 1e-300)
        step = (p - value) / slope
        # The expectation is nearly linear in probit units: long steps are cut to stay where that holds.
        m += math.copysign(min(abs(step), 1.0 + 0.5 * abs(m)), step)
        if not abs(m) < 1e90:
            return -math.inf, math.inf
        if abs(step) <= 1e-7 * (1.0 + abs(m)):  # after this step the error is of the order of its square
            break
    width = 4e-13 * (1.0 + abs(m))
    for _ in range(60):
        if curves.enclose(m - width, S)[1] <= p <= curves.enclose(m + width, S)[0]:
            return m - width, m + width
        width *= 4.0
    return -math.inf, math.inf

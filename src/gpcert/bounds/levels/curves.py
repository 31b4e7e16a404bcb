"""Level curves of the Gaussian expectation: which latent mean gives probability p at latent variance S.

For a symmetric link, E sigma(f) >= p at (mu, S) exactly when mu >= m_p(S). For probit and logit, m_p is
concave in S for p >= 1/2 and convex for p <= 1/2 (docs/maths/bounds.md, L1). So an affine functional mu - tau
S + kappa >= 0 with
    tau S - kappa >= m_p(S)
proves probability p: one tangent serves all S where m_p is concave (L2), one chord per piece where convex
(L3). Curves hold for S >= 0; the predictor clips the variance at 0, and so do the callers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from gpcert.rounding import UNIT, down, normal_cdf_bounds, normal_cdf_down, sqrt_down, sqrt_up, up
from gpcert.validation import Float

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

    def rises(self, S: float, largest: float) -> bool:
        """Whether planes there are those of tangents (G2), else those of roots (G1)."""
        return self.concave

    def root(self, S: float, largest: float) -> Root | None:
        """G3: (steep, c, kappa), steep >= 0, c > 0, with m_p(S') <= -(steep sqrt(c + S') + kappa) for all S'
        in [0, largest], for a convex curve, nearly equal to first order at S; None: none is known.
        """
        return None

    def within(self, variances: tuple[float, float]) -> Level:
        """A level that certifies the same p where S stays in `variances`."""
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

    def bounds_of_rows(self, mu: tuple[Float, Float], S: tuple[Float, Float]) -> tuple[Float, Float]:
        """`bounds` of many, all (N,)."""
        rows = zip(*(ends.tolist() for ends in (*mu, *S)), strict=True)
        found = np.array([self.bounds((a, b), (c, d)) for a, b, c, d in rows]).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    @property
    def slope(self) -> float:
        """P rises by at most this times the mean; inf: nothing is known."""
        return math.inf

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


class ComputedCurves(LevelCurves):
    """A link with L4 whose expectation is computed with a proved error."""

    @abstractmethod
    def expectation(self, mu: Float, S: Float) -> tuple[Float, Float]:
        """E sigma at means and variances of one shape, and a bound of its error."""

    def enclose(self, mu: Float, S: Float) -> tuple[Float, Float]:
        """E sigma at means and variances of one shape."""
        value, error = self.expectation(mu, S)
        low, high = np.nextafter(value - error, -np.inf), np.nextafter(value + error, np.inf)
        return np.maximum(low, 0.0), np.minimum(high, 1.0)

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        if not all(map(math.isfinite, (*mu, *S))):
            return 0.0, 1.0
        low, high = self.enclose(*np.array(corners(mu, S)).T)
        return float(low[0]), float(high[1])

    def bounds_of_rows(self, mu: tuple[Float, Float], S: tuple[Float, Float]) -> tuple[Float, Float]:
        known = np.isfinite(mu[0]) & np.isfinite(mu[1]) & np.isfinite(S[0]) & np.isfinite(S[1])
        least, most = (np.where(known, ends, 0.0) for ends in mu)
        low, high = (np.where(known, np.maximum(ends, 0.0), 0.0) for ends in S)
        lower = self.enclose(least, np.where(least >= 0, high, low))[0]
        upper = self.enclose(most, np.where(most >= 0, low, high))[1]
        return np.where(known, lower, 0.0), np.where(known, upper, 1.0)


@dataclass(frozen=True)
class ProbitCurves(LevelCurves):
    """E Phi(scale f) = Phi(mu / sqrt(scale^-2 + S))."""

    scale: float

    @property
    def noise(self) -> float:
        return 1.0 / (self.scale * self.scale)

    @property
    def slope(self) -> float:
        return 0.399 * self.scale

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

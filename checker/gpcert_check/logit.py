"""The logistic link (V11): levels of E sigma(f), sigma(f) = 1/(1 + e^-f), f ~ N(mu, max(0, S)).

E sigma >= p holds where mu >= m_p(S); m_p is concave for p >= 1/2, convex for p <= 1/2 (docs/maths.md, L1),
and is known here through enclosures of single integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import acb, arb

from gpcert_check.arithmetic import normal
from gpcert_check.model import Latent
from gpcert_check.planes import Plane, falling, flat, rising
from gpcert_check.reading import fields, need, real, reals

__all__ = ["Logit"]

MOST_POINTS = 1_000
_MOST_VALUES = 20_000  # of one integrand: hostile parameters end as balls too wide to prove anything
_FAR = 12  # standard deviations; beyond, sigma and its derivatives are between -1 and 1, and Phi(-12) < 2e-33


def _sigma(u: acb) -> acb:
    return 1 / (1 + (-u).exp())


def _slope(u: acb) -> acb:
    s = _sigma(u)
    return s * (1 - s)


def _curve(u: acb) -> acb:
    s = _sigma(u)
    return s * (1 - s) * (1 - 2 * s)


def mean_of(function: Callable[[acb], acb], mean: arb, variance: arb, least: int) -> arb:
    """E function(f), f ~ N(mean, variance), for a function with values in [least, 1] on the real line."""
    root, centre = acb(variance.sqrt()), acb(mean)
    scale = 1 / (2 * acb.pi()).sqrt()

    def integrand(z: acb, _: bool) -> acb:  # its poles make the values infinite, which the integrator notices
        return function(centre + root * z) * (-z * z / 2).exp() * scale

    inside = acb.integral(integrand, -_FAR, _FAR, eval_limit=_MOST_VALUES)
    need(inside.imag.contains(0), "V11: an integral cannot be enclosed")
    beyond = 2 * normal(arb(-_FAR))
    return inside.real + (beyond * least).union(beyond)


class Logit:
    """The link, and the levels that proofs use."""

    proof_fields = ("p tree", "curve")

    def __init__(self, description: Any) -> None:
        fields(description, "name")
        self._levels: dict[str, LogitLevel] = {}

    def expectation(self, mean: arb, variance: arb) -> arb:
        """P(1) at a latent mean and variance."""
        return mean_of(_sigma, mean, variance, 0)

    def level(self, proof: dict[str, Any], latent: Latent) -> LogitLevel:
        """The level of a proof or a leaf; a curve is verified once."""
        key = repr((proof.get("p"), proof.get("curve"), id(latent)))
        if key not in self._levels:
            self._levels[key] = LogitLevel(real(proof.get("p")), proof.get("curve"), latent)
        return self._levels[key]


class LogitLevel:
    """mu >= m_p(max(S, 0))."""

    def __init__(self, p: float, curve: Any, latent: Latent) -> None:
        need(0 < p < 1, "V11: a level lies between 0 and 1")
        self.p, self.probability = p, arb(p)
        self.hints = "p curve " + ("nu theta" if p < 0.5 else "tangent tau" if p > 0.5 else "")
        need((curve is not None) == (p < 0.5), "V11: a level below 1/2 has a curve, others have none")
        if curve is not None:
            self._read(curve, latent)
        self._tangents: dict[str, tuple[arb, arb]] = {}

    def _read(self, curve: Any, latent: Latent) -> None:
        """V11 (a): points of the level's curve, or above it."""
        c, S, m = fields(curve, "c S m")
        need(
            isinstance(S, list) and 2 <= len(S) <= MOST_POINTS, f"V11: a curve has 2 to {MOST_POINTS} points"
        )
        self.c, self.S, self.m = arb(real(c)), reals(S, len(S)), reals(m, len(S))
        need(self.c > 0, "V11: c must be positive")
        need(
            self.S[0] == 0 and all(a < b for a, b in zip(self.S, self.S[1:], strict=False)),
            "V11: S must rise from 0",
        )
        need(latent.top <= self.S[-1], "V11: the curve ends below the largest variance")
        for variance, mean in zip(self.S, self.m, strict=True):
            need(
                mean_of(_sigma, arb(mean), arb(variance), 0) >= self.p,
                "V11: a point lies below the level's curve",
            )

    def uses_precision(self, leaf: dict[str, Any]) -> bool:
        """Whether the plane needs r = R k(ref)."""
        return self.p != 0.5 and "tau" not in leaf

    def plane(self, latent: Latent, m0: float, leaf: dict[str, Any], q0: arb) -> Plane:
        """The plane of a leaf with these hints."""
        if self.p == 0.5:
            return flat(arb(m0))
        if self.p < 0.5:
            steep = arb(real(leaf.get("nu")))
            need(steep >= 0, "V11: nu must be >= 0")
            return falling(latent, m0 - self._highest(steep), steep, self.c, q0, leaf.get("theta"))
        if "tau" in leaf:
            need(real(leaf["tau"]) == 0, "V11: tau is 0 or absent")
            return flat(m0 - self._above(latent, leaf))
        at, height, slope = self._tangent(leaf)
        return rising(latent, m0 - height + slope * at, slope, q0)

    def _highest(self, steep: arb) -> arb:
        """At least the largest value of chord(S) + steep sqrt(c + S): concave on each cell."""
        best = arb("-inf")
        for S1, S2, m1, m2 in zip(self.S, self.S[1:], self.m, self.m[1:], strict=False):
            rate = (arb(m2) - m1) / (arb(S2) - S1)
            low, high = (self.c + S1).sqrt(), (self.c + S2).sqrt()
            value = (m1 + steep * low).max(m2 + steep * high)
            if not (rate >= 0 or steep <= -2 * rate * low or steep >= -2 * rate * high):
                value = value.max(m1 - rate * (self.c + S1) - steep**2 / (4 * rate))
            best = best.max(value)
        return best

    def _tangent(self, leaf: dict[str, Any]) -> tuple[arb, arb, arb]:
        """V11 (b): (S*, at least m_p(S*), the slope m_p'(S*))."""
        S, low, high = reals(leaf.get("tangent"), 3)
        need(S >= 0 and low <= high, "V11: a tangent is [S, low, high], S >= 0, low <= high")
        key = repr((S, low, high))
        if key not in self._tangents:
            need(
                mean_of(_sigma, arb(low), arb(S), 0) <= self.p,
                "V11: the lower end lies above the level's curve",
            )
            need(
                mean_of(_sigma, arb(high), arb(S), 0) >= self.p,
                "V11: the upper end lies below the level's curve",
            )
            between = arb(low).union(arb(high))
            slope = -mean_of(_curve, between, arb(S), -1) / (2 * mean_of(_slope, between, arb(S), 0))
            need(slope > 0, "V11: the slope of the level's curve must be positive")
            self._tangents[key] = arb(high), slope
        return arb(S), *self._tangents[key]

    def _above(self, latent: Latent, leaf: dict[str, Any]) -> arb:
        """At least m_p everywhere: above 1/2 it rises with S."""
        S, height, _ = self._tangent(leaf)
        need(latent.top <= S, "V11: the tangent touches below the largest variance")
        return height

    def outright(self, latent: Latent, mean: arb, leaf: dict[str, Any]) -> arb:
        """>= 0 only if every latent with this mean and a variance in [0, top] has P >= p."""
        if self.p > 0.5:
            return mean - self._above(latent, leaf)
        return mean - (arb(self.p) / (1 - arb(self.p))).log()  # below 1/2 m_p falls with S

"""The logistic link (V10): levels of E sigma(f), sigma(f) = 1/(1 + e^-f), f ~ N(mu, max(0, S)).

E sigma >= p holds where mu >= m_p(S); m_p is concave for p >= 1/2, convex for p <= 1/2 (docs/maths/bounds.md,
L1), and is known here through enclosures of single integrals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flint import acb, arb

from gpcert_check.arithmetic import normal
from gpcert_check.indefinite import variances
from gpcert_check.model import Latent
from gpcert_check.planes import Plane, falling, flat, rising
from gpcert_check.reading import fields, need, real, reals
from gpcert_check.work import spend

__all__ = ["Logit"]

MOST_POINTS = 1_000
_MOST_VALUES = 20_000  # of one integrand: hostile parameters end as balls too wide to prove anything
_COST = 100  # of one value, as work is counted
_FAR = 12  # standard deviations; beyond, sigma and its derivatives are between -1 and 1, and Phi(-12) < 2e-33
_WIDE = 10  # variances above it: the latent itself is integrated, from 0 to _END
_END = 200
_SHARP = arb(2) ** -100  # relative: more would cost more values
_LEAST = arb(2) ** -3000  # what the integrator may neglect: expectations may be as small as 1e-300


class Smooth(NamedTuple):
    """A function of the latent with values in [least, 1], `step` (u > 0) plus a function that is `odd`, or
    else even, and at most e^-u in size for u > 0: `half(e^-u)` there.
    """

    whole: Callable[[acb], acb]
    least: int
    half: Callable[[acb], acb]
    odd: bool
    step: bool = False


def _slope(e: acb) -> acb:
    return e / (1 + e) ** 2


def _curve(e: acb) -> acb:
    return e * (e - 1) / (1 + e) ** 3


SIGMA = Smooth(lambda u: 1 / (1 + (-u).exp()), 0, lambda e: -e / (1 + e), odd=True, step=True)
SLOPE = Smooth(lambda u: _slope((-u).exp()), 0, _slope, odd=False)
CURVE = Smooth(lambda u: _curve((-u).exp()), -1, _curve, odd=True)


def mean_of(function: Smooth, mean: arb, variance: arb) -> arb:
    """E function(f), f ~ N(mean, variance)."""
    if variance > _WIDE:
        return _wide(function, mean, variance)
    root, centre = acb(variance.sqrt()), acb(mean)
    scale = 1 / (2 * acb.pi()).sqrt()
    inside = _integral(lambda z: function.whole(centre + root * z) * (-z * z / 2).exp() * scale, -_FAR, _FAR)
    both = normal(-_FAR - variance.sqrt()) + normal(variance.sqrt() - _FAR)
    beyond = (2 * normal(arb(-_FAR))).min((mean + variance / 2).exp() * both)  # all are at most e^u as well
    return inside + (beyond * function.least).union(beyond)


def _wide(function: Smooth, mean: arb, variance: arb) -> arb:
    """The densities of u and -u differ by a factor: their sum is a cosh, their difference a sinh."""
    root, rate, width = variance.sqrt(), acb(mean / variance), acb(2 * variance)

    def integrand(u: acb) -> acb:
        both = (u * rate).sinh() if function.odd else (u * rate).cosh()
        return function.half((-u).exp()) * both * (-u * u / width).exp()

    most = 2 / (root * (2 * arb.pi()).sqrt())  # at least both densities together
    beyond = (arb(-_END).exp() * most).union(-arb(-_END).exp() * most)
    inside = _integral(integrand, 0, _END) * (-mean * mean / (2 * variance)).exp() * most
    return inside + beyond + (normal(mean / root) if function.step else 0)


def _integral(integrand: Callable[[acb], acb], low: int, high: int) -> arb:
    """Poles make the values infinite, which the integrator notices."""
    limits: Any = {"eval_limit": _MOST_VALUES, "abs_tol": _LEAST, "rel_tol": _SHARP}
    values = [0]

    def counted(u: acb, _: bool) -> acb:
        values[0] += 1
        return integrand(u)

    found = acb.integral(counted, low, high, **limits)
    spend(_COST * values[0])
    need(found.imag.contains(0), "V10: an integral cannot be enclosed")
    return found.real


class Logit:
    """The link, and the levels that proofs use."""

    proof_fields = ("p tree", "curve")
    floor = spare = arb(0)

    def __init__(self, description: Any) -> None:
        fields(description, "name")
        self._levels: dict[str, LogitLevel] = {}

    def expectation(self, mean: arb, variance: arb) -> arb:
        """P(1) at a latent mean and variance."""
        return mean_of(SIGMA, mean, variance)

    def level(self, proof: dict[str, Any], latent: Latent) -> LogitLevel:
        """The level of a proof or a leaf; a curve is verified once."""
        key = repr((proof.get("p"), proof.get("curve"), id(latent)))
        if key not in self._levels:
            self._levels[key] = LogitLevel(real(proof.get("p")), proof.get("curve"), latent)
        return self._levels[key]


class LogitLevel:
    """mu >= m_p(max(S, 0))."""

    joint = "rate"  # what V9' is told besides

    def __init__(self, p: float, curve: Any, latent: Latent) -> None:
        need(0 < p < 1, "V10: a level lies between 0 and 1")
        self.p, self.probability = p, arb(p)
        self.hints = "p curve " + ("" if p == 0.5 else "tangent tau spread" + " nu" * (p < 0.5))
        need((curve is not None) == (p < 0.5), "V10: a level below 1/2 has a curve, others have none")
        if curve is not None:
            self._read(curve, latent)
        self._tangents: dict[str, tuple[arb, arb]] = {}

    def _read(self, curve: Any, latent: Latent) -> None:
        """V10 (a): points of the level's curve, or above it."""
        c, S, m = fields(curve, "c S m")
        need(
            isinstance(S, list) and 2 <= len(S) <= MOST_POINTS, f"V10: a curve has 2 to {MOST_POINTS} points"
        )
        self.c, self.S, self.m = arb(real(c)), reals(S, len(S)), reals(m, len(S))
        need(self.c > 0, "V10: c must be positive")
        need(
            self.S[0] == 0 and all(a < b for a, b in zip(self.S, self.S[1:], strict=False)),
            "V10: S must rise from 0",
        )
        need(latent.top <= self.S[-1], "V10: the curve ends below the largest variance")
        for variance, mean in zip(self.S, self.m, strict=True):
            need(
                mean_of(SIGMA, arb(mean), arb(variance)) >= self.p,
                "V10: a point lies below the level's curve",
            )

    def uses_precision(self, leaf: dict[str, Any]) -> bool:
        """Whether the plane needs r = R k(ref)."""
        return self.p != 0.5

    def plane(self, latent: Latent, m0: float, leaf: dict[str, Any], q0: arb, x: arb | None) -> Plane:
        """The plane of a leaf with these hints."""
        if self.p == 0.5:
            return flat(arb(m0))
        if "tau" in leaf:
            need(real(leaf["tau"]) == 0, "V10: tau is 0 or absent")
        if self.p < 0.5 and "tau" in leaf:
            return flat(m0 - self._below(variances(latent, q0, x)[0], leaf))
        if self.p < 0.5:
            steep = arb(real(leaf.get("nu")))
            need(steep >= 0, "V10: nu must be >= 0")
            return falling(latent, m0 - self._highest(steep), steep, self.c, q0, x)
        if "tau" in leaf:
            return flat(m0 - self._above(variances(latent, q0, x)[1], leaf))
        at, height, slope = self._tangent(leaf)
        return rising(latent, m0 - height, slope, q0, at, x, height - slope * at - self._lowest())

    def _lowest(self) -> arb:
        """m_p(0)."""
        return (arb(self.p) / (1 - arb(self.p))).log()

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
        """V10 (b): (S*, at least m_p(S*), the slope m_p'(S*))."""
        S, low, high = reals(leaf.get("tangent"), 3)
        need(S >= 0 and low <= high, "V10: a tangent is [S, low, high], S >= 0, low <= high")
        key = repr((S, low, high))
        if key not in self._tangents:
            need(
                mean_of(SIGMA, arb(low), arb(S)) <= self.p,
                "V10: the lower end lies above the level's curve",
            )
            need(
                mean_of(SIGMA, arb(high), arb(S)) >= self.p,
                "V10: the upper end lies below the level's curve",
            )
            between = arb(low).union(arb(high))
            slope = -mean_of(CURVE, between, arb(S)) / (2 * mean_of(SLOPE, between, arb(S)))
            self._tangents[key] = arb(high), slope
        return arb(S), *self._tangents[key]

    def _above(self, most: arb, leaf: dict[str, Any]) -> arb:
        """At least m_p(S), S <= most: above 1/2 it rises with S."""
        S, height, _ = self._tangent(leaf)
        need(most <= S, "V10: the tangent touches below the largest variance")
        return height

    def _below(self, least: arb, leaf: dict[str, Any]) -> arb:
        """At least m_p(S), S >= least: below 1/2 it falls with S, from m_p(0)."""
        if "tangent" not in leaf:
            return self._lowest()
        S, height, _ = self._tangent(leaf)
        need(least >= S, "V8': the tangent touches above the smallest variance")
        return height

    def outright(self, latent: Latent, mean: arb, leaf: dict[str, Any]) -> arb:
        """>= 0 only if every latent with this mean and a variance in [bottom, top] has P >= p."""
        if self.p > 0.5:
            return mean - self._above(latent.top, leaf)
        return mean - self._below(latent.bottom, leaf)

"""scikit-learn's formula in place of the logistic (V16): P(m, S) = sum_i c_i Phi(m/sqrt(v_i + S)).

P >= p where mu >= psi(S), for any psi with P(psi(S), S) >= p at every variance S that occurs: a number, a
line or a root that the leaf tells. That is one inequality about one variable, by Taylor's formula.
The model file names the formula only; its constants, which scikit-learn has published, stand here.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Any, NamedTuple

from flint import arb, arb_series, ctx

from gpcert_check.arithmetic import largest, normal
from gpcert_check.indefinite import variances
from gpcert_check.model import Latent
from gpcert_check.planes import Plane, falling, flat, rising
from gpcert_check.reading import fields, need, real, reals
from gpcert_check.work import spend

__all__ = ["BENT", "COEFFICIENTS", "LAMBDAS", "STEEPEST", "FiveErf", "FiveErfLevel", "Psi", "above", "slope"]

LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
COEFFICIENTS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
STEEPEST = arb("0.098")  # at least |s''| of s(f) = P(f, 0): swept by the tests, as s' > 0 is
BENT = arb("0.126")  # at least |s^(3)|
_NOISES = [1 / (2 * arb(x) ** 2) for x in LAMBDAS]  # the v_i
_LEAST_NOISE = 2.5826  # below all of them
_ORDERS = 40
_HALVINGS = 8  # of a cell that is short enough for the series, but proves too little
_LEAST_C = 0.0625  # the smaller it may be, the more cells
_COST = 1_000  # of one cell, as work is counted


class Psi(NamedTuple):
    """a + rate S - steep sqrt(c + S), rate and steep >= 0, c > 0, one of the two 0; `touch`: where it is told
    to come nearest to the level's curve.
    """

    a: float
    rate: float
    steep: float
    c: float
    touch: float

    def at(self, S: Any) -> Any:
        """Of a ball or a series."""
        line = S * arb(self.rate) + arb(self.a)
        return line - (S + arb(self.c)).sqrt() * arb(self.steep) if self.steep else line

    def change(self, least: arb) -> arb:
        """At least |psi'| from this variance on."""
        return arb(self.rate) + arb(self.steep) / (2 * (self.c + least).sqrt())


def above(psi: Psi, p: arb, low: arb, high: arb) -> bool:
    """Whether P(psi(S), S) >= p for all S in [low, high], certainly: on cells, halved where they are too long
    to tell.
    """
    need(low.is_finite() and high.is_finite(), "V16: a range of variances is not known")
    first, last = max(nextafter(float(low.lower()), -inf), 0.0), nextafter(float(high.upper()), inf)
    need(first <= last < inf, "V16: a range of variances is not known")
    base, stack = min(_LEAST_NOISE, psi.c) if psi.steep else _LEAST_NOISE, [(first, last, _HALVINGS)]
    while stack:
        left, right, tries = stack.pop()
        near = min(max(psi.touch, left), right)
        short = right - left <= (base + near) / 15
        if short and (_roughly(psi, left, right) >= p or _smallest(psi, base, near, left, right) >= p):
            continue
        middle = near if left < near < right else left + (right - left) / 2
        if not (left < middle < right and tries > 0):
            return False
        stack += [(left, middle, tries - short), (middle, right, tries - short)]
    return True


def _roughly(psi: Psi, left: float, right: float) -> arb:
    """P(psi(S), S) on a cell, by balls alone: where psi is so high that Cauchy's estimate says nothing."""
    spend(_COST)
    S = arb(left).union(arb(right))
    return share(psi.at(S), S)


def _smallest(psi: Psi, base: float, near: float, left: float, right: float) -> arb:
    """At most P(psi(S), S) on a cell around `near`: g0 + g1 t + q t^2, q of all orders up to a last one, less
    what Cauchy's estimate says of the others, on a disc in which all is analytic.
    """
    g, ends = _series(psi, arb(near)), [arb(left) - near, arb(right) - near]
    half, radius = largest(map(abs, ends)), (arb(base) + near) / 4
    t, q = arb(0, 1) * half, arb(0)
    for coefficient in reversed(g[2:]):
        q = q * t + coefficient
    q = q.lower()
    least = arb(0).min(g[1] * ends[0] + q * ends[0] * ends[0]).min(g[1] * ends[1] + q * ends[1] * ends[1])
    if q > 0 and not (-g[1] <= 2 * q * ends[0] or -g[1] >= 2 * q * ends[1]):
        least = -g[1] * g[1] / (4 * q)  # at the vertex, which may lie in the cell
    ratio = half / radius
    need(ratio < arb("0.28"), "V16: a cell is too long")
    return g[0] + least - _largest(psi, arb(near), radius) * ratio**_ORDERS / (1 - ratio)


def _series(psi: Psi, middle: arb) -> list[arb]:
    """Taylor coefficients of P(psi(middle + t), middle + t) at t = 0."""
    kept, ctx.cap = ctx.cap, _ORDERS
    try:
        S = arb_series([middle, 1], prec=_ORDERS)
        height, total = psi.at(S), arb_series([0], prec=_ORDERS)
        for c, v in zip(COEFFICIENTS, _NOISES, strict=True):
            total += (height * (S + v).rsqrt() * (-1 / arb(2).sqrt())).erfc() * (arb(c) / 2)
        return [total[k] for k in range(_ORDERS)]
    finally:
        ctx.cap = kept


def _largest(psi: Psi, middle: arb, radius: arb) -> arb:
    """At least |P(psi(S), S)| where |S - middle| <= radius, S complex: there z = psi/sqrt(v + S) is at most
    `apart` from its value in the middle, and |Phi(x + iy)| <= e^{y^2/2} Phi(x).
    """
    total, height = arb(0), psi.at(middle)
    part = 1 - (arb(3) / 4).sqrt()  # |sqrt(1 + u) - 1| and, divided by the root of 3/4, |1/sqrt(1 + u) - 1|
    moved = psi.rate * radius + psi.steep * (psi.c + middle).sqrt() * part  # |u| <= 1/4
    for c, v in zip(COEFFICIENTS, _NOISES, strict=True):
        root = (v + middle).sqrt()
        apart = (moved / (1 - part) + abs(height) * part / (1 - part)) / root
        total += abs(arb(c)) * (apart * apart / 2).exp() * normal(height / root + apart)
    return total.upper()


def share(mean: arb, variance: arb) -> arb:
    """P(1) at a latent mean and variance."""
    terms = zip(COEFFICIENTS, _NOISES, strict=True)
    return sum((c * normal(mean / (v + variance).sqrt()) for c, v in terms), arb(0))


def slope(mean: arb, variance: arb) -> arb:
    """dP/dm."""
    total = arb(0)
    for c, v in zip(COEFFICIENTS, _NOISES, strict=True):
        total += c * (-mean * mean / (2 * (v + variance))).exp() / (2 * arb.pi() * (v + variance)).sqrt()
    return total


class FiveErf:
    """The link; 1 - P(m, S) = P(-m, S) + spare."""

    proof_fields = ("p tree", "")
    floor = arb(0)
    spare = 1 - sum(map(arb, COEFFICIENTS), arb(0))

    def __init__(self, description: Any) -> None:
        fields(description, "name")
        self._levels: dict[float, FiveErfLevel] = {}

    def expectation(self, mean: arb, variance: arb) -> arb:
        """P(1) at a latent mean and variance."""
        return share(mean, variance)

    def level(self, proof: dict[str, Any], latent: Latent) -> FiveErfLevel:
        """The level of a proof or a leaf."""
        p = real(proof.get("p"))
        return self._levels.setdefault(p, FiveErfLevel(p))


class FiveErfLevel:
    """mu >= psi(max(S, 0)), hence P >= p; a leaf tells a line, [a, rate, touch], or a root, [a, steep, c,
    touch].
    """

    hints, joint = "p line root spread", ""

    def __init__(self, p: float) -> None:
        need(0 < p < 1, "V16: a level lies between 0 and 1")
        self.probability = arb(p)
        self._tops: dict[float, arb] = {}  # of numbers above the curve: up to which variance

    def psi(self, leaf: dict[str, Any]) -> Psi:
        """What the leaf tells."""
        need(("line" in leaf) != ("root" in leaf), "V16: a leaf tells a line or a root")
        if "line" in leaf:
            a, rate, touch = reals(leaf["line"], 3)
            need(rate >= 0, "V16: the rate of a line must be >= 0")
            return Psi(a, rate, 0.0, 1.0, touch)
        a, steep, c, touch = reals(leaf["root"], 4)
        need(steep > 0 and c >= _LEAST_C, f"V16: a root has steep > 0 and c >= {_LEAST_C}")
        return Psi(a, 0.0, steep, c, touch)

    def uses_precision(self, leaf: dict[str, Any]) -> bool:
        """Whether the plane needs r = R k(ref)."""
        psi = self.psi(leaf)
        return psi.rate > 0 or psi.steep > 0

    def plane(self, latent: Latent, m0: float, leaf: dict[str, Any], q0: arb, x: arb | None) -> Plane:
        """Below mu - psi, where psi lies above the level's curve at all variances of the cell."""
        psi = self.psi(leaf)
        constant = arb(m0) - psi.a
        if not self.uses_precision(leaf):
            return flat(self.outright(latent, arb(m0), leaf))
        least, most, _ = variances(latent, q0, x)
        need(above(psi, self.probability, least, most), "V16: the level's curve is not below the leaf's")
        if psi.steep:
            return falling(latent, constant, arb(psi.steep), arb(psi.c), q0, x)
        return rising(latent, constant, arb(psi.rate), q0, arb(0), x)

    def outright(self, latent: Latent, mean: arb, leaf: dict[str, Any]) -> arb:
        """>= 0 only if every latent with this mean and a variance in [bottom, top] has P >= p."""
        psi = self.psi(leaf)
        need(not self.uses_precision(leaf), "V16: without a precision a level is a number")
        if not latent.top <= self._tops.get(psi.a, arb(-1)):
            ends = latent.bottom, latent.top
            need(above(psi, self.probability, *ends), "V16: a number lies below the curve")
            if latent.bottom.is_zero():
                self._tops[psi.a] = latent.top.upper()
        return mean - psi.a

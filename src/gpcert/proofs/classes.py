"""Sums of the planes of several classes around one reference, as a quadratic (docs/maths/proof.md, V9').

The formulas are the checker's, in floats: what is chosen by them is a hint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.proofs.five_erf import FiveErfAt
from gpcert.proofs.leaf import CLEAR, Expansion
from gpcert.proofs.levels import Level, Place, slope_at, variance_at
from gpcert.proofs.links import ProbitAt
from gpcert.proofs.quadratic import Multipliers, multipliers
from gpcert.validation import Float

#: |sigma''| of the logistic is at most this; how E sigma' changes along a level's curve with the variance.
_STEEPEST = 1.0 / (6.0 * math.sqrt(3.0))
_CHANGE = 1.0 / 16.0 + 0.5 * _STEEPEST
#: |s''| and |s^(3)| of scikit-learn's formula are at most these.
_FIVE_ERF = 0.098, 0.126


class Rate(NamedTuple):
    """P >= level + slope f - (apart + spread |d|) |f| - curve f^2/2 on the cell."""

    slope: float
    apart: float
    spread: float
    curve: float


NOTHING = Rate(0.0, 0.0, 0.0, 0.0)


class Roots(NamedTuple):
    """A = sqrt(c + max(S, 0)) at the reference; it lies in [least, most], and |A - here| <= change |d|."""

    here: float
    least: float
    most: float
    change: float


@dataclass(frozen=True, eq=False)
class ClassAt:
    """A plane of one class at a place: e^r f = value + f1.d + rho, |rho| <= d^T N d/2, |f| <= most; `least`:
    with the least that a checker may find of what rounding hides.
    """

    place: Place
    level: Level
    expanded: Expansion
    least: bool = False

    @property
    def lengthscale(self) -> Float:
        return self.place.slice.lengthscale

    @cached_property
    def x(self) -> float:
        """sup |d|."""
        return self.expanded.plane.kernels.around.s

    @cached_property
    def rows(self) -> Float:
        """(d,): the orders from two on are at most half this form."""
        f2, H = self.expanded.plane.kernels.head[2], self.expanded.H
        return np.asarray(np.abs(f2).sum(axis=1) + np.abs(f2 - H).sum(axis=1) + self.expanded.rest)

    @cached_property
    def growth(self) -> float:
        """At least (e^r - 1)/r."""
        r = 0.5 * self.x * self.x
        return math.expm1(r) / r

    @cached_property
    def N(self) -> Float:
        plane = self.expanded.plane
        return self.rows + (abs(plane.kernels.constant) + plane.bend) * self.growth

    @cached_property
    def steep(self) -> float:
        return float(np.linalg.norm(self.expanded.plane.kernels.head[1]))

    @cached_property
    def along(self) -> float:
        """At least |f1.d|."""
        f1 = self.expanded.plane.kernels.head[1]
        return min(float(np.abs(f1) @ self.place.domain.reach), self.steep * self.x)

    @cached_property
    def value(self) -> float:
        kernels = self.expanded.plane.kernels
        return kernels.constant + kernels.still + kernels.head[0]

    @cached_property
    def most(self) -> float:
        return abs(self.value) + self.along + self.reach(self.N)

    @cached_property
    def known(self) -> ClassAt:
        """As a checker may find it, who knows the rest better."""
        return ClassAt(self.place, self.level, self.expanded.known, least=True)

    @cached_property
    def noise(self) -> float:
        """About how far rounding of S may move the plane."""
        return slope_at(self.place, self.expanded.plane) * self.level.noise_at(self.place)

    def reach(self, metric: Float) -> float:
        """sup d^T metric d/2."""
        return 0.5 * self.place.domain.norm(metric) ** 2

    def roots(self, c: float) -> Roots:
        """How A moves."""
        least, most, _ = self.level.variances(self.place)
        here = math.sqrt(c + max(variance_at(self.place), 0.0))
        change = self.level.change(self.place, self.least) / (here + math.sqrt(c + least))
        return Roots(here, math.sqrt(c + least), math.sqrt(c + most), change)

    @cached_property
    def rate(self) -> Rate:
        """How P grows with the plane."""
        level, slope = self.level, self.level.growth(self.place)[0]
        if isinstance(level, ProbitAt):
            roots = self.roots(level.noise)
            around = self.most / roots.least
            curve = _steepest(level.t - around, level.t + around) / roots.least**2
            return Rate(slope, 0.0, slope * roots.change / roots.least, curve)
        if isinstance(level, FiveErfAt):
            steep = level.psi(self.place).change(level.variances(self.place)[0])
            change = (_FIVE_ERF[0] * steep + 0.5 * _FIVE_ERF[1]) * level.change(self.place, self.least)
            return Rate(slope, 0.0, change, _FIVE_ERF[0])
        S, _, high = level.growth(self.place)[1]["rate"]
        change = level.change(self.place, self.least)
        convex = high + 0.5 * change * self.x + self.most <= 0.0
        return Rate(slope, 1e-14 * S, _CHANGE * change, 0.0 if convex else _STEEPEST)


def _steepest(low: float, high: float) -> float:
    """At least z density(z) everywhere in [low, high]; at least 0."""
    z = max(high if high <= 1.0 else low if low >= 1.0 else 1.0, 0.0)
    return z * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


class _Part(NamedTuple):
    """value + g.d + d^T H d/2."""

    value: float
    g: Float
    H: Float


class Total:
    """A sum of planes: e^r times it lies above constant e^r + value + g.d + d^T H d/2; units of `first`."""

    def __init__(self, first: ClassAt, constant: float) -> None:
        self._first, self.constant, self.size = first, constant, abs(constant)
        self._added: list[tuple[_Part, ClassAt, float, float, Rate]] = []

    def add(self, one: ClassAt, weight: float, paid: float, rate: Rate) -> None:
        """weight f, less `paid` times what the rate loses."""
        self.constant += weight * one.expanded.plane.kernels.constant
        self.size += weight * one.expanded.size
        self._added.append((self._part(one, weight, paid, rate), one, weight, paid, rate))

    def _part(self, one: ClassAt, weight: float, paid: float, rate: Rate) -> _Part:
        """But for its constant."""
        (kernels, bend, _, _), H, _, rest, _ = one.expanded
        M0, f1, _ = kernels.head
        ratio = self._first.lengthscale / one.lengthscale
        tilt = 1.0 / ratio**2 - 1.0
        far = one.reach(np.abs(tilt)) if tilt.any() else 0.0
        grow = math.expm1(far) / far if far > 0.0 else 1.0
        paid *= math.exp(far)
        still, v, x = kernels.still + M0, one.value, one.x
        wide = (grow - 1.0) * abs(still) + grow * (one.along + one.reach(one.rows))
        bent = rest + bend * math.exp(far) * one.growth
        square = rate.curve + (rate.spread / one.steep if one.steep > 0.0 else 0.0)
        rough = rate.spread * x + rate.curve * (abs(v) + one.along + 0.5 * one.reach(one.N))
        lost = rate.apart * one.most + rate.spread * x * abs(v) + 0.5 * rate.curve * v * v
        diagonal = weight * (still * tilt - np.abs(tilt) * wide - bent)
        diagonal -= paid * (rate.spread * one.steep + rough * one.N)
        form = weight * H - paid * square * np.outer(f1, f1) + np.diag(diagonal)
        g = ratio * f1 * (weight - paid * rate.curve * v)
        return _Part(weight * still - paid * lost, g, np.outer(ratio, ratio) * form)

    def least(self) -> tuple[Multipliers, float] | None:
        """Multipliers, and the bound that they give relative to the terms; None: nothing is known."""
        domain: Domain = self._first.place.domain
        parts = [part for part, *_ in self._added]
        base = sum((part.value for part in parts), self.constant)
        g, H = sum(part.g for part in parts), sum(part.H for part in parts)
        slope = min(self.constant, self.constant * self._first.growth)
        if not (np.isfinite([base, slope, self.size]).all() and np.isfinite(H).all() and self.size > 0.0):
            return None
        best = multipliers(
            domain, np.asarray(g), H + slope * np.eye(len(domain.low)), CLEAR * self.size - base
        )
        value = base + best.value
        if value > 0.0:
            value -= sum(self._drift(best.y, *each) + each[2] * each[1].noise for each in self._added)
        return (best, value / self.size) if best.finite else None

    def _drift(self, y: Float, part: _Part, one: ClassAt, weight: float, paid: float, rate: Rate) -> float:
        """What multipliers lose that fit a rest in which roundings are hidden: what a checker finds besides
        is not negative, but multipliers see its tangent at y.
        """
        known = self._part(one.known, weight, paid, NOTHING if rate is NOTHING else one.known.rate)
        H, domain = known.H - part.H, self._first.place.domain
        slope = known.g - part.g + H @ y
        gained = known.value - part.value - 0.5 * float(y @ H @ y)
        return max(0.0, -gained - float(np.minimum(slope * domain.low, slope * domain.high).sum()))

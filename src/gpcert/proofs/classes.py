"""Sums of the planes of several classes around one reference, as a quadratic (docs/maths-proof.md, V9').

The formulas are the checker's, in floats: what is chosen by them is a hint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds import Domain
from gpcert.proofs.leaf import CLEAR, Expansion
from gpcert.proofs.levels import Level, Place, variance_at
from gpcert.proofs.links import ProbitAt
from gpcert.proofs.quadratic import Multipliers, multipliers
from gpcert.validation import Float

__all__ = ["NOTHING", "ClassAt", "Rate", "Total"]

#: |sigma''| of the logistic is at most this; how E sigma' changes along a level's curve with the variance.
_STEEPEST = 1.0 / (6.0 * math.sqrt(3.0))
_CHANGE = 1.0 / 16.0 + 0.5 * _STEEPEST


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
    """A plane of one class at a place: e^r f = value + f1.d + rho, |rho| <= d^T N d/2, |f| <= most."""

    place: Place
    level: Level
    expanded: Expansion

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

    def reach(self, metric: Float) -> float:
        """sup d^T metric d/2."""
        return 0.5 * self.place.domain.norm(metric) ** 2

    def roots(self, c: float) -> Roots:
        """How A moves."""
        least, most, _ = self.level.variances(self.place)
        here = math.sqrt(c + max(variance_at(self.place), 0.0))
        change = self.level.change(self.place) / (here + math.sqrt(c + least))
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
        S, _, high = level.growth(self.place)[1]["rate"]
        change = level.change(self.place)
        convex = high + 0.5 * change * self.x + self.most <= 0.0
        return Rate(slope, 1e-14 * S, _CHANGE * change, 0.0 if convex else _STEEPEST)


def _steepest(low: float, high: float) -> float:
    """At least z density(z) everywhere in [low, high]; at least 0."""
    z = max(high if high <= 1.0 else low if low >= 1.0 else 1.0, 0.0)
    return z * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


class Total:
    """A sum of planes: e^r times it lies above constant e^r + value + g.d + d^T H d/2; units of `first`."""

    def __init__(self, first: ClassAt, constant: float) -> None:
        self._first, self.constant, self.value, self.size = first, constant, 0.0, abs(constant)
        d = len(first.lengthscale)
        self.g, self.H = np.zeros(d), np.zeros((d, d))

    def add(self, one: ClassAt, weight: float, paid: float, rate: Rate) -> None:
        """weight f, less `paid` times what the rate loses."""
        (kernels, bend, _, _), H, _, rest = one.expanded
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
        self.constant += weight * kernels.constant
        self.value += weight * still
        self.value -= paid * (rate.apart * one.most + rate.spread * x * abs(v) + 0.5 * rate.curve * v * v)
        self.size += weight * one.expanded.size
        diagonal = weight * (still * tilt - np.abs(tilt) * wide - bent)
        diagonal -= paid * (rate.spread * one.steep + rough * one.N)
        form = weight * H - paid * square * np.outer(f1, f1) + np.diag(diagonal)
        self.g += ratio * f1 * (weight - paid * rate.curve * v)
        self.H += np.outer(ratio, ratio) * form

    def least(self) -> tuple[Multipliers, float] | None:
        """Multipliers, and the bound that they give relative to the terms; None: nothing is known."""
        domain: Domain = self._first.place.domain
        base = self.value + self.constant
        slope = min(self.constant, self.constant * self._first.growth)
        if not (np.isfinite([base, slope, self.size]).all() and np.isfinite(self.H).all()):
            return None
        best = multipliers(domain, self.g, self.H + slope * np.eye(len(self.g)), CLEAR * self.size - base)
        return (best, (base + best.value) / self.size) if best.finite and self.size > 0.0 else None

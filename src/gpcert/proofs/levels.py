"""Levels of a probability as planes: what a leaf has to show (docs/maths-proof.md, V3, V4 and V10).

P >= p holds where mu >= m_p(max(S, 0)). A plane is a sum of kernels that lies below mu - m_p everywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from flint import arb
from scipy.special import ndtr, ndtri

from gpcert.bounds import (
    Covariances,
    Domain,
    KernelSum,
    LevelBound,
    LogitCurves,
    LogitLevel,
    RadialSlice,
    Slice,
    root_below,
)
from gpcert.likelihoods import Logit, Probit
from gpcert.proofs.facts import Fact
from gpcert.rounding import normal_cdf_down
from gpcert.validation import Float

#: Points near the variances of a box at which the curve of a logistic level is told.
_NEAR = 9
#: Expectations of the logistic below it are 0 to a checker, which knows them to an absolute error.
_LEAST = 1e-30
#: What a mean has above a level of the logistic is relative to it.
_BELOW = 1e-14
#: How far apart they are at least, as a share of the largest variance.
_APART = 1e-3

__all__ = ["Level", "Levels", "Place", "Plane", "levels_of", "variance_at", "variances"]


class Place(NamedTuple):
    """A reference (d,), raw units, the displacements from it, and whether higher orders become forms."""

    slice: Slice | RadialSlice
    domain: Domain
    reference: Float
    sharp: bool


class Plane(NamedTuple):
    """The sum of kernels, which loses bend (1 - k(x, xh) / s2) besides; `hints`: what a checker is told;
    `size`: of the numbers whose sum its constant is, which rounding is relative to.
    """

    kernels: KernelSum
    bend: float
    hints: dict[str, Any]
    size: float


class Level(ABC):
    """P >= p, by mu >= m_p(S). `t`: orders levels, and is the standard normal one of p."""

    t: float
    fact: Fact

    @property
    @abstractmethod
    def p(self) -> float:
        """At most the probability that is proved."""

    @property
    @abstractmethod
    def told(self) -> dict[str, Any]:
        """The level as a checker reads it."""

    @abstractmethod
    def clears(self, mean: float) -> bool:
        """Whether this mean proves the level whatever the variance (V8)."""

    @abstractmethod
    def cleared(self, mean: float) -> float:
        """`t` of about the highest level that a mean clears whatever the variance."""

    @property
    def outright(self) -> dict[str, Any]:
        """What a checker is told where the mean alone clears the level."""
        return {}

    @abstractmethod
    def plane(self, place: Place) -> Plane:
        """Below mu - m_p."""

    @abstractmethod
    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        """Of P with the mean along the level's curve, at the reference's variance; how a checker is told."""

    def mean(self, place: Place, height: float, hints: dict[str, Any]) -> Plane:
        """The mean alone, less `height`."""
        slice_ = place.slice
        around = _around(place, *_kernels(slice_, place.reference))
        size = abs(slice_.mean) + abs(height)
        return Plane(KernelSum(around, slice_.weights, slice_.mean - height), 0.0, hints, size)

    def falling(self, place: Place, constant: float, steep: float, c: float, hints: dict[str, Any]) -> Plane:
        """V3 (a), V3': below constant + mu + steep sqrt(c + S)."""
        around, r, q0 = _visited(place)
        slice_, lift, s2 = place.slice, self.fact.lift, place.slice.model.variance
        least, most, _ = self.variances(place)
        weight = steep / math.sqrt(c + max(s2 - q0 + lift, 0.0))
        lost = steep * lift / (math.sqrt(c + least) + math.sqrt(c + least + lift))
        rate = 0.5 * steep * max(1.0 / math.sqrt(c + most) - 1.0 / math.sqrt(c + most + lift), 0.0)
        terms = constant, slice_.mean, weight * c, -lost, -rate * (s2 - q0 + least)
        still = weight * (s2 + lift) + 2.0 * rate * s2
        kernels = KernelSum(around, slice_.weights - (weight + 2.0 * rate) * r, sum(terms), still)
        return Plane(kernels, 2.0 * lift * rate, hints, sum(map(abs, terms)))

    def rising(self, place: Place, constants: Sequence[float], tau: float, hints: dict[str, Any]) -> Plane:
        """V3 (b), V3': below the sum of constants + mu - tau S."""
        around, r, q0 = _visited(place)
        slice_, s2 = place.slice, place.slice.model.variance
        terms = *constants, slice_.mean, -tau * (s2 + q0 + self.variances(place)[2])
        kernels = KernelSum(around, slice_.weights + 2.0 * tau * r, sum(terms))
        return Plane(kernels, 2.0 * tau * self.fact.negative * s2, hints, sum(map(abs, terms)))

    def variances(self, place: Place) -> tuple[float, float, float]:
        """V3': the ends of max(S, 0) on the domain, and how far S may lie below 0 there."""
        top = place.slice.model.variance * (1.0 + self.fact.negative)
        if not isinstance(place.slice, Slice):
            return 0.0, top, self.fact.lift
        here, change = variance_at(place), self.change(place) * _length(place)
        below = min(max(change - here, 0.0), self.fact.lift)
        return max(here - change, 0.0), min(max(here + change, 0.0), top), below

    def change(self, place: Place) -> float:
        """|S - S(reference)| is at most this times |d|."""
        s2, lift = place.slice.model.variance, self.fact.lift
        wide = s2 + lift + self.fact.negative * s2
        return 2.0 * math.sqrt(max(variance_at(place) + lift, 0.0) * wide) + wide * _length(place)


def _length(place: Place) -> float:
    return place.domain.norm(np.ones(len(place.reference)))


def _visited(place: Place) -> tuple[Covariances, Float, float]:
    v, k, relative, r = _visit(place)
    return _around(place, v, k, relative), r, float(k @ r)


def _around(place: Place, v: Float, k: Float, relative: Float) -> Covariances:
    """Of another kernel than the Gaussian only the numbers given here are asked for."""
    return Covariances(cast(Slice, place.slice), place.domain, v, k, relative)


def _kernels(slice_: Slice | RadialSlice, x: Float) -> tuple[Float, Float, Float]:
    """v (n, d), k (n,) and its relative error (n,) at x (d,)."""
    if isinstance(slice_, Slice):
        return slice_.kernel(x)
    return (slice_.points - x) / slice_.lengthscale, *slice_.values(x)


def _visit(place: Place) -> tuple[Float, Float, Float, Float]:
    slice_ = place.slice
    if isinstance(slice_, Slice):
        return slice_.visit(place.reference)
    v, k, relative = _kernels(slice_, place.reference)
    return v, k, relative, slice_.model.precision @ k


def variance_at(place: Place) -> float:
    """S at the reference, which may lie below 0."""
    _, k, _, r = _visit(place)
    return place.slice.model.variance - float(k @ r)


@dataclass(frozen=True, eq=False)
class ProbitAt(Level):
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
    def told(self) -> dict[str, Any]:
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

    def cleared(self, mean: float) -> float:
        return mean / math.sqrt(self.noise + (self.top if mean > 0.0 else 0.0))

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        root = math.sqrt(self.noise + max(variance_at(place), 0.0))
        return math.exp(-0.5 * self.t * self.t) / math.sqrt(2.0 * math.pi) / root, {}

    def plane(self, place: Place) -> Plane:
        t = self.t
        if t == 0.0 or (self.flat and t > 0.0):
            return self.mean(place, self.height, {"tau": 0.0} if t > 0.0 else {})
        if t < 0.0 and variance_at(place) <= 0.0:
            return self.mean(place, self.height, {"tau": 0.0})
        if t < 0.0:
            return self.falling(place, 0.0, -t, self.noise, {})
        tau = 0.5 * t / math.sqrt(self.noise + max(variance_at(place), 0.0))
        return self.rising(place, (-tau * self.noise, -0.25 * t * t / tau), tau, {"tau": tau})


@dataclass(frozen=True, eq=False)
class LogitAt(Level):
    """mu >= m_p(S) of the logistic, through points that gpcert's enclosures place above the curve."""

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
        """c, and points (S, m) on or above the curve, from S = 0 to the largest variance."""
        c, S = self._level.grid(self.top)
        for x in self.near:  # slopes between points that nearly coincide would be rounding
            if min(abs(x - y) for y in S) > _APART * self.top:
                S = sorted([*S, x])
        return c, S, [self._level.curve(x)[1] for x in S]

    @property
    def told(self) -> dict[str, Any]:
        if self.probability >= 0.5:
            return {"p": self.probability}
        c, S, m = self._grid
        return {"p": self.probability, "curve": {"c": c, "S": S, "m": m}}

    def clears(self, mean: float) -> bool:
        p = self.probability
        height = self._tangent(self.top)[2] if p > 0.5 else math.log(p) - math.log1p(-p)
        return bool(mean >= height + _BELOW * abs(height))

    def cleared(self, mean: float) -> float:
        return float(ndtri(Logit().expectation(mean, self.top if mean > 0.0 else 0.0)))

    @property
    def outright(self) -> dict[str, Any]:
        return {"tangent": self._tangent(self.top)} if self.probability > 0.5 else {}

    def _tangent(self, S: float) -> list[float]:
        return [S, *self._level.curve(S)]

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        rate = self._tangent(max(variance_at(place), 0.0))
        return float(Logit().expectation_gradient(rate[2], rate[0])[0]), {"rate": rate}

    def plane(self, place: Place) -> Plane:
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
            tangent = self._tangent(S)
            slope, curl = Logit().expectation_gradient(tangent[2], S)
            tau = -float(curl) / float(slope)
            unknown = 4.0 * (tangent[2] - tangent[1]) * abs(place.slice.model.variance - S)  # of the slope
            return self.rising(place, (tau * S, -tangent[2], -unknown), tau, {"tangent": tangent})
        c, grid, m = self._grid
        found = root_below(c, grid, [-height for height in m], S)
        steep, c, kappa = (0.0, c, -np.inf) if found is None else found
        return self.falling(place, kappa, steep, c, {"nu": steep})


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a link for one model."""

    likelihood: Probit | Logit
    fact: Fact
    top: float

    @property
    def least(self) -> float:
        """Probabilities up to it are not told from 0."""
        return _LEAST if isinstance(self.likelihood, Logit) else 0.0

    @property
    def mixed(self) -> bool:
        """Whether each leaf may have a level of its own: those of the logistic are long to tell."""
        return isinstance(self.likelihood, Probit)

    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> Level:
        """A level that proves P >= value; `other`: >= 1 - value, exactly."""
        p = 1 - arb(value) if other else arb(value)
        if isinstance(self.likelihood, Logit):
            guess = 1.0 - value if other else value
            guess = guess if arb(guess) >= p else float(np.nextafter(guess, 1.0))
            return LogitAt(guess, self.fact, self.top, flat, near)
        t = 0.0 if value == 0.5 else float(ndtri(value)) * (-1.0 if other else 1.0)
        step = float(np.spacing(max(abs(t), 2.0**-10)))
        while np.isfinite(t) and not (-arb(t) / arb(2).sqrt()).erfc() / 2 >= p:
            t, step = t + step, 2.0 * step
        return self.at(t, flat)

    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> Level:
        """The level of Phi(t), about."""
        if isinstance(self.likelihood, Logit):
            return LogitAt(float(ndtr(t)), self.fact, self.top, flat, near)
        return ProbitAt(t, self.fact, self.likelihood.scale, self.top, flat)


def variances(bound: LevelBound, lower: Float, upper: Float, reference: Float) -> tuple[float, ...]:
    """Some between the smallest and the largest S at corners and in the middle of a box."""
    points = (lower, upper, reference, 0.5 * lower + 0.5 * upper)
    found = [bound.slice.latent(bound.shape.project(x))[1][1] for x in points]
    return tuple(np.linspace(max(min(found), 0.0), max(*found, 0.0), _NEAR).tolist())


def levels_of(likelihood: Probit | Logit, fact: Fact, variance: float) -> Levels:
    """For a model with this prior variance."""
    return Levels(likelihood, fact, variance * (1.0 + fact.negative) * (1.0 + 1e-12))

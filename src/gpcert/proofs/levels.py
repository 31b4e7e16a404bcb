"""Levels of a probability as planes: what a leaf has to show (docs/maths/proof.md, V3, V4 and V10).

P >= p holds where mu >= m_p(max(S, 0)). A plane is a sum of kernels that lies below mu - m_p everywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.proofs.facts import Fact
from gpcert.rounding import UNIT
from gpcert.validation import Float

#: More than the rounding of a kernel's value, relative to the variance.
_BESIDE = 1e-14

Ends = tuple[float, float]


class Place(NamedTuple):
    """A reference (d,), raw units, the displacements from it, and how many higher orders are bounded by
    themselves: 0 none, 1 what is cheap, 2 as many as pay; `ends`: those of max(S, 0), if the mean alone is
    to decide between them (V8').
    """

    slice: Slice | RadialSlice
    domain: Domain
    reference: Float
    sharp: int
    ends: Ends | None = None


class ProofPlane(NamedTuple):
    """The sum of kernels, which loses bend (1 - k(x, xh) / s2) besides; `hints`: what a checker is given;
    `size`: of the numbers whose sum its constant is, which rounding is relative to.
    """

    kernels: KernelSum
    bend: float
    hints: dict[str, Any]
    size: float


class ProofLevel(ABC):
    """P >= p, by mu >= m_p(S). `t`: orders levels, and is the standard normal one of p."""

    t: float
    fact: Fact

    @property
    @abstractmethod
    def p(self) -> float:
        """At most the probability that is proved."""

    @property
    @abstractmethod
    def entry(self) -> dict[str, Any]:
        """The level as a checker reads it."""

    @abstractmethod
    def clears(self, mean: float) -> bool:
        """Whether this mean proves the level whatever the variance (V8)."""

    @abstractmethod
    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        """`t` of about the highest level that a mean clears whatever the variance; `ends`: between these."""

    def between(self, ends: Ends) -> tuple[float, dict[str, Any]] | None:
        """A mean that surely clears the level whatever the variance between the ends (V8'), and what a
        checker is given; None where that is no help.
        """
        return None

    def below(self, place: Place) -> ProofPlane | None:
        """Below mu - m_p, as the place wants it."""
        if place.ends is None:
            return self.plane(place)
        found = self.between(place.ends)
        return None if found is None else self.mean(place, *found)

    @property
    def outright(self) -> dict[str, Any]:
        """What a checker is given where the mean alone clears the level."""
        return {}

    @abstractmethod
    def plane(self, place: Place) -> ProofPlane:
        """Below mu - m_p."""

    @abstractmethod
    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        """dP/d mean on the level's curve, at the reference's variance, and what a checker is given of it."""

    def mean(self, place: Place, height: float, hints: dict[str, Any]) -> ProofPlane:
        """The mean alone, less `height`."""
        slice_ = place.slice
        around = _around(place, *_kernels(slice_, place.reference))
        size = abs(slice_.mean) + abs(height)
        return ProofPlane(KernelSum(around, slice_.weights, slice_.mean - height), 0.0, hints, size)

    def falling(
        self, place: Place, constant: float, steep: float, c: float, hints: dict[str, Any]
    ) -> ProofPlane:
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
        return ProofPlane(kernels, 2.0 * lift * rate, hints, sum(map(abs, terms)))

    def rising(
        self,
        place: Place,
        constants: Sequence[float],
        tau: float,
        hints: dict[str, Any],
        room: float = 0.0,
    ) -> ProofPlane:
        """V3 (b), V4': below the sum of constants + mu - tau S where S >= 0, plus room where S < 0."""
        around, r, q0 = _visited(place)
        slice_, s2 = place.slice, place.slice.model.variance
        lost = max(tau * self.variances(place)[2] - room, 0.0)
        terms = *constants, slice_.mean, -tau * (s2 + q0), -lost
        kernels = KernelSum(around, slice_.weights + 2.0 * tau * r, sum(terms))
        return ProofPlane(kernels, 2.0 * tau * self.fact.negative * s2, hints, sum(map(abs, terms)))

    def variances(self, place: Place) -> tuple[float, float, float]:
        """V3': the ends of max(S, 0) on the domain, and how far S may lie below 0 there."""
        top = place.slice.model.variance * (1.0 + self.fact.negative)
        here, moved = variance_at(place), _moved(place)
        change = self._change(place, moved, 0.0) * moved + _noise(place)
        below = min(max(change - here, 0.0), self.fact.lift)
        return max(here - change, 0.0), min(max(here + change, 0.0), top), below

    def change(self, place: Place, least: bool = False) -> float:
        """|S - S(reference)| is at most this times |d|; `least`: about the least that a checker may find."""
        noise = self.noise_at(place)
        return self._change(place, _length(place), -noise if least else noise)

    def noise_at(self, place: Place) -> float:
        """About how far S and the lift at the reference may be from those that a checker finds."""
        return _noise(place) + self.fact.unsure

    def _change(self, place: Place, moved: float, noise: float) -> float:
        s2, lift = place.slice.model.variance, self.fact.lift
        wide = s2 + lift + self.fact.negative * s2
        return 2.0 * math.sqrt(max(variance_at(place) + lift + noise, 0.0) * wide) + wide * moved


class LinkLevels(ABC):
    """The levels of a link for one model.

    `free`: P is at least that, without a proof. A checker does not distinguish probabilities up to `least`
    from 0, nor levels above `most` from those that are never reached. `mixed`: whether each leaf may have a
    level of its own.
    """

    free: float = 0.0
    least: float = 0.0
    most: float = 1.0
    mixed: bool = True

    @property
    def other(self) -> LinkLevels:
        """Of the other class."""
        return self

    @abstractmethod
    def of(self, value: float, other: bool, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        """A level that proves P >= value; `other`: >= 1 - value, exactly."""

    @abstractmethod
    def at(self, t: float, flat: bool, near: tuple[float, ...] = ()) -> ProofLevel:
        """The level of Phi(t), about."""


def _length(place: Place) -> float:
    return place.domain.norm(np.ones(len(place.reference)))


def _moved(place: Place) -> float:
    """At least |k(x, .) - k(reference, .)| / s on the domain: |d|, or of another kernel than the Gaussian
    (2 - 2 phi(|d|^2/2))^(1/2), which is no more than its tangent in 0 says.
    """
    length = _length(place)
    if isinstance(place.slice, Slice):
        return length
    ((group,),), s2, z = place.slice.terms, place.slice.model.variance, 0.5 * length * length
    slope = float(group.phi.derivatives(np.zeros(1), 1)[1][0]) / s2
    lost = 1.0 - float(group.phi.value(np.array([z]))[0]) / s2 + _BESIDE
    return math.sqrt(2.0 * min(lost, -slope * z * (1.0 + _BESIDE)))


def _noise(place: Place) -> float:
    """About how far rounding may move S at the reference: stiff precisions cancel."""
    k = _visit(place)[1]
    return 4.0 * UNIT * _size(place.slice.model) * float(k @ k)


@lru_cache(maxsize=8)
def _size(model: Model) -> float:
    return float(np.linalg.norm(model.precision))


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


def terms_at(place: Place) -> float:
    """The sizes of what a plane takes a slope times, as balls add them: s2 + k.r and 2 r_i k_i (V3 (b))."""
    _, k, _, r = _visit(place)
    return place.slice.model.variance + 3.0 * float(k @ np.abs(r))


def slope_at(place: Place, plane: ProofPlane) -> float:
    """How much of r is in the weights of a plane: what its value has of S."""
    r = np.abs(_visit(place)[3])
    twist = np.abs(plane.kernels.b - place.slice.weights)
    return float(twist.max()) / max(float(r.max()), 1e-300)

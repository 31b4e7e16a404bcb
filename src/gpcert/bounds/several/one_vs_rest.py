"""Bounds of one-vs-rest probabilities: every class a two-class problem of its own, combined monotonically.

Each quantity asked about has values in [0, 1] and is monotone in every p_j (docs/maths/multiclass.md, O1
to O3), so its range over a box of (p_j) is attained at corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.rounding import UNIT, up
from gpcert.validation import Float


class Ratio(Protocol):
    """A function of class probabilities p (C,) >= 0 with values in [0, 1]."""

    @property
    def label(self) -> int:
        """The class it is about."""

    @property
    def sign(self) -> int:
        """1: its lower bounds want the smallest p of the class and the largest of the others; -1: reverse."""

    def bounds(self, lower: Float, upper: Float) -> tuple[float, float]:
        """Its range over lower <= p <= upper, rounded outward."""

    def gradient(self, p: Float) -> tuple[float, Float]:
        """An estimate of its value and of its gradient in p (C,)."""


@dataclass(frozen=True)
class ClassShare:
    """O1: p_c / sum_j p_j, increasing in p_c, decreasing in the others."""

    label: int
    sign: int = 1

    def bounds(self, lower: Float, upper: Float) -> tuple[float, float]:
        c = self.label
        return _ratio(lower[c], np.delete(upper, c), -1), _ratio(upper[c], np.delete(lower, c), 1)

    def gradient(self, p: Float) -> tuple[float, Float]:
        total = max(float(p.sum()), 1e-300)
        value = float(p[self.label]) / total
        slope = np.full(len(p), -value)
        slope[self.label] += 1.0
        return value, slope / total


@dataclass(frozen=True)
class OthersShare:
    """O2: 1 - p_c / sum_j p_j = (sum of the others) / sum_j p_j."""

    label: int
    sign: int = -1

    def bounds(self, lower: Float, upper: Float) -> tuple[float, float]:
        c = self.label
        others_low, others_high = np.delete(lower, c).sum(), np.delete(upper, c).sum()
        wide = 1.0 + UNIT * len(lower)  # of the sums
        return _ratio(others_low / wide, upper[[c]], -1), _ratio(others_high * wide, lower[[c]], 1)

    def gradient(self, p: Float) -> tuple[float, Float]:
        value, slope = ClassShare(self.label).gradient(p)
        return 1.0 - value, -slope


@dataclass(frozen=True)
class ClassMargin:
    """O3: (1 + min_j (P_c - P_j)) / 2 over j != c: above 1/2 exactly where class c wins."""

    label: int
    sign: int = 1

    def bounds(self, lower: Float, upper: Float) -> tuple[float, float]:
        rivals = [j for j in range(len(lower)) if j != self.label]
        return (
            min(self._against(j, lower, upper, -1) for j in rivals),
            min(self._against(j, upper, lower, 1) for j in rivals),
        )

    def _against(self, j: int, own: Float, other: Float, direction: int) -> float:
        """(1 + (p_c - p_j)/(p_c + p_j + rest))/2, p_c from `own`, p_j from `other`, the rest where it is
        extreme: it shrinks the difference.
        """
        c = self.label
        pull = own[c] - other[j]
        shrink = (pull >= 0) == (direction < 0)
        largest, smallest = (other, own) if direction < 0 else (own, other)
        rest = np.delete(largest if shrink else smallest, [c, j])
        total = own[c] + other[j] + rest.sum()
        if not total > 0:
            return 0.0 if direction < 0 else 1.0
        value = 0.5 + 0.5 * float(pull / total)
        value += direction * UNIT * (len(own) + 16)
        return float(np.clip(value, 0.0, 1.0)) if value == value else (0.0 if direction < 0 else 1.0)

    def gradient(self, p: Float) -> tuple[float, Float]:
        j = int(np.argmax(np.where(np.arange(len(p)) == self.label, -1.0, p)))
        own, slope = ClassShare(self.label).gradient(p)
        other, fall = ClassShare(j).gradient(p)
        return 0.5 + 0.5 * (own - other), 0.5 * (slope - fall)


def _ratio(part: float, others: Float, direction: int) -> float:
    """part / (part + sum of others), rounded in the direction; the whole range where nothing is known."""
    total = part + float(others.sum())
    if not total > 0:
        return 0.0 if direction < 0 else 1.0
    value = float(part / total) * (1.0 + direction * UNIT * (2 * len(others) + 16))
    value = math.nextafter(value, direction * math.inf)  # a share below 2^-1022 is off by half a step besides
    return float(np.clip(value, 0.0, 1.0)) if value == value else (0.0 if direction < 0 else 1.0)


#: How far below the smallest probability found a class's certificate aims at least, relative to it, and
#: which share of the room that the target leaves it may use up.
_SLACK = 1e-3
_SHARE = 0.1
_SMALLEST_TARGET = 1e-12


@dataclass(frozen=True, eq=False)
class OneVsRestBound(OneByOne):
    """A `BoxBound` of a quantity of P_c = p_c / sum_j p_j (docs/maths/multiclass.md, section 1)."""

    classes: tuple[tuple[BoxBound, BoxBound], ...]  #: bounds of p_j and of 1 - p_j
    ratio: Ratio
    shape: Shape

    def at(self, x: Float) -> tuple[float, float]:
        """Enclosures of every p_j, then monotonicity."""
        ends = np.array([own.at(x) for own, _ in self.classes])
        return self.ratio.bounds(ends[:, 0], ends[:, 1])

    def objective(self, x: Float) -> tuple[float, Float]:
        """The quantity with p_j about Phi(objective of class j)."""
        scores, slopes = zip(*(own.objective(x) for own, _ in self.classes), strict=True)
        z = np.array(scores)
        value, gradient = self.ratio.gradient(np.maximum(ndtr(z), 1e-300))
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return value, (gradient * density) @ np.array(slopes)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: the smallest p_j where the quantity increases with it, else the largest."""
        ends = np.array([own.at(reference) for own, _ in self.classes])
        middle = 0.5 * (ends[:, 0] + ends[:, 1])
        rising = (np.arange(len(middle)) == self.ratio.label) == (self.ratio.sign > 0)
        # What the classes may give away together without missing the target, shared among them.
        room = max(0.0, self.ratio.bounds(middle, middle)[0] - target)
        slack = _SHARE * room * float(middle.sum())
        low, high = np.zeros(len(middle)), np.ones(len(middle))
        answers, costs = [], []
        for j, (own, other) in enumerate(self.classes):
            bound = own if rising[j] else other
            answer = _smallest(bound, lower, upper, reference, slack)
            if rising[j]:
                low[j] = answer.value
            else:
                high[j] = up(1.0 - answer.value)
            answers.append(answer)
            costs.append(abs(middle[j] - (low[j] if rising[j] else high[j])))
        probability = self.ratio.bounds(low, high)[0]
        worst = answers[int(np.argmax(costs))]
        stuck = probability < target and all(answer.at_rounding for answer in answers)
        return Certified(probability, worst.point, worst.split, stuck)


def _smallest(bound: BoxBound, lower: Float, upper: Float, reference: Float, slack: float) -> Certified:
    """A bound over the box with a target of its own: by `slack` below the smallest value found."""
    start = smallest_point(bound, lower, upper, reference)
    target = bound.at(start)[0]
    target -= max(_SLACK * min(target, 1.0 - target), slack)
    if not _SMALLEST_TARGET < target < 1.0:
        return Certified(0.0, start, int(np.argmax(upper - lower)), False)
    return bound.over(lower, upper, start, target)


def smallest_point(bound: BoxBound, lower: Float, upper: Float, reference: Float) -> Float:
    """A point of the box with a small value, from the reference along corners."""
    start = reference
    score, gradient = bound.objective(reference)
    for _ in range(3):
        corner = np.where(gradient > 0, lower, np.where(gradient < 0, upper, start))
        corner = bound.shape.within(corner, lower, upper)
        value, gradient = bound.objective(corner)
        if not value < score:
            break
        start, score = corner, value
    return start

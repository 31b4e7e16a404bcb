"""Bounds of one-vs-rest probabilities: every class a two-class problem of its own, combined monotonically."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.several.ratios import Ratio
from gpcert.rounding import up
from gpcert.validation import Float

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

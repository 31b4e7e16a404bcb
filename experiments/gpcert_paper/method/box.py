"""Lines 4 to 6 of Algorithm 1 on one box, for any likelihood; the package's search loop is the rest of it.

Points are valued as in our own bound of the same model: the methods differ over boxes alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.validation import Float
from gpcert_paper.method.covariance import Covariances, Extreme, covariances

Ours = TypeVar("Ours", RbfBound, SoftmaxBound)


class Answer(NamedTuple):
    """A lower bound of P over a box, the extrema it was made of, and whether rounding alone is in its way."""

    value: float
    extrema: Sequence[Extreme]
    at_rounding: bool = False


@dataclass(frozen=True, eq=False)
class PublishedBound(OneByOne, Generic[Ours]):
    """A `BoxBound` from linear bounds on the covariance vector."""

    ours: Ours

    @property
    def shape(self) -> Shape:
        return self.ours.shape

    def at(self, x: Float) -> tuple[float, float]:
        return self.ours.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        return self.ours.objective(x)

    @abstractmethod
    def answer(self, c: Covariances, target: float) -> Answer:
        """The bound of P where the covariances are within c."""

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`; the candidates are the points where the relaxations are extreme."""
        slice_ = self.ours.slice
        if self.shape.domain(lower, upper, reference, slice_.lengthscale) is None:
            return Certified(1.0, reference, 0, False)  # the box misses the region
        if not slice_.moderate:  # R7
            return Certified(0.0, reference, int(np.argmax((upper - lower) / slice_.lengthscale)), False)
        assert isinstance(slice_, Slice)  # the factory sees to it
        c = covariances(slice_, lower, upper)
        found = self.answer(c, target)
        centre = 0.5 * lower + 0.5 * upper
        points = [np.clip(centre + e.point * slice_.lengthscale, lower, upper) for e in found.extrema]
        best = min(points, key=lambda x: self.objective(x)[0])
        return Certified(found.value, best, int(np.argmax(c.reach)), found.at_rounding)

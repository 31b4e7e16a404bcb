"""A bound of a model that differs a little from the one asked about."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.bounds.box import BoxBound, Certified
from gpcert.bounds.domain import Shape
from gpcert.validation import Float

__all__ = ["Loosened"]


@dataclass(frozen=True, eq=False)
class Loosened:
    """A `BoxBound` of a probability that is within `slack` of the one that `base` bounds."""

    base: BoxBound
    slack: float

    @property
    def shape(self) -> Shape:
        """The region."""
        return self.base.shape

    def at(self, x: Float) -> tuple[float, float]:
        """See `BoxBound.at`."""
        low, high = self.base.at(x)
        return max(0.0, low - self.slack), min(1.0, high + self.slack)

    def objective(self, x: Float) -> tuple[float, Float]:
        """See `BoxBound.objective`."""
        return self.base.objective(x)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`."""
        answer = self.base.over(lower, upper, reference, min(target + 2.0 * self.slack, 0.5 + 0.5 * target))
        return answer._replace(probability=max(0.0, answer.probability - self.slack))

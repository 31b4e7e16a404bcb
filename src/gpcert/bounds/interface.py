"""What the search knows of a bound: a lower bound over a box, a candidate point, where to split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from gpcert.bounds.geometry.domain import Shape
from gpcert.validation import Float


class BoxQuery(NamedTuple):
    """What is asked of a bound: the arguments of `BoxBound.over`."""

    lower: Float
    upper: Float
    reference: Float
    target: float


class Certified(NamedTuple):
    """`value` <= P on the whole box; `point` (d,), raw units, in the box; `split`: coordinate to halve.

    P is what the bound is of: a probability, or a latent mean or variance.

    `at_rounding`: only rounding stands between the bound and its target, so splitting cannot help.
    `pieces`: boxes to look at next instead of halves; on the rest of the region P >= `elsewhere`. The box
    itself: it is to be asked about again, with what the bound has kept.
    """

    value: float
    point: Float
    split: int
    at_rounding: bool
    pieces: tuple[tuple[Float, Float], ...] | None = None
    elsewhere: float = 1.0


#: Value and gradient (d,) at x (d,).
Objective = Callable[[Float], tuple[float, Float]]


class BoxBound(Protocol):
    """What the search needs to know of a model on a region: values at points, lower bounds over boxes."""

    @property
    def shape(self) -> Shape:
        """The region: bounds hold on its part of a box, witnesses are projected onto it."""

    def at(self, x: Float) -> tuple[float, float]:
        """Enclosure of P at x (d,)."""

    def objective(self, x: Float) -> tuple[float, Float]:
        """An increasing function of P (estimated) and its gradient at x (d,): for local search only."""

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """A lower bound of P over a box, aiming at `target`; `reference` (d,) is where P seems smallest."""

    @property
    def batch(self) -> int:
        """How many boxes are best asked about together."""

    def over_many(self, queries: Sequence[BoxQuery]) -> list[Certified]:
        """`over` of each, in their order."""


class OneByOne(ABC):
    """A bound that gains nothing from several boxes at once."""

    batch = 1

    @abstractmethod
    def objective(self, x: Float) -> tuple[float, Float]:
        """See `BoxBound.objective`."""

    @abstractmethod
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`."""

    def over_many(self, queries: Sequence[BoxQuery]) -> list[Certified]:
        """One after another."""
        return [self.over(*query) for query in queries]

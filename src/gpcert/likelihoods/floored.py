"""A link between floor and 1 - floor: floor + (1 - 2 floor) sigma(f), as GPflow's Bernoulli predicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.likelihoods.base import UNIT, BinaryLikelihood
from gpcert.likelihoods.prediction_only import PredictionOnly
from gpcert.likelihoods.probit import Probit
from gpcert.validation import Float, as_floats, require


@dataclass(frozen=True)
class Floored(PredictionOnly):
    """P(y = +1 | f) = floor + (1 - 2 floor) sigma(f).

    Read it as label noise: the label is flipped with probability `floor`.

    Parameters
    ----------
    link : BinaryLikelihood
        A symmetric one; default `Probit()`.
    floor : float
        Between 0 and 1/2.

    Examples
    --------
    >>> gc.Floored(gc.Probit(), 0.001)
    Floored(link=Probit(scale=1.0), floor=0.001)
    """

    link: BinaryLikelihood = field(default_factory=Probit)
    floor: float = 1e-3

    def __post_init__(self) -> None:
        require(
            isinstance(self.link, BinaryLikelihood) and self.link.symmetric,
            f"link must be a symmetric two-class likelihood, got {self.link!r}",
        )
        floor = as_floats("floor", self.floor)
        require(
            floor.ndim == 0 and bool(0.0 < floor < 0.5), f"floor must be between 0 and 1/2, got {self.floor}"
        )
        object.__setattr__(self, "floor", float(floor))

    @property
    def name(self) -> str:
        return "floored"

    @property
    def symmetric(self) -> bool:
        return True

    def value(self, f: ArrayLike) -> Float:
        """floor + (1 - 2 floor) sigma(f), any shape."""
        return self._lift(self.link.value(f))

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """floor + (1 - 2 floor) E sigma(f), any shape."""
        return self._lift(self.link.expectation(mean, var))

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """The link's error, and four roundings of numbers up to 1."""
        return np.asarray(self.link.expectation_error(mean, var) + 4 * UNIT)

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """(1 - 2 floor) times the link's."""
        slope, curve = self.link.expectation_gradient(mean, var)
        return (1.0 - 2.0 * self.floor) * slope, (1.0 - 2.0 * self.floor) * curve

    def to_dict(self) -> dict[str, Any]:
        """{"name": "floored", "link": description of the link, "floor": hexadecimal float}."""
        return {"name": self.name, "link": self.link.to_dict(), "floor": self.floor.hex()}

    def _lift(self, p: Float) -> Float:
        return np.asarray(self.floor + (1.0 - 2.0 * self.floor) * p)

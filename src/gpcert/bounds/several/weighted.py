"""What bounds of softmax probabilities share, whatever is known of the latents: their values at points."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import OneByOne
from gpcert.bounds.several.tangents.expansion import Latents
from gpcert.errors import InvalidInputError
from gpcert.likelihoods import Softmax
from gpcert.likelihoods.integrals.correlated import TARGET
from gpcert.validation import Float


@dataclass(frozen=True, eq=False)
class WeightedBound(OneByOne):
    """A `BoxBound` of 1 - sum_i beta_i p_i, 0 <= beta_i <= 1 (docs/maths/multiclass.md, section 4)."""

    shape: Shape
    beta: Float  #: (C,)

    @property
    @abstractmethod
    def correlated(self) -> bool:
        """Whether latents of different classes are."""

    @property
    @abstractmethod
    def lengthscale(self) -> Float:
        """Units of displacements (d,)."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """Size of a box, in lengthscales, beyond which expansions say nothing."""

    @abstractmethod
    def latents_at(self, x: Float) -> tuple[Latents, float]:
        """Latents at x (d,), and how far their rounding may move a probability."""

    @abstractmethod
    def shares(self, x: Float) -> Float:
        """All probabilities (C,) at x (d,), estimated."""

    def weighing(self, beta: Float) -> Self:
        """The same for another beta (C,)."""
        return replace(self, beta=beta)

    def at(self, x: Float) -> tuple[float, float]:
        """The predictor with its proved error, and what the rounding of means and covariances adds."""
        _, p, error = self.probabilities(x)
        value = float((1.0 - self.beta) @ p)  # probabilities sum to one
        blur = min(float((1.0 - self.beta) @ error), float(self.beta @ error)) + 1e-15 * len(p)
        if not math.isfinite(value + blur):
            return 0.0, 1.0
        return max(0.0, value - blur), min(1.0, value + blur)

    def probabilities(self, x: Float, target: float = TARGET) -> tuple[Latents, Float, Float]:
        """Latents at x (d,), class probabilities (C,) and bounds of their errors (C,); inf: nothing known.

        `target`: as in `Softmax`.
        """
        latents, moved = self.latents_at(x)
        covariance = latents.clipped if self.correlated else np.diagonal(latents.clipped)
        try:
            p, error = Softmax().expectation_and_error(latents.mean[None], covariance[None], target)
        except InvalidInputError:
            C = len(self.beta)
            return latents, np.full(C, 1.0 / C), np.full(C, np.inf)
        return latents, p[0], error[0] + moved

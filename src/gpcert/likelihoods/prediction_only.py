"""Likelihoods that serve prediction, not training: what foreign libraries report as a probability."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import LEAST, UNIT, BinaryLikelihood, LogLikelihood, Tilted
from gpcert.validation import Float


class PredictionOnly(BinaryLikelihood):
    """A two-class likelihood without derivatives of log p(y|f); logarithms follow from `expectation`."""

    def log_expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """log of `expectation`, any shape; never below log(1e-300)."""
        return np.log(np.maximum(self.expectation(mean, var), LEAST))

    def log_expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """-log(1 - error/p); inf where the error is not below half of p."""
        p, error = self.expectation(mean, var), self.expectation_error(mean, var)
        known = (p > 2.0 * error) & (p > LEAST)
        ratio = np.divide(error, p, out=np.zeros_like(p), where=known)
        # -log(1 - t) <= 2 t for t <= 1/2; log itself is right to 8 u relative.
        return np.where(known, 2.0 * ratio + 8 * UNIT * (1.0 - np.log(np.maximum(p, LEAST))), np.inf)

    def log_expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        p = np.maximum(self.expectation(mean, var), LEAST)
        slope, curve = self.expectation_gradient(mean, var)
        return slope / p, curve / p

    def log_likelihood(self, y: ArrayLike, f: ArrayLike) -> LogLikelihood:
        self._no_training()

    def tilted(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Tilted:
        self._no_training()

    def _no_training(self) -> NoReturn:
        raise InvalidInputError(
            f"likelihood must be probit or logit for training, got {self.name!r} (prediction only)"
        )

"""scikit-learn's stand-in for the logistic: a fixed sum of five error functions.

Its expectation is closed: sum_i c_i Phi(m / sqrt(1/(2 lambda_i^2) + v)); docs/maths/likelihoods.md#five-erf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from gpcert.likelihoods.base import LEAST, NDTR, UNIT, as_moments
from gpcert.likelihoods.prediction_only import PredictionOnly
from gpcert.validation import Float

#: The doubles of scikit-learn's `_gpc.py`; a model with these constants is what is certified.
LAMBDAS = np.array([0.41, 0.4, 0.37, 0.44, 0.39])
COEFFICIENTS = np.array([-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654])

#: sum_i c_i to one rounding: what the probability tends to for large latents, 1 - 1e-8.
TOTAL = math.fsum(COEFFICIENTS)

#: More than |TOTAL - 1|/2: so near to 1/2, P may say one class and the sign of the mean, which is what
#: scikit-learn's `predict` looks at, the other (docs/maths/bounds.md, D3).
TIE = 6e-9

#: At least sup_f |five error functions - logistic|; swept in ball arithmetic by the tests.
GAP = 4.4e-4

#: At least sup |dP/dm| of the expectation P; swept likewise.
SLOPE = 0.26

#: At least D1/2 + D2/2, D1 and D2 the largest differences of the first and second derivatives in f from the
#: logistic's: how fast the gap between the expectations can change along a level curve, per unit of variance.
DRIFT = 1e-3

_LARGEST = 1e150


@dataclass(frozen=True)
class FiveErf(PredictionOnly):
    """sigma(f) = sum_i c_i (1 + erf(lambda_i f)) / 2, increasing from 0 to 1 - 1e-8.

    scikit-learn's stand-in for the logistic, with its constants.

    Examples
    --------
    >>> gc.FiveErf()
    FiveErf()
    """

    @property
    def name(self) -> str:
        return "five_erf"

    @property
    def symmetric(self) -> bool:
        """sigma(-f) = TOTAL - sigma(f): not 1 - sigma(f), by 1e-8."""
        return False

    def value(self, f: ArrayLike) -> Float:
        return self.expectation(f, 0.0)

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """sum_i c_i Phi(z_i), from the side where Phi is small, any shape."""
        m, v = as_moments(mean, var)
        below = ndtr(-np.abs(_standardised(m, v)[0])) @ COEFFICIENTS
        return np.asarray(np.clip(np.where(m > 0, TOTAL - below, below), 0.0, 1.0))

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Rounding only: docs/maths/likelihoods.md#five-erf."""
        m, v = as_moments(mean, var)
        z = np.abs(_standardised(m, v)[0])
        size = (ndtr(-z) + z * _density(z)) @ np.abs(COEFFICIENTS)
        return np.asarray((NDTR + 16) * UNIT * size + np.where(m > 0, 2 * UNIT, 0.0) + LEAST)

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """sum_i c_i phi(z_i)/s_i and -sum_i c_i z_i phi(z_i)/(2 s_i^2)."""
        z, deviation = _standardised(*as_moments(mean, var))
        slope = _density(z) / deviation
        by_variance = -0.5 * z * slope / deviation
        return np.asarray(slope @ COEFFICIENTS), np.asarray(by_variance @ COEFFICIENTS)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}


def _standardised(m: Float, v: Float) -> tuple[Float, Float]:
    """z_i = m/s_i and s_i = sqrt(1/(2 lambda_i^2) + v), a last axis of five added."""
    deviation = np.sqrt(0.5 / (LAMBDAS * LAMBDAS) + v[..., None])
    return np.clip(m[..., None] / deviation, -_LARGEST, _LARGEST), deviation


def _density(z: Float) -> Float:
    return np.asarray(np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))

"""The likelihoods of two classes that models are trained with: probit, in closed form, and logistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_ndtr, ndtr

from gpcert.likelihoods.base import (
    LEAST,
    NDTR,
    UNIT,
    BinaryLikelihood,
    LogLikelihood,
    Tilted,
    as_moments,
    as_signs,
    inside_site_range,
)
from gpcert.likelihoods.integrals.logistic_normal import (
    LogisticNormal,
    hazard,
    logistic_normal,
    logistic_normal_error,
)
from gpcert.validation import Float, positive, require

_ROOT_TWO_PI = math.sqrt(2 * math.pi)
# log Phi(z) is -z^2/2 to 1e-40 relative here, and z^2 does not overflow.
_LARGEST = 1e150


@dataclass(frozen=True)
class Probit(BinaryLikelihood):
    """sigma(f) = Phi(scale f); E sigma(f) = Phi(mean / sqrt(scale^-2 + var)).

    Parameters
    ----------
    scale : float
        The steepness, > 0.

    Examples
    --------
    >>> gc.Probit().expectation(np.array([0.0]), np.array([1.0]))
    array([0.5])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        scale = positive("scale", self.scale)
        require(scale.ndim == 0, f"scale must be one number, got shape {scale.shape}")
        require(bool(1e-20 <= scale <= 1e20), f"scale must be between 1e-20 and 1e20, got {self.scale}")
        object.__setattr__(self, "scale", float(scale))

    name = "probit"
    symmetric = True

    def value(self, f: ArrayLike) -> Float:
        """Phi(scale f), any shape."""
        return np.asarray(ndtr(self._scaled(np.asarray(f, dtype=np.float64))))

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Phi(mean / sqrt(scale^-2 + var)), any shape."""
        z, _ = self._standardise(*as_moments(mean, var))
        return np.asarray(ndtr(z))

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Rounding only: docs/maths/likelihoods.md#probit."""
        z, _ = self._standardise(*as_moments(mean, var))
        return np.asarray((NDTR + 8) * UNIT * (ndtr(z) + np.abs(z) * _density(z)) + LEAST)

    def log_expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """log Phi(mean / sqrt(scale^-2 + var)), any shape."""
        z, _ = self._standardise(*as_moments(mean, var))
        return np.asarray(log_ndtr(z))

    def log_expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Rounding only: docs/maths/likelihoods.md#probit."""
        z, _ = self._standardise(*as_moments(mean, var))
        return np.asarray((NDTR + 8) * UNIT * (1 - log_ndtr(z) + np.abs(z) * hazard(z).ratio) + LEAST)

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """phi(z)/sigma and -z phi(z)/(2 sigma^2), where sigma^2 = scale^-2 + var, z = mean/sigma."""
        z, deviation = self._standardise(*as_moments(mean, var))
        slope = _density(z) / deviation
        return slope, -0.5 * z * slope / deviation

    def log_expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """r(z)/sigma and -z r(z)/(2 sigma^2), with the hazard r."""
        z, deviation = self._standardise(*as_moments(mean, var))
        slope = hazard(z).ratio / deviation
        return slope, -0.5 * z * slope / deviation

    def log_likelihood(self, y: ArrayLike, f: ArrayLike) -> LogLikelihood:
        signs = as_signs(y)
        z = signs * self._scaled(np.asarray(f, dtype=np.float64))
        h = hazard(z)
        k = self.scale
        return LogLikelihood(
            np.asarray(log_ndtr(z)), signs * k * h.ratio, k * k * h.slope, signs * k**3 * h.third
        )

    def tilted(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Tilted:
        """log Phi(y mean / sqrt(scale^-2 + var)) and two derivatives in the mean."""
        signs = as_signs(y)
        m, v = as_moments(mean, var)
        z, deviation = self._standardise(signs * m, v)
        h = hazard(z)
        d2 = h.slope / deviation / deviation
        return Tilted(np.asarray(log_ndtr(z)), signs * h.ratio / deviation, inside_site_range(d2, v))

    def to_dict(self) -> dict[str, Any]:
        """{"name": "probit", "scale": hexadecimal float}."""
        return {"name": self.name, "scale": self.scale.hex()}

    def _scaled(self, f: Float) -> Float:
        return np.clip(self.scale * np.clip(f, -_LARGEST, _LARGEST), -_LARGEST, _LARGEST)

    def _standardise(self, mean: Float, var: Float) -> tuple[Float, Float]:
        """z = mean / deviation and deviation = sqrt(scale^-2 + var)."""
        deviation = np.sqrt(self.scale**-2.0 + var)
        return np.clip(mean / deviation, -_LARGEST, _LARGEST), deviation


def _density(z: Float) -> Float:
    return np.asarray(np.exp(-0.5 * z * z) / _ROOT_TWO_PI)


@dataclass(frozen=True)
class Logit(BinaryLikelihood):
    """sigma(f) = 1 / (1 + exp(-f)).

    Examples
    --------
    >>> gc.Logit().expectation(np.array([0.0]), np.array([1.0]))
    array([0.5])
    """

    name = "logit"
    symmetric = True

    def value(self, f: ArrayLike) -> Float:
        """1 / (1 + exp(-f)), any shape."""
        return np.asarray(expit(np.asarray(f, dtype=np.float64)))

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """E sigma(f), any shape; relatively accurate where it is small."""
        m, v = as_moments(mean, var)
        below = np.minimum(np.exp(_integral(-np.abs(m), v).log_z), 0.5)
        return np.where(m > 0, 1 - below, below)

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Truncation of the quadrature and rounding: docs/maths/likelihoods.md#logit."""
        m, v = as_moments(mean, var)
        below = -np.abs(m)
        log_z = _integral(below, v).log_z
        relative = np.minimum(_integral_error(below, v) + 8 * UNIT * (1 - log_z), 1.0)
        return 2 * relative * np.exp(log_z) + np.where(m > 0, UNIT, 0.0) + LEAST

    def log_expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        return _integral(*as_moments(mean, var)).log_z

    def log_expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Truncation of the quadrature and rounding: docs/maths/likelihoods.md#logit."""
        return _integral_error(*as_moments(mean, var))

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """E sigma'(f) and E sigma''(f)/2, any shape."""
        m, v = as_moments(mean, var)
        below = _integral(-np.abs(m), v)
        p = np.exp(below.log_z)
        return p * below.d1, -0.5 * np.sign(m) * p * (below.d2 + below.d1 * below.d1)

    def log_expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """d1 and (d2 + d1^2)/2 of log E sigma(f), any shape."""
        _, d1, d2 = _integral(*as_moments(mean, var))
        return d1, 0.5 * (d2 + d1 * d1)

    def log_likelihood(self, y: ArrayLike, f: ArrayLike) -> LogLikelihood:
        signs = as_signs(y)
        z = signs * np.asarray(f, dtype=np.float64)
        up, down = expit(z), expit(-z)
        slope = up * down
        return LogLikelihood(-np.logaddexp(0.0, -z), signs * down, -slope, signs * slope * (up - down))

    def tilted(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Tilted:
        signs = as_signs(y)
        m, v = as_moments(mean, var)
        m, v, signs = np.broadcast_arrays(signs * m, v, signs)
        log_z, d1, d2 = _integral(m, v)
        return Tilted(log_z, signs * d1, inside_site_range(d2, v))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}


def _integral(m: Float, v: Float) -> LogisticNormal:
    log_z, d1, d2 = logistic_normal(m.ravel(), v.ravel())
    return LogisticNormal(log_z.reshape(m.shape), d1.reshape(m.shape), d2.reshape(m.shape))


def _integral_error(m: Float, v: Float) -> Float:
    return logistic_normal_error(m.ravel(), v.ravel()).reshape(m.shape)

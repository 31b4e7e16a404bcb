"""The logistic likelihood sigma(f) = 1 / (1 + exp(-f)), its Gaussian expectation to a proved error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from gpcert.likelihoods.base import (
    LEAST,
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
    logistic_normal,
    logistic_normal_error,
)
from gpcert.validation import Float


@dataclass(frozen=True)
class Logit(BinaryLikelihood):
    """sigma(f) = 1 / (1 + exp(-f)).

    Examples
    --------
    >>> gc.Logit().expectation(np.array([0.0]), np.array([1.0]))
    array([0.5])
    """

    @property
    def name(self) -> str:
        return "logit"

    @property
    def symmetric(self) -> bool:
        return True

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

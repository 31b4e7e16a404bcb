"""What every two-class likelihood offers, and the arrays it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.validation import Float

UNIT = 2.0**-53
"""The unit roundoff u of float64."""

NDTR = 16
"""scipy's ndtr is within NDTR u (Phi(z) + |z| phi(z)) of Phi(z), log_ndtr within NDTR u (1 - log Phi(z) +
|z| phi(z)/Phi(z)) of log Phi(z): docs/maths/likelihoods.md, H0."""

LEAST = 1e-300
"""Added to every error bound: covers underflow, and probabilities too small for a relative error."""


class LogLikelihood(NamedTuple):
    """log p(y|f) and its first three derivatives in f; four arrays of one shape."""

    value: Float
    d1: Float
    d2: Float
    d3: Float


class Tilted(NamedTuple):
    """log E p(y|f) for f ~ N(mean, var) and two derivatives in the mean; three arrays of one shape."""

    log_z: Float
    d1: Float
    d2: Float


class BinaryLikelihood(ABC):
    """p(y = +1 | f) = sigma(f), with sigma increasing from 0 to 1: what every two-class likelihood offers.

    All methods work element by element on arrays of any (broadcast) shape, for |mean| and var up to 1e99.

    Attributes
    ----------
    name : str
        What files and messages call it.
    symmetric : bool
        Whether sigma(-f) = 1 - sigma(f).

    Examples
    --------
    >>> gc.Logit().value([0.0]), gc.Logit().symmetric
    (array([0.5]), True)
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What `to_dict` and error messages call this likelihood."""

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether sigma(-f) = 1 - sigma(f)."""

    @abstractmethod
    def value(self, f: ArrayLike) -> Float:
        """sigma(f).

        Parameters
        ----------
        f : array
            Latent values, any shape.

        Returns
        -------
        array
            In [0, 1], of the same shape.
        """

    @abstractmethod
    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """E sigma(f), f ~ N(mean, var): the probability of the second class.

        Parameters
        ----------
        mean : array
            Means of the latent values, any shape.
        var : array
            Their variances, >= 0, of the same shape.

        Returns
        -------
        array
            In [0, 1], within `expectation_error` of the exact value.
        """

    @abstractmethod
    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """A proved bound on |expectation - exact|, rounding included (docs/maths/likelihoods.md).

        Parameters
        ----------
        mean : array
            Means of the latent values, any shape.
        var : array
            Their variances, >= 0, of the same shape.

        Returns
        -------
        array
            At least 0, of the same shape.
        """

    @abstractmethod
    def log_expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """log E sigma(f), accurate also where the expectation underflows."""

    @abstractmethod
    def log_expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """A proved bound on |log_expectation - exact|; inf where nothing is proved."""

    @abstractmethod
    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """(d/dmean, d/dvar) of E sigma(f)."""

    @abstractmethod
    def log_expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """(d/dmean, d/dvar) of log E sigma(f)."""

    @abstractmethod
    def log_likelihood(self, y: ArrayLike, f: ArrayLike) -> LogLikelihood:
        """log p(y|f) and three derivatives in f; y holds +1 and -1."""

    @abstractmethod
    def tilted(self, y: ArrayLike, mean: ArrayLike, var: ArrayLike) -> Tilted:
        """log E p(y|f), f ~ N(mean, var), and two derivatives in the mean; -1/var < d2 <= 0."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A JSON-able description, read back by `likelihood_from_dict`."""


def as_moments(mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
    """Mean and variance as float64 arrays of one shape; finite, var >= 0."""
    m, v = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(var, dtype=np.float64))
    if not np.isfinite(m).all():
        raise InvalidInputError(f"mean must be finite, got {m[~np.isfinite(m)].flat[0]}")
    good = (v >= 0) & np.isfinite(v)
    if not good.all():
        raise InvalidInputError(f"var must be finite and >= 0, got {v[~good].flat[0]}")
    return m, v


def as_signs(y: ArrayLike) -> Float:
    """Labels as a float64 array of +1 and -1."""
    signs = np.asarray(y, dtype=np.float64)
    if not (np.abs(signs) == 1).all():
        raise InvalidInputError(f"y must hold +1 and -1, got {signs[np.abs(signs) != 1].flat[0]}")
    return signs


def inside_site_range(d2: Float, var: Float) -> Float:
    """Move d2 (wrong by rounding only) into (-1/var, 0], where a site precision is finite and >= 0."""
    lowest = -(1 - 2.0**-50) / np.maximum(var, LEAST)
    return np.asarray(np.clip(d2, lowest, 0.0))

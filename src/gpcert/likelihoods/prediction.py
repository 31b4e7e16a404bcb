"""Likelihoods that serve prediction, not training: what other libraries report, and links of a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import LEAST, NDTR, UNIT, BinaryLikelihood, LogLikelihood, Tilted, as_moments
from gpcert.likelihoods.binary import Probit
from gpcert.validation import Float, as_floats, require


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

    name = "five_erf"
    symmetric = False  #: sigma(-f) = TOTAL - sigma(f): not 1 - sigma(f), by 1e-8.

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

    name = "floored"
    symmetric = True

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


_INTERVALS = tuple(4**k for k in range(5, 10))  # 1,024 to 262,144
_GRADIENT_INTERVALS = 4096
_BLOCK = 2**20  # intervals handled at once
_SMOOTHING = 1e-3  # the gradient at var = 0 is that of the link smoothed at this scale


class Link(PredictionOnly):
    """Any increasing sigma, given with an enclosure of it on intervals.

    Both functions take and return arrays (k,). They are checked on a grid here; that `enclose` holds between
    the points of the grid is the caller's promise. A model with one cannot be saved: Python functions are
    never stored.

    Parameters
    ----------
    value : callable
        f to sigma(f).
    enclose : callable
        (lower, upper) to (lo, hi) with lo <= sigma <= hi on [lower, upper].
    name : str
        What it is called in messages.
    symmetric : bool
        Whether sigma(-f) = 1 - sigma(f).
    tolerance : float
        The proved error that `expectation` aims at, with at most 262,144 intervals for each point, which give
        2.8e-6 for any link with a tight enclosure.

    Examples
    --------
    >>> step = lambda f: np.where(f > 0, 1.0, np.where(f < 0, 0.0, 0.5))
    >>> gc.Link(step, lambda low, high: (step(low), step(high)), name="step")
    Link(name='step', symmetric=False)
    """

    def __init__(
        self,
        value: Callable[[Float], ArrayLike],
        enclose: Callable[[Float, Float], tuple[ArrayLike, ArrayLike]],
        name: str = "link",
        symmetric: bool = False,
        *,
        tolerance: float = 1e-5,
    ) -> None:
        require(callable(value), f"value must be a function of f, got {value!r}")
        require(callable(enclose), f"enclose must be a function of (lower, upper), got {enclose!r}")
        require(isinstance(name, str) and bool(name), f"name must be a non-empty string, got {name!r}")
        require(0 < tolerance < 1, f"tolerance must be between 0 and 1, got {tolerance}")
        self._function, self._enclosure, self._name = value, enclose, name
        self._symmetric, self.tolerance = bool(symmetric), float(tolerance)
        self._check()

    def __repr__(self) -> str:
        return f"Link(name={self._name!r}, symmetric={self._symmetric})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def symmetric(self) -> bool:
        """Whether sigma(-f) = 1 - sigma(f), as declared by the caller and checked on a grid."""
        return self._symmetric

    def value(self, f: ArrayLike) -> Float:
        array = np.asarray(f, dtype=np.float64)
        sigma = np.asarray(self._function(array.ravel()), dtype=np.float64)
        require(sigma.shape == (array.size,), f"value must return shape {(array.size,)}, got {sigma.shape}")
        return sigma.reshape(array.shape)

    def enclose(self, lower: ArrayLike, upper: ArrayLike) -> tuple[Float, Float]:
        """(lo, hi), arrays of the shape of lower: lo <= sigma <= hi on [lower, upper], inside [0, 1]."""
        below, above = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        lo, hi = (np.asarray(e, dtype=np.float64) for e in self._enclosure(below.ravel(), above.ravel()))
        for bound in (lo, hi):
            require(
                bound.shape == (below.size,), f"enclose must return shape {(below.size,)}, got {bound.shape}"
            )
        if not (lo <= hi).all():
            where = np.flatnonzero(~(lo <= hi))[0]
            raise InvalidInputError(
                f"enclose must return lo <= hi, got {lo[where]} and {hi[where]} "
                f"on [{below.flat[where]}, {above.flat[where]}]"
            )
        return np.clip(lo, 0, 1).reshape(below.shape), np.clip(hi, 0, 1).reshape(below.shape)

    def expectation(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """The midpoint of the enclosure of E sigma(f), any shape."""
        lo, hi = self._bounds(mean, var)
        return 0.5 * (lo + hi)

    def expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """Half the width of the enclosure of E sigma(f), rounded up."""
        lo, hi = self._bounds(mean, var)
        return 0.5 * (hi - lo) + 2 * UNIT

    def log_expectation_error(self, mean: ArrayLike, var: ArrayLike) -> Float:
        """log(hi/lo) of the enclosure; inf where its lower end is 0."""
        lo, hi = self._bounds(mean, var)
        return np.where(lo > 0, np.log(np.maximum(hi, LEAST) / np.maximum(lo, LEAST)) + 8 * UNIT, np.inf)

    def expectation_gradient(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """(d/dmean, d/dvar) by E sigma z / s and E sigma (z^2 - 1) / (2 s^2), any shape; an estimate.

        Where s = sqrt(var) is below 1e-3 (1 + |mean|) the link smoothed at that scale is differentiated.
        """
        m, v = as_moments(mean, var)
        s = np.maximum(np.sqrt(v), _SMOOTHING * (1 + np.abs(m)))
        edges = _partition(_GRADIENT_INTERVALS)[0][1:-1]
        middle = 0.5 * (edges[1:] + edges[:-1])
        sigma = self.value(m[..., None] + s[..., None] * np.concatenate([edges[:1], middle, edges[-1:]]))
        density = np.exp(-0.5 * edges * edges) / math.sqrt(2 * math.pi)
        # The integral of z phi over an interval is -d phi, of (z^2 - 1) phi it is -d(z phi).
        steps = np.diff(sigma, axis=-1)
        return steps @ density / s, 0.5 * (steps @ (edges * density)) / (s * s)

    def to_dict(self) -> dict[str, Any]:
        """Not available: Python functions are never stored."""
        raise InvalidInputError(
            f"likelihood must be storable, got link {self._name!r} given by Python functions"
        )

    def _bounds(self, mean: ArrayLike, var: ArrayLike) -> tuple[Float, Float]:
        """Lower and upper ends of E sigma(f); refined until the half width is below tolerance."""
        m, v = as_moments(mean, var)
        shape, m, s = m.shape, m.ravel(), np.sqrt(v).ravel()
        lo, hi = np.zeros(m.size), np.ones(m.size)
        for intervals in _INTERVALS:
            open_points = np.flatnonzero(hi - lo > 2 * self.tolerance)
            size = max(1, _BLOCK // intervals)
            for start in range(0, open_points.size, size):
                some = open_points[start : start + size]
                lo[some], hi[some] = self._interval_sums(m[some], s[some], intervals)
        return lo.reshape(shape), hi.reshape(shape)

    def _interval_sums(self, m: Float, s: Float, intervals: int) -> tuple[Float, Float]:
        """Sums of (probability) x (enclosure of sigma) of the intervals, (n,) each, rounded outwards."""
        edges, weights = _partition(intervals)
        f = m[:, None] + s[:, None] * edges
        slack = 8 * UNIT * (np.abs(m)[:, None] + s[:, None] * np.abs(edges))
        below, above = f - slack, f + slack
        lo, hi = self.enclose(below[:, :-1], above[:, 1:])
        rounding = (NDTR + 16) * intervals * UNIT
        return np.clip(lo @ weights - rounding, 0, 1), np.clip(hi @ weights + rounding, 0, 1)

    def _check(self) -> None:
        """Values in [0, 1], increasing, symmetric if declared, and enclosed: on a grid from -1e99 to 1e99."""
        inner = np.sinh(np.linspace(-8, 8, 513))
        f = np.concatenate([[-1e99, -1e9], inner, [1e9, 1e99]])
        sigma = self.value(f)
        inside = (sigma >= 0) & (sigma <= 1)
        require(
            bool(inside.all()), f"value must lie in [0, 1], got {sigma[~inside][:1]} at f = {f[~inside][:1]}"
        )
        falls = np.flatnonzero(~(np.diff(sigma) >= 0))
        if falls.size:
            i = falls[0]
            raise InvalidInputError(
                f"value must be increasing, got {sigma[i]} at {f[i]} and {sigma[i + 1]} at {f[i + 1]}"
            )
        if self._symmetric:
            mirrored = self.value(-f)
            i = int(np.argmax(np.abs(mirrored - (1 - sigma))))
            require(
                bool(abs(mirrored[i] - (1 - sigma[i])) <= 1e-12),
                f"value must satisfy value(-f) = 1 - value(f) if symmetric, got {mirrored[i]} at {-f[i]} and "
                f"{sigma[i]} at {f[i]}",
            )
        for step in (0, 1, 64):
            self._check_enclosure(f[: f.size - step], f[step:])

    def _check_enclosure(self, lower: Float, upper: Float) -> None:
        lo, hi = self.enclose(lower, upper)
        for point in (lower, 0.5 * lower + 0.5 * upper, upper):
            sigma = self.value(point)
            outside = np.flatnonzero(~((lo <= sigma) & (sigma <= hi)))
            if outside.size:
                i = outside[0]
                raise InvalidInputError(
                    f"enclose must contain value({point[i]}) = {sigma[i]} on [{lower[i]}, {upper[i]}], "
                    f"got [{lo[i]}, {hi[i]}]"
                )


@cache
def _partition(intervals: int) -> tuple[Float, Float]:
    """Edges (intervals + 1,) and probabilities (intervals,); intervals are as dense as sqrt(phi).

    The outer edges are +-40: what lies beyond has probability below 1e-300.
    """
    half = np.concatenate([[-40.0], math.sqrt(2) * ndtri(np.arange(1, intervals // 2) / intervals), [0.0]])
    mass = np.diff(ndtr(half))
    return np.concatenate([half, -half[-2::-1]]), np.concatenate([mass, mass[::-1]])

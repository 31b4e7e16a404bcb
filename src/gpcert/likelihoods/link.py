"""Any monotone link given with an enclosing function: rigorous because the enclosure is.

The Gaussian is cut into intervals; on each, `enclose` bounds sigma (docs/maths/likelihoods.md#link).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from gpcert.errors import InvalidInputError
from gpcert.likelihoods.base import LEAST, NDTR, UNIT, as_moments
from gpcert.likelihoods.prediction_only import PredictionOnly
from gpcert.validation import Float, require

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

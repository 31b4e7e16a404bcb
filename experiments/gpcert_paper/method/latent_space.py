"""Propositions 1 and 2: a monotone likelihood on cells of the latent space (docs/maths/paper.md, P6, P7).

On each interval [a, b] of the partition sigma lies between its values at the ends, and the mass that
N(mu, S) puts there is extreme where Proposition 2 says. With half = (b - a)/2 and `offset` the distance of mu
from the midpoint, the mass is
    Phi((half - offset)/s) - Phi((-half - offset)/s),
decreasing in the offset: so mu is nearest for the maximum, farthest for the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from gpcert.likelihoods import BinaryLikelihood, Link
from gpcert.likelihoods.base import NDTR
from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float

Interval = tuple[float, float]
Range = tuple[float | Float, float | Float]

#: Error of a difference of two values of ndtr and of their arguments, absolute: Phi(z) + |z| phi(z) is below
#: 1.13, the density times the argument below 1/4.
_NDTR = 4 * NDTR * UNIT
#: Latent values searched for the edges: any partition is sound.
_LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class Partition:
    """Inner edges (N - 1,), increasing, of N intervals of the real line, and sigma enclosed on each (N,)."""

    edges: Float
    lower: Float
    upper: Float


def partition(likelihood: BinaryLikelihood, intervals: int) -> Partition:
    """At most `intervals` intervals on which sigma rises by about equal steps."""
    levels = np.arange(1, intervals) / intervals
    low, high = np.full(len(levels), -_LARGEST), np.full(len(levels), _LARGEST)
    for _ in range(90):
        middle = 0.5 * (low + high)
        below = likelihood.value(middle) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    edges = np.unique(high)
    if isinstance(likelihood, Link):
        ends = np.concatenate([[-np.finfo(float).max], edges, [np.finfo(float).max]])
        lower, upper = likelihood.enclose(ends[:-1], ends[1:])
        return Partition(edges, np.append(0.0, lower[1:]), np.append(upper[:-1], 1.0))
    sigma = likelihood.value(edges)
    # The proved error of the expectation at no variance serves for links that sum what cancels.
    error = 64 * UNIT * sigma + 2.0 * likelihood.expectation_error(edges, 0.0)
    lower, upper = np.append(0.0, sigma - error), np.append(sigma + error, 1.0)
    return Partition(edges, np.maximum(lower, 0.0), np.minimum(upper, 1.0))


def integral_bounds(p: Partition, mu: Interval, S: Interval) -> Interval:
    """Proposition 1: encloses E sigma(f) for all f ~ N(m, s), m in mu, s in S (clipped at 0)."""
    if not np.isfinite([*mu, *S]).all():
        return 0.0, 1.0
    ends = np.concatenate([[-np.inf], p.edges, [np.inf]])
    least, most = masses(ends[:-1], ends[1:], mu, S)
    error = gamma(len(p.edges) + 8)
    lower = float(p.lower @ least) * (1.0 - error)
    upper = float(p.upper @ most) * (1.0 + error)
    return max(lower, 0.0), min(upper, 1.0)


def masses(left: Float, right: Float, mu: Range, S: Range) -> tuple[Float, Float]:
    """Proposition 2: bounds of the mass of N(m, s) on [left, right], over m in mu, s in S (clipped at 0).

    Element by element; ends may be infinite, and so may the range of m.
    """
    variances = np.maximum(S[0], 0.0), np.maximum(S[1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # no variance: quotients are infinite, or nothing
        least, most = _inside(left, right, mu, variances)
        below, above = np.isneginf(left), np.isposinf(right)
        for where, near, far in (
            (below, right - mu[1], right - mu[0]),
            (above, mu[0] - left, mu[1] - left),
        ):
            least = np.where(where, np.minimum(*(_below(near, s) for s in variances)), least)
            most = np.where(where, np.maximum(*(_below(far, s) for s in variances)), most)
        least, most = np.where(below & above, 1.0, least), np.where(below & above, 1.0, most)
    # A quotient 0/0 (mu on an edge, no variance) decides nothing.
    least, most = np.where(np.isnan(least), 0.0, least), np.where(np.isnan(most), 1.0, most)
    return np.clip(least - _NDTR, 0.0, 1.0), np.clip(most + _NDTR, 0.0, 1.0)


def _inside(left: Float, right: Float, mu: Range, S: Range) -> tuple[Float, Float]:
    """The same for bounded intervals."""
    grow = 4 * UNIT * (np.abs(left) + np.abs(right) + np.maximum(np.abs(mu[0]), np.abs(mu[1])))
    middle, half = 0.5 * (left + right), 0.5 * (right - left)
    farthest = np.maximum(np.abs(middle - mu[0]), np.abs(middle - mu[1])) + grow
    nearest = np.maximum(np.maximum(mu[0] - middle, middle - mu[1]) - grow, 0.0)
    least = np.minimum(*(_centred(half - grow, farthest, s) for s in S))
    most = _centred(half + grow, nearest, np.clip(_peak_variance(half + grow, nearest), *S))
    return least, most


def _peak_variance(half: Float, offset: Float) -> Float:
    """The variance at which the mass is largest: Sigma^m of Proposition 2 beside the interval, 0 inside."""
    beside = offset > half
    gap = np.where(beside, offset - half, 1.0)
    return np.where(beside, 2.0 * offset * half / np.log1p(2.0 * half / gap), 0.0)


def _centred(half: Float, offset: Float, S: float | Float) -> Float:
    """Of N(0, S) on [offset - half, offset + half]."""
    root = _root(S)
    return np.asarray(ndtr((half - offset) / root) - ndtr((-half - offset) / root))


def _below(distance: float | Float, S: float | Float) -> Float:
    return np.asarray(ndtr(np.asarray(distance) / _root(S)))


def _root(S: float | Float) -> Float:
    """Never -0.0, by which quotients have the wrong sign: a clipped variance may be, and so its root."""
    return np.asarray(np.sqrt(S) + 0.0)

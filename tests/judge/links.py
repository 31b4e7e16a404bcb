"""Expectations of two-class likelihoods in balls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from flint import arb
from scipy.special import ndtr, ndtri

from gpcert.likelihoods import BinaryLikelihood, FiveErf, Floored, Link, Logit, Probit
from gpcert.likelihoods.prediction import COEFFICIENTS, LAMBDAS
from judge.doubles import NDTR, UNIT, around, upper
from judge.logistic import logistic_normal

_CELLS = 2**17  # about 5e-6, in some 20 ms
_FARTHEST = 1e300  # beyond, a link is only known to lie between its last value and 0 or 1


def expectation(likelihood: BinaryLikelihood, mean: arb, variance: arb, label: int) -> arb:
    """P(label), label 0 or 1, for a latent N(mean, variance); relatively accurate where it is small."""
    if not (mean.is_finite() and variance.is_finite()):
        return arb(0.5, 0.5)
    if isinstance(likelihood, Floored):
        floor = arb(likelihood.floor)
        return floor + (1 - 2 * floor) * expectation(likelihood.link, mean, variance, label)
    if isinstance(likelihood, FiveErf):
        p = _corners(_five_erf, mean, variance)
        return p if label == 1 else 1 - p
    if isinstance(likelihood, Link):
        p = _cells(likelihood, mean, variance)
        return p if label == 1 else 1 - p
    toward = mean if label == 1 else -mean
    if isinstance(likelihood, Probit):
        return _phi(toward / (variance + 1 / arb(likelihood.scale) ** 2).sqrt())
    assert isinstance(likelihood, Logit)
    return logistic_normal(toward, variance)


def _phi(z: arb) -> arb:
    return (-z / arb(2).sqrt()).erfc() / 2


def _five_erf(mean: arb, variance: arb) -> arb:
    """sum_i c_i Phi(m / sqrt(v + 1/(2 lambda_i^2))), as (1 + erf(lambda f)) / 2 = Phi(sqrt 2 lambda f)."""
    pairs = zip(COEFFICIENTS.tolist(), LAMBDAS.tolist(), strict=True)
    return sum((arb(c) * _phi(mean / (variance + 1 / (2 * arb(l) ** 2)).sqrt()) for c, l in pairs), arb(0))


def _corners(value: Callable[[arb, arb], arb], mean: arb, variance: arb) -> arb:
    """The range over the balls of E sigma, sigma increasing, odd about its middle and concave on the right.

    dE/dv = E sigma'' / 2 has the sign of -m, so the extremes are at two corners (that five error functions
    are such a sigma: docs/maths/likelihoods.md, swept in ball arithmetic by the tests of likelihoods).
    """
    a, b, low, high = mean.lower(), mean.upper(), variance.lower(), variance.upper()
    return value(a, low if a < 0 else high).union(value(b, high if b < 0 else low))


@cache
def _edges() -> tuple[np.ndarray, np.ndarray]:
    """Edges z of cells as dense as the root of the normal density, and P(normal > z)."""
    half = np.concatenate([[-40.0], np.sqrt(2.0) * ndtri(np.arange(1, _CELLS // 2) / _CELLS), [0.0]])
    z = np.concatenate([half, -half[-2::-1]])
    return z, ndtr(-z)


def _cells(link: Link, mean: arb, variance: arb) -> arb:
    """E sigma(f) for an increasing sigma that is only known through enclosures on intervals.

    With cells between z_0 < ... < z_N in a standard normal z, sigma(m + s z) is at least the lower end of the
    enclosure on its cell, made increasing from the left, and at most the upper end, made increasing from the
    right. By summation by parts the sums weigh increments of at most 1 in total with values of Phi, so errors
    of Phi do not add up.
    """
    z, beyond = _edges()
    s_low, s_high = -upper(-(variance.lower().max(arb(0)).sqrt())), upper(variance.upper().max(arb(0)).sqrt())
    with np.errstate(over="ignore", invalid="ignore"):
        left = -upper(-mean) + np.where(z < 0, s_high, s_low) * z
        right = upper(mean) + np.where(z < 0, s_low, s_high) * z
        left = left - 4 * UNIT * (np.abs(left) + abs(upper(-mean)) + s_high * np.abs(z))
        right = right + 4 * UNIT * (np.abs(right) + abs(upper(mean)) + s_high * np.abs(z))
    left = np.clip(np.nan_to_num(left[:-1], nan=-np.inf), -_FARTHEST, _FARTHEST)
    right = np.clip(np.nan_to_num(right[1:], nan=np.inf), -_FARTHEST, _FARTHEST)
    low, high = link.enclose(left, right)
    low = np.maximum.accumulate(np.where(left <= -_FARTHEST, 0.0, low))
    high = np.minimum.accumulate(np.where(right >= _FARTHEST, 1.0, high)[::-1])[::-1]
    # sum_j (Phi(z_j+1) - Phi(z_j)) low_j = sum of increments of low times what lies to the right of them.
    below = low[0] + np.diff(low) @ beyond[1:-1]
    above = high[0] + np.diff(high) @ beyond[1:-1]
    slack = 2 * NDTR + (_CELLS + 8) * UNIT
    return around(0.5 * float(below + above), 0.5 * float(above - below) + slack)

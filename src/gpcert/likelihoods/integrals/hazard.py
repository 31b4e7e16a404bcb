"""The hazard r(z) = phi(z) / Phi(z) of the normal law and its derivatives, accurate in both tails."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from gpcert.validation import Float

_SWITCH = -3.0
# Terms of the continued fraction; the error for z <= -3 is below 3e-15 (docs/maths/likelihoods.md#hazard).
_DEPTH = 60
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


class Hazard(NamedTuple):
    """Derivatives of log Phi at z, each in the form that loses nothing; arrays of the shape of z.

    ratio = r = (log Phi)' > 0, excess = z + r > 0, slope = r' = -r (z + r) in (-1, 0),
    variance = 1 + r' in (0, 1), that of a normal cut off at z, third = r'' > 0.
    """

    ratio: Float
    excess: Float
    slope: Float
    variance: Float
    third: Float


def hazard(z: Float) -> Hazard:
    """The hazard of the normal distribution at z, any shape, |z| <= 1e150."""
    flat = z.reshape(-1)
    body = np.maximum(flat, _SWITCH)
    ratio = np.exp(-0.5 * body * body) / (_ROOT_TWO_PI * ndtr(body))
    excess = body + ratio
    slope = -ratio * excess
    variance = 1 + slope
    out = np.stack([ratio, excess, slope, variance, ratio * (excess * excess - variance)])
    tail = flat < _SWITCH
    if tail.any():
        out[:, tail] = _tail(-flat[tail])
    return Hazard(*out.reshape(5, *z.shape))


def _tail(x: Float) -> Hazard:
    """The same at z = -x, x >= 3, through cumulants of the excess e of a normal over x.

    I_k = int_x^inf (t - x)^k phi(t) dt / k! obeys k I_k = I_{k-2} - x I_{k-1}; backwards, the ratios
    rho_k = I_k / I_{k-1} = 1 / (x + (k+1) rho_{k+1}) have no cancellation, and E e^k = k! rho_1 ... rho_k.
    """
    rho = 1 / x
    for k in range(_DEPTH, 3, -1):
        rho = 1 / (x + k * rho)
    rho3 = rho
    rho2 = 1 / (x + 3 * rho3)
    rho1 = 1 / (x + 2 * rho2)
    variance = rho1 * (2 * rho2 - rho1)
    third = 2 * rho1 * (3 * rho2 * (rho3 - rho1) + rho1 * rho1)
    return Hazard(x + rho1, rho1, variance - 1, variance, third)

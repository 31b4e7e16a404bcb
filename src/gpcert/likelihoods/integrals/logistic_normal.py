"""log E sigma(f), f ~ N(m, v), for the logistic sigma, with a proved relative error and two derivatives in m.

Labels such as H3 are statements of docs/maths/likelihoods.md. Write A(m) = E sigma(f) at variance v = s^2.
The reflection A(m) = exp(m + v/2) A(-m - v) (H2) leaves m >= -v/2, where nothing underflows; then
* s <= 2: trapezoid rule in the standardised variable (H3): all terms are positive;
* s > 2: A = Phi(m / sqrt(v + c)) + a trapezoid sum of (sigma(f) - Phi(f/sqrt c)) N(f; m, v) (H4): the number
  of nodes does not grow with s.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, expit, log_ndtr, ndtr

from gpcert.likelihoods.base import UNIT
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


# A narrow point uses the table of the first edge >= s: few groups, each near its own optimum.
_EDGES = (0.25, 0.5, 1.0, 2.0)
_TARGET = 1e-17
_REACH = 8.5  # 2 Q(8.5) < 2e-17: where the Gaussian sum is cut
_STEP = 0.40625  # of the wide rule, in f
_LEFT, _RIGHT = 78.0, 39.0  # the window of the wide rule
_STRIP = 2.95  # its half strip, < pi
_C = 8 / math.pi  # slopes of sigma(f) and Phi(f/sqrt c) agree at 0
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
_BLOCK = 12_000  # doubles in a points x nodes array: it stays in cache and in the small-block allocator


class LogisticNormal(NamedTuple):
    """log A and its two derivatives in m; arrays of one shape (n,)."""

    log_z: Float
    d1: Float
    d2: Float


class _Narrow(NamedTuple):
    nodes: Float
    weights: Float
    truncation: float


class _Wide(NamedTuple):
    powers: Float  # (3, K): f^2, f, 1
    moments: Float  # (K, 3): h delta(f) times 1, f, f^2
    truncation: float


def logistic_normal(mean: Float, var: Float) -> LogisticNormal:
    """log A, A'/A and (A'/A)' at mean (n,), var (n,)."""
    far = mean < -0.5 * var
    m = np.where(far, -(mean + var), mean)
    out = np.empty((3, m.size))
    deviation = np.sqrt(var)
    group = np.searchsorted(_EDGES, deviation)
    for g in np.unique(group):
        some = np.flatnonzero(group == g)
        if g < len(_EDGES):
            out[:, some] = _narrow(m[some], deviation[some], _narrow_table(_EDGES[g]))
        else:
            out[:, some] = _wide(m[some], var[some])
    log_z, d1, d2 = out
    log_z = np.minimum(log_z, 0.0) + np.where(far, mean + 0.5 * var, 0.0)
    return LogisticNormal(np.minimum(log_z, 0.0), np.where(far, 1 - d1, d1), d2)


def logistic_normal_error(mean: Float, var: Float) -> Float:
    """A bound on |computed log A - exact|, (n,): truncation (H3, H4) and rounding (H5)."""
    deviation = np.sqrt(var)
    wide = _wide_table()
    truncation = np.full(mean.shape, wide.truncation)
    operations = np.full(mean.shape, float(wide.powers.shape[1]))
    for edge in reversed(_EDGES):
        table = _narrow_table(edge)
        inside = deviation <= edge
        truncation[inside] = table.truncation
        operations[inside] = table.nodes.size
    far = mean < -0.5 * var
    m = np.where(far, -(mean + var), mean)
    reflected = np.where(far, np.abs(mean) + var, 0.0)
    exponent = np.minimum(m, 0.0) ** 2 / (var + _C)  # log Phi is about -exponent / 2
    rounding: Float = UNIT * (operations + 250 + 4 * reflected + 8 * exponent)
    return truncation + rounding


@cache
def _narrow_table(s: float) -> _Narrow:
    """Nodes (K,) and weights (K,) of the trapezoid rule for every deviation in [0, s], and its error (H3)."""
    a = min(math.sqrt(2 * math.log(2 / _TARGET)), 0.93 * math.pi / s)
    bound = 2 * math.exp(a * a / 2) / math.cos(s * a / 2)
    # A dyadic step: every node k h is exact.
    h = math.floor(2 * math.pi * a / math.log(bound / _TARGET) * 4096) / 4096
    first, last = math.ceil(_REACH / h), math.ceil((_REACH + s / 2) / h)
    nodes = h * np.arange(-first, last + 1.0)
    tails = ndtr(-h * first) + ndtr(s / 2 - h * last)
    truncation = 1.01 * (bound / math.expm1(2 * math.pi * a / h) + math.sqrt(1 + s * s / 4) * float(tails))
    return _Narrow(nodes, h * np.exp(-0.5 * nodes * nodes - _HALF_LOG_TWO_PI), truncation)


@cache
def _wide_table() -> _Wide:
    """The rule for every deviation > 2 and its error (H4)."""
    h, theta, s = _STEP, _STRIP, _EDGES[-1]
    f = h * np.arange(-math.ceil(_LEFT / h), math.ceil(_RIGHT / h) + 1.0)
    # sigma(f) - Phi(f/sqrt c) is odd; on the negative side both terms are small and exact to rounding.
    negative = -np.abs(f)
    delta = -np.sign(f) * (expit(negative) - ndtr(negative / math.sqrt(_C)))
    weights = h * delta
    strip = 1 / math.cos(theta / 2) + math.exp(theta * theta / (2 * _C))
    discretisation = 2 * strip * math.exp(theta**2 / (2 * s * s)) / math.expm1(2 * math.pi * theta / h)
    truncation = 1.01 * (discretisation + 2 * (2 * math.exp(_LEFT / -2) + math.exp(-_RIGHT)))
    return _Wide(
        np.stack([f * f, f, np.ones_like(f)]),
        np.stack([weights, weights * f, weights * f * f], axis=1),
        truncation,
    )


def _blocks(points: int, nodes: int) -> list[slice]:
    size = max(1, _BLOCK // nodes)
    return [slice(start, start + size) for start in range(0, points, size)]


def _narrow(m: Float, s: Float, table: _Narrow) -> tuple[Float, Float, Float]:
    """The positive sums of H3 for m >= -s^2/2, both (n,)."""
    sums = np.empty((3, m.size))
    for block in _blocks(m.size, table.nodes.size):
        odds = np.multiply.outer(-s[block], table.nodes)
        odds -= m[block, None]
        np.exp(odds, out=odds)
        sigma = 1 / (1 + odds)
        odds *= sigma  # 1 - sigma, without cancellation
        for power in range(3):
            sums[power, block] = sigma @ table.weights
            sigma *= odds
    total, first, second = sums
    d1 = first / total
    return np.log(total), d1, 2 * second / total - d1 - d1 * d1


def _wide(m: Float, v: Float) -> tuple[Float, Float, Float]:
    """Probit part plus correction (H4) for m >= -v/2, v > 4, both (n,).

    With Z0 = Phi(m/sqrt(v+c)): log A = log Z0 + log(1 + eps), eps = sum_k h delta(f_k) N(f_k; m, v) / Z0, and
    the k-th term has log-derivative f_k/v + g in m, g = -m/v - (log Z0)' being formed without cancellation.
    """
    table = _wide_table()
    total = v + _C
    deviation = np.sqrt(total)
    z = m / deviation
    base = hazard(z)
    log_z0 = log_ndtr(z)
    # log N(0; m, v) - log Z0; for m < 0 the two quadratic terms cancel analytically.
    ratio = m / v
    quadratic = np.where(m < 0, ratio * (_C / total), ratio) * m
    log_rest = np.where(m < 0, np.log(0.5 * erfcx(np.maximum(-z, 0.0) / math.sqrt(2))), log_z0)
    offset = -0.5 * quadratic - 0.5 * np.log(v) - _HALF_LOG_TWO_PI - log_rest
    coefficients = np.stack([-0.5 / v, ratio, offset], axis=1)
    sums = np.empty((m.size, 3))
    for block in _blocks(m.size, table.powers.shape[1]):
        terms = coefficients[block] @ table.powers
        np.exp(terms, out=terms)
        sums[block] = terms @ table.moments
    eps, first, second = sums[:, 0], sums[:, 1] / v, sums[:, 2] / v / v
    g = -ratio * (_C / total) - base.excess / deviation
    gap = (_C + v * base.variance) / total  # 1 + v (log Z0)''
    eps1 = first + g * eps
    eps2 = second + 2 * g * first + (g * g - gap / v) * eps
    ratio1 = eps1 / (1 + eps)
    d1 = base.ratio / deviation + ratio1
    shrink = gap + v * (eps2 / (1 + eps) - ratio1 * ratio1)  # 1 + v (log A)''
    return log_z0 + np.log1p(eps), d1, (shrink - 1) / v

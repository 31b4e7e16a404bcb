"""Softmax expectations as one-dimensional integrals of products of Gumbel-normal distribution functions.

softmax_c(f) = P(f_c + g_c is the largest) for independent Gumbel g_j, so for independent f_j ~ N(m_j, d_j)
    E p_c = int B_c'(y) prod_{j != c} B_j(y) dy, B_j(y) = P(f_j + g_j <= y) = E G(y - f_j), G(x) = exp(-e^-x).
A small off-diagonal covariance R enters by its first- and second-order terms. Proofs: docs/likelihoods.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from gpcert.likelihoods.base import UNIT
from gpcert.validation import Float

__all__ = [
    "GumbelIntegral",
    "gumbel_derivatives",
    "gumbel_gradient",
    "gumbel_integral",
    "relative_size",
    "split_covariance",
]

_ETA = 1.2  # half strip in which G^(k) is bounded, < pi/2
_COS = math.cos(_ETA)
_TARGET = 1e-13  # of each discretisation
_REACH = 7.0  # standard deviations kept
_LOW, _HIGH = 3.6, 28.0  # of the Gumbel variable: nothing visible outside [-low, high]
_TAILS = 2.6e-12 + 7e-12 + 1.4e-12  # 2 Q(7), left and right Gumbel tails (all orders of derivative)
_MOST = 4096  # nodes in y; beyond it the step grows and the error says so
_FLOOR = 1e-200  # a product with such a factor is nothing: divide safely
_WIDE = 3.0  # deviation from which the convolution is done in the Gumbel variable


class GumbelIntegral(NamedTuple):
    """Probabilities (C,) and a proved bound on the error of each (C,)."""

    p: Float
    error: Float


class _Grid(NamedTuple):
    """Step h, and derivatives[k, i, j] = B_j^(k)(y_i), k = 0..3; relative quadrature error."""

    h: float
    derivatives: Float
    error: float


def split_covariance(cov: Float) -> tuple[Float, Float]:
    """(d (C,), R (C, C)): cov = diag(d) + x 1^T + 1 x^T + R with R of zero diagonal and row sums; C >= 3.

    The x part does not change softmax probabilities (a common shift of all latents).
    """
    classes = cov.shape[0]
    off = cov - np.diag(np.diag(cov))
    rows = off.sum(axis=1)
    x = (rows - rows.sum() / (2 * classes - 2)) / (classes - 2)
    rest = off - x[:, None] - x
    np.fill_diagonal(rest, 0.0)
    return np.diag(cov) - 2 * x, rest


def gumbel_integral(mean: Float, d: Float, rest: Float | None = None) -> GumbelIntegral:
    """E softmax for mean (C,), independent variances d (C,) >= 0, and off-diagonal covariance rest (C, C)."""
    R = np.zeros((mean.size, mean.size)) if rest is None else rest
    magnitude = _magnitude(np.abs(R))
    grid = _grid(mean, d, math.log(magnitude))
    b = grid.derivatives
    p = np.array([grid.h * _integrand(c, b, R).sum() for c in range(mean.size)])
    error = magnitude * (grid.error + UNIT * (b.shape[1] + 1000 * mean.size))
    # Into the simplex: the move is known, so it is simply added to the error.
    q = np.maximum(p, 0.0)
    q = q / q.sum() if q.sum() > 0 else np.full(mean.size, 1 / mean.size)
    return GumbelIntegral(q, error + np.abs(q - p) + _third_order(d, R))


def gumbel_gradient(mean: Float, d: Float) -> tuple[Float, Float]:
    """(d p_c / d mean_j, d p_c / d d_j), each (C, C), for independent latents."""
    grid = _grid(mean, d, 0.0)
    b0, b1, b2, b3 = grid.derivatives
    classes = mean.size
    first, second = np.empty((classes, classes)), np.empty((classes, classes))
    floor = np.maximum(b0, _FLOOR)
    for c in range(classes):
        base = grid.h * np.prod(np.delete(b0, c, axis=1), axis=1)
        first[c], second[c] = -(base * b1[:, c]) @ (b1 / floor), 0.5 * (base * b1[:, c]) @ (b2 / floor)
        first[c, c], second[c, c] = -base @ b2[:, c], 0.5 * base @ b3[:, c]
    return first, second


def gumbel_derivatives(mean: Float, d: Float) -> tuple[Float, Float, Float, float]:
    """p_c (C,), d p_c / d mean_j (C, C), d2 p_c / d mean_j d mean_k (C, C, C) for independent latents, and a
    proved bound on every entry's error.
    """
    grid = _grid(mean, d, 0.0)
    b0, b1, b2, b3 = grid.derivatives
    floor = np.maximum(b0, _FLOOR)
    a, q, t = b1 / floor, b2 / floor, b3 / floor
    w = grid.h * np.prod(b0, axis=1)
    wa = w[:, None] * a
    pairs = (wa[:, :, None] * a[:, None, :]).reshape(len(w), -1)
    second = (pairs.T @ a).reshape(mean.size, mean.size, mean.size)
    twice = wa.T @ q  # one derivative more of the second index
    every = np.arange(mean.size)
    for i in every:
        second[:, i, i] = twice[:, i]
        second[i, i, :] = second[i, :, i] = twice[:, i]
        second[i, i, i] = float(w @ t[:, i])
    first = -(wa.T @ a)
    first[every, every] = -(w @ q)
    # The largest of the products l_k g_j of (10) is that of the third derivative of one factor.
    error = _magnitude_of_third() * (grid.error + UNIT * (b0.shape[0] + 1000 * mean.size))
    return w @ a, first, second, error


def _magnitude_of_third() -> float:
    """(10): bounds every integrand of at most three derivatives on the strip."""
    power = [math.factorial(k - 1) / _COS**k + (k / (math.e * _COS)) ** k for k in (1, 2, 3)]
    return power[2] + 3 * power[1] + power[0]


def _integrand(c: int, b: Float, R: Float) -> Float:
    """The integrand of class c at all nodes (ny,): independent part and the orders 1 and 2 in R."""
    b0, b1, b2, b3 = b
    others = np.delete(np.arange(R.shape[0]), c)
    base = np.prod(b0[:, others], axis=1)
    if not R.any():
        return np.asarray(base * b1[:, c])
    floor = np.maximum(b0[:, others], _FLOOR)
    return np.asarray(
        base
        * _second_order(
            R[np.ix_(others, others)],
            R[c, others],
            b1[:, others] / floor,
            b2[:, others] / floor,
            b1[:, c],
            b2[:, c],
            b3[:, c],
        )
    )


def _second_order(R: Float, row: Float, a: Float, q: Float, c1: Float, c2: Float, c3: Float) -> Float:
    """1 + L + L^2/2 applied to c1 prod B, L = (1/2) sum_jk R_jk d_j d_k, divided by the product over j != c.

    a, q (ny, C-1): B'/B and B''/B of the others; R among the others, row: R between c and the others.
    """
    squares = R * R
    Ra = a @ R
    form = (Ra * a).sum(axis=-1)
    extra = q - a * a
    fourth = (
        form * form
        + 4 * ((Ra * Ra - (a * a) @ squares) * extra).sum(axis=-1)
        + 2 * ((q @ squares) * q - ((a * a) @ squares) * (a * a)).sum(axis=-1)
    )
    once = (a @ row) * form + 2 * ((extra * Ra) @ row)
    twice = (a @ row) ** 2 + extra @ (row * row)
    return np.asarray(
        c1 * (1 + 0.5 * form + 0.125 * fourth) + c2 * (a @ row + 0.5 * once) + c3 * (0.5 * twice)
    )


def _magnitude(R: Float) -> float:
    """The same polynomial with |R| and bounds of |B^(k)| on the strip: the scale of quadrature errors."""
    power = [math.factorial(k - 1) / _COS**k + (k / (math.e * _COS)) ** k for k in (1, 2, 3)]
    c1, c2, c3 = power[0], power[1] + power[0], power[2] + 3 * power[1] + power[0]
    if not R.any():
        return c1
    g1 = 1 / (math.e * _COS)
    g2 = (2 / (math.e * _COS)) ** 2 + g1
    worst = 0.0
    for c in range(R.shape[0]):
        others = np.delete(np.arange(R.shape[0]), c)
        inner, row = R[np.ix_(others, others)], R[c, others]
        total, rows = inner.sum(), row.sum()
        fourth = (
            g1**4 * total**2 + 4 * g2 * g1**2 * (inner.sum(axis=0) ** 2).sum() + 2 * g2**2 * (inner**2).sum()
        )
        once = g1**3 * rows * total + 2 * g2 * g1 * (inner @ row).sum()
        twice = g1**2 * rows**2 + g2 * (row * row).sum()
        worst = max(
            worst, c1 * (1 + g1**2 * total / 2 + fourth / 8) + c2 * (g1 * rows + once / 2) + c3 * twice / 2
        )
    return worst


def _third_order(d: Float, R: Float) -> float:
    """The remainder of the expansion in R, 0.28 (rho/(1-rho))^3; the caller sees to d > 0 and rho < 1."""
    if not R.any():
        return 0.0
    rho = relative_size(d, R)
    return 0.28 * (rho / (1 - rho)) ** 3


def relative_size(d: Float, R: Float) -> float:
    """rho = |D^-1/2 R D^-1/2|_F, rounded up; inf where a d_j is not positive."""
    if not (d > 0).all():
        return math.inf if R.any() else 0.0
    scale = np.sqrt(d)
    return float(np.sqrt(((R / scale[:, None] / scale) ** 2).sum())) * (1 + 1e-12)


def _grid(mean: Float, d: Float, log_magnitude: float) -> _Grid:
    """Nodes y and B_j^(k)(y) for k = 0..3."""
    m, s = mean - mean.max(), np.sqrt(d)
    low = (m - _REACH * s).max() - _LOW
    high = (m + _REACH * s).max() + _HIGH
    # The strip may be widened beyond eta where all latents are spread out.
    L = log_magnitude + math.log(2 / _TARGET)
    curvature = float((1 / np.maximum(d, 1e-100)).sum())
    extra = math.sqrt(_ETA**2 + 2 * L / curvature) - _ETA
    h = max(2 * math.pi * (_ETA + extra) / (L + 0.5 * curvature * extra**2), (high - low) / _MOST)
    y = low + h * np.arange(math.ceil((high - low) / h) + 1.0)
    columns, errors = zip(*(_convolution(y - mj, sj) for mj, sj in zip(m, s, strict=True)), strict=True)
    decay = 2 * math.pi * (_ETA + extra) / h
    discretisation = 2 * math.exp(min(0.5 * curvature * extra**2 - decay, 0.0)) / -math.expm1(-decay)
    error = discretisation + 3 * (sum(errors) + _TAILS)
    return _Grid(h, np.stack(columns, axis=-1), error)


def _convolution(y: Float, s: float) -> tuple[Float, float]:
    """B^(k)(y), k = 0..3 (4, ny), for f ~ N(0, s^2), and the relative error of its quadrature."""
    if s > _WIDE:
        h = 2 * math.pi * _ETA / math.log(2 * math.exp(_ETA**2 / (2 * s * s)) / _COS / _TARGET)
        x = h * np.arange(-math.ceil(_LOW / h), math.ceil(_HIGH / h) + 1.0)
        t = np.exp(-x)
        weights = h * t * np.exp(-t)
        tau = np.subtract.outer(y / s, x / s)
        density = np.exp(-0.5 * tau * tau) * (1 / math.sqrt(2 * math.pi))
        slope = tau * density
        curve = tau * slope - density
        rows = [ndtr(tau) @ weights, density @ weights / s, -(slope @ weights) / s**2, curve @ weights / s**3]
        return np.stack(rows), _TARGET + 1e-12
    a = min(_ETA / max(s, 1e-9), math.sqrt(2 * math.log(2 / _TARGET)))
    h = 2 * math.pi * a / (a * a / 2 + math.log(2 / _TARGET))
    count = math.ceil(_REACH / h)
    z = h * np.arange(-count, count + 1.0)
    weights = h / math.sqrt(2 * math.pi) * np.exp(-0.5 * z * z)
    # Below -50 G vanishes to all orders; the cut keeps exp finite.
    t = np.exp(-np.maximum(np.subtract.outer(y, s * z), -50.0))
    g = np.exp(-t)
    rows = []
    for power in ((1.0,), (1.0, 0.0), (1.0, -1.0, 0.0), (1.0, -3.0, 1.0, 0.0)):
        rows.append((np.polyval(power, t) * g) @ weights)
    return np.stack(rows), _TARGET + 2.6e-12

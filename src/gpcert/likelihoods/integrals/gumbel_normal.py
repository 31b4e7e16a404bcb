"""The distribution function B(y) = E exp(-e^-(y - f)), f ~ N(0, s^2), of a Gumbel plus a normal variable, and
its derivatives on a grid: a trapezoid rule whose nodes lie on a finer grid (docs/maths/likelihoods.md, H10).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from gpcert.validation import Float

TARGET = 1e-13  # of each discretisation
_ETA = 1.2  # half strip in which G^(k) is bounded, < pi/2
_COS = math.cos(_ETA)
_REACH = 7.0  # standard deviations kept
_LOW, _HIGH = 3.6, 28.0  # of the Gumbel variable
_LARGEST = (1.0, 1.0, 5.0, 40.0)  # below g_k, k = 0..3
_WIDE = 3.0  # deviation from which the convolution is done in the Gumbel variable
_LEAST = -40.0  # G and all derivatives vanish below; the cut keeps powers of e^-x finite


def convolution(start: float, h: float, count: int, s: float, order: int) -> tuple[Float, float]:
    """unit(s)^k B^(k)(start + i h), k = 0..order, i < count, (order + 1, count), and the relative quadrature
    error.
    """
    if s > _WIDE:
        step = 2 * math.pi * _ETA / math.log(2 * math.exp(_ETA**2 / (2 * s * s)) / _COS / TARGET)
        step, parts = _fitted(step, h, (_LOW + _HIGH) / step)
        x = step * np.arange(-math.ceil(_LOW / step), math.ceil(_HIGH / step) + 1.0)
        t = np.exp(-x)
        table = _summed(lambda y: _normal(y / s, order), x, step * t * np.exp(-t), start, h, count, parts)
        return table, TARGET + 1e-12
    a = min(_ETA / max(s, 1e-9), math.sqrt(2 * math.log(2 / TARGET)))
    step = s * 2 * math.pi * a / (a * a / 2 + math.log(2 / TARGET))
    step, parts = _fitted(step, h, 2 * _REACH * s / step) if s > 0 else (1.0, 0)
    reach = math.ceil(_REACH * s / step)
    x = step * np.arange(-reach, reach + 1.0)
    z = x / s if s > 0 else x
    weights = np.exp(-0.5 * z * z) * (step / (s * math.sqrt(2 * math.pi)) if s > 0 else 1.0)
    return _summed(lambda y: _gumbel(y, order), x, weights, start, h, count, parts), TARGET + 2.6e-12


def unit(s: float) -> float:
    """In which y is measured for derivatives: powers of a huge deviation would overflow."""
    return s if s > _WIDE else 1.0


def spacing(s: float) -> float:
    """Of a table from which Taylor's formula with a dozen terms leads everywhere."""
    return 0.5 * s if s > _WIDE else 0.35


def taylor_remainder(s: float, r: float, terms: int, order: int) -> float:
    """What is left of B^(k)(y + r), k <= order, after `terms` + 1 terms at y, over the bound g_k of B^(k)."""
    worst = 0.0
    for k in range(order + 1) if r > 0 else ():
        n = terms + 1 + k
        # |G^(n)| <= n! (2/pi)^n (Cauchy, |G| <= 1 on |Im| <= pi/2), |Phi^(n)| <= 0.44 sqrt((n-1)!) (Cramer).
        exact = math.lgamma(n + 1) + n * math.log(2 / math.pi)
        exact = min(exact, math.log(0.44) + 0.5 * math.lgamma(n) - n * math.log(max(s, 1e-100)))
        step = (terms + 1) * math.log(r) - math.lgamma(terms + 2)
        rest = math.exp(exact + step)
        if s <= _WIDE:  # the rule itself has derivatives a little different from those of B
            rest += 2 * TARGET * math.exp(step + math.lgamma(n + 1) - n * math.log(0.5 * math.pi - _ETA))
        worst = max(worst, rest / _LARGEST[k])
    return worst


def _fitted(step: float, h: float, nodes: float) -> tuple[float, int]:
    """A step that divides h into `parts`; parts = 0 where a common grid is longer than node by node."""
    parts = math.ceil(h / step)
    return (h / parts, parts) if parts <= nodes else (step, 0)


def _summed(
    values: Callable[[Float], Float], x: Float, weights: Float, start: float, h: float, count: int, parts: int
) -> Float:
    """sum_q weights_q values(start + i h - x_q), (order + 1, count)."""
    if not parts:
        y = np.subtract.outer(start + h * np.arange(count), x)
        table = values(y.ravel())
        return np.asarray(table.reshape(len(table), count, len(x)) @ weights)
    size = (count - 1) * parts + len(x)
    table = values(start - x[-1] + (h / parts) * np.arange(size))
    windows = sliding_window_view(table, len(x), axis=1)[:, ::parts]
    return np.asarray(np.einsum("kix,x->ki", windows, weights[::-1]))


def _normal(z: Float, order: int) -> Float:
    """Phi(z) and its derivatives."""
    rows = [ndtr(z), np.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi))]
    for k in range(1, order):
        rows.append(-z * rows[k] - ((k - 1) * rows[k - 1] if k > 1 else 0.0))
    return np.stack(rows[: order + 1])


def _gumbel(y: Float, order: int) -> Float:
    """G(y) = exp(-t), t = e^-y, and its derivatives: polynomials in t times exp(-t)."""
    t = np.exp(-np.maximum(y, _LEAST))
    powers = np.empty((order + 1, len(y)))
    powers[0] = np.exp(-t)
    for k in range(order):
        powers[k + 1] = powers[k] * t
    return np.asarray(_polynomials(order) @ powers)


@lru_cache(maxsize=8)
def _polynomials(order: int) -> Float:
    """Coefficients of P_k: G^(k) = P_k(t) exp(-t), P_{k+1} = t (P_k - P_k')."""
    table = np.zeros((order + 1, order + 1))
    table[0, 0] = 1.0
    for k in range(order):
        table[k + 1, 1:] += table[k, :-1]
        table[k + 1] -= np.arange(order + 1) * table[k]
    return table

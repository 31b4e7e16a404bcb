"""Softmax expectations as one-dimensional integrals of products of Gumbel-normal distribution functions.

softmax_c(f) = P(f_c + g_c is the largest) for independent Gumbel g_j, so for independent f_j ~ N(m_j, d_j)
    E p_c = int B_c'(y) prod_{j != c} B_j(y) dy, B_j(y) = P(f_j + g_j <= y) = E G(y - f_j), G(x) = exp(-e^-x).
Averages over several means m + shift share one table of B_j. Proofs: docs/maths/likelihoods.md, H9, H10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtr

from gpcert.likelihoods.base import UNIT
from gpcert.validation import Float, Index

TARGET = 1e-13  # of each discretisation
_ETA = 1.2  # half strip in which G^(k) is bounded, < pi/2
_COS = math.cos(_ETA)
_REACH = 7.0  # standard deviations kept
_LOW, _HIGH = 3.6, 28.0  # of the Gumbel variable: nothing visible outside [-low, high]
_LARGEST = (1.0, 1.0, 5.0, 40.0)  # below g_k, k = 0..3
_WIDE = 3.0  # deviation from which the convolution is done in the Gumbel variable
_LEAST = -40.0  # G and all derivatives vanish below; the cut keeps powers of e^-x finite
_TAILS = 2.6e-12 + 7e-12 + 1.4e-12  # 2 Q(7), left and right Gumbel tails (all orders of derivative)
_MOST = 4096  # nodes in y; beyond it the step grows and the error says so
_FLOOR = 1e-30  # B_j is raised to it, so that products may be divided by it; no integral changes visibly
_AVERAGED = 1e-10  # of the sum over y in averages, which are less exact anyway
_TAYLOR = 12  # terms beyond the first that carry B_j from a node of its table to a shifted one
_FACTORIALS = np.array([float(math.factorial(k)) for k in range(_TAYLOR + 1)])
_ROWS = 8_000  # nodes (of y and of shifts together) at a time


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


class GumbelIntegral(NamedTuple):
    """Probabilities (C,) and a proved bound on the error of each (C,)."""

    p: Float
    error: Float


class Cloud(NamedTuple):
    """Means m + shifts (N, C) with weights (N,), over which expectations are averaged."""

    shifts: Float
    weights: Float


class _Table(NamedTuple):
    """unit^k B^(k) of one class on a grid `parts` times finer than that of y; where each shift starts."""

    values: Float  #: (order + terms + 1, size)
    unit: float
    parts: int
    offsets: Index  #: (N,)
    powers: Float  #: (N, terms + 1): t^q / q!, t in units from the node of the table to the shifted one


class _Grid(NamedTuple):
    """Step h and number of nodes in y, a table per class, and the quadrature error over `_size`."""

    h: float
    size: int
    tables: list[_Table]
    error: float
    stretch: float  #: H10: sums over the grid are at most this times those over a fine one


def gumbel_integral(mean: Float, d: Float, cloud: Cloud | None = None) -> GumbelIntegral:
    """E softmax for mean (C,) and independent variances d (C,) >= 0, averaged over the cloud."""
    cloud = cloud or unmoved(mean.size)
    grid = _grid(mean, d, cloud, 1)
    p = np.zeros(mean.size)
    for w, (b0, b1) in _blocks(grid, cloud, 1):
        p += (b1 / b0) @ _product(w, b0)
    error = _size(1) * _error(grid, cloud)
    # Into the simplex: the move is known, so it is simply added to the error.
    q = np.maximum(p, 0.0)
    q = q / q.sum() if q.sum() > 0 else np.full(mean.size, 1 / mean.size)
    return GumbelIntegral(q, error + np.abs(q - p))


def gumbel_derivatives(
    mean: Float, d: Float, cloud: Cloud | None = None
) -> tuple[Float, Float, Float, float]:
    """p_c (C,), d p_c / d mean_j (C, C), d2 p_c / d mean_j d mean_k (C, C, C), averaged over the cloud, and a
    proved bound on every entry's error.
    """
    cloud = cloud or unmoved(mean.size)
    grid = _grid(mean, d, cloud, 3)
    C = mean.size
    one, two, twice = np.zeros(C), np.zeros((C, C)), np.zeros((C, C))
    lower, upper = np.triu_indices(C, 1)  # equal indices are derivatives of one factor: below
    thrice, three = np.zeros((2, C)), np.zeros((len(lower), C))
    for w, (b0, b1, b2, b3) in _blocks(grid, cloud, 3):
        a, q, t = b1 / b0, b2 / b0, b3 / b0
        w = _product(w, b0)
        wa = w * a
        one += a @ w
        two += wa @ a.T
        twice += wa @ q.T  # one derivative more of the second index
        thrice += np.stack([q @ w, t @ w])
        for at, row in enumerate(wa[:-1]):  # by rows of the triangle: no copy of all its factors
            three[lower == at] += (row * a[at + 1 :]) @ a.T
    every = np.arange(C)
    first = -two
    first[every, every] = -thrice[0]
    second = np.zeros((C, C, C))
    second[lower, upper] = second[upper, lower] = three
    second = 0.5 * (second + second.swapaxes(1, 2))
    for i in every:
        second[:, i, i] = twice[:, i]
        second[i, i, :] = second[i, :, i] = twice[:, i]
        second[i, i, i] = thrice[1, i]
    # The largest of the products l_k g_j of H10 is that of the third derivative of one factor.
    return one, first, second, _size(3) * _error(grid, cloud)


def unmoved(classes: int) -> Cloud:
    """The cloud of one point, where it is."""
    return Cloud(np.zeros((1, classes)), np.ones(1))


def _size(order: int) -> float:
    """H10: bounds every integrand of so many derivatives on the strip."""
    power = [math.factorial(k - 1) / _COS**k + (k / (math.e * _COS)) ** k for k in (1, 2, 3)]
    return power[0] if order == 1 else power[2] + 3 * power[1] + power[0]


def _error(grid: _Grid, cloud: Cloud) -> float:
    """Relative to `_size`: quadrature and rounding, for all nodes of the cloud."""
    rounding = UNIT * (grid.size + len(cloud.weights) + 1000 * len(grid.tables)) * grid.stretch
    return float(np.abs(cloud.weights).sum()) * (grid.error + rounding)


def _product(weights: Float, b0: Float) -> Float:
    """weights * prod_j B_j (rows,)."""
    return np.asarray(weights * np.prod(b0, axis=0))


def _grid(mean: Float, d: Float, cloud: Cloud, order: int) -> _Grid:
    """Nodes y for every shift, aligned with one table of B_j^(k), k up to `order`, per class."""
    s, shifts = np.sqrt(d), cloud.shifts
    m = mean - mean.max()
    low = (m - _REACH * s + shifts).max(axis=1) - _LOW
    high = (m + _REACH * s + shifts).max(axis=1) + _HIGH
    width = float((high - low).max())
    # The strip may be widened beyond eta where all latents are spread out.
    L = math.log(2 * _size(1) / (TARGET if len(shifts) == 1 else _AVERAGED))
    curvature = float((1 / np.maximum(d, 1e-100)).sum())
    extra = math.sqrt(_ETA**2 + 2 * L / curvature) - _ETA
    h = max(2 * math.pi * (_ETA + extra) / (L + 0.5 * curvature * extra**2), width / _MOST)
    count = math.ceil(width / h) + 1
    decay = 2 * math.pi * (_ETA + extra) / h
    error = 2 * math.exp(min(0.5 * curvature * extra**2 - decay, 0.0)) / -math.expm1(-decay)
    stretch = max(1.0, h / (0.25 + 0.8 * float(s.min()))) * (1 + 4 * UNIT)
    error += 3 * stretch * _TAILS
    tables = []
    for j in range(mean.size):
        moved = (low - low[0]) - (shifts[:, j] - shifts[0, j])
        table, mistake = _table(low[0] - m[j] - shifts[0, j], moved, float(s[j]), h, count, order)
        tables.append(table)
        error += 3 * stretch * mistake
    return _Grid(h, count, tables, error, stretch)


def _table(start: float, moved: Float, s: float, h: float, count: int, order: int) -> tuple[_Table, float]:
    """B and derivatives where start + moved_n + i h, i < count, are near, and their error."""
    terms = _TAYLOR if moved.any() else 0
    parts = max(math.ceil(h / spacing(s)), 1) if terms else 1
    offsets = np.rint(moved / (h / parts))
    fractions = moved - offsets * (h / parts)
    first = float(offsets.min())
    size = (count - 1) * parts + int(offsets.max() - first) + 1
    values, error = convolution(start + h / parts * first, h / parts, size, s, order + terms)
    # What Taylor's formula leaves, also summed over the window.
    rest = taylor_remainder(s, float(np.abs(fractions).max()), terms, order)
    powers = np.vander(fractions / unit(s), terms + 1, increasing=True) / _FACTORIALS[: terms + 1]
    table = _Table(values, unit(s), parts, (offsets - first).astype(np.int64), powers)
    return table, error + rest * (1 + h * count)


def _blocks(grid: _Grid, cloud: Cloud, order: int) -> Iterator[tuple[Float, Float]]:
    """Weights (rows,) and B_j^(k) (order + 1, C, rows), rows = nodes of y times some nodes of the cloud."""
    size = max(_ROWS // grid.size, 1)
    N, C = cloud.shifts.shape
    for begin in range(0, N, size):
        part = slice(begin, min(begin + size, N))
        n = part.stop - part.start
        b = np.empty((order + 1, C, n, grid.size))
        for j, table in enumerate(grid.tables):
            powers = table.powers[part]
            starts = table.offsets[part] + table.values.shape[1] * np.arange(n)
            columns = starts[:, None] + table.parts * np.arange(grid.size)
            for k in range(order + 1):
                scaled = powers / np.float64(table.unit) ** k  # a unit of 1e145: the derivatives are 0
                b[k, j] = (scaled @ table.values[k : k + powers.shape[1]]).take(columns)
        np.maximum(b[0], _FLOOR, out=b[0])
        yield grid.h * np.repeat(cloud.weights[part], grid.size), b.reshape(order + 1, C, -1)

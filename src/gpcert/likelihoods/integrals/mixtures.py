"""Few shifted unit normals for a wide one: nodes z_n, weights w_n, sum w_n N(z_n, I) near N(0, I + Lambda).

How near is known exactly: the chi-square distance r (docs/maths/likelihoods.md, H11). Then for 0 <= p <= 1
    |sum_n w_n E p(z_n + e) - E p(z + e)| <= r sqrt(F (1 - F)), F = E p(z + e), z ~ N(0, Lambda), e ~ N(0, I).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.base import UNIT
from gpcert.validation import Float, Index

_SHARE = 0.3  # of the squared target for what single axes leave; the rest is for the choice of nodes
_WIDE = 1.0  # variance beyond which equal steps beat Gauss-Hermite nodes
_LONGEST = 60  # levels on an axis
_TERMS = 2500  # of the Hermite expansions kept: enough for variances to about 50
_NEGLIGIBLE = 1e-9  # relative importance below which nodes are not even listed
_ROUNDING = 1e-13  # of the sum of masses, which is 1 for the perfect rule


class Mixture(NamedTuple):
    """Nodes (N, q), weights (N,) of sum 1, and the chi-square distance from N(0, I + Lambda)."""

    nodes: Float
    weights: Float
    distance: float


class _Axis(NamedTuple):
    """Nested rules on one axis: level a has the nodes 0, +-x_1, ..., +-x_a.

    positions (L,) >= 0; steps[a, b]: what level a adds to the weight of +-x_b together; masses[a]: |u_a|^2
    of that addition; `rounding` bounds the norm of what rounding adds to any level.
    """

    positions: Float
    steps: Float
    masses: Float
    rounding: float


def mixture(variances: Float, target: float, most: int) -> Mixture:
    """The rule for Lambda = diag(variances) (q,): distance `target`, or what about `most` nodes reach."""
    q = len(variances)
    if q == 0:
        return Mixture(np.zeros((1, 0)), np.ones(1), 0.0)
    axes = [_axis(float(v), target * math.sqrt(_SHARE / q)) for v in variances]
    levels = _chosen(axes, target, most)
    weights = _orbit_weights(axes, levels)
    mass = float(_products([axis.masses for axis in axes], levels).sum())
    rounding = len(levels) * q * max(axis.rounding for axis in axes) * 1.1
    missed = max(1.0 - mass, 0.0) + _ROUNDING
    distance = (math.sqrt(missed) + rounding) / mass if mass > 0.5 else math.inf
    nodes, each = _signed(axes, levels, weights)
    return Mixture(nodes, each / each.sum(), distance * (1.0 + 1e-12))


def _axis(variance: float, tolerance: float) -> _Axis:
    """Levels until what is missing is below the tolerance."""
    ratio, wanted = variance / (1.0 + variance), math.log(2.0 / tolerance)
    if variance <= _WIDE:
        n = max(2 * int(0.5 * math.log(tolerance) / math.log(ratio)) - 1, 1)
        axis, missing = _nested(_gauss_nodes(n), _hermite_table(n), ratio)
        while missing > tolerance**2 and n < 2 * _LONGEST:
            n += 2
            axis, missing = _nested(_gauss_nodes(n), _hermite_table(n), ratio)
    else:
        # Equal steps c / sqrt(1 + v): the trapezoid rule is right to 2 exp(-2 pi^2 / c^2).
        step = math.pi * math.sqrt(2.0 / wanted / (1.0 + variance))
        x = step * np.arange(float(min(math.ceil(2.0 * math.sqrt(wanted) / step) + 1, _LONGEST)))
        axis, _ = _nested(x, _even_hermite(x, _terms(x, ratio)), ratio)
    return axis._replace(positions=axis.positions * math.sqrt(variance))


def _terms(x: Float, ratio: float) -> int:
    """Hermite terms until they are below rounding."""
    return min(8 + math.ceil((39.0 + 0.25 * float(x[-1]) ** 2) / -math.log(ratio)), _TERMS)


def _nested(x: Float, table: Float, ratio: float) -> tuple[_Axis, float]:
    """Least-squares weights of all levels on the nodes x (L,), h_2k(x) = table (K, L), and what is missing.

    In L2(N(0, 1 + v)) the ratio of N(z, 1) to N(0, 1 + v) has the coefficients ratio^(k/2) h_k(z / sqrt v),
    h_k the orthonormal Hermite polynomials; the target has 1, 0, 0, ...
    """
    terms = min(_terms(x, ratio), len(table))
    powers = ratio ** np.arange(terms)
    Q, R = np.linalg.qr(table[:terms] * powers[:, None])
    coefficients = Q[0]
    inverse = np.linalg.inv(R)  # level a: weights R^-1 (coefficients up to a)
    steps = (inverse * coefficients).T
    masses = coefficients**2
    # Every level is computed backward stably; terms left out: Cramer's bound h_k(x)^2 <= 1.19 e^(x^2/2).
    norms = np.linalg.norm(R, axis=0)
    tails = np.exp(0.25 * x * x) * 1.1 * ratio ** (terms - 1) / math.sqrt(1.0 - ratio)
    rounding = float((np.abs(steps) @ (64 * len(x) * UNIT * norms + tails)).max())
    # The residual itself, not 1 minus the masses: it is far smaller.
    missing = float(np.sum((Q @ coefficients - np.eye(1, terms)[0]) ** 2))
    return _Axis(x, steps, masses, rounding), missing


@lru_cache(maxsize=64)
def _gauss_nodes(n: int) -> Float:
    """Non-negative Gauss-Hermite nodes of odd order n."""
    x = np.polynomial.hermite_e.hermegauss(n)[0][n // 2 :]
    x[0] = 0.0
    return np.asarray(x)


@lru_cache(maxsize=64)
def _hermite_table(n: int) -> Float:
    x = _gauss_nodes(n)
    return _even_hermite(x, _terms(x, _WIDE / (1.0 + _WIDE)))


def _even_hermite(x: Float, terms: int) -> Float:
    """h_0, h_2, h_4, ... at x (L,): what +x and -x have in common (terms, L)."""
    rows = [np.ones_like(x), x]
    for k in range(1, 2 * terms - 2):
        rows.append((x * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return np.stack(rows[: 2 * terms : 2])


def _chosen(axes: list[_Axis], target: float, most: int) -> Index:
    """Multi-indices (M, q) of levels, closed downward, that catch most of the mass for their nodes."""
    gains = []
    for axis in axes:
        gain = axis.masses / axis.masses[0]
        gain[1:] *= 0.5  # two nodes for one
        gains.append(np.maximum.accumulate(gain[::-1])[::-1])
    smallest = _NEGLIGIBLE * target**2
    levels, worth = np.zeros((1, 0), dtype=np.int64), np.ones(1)
    for gain in gains:
        product = worth[:, None] * gain
        rows, columns = np.nonzero(product >= smallest)
        levels, worth = np.column_stack([levels[rows], columns]), product[rows, columns]
        if len(worth) > 20 * most:  # keep the best: any set closed downward will do
            best = np.sort(np.argsort(-worth, kind="stable")[: 20 * most])
            levels, worth = levels[best], worth[best]
    order = np.argsort(-worth, kind="stable")
    levels = levels[order]
    mass = np.cumsum(_products([axis.masses for axis in axes], levels))
    count = np.cumsum(2.0 ** (levels > 0).sum(axis=1))
    enough = int(np.searchsorted(mass, 1.0 - target**2)) + 1
    return np.asarray(levels[: max(min(enough, int((count <= most).sum())), 1)])


def _products(factors: list[Float], levels: Index) -> Float:
    """prod_i factors[i][levels[:, i]] (M,)."""
    product = np.ones(len(levels))
    for i, factor in enumerate(factors):
        product *= factor[levels[:, i]]
    return product


def _orbit_weights(axes: list[_Axis], levels: Index) -> Float:
    """W_g = sum over a >= g in the set of prod_i steps_i[a_i, g_i] (M,): one axis after the other."""
    base = int(levels.max()) + 2
    place = base ** np.arange(levels.shape[1], dtype=object)
    keys = {int(key): row for row, key in enumerate(levels.astype(object) @ place)}
    numbers = np.array(list(keys), dtype=object)
    weights = np.ones(len(levels))
    for i, axis in enumerate(axes):
        above = np.array([keys.get(int(key), -1) for key in numbers + place[i]])
        if (levels[:, i] == 0).all():
            weights = weights * axis.steps[0, 0]
            continue
        total, row, here = np.zeros_like(weights), np.arange(len(weights)), levels[:, i]
        level = here
        alive = np.ones(len(weights), dtype=bool)
        while alive.any():
            total[alive] += axis.steps[level[alive], here[alive]] * weights[row[alive]]
            row = np.where(alive, above[row], -1)
            alive = row >= 0
            level = level + 1
        weights = total
    return weights


def _signed(axes: list[_Axis], levels: Index, weights: Float) -> tuple[Float, Float]:
    """All points (+-x_1, ..., +-x_q) of all multi-indices (N, q) and the weight of each (N,)."""
    nodes = np.column_stack([axis.positions[levels[:, i]] for i, axis in enumerate(axes)])
    for i in range(len(axes)):
        off = nodes[:, i] > 0
        weights = np.concatenate([np.where(off, 0.5, 1.0) * weights, 0.5 * weights[off]])
        mirrored = nodes[off]
        mirrored[:, i] *= -1.0
        nodes = np.concatenate([nodes, mirrored])
    return nodes, weights

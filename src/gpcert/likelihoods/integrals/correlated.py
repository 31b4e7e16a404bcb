"""E softmax for four and more correlated latents: an independent part, and few nodes for the rest.

Sigma = D + rest on differences of latents; the rest moves the means of independent latents, over a mixture
whose distance from the Gaussian is known (docs/maths/likelihoods.md, H11, H12).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.base import UNIT
from gpcert.likelihoods.integrals.gumbel import (
    Cloud,
    GumbelIntegral,
    gumbel_derivatives,
    gumbel_integral,
    unmoved,
)
from gpcert.likelihoods.integrals.nodes import axis_rule
from gpcert.validation import Float, Index

_SHARE = 0.3  # of the squared target for what single axes leave; the rest is for the choice of nodes
_WIDE_AXIS = 1.0  # variance beyond which equal steps beat Gauss-Hermite nodes
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
    if variance <= _WIDE_AXIS:
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
    return _even_hermite(x, _terms(x, _WIDE_AXIS / (1.0 + _WIDE_AXIS)))


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


_BARRIERS = (0.03, 0.003)
_STEPS = 20


class Split(NamedTuple):
    """Sigma as D + sum_i variances_i directions_i directions_i^T on differences; `defect`: see H12."""

    d: Float  #: (C,) > 0
    variances: Float  #: (q,) > 0, decreasing, in units of D
    directions: Float  #: (C, q)
    defect: float


def centred(cov: Float) -> Float:
    """Sigma (..., C, C) less x 1^T + 1 x^T with row sums 0: the same differences."""
    x = cov.mean(axis=-1, keepdims=True)
    return np.asarray(cov - x - x.swapaxes(-1, -2) + x.mean(axis=-2, keepdims=True))


def independent_part(cov: Float) -> Float:
    """D (n, C) for centred covariances (n, C, C); 0 where some difference of latents has no variance."""
    n, C = cov.shape[:2]
    Q = np.linalg.eigh(np.eye(C) - 1.0 / C)[1][:, 1:]
    scale = np.trace(cov, axis1=1, axis2=2)[:, None]
    cov = cov / np.where(scale > 0, scale, 1.0)[..., None]
    V = Q.T @ cov @ Q
    lowest, largest = np.linalg.eigvalsh(V)[:, [0, -1]].T
    good = np.flatnonzero(lowest > 1e-10 * largest)
    d = np.zeros((n, C))
    if len(good):
        with np.errstate(all="ignore"):
            d[good] = _maximise(V[good], Q, _start(cov[good], V[good], Q, lowest[good]))
    d[~(np.isfinite(d) & (d > 0)).all(axis=1)] = 0.0
    return np.asarray(d * scale)


def _start(cov: Float, V: Float, Q: Float, lowest: Float) -> Float:
    """The D of Sigma = D + x 1^T + 1 x^T, were it one, not too small and shrunk until it is below Sigma."""
    C = len(Q)
    d = np.maximum(np.diagonal(cov, axis1=1, axis2=2) * (C / (C - 2.0)), lowest[:, None])
    d -= d.mean(axis=1, keepdims=True) / C
    d = np.maximum(d, 0.5 * lowest[:, None])
    half = _inverse_root((Q.T * d[:, None, :]) @ Q)
    return np.asarray(0.8 * np.linalg.eigvalsh(half @ V @ half.swapaxes(1, 2))[:, :1] * d)


def _inverse_root(A: Float) -> Float:
    """W with W A W^T = I for symmetric A (n, N, N) > 0; what rounding has made negative is taken as tiny."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, 1e-15 * np.abs(values).max(axis=1, keepdims=True) + 1e-100)
    return np.asarray(vectors.swapaxes(1, 2) / np.sqrt(values)[..., None])


def _maximise(V: Float, Q: Float, d: Float) -> Float:
    """log det(Q^T D Q) + mu (log det(V - Q^T D Q) + sum log d), mu falling; every row on its own."""
    for mu in _BARRIERS:
        moving = np.arange(len(d))
        for _ in range(_STEPS):
            step, decrement = _newton(V[moving], Q, d[moving], mu)
            d[moving] += step
            moving = moving[decrement >= mu]
            if not len(moving):
                break
    return d


def _newton(V: Float, Q: Float, d: Float, mu: float) -> tuple[Float, Float]:
    """A Newton step (n, C), shortened to stay inside, and how much it promises (n,)."""
    every = np.arange(len(Q))
    half = _inverse_root(V - (Q.T * d[:, None, :]) @ Q) @ Q.T
    rest = half.swapaxes(1, 2) @ half
    one = 1.0 / d
    own = -one[:, :, None] * one[:, None, :] / one.sum(axis=1)[:, None, None]
    own[:, every, every] += one
    slope = (own - mu * rest)[:, every, every] + mu * one
    curve = own**2 + mu * rest**2
    curve[:, every, every] += mu * one**2
    step = np.linalg.solve(curve, slope[..., None])[..., 0]
    step[~np.isfinite(step).all(axis=1)] = 0.0
    # How far the step may go: where V - Q^T D Q or D becomes singular.
    fall = np.linalg.eigvalsh((half * step[:, None, :]) @ half.swapaxes(1, 2))[:, -1]
    fall = np.maximum(fall, (-step * one).max(axis=1))
    return np.minimum(1.0, 0.95 / np.maximum(fall, 1e-300))[:, None] * step, (slope * step).sum(axis=1)


def split(cov: Float, d: Float) -> Split:
    """The rest in coordinates where D is the identity, for a centred covariance (C, C) and d (C,) > 0."""
    root = np.sqrt(d)
    e = (1.0 / root) / np.linalg.norm(1.0 / root)
    whole = cov / root[:, None] / root
    turned = (
        whole
        - np.multiply.outer(e, e @ whole)
        - np.multiply.outer(whole @ e, e)
        + (e @ whole @ e + 1.0) * np.multiply.outer(e, e)
    )
    values, vectors = np.linalg.eigh(0.5 * (turned + turned.T) - np.eye(len(d)))
    scale = 1.0 + float(np.linalg.norm(whole))
    rounding = 64.0 * len(d) * UNIT * scale
    kept = np.flatnonzero(values > rounding)[::-1]
    dropped = np.abs(np.delete(values, kept)).sum() + len(d) * rounding
    return Split(d, values[kept], root[:, None] * vectors[:, kept], 0.5 * float(dropped))


#: Distance aimed at: twice the error of a probability near 1/2.
TARGET = 2e-5
#: Nodes at most: beyond, the distance is what they reach, and the error says so.
MOST = 2000


#: Beyond this variance, relative to the independent part, an axis has a trapezoid rule of its own.
_WIDE = 20.0
_STRIP, _REACH = 1e-9, 6.2  # its relative error and range
#: Products of three probabilities lose at most 1/cos^2(0.93 pi/2) = 83 on the strip, and second derivatives
#: are sums of at most six (docs/maths/multiclass.md, A1).
_PRODUCTS = 600.0
#: A change of covariance moves second derivatives by fourth ones: below 0.875, the second below 0.1.
_HIGHER = 10.0
#: Added to every variance where a difference of latents is all but certain; what that can change, per class.
_RAISED, _PER_CLASS = 1e-5, 0.05e-5


class CorrelatedRule(NamedTuple):
    """Independent variances d (C,), shifts of the mean, and how far the two together are from N(m, Sigma).

    For 0 <= g <= 1 the rule's average of g is within `distance` sqrt(E g (1 - E g)) + `defect` of E g;
    softmax probabilities are within another `strip`.
    """

    d: Float
    cloud: Cloud
    distance: float
    defect: float
    strip: float

    def integral(self, mean: Float) -> GumbelIntegral:
        """E softmax (C,) at a mean (C,), and its error."""
        p, error = gumbel_integral(mean, self.d, self.cloud)
        return GumbelIntegral(p, error + self.apart(p) + self.defect + self.strip)

    def derivatives(self, mean: Float) -> tuple[Float, Float, Float, float]:
        """As `gumbel_derivatives`; the error leaves out what `distance` stands for."""
        p, first, second, error = gumbel_derivatives(mean, self.d, self.cloud)
        return p, first, second, error + _HIGHER * self.defect + _PRODUCTS * self.strip

    def apart(self, p: Float) -> Float:
        """Bounds distance * sqrt(F (1 - F)) for the exact F, from the computed p (C,)."""
        return self.distance * (np.sqrt(p * (1.0 - p)) + self.distance)


def correlated_rules(cov: Float, target: float = TARGET, most: int = MOST) -> list[CorrelatedRule | None]:
    """A rule for each covariance (n, C, C); None where it would need too many nodes."""
    C = cov.shape[1]
    sigma = centred(cov)
    values = np.linalg.eigvalsh(sigma + np.abs(sigma).max(axis=(1, 2), keepdims=True))  # 1 gets a large one
    thin = (values[:, 0] < _RAISED) & (values[:, 0] <= 0.01 * values[:, -2])
    cost = np.where(thin, _PER_CLASS * C, 0.0)
    nothing = thin & (0.1 * np.abs(sigma).sum(axis=(1, 2)) <= cost)  # cheaper to leave out altogether
    sigma[thin] += _RAISED * np.eye(C)
    rules: list[CorrelatedRule | None] = []
    for i, d in enumerate(independent_part(sigma)):
        if nothing[i]:
            certain = float(0.1 * np.abs(centred(cov[i])).sum())
            rules.append(CorrelatedRule(np.zeros(C), unmoved(C), 0.0, certain, 0.0))
        else:
            rules.append(_rule(sigma[i], d, target, most, float(cost[i])) if (d > 0).all() else None)
    return rules


def _rule(cov: Float, d: Float, target: float, most: int, raised: float) -> CorrelatedRule | None:
    parts = split(cov, d)
    shifts, weights, strip = np.zeros((1, len(d))), np.ones(1), 0.0
    wide = parts.variances > _WIDE
    for i in np.flatnonzero(wide):
        column = parts.directions[:, i] * np.sqrt(parts.variances[i])
        z, w, error = axis_rule(float(np.ptp(column)), _STRIP, _REACH)
        strip = strip + error + strip * error
        if len(z) * len(weights) > most or not strip < 0.1:
            return None
        shifts = (shifts[:, None] + np.multiply.outer(z, column)).reshape(-1, len(d))
        weights = np.multiply.outer(weights, w).ravel()
    nodes, shares, distance = mixture(parts.variances[~wide], target, max(most // len(weights), 1))
    if not distance < 1.0:
        return None
    shifts = (shifts[:, None] + nodes @ parts.directions[:, ~wide].T).reshape(-1, len(d))
    weights = np.multiply.outer(weights / weights.sum(), shares).ravel()
    # Weights divided by their sum, which is 1 up to the same error: twice, and a little.
    return CorrelatedRule(d, Cloud(shifts, weights), distance, parts.defect + raised, 3.0 * strip)

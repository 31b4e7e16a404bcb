"""Propositions 3 and 4: softmax probabilities from ranges of means and covariances of C latents.

The latent space is cut into boxes. On each the softmax lies between its values at two vertices (a lemma of
the paper's supplement), and the Gaussian mass is at most a product of one-dimensional ones: class i given the
classes after it, whose values f range over the cell (docs/maths/paper.md, P8, P9). The conditional mean has a
plus sign, which the paper prints as a minus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float
from gpcert_paper.method.latent_space import Interval, masses

#: Standard deviations that the bounded cells cover on either side.
_REACH = 5.0


@dataclass(frozen=True, eq=False)
class LatentRanges:
    """Enclosures over a region of the means (C,) and of the covariance (C, C) of the latents."""

    mean: tuple[Float, Float]
    covariance: tuple[Float, Float]


class _Span:
    """Interval arithmetic on arrays, rounded outward by a few units."""

    def __init__(self, low: Float | float, high: Float | float) -> None:
        self.low, self.high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)

    @classmethod
    def outward(cls, *candidates: Float) -> _Span:
        low, high = np.minimum.reduce(candidates), np.maximum.reduce(candidates)
        # 0 times infinity: nothing is known.
        low = np.where(np.isnan(low), -np.inf, low - 4 * UNIT * np.abs(low))
        return cls(low, np.where(np.isnan(high), np.inf, high + 4 * UNIT * np.abs(high)))

    def __add__(self, other: _Span) -> _Span:
        return _Span.outward(self.low + other.low, self.high + other.high)

    def __sub__(self, other: _Span) -> _Span:
        return _Span.outward(self.low - other.high, self.high - other.low)

    def __mul__(self, other: _Span) -> _Span:
        return _Span.outward(
            self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high
        )

    def __truediv__(self, other: _Span) -> _Span:
        """By a positive span; unbounded where it may be 0."""
        positive = other.low > 0
        low, high = np.where(positive, other.low, 1.0), np.where(positive, other.high, 1.0)
        quotient = _Span.outward(self.low / low, self.low / high, self.high / low, self.high / high)
        return _Span(np.where(positive, quotient.low, -np.inf), np.where(positive, quotient.high, np.inf))


def softmax_bounds(r: LatentRanges, label: int, intervals: int) -> Interval:
    """Proposition 3: encloses P(label) over the region; `intervals` per class, two of them unbounded."""
    C = len(r.mean[0])
    if not all(np.isfinite(part).all() for pair in (r.mean, r.covariance) for part in pair):
        return 0.0, 1.0
    edges = [_edges(r, c, intervals) for c in range(C)]
    grids = np.meshgrid(*(np.arange(len(e) - 1) for e in edges), indexing="ij")
    left = np.array([e[g.ravel()] for e, g in zip(edges, grids, strict=True)])
    right = np.array([e[g.ravel() + 1] for e, g in zip(edges, grids, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least, most = _cell_masses(r, left, right)
        lower, upper = _softmax_ends(left, right, label)
    error = gamma(left.shape[1] + 8)
    return max(0.0, float(lower @ least) * (1.0 - error)), min(1.0, float(upper @ most) * (1.0 + error))


def _edges(r: LatentRanges, c: int, intervals: int) -> Float:
    """Cells of one latent: equal widths around its range, and the two rays beyond."""
    spread = _REACH * np.sqrt(max(r.covariance[1][c, c], 0.0)) + 1e-9
    inner = np.linspace(r.mean[0][c] - spread, r.mean[1][c] + spread, intervals - 1)
    return np.concatenate([[-np.inf], inner, [np.inf]])


def _softmax_ends(left: Float, right: Float, label: int) -> tuple[Float, Float]:
    """The smallest and the largest softmax on each cell: own latent low and the others high, and reverse."""
    others = [j for j in range(len(left)) if j != label]
    bounds = []
    for own, rest in ((left[label], right[others]), (right[label], left[others])):
        shift = np.logaddexp.reduce(rest, axis=0)
        bounds.append(expit(own - shift))
    slack = 64 * UNIT
    # inf - inf, or a ray towards minus infinity: 0 from below, 1 from above.
    lower = np.where(np.isnan(bounds[0]), 0.0, bounds[0] * (1.0 - slack * (1.0 + _size(left, right))))
    upper = np.where(np.isnan(bounds[1]), 1.0, bounds[1] * (1.0 + slack * (1.0 + _size(left, right))))
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _size(left: Float, right: Float) -> Float:
    """The largest finite latent of each cell: the exponent's rounding grows with it."""
    finite = np.concatenate([left, right])
    return np.asarray(np.abs(np.where(np.isfinite(finite), finite, 0.0)).max(axis=0))


def _cell_masses(r: LatentRanges, left: Float, right: Float) -> tuple[Float, Float]:
    """Proposition 4 on every cell (N,): the last class alone, then each class given those after it."""
    C = len(left)
    least, most = np.ones(left.shape[1]), np.ones(left.shape[1])
    mean = [_Span(r.mean[0][i], r.mean[1][i]) for i in range(C)]
    cov = [[_Span(r.covariance[0][i, j], r.covariance[1][i, j]) for j in range(C)] for i in range(C)]
    known: list[int] = []
    for i in reversed(range(C)):
        slopes = _solve([[cov[a][b] for b in known] for a in known], [cov[i][a] for a in known])
        m, s = mean[i], cov[i][i]
        for a, slope in zip(known, slopes, strict=True):
            m = _moved(m, slope, _Span(left[a], right[a]) - mean[a])
            s = s - slope * cov[i][a]
        s = _Span(np.maximum(s.low, 0.0), np.minimum(np.maximum(s.high, 0.0), cov[i][i].high))
        one_least, one_most = masses(left[i], right[i], (m.low, m.high), (s.low, s.high))
        least, most = least * one_least, most * one_most
        known.insert(0, i)
    error = 4 * (C + 4) * UNIT
    return least * (1.0 - error), np.minimum(most * (1.0 + error), 1.0)


def _moved(mean: _Span, slope: _Span, step: _Span) -> _Span:
    """The conditional mean after one known class: plus, where the paper prints minus."""
    return mean + slope * step


def _solve(A: list[list[_Span]], b: list[_Span]) -> list[_Span]:
    """A^-1 b for symmetric positive definite spans, by elimination; unbounded where a pivot may vanish."""
    rows = [[*row, rhs] for row, rhs in zip(A, b, strict=True)]
    n = len(rows)
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [rows[i][j] - factor * rows[k][j] for j in range(n + 1)]
    x: list[_Span] = []
    for k in reversed(range(n)):
        rest = rows[k][n]
        for j, known in zip(range(k + 1, n), x, strict=True):
            rest = rest - rows[k][j] * known
        x.insert(0, rest / rows[k][k])
    return x

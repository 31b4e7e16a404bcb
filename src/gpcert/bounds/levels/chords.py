"""A level curve between points where it is known, in the deviation s = sqrt(S) (docs/maths/kernels.md, S3).

E sigma of any mixture of steps changes so slowly along a straight path of means m(s) that it clears a level
between two points where it clears a little more. So a line or a root above all such chords is above the
curve: planes need no more (docs/maths/bounds.md, G1 and G2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpcert.bounds.levels.curves import Line, Root
from gpcert.rounding import UNIT, up
from gpcert.validation import Float

#: Deviations are this far apart at most, relative to themselves, from this share of the largest on; and at
#: least.
_APART, _SMALLEST, _NEAREST = 0.07, 1e-3, 0.01
#: A level is met up to this much more than asked.
_SURPLUS = 1e-5
#: What c of a root may be, over the link's own: any is sound.
_SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


class Chords(NamedTuple):
    """E sigma >= p along the chords of (s_i, m_i), both (N,), and at `first` for deviations up to s_0."""

    s: Float
    m: Float
    first: float

    @property
    def steepest(self) -> float:
        return float((np.abs(np.diff(self.m)) / np.diff(self.s)).max())

    def rises(self, S: float) -> bool:
        """Near S."""
        i = self._cell(S)
        return bool(self.m[i + 1] > self.m[i])

    def line_above(self, S: float) -> Line:
        """(tau, kappa) with tau s^2 - kappa above all of it, as steep as it is near S, or level."""
        (s, m, _), i = self, self._cell(S)
        near = (m[i + 1] - m[i]) / ((s[i + 1] - s[i]) * (s[i + 1] + s[i]))
        found = [self._line(tau) for tau in (max(float(near), 0.0), 0.0)]  # any is sound
        return min(found, key=lambda line: line[0] * S - line[1])

    def _line(self, tau: float) -> Line:
        s, m, first = self
        slope = np.diff(m) / np.diff(s)
        # A chord less a parabola is highest in between.
        highest = np.clip(0.5 * slope / tau, s[:-1], s[1:]) if tau > 0.0 else s[:-1]
        inside = m[:-1] + slope * (highest - s[:-1]) - tau * highest * highest
        top = max(float(inside.max()), float((m - tau * s * s).max()), first)
        return tau, -up(top + self._rounding(tau * float(s[-1]) ** 2))

    def root_above(self, S: float, noise: float) -> Root:
        """(steep, c, kappa) with -(steep sqrt(c + s^2) + kappa) above all of it, as steep as it is near S, or
        level; c is the best of some multiples of `noise`.
        """
        found = [self._root(S, share * noise, size) for share in _SHARES for size in (1.0, 0.0)]
        return max(found, key=lambda root: root[0] * math.sqrt(root[1] + S) + root[2])

    def _root(self, S: float, c: float, size: float) -> Root:
        """Concave in s: above a chord where it is above both ends."""
        (s, m, first), i = self, self._cell(S)
        w = np.sqrt(c + s * s)
        near = (m[i] - m[i + 1]) * (w[i] + w[i + 1]) / ((s[i + 1] - s[i]) * (s[i + 1] + s[i]))
        steep = max(size * float(near), 0.0)  # any is sound
        kappa = min(float((-m - steep * w).min()), -first - steep * float(w[0]))
        return steep, c, kappa - self._rounding(steep * float(w[-1]))

    def _cell(self, S: float) -> int:
        return min(max(int(np.searchsorted(self.s, math.sqrt(max(S, 0.0)))), 1), len(self.s) - 1) - 1

    def _rounding(self, size: float) -> float:
        return 64 * UNIT * (float(np.abs(self.m).max()) + abs(self.first) + size)


def deviations(smallest: float, largest: float, apart: float) -> Float:
    """(N,), from `smallest` or what is large enough; each at most 1 + `apart` times the one before."""
    start = min(max(smallest, _SMALLEST * largest), 0.5 * largest)
    return np.geomspace(start, largest, 2 + int(math.log(largest / start) / math.log1p(apart)))


def lost(slope: float, apart: float) -> float:
    """S3: how far E sigma may fall below its ends along a chord of this slope."""
    return (1.0 + 1e-6) * 0.125 * apart**2 * (0.34 + slope * (0.8 + 0.25 * slope))


def spacing(slope: float, given: float) -> float:
    """How far apart deviations may be so that no more than `given` is lost; any is sound."""
    return min(max(math.sqrt(given / lost(slope, 1.0)), _NEAREST), _APART)


def cleared(
    along: Callable[[Float, Float], tuple[Float, Float]], goal: float, s: Float, m: Float, far: Float
) -> Float:
    """Means (N,) where E sigma >= `goal` for deviations s (N,), hardly larger than need be; inf: none found.

    `along`: lower bounds of E sigma and about their slopes in the mean, for means and deviations. Newton's
    method from m (N,), in steps of at most `far` (N,) at first, halving where it leaves what is known.
    """
    low, high = np.full(len(s), -np.inf), np.full(len(s), np.inf)
    rows, m, size = np.arange(len(s)), m.copy(), far
    for _ in range(120):
        value, slope = along(m[rows], s[rows])
        enough = value >= goal
        high[rows[enough]], low[rows[~enough]] = m[rows[enough]], m[rows[~enough]]
        wide = high[rows] - low[rows] > 1e-9 * (size[rows] + np.abs(m[rows]))
        near = enough & (value <= goal + _SURPLUS) | ~wide
        rows, value, slope = rows[~near], value[~near], slope[~near]
        if not len(rows):
            break
        step = np.clip((goal + 0.5 * _SURPLUS - value) / (slope + 1e-300), -far[rows], far[rows])
        guess, halves = m[rows] + step, 0.5 * (low[rows] + high[rows])
        inside = (low[rows] < guess) & (guess < high[rows])
        m[rows] = np.where(inside | ~np.isfinite(halves), guess, halves)
        far = 2.0 * far
    return high

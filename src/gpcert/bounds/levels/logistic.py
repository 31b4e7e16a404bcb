"""Level curves of the logistic, enclosed by its proved quadrature (docs/maths/bounds.md, L2, L3 and G3)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from gpcert.bounds.levels.curves import ComputedCurves, Level, Line, Root
from gpcert.likelihoods import Logit
from gpcert.rounding import UNIT, down, sqrt_up, up
from gpcert.validation import Float

#: The cells of a root's grid, in log sqrt(c + S): the shortest, also as a share of a range of variances, and
#: how many of them the longest is.
_SHORTEST, _SHARE, _LONGEST = 2.0**-8, 2.0**-10, 32
#: How many cells of each length there are on either side: few enough to be cheap, and so many that chords
#: lose less than the root does, which grows with the square of the distance.
_CELLS = 12
#: Variances at which one level is known at most; and how many levels and roots are kept.
_KEPT, _LEVELS = 2**12, 2**9
#: From variances of this size on a root has a smaller c, so that it bends away from F as fast as chords need.
_WIDE = 20.0


@dataclass(frozen=True)
class LogitCurves(ComputedCurves):
    """E sigma(f) by the quadrature of `Logit`, with its proved error."""

    likelihood: Logit

    @property
    def noise(self) -> float:
        """8 / pi: the slopes of the logistic and of Phi(f / sqrt(8/pi)) agree at 0."""
        return 8.0 / math.pi

    @property
    def slope(self) -> float:
        return 0.25

    def expectation(self, mu: Float, S: Float) -> tuple[Float, Float]:
        error = self.likelihood.expectation_error(mu, S) * (1.0 + 8 * UNIT)
        return self.likelihood.expectation(mu, S), error

    def level(self, p: float) -> Level:
        return LogitLevel(self, p)


@dataclass(frozen=True)
class LogitLevel(Level):
    """m_p(S) of the logistic, enclosed by bracketing the proved quadrature."""

    curves: LogitCurves
    target: float
    range: tuple[float, float] | None = None  #: S is known to stay there; None: any S >= 0

    @property
    def p(self) -> float:
        """The target itself: the curve is enclosed, not the probability."""
        return self.target

    @property
    def concave(self) -> bool:
        return self.p >= 0.5

    def curve(self, S: float) -> tuple[float, float]:
        """[lower, upper] containing m_p(S): the quadrature with its error brackets p there."""
        return self.enclosures([S])[0]

    def enclosures(self, S: Sequence[float]) -> list[tuple[float, float]]:
        """`curve` at several variances: those that were not asked for before in one quadrature."""
        known = _known(self.curves, self.p)
        if len(known) > _KEPT:
            known.clear()
        new = [x for x in S if x not in known]
        if new:
            known.update(zip(new, _enclosed(self.curves, self.p, np.array(new)), strict=True))
        return [known[x] for x in S]

    def tangent(self, S: float, largest: float) -> Line:
        """L2: three enclosures of a concave curve bound it everywhere, without derivatives."""
        gap = 1e-3 * (1.0 + max(S, 0.0))
        points = [max(S, gap) + i * gap for i in (-1, 0, 1)]
        points[0] = max(points[0], 0.0)
        curve = self.enclosures(points)
        tau = 0.5 * (sum(curve[2]) - sum(curve[0])) / (points[2] - points[0])
        if not (math.isfinite(tau) and math.isfinite(largest)):
            return 0.0, -math.inf
        # h(S') = m_p(S') - tau S' is concave: outside two points it lies below the line through them.
        size = 16 * UNIT * (max(abs(c) for pair in curve for c in pair) + abs(tau) * (points[2] + largest))
        lower = [pair[0] - tau * x - size for pair, x in zip(curve, points, strict=True)]
        upper = [pair[1] - tau * x + size for pair, x in zip(curve, points, strict=True)]
        left, right = points[1] - points[0], points[2] - points[1]
        rises = (
            max(0.0, (upper[1] - lower[0]) / left) * right,  # between the second and the third point
            max(0.0, (upper[1] - lower[2]) / right) * left,  # between the first and the second
            max(0.0, (upper[2] - lower[1]) / right) * max(0.0, largest - points[2]),
            max(0.0, (upper[0] - lower[1]) / left) * points[0],
        )
        return tau, -up(max(upper) + max(rises) + size)

    def root(self, S: float, largest: float) -> Root | None:
        """F = -m_p is concave in S, above its chords: the secant of F in w = sqrt(c + S) next to S, lowered
        to what they make certain.
        """
        low, high = (0.0, largest) if self.range is None else self.range
        if not (self.p < 0.5 and low < high < 1e90):
            return None
        place = round(self._height(min(max(S, low), high)) / self._shortest)
        return _logistic_root(self, place, largest)

    def within(self, variances: tuple[float, float]) -> LogitLevel:
        return replace(self, range=variances)

    def _height(self, S: float) -> float:
        """log sqrt(c + S), 0 at S = 0."""
        return 0.5 * math.log1p(S / self.c)

    @property
    def _shortest(self) -> float:
        """The shortest cell: the longer the range, the longer, so that roots lose the square of it."""
        if self.range is None:
            return _SHORTEST
        low, high = map(self._height, self.range)
        return min(_SHORTEST, _SHARE * 2.0 ** math.floor(math.log2(max(high - low, 1e-9))))

    @property
    def c(self) -> float:
        """Fitted: with any smaller c, F is convex in sqrt(c + S) for p < 1/2, so that a root touches it where
        it is asked and lies below it elsewhere. Any c is sound.
        """
        return 1.0 / math.hypot(4.0 * self.p * (1.0 - self.p), 0.31)

    def grid(self, largest: float, place: int | None = None) -> list[float]:
        """Variances from 0 to `largest`, or of the range, close together around `place` (in shortest cells),
        if given: cells begin where others of their length do for every place, so that values are kept.
        """
        low, largest = (0.0, largest) if self.range is None else self.range
        shortest = self._shortest
        first, last = self._height(low) / shortest, self._height(largest) / shortest
        cells = set(range(math.floor(first / _LONGEST) * _LONGEST, math.ceil(last), _LONGEST))
        length = 1
        while place is not None and length < _LONGEST:
            middle = place // length * length
            cells.update(range(max(middle - _CELLS * length, 0), middle + (_CELLS + 1) * length, length))
            length *= 2
        inside = (self.c * math.expm1(2.0 * shortest * i) for i in cells if i < last)
        return [low, *sorted(x for x in inside if low < x < largest), largest]

    def after_deficit(self, deficit: float, smallest: float) -> float:
        """The density of the logistic is at most 1/4, so the probability drops by at most deficit / 4."""
        return max(0.0, down(self.p - 0.25 * deficit * (1.0 + 4 * UNIT)))


def root_below(c: float, grid: list[float], F: list[float], S: float) -> Root | None:
    """(steep, c, kappa) with steep sqrt(c + S') + kappa below the chords of the points (grid, F), near at S.

    Chord - steep w, w = sqrt(c + S'), is convex, smallest at an end or where w = steep / (2 slope).
    """
    if not all(map(math.isfinite, F)):
        return None
    i = min(bisect_right(grid, max(S, 0.0)), len(grid) - 1)
    wide = math.sqrt(c + grid[i]) - math.sqrt(c + grid[i - 1])
    steep = max((F[i] - F[i - 1]) / wide, 0.0) if wide > 0 else 0.0  # any steep >= 0 is sound
    kappa = math.inf
    for (x, one), (y, two) in pairwise(zip(grid, F, strict=True)):
        slope = (two - one) / (y - x)
        kappa = min(kappa, one - steep * sqrt_up(c + x), two - steep * sqrt_up(c + y))
        if slope > 0 and x < (0.5 * steep / slope) ** 2 - c < y:
            kappa = min(kappa, one - slope * (x + c) - 0.25 * steep * steep / slope)
    size = abs(kappa) + max(map(abs, F)) + steep * math.sqrt(c + grid[-1])
    return steep, c, kappa - 64 * UNIT * size


@lru_cache(maxsize=_LEVELS)
def _logistic_root(level: LogitLevel, place: int, largest: float) -> Root | None:
    """See `LogitLevel.root`, at the variance of `place`."""
    grid = level.grid(largest, place)
    F = [-upper for _, upper in level.enclosures(grid)]
    S = level.c * math.expm1(2.0 * level._shortest * place)
    return root_below(level.c / (1.0 + S / _WIDE), grid, F, S)


@lru_cache(maxsize=_LEVELS)
def _known(curves: LogitCurves, p: float) -> dict[float, tuple[float, float]]:
    """Enclosures of m_p by S; kept, since neighbouring pieces and their refinements share their ends."""
    return {}


def _enclosed(curves: LogitCurves, p: float, S: Float) -> list[tuple[float, float]]:
    """[lower, upper] containing m_p(S), for S (n,), from the level q <= 1/2: m_p = -m_{1-p}."""
    q = p if p <= 0.5 else 1.0 - p  # exact, since p is not small
    good = (S >= 0.0) & (S < 1e90) & (q > 0.0)
    S = np.where(good, S, 0.0)
    m = float(ndtri(max(q, 5e-324))) * np.sqrt(curves.noise + S)
    done = np.zeros(len(S), dtype=bool)  # each by itself, so that little depends on what else is asked
    for _ in range(50):
        log_z, slope, _ = curves.likelihood.tilted(1.0, m, S)
        step = (math.log(max(q, 5e-324)) - log_z) / slope  # log E sigma is concave: from below after one step
        m = np.where(done, m, np.fmin(np.fmax(m + step, -1e90), 0.0))
        done |= np.abs(step) <= 1e-7 * (1.0 + np.abs(m))  # the error is now of the order of its square
        if done.all():
            break
    width = 4e-13 * (1.0 + np.abs(m))
    for _ in range(60):
        proved = (curves.enclose(m - width, S)[1] <= q) & (q <= curves.enclose(m + width, S)[0])
        if (proved | ~good).all():
            break
        width = np.where(proved, width, 4.0 * width)
    width = np.where(proved & good, width, np.inf)
    ends = [(float(a), float(b)) for a, b in zip(m - width, m + width, strict=True)]
    return ends if p <= 0.5 else [(-b, -a) for a, b in ends]

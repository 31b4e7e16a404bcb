"""Level curves of the logistic, enclosed by its proved quadrature (docs/maths.md, L2, L3 and G3)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from scipy.special import ndtri

from gpcert.bounds.levels.curves import Level, LevelCurves, Line, Root, corners
from gpcert.likelihoods import Logit
from gpcert.rounding import UNIT, down, sqrt_up, up


@dataclass(frozen=True)
class LogitCurves(LevelCurves):
    """E sigma(f) by the quadrature of `Logit`, with its proved error."""

    likelihood: Logit

    @property
    def noise(self) -> float:
        """8 / pi: the slopes of the logistic and of Phi(f / sqrt(8/pi)) agree at 0."""
        return 8.0 / math.pi

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        if not all(map(math.isfinite, (*mu, *S))):
            return 0.0, 1.0
        lower, upper = corners(mu, S)
        return self.enclose(*lower)[0], self.enclose(*upper)[1]

    def enclose(self, mu: float, S: float) -> tuple[float, float]:
        """E sigma(f) at one (mu, S)."""
        value = float(self.likelihood.expectation(mu, S))
        error = float(self.likelihood.expectation_error(mu, S)) * (1.0 + 8 * UNIT)
        return max(0.0, down(value - error)), min(1.0, up(value + error))

    def level(self, p: float) -> Level:
        return LogitLevel(self, p)


@dataclass(frozen=True)
class LogitLevel(Level):
    """m_p(S) of the logistic, enclosed by bracketing the proved quadrature."""

    curves: LogitCurves
    target: float

    @property
    def p(self) -> float:
        """The target itself: the curve is enclosed, not the probability."""
        return self.target

    @property
    def concave(self) -> bool:
        return self.p >= 0.5

    def curve(self, S: float) -> tuple[float, float]:
        """[lower, upper] containing m_p(S): the quadrature with its error brackets p there."""
        return _logistic_curve(self.curves, self.p, S)

    def tangent(self, S: float, largest: float) -> Line:
        """L2: three enclosures of a concave curve bound it everywhere, without derivatives."""
        gap = 1e-3 * (1.0 + max(S, 0.0))
        points = [max(S, gap) + i * gap for i in (-1, 0, 1)]
        points[0] = max(points[0], 0.0)
        curve = [self.curve(x) for x in points]
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
        to what is certain. Chord - steep w is convex, smallest at an end or where w = steep / (2 slope).
        """
        if not (self.p < 0.5 and 0.0 < largest < 1e90):
            return None
        c, grid = self.grid(largest)
        return root_below(c, grid, [-self.curve(x)[1] for x in grid], S)

    def grid(self, largest: float) -> tuple[float, list[float]]:
        """c, and variances up to `largest`, that `root` uses for p < 1/2."""
        t = float(ndtri(self.p))
        c = min(0.98 * self.curves.noise, (t / (1.0 - 2.0 * self.p)) ** 2)  # the slope of F at S = 0, far out
        return c, _grid(0.05 * c, largest)

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


def _grid(first: float, largest: float) -> list[float]:
    """0, then up to `largest` by factors of 2: the same for all references, so that values are kept."""
    count = max(0, math.ceil(math.log(max(largest / first, 1.0)) / math.log(2.0)))
    return [0.0, *sorted({largest * 2.0**-i for i in range(count + 1)})]


@lru_cache(maxsize=2**14)
def _logistic_curve(curves: LogitCurves, p: float, S: float) -> tuple[float, float]:
    """See `LogitLevel.curve`; kept, since neighbouring pieces and their refinements share their ends."""
    if not 0.0 <= S < 1e90:
        return -math.inf, math.inf
    m = float(ndtri(p)) * math.sqrt(curves.noise + S)
    for _ in range(50):
        value = float(curves.likelihood.expectation(m, S))
        slope = max(float(curves.likelihood.expectation_gradient(m, S)[0]), 1e-300)
        step = (p - value) / slope
        # The expectation is nearly linear in probit units: long steps are cut to stay where that holds.
        m += math.copysign(min(abs(step), 1.0 + 0.5 * abs(m)), step)
        if not abs(m) < 1e90:
            return -math.inf, math.inf
        if abs(step) <= 1e-7 * (1.0 + abs(m)):  # after this step the error is of the order of its square
            break
    width = 4e-13 * (1.0 + abs(m))
    for _ in range(60):
        if curves.enclose(m - width, S)[1] <= p <= curves.enclose(m + width, S)[0]:
            return m - width, m + width
        width *= 4.0
    return -math.inf, math.inf

"""Any monotone link given with an enclosing function, through steps (docs/maths/kernels.md, section 6).

sigma lies between two increasing step functions, L below and U above. E L(f) = sum_i a_i Phi((mu - t_i) /
s) with a_i >= 0, so over a rectangle of (mu, S) each term is smallest at mu's lower end and at one end of
S: the propositions 1 and 2 of the paper, for every link, symmetric or not. Level curves are enclosed by
the same sums, piece by piece (S2), for planes by a table of points and the chords between them (S3), in
the deviation s = sqrt(S): E sigma of any mixture of steps changes so slowly along a straight path of
means m(s) that it clears a level between two points where it clears a little more. Nothing is assumed of
their shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from gpcert.bounds.levels.curves import Level, LevelCurves, Line, Root
from gpcert.likelihoods import Link
from gpcert.likelihoods.base import NDTR
from gpcert.rounding import TINY, UNIT, down, gamma, up
from gpcert.validation import Float

#: Deviations are this far apart at most, relative to themselves, from this share of the largest on; and at
#: least.
_APART, _SMALLEST, _NEAREST = 0.07, 1e-3, 0.01
#: A level is met up to this much more than asked.
_CLEARED = 1e-5
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
        return 64 * UNIT * (float(np.abs(self.m).max()) + abs(self.first) + size) + TINY


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
        near = enough & (value <= goal + _CLEARED) | ~wide
        rows, value, slope = rows[~near], value[~near], slope[~near]
        if not len(rows):
            break
        step = np.clip((goal + 0.5 * _CLEARED - value) / (slope + 1e-300), -far[rows], far[rows])
        guess, halves = m[rows] + step, 0.5 * (low[rows] + high[rows])
        inside = (low[rows] < guess) & (guess < high[rows])
        m[rows] = np.where(inside | ~np.isfinite(halves), guess, halves)
        far = 2.0 * far
    return high


#: Height of a step aimed at: what a probability of such a link is known to.
_HEIGHT = 2.5e-4
_MOST_STEPS = 20_000
#: Sub-pieces of a chord, in each of which the curve is replaced by its largest value.
_SUBPIECES = 6
#: Roundings of one share, Phi(z) + |z| phi(z) being below 1.13: ndtr, and the quotient (likelihoods, H0).
_SHARE = 2 * NDTR + 40
#: A level is met up to this much more than asked.
_SURPLUS = 5e-5
#: S3: the smallest deviation of a table, a share of the link's own.
_FIRST = 0.01
#: How much of p or 1 - p a table may give away, besides a step; below which share it has all steps; how often
#: it is made because chords are steeper than was guessed; one in how many of its points is looked at first.
_GIVEN, _FINE, _GUESSES, _SOME = 0.04, 0.007, 3, 8
#: Height of the steps of such tables, few and coarse; and how many tables are kept.
_COARSE, _TABLES = 6e-4, 2**7


@dataclass(frozen=True, eq=False)
class StepCurves(LevelCurves):
    """lower[i] <= sigma <= upper[i] on [edges[i], edges[i + 1]], both increasing; 0 and 1 outside."""

    edges: Float  #: (m + 1,)
    lower: Float  #: (m,)
    upper: Float  #: (m,)

    @cached_property
    def _jumps(self) -> tuple[Float, Float, float]:
        """Steps of L at edges[:-1], steps of U at edges[1:], and U's value at -inf."""
        L = np.diff(self.lower, prepend=0.0)
        U = np.diff(self.upper, append=1.0)
        return L, U, float(self.upper[0])

    def bounds(self, mu: tuple[float, float], S: tuple[float, float]) -> tuple[float, float]:
        """See `LevelCurves.bounds`; term by term."""
        if not all(map(math.isfinite, (*mu, *S))):
            return 0.0, 1.0
        return self.at_least(mu[0], S), self._at_most(mu[1], S)

    def at_least(self, mu: float, S: tuple[float, float]) -> float:
        """A lower bound of E sigma at this mu, for all S of the interval (clipped at 0)."""
        edges, (steps, _, _) = self.edges[:-1], self._jumps
        gap = mu - edges
        gap = gap - 8 * UNIT * (abs(mu) + np.abs(edges))
        least, most = (math.sqrt(max(x, 0.0)) for x in S)
        s = np.where(gap >= 0, most * (1.0 + 4 * UNIT), least * (1.0 - 4 * UNIT))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(s == 0, (gap > 0).astype(float), ndtr(gap / s))
        total = float(steps @ share)
        return max(0.0, down(total - gamma(2 * len(steps) + _SHARE)))

    def along(self, mu: Float, s: Float, fine: bool = False) -> tuple[Float, Float]:
        """Lower bounds of E sigma at means and deviations s > 0 (N,), by coarse steps or all, and about how
        steeply they rise with the mean.
        """
        steps, edges = (self._jumps[0], self.edges[:-1]) if fine else self.coarse
        mu, s = mu[:, None], s[:, None]
        gap = mu - edges
        z = (gap - 8 * UNIT * (np.abs(mu) + np.abs(edges))) / s
        total = ndtr(z - 8 * UNIT * np.abs(z)) @ steps - gamma(2 * len(steps) + _SHARE)
        return np.maximum(total, 0.0), np.exp(-0.5 * z * z) @ steps / (s[:, 0] * math.sqrt(2.0 * math.pi))

    def _at_most(self, mu: float, S: tuple[float, float]) -> float:
        edges, (_, steps, base) = self.edges[1:], self._jumps
        gap = mu - edges
        gap = gap + 8 * UNIT * (abs(mu) + np.abs(edges))
        least, most = (math.sqrt(max(x, 0.0)) for x in S)
        s = np.where(gap >= 0, least * (1.0 - 4 * UNIT), most * (1.0 + 4 * UNIT))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(s == 0, (gap >= 0).astype(float), ndtr(gap / s))
        total = base + float(steps @ share)
        return min(1.0, total + gamma(2 * len(steps) + _SHARE))

    @cached_property
    def coarse(self) -> tuple[Float, Float]:
        """Fewer steps (k,) below sigma, and their edges (k,): what rises by less than `_COARSE`, or by a jump
        after it, rises at its last edge.
        """
        group = np.floor(np.concatenate([[0.0], self.lower[:-1]]) / _COARSE)
        last = np.append(np.diff(group) > 0, True)
        return np.diff(self.lower[last], prepend=0.0), self.edges[:-1][last]

    def level(self, p: float) -> Level:
        return StepLevel(self, p)

    def mirrored(self) -> StepCurves:
        # 1 - x of a double in [0, 1] is exact to one rounding, which goes outward.
        low = np.maximum(np.nextafter(1.0 - self.upper[::-1], -1.0), 0.0)
        high = np.minimum(np.nextafter(1.0 - self.lower[::-1], 2.0), 1.0)
        return StepCurves(-self.edges[::-1], low, high)

    @cached_property
    def middle(self) -> float:
        """About where sigma is half way through its range."""
        return float(np.interp(0.5, self._shares, self.edges[1:]))

    @cached_property
    def noise(self) -> float:
        """From quartiles of its range, as if sigma were Phi(f / sqrt(c)): only guides searches, tables."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        first, last = np.interp([0.25, 0.75], self._shares, middle)
        return float(max(((last - first) / (2.0 * 0.6745)) ** 2, 1e-12))

    @cached_property
    def _shares(self) -> Float:
        """About how much of its range sigma has risen (m,): 0 to 1, however narrow the range."""
        value = 0.5 * (self.lower + self.upper)
        rise = float(value[-1] - value[0])
        return (value - value[0]) / rise if rise > 0.0 else np.linspace(0.0, 1.0, len(value))

    def guess(self, p: float) -> float:
        """About how many deviations above `middle` a mean is at which E sigma = p."""
        first, last = 0.5 * (self.lower[[0, -1]] + self.upper[[0, -1]])
        share = (p - first) / (last - first) if last > first else 0.5
        return float(ndtri(min(max(share, 1e-12), 1.0 - 1e-12)))


@dataclass(frozen=True, eq=False)
class StepLevel(Level):
    """m_p(S) from above, found by bisection on certified sums."""

    curves: StepCurves
    target: float
    range: tuple[float, float] | None = None  #: S is known to stay there; None: any S >= 0

    @property
    def p(self) -> float:
        return self.target

    @property
    def concave(self) -> bool:
        """Never used: chords hold for every curve."""
        return False

    def within(self, variances: tuple[float, float]) -> StepLevel:
        return replace(self, range=variances)

    def rises(self, S: float, largest: float) -> bool:
        if self.range is not None:  # a chord, falling or not
            return True
        known = _chords(self.curves, self.p, largest)
        return known is not None and known.rises(S)

    def tangent(self, S: float, largest: float) -> Line:
        """S3; see `Chords.line_above`. Of a range its chord."""
        if self.range is not None:
            return self.chord(*self.range)
        known = _chords(self.curves, self.p, largest)
        return (0.0, -math.inf) if known is None else known.line_above(S)

    def root(self, S: float, largest: float) -> Root | None:
        """S3; see `Chords.root_above`."""
        known = _chords(self.curves, self.p, largest)
        return None if known is None else known.root_above(S, max(self.curves.noise, 1e-12))

    def curve(self, S: float) -> tuple[float, float]:
        """Nothing below, `above` above."""
        return -math.inf, self.above(S, S)

    def above(self, start: float, end: float) -> float:
        """m with E sigma >= p at mean m for every S in [start, end]; inf if none was found."""
        curves, p = self.curves, self.target
        scale = math.sqrt(curves.noise + max(end, 0.0))
        high = curves.middle + curves.guess(p) * scale
        width = 0.1 * scale
        low = -math.inf
        for _ in range(60):  # a bracket around the guess
            if curves.at_least(high, (start, end)) >= p:
                break
            low, high, width = high, high + width, 2.0 * width
        else:
            return math.inf
        if low == -math.inf:
            low = high - width
            while curves.at_least(low, (start, end)) >= p and width < 1e12 * scale:
                high, low, width = low, low - 2.0 * width, 2.0 * width
        for _ in range(40):
            middle = 0.5 * (low + high)
            value = curves.at_least(middle, (start, end))
            if value >= p:
                high = middle
                if value <= p + _SURPLUS:
                    break
            else:
                low = middle
        return high

    def chord(self, start: float, end: float) -> Line:
        """(tau, kappa) with tau S - kappa >= m_p(S) on [start, end], from its largest value per sub-piece."""
        ends = np.linspace(start, end, _SUBPIECES + 1 if end > start else 1).tolist()
        pairs = list(pairwise(ends)) or [(start, start)]
        tops = [self.above(a, b) for a, b in pairs]
        if not all(map(math.isfinite, tops)):
            return 0.0, -math.inf
        tau = (tops[-1] - tops[0]) / (pairs[-1][1] - pairs[0][1]) if len(pairs) > 1 else 0.0
        kappa = min(min(tau * a, tau * b) - top for (a, b), top in zip(pairs, tops, strict=True))
        return tau, kappa - 16 * UNIT * (abs(tau) * abs(end) + max(map(abs, tops)))

    def after_deficit(self, deficit: float, smallest: float) -> float:
        """Nothing is known of the density: no claim."""
        return 0.0


@lru_cache(maxsize=_TABLES)
def _chords(curves: StepCurves, p: float, largest: float) -> Chords | None:
    """S3, for variances up to `largest`; None: none was found."""
    end = math.sqrt(max(largest, 0.0)) * (1.0 + 4 * UNIT)
    if not 0.0 < end < 1e90:
        return None
    slope = 0.2 + 1.05 * abs(curves.guess(p))  # a guess of how steep chords are
    for _ in range(_GUESSES):
        found = _with_slopes(curves, p, end, slope)
        if found is None or found.steepest <= slope:
            return found
        slope = 1.1 * found.steepest
    return None


def _with_slopes(curves: StepCurves, p: float, end: float, slope: float) -> Chords | None:
    """Chords up to the deviation `end` that clear p if they are no steeper than `slope`; None: not found."""
    least = min(p, 1.0 - p)
    apart = spacing(slope, _GIVEN * least + _HEIGHT)
    goal = p + lost(slope, apart) + 1e-9
    if not goal < 1.0:
        return None
    s = deviations(_FIRST * math.sqrt(curves.noise), end, apart)
    scale = np.sqrt(curves.noise + s * s)
    m, far = curves.middle + curves.guess(goal) * scale, 0.1 * scale
    some = [*range(0, len(s), _SOME), len(s) - 1]  # first few, so that the others begin next to their ends
    along = partial(curves.along, fine=least < _FINE)
    few = cleared(along, goal, s[some], m[some], far[some])
    first = StepLevel(curves, p).above(0.0, float(s[0]) ** 2 * (1.0 + 4 * UNIT))
    if not (np.isfinite(few).all() and math.isfinite(first)):
        return None
    m = cleared(along, goal, s, np.interp(s, s[some], few), far)
    return Chords(s, m, first) if np.isfinite(m).all() else None


def step_curves(likelihood: Link) -> StepCurves:
    """Steps of a link: intervals are halved until sigma varies little on each, or they are too many."""
    edges = np.concatenate([[-1e9], np.sinh(np.linspace(-9, 9, 513)), [1e9]])
    for _ in range(60):
        low, high = likelihood.enclose(edges[:-1], edges[1:])
        middle = 0.5 * edges[:-1] + 0.5 * edges[1:]
        coarse = (high - low > _HEIGHT) & (edges[:-1] < middle) & (middle < edges[1:])
        coarse &= np.diff(edges) > 1e-9 * (1e-3 + np.abs(middle))  # a jump stays a jump
        if not coarse.any() or len(edges) > _MOST_STEPS:
            break
        edges = np.sort(np.concatenate([edges, middle[coarse]]))
    # sigma increases: on an interval it is at least what it is on any before.
    return StepCurves(edges, np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1])

"""One-vs-rest probabilities over a box, with all classes at the same point: cells in the space of the p_j.

Separate ranges of the p_j lose how far their extremes lie apart. With q_j = p_j where the quantity rises
with it and 1 - p_j elsewhere, it is smallest at the lowest corner of a cell low <= q < high; a cell is empty
if a positive combination of mu - m(S), m the levels `high` of the q_j and 1 - `low` of the 1 - q_j, is
positive on the whole box (docs/maths/multiclass.md, O6): one quadratic programme, whose planes touch near the
box's worst points and not at the extremes of each class.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from gpcert.bounds.facts.model import kept
from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.levels.registry import is_smooth
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS
from gpcert.bounds.one.level import LevelBound
from gpcert.bounds.several.one_vs_rest import OneVsRestBound, smallest_point
from gpcert.bounds.several.sums import Bracket, smallest_sum
from gpcert.clock import check
from gpcert.rounding import up
from gpcert.validation import Float

#: Cells looked at in one call: few, so that limits of time are kept; and in all calls for a box.
_STEPS, _MOST = 32, 256
#: Cells go on while a call gains this share of what is missing.
_WORTH = 0.02
#: Boxes whose cells are kept.
_KEPT = 16
#: Size of a box, in lengthscales, beyond which planes say nothing.
_TOO_LARGE = 2.0
#: How far a reference retreats from the worst point seen towards the middle; any is sound.
_RETREAT = 0.3
#: Attempts at a cell, each with one more point seen.
_TRIES = 2
#: Combinations below this on the points seen are not tried on the box.
_HOPE = 1e-6
#: What a dearer bound of the same sum may gain.
_CLOSE = 0.01
#: Ends of cells stay inside of these.
_LEAST, _LARGEST = 1e-9, 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class JointShare(OneByOne):
    """A `BoxBound` of P_c or 1 - P_c: cells where there are many features, else separate ranges."""

    apart: OneVsRestBound
    cells: dict[bytes, Cells] = field(default_factory=dict, repr=False)  #: of the last boxes
    calls: dict[int, int] = field(default_factory=dict, repr=False)  #: per box

    @classmethod
    def of(cls, apart: OneVsRestBound) -> BoxBound:
        """The joint bound where levels of every class are known sharply, else the other."""
        bounds = [bound for pair in apart.classes for bound in pair]
        smooth = all(isinstance(b, LevelBound) and is_smooth(b.curves) for b in bounds)
        return cls(apart) if smooth else apart

    @property
    def shape(self) -> Shape:
        return self.apart.shape

    def at(self, x: Float) -> tuple[float, float]:
        return self.apart.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        return self.apart.objective(x)

    @np.errstate(all="ignore")  # overflow and NaN end as 0, never as a bound
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: cells first; what one call does not finish, a later one goes on with."""
        each = [_level_bound(pair[0]) for pair in self.apart.classes]
        size = max(float(np.linalg.norm((upper - lower) / bound.lengthscale)) for bound in each)
        middle = self.shape.middle(lower, upper)
        fits = size < _TOO_LARGE and all(bound.slice.moderate for bound in each)
        if len(lower) <= CHEAP_DIMENSIONS or not fits:
            return self.apart.over(lower, upper, reference, target)
        if self.shape.domain(lower, upper, middle, each[0].lengthscale) is None:
            return self.apart.over(lower, upper, reference, target)
        key = lower.tobytes() + upper.tobytes()
        cells = kept(self.cells, key, _KEPT, partial(Cells, self.apart, (lower, upper), reference, middle))
        before = cells.value
        more = cells.refine(target, _STEPS)
        more = more and (before <= 0.0 or cells.value > before + _WORTH * (target - before))
        self.calls[hash(key)] = self.calls.get(hash(key), 0) + 1
        if more and self.calls[hash(key)] * _STEPS < _MOST:
            return Certified(cells.value, cells.worst, 0, False, pieces=((lower, upper),))
        if cells.value >= target:
            return Certified(cells.value, cells.worst, int(np.argmax(upper - lower)), False)
        answer = self.apart.over(lower, upper, reference, target)
        return answer if answer.value > cells.value else answer._replace(value=cells.value, at_rounding=False)


@dataclass(frozen=True, order=True)
class Cell:
    """low <= q < high, (C,) each, no upper end where it is 1; the quantity is at least `value` there."""

    value: float
    number: int
    low: Float = field(compare=False)
    high: Float = field(compare=False)


class Cells:
    """Cells that together hold the q of all points of a box of the region."""

    def __init__(
        self, apart: OneVsRestBound, box: tuple[Float, Float], reference: Float, middle: Float
    ) -> None:
        self._apart, self._box, self._middle = apart, box, middle
        C = len(apart.classes)
        self._rising = (np.arange(C) == apart.ratio.label) == (apart.ratio.sign > 0)
        pairs = [
            pair if rises else pair[::-1] for pair, rises in zip(apart.classes, self._rising, strict=True)
        ]
        self._own = [_level_bound(pair[0]) for pair in pairs]  # of q_j
        self._other = [_level_bound(pair[1]) for pair in pairs]  # of 1 - q_j
        self._numbers = itertools.count()
        self._open = [Cell(0.0, next(self._numbers), np.zeros(C), np.ones(C))]
        self._above = 1.0  # the quantity is at least this in what was taken from cells
        #: Points seen (m, d), their mu of q_j and sqrt(c + S), (m, C) each: they choose what is tried.
        self._seen: list[Float] = []
        self._means, self._roots = np.empty((0, C)), np.empty((0, C))
        for point in (reference, middle):
            self._see(point)
        for bound in self._own + self._other:
            self._see(smallest_point(bound, *box, reference))

    @property
    def value(self) -> float:
        """The quantity is at least this on the box."""
        return min(self._open[0].value, self._above) if self._open else self._above

    @property
    def worst(self) -> Float:
        """The point seen (d,) where the quantity seems smallest."""
        q = ndtr(self._means / self._roots)
        return self._seen[int(np.argmin([self._at(each) for each in q]))]

    def refine(self, target: float, steps: int) -> bool:
        """Look at the worst cells until the value reaches the target; whether more steps may help."""
        for _ in range(steps):
            if self.value >= target or not self._open or not self._above >= target:
                return False
            check()
            cell = self._open[0]
            parts = self._parts(self._lowered(cell, target), target)
            if parts is None:
                return False
            left = [*self._open[1:], *parts]
            heapq.heapify(left)
            self._open = left  # at once: an interrupt loses no cell
        return not self.value >= target

    def _at(self, q: Float) -> float:
        """The quantity is at least this wherever q_j is at least q (C,)."""
        low = np.where(self._rising, q, 0.0)
        high = np.where(self._rising, 1.0, np.nextafter(1.0 - q, np.inf))
        return max(0.0, self._apart.ratio.bounds(low, high)[0])  # in this order: NaN is 0

    def _lowered(self, cell: Cell, target: float) -> Cell:
        """Without what lies above an end with which the quantity reaches the target anyway."""
        high = cell.high.copy()
        for j in range(len(high)):
            ends = [cell.low[j], high[j]]
            for _ in range(12 if self._with(cell.low, j, ends[1]) >= target else 0):
                middle = 0.5 * (ends[0] + ends[1])
                ends[int(self._with(cell.low, j, middle) >= target)] = middle
            value = self._with(cell.low, j, ends[1])
            if value >= target:
                high[j], self._above = ends[1], min(self._above, value)
        return Cell(cell.value, cell.number, cell.low, high)

    def _with(self, q: Float, j: int, end: float) -> float:
        q = q.copy()
        q[j] = end
        return self._at(q)

    def _parts(self, cell: Cell, target: float) -> list[Cell] | None:
        """None of it, if the cell is empty; its two parts; None where it cannot be cut."""
        if self._empty(cell):
            return []
        j, end = self._cut(cell)
        if not max(cell.low[j], _LEAST) < end < min(cell.high[j], _LARGEST):
            return None
        high, low = cell.high.copy(), cell.low.copy()
        high[j] = low[j] = end
        return [
            Cell(cell.value, next(self._numbers), cell.low, high),
            Cell(max(cell.value, self._at(low)), next(self._numbers), low, cell.high),
        ]

    def _cut(self, cell: Cell) -> tuple[int, float]:
        """Which q_j to cut, and where: first beyond all that was seen of it, then the widest."""
        z = self._means / self._roots
        least, largest = z.min(axis=0), z.max(axis=0)
        room = 0.1 * (largest - least) + 0.02
        below, above = ndtri(cell.low), ndtri(cell.high)
        if not cell.low.all():
            j = int(np.argmin(cell.low))
            return j, float(ndtr(min(least[j] - room[j], above[j] - 2.0 * room[j])))
        if (cell.high >= 1.0).any():
            j = int(np.argmax(cell.high))
            return j, float(ndtr(max(largest[j] + room[j], below[j] + 2.0 * room[j])))
        j = int(np.argmax(cell.high - cell.low))
        return j, float(ndtr(0.5 * (below[j] + above[j])))

    def _empty(self, cell: Cell) -> bool:
        """O6: whether certainly no point of the box has its q in the cell."""
        for _ in range(_TRIES):
            chosen = self._brackets(cell)
            if chosen is None:
                return False
            brackets, start = chosen
            found = smallest_sum(brackets, self._box, start, False, 1e-9)
            if found is not None and 0.0 >= found.value > -_CLOSE:
                found = smallest_sum(brackets, self._box, start, True, 1e-9)
            if found is None:
                return False
            if found.value > 0.0:
                return True
            self._see(np.clip(start + found.point * brackets[0].bound.lengthscale, *self._box))
        return False

    def _brackets(self, cell: Cell) -> tuple[list[Bracket], Float] | None:
        """The combination that is largest where it is smallest among the points seen, if positive there; and
        a reference (d,) near that point.
        """
        values = np.hstack(
            [
                self._means - ndtri(cell.high) * self._roots,
                ndtri(cell.low) * self._roots - self._means,
            ]
        )
        usable = np.isfinite(values).all(axis=0)
        if not usable.any():
            return None
        factors = np.zeros(len(usable))
        factors[usable] = _best_combination(values[:, usable])
        sums = values[:, usable] @ factors[usable]
        worst = int(np.argmin(sums))
        if not sums[worst] > _HOPE:
            return None
        C, brackets = len(cell.low), []
        for i in np.flatnonzero(factors > _HOPE):
            bound, end = (
                (self._own[i], cell.high[i]) if i < C else (self._other[i - C], 1.0 - cell.low[i - C])
            )
            bracket = _bracket(bound, float(end), float(factors[i]))
            if bracket is None:
                return None
            brackets.append(bracket)
        start = self._seen[worst] + _RETREAT * (self._middle - self._seen[worst])
        return brackets, self._apart.shape.within(start, *self._box)

    def _see(self, point: Float) -> None:
        """Remember mu of q_j and sqrt(c + S) at a point (d,)."""
        latents = [bound.slice.latent(point) for bound in self._own]
        mean = np.array([0.5 * (mu[0] + mu[1]) for mu, _ in latents])
        noise = np.array([bound.curves.noise for bound in self._own])
        root = np.sqrt(noise + np.maximum([0.5 * (S[0] + S[1]) for _, S in latents], 0.0))
        if np.isfinite(mean).all() and np.isfinite(root).all():
            self._seen.append(point)
            self._means, self._roots = np.vstack([self._means, mean]), np.vstack([self._roots, root])


def _level_bound(bound: BoxBound) -> LevelBound:
    assert isinstance(bound, LevelBound)
    return bound


def _bracket(bound: LevelBound, end: float, factor: float) -> Bracket | None:
    """mu - m(S) of a level that proves more than `end`, and than the number that it was rounded from."""
    asked = end + 1e-9 * min(end, 1.0 - end)
    if not _LEAST < asked < _LARGEST:
        return None
    largest = bound.slice.largest_variance
    level = bound.curves.level(asked).within((0.0, largest))
    return Bracket(factor, bound, level) if level.p > up(end) else None


def _best_combination(values: Float) -> Float:
    """Factors (l,) >= 0 of sum 1 with which the smallest of values @ factors, values (m, l), is largest."""
    m, count = values.shape
    costs = np.append(np.zeros(count), -1.0)
    rows = np.hstack([-values, np.ones((m, 1))])
    bounds = [(0.0, None)] * count + [(None, None)]
    equal = np.append(np.ones(count), 0.0)[None]
    result = linprog(costs, rows, np.zeros(m), equal, [1.0], bounds, method="highs")
    good = result.status == 0 and np.isfinite(result.x).all()
    return np.maximum(result.x[:-1], 0.0) if good else np.full(count, 1.0 / count)

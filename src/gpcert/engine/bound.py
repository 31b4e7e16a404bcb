"""A bound for the search that looks at many boxes of one question together (docs/maths/batches.md, J29, J30).

It stands in for a bound of one box of the same quantity and region, whose points, gradients and envelopes it
uses. Each box gets one supporting plane. A plane that fails still leaves less of its box, and the same plane
is tried again on what is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, BoxQuery, Certified
from gpcert.bounds.levels.curves import LevelCurves
from gpcert.clock import check
from gpcert.engine.boxes import Boxes, boxes
from gpcert.engine.centres import Centres
from gpcert.engine.facts import Facts
from gpcert.engine.lines import after_deficit, after_surplus, lines
from gpcert.engine.planes import Plane, mean_plane, plane, variance_plane
from gpcert.engine.quadratic import remnants
from gpcert.engine.rows import Rows
from gpcert.engine.squares import Squares
from gpcert.engine.values import Amplitudes, Points, points
from gpcert.rounding import LARGEST, TINY, UNIT
from gpcert.validation import Float, Index

#: Boxes bounded together, of few and of many features.
_BATCH, _FEWER = 16, 2
#: How far references retreat from the point that seems lowest to the middle; any is sound.
_RETREAT = 0.6
#: Diagonals of boxes, in lengthscales, from which on planes say nothing.
_TOO_LARGE = 4.0
#: The same plane again on what is left, at most so often, while that has less than this share of the square
#: of the diagonal; where it has at most this share of the diagonal it is looked at whole, not halved.
_AGAIN, _SHRUNK, _SHORT = 6, 0.94, 0.5
#: Targets of links without a closed form are rounded up to a multiple of a tenth of this.
_GRID = 1e-6
#: Features beyond which the base is asked as well: about the first boxes that fail, so many, and about all.
_FEW, _FIRST, _MANY = 12, 4, 48
#: Cholesky factorisations for one diagonal.
_TRIES = 2


class Enveloped(BoxBound, Protocol):
    """A bound of one box after the other."""

    def envelope(self, lower: Float, upper: Float) -> float:
        """A lower bound that holds for boxes of any size, and tends to the truth as the box shrinks."""


class Target(NamedTuple):
    """The planes f of one target per row; where f >= 0 the quantity is at least `proved` (N,), and where
    f >= v (N,) at least `least(v)` (N,).
    """

    plane: Plane
    proved: Float
    least: Callable[[Float], Float]


class Quantity(ABC):
    """What is bounded from below."""

    @abstractmethod
    def target(self, at: Points, targets: Float) -> Target:
        """For targets (N,), seen from one point per row."""


@dataclass(frozen=True)
class Probability(Quantity):
    """Of class 1 by its link (`sign` 1), or of class 0 by its own (-1)."""

    curves: LevelCurves
    sign: float

    def target(self, at: Points, targets: Float) -> Target:
        """By the roots and tangents of level curves."""
        backend, (low, high) = at.facts.backend, at.variance
        largest = at.amplitudes.largest_variance + low * 0.0
        line = lines(backend, self.curves, targets, 0.5 * (low + high), largest, _GRID)

        def least(value: Float) -> Float:
            more = after_surplus(backend, self.curves, line, np.maximum(value, 0.0), largest)
            less = after_deficit(backend, self.curves, line, np.maximum(-value, 0.0))
            return np.asarray(np.fmax(more * (value >= 0) + less * (value < 0), 0.0))

        return Target(plane(at, low * 0.0 + self.sign, line), line.p, least)


@dataclass(frozen=True)
class Latent(Quantity):
    """sign * mean, or sign * max(0, variance)."""

    variance: bool
    sign: float

    def target(self, at: Points, targets: Float) -> Target:
        """By the mean itself, or G8's planes."""
        goal = np.where(np.abs(targets) <= LARGEST, targets, 0.0)
        signs = goal * 0.0 + self.sign
        found: Plane
        if self.variance:
            found = variance_plane(at, signs, goal)
        else:
            found = mean_plane(at, signs)
            constant = found.constant - goal
            found = found._replace(
                constant=constant, lost=found.lost + 4 * UNIT * (np.abs(constant) + np.abs(goal))
            )

        def least(value: Float) -> Float:
            latent = goal + value
            latent = latent - 2 * UNIT * np.abs(latent)
            if not self.variance:
                return latent
            return np.maximum(latent, 0.0) if self.sign > 0 else np.minimum(latent, 0.0)

        return Target(found, least(goal * 0.0), least)


@dataclass(frozen=True, eq=False)
class RowsBound:
    """`base` on boxes, in the arrays of the engine."""

    base: Enveloped
    quantity: Quantity
    facts: Facts
    around: Amplitudes  #: one row

    @property
    def batch(self) -> int:
        """See `BoxBound.batch`."""
        return _BATCH if len(self.facts.features) <= _MANY else _FEWER

    @property
    def shape(self) -> Shape:
        """See `BoxBound.shape`."""
        return self.base.shape

    @property
    def lengthscale(self) -> Float:
        """Of the moving features (d,)."""
        return np.asarray(self.facts.lengths)

    def at(self, x: Float) -> tuple[float, float]:
        """See `BoxBound.at`."""
        return self.base.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        """See `BoxBound.objective`."""
        return self.base.objective(x)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`."""
        return self.over_many([BoxQuery(lower, upper, reference, target)])[0]

    def over_many(self, queries: Sequence[BoxQuery]) -> list[Certified]:
        """Small boxes together, large ones by the base."""
        small = [_length(each.upper - each.lower, self.lengthscale) < _TOO_LARGE for each in queries]
        rows = [query for query, own in zip(queries, small, strict=True) if own]
        n, d = self.facts.moving.shape
        step = self.facts.backend.rows(8.0 * n * (d + 2), 1)
        found: list[Certified] = []
        for start in range(0, len(rows), step):
            check()
            found += _Rows(self, rows[start : start + step]).certified()
        each, asked = iter(found), zip(queries, small, strict=True)
        # Third orders centre by centre (Theorem K) settle what chords do not: of many features always.
        again = d > _MANY or (d > _FEW and len(queries) <= _FIRST)
        return [self._one(query, next(each) if own else None, again) for query, own in asked]

    def _one(self, query: BoxQuery, found: Certified | None, again: bool) -> Certified:
        """What the rows have found, or the base, or the better of the two."""
        if found is not None and (found.value >= query.target or not again):
            return found
        other = self.base.over(*query)
        return other if found is None or other.value > found.value else found


class _Rows:
    """Boxes [lower, upper] (B, d), their planes seen from `start`, and what is left of each, [low, high] in
    lengthscales from there.
    """

    def __init__(self, bound: RowsBound, queries: Sequence[BoxQuery]) -> None:
        self._bound, facts = bound, bound.facts
        self._lower, self._upper, aim = (np.stack([query[i] for query in queries]) for i in range(3))
        middle = 0.5 * self._lower + 0.5 * self._upper
        self._start = np.clip(aim + _RETREAT * (middle - aim), self._lower, self._upper)
        ends = self._lower, self._upper
        where = boxes(facts, Rows(*ends, *ends, aim[:, :0], aim[:, 0]), self._start)
        self._low, self._high, count = where.low, where.high, len(queries)
        self._at = points(facts, self._start, bound.around.take(np.zeros(count, dtype=np.int64)))
        self._target = bound.quantity.target(self._at, np.array([query.target for query in queries]))
        self._value, self._lost = np.full(count, -np.inf), np.zeros(count)
        self._cut = np.zeros(count, dtype=bool)
        self._point, self._loss = (aim - self._start) / bound.lengthscale, self._low * 0.0
        self._hole = np.full((2, *aim.shape), np.nan)
        left: Index = np.arange(count)
        self._squares = Squares(self._at, self._target.plane)
        for again in range(_AGAIN):
            left = self._again(left, again)
            if not len(left):
                break

    def _again(self, left: Index, again: int) -> Index:
        """The planes of some rows on what is left of them, first without what they leave out, which has a
        price; which of them may gain by more of that.
        """
        low, high = self._low[left], self._high[left]
        where = Boxes(self._bound.facts, low, high)
        sums = Centres(self._at.take(left), where, self._target.plane.take(left))
        squares = None
        if again:
            squares = self._squares if len(left) == len(self._low) else self._squares.take(left)
        found, lost, loss = sums.minimum(squares, self._point[left], _TRIES)
        value = np.where(np.isnan(found.value), -np.inf, found.value)
        self._lost[left], self._point[left], self._loss[left] = lost, found.point, loss
        below, above, self._hole[0][left], self._hole[1][left] = remnants(np, low, high, found)
        gone = (above < below).any(axis=1)
        value = np.where(gone, np.maximum(value, 0.0), value)
        self._value[left] = np.maximum(self._value[left], value)
        done = (value >= 0)[:, None]
        self._cut[left] |= ((below > low) | (above < high)).any(axis=1) & ~done[:, 0]
        self._low[left], self._high[left] = np.where(done, low, below), np.where(done, high, above)
        shrunk = ((above - below) ** 2).sum(axis=1) < _SHRUNK * ((high - low) ** 2).sum(axis=1)
        return np.asarray(left[(shrunk | (again == 0)) & ~done[:, 0]])

    def certified(self) -> list[Certified]:
        """What is proved of each box, and the parts to look at next."""
        length = self._bound.lengthscale
        reach = np.maximum(np.abs(self._low), np.abs(self._high))
        slack = 8 * UNIT * (np.abs(self._start) + reach * length) + TINY
        low, high = self._start + self._low * length - slack, self._start + self._high * length + slack
        lower = np.minimum(np.fmax(self._lower, low), self._upper)
        upper = np.maximum(lower, np.fmin(self._upper, high))
        holes = self._start + self._hole * length + np.stack([slack, -slack])
        places = np.clip(self._start + self._point * length, lower, upper)
        least = self._target.least(self._value)
        return [
            self._one(i, float(least[i]), places[i], (lower[i], upper[i]), (holes[0][i], holes[1][i]))
            for i in range(len(lower))
        ]

    def _one(
        self, i: int, least: float, point: Float, box: tuple[Float, Float], hole: tuple[Float, Float]
    ) -> Certified:
        """Elsewhere than in the parts the target is met, and no more is known there."""
        lower, upper, value = *box, float(self._value[i])
        length, proved = self._bound.lengthscale, float(self._target.proved[i])
        whole = not self._cut[i]  # in lengthscales: raw units round outward, and may hide what was cut
        known = least if value > -np.inf else -np.inf
        if value >= 0:
            return Certified(known if whole else min(known, proved), point, 0, False)
        if known in (0.0, -np.inf):
            known = max(known, self._bound.base.envelope(self._lower[i], self._upper[i]))
        known = known if whole else min(known, proved)
        start, stop = np.maximum(hole[0], lower), np.minimum(hole[1], upper)  # NaN, no hole, stays NaN
        j, parts, cut = _parts(lower, upper, start, stop, self._loss[i], length)
        if _length(upper - lower, length) < _SHORT * _length(self._upper[i] - self._lower[i], length):
            parts, cut = (box,), False
        rounding = value + 2.0 * float(self._lost[i]) >= 0
        return Certified(known, point, j, rounding, parts or None, np.inf if whole and not cut else proved)


def _length(width: Float, unit: Float) -> float:
    return float(np.linalg.norm(width / unit))


def _parts(
    lower: Float, upper: Float, start: Float, stop: Float, loss: Float, length: Float
) -> tuple[int, tuple[tuple[Float, Float], ...], bool]:
    """The feature to split at, two halves or what lies beside its hole [start, stop], NaN: it has none, and
    whether it is that. No parts where a box cannot be halved.
    """
    width = upper - lower
    units, loss = width / length, np.nan_to_num(loss)
    hole = (width > 0) & (stop > start)
    gap = np.where(hole, (stop - start) / np.where(hole, width, 1.0), 0.0)
    cost = loss + 1e-3 * loss.sum() * (units / max(float(units.max()), TINY)) ** 2
    j = int(np.where(width > 0, cost * (1.0 + 4.0 * gap), -1.0).argmax())
    middle = 0.5 * lower[j] + 0.5 * upper[j]
    if not lower[j] < middle < upper[j]:
        return j, (), False
    first, last = upper.copy(), lower.copy()
    first[j], last[j] = (start[j], stop[j]) if hole[j] else (middle, middle)
    return j, ((lower, first), (last, upper)), bool(hole[j])

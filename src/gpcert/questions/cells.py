"""Many small boxes of one posterior together: blocks of cells, the unresolved ones halved a few times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpcert.bounds.batched.cells import CellExtremes, bound_cells, sweepable
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Region
from gpcert.results import Enclosure, Extremes
from gpcert.validation import Float, Index

#: Fewer regions are asked one by one.
_FEWEST = 8
#: Numbers in one block of displacements: 16 MB.
_BLOCK = 2**21
#: How often an unresolved cell is halved before the search takes it.
_ROUNDS = 7
#: Above this many moving features cells are never small.
_MOST_FEATURES = 8


class _Boxes(NamedTuple):
    """Boxes with the region they are part of; `inner` bounds where points may lie."""

    owner: Index  #: (m,)
    lower: Float  #: (m, d), moving features, raw units
    upper: Float
    inner_lower: Float
    inner_upper: Float

    def take(self, which: Index) -> _Boxes:
        """Some of them."""
        return _Boxes(self.owner[which], *(part[which] for part in self[1:]))


class CellSweep:
    """Answers for those of the regions that are boxes moving the same features; others are left alone."""

    def __init__(self, post: Posterior, regions: list[Region], tolerance: float) -> None:
        self._post = post
        self._regions = regions
        self._tolerance = tolerance
        self.nodes = 0

    def run(self) -> Iterator[tuple[list[int], list[tuple[Extremes, Extremes]]]]:
        """Blocks of (indices, (mean, variance)) of the regions resolved."""
        start = self._start()
        if start is None:
            return
        boxes, base, moving = start
        slice_ = make_radial_slice(model_of(self._post), base, moving)
        if not sweepable(slice_):
            return
        count, d = len(self._regions), boxes.lower.shape[1]
        gathered = _Gathered(count, d)
        size = max(1, _BLOCK // (slice_.points.size + 1))
        for round_ in range(_ROUNDS + 1):
            open_boxes: list[_Boxes] = []
            for first in range(0, len(boxes.owner), size):
                block = boxes.take(np.arange(first, min(first + size, len(boxes.owner))))
                found = bound_cells(slice_, block.lower, block.upper, (block.inner_lower, block.inner_upper))
                self.nodes += len(block.owner)
                failed = ~_resolved(found, self._tolerance)
                gathered.add(block.owner, found, ~failed)
                open_boxes.append(block.take(np.flatnonzero(failed)))
                if round_ == 0:
                    done = block.owner[~failed]
                    yield done.tolist(), [gathered.answer(i, base, moving) for i in done.tolist()]
            boxes = _joined(open_boxes)
            pending = np.unique(boxes.owner)
            gathered.pending[:] = False
            gathered.pending[pending] = True
            if round_ > 0:
                done = np.flatnonzero(gathered.touched & ~gathered.pending & ~gathered.answered)
                yield done.tolist(), [gathered.answer(i, base, moving) for i in done.tolist()]
            if not len(boxes.owner):
                return
            boxes = _halves(boxes, slice_.lengthscale)

    def _start(self) -> tuple[_Boxes, Float, Index] | None:
        """The regions that can be swept, a point with their standing features, and their moving features."""
        if len(self._regions) < _FEWEST:
            return None
        first = self._regions[0].box()
        mask = first.lower < first.upper
        base = self._regions[0].inner_box().lower
        moving = np.flatnonzero(mask)
        if not 1 <= len(moving) <= _MOST_FEATURES:
            return None
        owners, boxes = [], []
        for i, region in enumerate(self._regions):
            if isinstance(region, Ball) and region.norm != np.inf:
                continue
            outer, inner = region.box(), region.inner_box()
            if not ((outer.lower < outer.upper) == mask).all() or (inner.lower != base)[~mask].any():
                continue
            owners.append(i)
            boxes.append([part[moving] for part in (outer.lower, outer.upper, inner.lower, inner.upper)])
        if not owners:
            return None
        parts = np.array(boxes)
        return _Boxes(np.array(owners), *(parts[:, j] for j in range(4))), base, moving


def _resolved(found: tuple[CellExtremes, CellExtremes], tolerance: float) -> np.ndarray:
    mean, variance = found
    good = np.isfinite(variance.min_lower) & np.isfinite(mean.min_lower)
    for each in found:
        good &= each.min_upper - each.min_lower <= tolerance
        good &= each.max_upper - each.max_lower <= tolerance
    return np.asarray(good)


def _halves(boxes: _Boxes, lengthscale: Float) -> _Boxes:
    """Each box as two, cut across its widest side; points stay in their half."""
    widths = (boxes.upper - boxes.lower) / lengthscale
    rows, side = np.arange(len(boxes.owner)), np.argmax(widths, axis=1)
    middle = 0.5 * boxes.lower[rows, side] + 0.5 * boxes.upper[rows, side]
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    lower[rows, side] = middle
    upper[rows, side] = middle
    inner = boxes.inner_lower, boxes.inner_upper
    left = _Boxes(boxes.owner, boxes.lower, upper, inner[0], np.clip(upper, *inner))
    right = _Boxes(boxes.owner, lower, boxes.upper, np.clip(lower, *inner), inner[1])
    return _joined([left, right])


def _joined(parts: list[_Boxes]) -> _Boxes:
    owner = np.concatenate([part.owner for part in parts])
    return _Boxes(owner, *(np.concatenate([part[j] for part in parts]) for j in range(1, 5)))


class _Gathered:
    """The enclosures of every region, folded over its parts."""

    def __init__(self, count: int, d: int) -> None:
        self.touched = np.zeros(count, dtype=bool)
        self.pending = np.zeros(count, dtype=bool)
        self.answered = np.zeros(count, dtype=bool)
        self._values = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf]), (2, count, 1))
        self._points = np.zeros((2, count, 2, d))

    def add(self, owner: Index, found: tuple[CellExtremes, CellExtremes], good: np.ndarray) -> None:
        """Fold the resolved boxes into their owners."""
        which = np.flatnonzero(good)
        mine = owner[which]
        self.touched[mine] = True
        for quantity, each in enumerate(found):
            values, points = self._values[quantity], self._points[quantity]
            np.minimum.at(values[:, 0], mine, each.min_lower[which])
            np.maximum.at(values[:, 3], mine, each.max_upper[which])
            better = each.min_upper[which] < values[mine, 1]
            for i in np.flatnonzero(better):  # one owner may come several times: the best counts
                if each.min_upper[which[i]] < values[mine[i], 1]:
                    values[mine[i], 1], points[mine[i], 0] = each.min_upper[which[i]], each.argmin[which[i]]
            better = each.max_lower[which] > values[mine, 2]
            for i in np.flatnonzero(better):
                if each.max_lower[which[i]] > values[mine[i], 2]:
                    values[mine[i], 2], points[mine[i], 1] = each.max_lower[which[i]], each.argmax[which[i]]

    def answer(self, index: int, base: Float, moving: Index) -> tuple[Extremes, Extremes]:
        """Mean and variance of one region; the variance is clipped at 0."""
        self.answered[index] = True
        answers = []
        for quantity in (0, 1):
            values = self._values[quantity, index].tolist()
            if quantity == 1:
                values = [max(value, 0.0) for value in values]
            points = []
            for point in self._points[quantity, index]:
                whole = base.copy()
                whole[moving] = point
                points.append(whole)
            low, high = Enclosure(values[0], values[1]), Enclosure(values[2], values[3])
            answers.append(Extremes(low, high, points[0], points[1]))
        return answers[0], answers[1]

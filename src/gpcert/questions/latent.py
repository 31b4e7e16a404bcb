"""The smallest and largest latent mean and variance over a region: `latent_range`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gpcert.bounds.batched.cells import CellExtremes, bound_cells, sweepable
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.classes import Label, position, positions
from gpcert.clock import now
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import (
    Kept,
    about,
    checked_running,
    checked_settings,
)
from gpcert.questions.rows import in_rows
from gpcert.questions.tasks import Task, answered
from gpcert.regions import Ball, Region, Regions
from gpcert.results import Enclosure, Extremes, LatentRange, Status
from gpcert.running import Listener, Lot, Pieces, Report
from gpcert.search import Minimiser, Search, run, widest
from gpcert.validation import Float, Index, require, shown

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


_UNKNOWN = Extremes(Enclosure(-np.inf, np.inf), Enclosure(-np.inf, np.inf), None, None)
_UNKNOWN_VARIANCE = Extremes(Enclosure(0.0, np.inf), Enclosure(0.0, np.inf), None, None)


@about_regions
def latent_range(
    post: Posterior,
    region: Regions,
    label: Label | None = None,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    store: Kept = None,
) -> list[LatentRange]:
    """Enclosures of min and max of the latent mean and variance over a region, or over each of a sequence.

    For any posterior, regression included. Both ends of all enclosures are true however the search ended; the
    variance is max(0, .), as `Posterior.latent` gives it. A sequence of many small boxes (cells) shares its
    work.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    region : Box, Ball or sequence of them
        The inputs that the answer is about; a sequence is answered as a batch.
    label : class value, optional
        The class whose latent it is, a value of the model's classes. Two classes have one latent, which
        speaks for the second, by default; several: must be given. Latents of a regression are 0, 1, ...
    tolerance : float
        Width at which an enclosure counts as converged, in units of the latent (and their square).
    max_seconds : float, optional
        Time limit for each region; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each region; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: the mean stays in [p.lower, p.upper] on region
        p.index; if it returns True, the call ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.

    Returns
    -------
    LatentRange or Answers
        The range; of a sequence of regions, their ranges in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.latent_range(clf, gc.Ball([2.5], 0.25))
    >>> print(r.mean.min)
    [0.565, 0.568]
    """
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    running = checked_running(progress, n_jobs, store, post, what="latent_range")
    latent = _latent(post, label)
    one = post if latent is None or post.n_latents == 1 else post.one_latent(latent)
    of = None if latent is None else post.labels[latent]
    task = _LatentTask(one, settings, about(post, settings), None, of)
    pieces = Pieces(len(region), region.__getitem__)
    return answered(_ask, task, pieces, running, "latent_range", _blank, together=partial(_sweep, task))


def _latent(post: Posterior, label: Label | None) -> int | None:
    """Which class, or which of several latents of a regression, is asked about; None: its only one."""
    if post.classes is None:
        single = post.n_latents == 1
        require(not single or label is None, f"label must be None for one latent, got {shown(label)}")
        return None if single else positions(post.labels, [label])[0]
    found = position(post.labels, label)
    rule = f"label must be {post.labels[1]!r}, for which the only latent speaks, got {shown(label)}"
    require(post.n_latents > 1 or found == 1, rule)
    return found


def _sweep(task: _LatentTask, pieces: Pieces) -> Iterator[Lot]:
    """Small boxes of one kind, all together."""
    numbers, regions, start = list(pieces), list(pieces.values()), now()
    sweep = CellSweep(task.post, regions, task.settings.tolerance)
    for indices, found in sweep.run():
        if indices:
            spent = sweep.nodes, now() - start
            known = [(mean.min.lower, mean.max.upper, *spent) for mean, *_ in found]
            pairs = zip(indices, found, strict=True)
            yield Lot.of(
                {numbers[k]: _LatentSearch(task, regions[k]).answer(each) for k, each in pairs}, known
            )


@dataclass(frozen=True, eq=False)
class _LatentTask(Task):
    """With the label of the latent, which alone `post` has."""

    label: Label | None


def _ask(task: _LatentTask, region: Region, report: Report) -> LatentRange:
    query = _LatentSearch(task, region)
    run(query, task.settings, report)
    return query.answer()


def _blank(task: _LatentTask, region: Region) -> LatentRange:
    return _LatentSearch(task, region).answer()


class _LatentSearch(Search):
    """One region: four searches, always the widest next."""

    def __init__(self, task: _LatentTask, region: Region) -> None:
        super().__init__(region)
        self._task = task

    def begin(self) -> Iterator[None]:
        where, ends = self.place()
        factory = self._task.factory
        quantities = [in_rows(factory.post, each, where, 0.0) for each in factory.latent(*where)]
        known = ((-np.inf, np.inf), (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0))
        self.sides = self.minimisers(quantities, ends, between=known)
        for side in self.sides:
            side.start(negligible=-np.inf)
            yield

    def choose(self) -> Minimiser | None:
        return widest(self.sides, self._task.settings.tolerance)

    def known(self) -> tuple[float, float]:
        return self.sides[0].lower, -self.sides[1].lower

    def answer(self, swept: tuple[Extremes, Extremes] | None = None) -> LatentRange:
        """The enclosures as they stand, or as a sweep has found them."""
        mean, variance, status = _UNKNOWN, _UNKNOWN_VARIANCE, self.status
        if swept is not None:
            (mean, variance), status = swept, Status.CONVERGED
        elif self.sides:
            mean, variance = (self._extremes(*self.sides[i : i + 2]) for i in (0, 2))
            widths = [e.width for each in (mean, variance) for e in (each.min, each.max)]
            if status is Status.CONVERGED and not max(widths) <= self._task.settings.tolerance:
                status = self.exhausted()
        asked = self._task.label, self.region, self._task.about
        return LatentRange(mean, variance, status, self.nodes, self.seconds, *asked)

    def _extremes(self, low: Minimiser, high: Minimiser) -> Extremes:
        """From the searches for the smallest value and for the smallest negative."""
        return Extremes(
            Enclosure(low.lower, low.upper),
            Enclosure(-high.upper, -high.lower),
            self.point(low.witness),
            self.point(high.witness),
        )

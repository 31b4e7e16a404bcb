"""The smallest and the largest probability over a region: `probability_range`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from gpcert.bounds import BoundFactory, shape_of
from gpcert.paper import PaperFactory
from gpcert.posterior import Posterior
from gpcert.questions.batches import ask_all
from gpcert.questions.checks import (
    Limits,
    Progress,
    check_label,
    check_method,
    check_model,
    checked_limits,
    checked_regions,
)
from gpcert.regions import Region
from gpcert.results import Enclosure, ProbabilityRange, Status
from gpcert.search import Minimiser
from gpcert.validation import Float, Mask

__all__ = ["Progress", "probability_range"]

#: Queries answered here before processes are thought of.
_TRIAL = 4


@overload
def probability_range(
    post: Posterior,
    region: Region,
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> ProbabilityRange: ...


@overload
def probability_range(
    post: Posterior,
    region: Sequence[Region],
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> list[ProbabilityRange]: ...


def probability_range(
    post: Posterior,
    region: Region | Sequence[Region],
    label: int = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> ProbabilityRange | list[ProbabilityRange]:
    """Enclosures of min and max of P(label) over a region, or over each region of a sequence.

    Both ends of both enclosures are true however the search ended; `status` says how. `tolerance`: width at
    which an enclosure counts as converged. `max_seconds`, `max_nodes`: limits per region. `progress(lower,
    upper, nodes, seconds)`: P(label) stays in [lower, upper] on the region. Ctrl-C, or True from `progress`,
    ends the call with what is known (regions not started: [0, 1]). `method="paper"`: the published
    bounds (AISTATS 2020), for comparison. A long sequence without `progress` runs on all cores.
    """
    check_model(post)
    check_label(post, label)
    check_method(method, "auto", "paper")
    limits = checked_limits(tolerance, max_seconds, max_nodes, progress)
    regions, single = checked_regions(post, region)
    task = _Task(post, method, int(label), limits)
    found: dict[int, ProbabilityRange] = {}

    def told(i: int, answer: ProbabilityRange) -> bool:
        found[i] = answer
        return answer.status is Status.INTERRUPTED

    ask_all(_ask, task, regions, told, trial=_TRIAL, alone=progress is not None)
    answers = [found[i] if i in found else _Query(task, r).answer() for i, r in enumerate(regions)]
    return answers[0] if single else answers


@dataclass(frozen=True, eq=False)
class _Task:
    """What the queries of one call share."""

    post: Posterior
    method: str
    label: int
    limits: Limits

    @cached_property
    def factory(self) -> BoundFactory | PaperFactory:
        """The bounds of the method, with slices and Gram matrices shared."""
        if self.method == "paper":
            return PaperFactory(self.post, self.limits.tolerance)
        return BoundFactory(self.post)


def _ask(task: _Task, region: Region) -> ProbabilityRange:
    query = _Query(task, region)
    query.run()
    return query.answer()


class _Query:
    """One region: the search for the minimum of P(label) and, on the other class, for its maximum."""

    def __init__(self, task: _Task, region: Region) -> None:
        self._task = task
        self._region = region
        self._base = region.inner_box().lower  # its standing features are those of every point
        self._moving: Mask = np.zeros(region.n_features, dtype=bool)
        self._sides: tuple[Minimiser, Minimiser] | None = None  # None: not started
        self._seconds = 0.0
        self._status = Status.INTERRUPTED  # until the search ends in another way

    def run(self) -> None:
        """Both searches, always the wider one next, within the limits; Ctrl-C ends them as they stand."""
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                self._status = self._search(start)
        except KeyboardInterrupt:
            pass  # the status says so
        self._seconds = time.perf_counter() - start

    def _search(self, start: float) -> Status:
        limits = self._task.limits
        deadline = limits.deadline()
        box = self._region.box()
        moving = self._moving = box.lower < box.upper
        shape = shape_of(self._region, moving)
        # The minimum of P(label), and 1 - its maximum: the minimum of the complement.
        low, high = self._task.factory.pair(self._task.label, shape, self._base, moving)
        ends = box.lower[moving], box.upper[moving]
        sides = self._sides = (Minimiser(low, *ends), Minimiser(high, *ends))
        for side in sides:
            side.start(negligible=0.999 * limits.tolerance)
            if self._told_to_stop(limits, sides, start):
                return Status.INTERRUPTED
        while True:
            active = [s for s in sides if not s.exhausted and s.upper - s.lower > limits.tolerance]
            if not active:
                return Status.CONVERGED
            if time.perf_counter() >= deadline:
                return Status.TIME
            if sum(side.nodes for side in sides) >= limits.max_nodes:
                return Status.NODES
            max(active, key=lambda s: s.upper - s.lower).step(limits.tolerance)
            if self._told_to_stop(limits, sides, start):
                return Status.INTERRUPTED

    def _told_to_stop(self, limits: Limits, sides: tuple[Minimiser, Minimiser], start: float) -> bool:
        """Tell the callback where the search stands; True if it asks to stop."""
        if limits.progress is None:
            return False
        low, high = sides
        upper = _complement(high.lower, 1)
        stop = limits.progress(low.lower, upper, low.nodes + high.nodes, time.perf_counter() - start)
        return isinstance(stop, bool | np.bool_) and bool(stop)

    def answer(self) -> ProbabilityRange:
        """The enclosures as they stand."""
        task = self._task
        smallest = largest = Enclosure(0.0, 1.0)
        argmin = argmax = None
        nodes = 0
        if self._sides is not None:
            low, high = self._sides
            smallest = Enclosure(low.lower, low.upper)
            # 1 - x of doubles in [0, 1] rounds to nearest: one ulp outward keeps both ends true.
            largest = Enclosure(_complement(high.upper, -1), _complement(high.lower, 1))
            argmin, argmax = self._point(low.witness), self._point(high.witness)
            nodes = low.nodes + high.nodes
        return ProbabilityRange(
            min=smallest,
            max=largest,
            argmin=argmin,
            argmax=argmax,
            status=self._final_status(max(smallest.width, largest.width)),
            nodes=nodes,
            seconds=self._seconds,
            label=task.label,
            tolerance=task.limits.tolerance,
            method=task.method,
            target=task.post.target,
            region=self._region,
        )

    def _final_status(self, width: float) -> Status:
        """A search that ran out of boxes has converged only if what it reports is narrow enough."""
        if self._status is not Status.CONVERGED or width <= self._task.limits.tolerance:
            return self._status
        assert self._sides is not None
        return Status.MEMORY if any(side.coarsened for side in self._sides) else Status.NUMERICAL

    def _point(self, witness: Float | None) -> Float | None:
        if witness is None:
            return None
        point = self._base.copy()
        point[self._moving] = witness
        return point


def _complement(p: float, direction: int) -> float:
    """1 - p rounded outward unless exact."""
    value = 1.0 - p
    if 1.0 - value == p and value >= 0.5:  # Sterbenz: exact
        return value
    return float(np.clip(np.nextafter(value, direction * np.inf), 0.0, 1.0)) if 0.0 < p < 1.0 else value

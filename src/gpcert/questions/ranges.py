"""The smallest and the largest probability over a region: `probability_range`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from gpcert.bounds import BoundFactory, BoxBound, Shape, shape_of
from gpcert.paper import PaperFactory
from gpcert.parallel import cores, on_processes, processes_pay
from gpcert.posterior import Posterior
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

#: (label, region, x, moving features) to bounds of P(label) and of 1 - P(label): the method.
Pair = Callable[[int, Shape, Float, Mask], tuple[BoxBound, BoxBound]]
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
    upper, nodes, seconds)`: P(label) stays in [lower, upper] on the region; returning True stops. Ctrl-C
    returns what is known (regions not started: [0, 1]); a second one raises. `method="paper"`: the published
    bounds (AISTATS 2020), for comparison. A long sequence without `progress` runs on all cores.
    """
    check_model(post)
    check_label(post, label)
    check_method(method, "auto", "paper")
    limits = checked_limits(tolerance, max_seconds, max_nodes, progress)
    regions, single = checked_regions(post, region)
    queries = [_Query(r, int(label)) for r in regions]
    with suppress(KeyboardInterrupt):  # what is known is returned; a query that did not end says so itself
        _Batch(post, method, limits).run(queries)
    answers = [query.answer(method, tolerance, post.target) for query in queries]
    return answers[0] if single else answers


@dataclass(eq=False)
class _Batch:
    """What the queries of one call share."""

    post: Posterior
    method: str
    limits: Limits

    @cached_property
    def pair(self) -> Pair:
        """The bounds of the method, with slices and Gram matrices shared."""
        if self.method == "paper":
            return PaperFactory(self.post, self.limits.tolerance).pair
        return BoundFactory(self.post).pair

    def run(self, queries: list[_Query]) -> None:
        """One query after the other; where that would take long, the rest on processes."""
        start = time.perf_counter()
        for i, query in enumerate(queries):
            if i == _TRIAL and self.limits.progress is None:
                left = len(queries) - i
                if processes_pay(time.perf_counter() - start, i, left):
                    self._on_processes(queries[i:])
            if not query.settled:
                query.run(self.pair, self.limits)

    def _on_processes(self, queries: list[_Query]) -> None:
        size = min(8, -(-len(queries) // (4 * cores())))
        blocks = [queries[i : i + size] for i in range(0, len(queries), size)]
        pieces = {i: [(q.region, q.label) for q in block] for i, block in enumerate(blocks)}
        for i, answers in on_processes(_ask, replace(self), pieces):
            for query, answer in zip(blocks[i], answers, strict=True):
                query.settle(answer)


def _ask(batch: _Batch, asked: list[tuple[Region, int]]) -> list[ProbabilityRange]:
    """A block of queries, in a process of its own."""
    queries = [_Query(region, label) for region, label in asked]
    for query in queries:
        query.run(batch.pair, batch.limits)
    return [query.answer(batch.method, batch.limits.tolerance, batch.post.target) for query in queries]


class _Query:
    """One region: the search for the minimum of P(label) and, on the other class, for its maximum."""

    def __init__(self, region: Region, label: int) -> None:
        self.region = region
        self.label = label
        self._answer: ProbabilityRange | None = None  # given by another process
        self._base = region.inner_box().lower  # its standing features are those of every point
        self._moving: Mask = np.zeros(region.n_features, dtype=bool)
        self._sides: tuple[Minimiser, Minimiser] | None = None  # None: not started
        self._seconds = 0.0
        self._status = Status.INTERRUPTED  # until the search ends in another way

    @property
    def settled(self) -> bool:
        """Whether another process has answered."""
        return self._answer is not None

    def settle(self, answer: ProbabilityRange) -> None:
        """Take the answer of another process."""
        self._answer = answer

    def run(self, pair: Pair, limits: Limits) -> None:
        """Both searches, always the wider one next, within the limits."""
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                self._status = self._search(pair, limits, start)
        finally:
            self._seconds = time.perf_counter() - start

    def _search(self, pair: Pair, limits: Limits, start: float) -> Status:
        deadline = limits.deadline()
        box = self.region.box()
        moving = self._moving = box.lower < box.upper
        shape = shape_of(self.region, moving)
        # The minimum of P(label), and 1 - its maximum: the minimum of the complement.
        low, high = pair(self.label, shape, self._base, moving)
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

    def answer(self, method: str, tolerance: float, target: str) -> ProbabilityRange:
        """The enclosures as they stand."""
        if self._answer is not None:
            return self._answer
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
            status=self._final_status(max(smallest.width, largest.width), tolerance),
            nodes=nodes,
            seconds=self._seconds,
            label=self.label,
            tolerance=tolerance,
            method=method,
            target=target,
        )

    def _final_status(self, width: float, tolerance: float) -> Status:
        """A search that ran out of boxes has converged only if what it reports is narrow enough."""
        if self._status is not Status.CONVERGED or width <= tolerance:
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

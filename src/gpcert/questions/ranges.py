"""The smallest and the largest probability over a region: `probability_range`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from gpcert.bounds import BoundFactory
from gpcert.paper import PaperFactory
from gpcert.posterior import Posterior
from gpcert.questions.batches import ask_all
from gpcert.questions.checks import (
    about,
    check_label,
    check_method,
    check_model,
    checked_limits,
    checked_regions,
)
from gpcert.regions import Region
from gpcert.results import About, Enclosure, ProbabilityRange, Status
from gpcert.search import Limits, Minimiser, Progress, Search, run, widest

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
    task = _Task(post, method, int(label), limits, about(post, limits))
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
    about: About

    @cached_property
    def factory(self) -> BoundFactory | PaperFactory:
        """The bounds of the method, with slices and Gram matrices shared."""
        if self.method == "paper":
            return PaperFactory(self.post, self.limits.tolerance)
        return BoundFactory(self.post)


def _ask(task: _Task, region: Region) -> ProbabilityRange:
    query = _Query(task, region)
    run(query, task.limits)
    return query.answer()


class _Query(Search):
    """One region: the search for the minimum of P(label) and, on the other class, for its maximum."""

    def __init__(self, task: _Task, region: Region) -> None:
        super().__init__(region)
        self._task = task

    def begin(self) -> Iterator[None]:
        """The minimum of P(label), and 1 - its maximum: the minimum of the complement."""
        where, ends = self.place()
        pair = self._task.factory.pair(self._task.label, *where)
        self.sides = tuple(Minimiser(bound, *ends) for bound in pair)
        for side in self.sides:
            side.start(negligible=0.999 * self._task.limits.tolerance)
            yield

    def choose(self) -> Minimiser | None:
        """The wider one."""
        return widest(self.sides, self._task.limits.tolerance)

    def known(self) -> tuple[float, float]:
        """P(label) stays between these."""
        low, high = self.sides
        return low.lower, _complement(high.lower, 1)

    def answer(self) -> ProbabilityRange:
        """The enclosures as they stand."""
        task = self._task
        smallest = largest = Enclosure(0.0, 1.0)
        argmin = argmax = None
        if self.sides:
            low, high = self.sides
            smallest = Enclosure(low.lower, low.upper)
            # 1 - x of doubles in [0, 1] rounds to nearest: one ulp outward keeps both ends true.
            largest = Enclosure(_complement(high.upper, -1), _complement(high.lower, 1))
            argmin, argmax = self.point(low.witness), self.point(high.witness)
        # A search that ran out of boxes has converged only if what it reports is narrow enough.
        narrow = max(smallest.width, largest.width) <= task.limits.tolerance
        return ProbabilityRange(
            min=smallest,
            max=largest,
            argmin=argmin,
            argmax=argmax,
            status=self.exhausted() if self.status is Status.CONVERGED and not narrow else self.status,
            nodes=self.nodes,
            seconds=self.seconds,
            label=task.label,
            method=task.method,
            region=self.region,
            about=task.about,
        )


def _complement(p: float, direction: int) -> float:
    """1 - p rounded outward unless exact."""
    value = 1.0 - p
    if 1.0 - value == p and value >= 0.5:  # Sterbenz: exact
        return value
    return float(np.clip(np.nextafter(value, direction * np.inf), 0.0, 1.0)) if 0.0 < p < 1.0 else value

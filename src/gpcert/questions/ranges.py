"""The smallest and the largest probability over a region: `probability_range`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import (
    Label,
    about,
    check_method,
    check_model,
    checked_running,
    checked_settings,
    class_index,
    interrupted,
)
from gpcert.regions import Region, Regions
from gpcert.results import About, Enclosure, ProbabilityRange, Status
from gpcert.running import Listener, Report, ask_all
from gpcert.search import Minimiser, Search, run, widest
from gpcert.settings import Settings

if TYPE_CHECKING:
    from gpcert_experiments.paper import PaperFactory

__all__ = ["probability_range"]


@about_regions
def probability_range(
    post: Posterior,
    region: Regions,
    label: Label = 1,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
) -> list[ProbabilityRange]:
    """Enclosures of min and max of P(label) over a region, or over each region of a sequence.

    Both ends of both enclosures are true however the search ended; `status` says how. `tolerance`: width at
    which an enclosure counts as converged. `max_seconds`, `max_nodes`: limits per region. `progress(p)`:
    P(label) stays in [p.lower, p.upper] on region p.index; True: a bar. Ctrl-C, or True from `progress`, ends
    the call with what is known (regions not started: [0, 1]). `method="paper"`: the published bounds (AISTATS
    2020), for comparison. `n_jobs`: processes for a sequence (None: all cores where that pays).
    """
    check_model(post)
    c = class_index(post, label)
    check_method(method, "auto", "paper")
    settings, running = checked_settings(tolerance, max_seconds, max_nodes), checked_running(progress, n_jobs)
    task = _Task(post, method, c, settings, about(post, settings))
    pieces = dict(enumerate(region))
    found = ask_all(_ask, task, pieces, running, what="probability_range", stopped=interrupted)
    return [found[i] if i in found else _Query(task, r).answer() for i, r in enumerate(region)]


@dataclass(frozen=True, eq=False)
class _Task:
    """What the queries of one call share."""

    post: Posterior
    method: str
    label: int
    settings: Settings
    about: About

    @cached_property
    def factory(self) -> BoundFactory | PaperFactory:
        """The bounds of the method, with slices and Gram matrices shared."""
        if self.method == "paper":
            from gpcert_experiments.paper import PaperFactory

            return PaperFactory(self.post, self.settings.tolerance)
        return BoundFactory(self.post)


def _ask(task: _Task, region: Region, report: Report) -> ProbabilityRange:
    query = _Query(task, region)
    run(query, task.settings, report)
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
        self.sides = self.minimisers(pair, ends)
        for side in self.sides:
            side.start(negligible=0.999 * self._task.settings.tolerance)
            yield

    def choose(self) -> Minimiser | None:
        """The wider one."""
        return widest(self.sides, self._task.settings.tolerance)

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
        narrow = max(smallest.width, largest.width) <= task.settings.tolerance
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

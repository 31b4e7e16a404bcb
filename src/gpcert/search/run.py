"""The one driver: steps the searches of a question until enough is known, or a limit, a person or the clock
says stop. Whatever ends it, the searches stand as they are, and are a valid answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from gpcert.bounds.factory import shape_of
from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound
from gpcert.clock import OutOfTime, now, until
from gpcert.regions import Region
from gpcert.results import Status
from gpcert.running import Report
from gpcert.search.frontier import Minimiser
from gpcert.search.recorder import Recorder
from gpcert.settings import Settings
from gpcert.validation import Float, Mask

#: A box that is being bounded when the time is up may take this much longer: most are done by then.
_GRACE = 0.1


class Search(ABC):
    """What a question wants to know about one region: which search is next, and when enough is known.

    `sides`: its searches, none before it has begun. `status`, `seconds`: how and when it ended.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.sides: tuple[Minimiser, ...] = ()
        self.status = Status.INTERRUPTED  # until it ends in another way
        self.seconds = 0.0
        self.recorder: Recorder | None = None
        self._base = region.inner_box().lower  # its standing features are those of every point
        self._moving: Mask = np.zeros(region.n_features, dtype=bool)

    @abstractmethod
    def begin(self) -> Iterator[None]:
        """Make the sides, then find a first point for each; one at a time, so that somebody can be told."""

    @abstractmethod
    def choose(self) -> Minimiser | None:
        """The search to refine next; None: enough is known, or nothing more can be."""

    @abstractmethod
    def known(self) -> tuple[float, float]:
        """Two numbers for a report: between them lies what is asked for."""

    @property
    def nodes(self) -> int:
        """Boxes bounded so far."""
        return sum(side.nodes for side in self.sides)

    def exhausted(self) -> Status:
        """How a search ended that ran out of boxes before enough was known."""
        return Status.MEMORY if any(side.coarsened for side in self.sides) else Status.NUMERICAL

    def place(self) -> tuple[tuple[Shape, Float, Mask], tuple[Float, Float]]:
        """(Shape, a point with the standing features, the moving ones), and the ends of the box they span."""
        box = self.region.box()
        moving = self._moving = box.lower < box.upper
        ends = box.lower[moving], box.upper[moving]
        capped = self.recorder is None  # a proof file has halves of boxes, and what its checker knows of them
        return (shape_of(self.region, moving, capped), self._base, moving), ends

    def minimisers(
        self,
        bounds: Sequence[BoxBound],
        ends: tuple[Float, Float],
        goal: float = np.inf,
        between: Sequence[tuple[float, float]] = ((0.0, 1.0), (0.0, 1.0)),
    ) -> tuple[Minimiser, ...]:
        """One search per bound, with what is known of its values; the recorder hears it under its number."""
        return tuple(
            Minimiser(bound, *ends, goal, between[side], self.recorder, side)
            for side, bound in enumerate(bounds)
        )

    def point(self, witness: Float | None) -> Float | None:
        """The way back from the moving features to all of them (D,)."""
        if witness is None:
            return None
        point = self._base.copy()
        point[self._moving] = witness
        return point


def widest(sides: tuple[Minimiser, ...], tolerance: float) -> Minimiser | None:
    """The search that knows least, among those that may learn more and are not narrow enough."""
    active = [side for side in sides if not side.exhausted and not side.upper - side.lower <= tolerance]
    return max(active, key=lambda side: side.upper - side.lower) if active else None


def run(
    search: Search, settings: Settings, report: Report | None = None, recorder: Recorder | None = None
) -> None:
    """Run the search within its settings; it keeps what it knows, how it ended and how long it took."""
    start = now()
    deadline = now() + settings.max_seconds
    search.recorder = recorder
    try:
        with np.errstate(all="ignore"), until(deadline + _GRACE):
            search.status = _run(search, settings, report, start, deadline)
    except KeyboardInterrupt:
        search.status = Status.INTERRUPTED
    except OutOfTime:
        search.status = Status.TIME
    search.seconds = now() - start


def _run(search: Search, settings: Settings, report: Report | None, start: float, deadline: float) -> Status:
    def told_to_stop() -> bool:
        return report is not None and report(*search.known(), search.nodes, now() - start)

    for _ in search.begin():
        if told_to_stop():
            return Status.INTERRUPTED
    while True:
        side = search.choose()
        if side is None:
            return Status.CONVERGED
        if now() >= deadline:
            return Status.TIME
        if search.nodes >= settings.max_nodes:
            return Status.NODES
        if queries := side.ask(settings.tolerance, settings.max_nodes - search.nodes):
            side.tell(side.bound.over_many(queries), settings.tolerance)
        if told_to_stop():
            return Status.INTERRUPTED

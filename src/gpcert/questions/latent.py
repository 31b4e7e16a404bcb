"""The smallest and largest latent mean and variance over a region: `latent_range`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import overload

import numpy as np

from gpcert.bounds import BoundFactory, shape_of
from gpcert.posterior import Posterior
from gpcert.questions.cells import CellSweep
from gpcert.questions.checks import Limits, Progress, checked_limits, checked_regions
from gpcert.regions import Region
from gpcert.results import Enclosure, Extremes, LatentRange, Status
from gpcert.search import Minimiser
from gpcert.validation import Float, Mask, require, shown

__all__ = ["latent_range"]

_UNKNOWN = Extremes(Enclosure(-np.inf, np.inf), Enclosure(-np.inf, np.inf), None, None)
_UNKNOWN_VARIANCE = Extremes(Enclosure(0.0, np.inf), Enclosure(0.0, np.inf), None, None)


@overload
def latent_range(
    post: Posterior,
    region: Region,
    label: int | None = None,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> LatentRange: ...


@overload
def latent_range(
    post: Posterior,
    region: Sequence[Region],
    label: int | None = None,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> list[LatentRange]: ...


def latent_range(
    post: Posterior,
    region: Region | Sequence[Region],
    label: int | None = None,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> LatentRange | list[LatentRange]:
    """Enclosures of min and max of the latent mean and variance over a region, or each of a sequence.

    Any posterior, regression included. `label` selects the latent of a posterior that has several. Both ends
    of all enclosures are true however the search ended; the variance is max(0, .), as `Posterior.latent`
    gives it. `tolerance` is in the units of the latent (and their square). A sequence of many small boxes
    (cells) shares its work. `progress(done, total, nodes, seconds)`, regions done; returning True stops.
    """
    require(isinstance(post, Posterior), f"post must be a Posterior, got {type(post).__name__}")
    limits = checked_limits(tolerance, max_seconds, max_nodes, progress)
    regions, single = checked_regions(post, region)
    one = _one_latent(post, label)
    batch = _Batch(regions, label, limits)
    with suppress(KeyboardInterrupt):  # what is known is returned
        batch.run(one)
    return batch.answers()[0] if single else batch.answers()


def _one_latent(post: Posterior, label: int | None) -> Posterior:
    """The posterior of the latent asked for, without its likelihood."""
    count = post.n_latents
    if post.weights.ndim == 1:
        require(label is None, f"label must be None for a posterior with one latent, got {shown(label)}")
        return post
    require(
        isinstance(label, int | np.integer) and not isinstance(label, bool) and 0 <= label < count,
        f"label must be the index of a latent, 0 to {count - 1}, got {shown(label)}",
    )
    assert label is not None
    return post.one_latent(int(label))


class _Batch:
    """Regions one after another, small boxes of one kind together first."""

    def __init__(self, regions: list[Region], label: int | None, limits: Limits) -> None:
        self._queries = [_Query(region, label, limits) for region in regions]
        self._limits = limits
        self._start = time.perf_counter()
        self._nodes = 0

    def run(self, post: Posterior) -> None:
        """Everything, or until told to stop."""
        bounds = BoundFactory(post)
        sweep = CellSweep(post, [query.region for query in self._queries], self._limits.tolerance)
        done = 0
        for indices, found in sweep.run():
            for index, answer in zip(indices, found, strict=True):
                self._queries[index].found = answer
            done = sum(query.found is not None for query in self._queries) if self._limits.progress else 0
            self._nodes = sweep.nodes
            if self._told_to_stop(done):
                return
        for query in self._queries:
            if query.found is None:
                query.run(bounds)
                self._nodes += query.nodes
                done += 1
                if self._told_to_stop(done):
                    return

    def _told_to_stop(self, done: int) -> bool:
        if self._limits.progress is None:
            return False
        seconds = time.perf_counter() - self._start
        stop = self._limits.progress(done, len(self._queries), self._nodes, seconds)
        return isinstance(stop, bool | np.bool_) and bool(stop)

    def answers(self) -> list[LatentRange]:
        """In the order of the regions."""
        return [query.answer() for query in self._queries]


class _Query:
    """One region: four searches, always the widest next."""

    def __init__(self, region: Region, label: int | None, limits: Limits) -> None:
        self.region = region
        self.found: tuple[Extremes, Extremes] | None = None  # by the sweep over cells
        self._label = label
        self._limits = limits
        self._base = region.inner_box().lower
        self._moving: Mask = np.zeros(region.n_features, dtype=bool)
        self._sides: tuple[Minimiser, ...] | None = None
        self._seconds = 0.0
        self._status = Status.INTERRUPTED

    @property
    def nodes(self) -> int:
        """Boxes looked at."""
        return 0 if self._sides is None else sum(side.nodes for side in self._sides)

    def run(self, bounds: BoundFactory) -> None:
        """The searches, within the limits."""
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                self._status = self._search(bounds)
        finally:
            self._seconds = time.perf_counter() - start

    def _search(self, bounds: BoundFactory) -> Status:
        deadline, limits = self._limits.deadline(), self._limits
        box = self.region.box()
        moving = self._moving = box.lower < box.upper
        quantities = bounds.latent(shape_of(self.region, moving), self._base, moving)
        ends = box.lower[moving], box.upper[moving]
        known = ((-np.inf, np.inf), (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0))
        sides = tuple(Minimiser(q, *ends, between=k) for q, k in zip(quantities, known, strict=True))
        self._sides = sides
        for side in sides:
            side.start(negligible=-np.inf)
        while True:
            active = [s for s in sides if not s.exhausted and not s.upper - s.lower <= limits.tolerance]
            if not active:
                return Status.CONVERGED
            if time.perf_counter() >= deadline:
                return Status.TIME
            if self.nodes >= limits.max_nodes:
                return Status.NODES
            max(active, key=lambda s: s.upper - s.lower).step(limits.tolerance)

    def answer(self) -> LatentRange:
        """The enclosures as they stand."""
        mean, variance, status = _UNKNOWN, _UNKNOWN_VARIANCE, self._status
        if self.found is not None:
            (mean, variance), status = self.found, Status.CONVERGED
        elif self._sides is not None:
            mean, variance = (self._extremes(*self._sides[i : i + 2]) for i in (0, 2))
            widths = [e.width for each in (mean, variance) for e in (each.min, each.max)]
            if status is Status.CONVERGED and not max(widths) <= self._limits.tolerance:
                coarse = any(side.coarsened for side in self._sides)
                status = Status.MEMORY if coarse else Status.NUMERICAL
        tolerance = self._limits.tolerance
        asked = self._label, tolerance, self.region
        return LatentRange(mean, variance, status, self.nodes, self._seconds, *asked)

    def _extremes(self, low: Minimiser, high: Minimiser) -> Extremes:
        """From the searches for the smallest value and for the smallest negative."""
        return Extremes(
            Enclosure(low.lower, low.upper),
            Enclosure(-high.upper, -high.lower),
            self._point(low.witness),
            self._point(high.witness),
        )

    def _point(self, witness: Float | None) -> Float | None:
        if witness is None:
            return None
        point = self._base.copy()
        point[self._moving] = witness
        return point

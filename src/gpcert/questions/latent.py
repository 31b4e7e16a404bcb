"""The smallest and largest latent mean and variance over a region: `latent_range`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import overload

import numpy as np

from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions.cells import CellSweep
from gpcert.questions.checks import about, checked_limits, checked_regions
from gpcert.regions import Region
from gpcert.results import About, Enclosure, Extremes, LatentRange, Status
from gpcert.search import Limits, Minimiser, Progress, Search, run, wants_to_stop, widest
from gpcert.validation import require, shown

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
    batch = _Batch(regions, label, limits, about(post, limits))
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

    def __init__(self, regions: list[Region], label: int | None, limits: Limits, about: About) -> None:
        self._queries = [_Query(region, label, limits, about) for region in regions]
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
                if query.status is Status.INTERRUPTED or self._told_to_stop(done):
                    return

    def _told_to_stop(self, done: int) -> bool:
        if self._limits.progress is None:
            return False
        seconds = time.perf_counter() - self._start
        return wants_to_stop(self._limits.progress(done, len(self._queries), self._nodes, seconds))

    def answers(self) -> list[LatentRange]:
        """In the order of the regions."""
        return [query.answer() for query in self._queries]


class _Query(Search):
    """One region: four searches, always the widest next."""

    def __init__(self, region: Region, label: int | None, limits: Limits, about: About) -> None:
        super().__init__(region)
        self.found: tuple[Extremes, Extremes] | None = None  # by the sweep over cells
        self._label, self._about = label, about
        self._limits = limits
        self._bounds: BoundFactory | None = None

    def run(self, bounds: BoundFactory) -> None:
        """The searches, within the limits; `progress` is told of regions, not of steps."""
        self._bounds = bounds
        run(self, replace(self._limits, progress=None))

    def begin(self) -> Iterator[None]:
        """See `Search`."""
        assert self._bounds is not None
        where, ends = self.place()
        quantities = self._bounds.latent(*where)
        known = ((-np.inf, np.inf), (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0))
        self.sides = tuple(Minimiser(q, *ends, between=k) for q, k in zip(quantities, known, strict=True))
        for side in self.sides:
            side.start(negligible=-np.inf)
            yield

    def choose(self) -> Minimiser | None:
        """See `Search`."""
        return widest(self.sides, self._limits.tolerance)

    def known(self) -> tuple[float, float]:
        """Of the mean."""
        return self.sides[0].lower, -self.sides[1].lower

    def answer(self) -> LatentRange:
        """The enclosures as they stand."""
        mean, variance, status = _UNKNOWN, _UNKNOWN_VARIANCE, self.status
        if self.found is not None:
            (mean, variance), status = self.found, Status.CONVERGED
        elif self.sides:
            mean, variance = (self._extremes(*self.sides[i : i + 2]) for i in (0, 2))
            widths = [e.width for each in (mean, variance) for e in (each.min, each.max)]
            if status is Status.CONVERGED and not max(widths) <= self._limits.tolerance:
                status = self.exhausted()
        asked = self._label, self.region, self._about
        return LatentRange(mean, variance, status, self.nodes, self.seconds, *asked)

    def _extremes(self, low: Minimiser, high: Minimiser) -> Extremes:
        """From the searches for the smallest value and for the smallest negative."""
        return Extremes(
            Enclosure(low.lower, low.upper),
            Enclosure(-high.upper, -high.lower),
            self.point(low.witness),
            self.point(high.witness),
        )

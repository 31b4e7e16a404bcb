"""The smallest and largest latent mean and variance over a region: `latent_range`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.cells import CellSweep
from gpcert.questions.checks import Label, about, checked_running, checked_settings, class_index, interrupted
from gpcert.regions import Region, Regions
from gpcert.results import About, Enclosure, Extremes, LatentRange, Status
from gpcert.running import Listener, Progress, Report, ask_all, listener, wants_to_stop
from gpcert.search import Minimiser, Search, run, widest
from gpcert.settings import Settings
from gpcert.validation import require, shown

__all__ = ["latent_range"]

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
) -> list[LatentRange]:
    """Enclosures of min and max of the latent mean and variance over a region, or each of a sequence.

    Any posterior, regression included. `label` selects the latent of a posterior that has several. Both ends
    of all enclosures are true however the search ended; the variance is max(0, .), as `Posterior.latent`
    gives it. `tolerance` is in the units of the latent (and their square). A sequence of many small boxes
    (cells) shares its work. `progress(p)`: the mean stays in [p.lower, p.upper] on region p.index; `progress`
    else, and `n_jobs`, as for `probability_range`.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.latent_range(clf, gc.Ball([2.5], 0.25))
    >>> print(r.mean.min)
    [0.549, 0.568]
    """
    settings, running = checked_settings(tolerance, max_seconds, max_nodes), checked_running(progress, n_jobs)
    latent = _latent_index(post, label)
    one = post if latent is None else post.one_latent(latent)
    task = _Task(BoundFactory(one), latent, settings, about(post, settings))
    with listener(running.progress, "latent_range") as tell:
        swept, stopped = _sweep(one, region, settings, tell)
        rest = {} if stopped else {i: each for i, each in enumerate(region) if i not in swept}
        running = replace(running, progress=tell)
        found = ask_all(_ask, task, rest, running, stopped=interrupted, total=len(region))
    return [found[i] if i in found else _Query(task, r).answer(swept.get(i)) for i, r in enumerate(region)]


def _latent_index(post: Posterior, label: Label | None) -> int | None:
    """Which of several latents is asked for; None: the only one."""
    if post.weights.ndim == 1:
        require(label is None, f"label must be None for a posterior with one latent, got {shown(label)}")
        return None
    return class_index(post, label, "the index of a latent")


def _sweep(
    post: Posterior, regions: list[Region], settings: Settings, tell: Listener | None
) -> tuple[dict[int, tuple[Extremes, Extremes]], bool]:
    """Mean and variance of small boxes of one kind, all together; and whether somebody said stop."""
    swept: dict[int, tuple[Extremes, Extremes]] = {}
    start = time.perf_counter()
    try:
        sweep = CellSweep(post, regions, settings.tolerance)
        for indices, found in sweep.run():
            swept.update(zip(indices, found, strict=True))
            if tell is not None and indices:
                mean, spent = found[-1][0], time.perf_counter() - start
                known = mean.min.lower, mean.max.upper, sweep.nodes, spent
                if wants_to_stop(tell(Progress(indices[-1], len(swept), len(regions), *known))):
                    return swept, True
    except KeyboardInterrupt:  # what is known is returned
        return swept, True
    return swept, False


@dataclass(frozen=True, eq=False)
class _Task:
    """What the regions of one call share."""

    bounds: BoundFactory
    label: int | None
    settings: Settings
    about: About


def _ask(task: _Task, region: Region, report: Report) -> LatentRange:
    query = _Query(task, region)
    run(query, task.settings, report)
    return query.answer()


class _Query(Search):
    """One region: four searches, always the widest next."""

    def __init__(self, task: _Task, region: Region) -> None:
        super().__init__(region)
        self._task = task

    def begin(self) -> Iterator[None]:
        """See `Search`."""
        where, ends = self.place()
        quantities = self._task.bounds.latent(*where)
        known = ((-np.inf, np.inf), (-np.inf, np.inf), (0.0, np.inf), (-np.inf, 0.0))
        self.sides = self.minimisers(quantities, ends, between=known)
        for side in self.sides:
            side.start(negligible=-np.inf)
            yield

    def choose(self) -> Minimiser | None:
        """See `Search`."""
        return widest(self.sides, self._task.settings.tolerance)

    def known(self) -> tuple[float, float]:
        """Of the mean."""
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

"""The smallest and largest latent mean and variance over a region: `latent_range`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.classes import Label, position, positions
from gpcert.clock import now
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.cells import CellSweep
from gpcert.questions.checks import (
    Kept,
    about,
    checked_running,
    checked_settings,
    interrupted,
)
from gpcert.regions import Region, Regions
from gpcert.results import About, Enclosure, Extremes, LatentRange, Status
from gpcert.running import Listener, Lot, Pieces, Report, ask_all
from gpcert.search import Minimiser, Search, run, widest
from gpcert.settings import Settings
from gpcert.validation import require, shown

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
    task = _Task(BoundFactory(one), of, settings, about(post, settings))
    pieces, blank, sweep = (
        Pieces(len(region), region.__getitem__),
        partial(_blank, task),
        partial(_sweep, one, task),
    )
    found = ask_all(
        _ask, task, pieces, running, what="latent_range", stopped=interrupted, blank=blank, together=sweep
    )
    return [found[i] if i in found else blank(r) for i, r in enumerate(region)]


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


def _sweep(post: Posterior, task: _Task, pieces: Pieces) -> Iterator[Lot]:
    """Small boxes of one kind, all together."""
    numbers, regions, start = list(pieces), list(pieces.values()), now()
    sweep = CellSweep(post, regions, task.settings.tolerance)
    for indices, found in sweep.run():
        if indices:
            spent = sweep.nodes, now() - start
            known = [(mean.min.lower, mean.max.upper, *spent) for mean, *_ in found]
            pairs = zip(indices, found, strict=True)
            yield Lot.of({numbers[k]: _Query(task, regions[k]).answer(each) for k, each in pairs}, known)


@dataclass(frozen=True, eq=False)
class _Task:
    """What the regions of one call share."""

    bounds: BoundFactory
    label: Label | None
    settings: Settings
    about: About


def _ask(task: _Task, region: Region, report: Report) -> LatentRange:
    query = _Query(task, region)
    run(query, task.settings, report)
    return query.answer()


def _blank(task: _Task, region: Region) -> LatentRange:
    return _Query(task, region).answer()


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

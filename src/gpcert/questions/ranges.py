"""Ranges of a probability over a region, `probability_range`, and how far they reach, `robustness`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from gpcert.bounds.factory import BoundFactory
from gpcert.classes import Label
from gpcert.extras import installing, plugins
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import (
    Kept,
    about,
    check_device,
    check_method,
    check_model,
    checked_labels,
    checked_points,
    checked_prover,
    checked_running,
    checked_settings,
)
from gpcert.questions.rows import in_rows
from gpcert.questions.tasks import AtRoot, Piece, Task, answered, pieces_of, settled_together
from gpcert.regions import Box, Regions
from gpcert.results import Enclosure, ProbabilityRange, Robustness, Status
from gpcert.running import Listener, Report, made
from gpcert.search import Minimiser, Search, run, widest
from gpcert.validation import Float, Index, require

if TYPE_CHECKING:
    from gpcert.questions.rooted import Root, Roots

#: A local search ends where it would gain less than this share of the tolerance.
_WORTH = 0.1


@about_regions
def probability_range(
    post: Posterior,
    region: Regions,
    label: Label | Sequence[Label] | None = None,
    method: str = "auto",
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    store: Kept = None,
    proof: str | os.PathLike[str] | None = None,
) -> list[ProbabilityRange]:
    """Enclosures of the smallest and the largest P(label) over a region, or over each of a sequence.

    Both ends of both enclosures are true however the search ended; `status` says how. Ctrl-C ends the call
    with what is known (regions not started: [0, 1]).

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    region : Box, Ball or sequence of them
        The inputs that the answer is about; a sequence is answered as a batch.
    label : class value or sequence, optional
        The class whose probability it is, a value of the model's classes, or one for each region. Two
        classes: the second by default; several: must be given.
    method : str
        "auto", or what another distribution registers: "paper" of `gpcert-paper`, the published bounds
        (AISTATS 2020), for comparison.
    tolerance : float
        Width at which an enclosure counts as converged.
    max_seconds : float, optional
        Time limit for each region; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each region; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: P(label) stays in [p.lower, p.upper] on region
        p.index; if it returns True, the call ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.
    proof : path, optional
        File for a proof that `gpcert_check` can verify; of a batch, a folder with one file for each answer.
        `proof` of the answer says what is proved. Regions are then bounded one by one.

    Returns
    -------
    ProbabilityRange or Answers
        The range; of a sequence of regions, their ranges in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.probability_range(clf, gc.Ball([2.5], 0.25), label="b")
    >>> r.lower > 0.67, r.upper < 0.72, r.status.value
    (True, True, 'converged')
    """
    check_model(post)
    labels = checked_labels(post, label, region)
    if method != "auto":
        check_method(method, "auto", *plugins("methods"), more=installing(method))
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    require(proof is None or method == "auto", f"method must be 'auto' for a proof, got {method!r}")
    prover = checked_prover(post, proof, region, batch=not region.single, ids=region.ids)
    running = checked_running(progress, n_jobs, store, post, what="probability_range", prover=prover)
    task = _RangeTask(post, settings, about(post, settings), prover, method)
    check_device(device)
    roots = None
    if not region.single and method == "auto" and proof is None:  # a proof needs the tree of a search
        roots = partial(settled_together, partial(_at_root, task, region, labels, device), device)
    pieces = pieces_of(region, labels)
    return answered(_ask, task, pieces, running, "probability_range", _blank, together=roots)


@dataclass(frozen=True, eq=False)
class _RangeTask(Task):
    """With the method whose bounds are asked."""

    method: str

    @cached_property
    def factory(self) -> BoundFactory:
        """The bounds of the method, with slices and Gram matrices shared; a plugin's has the same `pair`."""
        if self.method == "auto":
            return BoundFactory(self.post)
        made: BoundFactory = plugins("methods")[self.method].load()(self.post, self.settings.tolerance)
        return made


def _blank(task: _RangeTask, piece: Piece) -> ProbabilityRange:
    return _RangeSearch(task, piece).answer()


def _at_root(task: _RangeTask, regions: Regions, labels: Index, device: str, lot: slice) -> Iterator[AtRoot]:
    """Settled: where both sides are narrow enough; nodes of such an answer are the boxes bounded there."""
    from gpcert.questions import rooted

    for roots in rooted.ranges(task.post, regions[lot], labels[lot], task.settings, device):
        narrow = (roots.upper - roots.lower <= task.settings.tolerance).all(axis=0)

        def answer(at: int, i: int, roots: Roots = roots) -> ProbabilityRange:
            low, high = sides = roots.sides(at)
            piece, nodes = Piece(regions, i, int(labels[i])), low.nodes + high.nodes
            return _range(task, piece, sides, (low.point, high.point), Status.CONVERGED, nodes, low.seconds)

        def report(at: int, roots: Roots = roots) -> tuple[float, ...]:
            low, high = roots.sides(at)
            return low.lower, _complement(high.lower, 1), low.nodes + high.nodes, low.seconds

        yield AtRoot(roots, np.asarray(narrow), roots.sides, answer, report)


def _ask(task: _RangeTask, piece: Piece, report: Report) -> ProbabilityRange:
    query, tree = _RangeSearch(task, piece), task.recorder()
    run(query, task.settings, report, tree)
    answer = query.answer()
    if tree is None:
        return answer
    stop = partial(report, *query.known(), query.nodes, query.seconds)
    return replace(
        answer,
        **task.export(
            lambda prover: prover.range(answer, task.factory, tree), answer.status, query.seconds, stop
        ),
    )


class _RangeSearch(Search):
    """One region: the search for the minimum of P(label) and, on the other class, for its maximum."""

    def __init__(self, task: _RangeTask, piece: Piece) -> None:
        super().__init__(piece.region)
        self._task, self._piece = task, piece

    def begin(self) -> Iterator[None]:
        """The minimum of P(label), and 1 - its maximum: the minimum of the complement."""
        where, ends = self.place()
        label, post = self._piece.label, self._task.post
        pair = self._task.factory.pair(label, *where)
        if self._task.method == "auto":
            own, tolerance = 2.0 * label - 1.0, self._task.settings.tolerance
            low, high = pair
            pair = in_rows(post, low, where, own, tolerance), in_rows(post, high, where, -own, tolerance)
        roots = self._piece.known
        known = ((0.0, 1.0), (0.0, 1.0)) if roots is None else tuple((root.lower, 1.0) for root in roots)
        self.sides = self.minimisers(pair, ends, between=known)
        tolerance = self._task.settings.tolerance
        for i, side in enumerate(self.sides):
            point = None if roots is None else roots[i].point[self._moving]
            side.start(point=point, negligible=0.999 * tolerance, worth=_WORTH * tolerance)
            yield

    def choose(self) -> Minimiser | None:
        return widest(self.sides, self._task.settings.tolerance)

    def known(self) -> tuple[float, float]:
        """P(label) stays between these."""
        low, high = self.sides
        return low.lower, _complement(high.lower, 1)

    def answer(self) -> ProbabilityRange:
        if not self.sides:
            sides = Enclosure(0.0, 1.0), Enclosure(0.0, 1.0)
            return _range(self._task, self._piece, sides, (None, None), self.status, 0, self.seconds)
        low, high = self.sides
        points = self.point(low.witness), self.point(high.witness)
        found = _range(self._task, self._piece, self.sides, points, self.status, self.nodes, self.seconds)
        # A search that ran out of boxes has converged only if what it reports is narrow enough.
        narrow = max(found.min.width, found.max.width) <= self._task.settings.tolerance
        return (
            found
            if narrow or self.status is not Status.CONVERGED
            else replace(found, status=self.exhausted())
        )


def _range(
    task: _RangeTask,
    piece: Piece,
    sides: Sequence[Minimiser | Root | Enclosure],
    points: tuple[Float | None, Float | None],
    status: Status,
    nodes: int,
    seconds: float,
) -> ProbabilityRange:
    """From the minima of P(label) and of 1 - P(label)."""
    low, high = sides
    return ProbabilityRange(
        min=Enclosure(low.lower, low.upper),
        # 1 - x of doubles in [0, 1] rounds to nearest: one ulp outward keeps both ends true.
        max=Enclosure(_complement(high.upper, -1), _complement(high.lower, 1)),
        argmin=points[0],
        argmax=points[1],
        status=status,
        nodes=nodes,
        seconds=seconds,
        label=task.about.classes[piece.label],
        method=task.method,
        region=piece.region,
        about=task.about,
    )


def _complement(p: float, direction: int) -> float:
    """1 - p rounded up (direction 1) or down (-1): one of 1 - p and 1 - (1 - p) is exact (Sterbenz)."""
    value = 1.0 - float(p)
    wrong = direction * (p - (1.0 - value))  # value - (1 - p), of which the sign counts
    return float(np.nextafter(value, direction * np.inf)) if wrong < 0.0 else value


@about_regions
def robustness(
    post: Posterior,
    region: Regions,
    label: Label | Sequence[Label] | None = None,
    x: ArrayLike | None = None,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    store: Kept = None,
) -> list[Robustness]:
    """An enclosure of delta = max - min of P(label) over a region, or over each of a sequence.

    With x: of the smallest delta such that P(label) differs from its value at x by at most delta on the whole
    region (Definition 1 of the AISTATS 2020 paper).

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    region : Box, Ball or sequence of them
        The inputs that the answer is about; a sequence is answered as a batch.
    label : class value or sequence, optional
        The class whose probability it is, a value of the model's classes, or one for each region. Two
        classes: the second by default; several: must be given.
    x : array of shape (d,) or (m, d), optional
        A point of the region, or one for each of m regions; None: delta = max - min.
    tolerance : float
        Width at which the enclosures of min and max count as converged.
    max_seconds : float, optional
        Time limit for each region; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each region; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: P(label) stays in [p.lower, p.upper] on region
        p.index; if it returns True, the call ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps the range behind each answer as it comes; what it has is not computed again.

    Returns
    -------
    Robustness or Answers
        The enclosure; of a sequence of regions, theirs in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> print(gc.robustness(clf, gc.Ball([2.5], 0.25), label="b"))
    P(b) changes by delta in [0.034, 0.043]; converged
    """
    check_model(post)
    points = None if x is None else checked_points(post, x, region)
    labels = [post.labels[c] for c in checked_labels(post, label, region)]
    found = probability_range.__wrapped__(  # what the door says of regions is said
        post,
        region,
        labels,
        tolerance=tolerance,
        max_seconds=max_seconds,
        max_nodes=max_nodes,
        progress=progress,
        n_jobs=n_jobs,
        device=device,
        store=store,
    )
    ranges = [made(each, i) for i, each in enumerate(found)]
    if points is None:
        return [_delta(r, max(0.0, r.max.lower - r.min.upper), r.max.upper - r.min.lower) for r in ranges]
    asked = [i for i, r in enumerate(ranges) if r.status is not Status.INTERRUPTED]
    boxes = [Box(points[i], points[i]) for i in asked]  # one evaluation each: no limit could shorten it
    own = [labels[i] for i in asked]
    at = dict(zip(asked, probability_range(post, boxes, own, tolerance=tolerance, n_jobs=1), strict=True))
    # P(x) is in the range, too
    return [_definition_1(r, at.get(i, r), x) for i, (r, x) in enumerate(zip(ranges, points, strict=True))]


def _delta(r: ProbabilityRange, lower: float, upper: float, x: Float | None = None) -> Robustness:
    """Differences of doubles in [0, 1], rounded outward."""
    lower = float(np.nextafter(lower, 0.0)) if lower > 0 else 0.0
    return Robustness(lower, float(min(1.0, np.nextafter(upper, np.inf))), r, x, r.about)


def _definition_1(r: ProbabilityRange, at: ProbabilityRange, x: Float) -> Robustness:
    """max over the region of |P - P(x)|: the larger of the way up and the way down."""
    lower = max(0.0, r.max.lower - at.upper, at.lower - r.min.upper)
    return _delta(r, lower, max(r.max.upper - at.lower, at.upper - r.min.lower, 0.0), x)

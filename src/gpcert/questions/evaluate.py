"""Certified and attacked accuracy over radii: `evaluate`.

Balls around a point are nested, so one proof and one counterexample per point settle most radii: the nearest
counterexample the attack finds says at which radii the point is lost; a proof at the largest radius before it
says that all the smaller ones are safe.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions import rooted
from gpcert.questions.asking import question
from gpcert.questions.balls import Balls, checked_balls
from gpcert.questions.checks import (
    about,
    check_device,
    check_model,
    check_threshold,
    checked_radii,
    checked_running,
    checked_settings,
    class_indices,
)
from gpcert.questions.decision import Decision, decide, enclosed, labelled, refutes, settled
from gpcert.questions.nearest import nearest
from gpcert.regions import Ball
from gpcert.results import About, Evaluation, Status, VerdictStatus
from gpcert.running import Listener, Report, Stopped, ask_all
from gpcert.settings import Settings
from gpcert.validation import Float, Index

__all__ = ["evaluate"]

#: How finely the attack searches for its radius, relative.
_RTOL = 1e-3
#: Points attacked at once: enough for the matrix products, few enough for memory and progress.
_BLOCK = 32
#: Nodes for one proof, at least: a point is asked once, so it may cost more than one of many radii.
_NODES = 3


@question
def evaluate(
    post: Posterior,
    X: Any,
    y: ArrayLike,
    radii: ArrayLike,
    norm: float = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    threshold: float = 0.5,
    tolerance: float = 1e-3,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
) -> Evaluation:
    """Clean, certified and attacked accuracy of a model at X (m, d) with labels y (m,), over radii (k,).

    A point counts as certified at a radius if the model labels it correctly and the whole ball is proved to
    have that label; as attacked if it is correct and no counterexample was found in the ball. With another
    `threshold` than 1/2, "to have that label" reads "P(that label) > threshold". `max_seconds` and
    `max_nodes` limit each proof; `progress(p)`: the smallest P(label) on the ball being proved around point
    p.index is in [p.lower, p.upper]; True stops: what was not asked is "unknown". `progress` else,
    `n_jobs` and `device` as for `probability_range`.

    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> print(gc.evaluate(clf, [[0.5], [2.5]], ["a", "b"], [0.25, 2.0]))
    2 points, clean accuracy 1.000
    radius 0.25: certified at least 100.0 %, attacked at most 100.0 %
    radius 2: certified at least 0.0 %, attacked at most 0.0 %
    """
    check_model(post)
    check_threshold(post, threshold)
    settings, running = checked_settings(tolerance, max_seconds, max_nodes), checked_running(progress, n_jobs)
    wanted = checked_radii(radii)
    balls = checked_balls(post, X, norm, float(wanted[-1]), features, domain, scale, what="X")
    truth = class_indices(post, y, len(balls.X))
    start = time.perf_counter()
    check_device(device)
    asked = float(threshold), settings, about(post, settings), device
    task = _Task(post, BoundFactory(post), balls, truth, wanted, *asked)
    m = len(balls.X)
    blocks = {b: np.arange(b, min(b + _BLOCK, m)) for b in range(0, m, _BLOCK)}
    done = ask_all(_block, task, blocks, running, what="evaluate", stopped=_cut_short, size=len)
    rows = {b + i: row for b, block in done.items() for i, row in enumerate(block) if row is not None}
    return _summary(task, rows, time.perf_counter() - start)


class _Row(NamedTuple):
    """One point: its label, how many of the first radii are safe, and from which on they are unsafe."""

    label: int
    safe: int
    unsafe: int
    tests: int
    point: Float | None  #: the counterexample (d,), of the first unsafe radius
    right: bool  #: whether the true label is proved to be the model's
    wrong: bool  #: whether it is proved not to be


@dataclass(frozen=True, eq=False)
class _Task:
    """What every point is asked."""

    post: Posterior
    factory: BoundFactory
    balls: Balls
    truth: Index
    radii: Float
    threshold: float
    settings: Settings
    about: About
    device: str


def _cut_short(rows: list[_Row | None]) -> bool:
    return rows[-1] is None


def _block(task: _Task, index: Index, report: Report) -> list[_Row | None]:
    """The rows of a few points, None for those not reached; pure, so that processes may share the work."""
    balls = replace(task.balls, X=task.balls.X[index])
    labels, ties = labelled(task.post, balls.X)
    radius, points = nearest(task.post, balls, labels, task.threshold, _RTOL)
    rows: list[_Row | None] = [None] * len(index)
    model = task.post, task.factory
    lost: list[Float | None] = [
        points[i] if np.isfinite(radius[i]) and refutes(*model, points[i], label, task.threshold) else None
        for i, label in enumerate(labels.tolist())
    ]
    first = [0 if ties[i] else _first(task, balls, i, point) for i, point in enumerate(lost)]
    try:
        roots = _roots(task, balls, labels, first)
    except Stopped:
        return rows
    for i, (label, truth) in enumerate(zip(labels.tolist(), task.truth[index].tolist(), strict=True)):
        try:
            row = _row(task, balls, (i, label, bool(ties[i])), lost[i], roots, partial(report, at=i))
        except Stopped:
            break
        # A proof above a threshold of 1/2 or more has the label; x itself shows the others.
        sure = task.threshold >= 0.5 or enclosed(*model, balls.X[i], label, 0.5)[0] > 0.5
        wrong = label != truth and refutes(*model, balls.X[i], truth, 0.5)
        rows[i] = row._replace(right=label == truth and sure, wrong=wrong)
    return rows


def _first(task: _Task, balls: Balls, i: int, point: Float | None) -> int:
    """How many radii a counterexample (d,) leaves to point i."""
    lost = np.inf if point is None else balls.radius_of(i, point)
    return int(np.searchsorted(task.radii, lost))


def _ball(task: _Task, balls: Balls, i: int, candidate: int) -> Ball:
    """The largest of the first `candidate` radii around point i."""
    return balls.ball(i, balls.whole(float(task.radii[candidate - 1])))


def _roots(task: _Task, balls: Balls, labels: Index, first: list[int]) -> dict[tuple[int, int], Decision]:
    """(point, candidate) -> what the root of all balls together decides, from the largest radii downwards."""
    found: dict[tuple[int, int], Decision] = {}
    left = {i: candidate for i, candidate in enumerate(first) if candidate > 0}
    while left:
        which = np.array(list(left))
        regions = [_ball(task, balls, i, candidate) for i, candidate in left.items()]
        asked = labels[which], task.threshold
        roots, stopped = rooted.decisions(task.post, regions, *asked, task.settings, task.device)
        if stopped:
            raise Stopped
        known = {int(which[j]): d for j, d in settled(task.post, roots, *asked).items()}
        found.update({(i, left[i]): d for i, d in known.items()})
        # Larger balls are lost: the next smaller one is asked about; whatever is undecided, by itself.
        unsafe = [i for i, d in known.items() if d.status is VerdictStatus.UNSAFE]
        left = {i: left[i] - 1 for i in unsafe if left[i] > 1}
    return found


def _row(
    task: _Task,
    balls: Balls,
    which: tuple[int, int, bool],
    point: Float | None,
    roots: dict[tuple[int, int], Decision],
    report: Report,
) -> _Row:
    """Proofs from the largest radius that no counterexample (d,) has lost downwards, until one holds; `which`
    is the point's number, its label, and whether that is a tie.
    """
    i, label, tie = which
    if tie:  # there is no label to keep
        return _Row(label, 0, len(task.radii), 0, None, False, False)
    candidate = unsafe = _first(task, balls, i, point)
    point = point if unsafe < len(task.radii) else None
    tests = 0
    while candidate > 0:
        d = roots.get((i, candidate))
        if d is None:
            ball = _ball(task, balls, i, candidate)
            d = decide(task.post, task.factory, ball, label, task.threshold, _budget(task), report)
        tests += 1
        if d.ended is Status.INTERRUPTED:  # the search has kept Ctrl-C to itself
            raise Stopped
        if d.status is VerdictStatus.SAFE:
            break
        candidate -= 1
        if d.status is VerdictStatus.UNSAFE:
            unsafe, point = candidate, d.point
    return _Row(label, candidate, unsafe, tests, point, False, False)


def _budget(task: _Task) -> Settings:
    return replace(task.settings, max_nodes=min(task.settings.max_nodes, max(task.balls.budget, _NODES)))


def _summary(task: _Task, rows: dict[int, _Row], seconds: float) -> Evaluation:
    radii, balls, (m, k) = task.radii, task.balls, (len(task.truth), len(task.radii))
    labels = np.full(m, -1)
    safe, unsafe = np.zeros(m, dtype=np.intp), np.full(m, k)
    right, wrong = np.zeros((2, m), dtype=bool)
    points = np.full(task.balls.X.shape, np.nan)
    for i, row in rows.items():
        labels[i], safe[i], unsafe[i] = row.label, row.safe, row.unsafe
        right[i], wrong[i] = row.right, row.wrong
        points[i] = np.nan if row.point is None else row.point
    correct = labels == task.truth
    order = np.arange(k)
    is_safe, is_unsafe = order < safe[:, None], order >= unsafe[:, None]
    verdicts = np.where(is_safe, "safe", np.where(is_unsafe, "unsafe", "unknown"))
    asked = np.isin(np.arange(m), list(rows))
    # What is not proved wrong may be right, asked or not; a counterexample to another label says nothing.
    lost = wrong[:, None] | (correct[:, None] & is_unsafe)
    return Evaluation(
        radii=radii,
        clean=float(correct[asked].mean()) if asked.any() else float("nan"),
        certified=(right[:, None] & is_safe).mean(axis=0),
        attacked=(~lost).mean(axis=0),
        labels=labels,
        truth=task.truth,
        correct=correct,
        wrong=wrong,
        safe=np.where(safe > 0, radii[np.maximum(safe - 1, 0)], np.nan),
        unsafe=np.where(unsafe < k, radii[np.minimum(unsafe, k - 1)], np.inf),
        verdicts=verdicts,
        counterexamples=points,
        seconds=seconds,
        threshold=task.threshold,
        balls=tuple(balls.ball(i, balls.whole(balls.max_radius)) for i in range(m)),
        about=task.about,
    )

"""Accuracy of a model that an attacker meets, over radii: `evaluate`, and as a scorer, `certified_score`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpcert.clock import now
from gpcert.engine.backend import chosen
from gpcert.engine.facts import knows
from gpcert.errors import GpcertError
from gpcert.posterior import Posterior
from gpcert.proofs.record import Tree
from gpcert.questions.asking import question
from gpcert.questions.balls import Balls, checked_balls
from gpcert.questions.brackets import Asked, Brackets, nearest
from gpcert.questions.checks import (
    Kept,
    about,
    check_device,
    check_level,
    check_model,
    check_threshold,
    checked_prover,
    checked_radii,
    checked_running,
    checked_settings,
    class_indices,
)
from gpcert.questions.decision import decide, enclosed, labelled, refutes, room
from gpcert.questions.tasks import Task, answered
from gpcert.regions import Ball, Norm
from gpcert.results import Evaluation, ProofFile, Status, Unproved, VerdictStatus
from gpcert.running import Listener, Pieces, Report, Stopped
from gpcert.settings import Settings
from gpcert.tables import check_labelled
from gpcert.validation import Float, Index, require, shown

if TYPE_CHECKING:
    from gpcert.proofs.prover import Prover


class Outcome(NamedTuple):
    """One point: its label, how many of the first radii are safe, and from which on they are unsafe."""

    label: int  #: -1: not asked
    safe: int
    unsafe: int
    point: Float | None  #: the counterexample (d,), of the first unsafe radius
    right: bool  #: whether the true label is proved to be the model's
    wrong: bool  #: whether it is proved not to be
    proof: ProofFile | None = None
    unproved: Unproved | None = None


@dataclass(frozen=True, eq=False)
class _EvaluateTask(Task):
    """With what every point is asked."""

    balls: Balls
    truth: Index
    radii: Float
    threshold: float
    device: str


def point_of(task: _EvaluateTask, i: int, row: Outcome | None) -> Evaluation:
    """One point alone; None: it was not asked."""
    radii, k, balls = task.radii, len(task.radii), task.balls
    row = row or Outcome(-1, 0, k, None, False, False)
    classes = task.about.classes
    order = np.arange(k)
    is_safe, is_unsafe = order < row.safe, order >= row.unsafe
    correct = row.label == task.truth[i]
    # What is not proved wrong may be right, asked or not; a counterexample to another label says nothing.
    lost = row.wrong | (correct & is_unsafe)
    point = np.full(balls.X.shape[1], np.nan) if row.point is None else row.point
    return Evaluation(
        radii=radii,
        clean=float(correct) if row.label >= 0 else float("nan"),
        certified=(row.right & is_safe).astype(np.float64),
        attacked=(~lost).astype(np.float64),
        labels=np.array([None if row.label < 0 else classes[row.label]], dtype=object),
        truth=np.array([classes[task.truth[i]]], dtype=object),
        correct=np.array([correct]),
        wrong=np.array([row.wrong]),
        safe=np.array([radii[row.safe - 1] if row.safe else np.nan]),
        unsafe=np.array([radii[row.unsafe] if row.unsafe < k else np.inf]),
        verdicts=np.where(is_safe, "safe", np.where(is_unsafe, "unsafe", "unknown"))[None],
        counterexamples=point[None],
        seconds=0.0,
        threshold=task.threshold,
        balls=(balls.ball(i, balls.limit(i)),),
        about=task.about,
        proof=None if row.proof is None else (row.proof,),
        unproved=row.unproved,
    )


#: What an evaluation has of every point.
_EACH = ("labels", "truth", "correct", "wrong", "safe", "unsafe", "verdicts", "counterexamples")


def joined(task: _EvaluateTask, points: list[Evaluation], seconds: float) -> Evaluation:
    """All points together."""
    each = {name: np.concatenate([getattr(point, name) for point in points]) for name in _EACH}
    asked = np.array([label is not None for label in each["labels"]])
    return Evaluation(
        radii=task.radii,
        clean=float(each["correct"][asked].mean()) if asked.any() else float("nan"),
        certified=np.mean([point.certified for point in points], axis=0),
        attacked=np.mean([point.attacked for point in points], axis=0),
        **each,
        seconds=seconds,
        threshold=task.threshold,
        balls=tuple(point.balls[0] for point in points),
        about=task.about,
        proof=None if task.prover is None else tuple(f for point in points for f in point.proof or ()),
        unproved=next((point.unproved for point in points if point.unproved is not None), None),
    )


#: How finely the attack searches for its radius, relative.
_RTOL = 1e-3
#: Points asked at once, by attacks and where the engine knows the model: enough for the matrix products, few
#: enough for memory, progress, and workers to share; on a GPU, where a round costs the same for any number.
_BLOCKS, _GPU_BLOCK = (32, 128), 16384
#: Nodes for one proof, at least: a point is asked once, so it may cost more than one of many radii.
_NODES = 3


@question
def evaluate(
    post: Posterior,
    X: Any,
    y: ArrayLike,
    radii: ArrayLike,
    norm: Norm = np.inf,
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
    store: Kept = None,
    proof: str | os.PathLike[str] | None = None,
) -> Evaluation:
    """Clean, certified and attacked accuracy of a model on labelled points, over radii.

    A point counts as certified at a radius if the model labels it correctly and the whole ball is proved to
    have that label; as attacked if it is correct and no counterexample was found in the ball. With another
    threshold than 1/2, "to have that label" reads "P(that label) > threshold". Ctrl-C ends the call with what
    is known.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    X : array of shape (m, d) or table
        The points.
    y : array of shape (m,)
        Their true classes, values of the model's classes.
    radii : float or array of shape (k,)
        Radii of the balls, increasing, >= 0.
    norm : float or "inf"
        inf, any p >= 1, or 0 (the radius is how many features may move).
    features : sequence, optional
        Features that move: positions, a mask or names; None: all.
    domain : pair (low, high), mapping or "data", optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; balls are cut there;
        "data": from 0 on where no training value was negative, up to 1 where all were 0 or 1; None:
        everywhere.
    scale : float, array of shape (d,), mapping or "std", optional
        Units of the radius: one number, one for each feature, or by name; "std": standard deviations of the
        training data; None: 1.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the smallest P(label) of a ball counts as known; the side of the threshold is pursued
        further.
    max_seconds : float, optional
        Time limit for each proof, and for each attack of a point; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each proof; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: the smallest P(label) on the ball being proved
        around point p.index lies in [p.lower, p.upper]; if it returns True, what was not looked at is
        "unknown".
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps the answer for each point, for these radii, as it comes; what it has is not computed again.
    proof : path, optional
        Folder for proofs that `gpcert_check` can verify, one file for each point.

    Returns
    -------
    Evaluation
        Accuracies for each radius, verdicts and counterexamples for each point.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> print(gc.evaluate(clf, [[0.5], [2.5]], ["a", "b"], [0.25, 2.0]))
    2 points, clean accuracy 1.000
    radius 0.25: certified 2 of 2 (100.0 %), attacked 2 of 2 (100.0 %)
    radius 2: certified 0 of 2 (0.0 %), attacked 0 of 2 (0.0 %)
    """
    check_model(post)
    check_threshold(post, threshold)
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    wanted = checked_radii(radii)
    check_labelled(X, y)
    balls = checked_balls(post, X, norm, float(wanted[-1]), features, domain, scale, what="X")
    truth = class_indices(post, y, len(balls.X))
    start = now()
    check_device(device)
    prover = checked_prover(post, proof, [balls.ball(0, 0.0)], True, balls.ids, balls.X)
    running = checked_running(progress, n_jobs, store, post, what="evaluate", prover=prover)
    asked = balls, truth, wanted, float(threshold), device
    task = _EvaluateTask(post, settings, about(post, settings), prover, *asked)
    blocks = Pieces.blocks(len(balls.X), _rows_at_once(task))
    points = answered(_block, task, blocks, running, "evaluate", _blank, _cut_short)
    return joined(task, points, now() - start)


def _rows_at_once(task: _EvaluateTask) -> int:
    """Points of a block: a GPU takes all that it can."""
    size = _BLOCKS[knows(task.post)]
    on_gpu = (
        size == _BLOCKS[1] and task.prover is None and chosen(task.device, len(task.balls.X)).name != "cpu"
    )
    return _GPU_BLOCK if on_gpu else size


def _cut_short(points: list[Evaluation | None]) -> bool:
    return any(point is None or point.unproved is Unproved.INTERRUPTED for point in points)


def _blank(task: _EvaluateTask, index: Iterable[int]) -> list[Evaluation]:
    return [point_of(task, i, None) for i in index]


def _block(task: _EvaluateTask, index: Index, report: Report) -> list[Evaluation | None]:
    """What is known of a few points, None for those that were stopped with radii open; pure, so that
    processes may share it.
    """
    balls = task.balls.rows(index)
    labels, ties = labelled(task.post, balls.X)
    rows: list[Evaluation | None] = [None] * len(index)
    known, stopped = Brackets.of(~ties, len(task.radii)), False
    try:
        alone = task.prover is not None  # a proof needs the tree of a search
        asked = Asked(task.post, balls, labels, task.threshold, task.settings, task.device)
        refuted = not alone and known.refute(asked, task.radii)
        if not refuted:
            _attack(task, balls, labels, known)
        if not alone:
            known.prove(asked, task.radii)
        if refuted:
            _attack(task, balls, labels, known)
    except KeyboardInterrupt:
        stopped = True
    model = task.post, task.factory
    for i, (label, truth) in enumerate(zip(labels.tolist(), task.truth[index].tolist(), strict=True)):
        if stopped and known.asked[i] and known.safe[i] < known.unsafe[i]:
            continue
        try:
            row = _row(task, balls, i, label, known, partial(report, at=i))
        except Stopped:
            stopped = True
            continue
        # A proof above a threshold of 1/2 or more has the label; x itself shows the others.
        clear = 0.5 + room(task.post, 0.5)
        sure = task.threshold >= 0.5 or enclosed(*model, balls.X[i], label, 0.5)[0] > clear
        wrong = label != truth and refutes(*model, balls.X[i], truth, 0.5)
        row = row._replace(right=label == truth and sure, wrong=wrong)
        rows[i] = point_of(task, int(index[i]), row)
        if row.unproved is Unproved.INTERRUPTED:
            break
    return rows


def _attack(task: _EvaluateTask, balls: Balls, labels: Index, known: Brackets) -> None:
    """Where several radii are open, the nearest counterexample of an attack; a proof has one of its own."""
    rows = np.flatnonzero(known.asked & (known.unsafe - known.safe > 1))
    if not rows.size:
        return
    largest = task.radii[known.unsafe[rows] - 1]
    some = replace(balls.rows(rows), limits=largest)
    deadline = now() + task.settings.max_seconds * len(rows)
    asked = labels[rows], task.threshold, _RTOL
    radius, points = nearest(task.post, some, *asked, deadline=deadline)
    for i, point in zip(rows[np.isfinite(radius)].tolist(), points[np.isfinite(radius)], strict=True):
        first = int(np.searchsorted(task.radii, balls.radius_of(i, point)))
        label = int(labels[i])
        if first < known.unsafe[i] and refutes(task.post, task.factory, point, label, task.threshold):
            known.lose(i, first, point)


def _row(task: _EvaluateTask, balls: Balls, i: int, label: int, known: Brackets, report: Report) -> Outcome:
    """Proofs from the largest radius that is not lost downwards, until one holds."""
    safe, unsafe, point = int(known.safe[i]), int(known.unsafe[i]), known.point(i)
    candidate, start = unsafe if known.asked[i] else 0, now()
    tree: Tree | None = None
    ended = Status.CONVERGED
    while candidate > safe:
        tree = task.recorder()
        ball = _ball(task, balls, i, candidate)
        question = ball, label, task.threshold, _budget(task), report, known.start(i, candidate - 1)
        d = decide(task.post, task.factory, *question, recorder=tree)
        if d.ended is Status.INTERRUPTED:  # the search has kept Ctrl-C to itself
            raise Stopped
        ended = d.ended
        if d.status is VerdictStatus.SAFE:
            break
        candidate -= 1
        if d.status is VerdictStatus.UNSAFE:
            unsafe, point = candidate, d.point
    row = Outcome(label, candidate, unsafe, point, False, False)
    seconds = now() - start
    stop = partial(report, -np.inf, np.inf, 0, seconds)
    return row._replace(**task.export(partial(_proof, task, balls, i, row, tree), ended, seconds, stop))


def _ball(task: _EvaluateTask, balls: Balls, i: int, candidate: int) -> Ball:
    """The largest of the first `candidate` radii around point i."""
    return balls.ball(i, balls.whole(float(task.radii[candidate - 1])))


def _proof(
    task: _EvaluateTask, balls: Balls, i: int, row: Outcome, tree: Tree | None, prover: Prover
) -> ProofFile | Unproved:
    """Of the label on the largest safe ball, and of the counterexample."""
    safe = None if row.safe == 0 else (_ball(task, balls, i, row.safe), tree)
    unsafe = None if row.point is None else (_ball(task, balls, i, row.unsafe + 1), row.point)
    return prover.labels(row.label, task.threshold, task.factory, safe, unsafe)


def _budget(task: _EvaluateTask) -> Settings:
    return replace(task.settings, max_nodes=min(task.settings.max_nodes, max(task.balls.budget, _NODES)))


@dataclass(frozen=True)
class _Score:
    """A scorer: (model, X, y) -> the share of points that are right and are proved to stay so."""

    radius: float
    shape: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]

    def __call__(self, model: Any, X: Any, y: Any) -> float:
        # A score of some of the points would be compared with one of all.
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*are not answered", RuntimeWarning)
            try:
                found = evaluate(model, X, y, [self.radius], *self.shape, **dict(self.options))
            except RuntimeWarning as warning:
                raise GpcertError(f"certified_score needs an answer for every point, but {warning}") from None
        if None in found.labels.tolist():
            raise KeyboardInterrupt
        return float(found.certified[0])


def certified_score(
    radius: float,
    norm: Norm = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    threshold: float = 0.5,
    tolerance: float = 1e-3,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    n_jobs: int | None = 1,
    device: str = "auto",
) -> _Score:
    """Certified accuracy at one radius as a scikit-learn scorer, for `GridSearchCV`, `cross_val_score`.

    The share of points that the fitted model labels correctly and whose whole ball is proved to keep the
    label: `evaluate(model, X, y, [radius], ...).certified`. What a limit leaves undecided does not count.

    Parameters
    ----------
    radius : float
        Radius of the balls, >= 0.
    norm : float or "inf"
        inf, any p >= 1, or 0 (the radius is how many features may move).
    features : sequence, optional
        Features that move: positions, a mask or names; None: all.
    domain : pair (low, high), mapping or "data", optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; balls are cut there;
        "data": from 0 on where no training value was negative, up to 1 where all were 0 or 1; None:
        everywhere.
    scale : float, array of shape (d,), mapping or "std", optional
        Units of the radius: one number, one for each feature, or by name; "std": standard deviations of the
        training data; None: 1.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the smallest P(label) of a ball counts as known; the side of the threshold is pursued
        further.
    max_seconds : float, optional
        Time limit for each proof; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each proof; None: no limit.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays. 1 leaves them to the search for a model.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).

    Returns
    -------
    callable
        A scorer: (model, X, y) to a share in [0, 1].

    Raises
    ------
    KeyboardInterrupt
        By the scorer at Ctrl-C: half a score is none.
    GpcertError
        By the scorer where a worker died of a point.

    Examples
    --------
    >>> import gpcert as gc
    >>> from sklearn.model_selection import cross_val_score
    >>> data = gc.datasets.load("synthetic2d")
    >>> X, y = data.X_train[:60], data.y_train[:60]
    >>> clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0)
    >>> bool((cross_val_score(clf, X, y, cv=2, scoring=gc.certified_score(0.05)) > 0.4).all())
    True
    """
    # At once: scikit-learn turns the errors of a scorer into NaN.
    number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
    require(number and 0.0 <= radius < np.inf, f"radius must be a number >= 0, got {shown(radius)}")
    Ball([0.0], radius, norm, domain=(0.0, 0.0))  # the sentences about norms
    check_level(threshold)
    checked_settings(tolerance, max_seconds, max_nodes)
    checked_running(None, n_jobs)
    check_device(device)
    options: dict[str, Any] = {"threshold": threshold, "tolerance": tolerance, "max_seconds": max_seconds}
    options |= {"max_nodes": max_nodes, "n_jobs": n_jobs, "device": device}
    return _Score(radius, (norm, features, domain, scale), tuple(options.items()))

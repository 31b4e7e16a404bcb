"""Is the label of a point the label of a whole region, `certify`; of the rows of a table, `certify_table`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.questions import rooted
from gpcert.questions.asking import of_points, question
from gpcert.questions.balls import checked_balls
from gpcert.questions.checks import (
    Kept,
    about,
    check_device,
    check_model,
    check_threshold,
    checked_points,
    checked_prover,
    checked_radii,
    checked_running,
    checked_settings,
    class_indices,
)
from gpcert.questions.decision import Decision, decide, decision, labelled, settled
from gpcert.questions.rooted import Roots
from gpcert.questions.tasks import AtRoot, Piece, Task, answered, pieces_of, settled_together
from gpcert.regions import Norm, Region, Regions
from gpcert.results import Enclosure, Status, Unproved, Verdict, VerdictStatus
from gpcert.running import Listener, Report
from gpcert.tables import column, column_names, framed, row_names
from gpcert.validation import Index, Mask, composed, require

if TYPE_CHECKING:
    from gpcert.answers import Answers
    from gpcert.questions.rooted import Roots

#: A margin that is known to within this and still holds 0 is a tie.
_TIE = 1e-9
#: More than the rounding of a margin, and more than the next double above a threshold is away from it.
_TINY = 4.0 * float(np.finfo(np.float64).eps)


@of_points
def certify(
    post: Posterior,
    x: ArrayLike | None,
    region: Regions,
    threshold: float = 0.5,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    store: Kept = None,
    proof: str | os.PathLike[str] | None = None,
) -> list[Verdict]:
    """Whether every point of a region has the label of x: safe, unsafe or unknown.

    "safe": proved, P(label) > threshold on the whole region, label = the label the model gives x. "unsafe": a
    point of the region with P(label) < threshold, proved, and confirmed by the predictor. The sign is pursued
    however small the margin is: "unknown", with what is known of the margin, is answered only at a limit,
    where rounding or 1e-9 stand between the margin and 0, or where x itself is a tie. Several classes: "safe"
    means that no other class overtakes the label. Ctrl-C ends the call with what is known.

    `certify(model, region)` takes the centre of the region, or of each of several, as x.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    x : array of shape (d,) or (m, d), optional
        A point of the region, or one for each of m regions; None: the centres.
    region : Box, Ball or sequence of them
        The inputs that the answer is about; a sequence is answered as a batch.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the margin counts as known; its sign is pursued further.
    max_seconds : float, optional
        Time limit for each region; None: no limit. Checking the model, once, does not count.
    max_nodes : int, optional
        Limit on the boxes bounded for each region; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: the smallest P(label) on region p.index lies in
        [p.lower, p.upper] (several classes: the smallest (1 + P(label) - the largest other)/2); if it returns
        True, the call ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.
    proof : path, optional
        File for a proof that `gpcert_check` can verify; of a batch, a folder with one file for each answer.
        `proof` of the answer says what is proved.

    Returns
    -------
    Verdict or Answers
        The verdict; of a sequence of regions, their verdicts in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> print(gc.certify(clf, gc.Ball([2.5], 0.25)))
    safe: the margin of P(b) is in [0.150, 0.176]; converged
    >>> gc.certify(clf, gc.Ball([1.75], 0.5)).status
    <VerdictStatus.UNSAFE: 'unsafe'>
    >>> [v.status.value for v in gc.certify(clf, gc.balls([[0.5], [2.5]], 0.25))]
    ['safe', 'safe']
    """
    check_model(post)
    check_threshold(post, threshold)
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    points = checked_points(post, x, region)
    pursued = replace(settings, tolerance=_TIE)
    prover = checked_prover(post, proof, region, batch=not region.single, ids=region.ids)
    running = checked_running(progress, n_jobs, store, post, what="certify", prover=prover)
    task = _CertifyTask(post, pursued, about(post, settings), prover, float(threshold))
    check_device(device)
    labels, ties = labelled(post, points, device)
    roots = None
    if not region.single and proof is None:  # a proof needs the tree of a search
        roots = partial(settled_together, partial(_at_root, task, region, labels, ties, device), device)
    pieces = pieces_of(region, labels, ties)
    return answered(_ask, task, pieces, running, "certify", _blank, _interrupted, roots)


@dataclass(frozen=True, eq=False)
class _CertifyTask(Task):
    """With the threshold."""

    threshold: float


def _blank(task: _CertifyTask, piece: Piece) -> Verdict:
    return _nothing(task, piece.region, piece.label, Status.INTERRUPTED)


def _at_root(
    task: _CertifyTask, regions: Regions, labels: Index, ties: Mask, device: str, lot: slice
) -> Iterator[AtRoot]:
    """Settled: what is decided; the searches of the others begin where the root saw the margin smallest."""

    own = regions[lot], labels[lot]
    for roots in rooted.decisions(task.post, *own, task.threshold, task.settings, device):
        safe, unsafe = settled(task.post, roots, own[1][roots.numbers], task.threshold, device)

        def answer(at: int, i: int, roots: Roots = roots, safe: Mask = safe) -> Verdict:
            return _verdict(task, regions[i], int(labels[i]), decision(roots, at, bool(safe[at])))

        def report(at: int, roots: Roots = roots) -> tuple[float, ...]:
            (root,) = roots.sides(at)
            return root.lower, root.upper, root.nodes, root.seconds

        decided = (safe | unsafe) & ~ties[lot][roots.numbers]
        yield AtRoot(roots, decided, partial(roots.points, 0), answer, report)


def _ask(task: _CertifyTask, piece: Piece, report: Report) -> Verdict:
    region, label = piece.region, piece.label
    if piece.tie:
        answer = _nothing(task, region, label, Status.NUMERICAL)
        return answer if task.prover is None else replace(answer, unproved=Unproved.NOTHING)
    tree = task.recorder()
    question = region, label, task.threshold, task.settings, report, piece.known
    answer = _verdict(task, region, label, decide(task.post, task.factory, *question, recorder=tree))
    if tree is None:
        return answer
    stop = partial(report, answer.margin.lower, answer.margin.upper, answer.nodes, answer.seconds)
    return replace(
        answer,
        **task.export(
            lambda prover: prover.verdict(answer, task.factory, tree), answer.ended, answer.seconds, stop
        ),
    )


def _interrupted(answer: Verdict) -> bool:
    return Status.INTERRUPTED in (answer.ended, answer.unproved)


def _nothing(task: _CertifyTask, region: Region, label: int, ended: Status) -> Verdict:
    known = Decision(VerdictStatus.UNKNOWN, Enclosure(0.0, 1.0), None, ended, 0, 0.0)
    return _verdict(task, region, label, known)


def _verdict(task: _CertifyTask, region: Region, label: int, d: Decision) -> Verdict:
    post, threshold = task.post, task.threshold
    found = d.point if d.status is VerdictStatus.UNSAFE else None
    probability = d.probability
    if found is not None and probability is None:  # the answer of a batch
        probability = float(post.probability(found[None])[0, label])
    return Verdict(
        status=d.status,
        label=task.about.classes[label],
        threshold=threshold,
        margin=_margin(d.smallest, threshold) if post.n_classes == 2 else _several(d.smallest),
        argmin=d.point,
        counterexample=found,
        probability=None if found is None else probability,
        ended=d.ended,
        nodes=d.nodes,
        seconds=d.seconds,
        region=region,
        about=task.about,
    )


def _margin(smallest: Enclosure, threshold: float) -> Enclosure:
    """P(label) less the threshold, rounded outward; within [-threshold, 1 - threshold].

    An end next to the threshold may only say "above" or "below" it (`LabelBound`): then 0 is what is known.
    """
    lower, upper = smallest.lower - threshold, smallest.upper - threshold
    return Enclosure(
        max(lower - _TINY, 0.0 if lower > 0.0 else -threshold),
        min(upper + _TINY, 0.0 if upper < 0.0 else float(np.nextafter(1.0 - threshold, 2.0))),
    )


def _several(half: Enclosure) -> Enclosure:
    """P(label) less the largest other from (1 + it) / 2, as `_margin`."""
    margin = _margin(half, 0.5)
    return Enclosure(max(2.0 * margin.lower, -1.0), min(2.0 * margin.upper, 1.0))


@question
def certify_table(
    post: Posterior,
    table: Any,
    target: str | None = None,
    radii: ArrayLike = (0.1,),
    norm: Norm = np.inf,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    id: str | None = None,
    threshold: float = 0.5,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    store: Kept = None,
) -> Answers[Verdict]:
    """A verdict of `certify` for every row of a table and every radius, row by row.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    table : table
        Named columns (pandas, polars, a mapping); columns that are neither the model's nor named here are not
        read.
    target : str, optional
        The column of the true labels.
    radii : float or sequence of float
        Radii of the balls, increasing.
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
    id : str, optional
        The column that names the rows; None: a table's index, or their positions.
    threshold : float
        The probability that the label has to exceed, in (0, 1); with several classes only 1/2.
    tolerance : float
        Width at which the margin counts as known; its sign is pursued further.
    max_seconds : float, optional
        Time limit for each verdict; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each verdict; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`, as for `certify`; if it returns True, the call
        ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    device : str
        Where the regions of a batch are bounded together first: "cpu", "cuda", or "auto" (where it pays).
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.

    Returns
    -------
    Answers
        Of each row, a verdict for each radius.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit({"dose": [0.0, 1.0, 2.0, 3.0]}, ["a", "a", "b", "b"])
    >>> rows = {"dose": [0.5, 2.5], "state": ["a", "b"]}
    >>> print(gc.certify_table(clf, rows, target="state", radii=[0.25]).summary().splitlines()[0])
    2 x Verdict: 2 safe, 0 unsafe, 0 unknown; right and safe: 100.0 %
    """
    target, id = composed(target), composed(id)
    frame, own = _columns(post, table, target, id)
    truth = None if target is None else column("target", frame, target)
    names = row_names(table) if id is None else column("id", frame, id)
    chosen = checked_radii(radii)
    shape = norm, float(chosen[-1]), features, domain, scale
    balls = checked_balls(post, {name: frame[name] for name in own}, *shape, what="table")
    m = len(balls.X)
    ids = range(m) if names is None else names
    labels = None if truth is None else class_indices(post, truth, m, "target")
    rows, names = np.repeat(np.arange(m), len(chosen)), [each for each in ids for _ in chosen]
    regions = balls.regions(rows, np.tile(chosen, m), names)
    found = certify.__wrapped__(  # what the door says of regions is said
        post,
        None,
        regions,
        threshold,
        tolerance=tolerance,
        max_seconds=max_seconds,
        max_nodes=max_nodes,
        progress=progress,
        n_jobs=n_jobs,
        device=device,
        store=store,
    )
    right = None if labels is None else [post.labels[c] for c in labels for _ in chosen]
    from gpcert.answers import Answers

    return Answers(found, regions.ids, post, right)


def _columns(post: Posterior, table: Any, target: str | None, id: str | None) -> tuple[Any, list[str]]:
    """The table by its columns, and which of them are features."""
    frame = framed("table", table)
    if frame is None:
        raise InvalidInputError(f"table must have named columns, got {type(table).__name__}: see gc.balls")
    known = column_names(frame) or []
    for what, name in (("target", target), ("id", id)):
        if name is not None:
            column(what, frame, name)  # the sentence of one that is not there comes first
        free = name is None or name not in (post.feature_names or ())
        require(free, f"{what} must be no feature of the model, got {name!r}")
    return frame, [
        name for name in known if name in (post.feature_names or known) and name not in (target, id)
    ]

"""How far does a label hold? `certified_radius`: the largest radius proved safe, the smallest refuted.

The attack comes first: its nearest counterexample gives the upper end, and the first radius tried by proof is
just below it, with the counterexample's direction as reference. Where that proof fails, much smaller balls
come next: a label that holds nearby at all is proved to within the first few verdicts, whatever the limits.
Where time is so short that the attack took more than a tenth of it, a small ball is the first, even before
the counterexample is verified.
Balls around one point are nested, so a proof holds for all smaller radii and a counterexample for all larger
ones.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.attacks.sets import Sets
from gpcert.clock import now
from gpcert.posterior import Posterior
from gpcert.proofs.record import Tree
from gpcert.questions.asking import batch, question
from gpcert.questions.balls import Balls, checked_balls
from gpcert.questions.brackets import Asked, nearest
from gpcert.questions.checks import (
    Kept,
    about,
    check_model,
    check_number,
    check_threshold,
    checked_prover,
    checked_running,
    checked_settings,
    interrupted,
)
from gpcert.questions.decision import Decision, decide, decision, labelled, refutes
from gpcert.questions.tasks import Task, answered
from gpcert.regions import Norm
from gpcert.results import CertifiedRadius, Status, VerdictStatus
from gpcert.running import Listener, Pieces, Report
from gpcert.validation import Float, Index, Mask

if TYPE_CHECKING:
    from gpcert.answers import Answers

    pass

#: Share of the time left that one proof may take, so that a smaller radius gets its turn.
_PATIENCE = 0.5
#: Share of it in which an attack may bring a counterexample nearer.
_CLOSER = 0.25
#: Before anything is proved: how much smaller the next ball is, at first and later.
_SMALLER = (0.25, 1.0 / 16.0)
#: Share of the time that the attack may take; after more, proofs begin with a ball smaller by so much.
LEISURE = 0.1
_NEARBY = 1e-3
#: Where proofs end before counterexamples begin, their end is found this many times coarser than rtol.
_COARSER = 5.0
_MOST_TESTS = 24
#: Counterexamples that come nearer are followed so often; then something is to be proved first.
_HOPEFUL = 2
#: Relative steps below a counterexample begin with this, however small rtol is.
_FINEST = 1e-6


@dataclass(frozen=True, eq=False)
class _RadiusTask(Task):
    """With what every point is asked."""

    balls: Balls
    labels: Index
    ties: Mask
    threshold: float
    rtol: float


#: A radius, and what the root of a batch has decided of it.
Root = tuple[float, Decision]


def fine(rtol: float) -> float:
    """How finely the attack searches, so that a proof just below may end the question."""
    return min(0.25 * rtol, 0.1)


class RadiusSearch:
    """One point: the bracket [safe, unsafe], narrowed from above by proofs."""

    def __init__(self, task: _RadiusTask, row: int) -> None:
        self._post, self._balls, self._row = task.post, task.balls, row
        self._label, self._tie = int(task.labels[row]), bool(task.ties[row])
        self._factory, self._threshold = task.factory, task.threshold
        self._rtol, self._settings, self._about = task.rtol, task.settings, task.about
        self._task = task
        self._trees: dict[float, Tree] = {}  # of the largest radius proved
        self._tell: Report = lambda *known: False
        self._begin = now()
        self._root: Root | None = None
        self._safe, self._unsafe = 0.0, np.inf
        self._whole = False  # whether the largest radius is safe
        self._point: Float | None = None
        self._near: Float | None = None  # a counterexample perhaps, where the smallest value is expected
        self._tests = self._nodes = 0
        self._ended = Status.INTERRUPTED  # until the search ends in another way

    def found(self, point: Float | None) -> None:
        """Take the point if it is a counterexample, and nearer."""
        if point is None or self._tie:
            return
        radius = self._balls.radius_of(self._row, point)
        if radius < self._unsafe and refutes(self._post, self._factory, point, self._label, self._threshold):
            self._unsafe, self._point = radius, point

    @property
    def first(self) -> float:
        """The radius that is tried first: just below the counterexample."""
        below = self._balls.below(self._unsafe, max(0.75 * self._rtol, _FINEST))
        return min(below, self._balls.largest(self._row))

    @property
    def begins(self) -> bool:
        """Whether there is a first radius, which the root of a batch may decide."""
        return not self._tie and self.first > 0

    def run(self, spent: float, report: Report, root: Root | None, near: Float | None) -> None:
        """From the attack's answer `near` to the bracket; `root`: what is decided of a radius already."""
        self._begin, self._tell, self._root = now() - spent, report, root
        self._ended, self._near = Status.NUMERICAL if self._tie else Status.CONVERGED, near
        try:
            if not self._tie and (not self._hurried or self._proved_nearby()):
                self.found(near)
                self._narrow()
        except KeyboardInterrupt:
            self._ended = Status.INTERRUPTED

    def _proved_nearby(self) -> bool:
        """A small ball with all the time there is, before anybody looks at the attack's answer, which may
        take longer than a proof; False: somebody asked to stop.
        """
        away = np.inf if self._near is None else self._balls.radius_of(self._row, self._near)
        radius = _NEARBY * min(away, self._balls.largest(self._row))
        if radius > 0 and self._prove(radius, 1.0) is VerdictStatus.SAFE:
            self._safe = radius
        return self._ended is not Status.INTERRUPTED

    def _narrow(self) -> None:
        """Proofs just below the counterexample; where they fail, below the smallest radius they failed at."""
        largest = self._balls.largest(self._row)
        open_ = np.inf  # not proved from here on
        step = max(self._rtol, _FINEST)
        luckless = _FINEST  # grows with every counterexample that is only a little nearer
        smaller = iter(_SMALLER)
        hurried = self._hurried
        while self._tests < _MOST_TESTS:
            if self._unsafe == 0.0 or self._close(self._safe, self._unsafe) or self._whole:
                return
            gap = 1.0 - self._safe / self._unsafe
            target = self._balls.below(self._unsafe, max(0.75 * self._rtol, min(luckless, 0.5 * gap)))
            target = min(target, largest)
            hopeful = self._tests < _HOPEFUL or self._safe > 0.0 or self._balls.norm == 0
            top = min(target, open_)
            if hurried and self._safe < 0.5 * top:  # what is easy, then halfway in its logarithm
                target = max(math.sqrt(self._safe) * math.sqrt(top), _SMALLER[-1] * top)
            elif (
                not (target < open_ and hopeful) and self._tests
            ):  # proofs have failed there: go further down
                if open_ - self._safe <= _COARSER * self._rtol * open_:
                    return
                middle = 0.5 * (self._safe + open_)
                target = self._balls.whole(max(middle, (1.0 - step) * open_))
                if self._safe == 0.0 and self._balls.norm > 0:
                    target = next(smaller, _SMALLER[-1]) * open_
                else:
                    step = min(4.0 * step, 0.5)
            status = self._prove(target)
            if status is None:
                return
            if status is VerdictStatus.SAFE:
                self._safe, step = target, max(self._rtol, _FINEST)
                self._whole = self._safe >= largest
            else:
                open_, luckless = min(open_, target, self._unsafe), 8.0 * luckless
                step = 0.5 if self._ended is Status.TIME else step  # nearby it would take as long

    @property
    def _hurried(self) -> bool:
        """Whether time is so short that something is to be proved before anything else."""
        spent = now() - self._begin
        short = spent > LEISURE * self._settings.max_seconds
        return short and self._root is None and self._balls.norm > 0

    def _close(self, low: float, high: float) -> bool:
        if not np.isfinite(high):
            return False
        return high - low <= (1.0 if self._balls.norm == 0 else self._rtol * high)

    def _prove(self, radius: float, patience: float = _PATIENCE) -> VerdictStatus | None:
        """One radius within a share of the time left; None when the time is up or somebody asked to stop."""
        left = self._settings.max_seconds - (now() - self._begin)
        known = self._root is not None and self._root[0] == radius
        if left <= 0 and not known:
            self._ended = Status.TIME
            return None
        d = self._root[1] if self._root is not None and known else self._decide(radius, patience * left)
        self._tests += 1
        self._nodes += d.nodes
        if d.status is VerdictStatus.UNSAFE and d.point is not None:
            self.found(d.point)
            balls, labels = self._balls.rows(np.array([self._row])), np.array([self._label])
            left = self._settings.max_seconds - (now() - self._begin)
            deadline = now() + _CLOSER * left
            asked = balls, labels, self._threshold, fine(self._rtol), d.point[None], deadline
            self.found(nearest(self._post, *asked)[1][0])
        if d.ended is Status.INTERRUPTED:  # perhaps right after the box that decided
            self._ended = d.ended
            self._safe = max(self._safe, radius) if d.status is VerdictStatus.SAFE else self._safe
            return None
        if d.status is not VerdictStatus.SAFE:
            self._ended = d.ended
        return d.status

    def _decide(self, radius: float, seconds: float) -> Decision:
        ball = self._balls.ball(self._row, radius)
        start = self._near if self._point is None else self._point
        if start is not None:
            sets = Sets.of([ball])
            start = ball.project(sets.points(sets.offsets(start[None]))[0]) if radius > 0 else None
        nodes = min(self._settings.max_nodes, self._balls.budget)
        settings = replace(self._settings, max_seconds=seconds, max_nodes=nodes)
        question = ball, self._label, self._threshold, settings, self._report, start
        tree = self._task.recorder()
        d = decide(self._post, self._factory, *question, recorder=tree)
        if tree is not None and d.status is VerdictStatus.SAFE:
            self._trees = {radius: tree}
        return d

    def _report(self, lower: float, upper: float, nodes: int, seconds: float) -> bool:
        """One step of a proof tells of the bracket."""
        return self._tell(self._safe, self._unsafe, self._nodes + nodes, now() - self._begin)

    def proved_answer(self) -> CertifiedRadius:
        """With its proof file, where one is asked for."""
        answer = self.answer()
        stop = partial(self._tell, self._safe, self._unsafe, self._nodes, answer.seconds)
        entries = self._task.export(
            lambda prover: prover.radius(answer, self._factory, self._trees),
            answer.status,
            answer.seconds,
            stop,
        )
        return replace(answer, **entries)

    def answer(self) -> CertifiedRadius:
        status: Status = Status.NODES if self._ended is Status.CONVERGED else self._ended
        if status is not Status.INTERRUPTED:  # the batch has to hear of it
            if self._unsafe == 0.0 or self._close(self._safe, self._unsafe):
                status = Status.CONVERGED
            elif self._whole:
                everywhere = self._balls.covering(self._row) <= self._balls.limit(self._row)
                status = Status.CONVERGED if everywhere else Status.RADIUS
        p = None if self._point is None else float(self._post.probability(self._point[None])[0, self._label])
        return CertifiedRadius(
            safe=self._balls.limit(self._row) if self._whole else self._safe,
            unsafe=self._unsafe,
            counterexample=self._point,
            probability=p,
            label=self._about.classes[self._label],
            threshold=self._threshold,
            max_radius=float(self._balls.limits[self._row]),
            rtol=self._rtol,
            status=status,
            tests=self._tests,
            nodes=self._nodes,
            seconds=now() - self._begin,
            ball=self._balls.ball(self._row, 0.0),
            about=self._about,
        )


#: Points attacked at once: enough for the matrix products, few enough for processes to share.
_BLOCK = 32
#: Points from which the arrays of a batch pay, which grow with the features: at most, and for each.
_MANY, _EACH = 128, 4
#: Share of the time for the attack.
_ATTACK = 0.35


@question
def certified_radius(
    post: Posterior,
    x: Any,
    norm: Norm = np.inf,
    max_radius: float | None = None,
    rtol: float = 1e-3,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    *,
    threshold: float = 0.5,
    tolerance: float = 1e-5,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    store: Kept = None,
    proof: str | os.PathLike[str] | None = None,
) -> CertifiedRadius | Answers[CertifiedRadius]:
    """The largest radius proved safe around x, and the smallest with a counterexample, as near as rtol.

    Norm 0 counts features: radii are whole numbers. Ctrl-C ends the call with what is known.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    x : array of shape (d,) or (m, d), table
        The point, or points: a batch.
    norm : float or "inf"
        inf, any p >= 1, or 0 (the radius is how many features may move).
    max_radius : float, optional
        The largest radius of interest; may be inf inside a bounded domain. None: twice as far as the farthest
        centre of the model.
    rtol : float
        The search ends where `safe` is within this share of `unsafe`.
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
        A radius is given up once min P(label) on its ball is known to within this.
    max_seconds : float, optional
        Time limit for each point; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each radius tried; None: by the number of features.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: p.lower is safe, p.upper unsafe for point
        p.index; if it returns True, the call ends with what is known.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.
    proof : path, optional
        File for a proof that `gpcert_check` can verify; of a batch, a folder with one file for each answer.
        `proof` of the answer says what is proved.

    Returns
    -------
    CertifiedRadius or Answers
        The radii; of points (m, d), one for each in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> r = gc.certified_radius(clf, [2.5], max_radius=2.0)
    >>> 0.9 < r.safe <= 1.0 <= r.unsafe < 1.1
    True
    """
    check_model(post)
    check_threshold(post, threshold)
    check_number("rtol", rtol, least=0.0, strict=True)
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    balls = checked_balls(post, x, norm, max_radius, features, domain, scale)
    labels, ties = labelled(post, balls.X)
    prover = checked_prover(post, proof, [balls.ball(0, 0.0)], not balls.single, balls.ids, balls.X)
    running = checked_running(progress, n_jobs, store, post, what="certified_radius", prover=prover)
    asked = balls, labels, ties, float(threshold), float(rtol)
    task = _RadiusTask(post, settings, about(post, settings), prover, *asked)
    blocks = Pieces.blocks(len(balls.X), _BLOCK)
    answers = answered(_ask, task, blocks, running, "certified_radius", _blank, _cut_short)
    return answers[0] if balls.single else batch(answers, balls.ids, post, store)


def _blank(task: _RadiusTask, block: Iterable[int]) -> list[CertifiedRadius]:
    return [RadiusSearch(task, row).answer() for row in block]


def _cut_short(radii: list[CertifiedRadius]) -> bool:
    return interrupted(radii[-1])


def _ask(task: _RadiusTask, block: Index, report: Report) -> list[CertifiedRadius]:
    """The radii of a few points (their numbers); Ctrl-C leaves out those not begun."""
    balls = task.balls.rows(block)
    start, allowed = now(), _ATTACK * task.settings.max_seconds * len(block)
    distances, points = nearest(
        task.post, balls, task.labels[block], task.threshold, fine(task.rtol), deadline=start + allowed
    )
    searches = [RadiusSearch(task, row) for row in block.tolist()]
    near = [point if np.isfinite(far) else None for far, point in zip(distances, points, strict=True)]
    roots: dict[int, Root] = {}
    if now() - start <= LEISURE * task.settings.max_seconds * len(block):
        for search, point in zip(searches, near, strict=True):
            search.found(point)
        roots = _roots(task, block, searches)
    spent = (now() - start) / len(block)
    answers: list[CertifiedRadius] = []
    for i, search in enumerate(searches):
        search.run(spent, partial(report, at=i), roots.get(i), near[i])
        answers.append(search.proved_answer())
        if interrupted(answers[-1]):
            break
    return answers


def _roots(task: _RadiusTask, block: Index, searches: list[RadiusSearch]) -> dict[int, Root]:
    """What the roots of the balls that are tried first decide, all at once, by their place in the block."""
    few = len(task.balls.X) < min(_MANY, _EACH * int(task.balls.ball(0, 0.0).moving().sum()))
    if few or task.prover is not None:  # a proof needs the tree of a search
        return {}
    places = np.array([i for i, search in enumerate(searches) if search.begins], dtype=np.intp)
    radii = np.array([searches[i].first for i in places.tolist()])
    asked = Asked(task.post, task.balls, task.labels, task.threshold, task.settings, "auto")
    return {
        int(places[i := roots.numbers[at]]): (float(radii[i]), decision(roots, at, bool(safe[at])))
        for roots, safe, unsafe in asked.roots(block[places], radii)
        for at in np.flatnonzero(safe | unsafe).tolist()
    }

"""How far does a label hold? `certified_radius`: the largest radius proved safe, the smallest refuted.

The attack comes first: its nearest counterexample gives the upper end, and the first radius tried by proof is
just below it, with the counterexample's direction as reference. Where that proof fails, much smaller balls
come next: a label that holds nearby at all is proved to within the first few verdicts, whatever the limits.
Balls around one point are nested, so a proof holds for all smaller radii and a counterexample for all larger
ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gpcert.answers import Answers
from gpcert.attacks import Sets, settle
from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.proofs import Prover, Tree, checked_prover
from gpcert.questions.asking import question
from gpcert.questions.balls import Balls, checked_balls
from gpcert.questions.checks import (
    Kept,
    about,
    check_model,
    check_number,
    check_threshold,
    checked_running,
    checked_settings,
    interrupted,
)
from gpcert.questions.decision import decide, labelled, refutes
from gpcert.questions.nearest import nearest
from gpcert.results import About, CertifiedRadius, Status, VerdictStatus
from gpcert.running import Listener, Report, ask_all
from gpcert.settings import Settings
from gpcert.validation import Float, Index, Mask

__all__ = ["certified_radius"]

_MOST_TESTS = 24
#: Relative steps below a counterexample begin with this, however small rtol is.
_FINEST = 1e-6
#: Points attacked at once: enough for the matrix products, few enough for processes to share.
_BLOCK = 16
#: Share of the time for the attack.
_ATTACK = 0.5
#: Where proofs end before counterexamples begin, their end is found this many times coarser than rtol.
_COARSER = 5.0
#: Before anything is proved: how much smaller the next ball is, at first and later.
_SMALLER = (0.25, 1.0 / 16.0)
#: Share of the time left that one proof may take, so that a smaller radius gets its turn.
_PATIENCE = 0.5


@question
def certified_radius(
    post: Posterior,
    x: Any,
    norm: float = np.inf,
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
    """The largest radius proved safe around x (d,), and the smallest with a counterexample, as near as rtol.

    x (m, d): a list, one for each point. `norm`, `features`, `domain`, `scale` as for `Ball`; radii up to
    `max_radius`, which may be inf inside a bounded domain; by default twice as far as the farthest centre.
    Norm 0 counts features: radii are whole numbers.
    `max_seconds` limits each point, `max_nodes` each radius tried (default: by the number of features); a
    radius is also given up once min P(label) is known to within `tolerance`. `progress(p)`: p.lower is safe,
    p.upper unsafe for point p.index; True from it, or Ctrl-C, ends the call with what is known. `progress`
    else, `n_jobs`, `store` and `proof`, as for `probability_range`.

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
    running = checked_running(progress, n_jobs, store, post, what="certified_radius")
    labels, ties = labelled(post, balls.X)
    asked = float(threshold), float(rtol), settings, about(post, settings)
    prover = checked_prover(
        post,
        proof,
        [balls.ball(0, 0.0)] if len(balls.X) else [],
        batch=not balls.single,
        kept=store is not None,
    )
    task = _Task(post, BoundFactory(post), balls, labels, ties, *asked, prover)
    blocks = {b: np.arange(b, min(b + _BLOCK, len(balls.X))) for b in range(0, len(balls.X), _BLOCK)}
    blank = partial(_blank, task)
    done = ask_all(
        _ask, task, blocks, running, what="certified_radius", stopped=_cut_short, size=len, blank=blank
    )
    found = {b + i: radius for b, radii in done.items() for i, radius in enumerate(radii)}
    answers = [found[i] if i in found else blank([i])[0] for i in range(len(balls.X))]
    return answers[0] if balls.single else Answers(answers, balls.ids, post)


@dataclass(frozen=True, eq=False)
class _Task:
    """What the points of one call share."""

    post: Posterior
    factory: BoundFactory
    balls: Balls
    labels: Index
    ties: Mask
    threshold: float
    rtol: float
    settings: Settings
    about: About
    prover: Prover | None


def _blank(task: _Task, block: Iterable[int]) -> list[CertifiedRadius]:
    return [_Search(task, row).answer() for row in block]


def _cut_short(radii: list[CertifiedRadius]) -> bool:
    return interrupted(radii[-1])


def _ask(task: _Task, block: Index, report: Report) -> list[CertifiedRadius]:
    """The radii of a few points (their numbers); Ctrl-C leaves out those not begun."""
    balls = task.balls.rows(block)
    start, allowed = time.perf_counter(), _ATTACK * task.settings.max_seconds * len(block)
    distances, points = nearest(
        task.post, balls, task.labels[block], task.threshold, _fine(task.rtol), deadline=start + allowed
    )
    spent = (time.perf_counter() - start) / len(block)
    answers: list[CertifiedRadius] = []
    for i, row in enumerate(block.tolist()):
        search = _Search(task, row, spent, partial(report, at=i))
        search.run(distances[i], points[i])
        answers.append(search.proved_answer())
        if interrupted(answers[-1]):
            break
    return answers


def _fine(rtol: float) -> float:
    """How finely the attack searches, so that a proof just below may end the question."""
    return min(0.25 * rtol, 0.1)


class _Search:
    """One point: the bracket [safe, unsafe], narrowed from above by proofs."""

    def __init__(
        self, task: _Task, row: int, spent: float = 0.0, report: Report = lambda *known: False
    ) -> None:
        self._post, self._balls, self._row = task.post, task.balls, row
        self._label, self._tie = int(task.labels[row]), bool(task.ties[row])
        self._factory, self._threshold = task.factory, task.threshold
        self._rtol, self._settings, self._about = task.rtol, task.settings, task.about
        self._prover = task.prover
        self._trees: dict[float, Tree] = {}  # of the largest radius proved
        self._tell = report
        self._begin = time.perf_counter() - spent
        self._safe, self._unsafe = 0.0, np.inf
        self._whole = False  # whether the largest radius is safe
        self._point: Float | None = None
        self._tests = self._nodes = 0
        self._ended = Status.INTERRUPTED  # until the search ends in another way

    def run(self, distance: float, point: Float) -> None:
        """From the attack's answer to the bracket."""
        try:
            self._begun(distance, point)
        except KeyboardInterrupt:
            self._ended = Status.INTERRUPTED

    def _begun(self, distance: float, point: Float) -> None:
        if self._tie:
            self._ended = Status.NUMERICAL
            return
        self._found(point if np.isfinite(distance) else None)
        self._ended = Status.CONVERGED
        self._narrow()

    def _found(self, point: Float | None) -> None:
        """Take the point if it is a counterexample, and nearer."""
        if point is None:
            return
        radius = self._balls.radius_of(self._row, point)
        if radius < self._unsafe and refutes(self._post, self._factory, point, self._label, self._threshold):
            self._unsafe, self._point = radius, point

    def _narrow(self) -> None:
        """Proofs just below the counterexample; where they fail, below the smallest radius they failed at."""
        largest = self._balls.largest(self._row)
        open_ = largest  # not proved from here on
        step = max(self._rtol, _FINEST)
        luckless = _FINEST  # grows with every counterexample that is only a little nearer
        smaller = iter(_SMALLER)
        while self._tests < _MOST_TESTS:
            if self._unsafe == 0.0 or self._close(self._safe, self._unsafe) or self._whole:
                return
            gap = 1.0 - self._safe / self._unsafe
            target = self._balls.below(self._unsafe, max(0.75 * self._rtol, min(luckless, 0.5 * gap)))
            if target >= open_ and self._tests:  # a proof has failed at or below it: go further down
                if open_ - self._safe <= _COARSER * self._rtol * open_:
                    return
                middle = 0.5 * (self._safe + open_)
                target = self._balls.whole(max(middle, (1.0 - step) * open_))
                if self._safe == 0.0 and self._balls.norm > 0:
                    target = next(smaller, _SMALLER[-1]) * open_
                else:
                    step = min(4.0 * step, 0.5)
            status = self._prove(min(target, largest))
            if status is None:
                return
            if status is VerdictStatus.SAFE:
                self._safe, step = min(target, largest), max(self._rtol, _FINEST)
                self._whole = self._safe >= largest
            else:
                open_, luckless = min(open_, target), 8.0 * luckless
                step = 0.5 if self._ended is Status.TIME else step  # nearby it would take as long

    def _close(self, low: float, high: float) -> bool:
        if not np.isfinite(high):
            return False
        return high - low <= (1.0 if self._balls.norm == 0 else self._rtol * high)

    def _prove(self, radius: float) -> VerdictStatus | None:
        """One radius; None when the time is up or somebody asked to stop."""
        left = self._settings.max_seconds - (time.perf_counter() - self._begin)
        if left <= 0:
            self._ended = Status.TIME
            return None
        ball = self._balls.ball(self._row, radius)
        start = None
        if self._point is not None and radius > 0:
            sets = Sets.of([ball])
            start = settle(ball, sets.points(sets.offsets(self._point[None]))[0])
        nodes = min(self._settings.max_nodes, self._balls.budget)
        settings = replace(self._settings, max_seconds=_PATIENCE * left, max_nodes=nodes)
        question = ball, self._label, self._threshold, settings, self._report, start
        tree = None if self._prover is None else Tree()
        d = decide(self._post, self._factory, *question, recorder=tree)
        if tree is not None and d.status is VerdictStatus.SAFE:
            self._trees = {radius: tree}
        self._tests += 1
        self._nodes += d.nodes
        if d.status is VerdictStatus.UNSAFE and d.point is not None:
            self._found(d.point)
            balls, labels = self._balls.rows(np.array([self._row])), np.array([self._label])
            deadline = self._begin + self._settings.max_seconds
            asked = balls, labels, self._threshold, _fine(self._rtol), d.point[None], deadline
            self._found(nearest(self._post, *asked)[1][0])
        if d.ended is Status.INTERRUPTED:  # perhaps right after the box that decided
            self._ended = d.ended
            self._safe = max(self._safe, radius) if d.status is VerdictStatus.SAFE else self._safe
            return None
        if d.status is not VerdictStatus.SAFE:
            self._ended = d.ended
        return d.status

    def _report(self, lower: float, upper: float, nodes: int, seconds: float) -> bool:
        """One step of a proof tells of the bracket."""
        return self._tell(self._safe, self._unsafe, self._nodes + nodes, time.perf_counter() - self._begin)

    def proved_answer(self) -> CertifiedRadius:
        """With its proof file, where one is asked for."""
        answer = self.answer()
        if self._prover is None:
            return answer
        return replace(answer, proof=self._prover.radius(answer, self._factory, self._trees))

    def answer(self) -> CertifiedRadius:
        """The bracket as it stands."""
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
            label=self._label,
            threshold=self._threshold,
            max_radius=float(self._balls.limits[self._row]),
            rtol=self._rtol,
            status=status,
            tests=self._tests,
            nodes=self._nodes,
            seconds=time.perf_counter() - self._begin,
            ball=self._balls.ball(self._row, 0.0),
            about=self._about,
        )

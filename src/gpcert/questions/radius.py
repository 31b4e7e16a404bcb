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

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gpcert.answers import Answers
from gpcert.bounds.factory import BoundFactory
from gpcert.clock import now
from gpcert.posterior import Posterior
from gpcert.proofs.limits import unasked
from gpcert.questions.asking import batch, question
from gpcert.questions.balls import checked_balls
from gpcert.questions.brackets import Asked
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
from gpcert.questions.decision import decision, labelled
from gpcert.questions.nearest import nearest
from gpcert.questions.radius_search import LEISURE, RadiusSearch, Root, Task, fine
from gpcert.regions import Norm
from gpcert.results import CertifiedRadius
from gpcert.running import Listener, Pieces, Report, ask_all, by_region
from gpcert.validation import Index

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
    asked = float(threshold), float(rtol), settings, about(post, settings)
    some = [balls.ball(0, 0.0)] if len(balls.X) else []
    prover = checked_prover(post, proof, some, not balls.single, balls.ids, balls.X)
    running = checked_running(progress, n_jobs, store, post, what="certified_radius", prover=prover)
    task = Task(post, BoundFactory(post), balls, labels, ties, *asked, prover)
    blocks = Pieces.blocks(len(balls.X), _BLOCK)
    blank = partial(_blank, task)
    done = ask_all(_ask, task, blocks, running, what="certified_radius", stopped=_cut_short, blank=blank)
    found = by_region(done)
    answers = [found[i] if i in found else unasked(blank([i])[0], prover) for i in range(len(balls.X))]
    return answers[0] if balls.single else batch(answers, balls.ids, post, store)


def _blank(task: Task, block: Iterable[int]) -> list[CertifiedRadius]:
    return [RadiusSearch(task, row).answer() for row in block]


def _cut_short(radii: list[CertifiedRadius]) -> bool:
    return interrupted(radii[-1])


def _ask(task: Task, block: Index, report: Report) -> list[CertifiedRadius]:
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


def _roots(task: Task, block: Index, searches: list[RadiusSearch]) -> dict[int, Root]:
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

"""A point of a region with small P(label), found by local search: `attack`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from gpcert.attacks.grosse import gpfgs, gpjm
from gpcert.attacks.objectives import Careful, LogOdds
from gpcert.attacks.pgd import pgd
from gpcert.attacks.sets import Sets, settle
from gpcert.classes import Label
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import (
    Kept,
    about,
    check_classifier,
    check_count,
    check_method,
    checked_labels,
    checked_points,
    checked_running,
)
from gpcert.questions.decision import room
from gpcert.regions import Ball, Region, Regions
from gpcert.results import About, Attack
from gpcert.running import Lot, Report, ask_all
from gpcert.settings import Settings
from gpcert.validation import Float, Index, random_start


@about_regions
def attack(
    post: Posterior,
    region: Regions,
    x: ArrayLike | None = None,
    label: Label | Sequence[Label] | None = None,
    method: str = "pgd",
    *,
    starts: int = 5,
    rng: int | np.random.Generator | None = 0,
    store: Kept = None,
) -> list[Attack]:
    """The point with the smallest P(label) that local search finds in a region, or in each of a sequence.

    Never a guarantee: what is found is evidence, what is not found proves nothing.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    region : Box, Ball or sequence of them
        The inputs that the answer is about; a sequence is answered as a batch.
    x : array of shape (d,) or (m, d), optional
        Where the attack starts; None: the centre of each region.
    label : class value or sequence, optional
        The class whose probability is to fall, a value of the model's classes, or one for each region; None:
        the label the model gives x.
    method : str
        "pgd" (projected gradients on P(label), several starts), "gpfgs" (one step against the sign of the
        gradient of the latent mean) or "gpjm" (one feature after the other, most salient first).
    starts : int
        Starts of "pgd", the first at x.
    rng : int, numpy Generator or None
        Where random starts come from; the same integer gives the same answer. The answer keeps the integer
        that it was, or that the generator drew; None draws another one each time.
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.

    Returns
    -------
    Attack or Answers
        The point found; of a sequence of regions, theirs in the same order.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.attack(clf, gc.Ball([1.75], 0.5)).success
    True
    """
    check_classifier(post)
    check_method(method, "pgd", "gpfgs", "gpjm")
    check_count("starts", starts)
    drawn = random_start("rng", rng)
    X = checked_points(post, x, region)
    if label is None:
        labels: Index = post.probability(X).argmax(axis=1)
    else:
        labels = checked_labels(post, label, region)
    task = _Task(post, (method, int(starts), drawn), about(post, Settings()))
    pieces = dict(enumerate(zip(region, X, labels.tolist(), strict=True)))
    running = checked_running(None, 1, store, post, what="attack")
    found = ask_all(_alone, task, pieces, running, blank=partial(_blank, task), together=partial(_all, task))
    return [found[i] for i in pieces]


@dataclass(frozen=True, eq=False)
class _Task:
    """What the regions of one call share: the method with its starts and what they are drawn from."""

    post: Posterior
    asked: tuple[str, int, int]
    about: About


_Piece = tuple[Region, Float, int]  # where, from which point, against which label


def _blank(task: _Task, piece: _Piece) -> Attack:
    region, start, label = piece
    return Attack(start, 0.0, False, task.about.classes[label], *task.asked, start, region, task.about)


def _alone(task: _Task, piece: _Piece, report: Report) -> Attack:
    (lot,) = _all(task, {0: piece})
    answer: Attack = lot.answer(0)
    return answer


def _all(task: _Task, pieces: Mapping[int, _Piece]) -> Iterator[Lot]:
    """All regions at once: one step of all is one matrix product."""
    regions, starts, labels = zip(*pieces.values(), strict=True)
    method, count, rng = task.asked
    X, columns = np.stack(starts), np.array(labels, dtype=np.intp)
    points = strongest(task.post, regions, X, columns, method, starts=count, rng=rng)
    found = {}
    for i, z, row, (region, start, label) in zip(
        pieces, points, task.post.probability(points), pieces.values(), strict=True
    ):
        # Next to 1/2 the `predict` of scikit-learn may say the same label all the same (D3).
        hit = bool(row.argmax() != label and row[label] < row.max() - 2.0 * room(task.post, 0.5))
        own = task.about.classes[label]
        found[i] = Attack(z, float(row[label]), hit, own, *task.asked, start, region, task.about)
    yield Lot.of(found, [(-np.inf, np.inf, 0, 0.0)] * len(found))


def strongest(
    post: Posterior,
    regions: Sequence[Region],
    X: Float,
    labels: Index,
    method: str = "pgd",
    *,
    starts: int = 5,
    rng: int = 0,
) -> Float:
    """Points (m, d), each in its region as a real number; X (m, d) where nothing better was found."""
    points = np.array(X)
    norms = np.array([region.norm if isinstance(region, Ball) else np.inf for region in regions])
    with np.errstate(all="ignore"):
        for norm in np.unique(norms):
            rows = np.flatnonzero(norms == norm)
            sets = Sets.of([regions[int(i)] for i in rows])
            if method == "pgd":
                found, _ = pgd(Careful(LogOdds(post)), sets, labels[rows], starts=starts, rng=rng)
            elif method == "gpfgs":
                found = gpfgs(post, sets, labels[rows], X[rows])
            else:
                found = gpjm(post, sets, labels[rows])
            points[rows] = [settle(regions[int(i)], point) for i, point in zip(rows, found, strict=True)]
    lost = ~np.isfinite(points).all(axis=1)  # a gradient overflows where lengthscales are tiny
    points[lost] = X[lost]
    at = np.arange(len(labels))
    worse = ~(post.probability(points)[at, labels] < post.probability(X)[at, labels])
    points[worse] = X[worse]
    return points

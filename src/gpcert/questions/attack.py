"""A point of a region with small P(label), found by local search: `attack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from gpcert.attacks.grosse import gpfgs, gpjm
from gpcert.attacks.objectives import Careful, LogOdds
from gpcert.attacks.pgd import pgd
from gpcert.attacks.sets import Sets
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
from gpcert.regions import Region, Regions
from gpcert.results import About, Attack
from gpcert.running import Listener, Pieces, Report, ask_all
from gpcert.settings import Settings
from gpcert.validation import Float, Index, random_start

#: Regions attacked at once. Always as many: starts are drawn for all of them.
_BLOCK = 32


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
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
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
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`, without bounds, when some regions are done; if it
        returns True, the points of the others are those at which their attacks would start.
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
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
    task = _AttackTask(post, region, X, labels, (method, int(starts), drawn), about(post, Settings()))
    blocks = Pieces.blocks(len(X), _BLOCK)
    running = checked_running(progress, n_jobs, store, post, what="attack")
    found = ask_all(_ask, task, blocks, running, what="attack", blank=partial(_blank, task))
    if missing := [i for i in range(len(X)) if i not in found]:
        found |= zip(missing, _answers(task, np.array(missing), X[missing]), strict=True)
    return [found[i] for i in range(len(X))]


@dataclass(frozen=True, eq=False)
class _AttackTask:
    """What the regions of one call share: the method with its starts and what they are drawn from."""

    post: Posterior
    regions: Regions
    X: Float
    labels: Index
    asked: tuple[str, int, int]
    about: About


def _blank(task: _AttackTask, block: Index) -> list[Attack]:
    return [_attack(task, i, task.X[i], 0.0, False) for i in block.tolist()]


def _ask(task: _AttackTask, block: Index, report: Report) -> list[Attack]:
    """Regions by their numbers, all at once: one step of all is one matrix product."""
    method, starts, rng = task.asked
    regions, X, labels = [task.regions[i] for i in block.tolist()], task.X[block], task.labels[block]
    return _answers(task, block, strongest(task.post, regions, X, labels, method, starts=starts, rng=rng))


def _answers(task: _AttackTask, block: Index, points: Float) -> list[Attack]:
    """What the points (m, d) of regions, by their numbers, show."""
    found = []
    for i, z, row in zip(block.tolist(), points, task.post.probability(points), strict=True):
        # Next to 1/2 the `predict` of scikit-learn may say the same label all the same (D3).
        label = task.labels[i]
        hit = bool(row.argmax() != label and row[label] < row.max() - 2.0 * room(task.post, 0.5))
        found.append(_attack(task, i, z, float(row[label]), hit))
    return found


def _attack(task: _AttackTask, i: int, z: Float, probability: float, hit: bool) -> Attack:
    own = task.about.classes[task.labels[i]]
    return Attack(z, probability, hit, own, *task.asked, task.X[i], task.regions[i], task.about)


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
    norms = np.array([region.norm for region in regions])
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
            points[rows] = [regions[int(i)].project(point) for i, point in zip(rows, found, strict=True)]
    lost = ~np.isfinite(points).all(axis=1)  # a gradient overflows where lengthscales are tiny
    points[lost] = X[lost]
    at = np.arange(len(labels))
    worse = ~(post.probability(points)[at, labels] < post.probability(X)[at, labels])
    points[worse] = X[worse]
    return points

"""Which features push a probability up or down? `explain`: the paper's Delta^i_gamma with enclosures.

For feature i, with max and min over the one-sided intervals [x, x + gamma e_i] and [x - gamma e_i, x],
    Delta = (max over the right - max over the left) + (min over the right - min over the left).
All 2d intervals of a point are bounded at once (docs/maths/bounds.md, U1 to U3); where that is too wide,
or the model is of another kind, `probability_range` answers interval by interval. Delta takes both ends of
every range with both signs, so an interval must be neither too short nor too long: x + gamma is a real
number, in general no double.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpcert.bounds.batched.lines import SideRanges, line_ranges
from gpcert.classes import Label, position
from gpcert.clock import now
from gpcert.kernels import RBF
from gpcert.likelihoods import Logit, Probit
from gpcert.posterior import Posterior
from gpcert.proofs.prover import FeatureLine, Range
from gpcert.questions.asking import question
from gpcert.questions.balls import checked_shape
from gpcert.questions.checks import (
    Kept,
    about,
    check_model,
    check_number,
    checked_prover,
    checked_running,
    checked_settings,
    warn_of_impossible,
)
from gpcert.questions.ranges import probability_range
from gpcert.questions.tasks import Task
from gpcert.regions import Ball, Regions
from gpcert.results import Explanation, Status, Unproved
from gpcert.running import Listener, Pieces, Progress, Report, Stopped, ask_all, made
from gpcert.settings import Settings
from gpcert.tables import arranged, read
from gpcert.validation import Float, Index, as_matrix

if TYPE_CHECKING:
    pass

#: Products from here on are rounded by at most half a unit in the last place.
_NORMAL = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class _ExplainTask(Task):
    """With the class that is explained."""

    label: int


@question
def explain(
    post: Posterior,
    X: Any,
    radius: float,
    label: Label | None = None,
    *,
    features: Sequence[int | str] | None = None,
    domain: Any = None,
    scale: Any = None,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Listener | bool | None = None,
    n_jobs: int | None = None,
    store: Kept = None,
    proof: str | os.PathLike[str] | None = None,
) -> Explanation:
    """Influences of the features: Delta^i of P(label) for every point and feature i, with enclosures.

    Delta^i compares what P(label) can reach on [x_i, x_i + radius] with what it can on [x_i - radius, x_i],
    by its maxima and minima. Its sign is 0 where it is not certain. Ctrl-C ends the call with what is known.

    Parameters
    ----------
    post : model
        Any model that `posterior_of` takes.
    X : array of shape (m, d) or (d,), table
        The points, or one.
    radius : float
        How far each feature moves, >= 0.
    label : class value, optional
        The class whose probability it is, a value of the model's classes. Two classes: the second by default;
        several: must be given.
    features : sequence, optional
        Features to explain: positions, a mask or names; None: all. The others have Delta 0.
    domain : pair (low, high), mapping or "data", optional
        Where inputs are valid: numbers, arrays (d,) or by name, None for an open end; intervals end there;
        "data": from 0 on where no training value was negative, up to 1 where all were 0 or 1; None:
        everywhere.
    scale : float, array of shape (d,), mapping or "std", optional
        Units: feature i moves by radius * scale_i; "std": standard deviations of the training data; None: 1.
    tolerance : float
        How narrow each enclosure of a minimum or maximum has to be.
    max_seconds : float, optional
        Time limit for each interval that is searched on its own; None: no limit.
    max_nodes : int, optional
        Limit on the boxes bounded for each such interval; None: no limit.
    progress : callable or bool, optional
        True: a bar. A function is called with a `Progress`: the values at point p.index lie in [p.lower,
        p.upper]; if it returns True, what is left is unknown ([-2, 2]).
    n_jobs : int, optional
        Processes for a batch; None: all cores where that pays.
    store : path or Store, optional
        Keeps each answer as it comes; what it has is not computed again.
    proof : path, optional
        Folder for proofs that `gpcert_check` can verify, one file for each point.

    Returns
    -------
    Explanation
        Arrays (m, d) of values, of their lower and upper ends, and of signs.

    Examples
    --------
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> gc.explain(clf, [[2.5]], 0.25, label="b").sign
    array([[1]])
    """
    check_model(post)
    c = position(post.labels, label)
    check_number("radius", radius, least=0.0, strict=False)
    settings = checked_settings(tolerance, max_seconds, max_nodes)
    table, names = read("X", X), post.feature_names
    points = as_matrix("X", np.atleast_2d(arranged("X", table, names)), post.n_features)
    shape = checked_shape(post, names or table.names, features, domain, scale, level=5)
    balls = tuple(Ball(x, radius, np.inf, *shape) for x in points)
    warn_of_impossible(post, balls, level=4)
    prover = checked_prover(post, proof, balls, True, table.ids)
    running = checked_running(progress, n_jobs, store, post, what="explain", prover=prover)
    task = _ExplainTask(post, settings, about(post, settings), prover, c)
    blank, pieces = partial(_about, task, None), Pieces(len(balls), balls.__getitem__)
    found = ask_all(_ask, task, pieces, running, what="explain", stopped=_cut_short, blank=blank)
    lower, upper = np.full(points.shape, -2.0), np.full(points.shape, 2.0)
    for i, known in found.items():
        lower[i], upper[i] = known.lower[0], known.upper[0]
    answer = Explanation.of(lower, upper, balls, post.labels[c], names, task.about)
    files = tuple(file for i in sorted(found) for file in found[i].proof or ())
    cut = Unproved.INTERRUPTED if len(found) < len(balls) else None
    unproved = next((found[i].unproved for i in sorted(found) if found[i].unproved is not None), cut)
    return answer if prover is None else replace(answer, proof=files, unproved=unproved)


def _cut_short(answer: Explanation) -> bool:
    return answer.unproved is Unproved.INTERRUPTED


def _about(task: _ExplainTask, ends: Float | None, ball: Ball) -> Explanation:
    """What is known of one point: the ends (2, d), None for nothing."""
    post, about_it = task.post, task.about
    lower, upper = np.full((2, 1, post.n_features), [[[-2.0]], [[2.0]]]) if ends is None else ends[:, None]
    return Explanation.of(lower, upper, (ball,), about_it.classes[task.label], post.feature_names, about_it)


def _ask(task: _ExplainTask, ball: Ball, report: Report) -> Explanation:
    """Delta along all features of one ball, and the proof."""
    post, label, start, chosen = task.post, task.label, now(), np.flatnonzero(ball.moving())
    found = np.zeros((2, post.n_features))
    flip = post.n_classes == 2 and label == 0  # lines know P(1): P(0) has the opposite Delta
    seen: dict[int, list[float]] = {}
    left, right = _sides(post, ball, chosen, 1 if flip else label, task.settings, report, seen)
    found[:, chosen] = _deltas(left, right, flip)
    report(float(found[0].min()), float(found[1].max()), 0, now() - start)
    answer = _about(task, found, ball)
    if task.prover is None:
        return answer
    lines = [
        FeatureLine(j, _range(left, i, flip), _range(right, i, flip), seen.get(j, ()))
        for i, j in enumerate(chosen.tolist())
    ]
    seconds = now() - start
    stop = partial(report, float(found[0].min()), float(found[1].max()), 0, seconds)
    entries = task.export(
        lambda prover: prover.influences(label, task.factory, ball, lines, found),
        Status.CONVERGED,
        seconds,
        stop,
    )
    return replace(answer, **({"proof": (entries["proof"],)} if "proof" in entries else entries))


def _range(side: SideRanges, i: int, flip: bool) -> Range:
    """P(label) on one side of feature number i: of the other class the complement, rounded outward."""
    low, high, least, most = (float(end[i]) for end in side)
    if not flip:
        return Range(low, high, least, most)
    ends = max(1.0 - most - 2e-16, 0.0), min(1.0 - least + 2e-16, 1.0)
    return Range(*ends, max(1.0 - high - 2e-16, 0.0), min(1.0 - low + 2e-16, 1.0))


def _deltas(left: SideRanges, right: SideRanges, flip: bool) -> tuple[Float, Float]:
    """Enclosures (f,) of Delta along the features of the ball."""
    lower = (right.max_lower - left.max_upper) + (right.min_lower - left.min_upper)
    upper = (right.max_upper - left.max_lower) + (right.min_upper - left.min_lower)
    lower = np.maximum(np.nextafter(lower - 4e-15, -np.inf), -2.0)
    upper = np.minimum(np.nextafter(upper + 4e-15, np.inf), 2.0)
    return (-upper, -lower) if flip else (lower, upper)


def _sides(
    post: Posterior,
    ball: Ball,
    features: Index,
    label: int,
    settings: Settings,
    report: Report,
    seen: dict[int, list[float]],
) -> tuple[SideRanges, SideRanges]:
    """Ranges of P(label) on both sides of x along every feature; two classes: label 1. `seen` gets the places
    along a feature at which a search found its extremes.
    """

    def unknown(p: Progress) -> bool:
        return report(-2.0, 2.0, p.nodes, p.seconds)

    x, j = ball.x, features
    low, high = ball.domain or (np.full_like(x, -np.inf), np.full_like(x, np.inf))
    sides = [SideRanges(*(np.zeros(len(j)) + end for end in (0.0, 1.0, 0.0, 1.0))) for _ in range(2)]
    with np.errstate(over="ignore"):  # U3: rounded once, unless they underflow
        reach = ball.radius * (np.ones_like(x) if ball.scale is None else ball.scale)[j]
        lengths = [np.minimum(reach, room[j]) for room in (x - low, high - x)]
    rounded = ball.scale is None or ball.radius == 0 or bool((reach >= _NORMAL).all())
    if rounded and isinstance(post.likelihood, Probit | Logit) and isinstance(post.kernel, RBF):
        # Copies: what is unknown of both sides may be one array, and each side is written to below.
        sides = [SideRanges(*map(np.array, side)) for side in line_ranges(post, x, j, *lengths)]
    for ranges, within in zip(sides, ((low, x), (x, high)), strict=True):
        wide = np.maximum(ranges.min_upper - ranges.min_lower, ranges.max_upper - ranges.max_lower)
        for i in np.flatnonzero(~(wide <= settings.tolerance)):
            side = Ball(x, ball.radius, features=[int(j[i])], domain=within, scale=ball.scale)
            own = post.labels[label]
            options = asdict(settings) | {"progress": unknown, "n_jobs": 1}
            r = made(
                probability_range.__wrapped__(post, Regions([side]), own, **options)[0], 0
            )  # no warnings
            if r.status is Status.INTERRUPTED:  # the search has kept Ctrl-C to itself
                raise Stopped
            found = r.min.lower, r.min.upper, r.max.lower, r.max.upper
            for array, value in zip(ranges, found, strict=True):
                array[i] = value
            points = (point for point in (r.argmin, r.argmax) if point is not None)
            seen.setdefault(int(j[i]), []).extend(float(point[j[i]]) for point in points)
    return sides[0], sides[1]

"""How much may the probability change over a region? `robustness`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from gpcert.classes import Label
from gpcert.posterior import Posterior
from gpcert.questions.asking import about_regions
from gpcert.questions.checks import Kept, check_model, checked_labels, checked_points
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box, Regions
from gpcert.results import ProbabilityRange, Robustness, Status
from gpcert.running import Listener, made
from gpcert.validation import Float


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

"""Is the label of a point the label of a whole region? `certify`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from gpcert.attacks import Margin, Sets, pgd, settle
from gpcert.bounds import BoundFactory
from gpcert.posterior import Posterior
from gpcert.questions.checks import (
    Limits,
    Progress,
    check_model,
    check_threshold,
    checked_limits,
    checked_points,
    checked_regions,
)
from gpcert.questions.decision import decide
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box, Region
from gpcert.results import Enclosure, Status, Verdict, VerdictStatus
from gpcert.validation import Float, require

__all__ = ["certify", "verdict"]


@overload
def certify(
    post: Posterior,
    x: ArrayLike,
    region: Region,
    threshold: float = 0.5,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> Verdict: ...


@overload
def certify(
    post: Posterior,
    x: ArrayLike,
    region: Sequence[Region],
    threshold: float = 0.5,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> list[Verdict]: ...


def certify(
    post: Posterior,
    x: ArrayLike,
    region: Region | Sequence[Region],
    threshold: float = 0.5,
    *,
    tolerance: float = 0.02,
    max_seconds: float | None = None,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> Verdict | list[Verdict]:
    """Whether every point of a region has the label of x, for x (d,) and a region, or (m, d) and m regions.

    "safe": proved, P(label) > threshold on the whole region, label = the label the model gives x. "unsafe":
    a point of the region with P(label) < threshold, confirmed by the model's predictor. Else "unknown", with
    what is known of the margin: limits were met, or the margin is known to within `tolerance` and still holds
    0. Several classes: threshold 1/2 only, and "safe" means that no other class overtakes the label.
    """
    check_model(post)
    check_threshold(post, threshold)
    limits = checked_limits(tolerance, max_seconds, max_nodes, progress)
    regions, single = checked_regions(post, region)
    require(x is not None, "x must be a point of the region, got None")
    points = checked_points(post, x, regions, single)
    factory = BoundFactory(post)
    answers = []
    for p, each in zip(post.probability(points), regions, strict=True):
        label = int(p.argmax())
        if np.count_nonzero(p == p[label]) > 1:  # a tie: there is no label to keep
            nothing = Enclosure(-1.0, 1.0), None, None, Status.CONVERGED, 0, 0.0
            answers.append(Verdict(VerdictStatus.UNKNOWN, label, float(threshold), *nothing))
        else:
            answers.append(verdict(post, factory, each, label, float(threshold), limits))
    answers = [replace(answer, target=post.target) for answer in answers]
    return answers[0] if single else answers


def verdict(
    post: Posterior,
    factory: BoundFactory,
    region: Region,
    label: int,
    threshold: float,
    limits: Limits,
    start_at: Float | None = None,
) -> Verdict:
    """The verdict on one region for a given label; `start_at` as for `decide`."""
    if post.n_classes > 2:
        return _several(post, region, label, limits)
    d = decide(post, factory, region, label, threshold, limits, start_at)
    margin = Enclosure(
        float(np.nextafter(d.smallest.lower - threshold, -np.inf)),
        float(np.nextafter(d.smallest.upper - threshold, np.inf)),
    )
    found = d.point if d.status is VerdictStatus.UNSAFE else None
    p_found = None if found is None else float(post.probability(found[None])[0, label])
    return Verdict(d.status, label, threshold, margin, found, p_found, d.ended, d.nodes, d.seconds)


def _several(post: Posterior, region: Region, label: int, limits: Limits) -> Verdict:
    """Several classes from the ranges of each: the label's minimum against the others' maxima."""
    start = time.perf_counter()
    found, _ = pgd(Margin(post), Sets.of([region]), np.array([label]))
    point = settle(region, found[0])
    p = post.probability(point[None])[0]
    upper = _margin_at(post, point, label)
    if p[label] < np.delete(p, label).max():
        return _conclude(VerdictStatus.UNSAFE, label, (-1.0, upper), point, p, Status.CONVERGED, 0, start)
    lower, nodes, ended = _margin_from_ranges(post, region, label, limits)
    status = VerdictStatus.SAFE if lower > 0.0 else VerdictStatus.UNKNOWN
    return _conclude(status, label, (lower, max(upper, lower)), None, p, ended, nodes, start)


def _margin_at(post: Posterior, point: Float, label: int) -> float:
    """An upper bound of the margin at one point (d,), from the enclosures of all classes there."""
    at = [probability_range(post, Box(point, point), c) for c in range(post.n_classes)]
    best_other = max(other.lower for c, other in enumerate(at) if c != label)
    return float(np.nextafter(at[label].upper - best_other, np.inf))


def _margin_from_ranges(
    post: Posterior, region: Region, label: int, limits: Limits
) -> tuple[float, int, Status]:
    own = probability_range(post, region, label, **limits.options())
    # The others share what the label leaves: none exceeds 1 - P(label).
    lower, nodes = 2.0 * own.lower - 1.0, own.nodes
    if not lower > 0.0:
        others = [
            probability_range(post, region, c, **limits.options())
            for c in range(post.n_classes)
            if c != label
        ]
        lower = max(lower, own.lower - max(other.upper for other in others))
        nodes += sum(other.nodes for other in others)
    return float(np.nextafter(lower, -np.inf)), nodes, own.status


def _conclude(
    status: VerdictStatus,
    label: int,
    margin: tuple[float, float],
    point: Float | None,
    p: Float,
    ended: Status,
    nodes: int,
    start: float,
) -> Verdict:
    at_point = None if point is None else float(p[label])
    seconds = time.perf_counter() - start
    return Verdict(status, label, 0.5, Enclosure(*margin), point, at_point, ended, nodes, seconds)

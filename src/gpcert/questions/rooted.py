"""The regions of a batch at the root, all at once (`gpcert.engine`): what is settled, and hints for the rest.

Only boxes, and only models and batches for which that pays; everything else is asked one by one, as a single
question is. A hint is true: certified ends of both sides, and points of the region where they hold.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.bounds import curves_of
from gpcert.engine import Facts, Rows, Settled, chosen, facts_of, knows, smallest, verdicts
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Columns, Region, columns_of
from gpcert.settings import Settings
from gpcert.validation import Float, Index, Mask

__all__ = ["Root", "decisions", "lots", "ranges"]

#: Regions that share their moving features; fewer do not pay for the arrays they need.
_FEWEST = 16
#: Seconds per region below which the limit is left to the search, which looks at the clock between boxes.
_SECONDS = 0.2
#: Features that stand still in some regions of a group may move in others, up to this share of all.
_SHARED = 1.5


#: Regions bounded together, at most: enough for the products. Fixed, so that what is resumed has the bits of
#: what was not disturbed: arrays of another size are summed in another order.
_LOT = 4096


def lots(count: int, asked: Container[int]) -> Iterator[range]:
    """The numbers of regions that are bounded together, where one of them is asked about."""
    for first in range(0, count, _LOT):
        lot = range(first, min(first + _LOT, count))
        if any(i in asked for i in lot):
            yield lot


#: Targets above a threshold lie so far above it; other links look for theirs on a grid of this width.
_ABOVE, _FINE = 1e-9, 1e-9


@dataclass(frozen=True, eq=False)
class Root:
    """One side of one region: lower <= min P <= upper, where `upper` holds at the point (D,)."""

    lower: float
    upper: float
    point: Float
    nodes: int
    seconds: float


def ranges(
    post: Posterior, regions: Sequence[Region], label: int, settings: Settings, device: str
) -> tuple[dict[int, tuple[Root, Root]], bool]:
    """What one plane per side tells of min P(label) and of min 1 - P(label), by the number of the region; and
    whether Ctrl-C has ended it.
    """
    found: dict[int, tuple[Root, Root]] = {}
    signs = np.full(len(regions), 1.0 if label == 1 else -1.0)
    try:
        for which, rows, batch in _groups(post, regions, signs, settings, device, sides=2):
            start = time.perf_counter()
            settled = smallest(batch, curves_of(post.likelihood), rows, settings.tolerance, sides=2)
            roots = _roots(rows, batch, settled, time.perf_counter() - start)
            pairs = zip(roots[: len(rows)], roots[len(rows) :], strict=True)
            found.update(zip(which.tolist(), pairs, strict=True))
    except KeyboardInterrupt:
        return found, True
    return found, False


def decisions(
    post: Posterior,
    regions: Sequence[Region],
    labels: Index,
    threshold: float,
    settings: Settings,
    device: str,
) -> tuple[dict[int, Root], bool]:
    """The same of min P(label) alone, as sharp as the threshold asks."""
    found: dict[int, Root] = {}
    try:
        for which, rows, batch in _groups(
            post, regions, np.where(labels == 1, 1.0, -1.0), settings, device, sides=1
        ):
            curves, start = curves_of(post.likelihood), time.perf_counter()
            if threshold == 0.5:
                settled = verdicts(batch, curves, rows)
            else:
                settled = smallest(batch, curves, rows, _FINE, threshold + _ABOVE)
            found.update(
                zip(which.tolist(), _roots(rows, batch, settled, time.perf_counter() - start), strict=True)
            )
    except KeyboardInterrupt:
        return found, True
    return found, False


def _groups(
    post: Posterior, regions: Sequence[Region], signs: Float, settings: Settings, device: str, sides: int
) -> Iterator[tuple[Index, Rows, Facts]]:
    """Regions that move the same features: their numbers, their rows, and the facts."""
    asked = settings.max_nodes >= sides and settings.max_seconds >= _SECONDS
    if len(regions) < _FEWEST or not asked or not knows(post):
        return
    boxes = np.array([not isinstance(each, Ball) or each.norm == np.inf for each in regions])
    which = np.flatnonzero(boxes)
    if len(which) < _FEWEST:
        return
    columns = columns_of([regions[i] for i in which.tolist()])
    with np.errstate(over="ignore"):  # a row with a side of unknown width is left to the search, whole
        fits = np.isfinite(columns.upper - columns.lower).all(axis=1)
    which, columns = which[fits], Columns(*(end[fits] for end in columns))
    moving = columns.lower < columns.upper
    for rows in _alike(moving):
        features = np.flatnonzero(moving[rows].any(axis=0))
        low, high, inner_low, inner_high = (end[rows][:, features] for end in columns)
        facts = facts_of(post, features, chosen(device, sides * len(rows)))
        standing = columns.inner_lower[rows][:, facts.rest]
        yield which[rows], Rows(low, high, inner_low, inner_high, standing, signs[which[rows]]), facts


def _alike(moving: Mask) -> Iterator[Index]:
    """Rows (m,) whose features are bounded together: all of them, or those with the very same ones."""
    count = moving.sum(axis=1)
    groups = [np.arange(len(moving))]
    if np.count_nonzero(moving.any(axis=0)) > _SHARED * max(float(count.mean()), 1.0):
        _, group = np.unique(moving, axis=0, return_inverse=True)
        groups = [np.flatnonzero(group == each) for each in range(int(group.max()) + 1)]
    for rows in groups:
        rows = rows[count[rows] > 0]
        if len(rows) >= _FEWEST:
            yield rows


def _roots(rows: Rows, facts: Facts, settled: Settled, seconds: float) -> list[Root]:
    points = np.empty((len(settled.lower), len(facts.features) + len(facts.rest)))
    points[:, facts.rest] = np.tile(rows.standing, (len(points) // len(rows), 1))
    points[:, facts.features] = settled.witness
    share = seconds / max(len(rows), 1)
    numbers = (settled.lower.tolist(), settled.upper.tolist(), settled.nodes.astype(int).tolist())
    return [
        Root(low, high, point, nodes, share) for low, high, nodes, point in zip(*numbers, points, strict=True)
    ]

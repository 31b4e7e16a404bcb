"""How far the nearest counterexample is, as attacks see it: batched over points, for every norm.

From a counterexample the segment to the centre is searched for the first crossing; the ball through that
crossing, a little smaller, is attacked again from there; and so on until the smaller ball resists. The
directions settle quickly, so that few rounds are needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcert.attacks.objectives import Objective
from gpcert.attacks.pgd import pgd
from gpcert.attacks.sets import Sets
from gpcert.validation import Float, Index

#: Rows and their radii (k,) to the balls around the points of these rows.
Radii = Callable[[Index, Float], Sets]

_ROUNDS = 20
_CUTS = 16


def nearest_counterexamples(
    objective: Objective,
    level: float,
    balls: Radii,
    labels: Index,
    largest: Float,
    rtol: float,
    known: Float | None = None,
) -> tuple[Float, Float]:
    """Radii (m,) and points (m, d) where the objective is below `level`; inf where none was found.

    `largest` (m,): the radii first attacked; or, `known` (m, d), counterexamples there. A ball smaller by the
    factor 1 - rtol resisted the last attack.
    """
    rows = np.arange(len(labels))
    sets = balls(rows, largest)
    if known is None:
        points, values = pgd(objective, sets, labels, enough=level)
    else:
        points, values = known.copy(), objective.values(known, labels)
    radius = np.where(values < level, largest, np.inf)
    resisted = np.zeros(len(labels))
    rows = fresh = rows[values < level]
    for _ in range(_ROUNDS):
        if len(fresh):
            around = balls(fresh, radius[fresh])
            points[fresh], radius[fresh] = _shorten(objective, level, around, labels[fresh], points[fresh])
        if sets.norm == 0:  # whole numbers: halve what is left
            next_ = np.floor(0.5 * (resisted + radius))
            rows = rows[radius[rows] - resisted[rows] > 1]
        else:
            next_ = (1.0 - rtol) * radius
            rows = rows[(radius[rows] > 0) & (next_[rows] > resisted[rows])]
        if not len(rows):
            break
        found, values = pgd(
            objective,
            balls(rows, next_[rows]),
            labels[rows],
            starts=2,
            steps=15,
            flips=0,
            first=points[rows],
        )
        fresh = rows[values < level]
        points[fresh], radius[fresh] = found[values < level], next_[fresh]
        failed = rows[~(values < level)]
        resisted[failed] = next_[failed]
    return radius, points


def _shorten(
    objective: Objective, level: float, sets: Sets, labels: Index, points: Float
) -> tuple[Float, Float]:
    """The counterexamples nearest to the centre on each segment (m, d), and their radii (m,)."""
    m = len(sets)
    if sets.norm == 0:
        moved = points != sets.centre
        return points, moved.sum(axis=1).astype(np.float64)
    small, large = np.zeros(m), np.ones(m)
    for _ in range(2):
        share = small + (large - small) * np.arange(1, _CUTS)[:, None] / _CUTS  # (cuts, m)
        rows = np.tile(np.arange(m), _CUTS - 1)
        trial = sets.centre[rows] + share.reshape(-1, 1) * (points - sets.centre)[rows]
        trial = np.clip(trial, sets.lower[rows], sets.upper[rows])
        below = (objective.values(trial, labels[rows]) < level).reshape(_CUTS - 1, m)
        first = np.where(below.any(axis=0), below.argmax(axis=0), _CUTS - 1)
        step = (large - small) / _CUTS
        small, large = small + first * step, np.where(first < _CUTS - 1, small + (first + 1) * step, large)
    nearer = np.clip(sets.centre + large[:, None] * (points - sets.centre), sets.lower, sets.upper)
    keep = objective.values(nearer, labels) < level
    nearer = np.where(keep[:, None], nearer, points)
    return nearer, sets.lengths(nearer)

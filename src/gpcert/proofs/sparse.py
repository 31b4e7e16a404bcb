"""Balls of norm 0: a proof for each set of as many features as may move, a box each (V14); and balls of other
norms of which there are no proofs.
"""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Any

import numpy as np

from gpcert.posterior import Posterior
from gpcert.proofs.record import Goal, Subject
from gpcert.regions import Ball, Box, Region
from gpcert.rounding import LARGEST
from gpcert.validation import Float

#: Boxes of one claim.
MOST_SUPPORTS = 400
#: Features of a box up to which its corners are looked at for the worst point.
_CORNERS = 5
#: What rounding may take of a half width.
_TOLD = 1e-3


def supports_of(ball: Ball, radius: float | None = None) -> int:
    """How many sets of features a ball of norm 0 has; of radius None: of the radius that has most."""
    low, high = ball.domain if ball.domain is not None else (ball.x, ball.x)
    allowed = np.ones(len(ball.x), dtype=bool)
    if ball.features is not None:
        allowed[:] = False
        allowed[list(ball.features)] = True
    m = int(np.count_nonzero(allowed & (low < high)))
    return math.comb(m, m // 2 if radius is None else min(int(radius), m))


def prove(subject: Subject, post: Posterior, goal: Goal, ball: Ball) -> tuple[float, Any]:
    """As `Subject.prove` for a ball of norm 0: the worst of its supports."""
    upper, box = goal.upper, ball.box()
    moving = np.flatnonzero(box.lower < box.upper)
    count = min(int(ball.radius), len(moving))
    if not count:
        return subject.prove(goal._replace(region=Box(ball.x, ball.x), start=None))
    trivial = 1.0 if upper else -1.0 if goal.flat and post.n_classes > 2 else 0.0
    if math.comb(len(moving), count) > MOST_SUPPORTS:
        return trivial, None
    worst, parts = goal.value, []
    for features in map(list, combinations(moving.tolist(), count)):
        lower, higher = np.array(ball.x), np.array(ball.x)
        lower[features], higher[features] = box.lower[features], box.upper[features]
        part = Box(lower, higher)
        start = _worst_point(post, goal.label, part, features, upper)
        found, proof = subject.prove(goal._replace(region=part, start=start))
        worst = max(worst, found) if upper else min(worst, found)
        if worst == trivial or proof is None:
            return trivial, None
        parts.append({"features": features, "proof": proof})
    return worst, {"supports": parts}


def _worst_point(post: Posterior, label: int, box: Box, features: list[int], upper: bool) -> Float:
    """Of the middle and some corners of a box the one where P(label) is smallest, or largest."""
    points = [0.5 * box.lower + 0.5 * box.upper]
    if len(features) <= _CORNERS:
        for ends in product((box.lower, box.upper), repeat=len(features)):
            corner = points[0].copy()
            corner[features] = [end[j] for end, j in zip(ends, features, strict=True)]
            points.append(corner)
    p = post.probability(np.array(points))[:, label]
    return np.asarray(points[int(p.argmax() if upper else p.argmin())])


def beyond(region: Region) -> str | None:
    """Why a ball is beyond proof by its size, if it is."""
    if not isinstance(region, Ball) or region.norm == 0:
        return None
    scale = np.ones_like(region.x) if region.scale is None else region.scale
    sizes = [x for x in (region.radius, *scale) if x > 0]
    if any(x * LARGEST < 1.0 or x > LARGEST for x in sizes):
        return f"balls with radii or scales such as {max(sizes, key=lambda x: abs(math.log(x))):g}"
    return None


def narrow(region: Region) -> str | None:
    """Why numbers about a ball are beyond proof: its exact ends are lost in the doubles around them."""
    if not isinstance(region, Ball) or region.norm == 0:
        return None
    scale = np.ones_like(region.x) if region.scale is None else region.scale
    lost = np.spacing(np.abs(region.x)) > _TOLD * region.radius * scale
    moving = slice(None) if region.features is None else list(region.features)
    hardly = bool(region.radius > 0 and lost[moving].any())
    return "balls so small that doubles hardly tell their ends from x" if hardly else None

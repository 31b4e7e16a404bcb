"""Delta of one feature in a proof file: ranges on both sides of a point, then their balance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.claims import one_sided
from gpcert.posterior import Posterior
from gpcert.proofs.file import ProofText
from gpcert.regions import Ball, Region
from gpcert.validation import Float

__all__ = ["Line", "Range", "influence"]

#: Points of a side at which its extremes are looked for: those at which explain evaluates P, about.
_NODES = 24
#: More than the rounding of a sum of four numbers in [0, 1].
_BESIDE = 2e-15


class Range(NamedTuple):
    """Enclosures of the smallest and the largest P(label) on one side."""

    min_lower: float
    min_upper: float
    max_lower: float
    max_upper: float


class Line(NamedTuple):
    """The ranges below and above the centre along a feature."""

    feature: int
    below: Range
    above: Range


def influence(text: ProofText, post: Posterior, label: int, ball: Ball, line: Line, ends: Float) -> bool:
    """Claim that Delta lies between the ends (2,), or in what can be proved: whether it was the former."""
    regions = one_sided(ball, line.feature, -1), one_sided(ball, line.feature, 1)
    left = _proved(text, post, label, regions[0], line.feature, line.below)
    right = _proved(text, post, label, regions[1], line.feature, line.above)
    least = right.max_lower - left.max_upper + right.min_lower - left.min_upper
    most = right.max_upper - left.max_lower + right.min_upper - left.min_lower
    known = (left, right) == (line.below, line.above)  # the sums of the answer are rounded outward
    lower = float(ends[0]) if known else min(max(least - _BESIDE, -2.0), float(ends[0]))
    upper = float(ends[1]) if known else max(min(most + _BESIDE, 2.0), float(ends[1]))
    terms = [(sign, extreme, regions[sign > 0]) for extreme in ("max", "min") for sign in (1, -1)]
    text.balance(label, terms, lower, upper)
    return bool(lower == ends[0] and upper == ends[1])


def _proved(
    text: ProofText, post: Posterior, label: int, region: Region, feature: int, known: Range
) -> Range:
    """What is proved of P(label) on one side of the centre."""
    inner = region.inner_box()
    points = np.tile(inner.lower, (_NODES + 1, 1))
    points[:, feature] = np.linspace(inner.lower[feature], inner.upper[feature], _NODES + 1)
    p = post.probability(points)[:, label]
    low, high = points[p.argmin()], points[p.argmax()]
    inner_ends = (
        max(known.min_upper, text.value(label, low)[1]),
        min(known.max_lower, text.value(label, high)[0]),
    )
    return Range(
        text.at_least(label, region, known.min_lower, low),
        text.point(label, region, "<=", inner_ends[0], low),
        text.point(label, region, ">=", inner_ends[1], high),
        text.at_most(label, region, known.max_upper, high),
    )

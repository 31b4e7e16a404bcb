"""Delta of one feature in a proof file: ranges on both sides of a point, then their balance."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

import numpy as np

from gpcert.claims import one_sided
from gpcert.posterior import Posterior
from gpcert.proofs.file import ProofText
from gpcert.regions import Ball, Region
from gpcert.rounding import down, up
from gpcert.validation import Float

#: Points of a side at which its extremes are looked for, besides those that a search has found; and how
#: often again between the neighbours of the most extreme one, where they do not do.
_NODES, _ROUNDS = 24, 5


class Range(NamedTuple):
    """Enclosures of the smallest and the largest P(label) on one side."""

    min_lower: float
    min_upper: float
    max_lower: float
    max_upper: float


class Line(NamedTuple):
    """The ranges below and above the centre along a feature; `seen`: where extremes were found along it."""

    feature: int
    below: Range
    above: Range
    seen: Sequence[float] = ()


def influence(text: ProofText, post: Posterior, label: int, ball: Ball, line: Line, ends: Float) -> bool:
    """Claim that Delta lies between the ends (2,), or in what can be proved: whether it was the former.

    Only sums count: points more extreme than those of the answer make up for what bounds lack.
    """
    regions = one_sided(ball, line.feature, -1), one_sided(ball, line.feature, 1)
    sides = [_Side(text, post, label, region, line) for region in regions]
    with text.sharing(1):
        left = sides[0].proved(line.below)
    right = sides[1].proved(line.above)
    lower, upper = _balance(left, right)
    if lower < ends[0] or upper > ends[1]:
        left, right = sides[0].sharper(left), sides[1].sharper(right)
        lower, upper = _balance(left, right)
    lower, upper = min(max(lower, -2.0), float(ends[0])), max(min(upper, 2.0), float(ends[1]))
    terms = [(sign, extreme, regions[sign > 0]) for extreme in ("max", "min") for sign in (1, -1)]
    text.balance(label, terms, lower, upper)
    return bool(lower == ends[0] and upper == ends[1])


def _balance(left: Range, right: Range) -> tuple[float, float]:
    """What follows of Delta, rounded outward once: the sums of an answer have room for what claims lack."""
    least = fsum((right.max_lower, -left.max_upper, right.min_lower, -left.min_upper))
    most = fsum((right.max_upper, -left.max_lower, right.min_upper, -left.min_lower))
    return down(least), up(most)


class _Side:
    """P(label) on one side of a centre along a feature."""

    def __init__(self, text: ProofText, post: Posterior, label: int, region: Region, line: Line) -> None:
        self._text, self._post, self._label, self._region = text, post, label, region
        inner = region.inner_box()
        self._line, self._feature = inner.lower, line.feature
        low, high = self._ends = float(inner.lower[line.feature]), float(inner.upper[line.feature])
        t = np.linspace(low, high, _NODES + 1)
        p = self._values(t)
        seen = [each for each in line.seen if low <= each <= high]
        self._low = min((float(t[p.argmin()]), *seen), key=lambda each: self._enclosed(each)[1])
        self._high = max((float(t[p.argmax()]), *seen), key=lambda each: self._enclosed(each)[0])

    def proved(self, known: Range) -> Range:
        """What is proved of it."""
        text, where = self._text, (self._label, self._region)
        low, high = self._point(self._low), self._point(self._high)
        with text.sharing(1):
            least = text.at_least(*where, known.min_lower, low)
        return Range(
            least,
            text.point(*where, "<=", self._enclosed(self._low)[1], low),
            text.point(*where, ">=", self._enclosed(self._high)[0], high),
            text.at_most(*where, known.max_upper, high),
        )

    def sharper(self, known: Range) -> Range:
        """With points that are more extreme."""
        text, where = self._text, (self._label, self._region)
        low, high = self._extreme(self._low, 1), self._extreme(self._high, -1)
        p, q = self._enclosed(low)[1], self._enclosed(high)[0]
        if p < known.min_upper:
            known = known._replace(min_upper=text.point(*where, "<=", p, self._point(low)))
        if q > known.max_lower:
            known = known._replace(max_lower=text.point(*where, ">=", q, self._point(high)))
        return known

    def _extreme(self, best: float, sign: int) -> float:
        """About where P times the sign is smallest, between the neighbours of a node."""
        reach = (self._ends[1] - self._ends[0]) / _NODES
        for _ in range(_ROUNDS):
            t = np.linspace(max(best - reach, self._ends[0]), min(best + reach, self._ends[1]), _NODES + 1)
            best, reach = float(t[(sign * self._values(t)).argmin()]), 2.0 * reach / _NODES
        return best

    def _enclosed(self, t: float) -> tuple[float, float]:
        """P(label) there, which may be known worse than an estimate suggests."""
        return self._text.value(self._label, self._region, self._point(t))

    def _point(self, t: float) -> Float:
        return np.asarray(self._points(np.array([t]))[0])

    def _points(self, t: Float) -> Float:
        """Of the line (len(t), D)."""
        points = np.tile(self._line, (len(t), 1))
        points[:, self._feature] = t
        return points

    def _values(self, t: Float) -> Float:
        return np.asarray(self._post.probability(self._points(t))[:, self._label])

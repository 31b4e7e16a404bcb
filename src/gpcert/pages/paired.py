"""Two results over the same rows, row by row: which hold with one only, and whether that may be chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import comb, isfinite

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_most, exactly, radius_at_least
from gpcert.pages.groups import Group
from gpcert.pages.points import Point
from gpcert.pages.table import data_table
from gpcert.pages.words import word


def mcnemar(only_first: int, only_second: int) -> Fraction:
    """The exact two-sided p of McNemar's test: as uneven a split of the rows that differ, by fair coins."""
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


def decided(p: Point, radius: float) -> bool:
    """Whether a point is proved safe or unsafe at a radius: else it may not even have been asked about it."""
    return p.safe >= radius or p.unsafe <= radius


class Pair:
    """Two groups on the rows of both; what holds is right, where all labels are known, and proved safe."""

    def __init__(self, first: Group, second: Group) -> None:
        self.first, self.second = first, second
        other = {p.row: p for p in second.points}
        self.points = [(p, other[p.row]) for p in first.points if p.row in other]
        self._labelled = all(p.correct is not None for pair in self.points for p in pair)
        kept = "proved safe" if first.threshold == 0.5 else f"proved to stay above {exactly(first.threshold)}"
        self.held = f"right and {kept}" if self._labelled else kept

    def holds(self, p: Point, radius: float) -> bool:
        """Whether a point counts at a radius."""
        return p.safe >= radius and (not self._labelled or bool(p.correct))

    def first_holds(self, radius: float) -> int:
        """How many rows hold with the first."""
        return sum(self.holds(a, radius) for a, _ in self.points)

    def second_holds(self, radius: float) -> int:
        """How many rows hold with the second."""
        return sum(self.holds(b, radius) for _, b in self.points)

    def split(self, radius: float) -> tuple[int, int, int, int]:
        """How many rows hold with both, with the first only, with the second only, with neither.

        Only rows that both decide: what was left open, or never asked about, is not lost.
        """
        both = [pair for pair in self.points if all(decided(p, radius) for p in pair)]
        held = Counter((self.holds(a, radius), self.holds(b, radius)) for a, b in both)
        return held[True, True], held[True, False], held[False, True], held[False, False]


def chance(pair: Pair, radius: float) -> str:
    """Whether luck of the draw may explain the difference, in a sentence."""
    split = pair.split(radius)
    _, one, two, _ = split
    known, rows = sum(split), pair.first.words
    over = "" if known == len(pair.points) else f" over the {rows.counted(known)} that both decide"
    if not known:
        return f"No {rows.row} is decided by both at this radius: nothing to test."
    if one == two:
        alone = f"{rows.counted(one)} only by each" if one else f"no {rows.row} by one only"
        return f"Both hold equally many{over}: {alone}."
    p = mcnemar(one, two)
    better = pair.first if one > two else pair.second
    told = (
        f"is more than chance at 5 %, in favour of {better.name}"
        if p <= Fraction(5, 100)
        else "may be chance"
    )
    return f"The difference {told} (McNemar's exact test{over}, {_p(p)})."


def _p(p: Fraction) -> str:
    return f"p {'=' if p == 1 else '≤'} {at_most(p)}"


def paired(pair: Pair, radii: Sequence[float]) -> Html:
    """The second against the first: counts at every radius, and at the largest the rows that differ."""
    first, second, words = pair.first, pair.second, pair.first.words
    splits = [(radius, pair.split(radius)) for radius in radii]
    n = len(pair.points)
    left = ["not decided by both"] if any(sum(split) < n for _, split in splits) else []
    head = (
        first.radius_name,
        "held by both",
        f"only by {first.name}",
        f"only by {second.name}",
        "by neither",
        *left,
        word("McNemar's test", "mcnemar"),
    )
    rows = [
        (
            exactly(radius),
            *(f"{k:,}" for k in (*split, *(n - sum(split) for _ in left))),
            _p(mcnemar(*split[1:3])) if sum(split) else "",
        )
        for radius, split in splits
    ]
    radius = radii[-1]
    lost = f"At radius {first.far(radius)}, these {words.rows} have another prediction or verdict:"
    made = _rows_that_differ(pair, radius)
    return join(
        [
            tag("h3", f"{second.name} against {first.name}"),
            tag("p", f"Held are {words.rows} that are {pair.held}. {chance(pair, radius)}"),
            table(head, rows, "figures"),
            join([tag("p", lost), made])
            if made
            else tag(
                "p", f"No {words.row} changes its prediction or its verdict at radius {first.far(radius)}."
            ),
        ]
    )


def _rows_that_differ(pair: Pair, radius: float) -> Html:
    groups = pair.first, pair.second
    points = [
        both
        for both in pair.points
        if len({_told(p, g, radius) for p, g in zip(both, groups, strict=True)}) > 1
    ]
    searched = all(p.found for both in points for p in both)
    head = [(pair.first.words.row, "text"), ("true", "choice")]
    for group in groups:
        head += [(f"with {group.name}", "choice"), ("probability", "number")]
        head += [("safe up to", "number")] if searched else []
    head.append(("held by", "choice"))
    rows = []
    for both in points:
        cells = [both[0].name, both[0].label or ""]
        for p, group in zip(both, groups, strict=True):
            cells += [_told(p, group, radius), f"{p.probability:.3f}" if isfinite(p.probability) else ""]
            cells += [radius_at_least(max(0.0, p.safe))] if searched else []
        names = [group.name for p, group in zip(both, groups, strict=True) if pair.holds(p, radius)]
        cells.append({0: "neither", 2: "both"}.get(len(names)) or names[0])
        rows.append([(cell, "") for cell in cells])
    return data_table(head, rows, noun=f"{pair.first.words.rows} that differ") if rows else Html("")


def _told(p: Point, group: Group, radius: float) -> str:
    state = "safe" if p.safe >= radius else "unsafe" if p.unsafe <= radius else "unknown"
    return f"{p.predicted}, {group.called[state]}"

"""Several models, or runs, over the same rows: figures side by side, curves together, rows that differ."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_most, exactly, percent, percent_at_least, radius_at_least
from gpcert.pages.curves import together
from gpcert.pages.groups import Group
from gpcert.pages.points import Point
from gpcert.pages.summary import Shares, clean_accuracy, median_radius, radii_asked
from gpcert.pages.table import data_table
from gpcert.results.wording import while_moving

__all__ = ["comparison", "mcnemar"]


def mcnemar(only_first: int, only_second: int) -> Fraction:
    """The exact two-sided p of McNemar's test: as uneven a split of the rows that differ, by fair coins."""
    n = only_first + only_second
    tail = sum(comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


def comparison(groups: Sequence[Group]) -> Html:
    """An index of all models with their figures, their curves, their costs, and each against the first."""
    radius = _common_radius(groups)
    shared = set.intersection(*({p.row for p in group.points} for group in groups))
    lines = [(group.name, Shares(group.points)) for group in groups]
    labelled = all(shares.labelled for _, shares in lines)
    what = "certified accuracy" if labelled else "proved safe"
    parts = [
        tag(
            "p",
            f"{len(groups)} results over the same data, {len(shared):,} rows in all of them. "
            + _same(groups, radius),
        ),
        _index(groups, radius),
        tag(
            "div",
            together(lines, "Together", what, "Each curve ends where nothing was asked."),
            class_="plots",
        ),
    ]
    if radius is not None and shared:
        parts += [_against(groups[0], other, radius, shared) for other in groups[1:]]
    return join(parts)


def _common_radius(groups: Sequence[Group]) -> float | None:
    """The largest radius at which every group has a verdict of all its rows."""
    asked = [{r for r in radii_asked(g.points) if all(r in p.verdicts for p in g.points)} for g in groups]
    return max(set.intersection(*asked) - {0.0}, default=None)


def _same(groups: Sequence[Group], radius: float | None) -> str:
    told = [while_moving(g.region, exactly(radius or 0.0), g.words) for g in groups]
    scales = [g.document["settings"].get("scale") for g in groups]
    if len(set(told)) == 1 and all(scale == scales[0] for scale in scales):
        return f"All are compared {told[0]}." if radius else "The regions are the same."
    if len(set(told)) == 1:
        return "The scales differ from model to model: the same radius is not the same region."
    return "The regions differ from result to result: the same radius is not the same question."


def _index(groups: Sequence[Group], radius: float | None) -> Html:
    """One line per group: figures, and what they cost."""
    at = "" if radius is None else f" at {exactly(radius)}"
    head = (
        "result",
        "norm",
        "rows",
        "accuracy",
        f"proved safe{at}",
        f"certified accuracy{at}",
        "median certified radius",
        "seconds",
        "boxes searched",
    )
    rows = []
    for k, group in enumerate(groups):
        shares, clean, middle = (
            Shares(group.points),
            clean_accuracy(group.points),
            median_radius(group.points),
        )
        s = None if radius is None else shares.at(radius)
        answers = [row.answer for _, _, rows in group.results for row in rows]
        rows.append(
            (
                tag("a", group.name, href=f"#{_anchor(k)}"),
                str(group.document["settings"].get("norm", "")),
                f"{len(group.points):,}",
                "" if clean is None else percent(clean),
                "" if s is None else percent_at_least(s.safe),
                "" if s is None or s.certified is None else percent_at_least(s.certified),
                "" if middle is None else radius_at_least(middle),
                f"{sum(document['seconds'] for _, document, _ in group.results):.1f}",
                f"{sum(getattr(answer, 'nodes', 0) for answer in answers):,}",
            )
        )
    filled = [j for j in range(len(head)) if any(row[j] for row in rows)]
    return table([head[j] for j in filled], [[row[j] for j in filled] for row in rows], "figures")


def _anchor(k: int) -> str:
    """Where the k-th group begins on the page: after the comparison, with a digit first in its heading."""
    return f"part-{k + 1}"


def _holds(p: Point, radius: float) -> bool:
    """Right, where that is known, and proved safe."""
    return p.correct is not False and p.safe >= radius


def _told(p: Point, radius: float) -> str:
    state = "proved safe" if p.safe >= radius else "can change" if p.unsafe <= radius else "not decided"
    return f"{p.predicted}, {state}"


def _against(first: Group, second: Group, radius: float, shared: set[int]) -> Html:
    """Which rows one of the two holds and the other does not, and whether that may be chance."""
    pairs = [
        (a, b)
        for a, b in zip(*([p for p in g.points if p.row in shared] for g in (first, second)), strict=True)
    ]
    one = sum(_holds(a, radius) and not _holds(b, radius) for a, b in pairs)
    two = sum(_holds(b, radius) and not _holds(a, radius) for a, b in pairs)
    p = mcnemar(one, two)
    held = "right and proved safe" if all(a.correct is not None for a, _ in pairs) else "proved safe"
    text = (
        f"At radius {exactly(radius)}, {one:,} rows are {held} with {first.name} only, {two:,} with "
        f"{second.name} only, {len(pairs) - one - two:,} with both or neither. McNemar's exact test: "
        f"p {'=' if p == 1 else '≤'} {at_most(p)}: {_verdict(p, one, two)}."
    )
    differ = [(a, b) for a, b in pairs if _told(a, radius) != _told(b, radius)]
    head = [
        ("row", "text"),
        ("true", "choice"),
        (first.name, "choice"),
        (second.name, "choice"),
        ("holds with", "choice"),
    ]
    rows = [
        [
            (a.name, ""),
            (a.label or "", ""),
            (_told(a, radius), ""),
            (_told(b, radius), ""),
            (_winner(a, b, radius), ""),
        ]
        for a, b in differ
    ]
    heading = tag("h3", f"{second.name} against {first.name}")
    none = tag("p", "No row changes its prediction or its verdict.")
    return join([heading, tag("p", text), data_table(head, rows, noun="rows that differ") if rows else none])


def _winner(a: Point, b: Point, radius: float) -> str:
    return {(True, False): "the first", (False, True): "the second", (True, True): "both"}.get(
        (_holds(a, radius), _holds(b, radius)), "neither"
    )


def _verdict(p: Fraction, one: int, two: int) -> str:
    if p > Fraction(5, 100):
        return "the difference may be chance"
    return f"more than chance at 5 %, in favour of the {'first' if one > two else 'second'}"

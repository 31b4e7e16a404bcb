"""The table of points.

Rows are written one to a line inside `noscript`: a reader without scripts sees all of them, and the script,
to which they are plain text, draws those that are looked at. Details are lines of the same kind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gpcert.html import Html, tag
from gpcert.numbers import at_least, at_most, exactly, radius_at_least, radius_at_most
from gpcert.pages.details import Pictures, details
from gpcert.pages.groups import Group
from gpcert.pages.html import meaning
from gpcert.pages.points import Point, Verdict, radii_asked, radii_decided

#: Headings that the list of words explains.
_MEANS = {
    "probability": "probability",
    "verdict": "safe",
    "verdict over the box": "safe",
    "attack": "attacked",
    "safe up to": "radius",
    "changes within": "within",
    "accuracy": "clean",
    "proved safe": "safe",
    "accuracy under attack": "attacked",
    "certified accuracy": "certified",
    "median certified radius": "median",
    "boxes searched": "boxes",
    "delta": "range",
}
_HEAVY = 12_000_000  # characters of details; beyond, only the closest counterexamples are in the page


class _Cell(NamedTuple):
    text: str
    look: str = ""


#: Heading, kind ("text", "number" or "choice": what its filter is), and the cell of a point.
_Column = tuple[str, str, Callable[[Point], _Cell]]


def points_table(group: Group, pictures: Pictures, of: int = 1) -> Html:
    """The rows with their details, on a page with so many such tables."""
    columns = _columns(group)
    rows = [[of(point) for _, _, of in columns] for point in group.points]
    head, lines = [column[:2] for column in columns], _lines(group, pictures, of)
    return data_table(head, rows, lines, group.words.rows, group.threshold)


def data_table(
    head: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[tuple[str, str]]],
    more: Sequence[Html] = (),
    noun: str = "rows",
    threshold: float | None = 0.5,
) -> Html:
    """A table by (heading, kind) and rows of (text, look); the script sorts, filters and draws it."""
    cells = []
    for j, (name, kind) in enumerate(head):
        choices = sorted({row[j][0] for row in rows}) if kind == "choice" else []
        key = _MEANS.get(name.partition(" at ")[0])
        explained = {} if key is None else {"title": meaning(key, threshold)}
        cells.append(
            tag("th", name, data_kind=kind, data_choices=json.dumps(choices), scope="col", **explained)
        )
    lines = [_line(row) for row in rows]
    body = f"<table><thead>{tag('tr', *cells)}</thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table>"
    told = [tag("noscript", Html(f'<div class="scroll">{body}</div>'), class_="lines")]
    if more:
        heading = tag("h3", f"Details of all {noun}")
        told.append(tag("noscript", heading, Html("\n" + "\n".join(more) + "\n"), class_="more"))
    return tag("div", *told, class_="data", data_noun=noun)


def _line(row: Sequence[tuple[str, str]]) -> str:
    (name, _), *cells = row
    return "<tr>" + tag("th", _flat(name), scope="row") + "".join(_td(*cell) for cell in cells) + "</tr>"


def _td(text: str, look: str) -> Html:
    return tag("td", _flat(text), class_=look) if look else tag("td", _flat(text))


def _flat(text: str) -> str:
    """On one line."""
    line = " ".join(text.splitlines())
    return Html(line) if isinstance(text, Html) else line


def _lines(group: Group, pictures: Pictures, of: int) -> list[Html]:
    """The details of each point on one line; the closest counterexamples first, until it is too much."""
    points, row = group.points, group.words.row
    order = sorted(range(len(points)), key=lambda k: points[k].unsafe)
    lines, size = [Html("")] * len(points), 0
    for k in order:
        whole = size * of <= _HEAVY
        inside = details(points[k], pictures, whole)
        made = tag("details", tag("summary", f"{row} {points[k].name}"), inside)
        lines[k] = Html(_flat(made))
        size += len(made)
    return lines


def _columns(group: Group) -> list[_Column]:
    """(heading, kind, cell of a point): only columns that some point has something for."""
    points = group.points
    columns: list[_Column] = [(group.words.row, "text", lambda p: _Cell(p.name))]
    if any(p.label is not None for p in points):
        columns.append(("true", "choice", lambda p: _Cell(p.label or "")))
    if any(p.predicted for p in points):
        columns.append(("predicted", "choice", _predicted))
    if any(math.isfinite(p.probability) for p in points):
        columns.append(("probability", "number", _probability))
    for radius in radii_asked(points):
        if any(radius in p.verdicts for p in points):
            columns.append(
                (f"verdict at {exactly(radius)}", "choice", partial(_verdict, radius, group.called))
            )
        if any(radius in p.attacks for p in points):
            columns.append((f"attack at {exactly(radius)}", "choice", partial(_attack, radius)))
    if any(p.verdicts for p in points) and not radii_decided(points):
        columns.append(("radius asked", "number", _own_radius))
        columns.append(("verdict at it", "choice", partial(_own_verdict, group.called)))
    if any(p.boxed for p in points):
        last = "last " if any(len(p.boxed) > 1 for p in points) else ""
        columns.append((f"verdict over the {last}box", "choice", partial(_own_verdict, group.called)))
    if any(p.found for p in points):
        columns.append(("safe up to", "number", _safe))
        columns.append(("changes within", "number", _unsafe))
    name, where = group.ranged
    if name:
        columns.append((f"P({name}){where}, at least", "number", partial(_end, name, 0)))
        columns.append((f"P({name}){where}, at most", "number", partial(_end, name, 1)))
        columns.append((f"delta{where}, at most", "number", partial(_end, name, 2)))
    return columns


def _probability(p: Point) -> _Cell:
    return _Cell(f"{p.probability:.3f}" if math.isfinite(p.probability) else "")


def _predicted(p: Point) -> _Cell:
    return _Cell(p.predicted, "wrong" if p.correct is False else "")


def _verdict(radius: float, called: Mapping[str, str], p: Point) -> _Cell:
    return _said(called, p.verdicts.get(radius))


def _own_radius(p: Point) -> _Cell:
    return _Cell(exactly(max(p.verdicts)) if p.verdicts else "")


def _own_verdict(called: Mapping[str, str], p: Point) -> _Cell:
    return _said(called, p.own)


def _said(called: Mapping[str, str], verdict: Verdict | None) -> _Cell:
    return _Cell("") if verdict is None else _Cell(called[verdict.status], verdict.status)


def _attack(radius: float, p: Point) -> _Cell:
    if radius not in p.attacks:
        return _Cell("")
    return _Cell("changed", "unsafe") if p.attacks[radius].success else _Cell("withstood")


def _safe(p: Point) -> _Cell:
    return _Cell(radius_at_least(max(0.0, p.safe))) if p.found else _Cell("")


def _unsafe(p: Point) -> _Cell:
    if p.found is None:
        return _Cell("")
    return _Cell("none found" if math.isinf(p.unsafe) else radius_at_most(p.unsafe))


def _end(name: str, which: int, p: Point) -> _Cell:
    found = p.range_of(name)
    if found is None:
        return _Cell("")
    value = (found.answer.lower, found.answer.upper, found.delta)[which]
    return _Cell(at_least(value) if which == 0 else at_most(value))

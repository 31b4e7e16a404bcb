"""The table of points.

Rows are written one to a line inside `noscript`: a reader without scripts sees all of them, and the script,
to which they are plain text, draws those that are looked at. Details are lines of the same kind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from gpcert.html import Html, tag
from gpcert.numbers import at_least, at_most, exactly, radius_at_least, radius_at_most
from gpcert.pages.details import details
from gpcert.pages.groups import ResultGroup
from gpcert.pages.html import meaning
from gpcert.pages.points import RowAnswers, RowVerdict, delta, radii_asked, radii_decided

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


def points_table(group: ResultGroup, of: int = 1) -> Html:
    """The rows with their details, on a page with `of` such tables."""
    columns = [column for column in _columns(group) if any(text for text, _ in column[2])]
    rows = list(zip(*(cells for _, _, cells in columns), strict=True))
    lines = _lines(group, of)
    return data_table([column[:2] for column in columns], rows, lines, group.words.rows, group.threshold)


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
    texts = [tag("noscript", Html(f'<div class="scroll">{body}</div>'), class_="lines")]
    if more:
        heading = tag("h3", f"Details of all {noun}")
        texts.append(tag("noscript", heading, Html("\n" + "\n".join(more) + "\n"), class_="more"))
    return tag("div", *texts, class_="data", data_noun=noun)


def _line(row: Sequence[tuple[str, str]]) -> str:
    (name, _), *cells = row
    looks = [(_flat(text), {"class_": look} if look else {}) for text, look in cells]
    return tag("tr", tag("th", _flat(name), scope="row"), *(tag("td", text, **more) for text, more in looks))


def _flat(text: str) -> str:
    """On one line."""
    line = " ".join(text.splitlines())
    return Html(line) if isinstance(text, Html) else line


def _lines(group: ResultGroup, of: int) -> list[Html]:
    """The details of each point on one line; the closest counterexamples first, until it is too much."""
    points, row = group.points, group.words.row
    order = sorted(range(len(points)), key=lambda k: points[k].unsafe)
    lines, size = [Html("")] * len(points), 0
    for k in order:
        whole = size * of <= _HEAVY
        inside = details(points[k], group, whole)
        made = tag("details", tag("summary", f"{row} {points[k].name}"), inside)
        lines[k] = Html(_flat(made))
        size += len(made)
    return lines


def _columns(group: ResultGroup) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """(heading, kind, cells): "text", "number" or "choice" is what its filter is; a cell is (text, look)."""
    points, called = group.points, group.called
    columns = [
        (group.words.row, "text", [(p.name, "") for p in points]),
        ("true", "choice", [(p.label or "", "") for p in points]),
        ("predicted", "choice", [(p.predicted, "wrong" if p.correct is False else "") for p in points]),
        ("probability", "number", [(p.certainty, "") for p in points]),
    ]
    for radius in radii_asked(points):
        verdicts = [_said(called, p.verdicts.get(radius)) for p in points]
        columns.append((f"verdict at {exactly(radius)}", "choice", verdicts))
        columns.append((f"attack at {exactly(radius)}", "choice", [_attack(radius, p) for p in points]))
    own = [_said(called, p.own) for p in points]
    if any(p.verdicts for p in points) and not radii_decided(points):
        asked = [exactly(max(p.verdicts)) if p.verdicts else "" for p in points]
        columns.append(("radius asked", "number", [(text, "") for text in asked]))
        columns.append(("verdict at it", "choice", own))
    if any(p.boxed for p in points):
        last = "last " if any(len(p.boxed) > 1 for p in points) else ""
        columns.append((f"verdict over the {last}box", "choice", own))
    safe = [radius_at_least(max(0.0, p.safe)) if p.found else "" for p in points]
    broken = ["none found" if math.isinf(p.unsafe) else radius_at_most(p.unsafe) for p in points]
    columns.append(("safe up to", "number", [(text, "") for text in safe]))
    within = [text if p.found else "" for p, text in zip(points, broken, strict=True)]
    columns.append(("changes within", "number", [(text, "") for text in within]))
    name, where = group.ranged
    ranges = [p.range_of(name) for p in points]
    low = ["" if r is None else at_least(r.lower) for r in ranges]
    high = ["" if r is None else at_most(r.upper) for r in ranges]
    wide = ["" if r is None else at_most(delta(r)) for r in ranges]
    for heading, ends in ((f"P({name}){where}, at least", low), (f"P({name}){where}, at most", high)):
        columns.append((heading, "number", [(text, "") for text in ends]))
    columns.append((f"delta{where}, at most", "number", [(text, "") for text in wide]))
    return columns


def _said(called: Mapping[str, str], verdict: RowVerdict | None) -> tuple[str, str]:
    return ("", "") if verdict is None else (called[verdict.status], verdict.status)


def _attack(radius: float, p: RowAnswers) -> tuple[str, str]:
    if radius not in p.attacks:
        return "", ""
    return ("changed", "unsafe") if p.attacks[radius].success else ("withstood", "")

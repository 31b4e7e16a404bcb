"""The table of points, and the details of each: ranges, counterexample, pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_least, at_most, between, exactly, radius_at_least, radius_at_most
from gpcert.pages.pictures import grey_image, heat_image
from gpcert.pages.points import Point, Ranged
from gpcert.pages.summary import radii_asked
from gpcert.results import ProbabilityRange
from gpcert.validation import Float

__all__ = ["Pictures", "card", "details", "points_table"]

_MOVES = 12  # features listed of a counterexample, the largest moves first


class Pictures(NamedTuple):
    """How to show a point: shape of its image if it is one, feature names, values of black and white."""

    shape: tuple[int, int] | None
    names: Sequence[str]
    low: float
    high: float


class _Cell(NamedTuple):
    text: str
    key: str
    look: str = ""


#: Heading, kind ("text", "number" or "choice": what its filter is), and the cell of a point.
_Column = tuple[str, str, Callable[[Point], _Cell]]


def points_table(points: Sequence[Point], pictures: Pictures) -> Html:
    """The table with its search box; sorting and filters are the script's work."""
    columns = _columns(points)
    head = [tag("th", tag("button", name, type="button"), data_kind=kind) for name, kind, _ in columns]
    rows, details_ = [], []
    for point in points:
        name = f"d{point.row}"
        opener = tag("button", point.name, type="button", data_detail=name, aria_expanded="false")
        cells = [tag("th", opener, data_v=point.name)]
        for _, _, of in columns[1:]:
            cell = of(point)
            cells.append(tag("td", cell.text, data_v=cell.key, class_=cell.look))
        rows.append(tag("tr", *cells))
        details_.append(tag("template", details(point, pictures), id=name))
    tools = tag(
        "div",
        Html('<input id="search" type="search" placeholder="search all columns" aria-label="search">'),
        tag("span", "", id="count", class_="soft", role="status"),
        class_="tools",
    )
    body = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows))
    more = Html('<button id="more" class="more" type="button" hidden>show more</button>')
    return join([tools, tag("div", body, class_="scroll"), more, *details_])


def _columns(points: Sequence[Point]) -> list[_Column]:
    """(heading, kind, cell of a point): only columns that some point has something for."""
    columns: list[_Column] = [("point", "text", lambda p: _Cell(p.name, p.name))]
    if any(p.label is not None for p in points):
        columns.append(("true", "choice", lambda p: _Cell(p.label or "", p.label or "")))
    if any(p.predicted for p in points):
        columns.append(("predicted", "choice", _predicted))
        columns.append(("probability", "number", _probability))
    for radius in radii_asked(points):
        if any(radius in p.verdicts for p in points):
            columns.append((f"verdict, r = {exactly(radius)}", "choice", partial(_verdict, radius)))
        if any(radius in p.attacks for p in points):
            columns.append((f"attack, r = {exactly(radius)}", "choice", partial(_attack, radius)))
    if any(p.found for p in points):
        columns.append(("safe radius", "number", _safe))
        columns.append(("unsafe radius", "number", _unsafe))
    name = next((p.ranges[-1].name for p in points if p.ranges), None)
    if name is not None:
        columns.append((f"P({name}) at least", "number", partial(_end, name, 0)))
        columns.append((f"P({name}) at most", "number", partial(_end, name, 1)))
        columns.append(("delta at most", "number", partial(_end, name, 2)))
    return columns


def _probability(p: Point) -> _Cell:
    return _Cell(f"{p.probability:.3f}", repr(p.probability))


def _predicted(p: Point) -> _Cell:
    return _Cell(p.predicted, p.predicted, "wrong" if p.correct is False else "")


def _verdict(radius: float, p: Point) -> _Cell:
    status = p.verdicts[radius].status if radius in p.verdicts else ""
    return _Cell(status, status, status)


def _attack(radius: float, p: Point) -> _Cell:
    if radius not in p.attacks:
        return _Cell("", "")
    text = "label changed" if p.attacks[radius].success else "withstood"
    return _Cell(text, text, "unsafe" if p.attacks[radius].success else "")


def _safe(p: Point) -> _Cell:
    return _Cell(radius_at_least(p.found[0]), repr(p.found[0])) if p.found else _Cell("", "")


def _unsafe(p: Point) -> _Cell:
    if p.found is None:
        return _Cell("", "")
    if math.isinf(p.found[1]):
        return _Cell("none found", "Infinity")
    return _Cell(radius_at_most(p.found[1]), repr(p.found[1]))


def _end(name: str, which: int, p: Point) -> _Cell:
    found = p.range_of(name)
    if found is None:
        return _Cell("", "")
    value = (found.answer.lower, found.answer.upper, found.delta)[which]
    return _Cell(at_least(value) if which == 0 else at_most(value), repr(float(value)))


def card(point: Point, pictures: Pictures) -> Html:
    """A point with its heading, for the gallery."""
    true = "" if point.label is None else f"true {point.label}, "
    mark = tag("span", f"predicted {point.predicted}", class_="wrong" if point.correct is False else "")
    return tag("article", tag("h3", f"{point.name}: {true}", mark), details(point, pictures), class_="card")


def details(point: Point, pictures: Pictures) -> Html:
    """What is known of a point, in words and pictures."""
    parts = []
    other = point.counterexample
    attacked = [a for a in point.attacks.values() if a.success]
    if other is None and attacked:
        other = attacked[0].x
    if pictures.shape is not None and point.x is not None and point.x.size == math.prod(pictures.shape):
        parts.append(_images(point, other, pictures))
    elif other is not None and point.x is not None and other.shape == point.x.shape:
        parts.append(_moves(point.x, other, pictures.names))
    return join([*parts, _sentence(point), *(_range(found) for found in point.ranges)])


def _sentence(point: Point) -> Html:
    said = []
    for radius, verdict in sorted(point.verdicts.items()):
        text = {
            "safe": f"r = {exactly(radius)}: the label cannot change",
            "unsafe": f"r = {exactly(radius)}: the label can change",
            "unknown": f"r = {exactly(radius)}: not decided",
        }[verdict.status]
        margin = {
            "safe": f"at least {at_least(verdict.margin[0])}",
            "unsafe": f"at most {at_most(verdict.margin[1])}",
            "unknown": f"in {between(*verdict.margin)}",
        }[verdict.status]
        said.append(tag("li", tag("span", text, class_=verdict.status), f" (margin {margin})"))
    if point.found is not None:
        safe, unsafe, _ = point.found
        known = "" if math.isinf(unsafe) else f"another label within {radius_at_most(unsafe)}"
        told = f"proved safe up to {radius_at_least(safe)}; {known or 'no counterexample found'}"
        said.append(tag("li", told))
    for radius, attack in sorted(point.attacks.items()):
        did = "changed the label" if attack.success else "did not change the label"
        told = f"attack {attack.method}, r = {exactly(radius)}: {did}, probability {attack.probability:.3f}"
        said.append(tag("li", told))
    return tag("ul", *said) if said else Html("")


def _range(found: Ranged) -> Html:
    where = "box" if found.radius is None else f"r = {exactly(found.radius)}"
    r = found.answer
    text = f"{where}: P({found.name}) in {between(r.lower, r.upper)}, "
    text += (
        f"min in {between(r.min.lower, r.min.upper)}, max in {between(r.max.lower, r.max.upper)}, {r.status}"
    )
    return join([tag("p", text), _bar(found.name, r)])


def _bar(name: str, found: ProbabilityRange) -> Html:
    """The range on the line from 0 to 1, which is 200 wide: faint what the search left open."""

    def span(low: float, high: float, look: str) -> Html:
        x, width = f"{200 * low:.2f}", f"{200 * max(0.0, high - low):.2f}"
        return tag("rect", x=x, y="3", width=width, height="10", class_=look)

    parts = (
        span(0.0, 1.0, "frame"),
        span(found.lower, found.upper, "wide"),
        span(found.min.upper, found.max.lower, "sure"),
        tag("line", x1="100", x2="100", y1="0", y2="16", class_="half"),
    )
    told = f"P({name}) in {between(found.lower, found.upper)}"
    return tag("svg", *parts, viewBox="-2 0 204 16", class_="bar", role="img", aria_label=told)


def _images(point: Point, other: Float | None, pictures: Pictures) -> Html:
    assert pictures.shape is not None
    assert point.x is not None
    grey = pictures.low, pictures.high
    shown = [_figure(grey_image(point.x.reshape(pictures.shape), *grey, f"image {point.name}"), "original")]
    if other is not None and other.shape == point.x.shape:
        moved = (other - point.x).reshape(pictures.shape)
        picture = grey_image(other.reshape(pictures.shape), *grey, f"counterexample to {point.name}")
        shown.append(_figure(picture, "counterexample"))
        most = float(np.abs(moved).max())
        told = f"{np.count_nonzero(moved)} pixels moved, by up to about {most:.3g}"
        shown.append(_figure(heat_image(moved, most, told), "what moved"))
    for found in point.explained[-1:]:
        if found.value.shape == point.x.shape:
            map_ = found.value.reshape(pictures.shape)
            picture = heat_image(map_, float(np.abs(map_).max()), "influence of each pixel")
            shown.append(_figure(picture, "influence"))
    return tag("div", *shown, class_="pictures")


def _figure(picture: Html, caption: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption))


def _moves(x: Float, other: Float, names: Sequence[str]) -> Html:
    moved = np.flatnonzero(x != other)
    order = moved[np.argsort(-np.abs(other - x)[moved], kind="stable")][:_MOVES].tolist()
    rows = [(names[j] if j < len(names) else f"x{j}", f"{x[j]:.6g}", f"{other[j]:.6g}") for j in order]
    rest = "" if len(moved) <= _MOVES else f", {_MOVES} of {len(moved)} features"
    return table(("feature", "from", f"counterexample{rest}"), rows)

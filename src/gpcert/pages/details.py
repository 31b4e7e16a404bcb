"""What is known of one point: verdicts, ranges, counterexample, pictures."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_least, at_most, between, exactly, radius_at_least, radius_at_most
from gpcert.pages.pictures import grey_image, heat_image
from gpcert.pages.points import Point, Ranged
from gpcert.results import ProbabilityRange
from gpcert.results.wording import Words
from gpcert.validation import Float

__all__ = ["Pictures", "card", "details"]

_MOVES = 12  # features listed of a counterexample without a click, the largest moves first
_SHORT = 6  # characters of a radius that somebody typed


class Pictures(NamedTuple):
    """How to show a point: shape of its image if it is one, words, units of features, black and white."""

    shape: tuple[int, int] | None
    words: Words
    scale: Float | None
    low: float
    high: float


def card(point: Point, pictures: Pictures) -> Html:
    """A point with its heading, for the gallery."""
    true = "" if point.label is None else f"true {point.label}, "
    mark = tag("span", f"predicted {point.predicted}", class_="wrong" if point.correct is False else "")
    return tag(
        "article", tag("h3", f"row {point.name}: {true}", mark), details(point, pictures), class_="card"
    )


def details(point: Point, pictures: Pictures, whole: bool = True) -> Html:
    """What is known of a point, in words and pictures; `whole`: with its counterexample."""
    parts, found = [], point.counterexample if whole else None
    if (
        pictures.shape is not None
        and whole
        and point.x is not None
        and point.x.size == math.prod(pictures.shape)
    ):
        parts.append(_images(point, found, pictures))
    elif found is not None and point.x is not None and found[1].shape == point.x.shape:
        parts.append(_moves(point.x, *found, pictures))
    elif point.counterexample is not None and not whole:
        parts.append(tag("p", "Its counterexample is in the results file: this page holds the closest ones."))
    return join([_sentence(point), *parts, *(_range(found) for found in point.ranges)])


def _sentence(point: Point) -> Html:
    said = []
    for radius, verdict in sorted(point.verdicts.items()):
        text = {
            "safe": f"radius {exactly(radius)}: the class cannot change",
            "unsafe": f"radius {exactly(radius)}: the class can change",
            "unknown": f"radius {exactly(radius)}: not decided",
        }[verdict.status]
        margin = {
            "safe": f"at least {at_least(verdict.margin[0])}",
            "unsafe": f"at most {at_most(verdict.margin[1])}",
            "unknown": f"in {between(*verdict.margin)}",
        }[verdict.status]
        said.append(tag("li", tag("span", text, class_=verdict.status), f" (margin {margin})"))
    if point.found is not None:
        known = "" if math.isinf(point.unsafe) else f"another class within {radius_at_most(point.unsafe)}"
        told = (
            f"proved safe up to {radius_at_least(max(0.0, point.safe))}; {known or 'no counterexample found'}"
        )
        said.append(tag("li", told))
    for radius, attack in sorted(point.attacks.items()):
        did = "changed the class" if attack.success else "did not change the class"
        told = (
            f"attack {attack.method}, radius {exactly(radius)}: {did}, probability {attack.probability:.3f}"
        )
        said.append(tag("li", told))
    return tag("ul", *said) if said else Html("")


def _range(found: Ranged) -> Html:
    where = "box" if found.radius is None else f"radius {exactly(found.radius)}"
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

    parts = [
        span(0.0, 1.0, "frame"),
        span(found.lower, found.upper, "wide"),
        span(found.min.upper, found.max.lower, "sure"),
        tag("line", x1="100", x2="100", y1="0", y2="16", class_="half"),
    ]
    marks = (("0", 0, ""), ("1/2", 100, "middle"), ("1", 200, "end"))
    parts += [tag("text", text, x=f"{x}", y="25", class_=f"tick {look}") for text, x, look in marks]
    told = f"P({name}) in {between(found.lower, found.upper)}"
    picture = tag("svg", *parts, viewBox="-2 0 204 27", class_="bar", role="img", aria_label=told)
    keys = (("plain", "reached, proved"), ("faint", "not excluded"))
    legend = join(join([tag("span", "", class_=f"key {look}"), f"{text} "]) for look, text in keys)
    return tag("figure", picture, tag("figcaption", legend))


def _images(point: Point, found: tuple[float, Float] | None, pictures: Pictures) -> Html:
    assert pictures.shape is not None
    assert point.x is not None
    grey = pictures.low, pictures.high
    shown = [_figure(grey_image(point.x.reshape(pictures.shape), *grey, f"image {point.name}"), "original")]
    if found is not None and found[1].shape == point.x.shape:
        radius, other = found
        moved = (other - point.x).reshape(pictures.shape)
        picture = grey_image(other.reshape(pictures.shape), *grey, f"counterexample to {point.name}")
        shown.append(_figure(picture, f"another class, radius {_near(radius)}"))
        most = float(np.abs(moved).max())
        told = f"{np.count_nonzero(moved)} pixels moved, by up to {radius_at_most(most)}"
        shown.append(_figure(heat_image(moved, most, told), told))
    for influence in point.explained[-1:]:
        if influence.value.shape == point.x.shape:
            map_ = influence.value.reshape(pictures.shape)
            picture = heat_image(map_, float(np.abs(map_).max()), "influence of each pixel")
            shown.append(_figure(picture, f"influence on P({influence.name})"))
    return tag("div", *shown, class_="pictures")


def _near(radius: float) -> str:
    """A radius as it was asked, else rounded up."""
    text = exactly(radius)
    return text if len(text) <= _SHORT else radius_at_most(radius)


def _figure(picture: Html, caption: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption))


def _moves(x: Float, radius: float, other: Float, pictures: Pictures) -> Html:
    """A counterexample feature by feature, by change in units of the scale; what is less, on demand."""
    unit = np.ones_like(x) if pictures.scale is None else pictures.scale
    with np.errstate(over="ignore"):
        change = (other - x) / unit
    order = np.argsort(-np.abs(change), kind="stable").tolist()
    head = ["feature", "value", "changed to", "difference"]
    head += [f"in {pictures.words.unit or 'units of the scale'}"] if pictures.scale is not None else []
    rows = [
        (
            pictures.words.feature(j),
            f"{x[j]:.6g}",
            f"{other[j]:.6g}",
            _signed(float(other[j] - x[j])),
            *([_signed(float(change[j]))] if pictures.scale is not None else []),
        )
        for j in order
    ]
    told = tag("p", f"An input of another class, at radius {_near(radius)}, the largest changes first:")
    first = table(head, rows[:_MOVES])
    rest = rows[_MOVES:]
    more = tag("details", tag("summary", f"the other {len(rest)} {pictures.words.noun}"), table(head, rest))
    return join([told, first, more] if rest else [told, first])


def _signed(value: float) -> str:
    """A number with its sign, without -0."""
    text = f"{value:+.4g}"
    return "0" if float(text) == 0 else text

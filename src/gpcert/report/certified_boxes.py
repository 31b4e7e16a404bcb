"""Certified boxes in the plane: a picture with their ranges and attaining points, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from gpcert.report.asked import Asked, between
from gpcert.report.figures import PlaneBox, plane
from gpcert.report.html import Html, join, table, tag
from gpcert.report.sections import probability_plane
from gpcert.report.study import Study

__all__ = ["boxes_in_plane"]


def boxes_in_plane(study: Study, asked: Sequence[Asked]) -> Html:
    """The probability over the plane, and the boxes with their certified ranges."""
    axes, p = probability_plane(study)
    first, second, *_ = study.data.feature_names
    scale = f"P(class {asked[0].name})"
    named = list(zip(ascii_uppercase, asked, strict=False))
    picture = plane(axes, p, {}, (first, second), scale, [_drawn(letter, one) for letter, one in named])
    caption = (
        f"Contours of {scale}; the line is probability one half. Each box carries its certified range, which "
        f"{scale} does not leave anywhere in the box. Triangles are the points that attain the inner ends of "
        "the enclosures: down the smallest value, up the largest."
    )
    head = ("box", first, second, "certified range", "min in", "max in", "status", "nodes", "time")
    rows = [(letter, *_cells(one)) for letter, one in named]
    return join([tag("figure", picture, tag("figcaption", caption), class_="plot"), table(head, rows)])


def _drawn(letter: str, one: Asked) -> PlaneBox:
    box, found = one.region.box(), one.range
    return PlaneBox(box.lower, box.upper, found.argmin, found.argmax, f"{letter} {between(found)}")


def _cells(one: Asked) -> tuple[str, ...]:
    box, found = one.region.box(), one.range
    sides = (f"{low:g} to {high:g}" for low, high in zip(box.lower, box.upper, strict=True))
    ranges = (between(found), between(found.min), between(found.max))
    return (*sides, *ranges, found.status, str(found.nodes), f"{1000 * found.seconds:.0f} ms")

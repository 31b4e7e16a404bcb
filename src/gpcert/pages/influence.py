"""Influences of features: bars with their proved intervals, of pixels a picture, too."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import between, exact_mean, exactly
from gpcert.pages.groups import Group
from gpcert.pages.points import Explained, Point
from gpcert.pages.words import word
from gpcert.pictures import heat_image
from gpcert.results.phrases import Words, far, within_limits

_BARS = 15  # features of an explanation that are drawn, the most influential first
_OWN = 8  # of one row
_LETTERS = 30  # of a feature's name beside its bar, for which there is room
_PRINTED = 60  # features of a list that is unfolded on paper


def influences(group: Group, shape: tuple[int, int] | None) -> Html:
    """Mean influence of each feature as bars with proved intervals; of pixels, a picture, too."""
    every = [p.explained[-1] for p in group.points if p.explained]
    if not every:
        return Html("")
    first, size = every[0], len(every[0].value)
    kind = first.name, first.ball.radius, size
    found = [e for e in every if (e.name, e.ball.radius, len(e.value)) == kind]
    means = _means(found, size)
    order = sorted(range(size), key=lambda j: -abs(means[j][0] + means[j][1]))
    noun = group.words.noun
    text = (
        f"How much each of the {noun} alone, off by up to {_reach(first, group.words)}, moves "
        f"P({first.name}), averaged over {group.words.counted(len(found))}. To the right: more of it speaks "
        f"for {first.name}. The solid bar is proved; the true value may be as far as the faint end."
    )
    drawn = [tag("figure", _bars([(group.words.feature(j), *means[j]) for j in order[:_BARS]]))]
    if shape is not None and size == shape[0] * shape[1]:
        value = np.array([float(low + high) / 2 for low, high in means])
        picture = heat_image(value.reshape(shape), float(np.abs(value).max()), "mean influence of pixels")
        told = f"orange: brighter speaks for {first.name}; blue: against"
        caption = tag("figcaption", told)
        drawn.append(tag("figure", picture, caption, class_="wide"))
    rows = [(group.words.feature(j), between(*means[j])) for j in order]
    head = ("feature", join(["mean ", word("influence", "influence"), ", proved in"]))
    all_ = tag("details", tag("summary", f"all {size} {noun}"), table(head, rows), class_=_fold(size))
    return join([tag("p", text), tag("div", *drawn, class_="pictures"), all_])


def _fold(size: int) -> str:
    """Lists of many pages stay folded on paper."""
    return "long" if size > _PRINTED else ""


def own_influences(point: Point, words: Words) -> Html:
    """What moves the probability of one row, the most influential features first."""
    if not point.explained:
        return Html("")
    found = point.explained[-1]
    ends = _means([found], len(found.value))
    order = sorted(range(len(ends)), key=lambda j: -abs(ends[j][0] + ends[j][1]))[:_OWN]
    reach = _reach(found, words)
    told = f"Influence on P({found.name}) of one of the {words.noun} alone, off by up to {reach}:"
    bars = _bars([(words.feature(j), *ends[j]) for j in order], 150.0)
    return tag("figure", tag("p", told), bars, class_="own")


def _reach(found: Explained, words: Words) -> str:
    """How far one feature moves alone, and within which limits."""
    return far(exactly(found.ball.radius), words, found.ball) + within_limits(found.ball, words)


def _means(found: Sequence[Explained], size: int) -> list[tuple[Fraction, Fraction]]:
    return [
        (exact_mean([e.lower[j] for e in found]), exact_mean([e.upper[j] for e in found]))
        for j in range(size)
    ]


def _bars(rows: Sequence[tuple[str, Fraction, Fraction]], width: float = 330.0) -> Html:
    """Bars from 0: solid up to the nearer end of the interval, faint to the farther."""
    left, line = 12.0 + 7.5 * min(_LETTERS, max(len(name) for name, *_ in rows)), 21.0
    most = max(max(abs(low), abs(high)) for _, low, high in rows) or Fraction(1)
    negative = any(low < 0 for _, low, _ in rows)
    zero = left + (width / 2 if negative else 0.0)
    half = width / 2 if negative else width

    def x(value: Fraction) -> float:
        return zero + float(value / most) * half

    parts = [
        tag("line", x1=f"{zero:.1f}", x2=f"{zero:.1f}", y1="0", y2=f"{line * len(rows):g}", class_="grid")
    ]
    for k, (name, low, high) in enumerate(rows):
        near = max(low, Fraction()) if low + high >= 0 else min(high, Fraction())
        far = min(x(low), zero), max(x(high), zero)
        inner = sorted((zero, x(near)))
        spans = ((far[0], far[1], "wide"), (inner[0], inner[1], "sure"))
        bars = [
            tag("rect", x=f"{a:.1f}", y=f"{line * k + 4:.1f}", width=f"{b - a:.1f}", height="13", class_=look)
            for a, b, look in spans
        ]
        y = f"{line * k + 15:.1f}"
        shown = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        parts.append(
            tag(
                "g",
                tag("title", f"{name}: {between(low, high)}"),
                tag("text", shown, x=f"{left - 8:g}", y=y, class_="name end"),
                *bars,
                tag("text", between(low, high), x=f"{left + width + 8:g}", y=y, class_="tick"),
                class_="up" if low + high >= 0 else "down",
            )
        )
    box = f"0 0 {left + width + 110:g} {line * len(rows):g}"
    return tag(
        "svg", *parts, viewBox=box, role="img", aria_label="influences with proved intervals", class_="bars"
    )

"""Pictures of many points: a map with a slider over the radius, histograms, influences."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import (
    at_most,
    between,
    exact_mean,
    exactly,
    percent_at_least,
    radius_at_least,
    radius_at_most,
)
from gpcert.pages.groups import Group
from gpcert.pages.pictures import heat_image
from gpcert.pages.points import Explained, Point
from gpcert.pages.summary import Shares, radii_asked
from gpcert.pages.svg import Plot, captioned, ticks
from gpcert.regions import Ball
from gpcert.results.wording import median

__all__ = ["distributions", "influences", "point_map"]

_E = TypeVar("_E", float, Fraction)
_BARS = 15  # features of an explanation that are drawn, the most influential first
_MARKS = 2000  # points drawn one by one
_STOPS = 100  # positions of the slider


def point_map(group: Group, radius: float) -> Html:
    """Every row as a mark in the colour of what is known at a radius; the script adds a slider for it."""
    shares, points, classes = Shares(group.points), group.points, list(group.words.classes)
    stops = _stops(shares, points)
    if not stops:
        return Html("")
    truth = [classes.index(p.label) if p.label in classes else -1 for p in points] if shares.labelled else []
    data = {
        "safe": [None if math.isinf(r) else r for r in shares.safe.tolist()],
        "unsafe": [None if math.isinf(r) else r for r in shares.unsafe.tolist()],
        "right": shares.right.astype(int).tolist() if shares.labelled else [],
        "truth": truth,
        "classes": classes,
        "stops": stops,
        "told": list(map(exactly, stops)),
        "start": min(range(len(stops)), key=lambda k: abs(stops[k] - radius)),
    }
    parts = [tag("p", _counted(shares, radius), class_="readout")]
    if len(points) <= _MARKS:
        parts += [_drawn(group, shares, radius), _LEGEND]
    return tag("div", *parts, class_="slide", data_rows=json.dumps(data))


def _stops(shares: Shares, points: Sequence[Point]) -> list[float]:
    """Radii for the slider, doubles of short decimals: those asked, and where all were searched for, more."""
    asked, ends = set(radii_asked(points)), shares.ends()
    if ends and all(p.found for p in points):
        marks = ticks(0.0, ends[-1])
        step = Fraction(repr(marks[1])).limit_denominator(10**12) / 20 if len(marks) > 1 else Fraction()
        asked |= {float(k * step) for k in range(1, _STOPS + 1) if 0 < k * step <= ends[-1]}
    return sorted(r for r in asked if r > 0)


def _counted(shares: Shares, radius: float) -> str:
    """What the script says at other radii, at this one."""
    n, s = len(shares.safe), shares.at(radius)
    safe, unsafe = int(n * s.safe), int(n * s.unsafe)
    told = f"Radius {exactly(radius)}: {safe} of {n} rows proved safe ({percent_at_least(s.safe)}), "
    told += f"{unsafe} can change, {n - safe - unsafe} not decided"
    if s.certified is not None:
        told += f"; right and proved safe: {int(n * s.certified)} of {n} ({percent_at_least(s.certified)})"
    return told + "."


_LEGEND = tag(
    "p",
    *(
        join([tag("span", "", class_=f"key {look}"), text])
        for look, text in (("good", "proved safe "), ("bad ring", "can change "), ("dim", "not decided "))
    ),
    tag("span", "", class_="key missed"),
    "black rim: predicted wrongly",
    class_="soft legend",
)


def _drawn(group: Group, shares: Shares, radius: float) -> Html:
    """On a plane where two features move; else side by side, the most fragile first."""
    region, points = group.region, group.points
    moving = np.flatnonzero(region.moving()).tolist() if isinstance(region, Ball) else []
    flat = len(moving) == 2 and all(p.x is not None for p in points)
    if flat:
        x, y = (np.array([p.x[j] for p in points if p.x is not None]) for j in moving)
        pads = [0.04 * float(np.ptp(v)) for v in (x, y)]
        ends = [(float(v.min()) - pad, float(v.max()) + pad) for v, pad in zip((x, y), pads, strict=True)]
        names = group.words.feature(moving[0]), group.words.feature(moving[1])
        plot = Plot(ends[0][1], ends[1][1], names, low=ends[0][0], y_low=ends[1][0])
        places = [plot.place(*pair) for pair in zip(x.tolist(), y.tolist(), strict=True)]
        for mark in _marks(points, places, shares, radius):
            plot.add(mark)
        return plot.html("rows on the plane of the two features that move, by what is known at the radius")
    order = np.argsort(shares.safe + np.minimum(shares.unsafe, 1e300), kind="stable").tolist()
    marks = [tag("i", class_=_look(shares, k, radius), data_k=str(k), title=_hover(points[k])) for k in order]
    return tag(
        "div", *marks, class_="marks", role="img", aria_label="one mark for each row, the most fragile first"
    )


def _look(shares: Shares, k: int, radius: float) -> str:
    state = "safe" if shares.safe[k] >= radius else "unsafe" if shares.unsafe[k] <= radius else "unknown"
    return f"mark {state} wrong" if shares.labelled and not shares.right[k] else f"mark {state}"


def _marks(
    points: Sequence[Point], places: Sequence[tuple[float, float]], shares: Shares, radius: float
) -> list[Html]:
    return [
        tag(
            "circle",
            tag("title", _hover(p)),
            cx=f"{x:.1f}",
            cy=f"{y:.1f}",
            r="4.5",
            class_=_look(shares, k, radius),
            data_k=str(k),
        )
        for k, (p, (x, y)) in enumerate(zip(points, places, strict=True))
    ]


def _hover(p: Point) -> str:
    true = "" if p.label is None else f", true {p.label}"
    told = f"row {p.name}{true}, predicted {p.predicted}"
    told += f" ({p.probability:.3f})" if math.isfinite(p.probability) else ""
    told += f"; proved safe up to {radius_at_least(p.safe)}" if p.safe > 0 and math.isfinite(p.safe) else ""
    return told + (f"; another class within {radius_at_most(p.unsafe)}" if math.isfinite(p.unsafe) else "")


def distributions(group: Group) -> Html:
    """Histograms of certified radii and of delta."""
    figures, points = [], group.points
    radii = [max(0.0, p.safe) for p in points if p.found and math.isfinite(p.safe)]
    if radii:
        figures.append(_histogram(radii, "radius proved safe", "Certified radii", radius_at_least))
    ranges = [p.ranges[-1] for p in points if p.ranges]
    deltas = [r.delta for r in ranges if r.name == ranges[0].name]
    if deltas:
        name = f"largest minus smallest P({ranges[0].name}), at most"
        figures.append(_histogram(deltas, name, "How far the probability moves (delta)", at_most, upper=True))
    return tag("div", *figures, class_="plots") if figures else Html("")


def _histogram(
    values: Sequence[_E], name: str, title: str, told: Callable[[_E], str], upper: bool = False
) -> Html:
    """`told` rounds a value to the side on which it still holds; so does the median, `upper` or lower."""
    most = float(max(values)) or 1.0
    marks = ticks(0.0, most)
    step = (marks[1] - marks[0]) / 4 if len(marks) > 1 else most  # ends of bars are round numbers
    counts = Counter(math.floor(float(value) / step) for value in values)
    plot = Plot(step * (max(counts) + 1), max(counts.values()) * 1.05, (name, "rows"))
    for k, count in sorted(counts.items()):
        told_bar = f"{count} from {k * step:.4g} to {(k + 1) * step:.4g}"
        plot.bar(k * step, (k + 1) * step, count, "plain", told_bar)
    middle = median(values, upper)
    caption = f"median {told(middle)}, smallest {told(min(values))}, largest {told(max(values))}"  # type: ignore[arg-type]
    return captioned(plot.html(f"histogram: {name}"), title, (), caption)


def influences(group: Group, shape: tuple[int, int] | None) -> Html:
    """Mean influence of each feature as bars with proved intervals; of pixels, a picture, too."""
    every = [p.explained[-1] for p in group.points if p.explained]
    if not every:
        return Html("")
    first, size = every[0], len(every[0].value)
    found = [e for e in every if (e.name, e.radius, len(e.value)) == (first.name, first.radius, size)]
    means = _means(found, size)
    order = sorted(range(size), key=lambda j: -abs(means[j][0] + means[j][1]))
    unit = f" {group.words.unit}" if group.words.unit else ""
    noun = group.words.noun
    text = (
        f"How much each of the {noun} alone, off by up to {exactly(first.radius)}{unit}, moves "
        f"P({first.name}), averaged over {len(found)} rows. To the right: more of it speaks for "
        f"{first.name}. The dark bar is proved; the light end is how far the true value may still lie."
    )
    drawn = [tag("figure", _bars([(group.words.feature(j), *means[j]) for j in order[:_BARS]]))]
    if shape is not None and size == shape[0] * shape[1]:
        value = np.array([float(low + high) / 2 for low, high in means])
        picture = heat_image(value.reshape(shape), float(np.abs(value).max()), "mean influence of pixels")
        caption = tag("figcaption", f"orange: brighter speaks for {first.name}; blue: against")
        drawn.append(tag("figure", picture, caption, class_="wide"))
    rows = [(group.words.feature(j), between(*means[j])) for j in order]
    all_ = tag(
        "details", tag("summary", f"all {size} {noun}"), table(("feature", "mean influence, proved in"), rows)
    )
    return join([tag("p", text), tag("div", *drawn, class_="pictures"), all_])


def _means(found: Sequence[Explained], size: int) -> list[tuple[Fraction, Fraction]]:
    return [
        (exact_mean([e.lower[j] for e in found]), exact_mean([e.upper[j] for e in found]))
        for j in range(size)
    ]


def _bars(rows: Sequence[tuple[str, Fraction, Fraction]]) -> Html:
    """Bars from 0: dark up to the nearer end of the interval, light to the farther."""
    left, width, line = 190.0, 330.0, 21.0
    most = max(max(abs(low), abs(high)) for _, low, high in rows) or Fraction(1)
    negative = any(low < 0 for _, low, _ in rows)
    zero = left + (width / 2 if negative else 0.0)
    unit = (width / 2 if negative else width) / float(most)
    parts = [
        tag("line", x1=f"{zero:.1f}", x2=f"{zero:.1f}", y1="0", y2=f"{line * len(rows):g}", class_="grid")
    ]
    for k, (name, low, high) in enumerate(rows):
        near = max(low, Fraction()) if low + high >= 0 else min(high, Fraction())
        far = min(zero + float(low) * unit, zero), max(zero + float(high) * unit, zero)
        inner = sorted((zero, zero + float(near) * unit))
        spans = ((far[0], far[1], "wide"), (inner[0], inner[1], "sure"))
        bars = [
            tag("rect", x=f"{a:.1f}", y=f"{line * k + 4:.1f}", width=f"{b - a:.1f}", height="13", class_=look)
            for a, b, look in spans
        ]
        y = f"{line * k + 15:.1f}"
        shown = name if len(name) <= 30 else name[:29] + "…"
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

"""Pictures of many points: a map with a slider over the radius, histograms, influences."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from gpcert.html import Html, join, tag
from gpcert.numbers import (
    at_most,
    percent,
    radius_at_least,
    radius_at_most,
)
from gpcert.pages.groups import Group
from gpcert.pages.points import Point
from gpcert.pages.summary import Shares, radii_asked
from gpcert.pages.svg import Plot, captioned, ticks
from gpcert.regions import Ball
from gpcert.results.wording import median

_E = TypeVar("_E", float, Fraction)
_MARKS = 2000  # points drawn one by one
_STOPS = 100  # positions of the slider


def point_map(group: Group, radius: float) -> Html:
    """Every row as a mark in the colour of what is known at a radius; the script adds a slider for it."""
    shares, points, classes = Shares(group.points), group.points, list(group.words.classes)
    stops = _stops(shares, points, radius)
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
        "told": list(map(group.far, stops)),
        "start": min(range(len(stops)), key=lambda k: abs(stops[k] - radius)),
        "noun": group.words.rows,
        "lost": group.called["unsafe"],
    }
    parts = [tag("p", _counted(group, shares, radius), class_="readout")]
    if len(points) <= _MARKS:
        parts += [*_drawn(group, shares, radius), _legend(group)]
    return tag("div", *parts, class_="slide", data_rows=json.dumps(data))


def _stops(shares: Shares, points: Sequence[Point], radius: float) -> list[float]:
    """Radii for the slider, doubles of short decimals: those asked, and where all were searched for, more."""
    asked, ends = set(radii_asked(points)), shares.ends()
    if ends and all(p.found for p in points):
        asked.add(radius)
        marks = ticks(0.0, ends[-1])
        step = Fraction(repr(marks[1])).limit_denominator(10**12) / 20 if len(marks) > 1 else Fraction()
        asked |= {float(k * step) for k in range(1, _STOPS + 1) if 0 < k * step <= ends[-1]}
    return sorted(r for r in asked if r > 0)


def _counted(group: Group, shares: Shares, radius: float) -> str:
    """What the script says at other radii, at this one."""
    n, s, rows = len(shares.safe), shares.at(radius), group.words.rows
    safe, unsafe = int(n * s.safe), int(n * s.unsafe)
    told = f"Radius {group.far(radius)}: {safe} of {n} {rows} proved safe ({percent(s.safe)}), "
    told += f"{unsafe} {group.called['unsafe']}, {n - safe - unsafe} not decided"
    if s.certified is not None:
        told += f"; right and proved safe: {int(n * s.certified)} of {n} ({percent(s.certified)})"
    return told + "."


def _legend(group: Group) -> Html:
    keys = ("good", "proved safe"), ("bad ring", group.called["unsafe"]), ("dim", "not decided")
    told = [join([tag("span", "", class_=f"key {look}"), f"{text} "]) for look, text in keys]
    if any(p.correct is False for p in group.points):
        lost = any(p.correct is False and math.isfinite(p.unsafe) for p in group.points)
        inside = f" (filled with red if it {group.called['unsafe']})" if lost else ""
        told.append(join([tag("span", "", class_="key missed"), f"black rim: predicted wrongly{inside} "]))
    how = "Point at a mark to read its answer; click it to open its line in the table below."
    click = tag("p", how, class_="soft click")
    return join([tag("p", *told, class_="soft legend"), click])


def _drawn(group: Group, shares: Shares, radius: float) -> list[Html]:
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
        for mark in _marks(group, places, shares, radius):
            plot.add(mark)
        told = "on the plane of the two features that move, by what is known at the radius"
        forms = [f"{form}: predicted {name}" for name, form in zip(group.words.classes, _FORMS, strict=False)]
        return [plot.html(f"{group.words.rows} {told}"), tag("p", "; ".join(forms), class_="soft")]
    order = np.argsort(shares.safe + np.minimum(shares.unsafe, 1e300), kind="stable").tolist()
    marks = [
        tag("i", class_=_look(shares, k, radius), data_k=str(k), title=_hover(group, points[k]))
        for k in order
    ]
    told = f"One mark for each {group.words.row}, the most fragile first:"
    return [tag("p", told, class_="soft"), tag("div", *marks, class_="marks", role="img", aria_label=told)]


def _look(shares: Shares, k: int, radius: float) -> str:
    state = "safe" if shares.safe[k] >= radius else "unsafe" if shares.unsafe[k] <= radius else "unknown"
    return f"mark {state} wrong" if shares.labelled and not shares.right[k] else f"mark {state}"


#: Marks of the first classes on a map: paths around their middle.
_FORMS = {
    "circles": "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "squares": "m-4 -4h8v8h-8z",
    "triangles": "m0 -5.5l5 9h-10z",
    "diamonds": "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
}


def _marks(group: Group, places: Sequence[tuple[float, float]], shares: Shares, radius: float) -> list[Html]:
    """In the form of the predicted class, and the colour of what is known."""
    forms = dict(zip(group.words.classes, _FORMS.values(), strict=False))
    return [
        tag(
            "path",
            tag("title", _hover(group, p)),
            d=f"M{x:.1f} {y:.1f}{forms.get(p.predicted, _FORMS['circles'])}",
            class_=_look(shares, k, radius),
            data_k=str(k),
        )
        for k, (p, (x, y)) in enumerate(zip(group.points, places, strict=True))
    ]


def _hover(group: Group, p: Point) -> str:
    true = "" if p.label is None else f", true {p.label}"
    told = f"{group.words.row} {p.name}{true}, predicted {p.predicted}"
    told += f" ({p.probability:.3f})" if math.isfinite(p.probability) else ""
    told += f"; proved safe up to {radius_at_least(p.safe)}" if p.safe > 0 and math.isfinite(p.safe) else ""
    lost = f"; {group.called['unsafe']} within {radius_at_most(p.unsafe)}"
    return told + (lost if math.isfinite(p.unsafe) else "")


def distributions(group: Group) -> Html:
    """Histograms of certified radii and of delta."""
    figures, points = [], group.points
    radii = [max(0.0, p.safe) for p in points if p.found and math.isfinite(p.safe)]
    if radii:
        some = f", {len(radii):,} of {group.words.counted(len(points))}: no other is asked for and finite"
        title = "Certified radii" + (some if len(radii) < len(points) else "")
        name = f"{group.radius_name} proved safe"
        figures.append(_histogram(radii, name, title, radius_at_least, group.words.rows))
    name, where = group.ranged
    deltas = [found.delta for p in points if (found := p.range_of(name)) is not None]
    if deltas:
        title = (
            f"How far the probability moves (delta), {len(deltas):,} of {group.words.counted(len(points))}"
        )
        name = f"largest minus smallest P({name}){where}, at most"
        figures.append(_histogram(deltas, name, title, at_most, group.words.rows, upper=True))
    return tag("div", *figures, class_="plots") if figures else Html("")


def _histogram(
    values: Sequence[_E],
    name: str,
    title: str,
    told: Callable[[_E], str],
    noun: str,
    upper: bool = False,
) -> Html:
    """`told` rounds a value to the side on which it still holds; so does the median, `upper` or lower."""
    most = float(max(values)) or 1.0
    marks = ticks(0.0, most)
    step = (marks[1] - marks[0]) / 4 if len(marks) > 1 else most  # ends of bars are round numbers
    counts = Counter(math.floor(float(value) / step) for value in values)
    plot = Plot(step * (max(counts) + 1), max(counts.values()) * 1.05, (name, noun))
    for k, count in sorted(counts.items()):
        told_bar = f"{count} from {k * step:.4g} to {(k + 1) * step:.4g}"
        plot.bar(k * step, (k + 1) * step, count, "plain", told_bar)
    middle = median(values, upper)
    caption = f"median {told(middle)}, smallest {told(min(values))}, largest {told(max(values))}"  # type: ignore[arg-type]
    return captioned(plot.html(f"histogram: {name}"), title, (), caption)

"""Pictures of many points as inline SVG: curves over the radius, a map with a slider, histograms."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from gpcert.html import Html, join, tag
from gpcert.numbers import (
    at_most,
    exactly,
    percent,
    radius_at_least,
    radius_at_most,
)
from gpcert.pages.groups import ResultGroup
from gpcert.pages.points import AtRadius, ProvedShares, RowAnswers, clean_accuracy, delta, radii_asked
from gpcert.regions import Ball
from gpcert.results.wording import median

#: The picture, and in it the ends of the frame.
_WIDTH, _HEIGHT = 460.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 448.0, 12.0, 226.0


class Plot:
    """A frame from (low, y_low) to (x_most, y_most) into which curves are drawn; class names give colours.

    `parts`: what is drawn, the last above the others.
    """

    def __init__(
        self,
        x_most: float,
        y_most: float,
        names: tuple[str, str],
        low: float = 0.0,
        percent: bool = False,
        y_low: float = 0.0,
    ) -> None:
        self._x0, self._x1 = low, x_most if x_most > low else low + 1.0
        self._y0, self._y1 = y_low, y_most if y_most > y_low else y_low + 1.0
        self._names, self._percent = names, percent
        self.parts: list[Html] = []
        self._told: list[dict[str, Any]] = []

    def steps(self, xs: Sequence[float], ys: Sequence[float], look: str, onto: float | None = None) -> None:
        """A step function that has the value ys[i] up to xs[i]; filled down or up to `onto`.

        One more y than x: the value at the last x, a step that is drawn there.
        """
        across = [self._x0, *(x for x in xs[: len(ys) - 1] for _ in range(2)), *xs[-1:]]
        points = [self.place(*pair) for pair in zip(across, [y for y in ys for _ in range(2)], strict=True)]
        if onto is None:
            self.parts.append(tag("polyline", points=" ".join(points), class_=f"curve {look}"))
        else:
            points += [self.place(x, onto) for x in (across[-1], across[0])]
            self.parts.append(tag("polygon", points=" ".join(points), class_=f"area {look}"))

    def tell(self, name: str, xs: Sequence[float], texts: Sequence[str]) -> None:
        """What a reader who points at x sees of a curve: texts[i] up to and including xs[i].

        One more text than x: texts[i] before xs[i], and the last at the last x.
        """
        self._told.append({"name": name, "xs": list(xs), "told": list(texts)})

    def dot(self, x: float, y: float, look: str, text: str) -> None:
        """A mark with a text that shows when pointed at."""
        place = {"cx": f"{self._x(x):.1f}", "cy": f"{self._y(y):.1f}"}
        self.parts.append(tag("circle", tag("title", text), **place, r="4.5", class_=f"dot {look}"))

    def bar(self, low: float, high: float, value: float, look: str, text: str) -> None:
        """An upright bar over [low, high]."""
        x, y = self._x(low), self._y(value)
        width, height = max(1.0, self._x(high) - x - 1.0), self._y(self._y0) - y
        size = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        self.parts.append(tag("rect", tag("title", text), **size, class_=f"area {look}"))

    def html(self, text: str) -> Html:
        """The picture; `text` is read out in its place."""
        look = {
            "viewBox": f"0 0 {_WIDTH:g} {_HEIGHT:g}",
            "role": "img",
            "aria_label": text,
            "class_": "plot",
        }
        if self._told:
            ends = [_LEFT, _RIGHT, self._x0, self._x1, _WIDTH]
            look["data_told"] = json.dumps({"ends": ends, "curves": self._told})
        return tag("svg", *self._axes(), *self.parts, **look)

    def place(self, x: float, y: float, between: str = ",") -> str:
        """Where a point is on the picture."""
        return f"{self._x(x):.1f}{between}{self._y(y):.1f}"

    def _x(self, x: float) -> float:
        share = (min(max(x, self._x0), self._x1) - self._x0) / (self._x1 - self._x0)
        return _LEFT + share * (_RIGHT - _LEFT)

    def _y(self, y: float) -> float:
        share = (min(max(y, self._y0), self._y1) - self._y0) / (self._y1 - self._y0)
        return _BOTTOM - share * (_BOTTOM - _TOP)

    def _axes(self) -> list[Html]:
        parts = []
        for value in ticks(self._x0, self._x1):
            x, y = f"{self._x(value):.1f}", f"{_BOTTOM + 16:.1f}"
            parts.append(tag("text", f"{value:.4g}", x=x, y=y, class_="tick middle"))
        x, y = f"{(_LEFT + _RIGHT) / 2:.1f}", f"{_BOTTOM + 36:.1f}"
        parts.append(tag("text", self._names[0], x=x, y=y, class_="name middle"))
        for value in ticks(self._y0, self._y1):
            height = self._y(value)
            ends = {"x1": f"{_LEFT:g}", "x2": f"{_RIGHT:g}", "y1": f"{height:.1f}", "y2": f"{height:.1f}"}
            text = f"{100 * value:.0f} %" if self._percent else f"{value:.4g}"
            parts.append(tag("line", **ends, class_="grid"))
            parts.append(tag("text", text, x=f"{_LEFT - 6:g}", y=f"{height + 4:.1f}", class_="tick end"))
        middle = f"translate(13 {(_BOTTOM + _TOP) / 2:.1f}) rotate(-90)"
        return [*parts, tag("text", self._names[1], transform=middle, class_="name middle")]


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers in [low, high]."""
    span = high - low
    if not (span > 1e-300 and math.isfinite(span)):  # below, a step would round to 0
        return [low]
    unit = 10.0 ** math.floor(math.log10(span / 4))
    step = next(unit * k for k in (1, 2, 5, 10) if span / (unit * k) <= 5.5)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def captioned(picture: Html, title: str, keys: Sequence[tuple[str, str]], text: str) -> Html:
    """A figure with its title above, its keys and a text below."""
    texts = [tag("div", tag("span", "", class_=f"key {look}"), name) for look, name in keys]
    return tag("figure", tag("h3", title), picture, tag("figcaption", *texts, text))


_E = TypeVar("_E", float, Fraction)
_MARKS = 2000  # points drawn one by one
_STOPS = 100  # positions of the slider


def point_map(group: ResultGroup, radius: float) -> Html:
    """Every row as a mark in the colour of what is known at a radius; the script adds a slider for it."""
    shares, points, classes = ProvedShares(group.points), group.points, list(group.words.classes)
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


def _stops(shares: ProvedShares, points: Sequence[RowAnswers], radius: float) -> list[float]:
    """Radii for the slider, doubles of short decimals: those asked, and where all were searched for, more."""
    asked, ends = set(radii_asked(points)), shares.ends()
    if ends and all(p.found for p in points):
        asked.add(radius)
        marks = ticks(0.0, ends[-1])
        step = Fraction(repr(marks[1])).limit_denominator(10**12) / 20 if len(marks) > 1 else Fraction()
        asked |= {float(k * step) for k in range(1, _STOPS + 1) if 0 < k * step <= ends[-1]}
    return sorted(r for r in asked if r > 0)


def _counted(group: ResultGroup, shares: ProvedShares, radius: float) -> str:
    """What the script says at other radii, at this one."""
    n, s, rows = len(shares.safe), shares.at(radius), group.words.rows
    safe, unsafe = int(n * s.safe), int(n * s.unsafe)
    text = f"Radius {group.far(radius)}: {safe} of {n} {rows} proved safe ({percent(s.safe)}), "
    text += f"{unsafe} {group.called['unsafe']}, {n - safe - unsafe} not decided"
    if s.certified is not None:
        text += f"; right and proved safe: {int(n * s.certified)} of {n} ({percent(s.certified)})"
    return text + "."


def _legend(group: ResultGroup) -> Html:
    keys = ("good", "proved safe"), ("bad ring", group.called["unsafe"]), ("dim", "not decided")
    texts = [join([tag("span", "", class_=f"key {look}"), f"{text} "]) for look, text in keys]
    if any(p.correct is False for p in group.points):
        lost = any(p.correct is False and math.isfinite(p.unsafe) for p in group.points)
        inside = f" (filled with red if it {group.called['unsafe']})" if lost else ""
        texts.append(join([tag("span", "", class_="key missed"), f"black rim: predicted wrongly{inside} "]))
    how = "Point at a mark to read its answer; click it to open its line in the table below."
    click = tag("p", how, class_="soft click")
    return join([tag("p", *texts, class_="soft legend"), click])


def _drawn(group: ResultGroup, shares: ProvedShares, radius: float) -> list[Html]:
    """On a plane where two features move; else side by side, the most fragile first."""
    region, points = group.region, group.points
    moving = np.flatnonzero(region.moving()).tolist() if isinstance(region, Ball) else []
    known = [p.x for p in points if p.x is not None]
    if len(moving) == 2 and len(known) == len(points):
        x, y = (np.array([z[j] for z in known]) for j in moving)
        pads = [0.04 * float(np.ptp(v)) for v in (x, y)]
        ends = [(float(v.min()) - pad, float(v.max()) + pad) for v, pad in zip((x, y), pads, strict=True)]
        names = group.words.feature(moving[0]), group.words.feature(moving[1])
        plot = Plot(ends[0][1], ends[1][1], names, low=ends[0][0], y_low=ends[1][0])
        forms = dict(zip(group.words.classes, _FORMS.values(), strict=False))
        for k, (p, left, up) in enumerate(zip(points, x.tolist(), y.tolist(), strict=True)):
            path = f"M{plot.place(left, up, ' ')}{forms.get(p.predicted, _FORMS['circles'])}"
            look = {"class_": _look(p, radius), "data_k": str(k)}
            plot.parts.append(tag("path", tag("title", _hover(group, p)), d=path, **look))
        text = "on the plane of the two features that move, by what is known at the radius"
        key = [f"{form}: predicted {name}" for name, form in zip(group.words.classes, _FORMS, strict=False)]
        return [plot.html(f"{group.words.rows} {text}"), tag("p", "; ".join(key), class_="soft")]
    order = np.argsort(shares.safe + np.minimum(shares.unsafe, 1e300), kind="stable").tolist()
    marks = [
        tag("i", class_=_look(points[k], radius), data_k=str(k), title=_hover(group, points[k]))
        for k in order
    ]
    text = f"One mark for each {group.words.row}, the most fragile first:"
    return [
        tag("p", text, class_="soft"),
        tag("div", *marks, class_="marks", role="img", aria_label=text),
    ]


def _look(p: RowAnswers, radius: float) -> str:
    """The colour of what is known."""
    return f"mark {p.status(radius)}{' wrong' if p.correct is False else ''}"


#: Marks of the first predicted classes on a map: paths around their middle.
_FORMS = {
    "circles": "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
    "squares": "m-4 -4h8v8h-8z",
    "triangles": "m0 -5.5l5 9h-10z",
    "diamonds": "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
}


def _hover(group: ResultGroup, p: RowAnswers) -> str:
    true = "" if p.label is None else f", true {p.label}"
    text = f"{group.words.row} {p.name}{true}, predicted {p.predicted}"
    text += f" ({p.certainty})" if p.certainty else ""
    text += f"; proved safe up to {radius_at_least(p.safe)}" if p.safe > 0 and math.isfinite(p.safe) else ""
    lost = f"; {group.called['unsafe']} within {radius_at_most(p.unsafe)}"
    return text + (lost if math.isfinite(p.unsafe) else "")


def distributions(group: ResultGroup) -> Html:
    """Histograms of certified radii and of delta."""
    figures, points = [], group.points
    radii = [max(0.0, p.safe) for p in points if p.found and math.isfinite(p.safe)]
    if radii:
        some = f", {len(radii):,} of {group.words.counted(len(points))}: no other is asked for and finite"
        title = "Certified radii" + (some if len(radii) < len(points) else "")
        name = f"{group.radius_name} proved safe"
        figures.append(_histogram(radii, name, title, radius_at_least, group.words.rows))
    name, where = group.ranged
    deltas = [delta(found) for p in points if (found := p.range_of(name)) is not None]
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
    rounded: Callable[[_E], str],
    noun: str,
    upper: bool = False,
) -> Html:
    """`rounded` rounds a value to the side on which it still holds; so does the median, `upper` or lower."""
    most = float(max(values)) or 1.0
    marks = ticks(0.0, most)
    step = (marks[1] - marks[0]) / 4 if len(marks) > 1 else most  # ends of bars are round numbers
    counts = Counter(math.floor(float(value) / step) for value in values)
    plot = Plot(step * (max(counts) + 1), max(counts.values()) * 1.05, (name, noun))
    for k, count in sorted(counts.items()):
        told_bar = f"{count} from {k * step:.4g} to {(k + 1) * step:.4g}"
        plot.bar(k * step, (k + 1) * step, count, "plain", told_bar)
    middle = median(values, upper)
    caption = f"median {rounded(middle)}, smallest {rounded(min(values))}, largest {rounded(max(values))}"  # type: ignore[arg-type]
    return captioned(plot.html(f"histogram: {name}"), title, (), caption)


_COLOURS = 8  # looks of curves, then they repeat


def curves(group: ResultGroup) -> Html:
    """Certified accuracy, for all and for each class, and safety against the radius: what is proved."""
    counted = ProvedShares(group.points)
    ends = counted.ends()
    if not ends:
        return Html("")
    steps = [counted.at(radius) for radius in ends]
    figures = [_safety_plot(group, steps)]
    clean, classes = clean_accuracy(group.points), group.words.classes
    if clean is not None:
        tried = [counted.at(radius) for radius in radii_asked(group.points)]
        figures.insert(0, _accuracy_plot(group, clean, steps, [s for s in tried if s.attacked is not None]))
        members = {name: [p for p in group.points if p.label == name] for name in classes}
        classwise = [(name, some, ProvedShares(some)) for name, some in members.items() if some]
        if 1 < len(classwise) <= _COLOURS:
            text = f"Of the {group.words.rows} of each class, the share that is right and proved safe."
            lines = [
                (f"{name} ({group.words.counted(len(some))})", shares) for name, some, shares in classwise
            ]
            names = "Certified recall by class", "certified recall"
            figures.insert(1, together(lines, *names, text, group.radius_name))
    return tag("div", *figures, class_="plots")


def together(
    lines: Sequence[tuple[str, ProvedShares]], title: str, axis: str, text: str, radius_name: str = "radius"
) -> Html:
    """Certified shares of several groups of points in one picture, each up to where it was asked."""
    ends = [shares.ends() for _, shares in lines]
    last = max((xs[-1] for xs in ends if xs), default=0.0)
    if last <= 0:
        return Html("")
    plot, keys = Plot(last, 1.0, (radius_name, axis), percent=True), []
    for k, ((name, shares), xs) in enumerate(zip(lines, ends, strict=True)):
        found = [shares.at(radius) for radius in xs]
        values = [s.safe if s.certified is None else s.certified for s in found]
        look = f"line{k % _COLOURS}"
        keys.append((look, name))
        if xs:
            plot.steps(xs, list(map(float, values)), look)
            plot.tell(name, xs, [percent(v) for v in values])
    return captioned(plot.html(f"{title} against the radius"), title, keys, text)


def _safety_plot(group: ResultGroup, steps: Sequence[AtRadius]) -> Html:
    xs, rows, lost = [s.radius for s in steps], group.words.rows, group.called["unsafe"]
    plot = Plot(xs[-1], 1.0, (group.radius_name, f"share of {rows}"), percent=True)
    # A point proved safe up to r counts up to r; a counterexample at r counts from r on.
    broken = [Fraction(), *(s.unsafe for s in steps)]
    for ys, look, onto in (
        ([float(s.safe) for s in steps], "good", 0.0),
        ([float(1 - u) for u in broken], "bad", 1.0),
    ):
        plot.steps(xs, ys, look, onto=onto)
        plot.steps(xs, ys, look)
    plot.tell("proved safe", xs, [percent(s.safe) for s in steps])
    plot.tell(lost, xs, [percent(u) for u in broken])
    keys = (
        ("good", "proved safe" + (": the class cannot change" if group.threshold == 0.5 else "")),
        ("bad", f"{lost}: a counterexample is known"),
    )
    picture = plot.html(f"share of {rows} proved safe and known to change against the radius")
    text = f"Between the two: not decided, or not asked at this radius. {group.ends}"
    return captioned(picture, "Safety", keys, text)


def _accuracy_plot(
    group: ResultGroup, clean: Fraction, steps: Sequence[AtRadius], tried: Sequence[AtRadius]
) -> Html:
    xs = [s.radius for s in steps]
    plot = Plot(xs[-1], 1.0, (group.radius_name, "accuracy"), percent=True)
    certified = [s.certified or Fraction() for s in steps]
    most = [clean, *(s.certified_most or Fraction() for s in steps)]
    plot.steps(xs, list(map(float, most)), "soft")
    plot.steps(xs, list(map(float, certified)), "good", onto=0.0)
    plot.steps(xs, list(map(float, certified)), "good")
    plot.tell("at most", xs, list(map(percent, most)))
    plot.tell("certified accuracy", xs, list(map(percent, certified)))
    for s in tried:
        text = f"accuracy under attack {percent(s.attacked or Fraction())} at radius {exactly(s.radius)}"
        plot.dot(s.radius, float(s.attacked or 0), "bad", text)
    keys = [
        ("good", "certified accuracy: right and proved safe"),
        ("dash", f"{group.most}: right, and no counterexample is known"),
    ]
    keys += [("bad ring", "accuracy under attack: right, and no attack succeeded")] if tried else []
    return captioned(plot.html("certified accuracy against the radius"), "Accuracy", keys, "")

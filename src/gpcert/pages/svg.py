"""Small plots as inline SVG, in the colours of the page: lines, steps, areas, bars."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from gpcert.html import Html, tag

_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 12.0, 44.0


class Plot:
    """A frame from (low, y_low) to (x_most, y_most) into which curves are drawn; class names give colours."""

    def __init__(
        self,
        x_most: float,
        y_most: float,
        names: tuple[str, str],
        low: float = 0.0,
        percent: bool = False,
        y_low: float = 0.0,
    ) -> None:
        self._width, self._height = 460.0, 270.0
        self._x0, self._x1 = low, x_most if x_most > low else low + 1.0
        self._y0, self._y1 = y_low, y_most if y_most > y_low else y_low + 1.0
        self._names, self._percent = names, percent
        self._parts: list[Html] = []
        self._told: list[dict[str, Any]] = []

    def line(self, xs: Sequence[float], ys: Sequence[float], look: str) -> None:
        """A curve through the points."""
        self._parts.append(tag("polyline", points=self._points(xs, ys), class_=f"curve {look}"))

    def steps(self, xs: Sequence[float], ys: Sequence[float], look: str, onto: float | None = None) -> None:
        """A step function that has the value ys[i] up to xs[i]; filled down or up to `onto`.

        One more y than x: the value at the last x, a step that is drawn there.
        """
        across = [self._x0, *(x for x in xs[: len(ys) - 1] for _ in range(2)), *xs[-1:]]
        along = [y for y in ys for _ in range(2)]
        if onto is None:
            self.line(across, along, look)
            return
        shape = self._points([*across, across[-1], across[0]], [*along, onto, onto])
        self._parts.append(tag("polygon", points=shape, class_=f"area {look}"))

    def tell(self, name: str, xs: Sequence[float], told: Sequence[str]) -> None:
        """What a reader who points at x is told of a curve: told[i] up to and including xs[i].

        One more text than x: told[i] before xs[i], and the last at the last x.
        """
        self._told.append({"name": name, "xs": list(xs), "told": list(told)})

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is on the picture."""
        return self._x(x), self._y(y)

    def add(self, part: Html) -> None:
        """An element of its own, drawn above what is there."""
        self._parts.append(part)

    def dots(self, xs: Sequence[float], ys: Sequence[float], look: str, told: Sequence[str]) -> None:
        """Marks, each with a text that shows when pointed at."""
        for x, y, text in zip(xs, ys, told, strict=True):
            place = {"cx": f"{self._x(x):.1f}", "cy": f"{self._y(y):.1f}"}
            self._parts.append(tag("circle", tag("title", text), **place, r="4.5", class_=f"dot {look}"))

    def bar(self, low: float, high: float, value: float, look: str, told: str) -> None:
        """An upright bar over [low, high]."""
        x, width = self._x(low), max(1.0, self._x(high) - self._x(low) - 1.0)
        y, height = self._y(value), self._y(self._y0) - self._y(value)
        size = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        self._parts.append(tag("rect", tag("title", told), **size, class_=f"area {look}"))

    def html(self, told: str) -> Html:
        """The picture; `told` is read out in its place."""
        frame = [*self._axis_x(), *self._axis_y()]
        box = f"0 0 {self._width:g} {self._height:g}"
        more = {}
        if self._told:
            ends = [_LEFT, self._width - _RIGHT, self._x0, self._x1, self._width]
            more = {"data_told": json.dumps({"ends": ends, "curves": self._told})}
        return tag(
            "svg", *frame, *self._parts, viewBox=box, role="img", aria_label=told, class_="plot", **more
        )

    def _x(self, x: float) -> float:
        share = (min(max(x, self._x0), self._x1) - self._x0) / (self._x1 - self._x0)
        return _LEFT + share * (self._width - _LEFT - _RIGHT)

    def _y(self, y: float) -> float:
        share = (min(max(y, self._y0), self._y1) - self._y0) / (self._y1 - self._y0)
        return self._height - _BOTTOM - share * (self._height - _TOP - _BOTTOM)

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in zip(xs, ys, strict=True))

    def _axis_x(self) -> list[Html]:
        y = self._height - _BOTTOM
        parts = []
        for value in ticks(self._x0, self._x1):
            x = f"{self._x(value):.1f}"
            parts.append(tag("text", f"{value:.4g}", x=x, y=f"{y + 16:.1f}", class_="tick middle"))
        middle = f"{(_LEFT + self._width - _RIGHT) / 2:.1f}"
        return [*parts, tag("text", self._names[0], x=middle, y=f"{y + 36:.1f}", class_="name middle")]

    def _axis_y(self) -> list[Html]:
        parts = []
        for value in ticks(self._y0, self._y1):
            y = self._y(value)
            ends = {"x1": f"{_LEFT:g}", "x2": f"{self._width - _RIGHT:g}", "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
            text = f"{100 * value:.0f} %" if self._percent else f"{value:.4g}"
            parts.append(tag("line", **ends, class_="grid"))
            parts.append(tag("text", text, x=f"{_LEFT - 6:g}", y=f"{y + 4:.1f}", class_="tick end"))
        place = f"translate(13 {(self._height - _BOTTOM + _TOP) / 2:.1f}) rotate(-90)"
        return [*parts, tag("text", self._names[1], transform=place, class_="name middle")]


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
    told = [tag("div", tag("span", "", class_=f"key {look}"), name) for look, name in keys]
    return tag("figure", tag("h3", title), picture, tag("figcaption", *told, text))

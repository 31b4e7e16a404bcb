"""HTML in which every text is escaped: only `Html` values, which `tag` makes, are taken as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_VOID = frozenset({"br", "img", "meta"})
#: Controls but for tab and new line, marks of direction, halves of pairs of code units.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff]"
)


class Html(str):
    """Markup that is already safe; a plain `str` is text and gets escaped."""

    __slots__ = ()


def visible(text: str) -> str:
    """The text, but for what would steer a reader, turn a line round or is no character: that by its code."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """One element. In the name of an attribute, a trailing underscore is dropped, others become hyphens."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value), quote=True)}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """The children one after the other, texts escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(visible(child)) for child in children))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], look: str = "") -> Html:
    """A table that scrolls sideways by itself; the first cell of a row names the row."""
    body = [tag("tr", tag("th", name), *(tag("td", cell) for cell in cells)) for name, *cells in rows]
    top = tag("thead", tag("tr", *(tag("th", cell) for cell in head))) if head else Html("")
    return tag("div", tag("table", top, tag("tbody", *body)), class_=f"scroll {look}".rstrip(), tabindex="0")


def rounded(sentence: str) -> str:
    """Doubles of many digits with six of them: to read."""
    return re.sub(r"\d+\.\d{6,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.6g}", sentence)


def facts(title: str, entries: Iterable[tuple[str, str]]) -> Html:
    """A small table for a notebook: a title, then names with what they are, in short."""
    left = {"style": "text-align:left"}
    short = [(name, text if len(text) <= 160 else f"{text[:157]}...") for name, text in entries]
    rows = [tag("tr", tag("th", name, **left), tag("td", text, **left)) for name, text in short]
    return tag("div", tag("b", title), tag("table", tag("tbody", *rows)))


def bar(*spans: tuple[float, float]) -> Html:
    """A picture of [0, 1] with marks at 0, 1/2 and 1; each span over the ones before, and darker."""
    shades, left, width = ("#9ecae1", "#3182bd", "#3182bd"), 8.0, 184.0

    def x(value: float) -> float:
        return left + width * min(max(value, 0.0), 1.0)

    parts = [tag("line", x1=f"{left}", x2=f"{left + width}", y1="8", y2="8", stroke="#888")]
    for (low, high), shade in zip(spans, shades, strict=False):
        size = {"x": f"{x(low):.1f}", "width": f"{max(x(high) - x(low), 1.5):.1f}"}
        parts.append(tag("rect", **size, y="3", height="10", fill=shade))
    for value, name in ((0.0, "0"), (0.5, "1/2"), (1.0, "1")):
        at = f"{x(value):.1f}"
        parts.append(tag("line", x1=at, x2=at, y1="1", y2="15", stroke="#888"))
        look = {"font_size": "9", "text_anchor": "middle", "fill": "currentColor"}
        parts.append(tag("text", name, x=at, y="25", **look))
    return tag("svg", *parts, width="200", height="28", viewBox="0 0 200 28", role="img")

"""HTML in which every text is escaped: only `Html` values, which `tag` makes, are taken as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Html", "join", "table", "tag"]

_VOID = frozenset({"br", "img", "meta"})


class Html(str):
    """Markup that is already safe; a plain `str` is text and gets escaped."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str) -> Html:
    """One element. In the name of an attribute, a trailing underscore is dropped, others become hyphens."""
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """The children one after the other, texts escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table that scrolls sideways by itself; the first cell of a row names the row."""
    body = [tag("tr", tag("th", name), *(tag("td", cell) for cell in cells)) for name, *cells in rows]
    top = tag("thead", tag("tr", *(tag("th", cell) for cell in head))) if head else Html("")
    return tag("div", tag("table", top, tag("tbody", *body)), class_="scroll")

"""HTML in which every text is escaped: only `Html` values, which `tag` makes, are taken as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Html", "join", "page", "table", "tag"]

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


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """A whole document from (heading, content) pairs: one file, no script, nothing fetched."""
    content = join(tag("section", tag("h2", heading), body) for heading, body in sections)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(_STYLE)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("h1", title), content), lang="en") + "\n"


_STYLE = """
:root { --ink: #1c2128; --soft: #57606a; --paper: #ffffff; --line: #d0d7de;
        --mark: #b42318; --good: #1a7f37; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa4af; --paper: #14181d; --line: #363d47;
          --mark: #ff8a7a; --good: #5fc27e; }
}
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif;
       max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
p, figcaption { max-width: 46rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; white-space: nowrap; }
code { font-size: .92em; overflow-wrap: anywhere; }
figure { margin: 0; }
figcaption { color: var(--soft); font-size: .88rem; }
.plot svg { width: 100%; height: auto; max-width: 44rem; }
.gallery { display: grid; gap: 1rem; margin: 1rem 0;
           grid-template-columns: repeat(auto-fill, minmax(7rem, 1fr)); }
.gallery img { width: 100%; image-rendering: pixelated; border: 1px solid var(--line); display: block; }
.card, .query { display: flex; gap: .5rem .8rem; align-items: flex-start; }
.card > div { flex: 1; }
.query { flex-wrap: wrap; margin-bottom: 1rem; }
.card img { width: clamp(3.4rem, 14vw, 6rem); image-rendering: pixelated; border: 1px solid var(--line);
            display: block; }
.facts { flex: 1 1 20rem; }
.facts p { margin: 0 0 .25rem; }
.bar { width: 100%; max-width: 26rem; display: block; margin-bottom: .25rem; }
.frame { fill: none; stroke: var(--line); }
.half { stroke: var(--ink); }
.dot { fill: var(--paper); stroke: var(--ink); stroke-width: 1.5; }
.safe { color: var(--good); }
.unsafe { color: var(--mark); }
.undecided, .soft { color: var(--soft); }
.soft { font-size: .88rem; }
.wrong { color: var(--mark); font-weight: 600; }
"""

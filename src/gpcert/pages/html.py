"""A whole page: one file, nothing fetched."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from importlib.resources import files

from gpcert.html import Html, join, tag

__all__ = ["page"]


def page(title: str, subtitle: str, sections: Iterable[tuple[str, str]]) -> str:
    """A whole document from (heading, content) pairs: one file, nothing fetched.

    The policy in its head lets only the page's own script run, recognised by its hash.
    """
    folder = files("gpcert.pages")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    content = join(tag("section", tag("h2", heading), body, id=_slug(heading)) for heading, body in sections)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    top = join([tag("h1", title), tag("p", subtitle, class_="soft")])
    body = tag("body", tag("main", top, content), tag("script", Html(script)))
    whole = "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"
    # Half a pair of code units, from JSON or from a file's name, is no character: no encoding has it.
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", whole)


def _slug(heading: str) -> str:
    return heading.lower().replace(" ", "-")

"""A whole page: one file, nothing fetched."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from gpcert.html import Html, join, tag


def page(title: str, subtitle: str, sections: Iterable[tuple[str, str]], lead: str = Html("")) -> str:
    """A whole document from (heading, content) pairs with a list of contents: one file, nothing fetched.

    The policy in its head lets only the page's own script run, recognised by its hash.
    """
    style, script = (packaged(name) for name in ("page.css", "page.js"))
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    every = list(sections)
    slugs = [_slug(heading, k) for k, (heading, _) in enumerate(every)]
    named = [(*pair, slugs[k] if slugs.count(slugs[k]) == 1 else f"part-{k}") for k, pair in enumerate(every)]
    content = join(tag("section", tag("h2", heading), body, id=slug) for heading, body, slug in named)
    links = [tag("li", tag("a", heading, href=f"#{slug}")) for heading, _, slug in named]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(style)),
    )
    contents = tag("nav", tag("ul", *links), aria_label="contents") if len(links) > 2 else Html("")
    top = join([tag("h1", title), tag("p", subtitle, class_="soft"), lead, contents])
    body = tag("body", tag("main", top, content), tag("script", Html(script)))
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


@cache
def packaged(name: str) -> str:
    """A file beside this one."""
    return files("gpcert.pages").joinpath(name).read_text(encoding="utf-8")


def _slug(heading: str, k: int) -> str:
    """An anchor; the number tells apart what letters do not."""
    kept = re.sub("[^a-z0-9]+", "-", heading.lower()).strip("-")
    return kept if re.fullmatch("[a-z][a-z-]*", kept) else f"part-{k}"

"""The frame of a page, one file that fetches nothing, and the words it explains where they stand."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from html import escape, unescape
from importlib.resources import files

from gpcert.html import Html, join, tag
from gpcert.numbers import exactly


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
    """An anchor; the number distinguishes what letters do not."""
    kept = re.sub("[^a-z0-9]+", "-", heading.lower()).strip("-")
    return kept if re.fullmatch("[a-z][a-z-]*", kept) else f"part-{k}"


#: What is proved above another threshold than one half, which is not that a class stays.
_ABOVE = {
    "safe": "For every input of the region around the row, tried or not, the probability of the predicted "
    "class is above {least}: a mathematical proof for the model as it is stored, rounding of the computer "
    "included. Below one half it does not say that the class stays the same.",
    "unsafe": "One input of the region where the probability of the predicted class is at most {least} is "
    "known and stored: a counterexample. Its class need not be another one.",
    "certified": "The share of rows whose predicted class is right and proved safe: its probability stays "
    "above {least}, however the inputs are changed within the radius. Below one half it does not say that "
    "this share stays right.",
    "most": "The share of rows that are right and whose probability stays above {least} under the worst "
    "change within the radius lies between the certified one and this. It is no bound on the accuracy.",
    "margin": "How far the smallest probability of the predicted class stays above the threshold, {least}. "
    "Negative: it can fall below.",
}

#: What they are called there.
_CALLED = {"unsafe": "can fall to {least}", "most": "right and above {least} at most"}


def glossary(threshold: float | None = 0.5) -> Html:
    """The words of the page, explained in it; `threshold`: of the verdicts, None if they have several."""
    found = packaged("words.html")
    for key in _ABOVE if threshold != 0.5 else ():
        entry = rf'(<dt id="w-{key}">)(.*?)</dt><dd>.*?</dd>'
        name = _CALLED.get(key, r"\2").format(least=_least(threshold))
        found = re.sub(entry, rf"\1{name}</dt><dd>{meaning(key, threshold)}</dd>", found)
    return Html(found)


def _least(threshold: float | None) -> str:
    return "the threshold of the result" if threshold is None else exactly(threshold)


@cache
def _meanings() -> dict[str, str]:
    found = re.findall(r'<dt id="w-([a-z]+)">.*?</dt><dd>(.*?)</dd>', packaged("words.html"))
    return {key: unescape(re.sub("<[^>]*>", "", text)) for key, text in found}


def meaning(key: str, threshold: float | None = 0.5) -> str:
    """What the list says of a word."""
    other = threshold != 0.5 and key in _ABOVE
    return _ABOVE[key].format(least=_least(threshold)) if other else _meanings()[key]


def word(text: str, key: str, threshold: float | None = 0.5) -> Html:
    """A word of the list."""
    return tag("a", text, href=f"#w-{key}", title=meaning(key, threshold), class_="word")

"""The words of the page, each explained where it stands: pointing tells, a click leads to the list."""

from __future__ import annotations

import re
from functools import cache
from html import unescape

from gpcert.html import Html, tag
from gpcert.pages.html import packaged

__all__ = ["glossary", "meaning", "word"]


def glossary() -> Html:
    """The words of the page, explained in it."""
    return Html(packaged("words.html"))


@cache
def _meanings() -> dict[str, str]:
    found = re.findall(r'<dt id="w-([a-z]+)">.*?</dt><dd>(.*?)</dd>', packaged("words.html"))
    return {key: unescape(re.sub("<[^>]*>", "", told)) for key, told in found}


def meaning(key: str) -> str:
    """What the list says of a word."""
    return _meanings()[key]


def word(text: str, key: str) -> Html:
    """A word of the list."""
    return tag("a", text, href=f"#w-{key}", title=meaning(key), class_="word")

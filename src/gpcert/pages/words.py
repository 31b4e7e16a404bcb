"""The words of the page, each explained where it stands: pointing tells, a click leads to the list."""

from __future__ import annotations

import re
from functools import cache
from html import unescape

from gpcert.html import Html, tag
from gpcert.numbers import exactly
from gpcert.pages.html import packaged

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
    told = packaged("words.html")
    for key in _ABOVE if threshold != 0.5 else ():
        entry = rf'(<dt id="w-{key}">)(.*?)</dt><dd>.*?</dd>'
        name = _CALLED.get(key, r"\2").format(least=_least(threshold))
        told = re.sub(entry, rf"\1{name}</dt><dd>{meaning(key, threshold)}</dd>", told)
    return Html(told)


def _least(threshold: float | None) -> str:
    return "the threshold of the result" if threshold is None else exactly(threshold)


@cache
def _meanings() -> dict[str, str]:
    found = re.findall(r'<dt id="w-([a-z]+)">.*?</dt><dd>(.*?)</dd>', packaged("words.html"))
    return {key: unescape(re.sub("<[^>]*>", "", told)) for key, told in found}


def meaning(key: str, threshold: float | None = 0.5) -> str:
    """What the list says of a word."""
    other = threshold != 0.5 and key in _ABOVE
    return _ABOVE[key].format(least=_least(threshold)) if other else _meanings()[key]


def word(text: str, key: str, threshold: float | None = 0.5) -> Html:
    """A word of the list."""
    return tag("a", text, href=f"#w-{key}", title=meaning(key, threshold), class_="word")

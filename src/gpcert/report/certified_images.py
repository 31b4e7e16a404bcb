"""Certified images: each with its range, the extreme images of the region beside it, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpcert.report.asked import Asked, Verdict, at_least, at_most, between
from gpcert.report.figures import difference_image, grey_image
from gpcert.report.html import Html, join, table, tag
from gpcert.report.study import Study
from gpcert.validation import Float

__all__ = ["image_card", "introduction", "verdict_counts"]

_TONE = {Verdict.SAFE: "safe", Verdict.UNSAFE: "unsafe", Verdict.UNDECIDED: "undecided"}


def introduction() -> Html:
    """What the numbers guarantee, in two sentences, and how to read them."""
    return join([tag("p", _GUARANTEE), tag("p", _LEGEND, class_="soft")])


def verdict_counts(images: Sequence[Mapping[float, Asked]]) -> Html:
    """One line per radius: how many of the images got which verdict, and the time it took."""
    rows = []
    for r in images[0]:
        verdicts = [asked[r].verdict for asked in images]
        seconds = float(np.median([asked[r].range.seconds for asked in images]))
        counts = (str(verdicts.count(verdict)) for verdict in Verdict)
        rows.append((f"r = {r:g}", *counts, f"{1000 * seconds:.0f} ms"))
    return table(("pixels move by", *Verdict, "median time of an image"), rows)


def image_card(study: Study, i: int, asked: Mapping[float, Asked]) -> Html:
    """Test image i; for each radius, what the region around it holds."""
    true, first = study.data.y_test[i], next(iter(asked.values()))
    called = tag("span", f"predicted {first.name}", class_="" if first.name == str(true) else "wrong")
    title = tag("h3", f"Test image {i}: true {true}, ", called, f", P({first.name}) ≈ {first.at_centre:.3f}")
    shape = study.data.image_shape
    if shape is None:
        raise ValueError(f"{study.data.name} has no images")
    original = _figure(grey_image(study.data.X_test[i].reshape(shape), f"test image {i}"), "original")
    queries = [_query(r, one, shape) for r, one in asked.items()]
    return tag("article", title, tag("div", original, tag("div", *queries), class_="card"))


def _query(r: float, one: Asked, shape: tuple[int, int]) -> Html:
    extremes = ((one.range.argmin, "lowest"), (one.range.argmax, "highest"))
    # A search stopped before its first point has none to show.
    pictures = [_extreme(x, one.region.centre, r, shape, name) for x, name in extremes if x is not None]
    facts = tag(
        "div",
        tag("p", f"r = {r:g}: P({one.name}) in ", tag("b", between(one.range))),
        _bar(one),
        tag("p", _conclusion(one), class_=_TONE[one.verdict]),
        tag("p", _details(one), class_="soft"),
        class_="facts",
    )
    return tag("div", *pictures, facts, class_="query")


def _extreme(x: Float, original: Float, r: float, shape: tuple[int, int], name: str) -> Html:
    """An extreme image and, beside it, how its pixels moved."""
    moved = x - original
    told = f"{np.count_nonzero(moved)} pixels moved"
    picture = grey_image(x.reshape(shape), f"the image of {name} probability for r = {r:g}")
    return join([_figure(picture, name), _figure(difference_image(moved.reshape(shape) / r, told), "moved")])


def _figure(picture: Html, caption: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption))


def _conclusion(one: Asked) -> str:
    """The verdict, in words that the enclosures prove."""
    lowest = one.range.min
    if one.verdict is Verdict.SAFE:
        return (
            f"The label cannot change: P({one.name}) is above 1/2 on the whole region, at least "
            f"{at_least(lowest.lower)}."
        )
    if one.verdict is Verdict.UNSAFE:
        return (
            f"The label can change: the image “lowest” has P({one.name}) below 1/2, at most "
            f"{at_most(lowest.upper)}."
        )
    return f"Undecided: the minimum lies in {between(lowest)}, on which side of 1/2 is not known."


def _details(one: Asked) -> str:
    found = one.range
    return (
        f"min in {between(found.min)}, max in {between(found.max)}; {found.status}, "
        f"{found.nodes} {'node' if found.nodes == 1 else 'nodes'}, {1000 * found.seconds:.0f} ms"
    )


def _bar(one: Asked) -> Html:
    """The range on the line from 0 to 1, which is 200 wide."""

    def span(low: float, high: float, **look: str) -> Html:
        x, width = f"{200 * low:.2f}", f"{200 * max(0.0, high - low):.2f}"
        return tag("rect", x=x, y="3", width=width, height="10", **look)

    found = one.range
    parts = (
        span(0.0, 1.0, class_="frame"),
        span(found.lower, found.upper, fill="currentColor", fill_opacity="0.35"),
        span(found.min.upper, found.max.lower, fill="currentColor"),
        tag("line", x1="100", x2="100", y1="0", y2="16", class_="half"),
        tag("circle", cx=f"{200 * one.at_centre:.2f}", cy="8", r="3", class_="dot"),
    )
    told = {"role": "img", "aria_label": f"P({one.name}) in {between(found)}"}
    return tag("svg", *parts, viewBox="-4 0 208 16", class_=f"bar {_TONE[one.verdict]}", **told)


_GUARANTEE = (
    "Every image whose 196 pixels each differ from the original by at most r and stay in [0, 1], real-valued "
    "pixels included, has a probability inside the range in bold: this is proved for the stored model in "
    "real arithmetic, with all rounding accounted for, not sampled. The smallest and the largest probability "
    "over all these images lie in the enclosures “min” and “max”, however the search ended, and the images "
    "“lowest” and “highest” belong to the region and reach the inner ends of these enclosures."
)
_LEGEND = (
    "In each bar, from 0 to 1, values in the strong part are certainly taken, the faint ends are what the "
    "search left open, the dot is the original image, the upright line one half. “moved” is the difference "
    "from the original: orange brighter, blue darker, in full colour where a pixel moved by r. Printed "
    "bounds are rounded outward."
)

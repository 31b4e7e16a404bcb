"""The parts of the report besides its table: headline, curves, distributions, explanations, settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import (
    at_most,
    between,
    exact_mean,
    exactly,
    percent_at_least,
    percent_at_most,
    radius_at_least,
)
from gpcert.pages.pictures import heat_image
from gpcert.pages.points import Point
from gpcert.pages.summary import AtRadius, Shares, clean_accuracy, median_radius, radii_asked
from gpcert.pages.svg import Plot

__all__ = ["curves", "distributions", "explanations", "headline", "settings"]

_E = TypeVar("_E", float, Fraction)
_BINS = 20
_LONG = 90  # characters of a setting shown without a click
_FEATURES = 15  # of an explanation, the most influential first


def headline(points: Sequence[Point]) -> Html:
    """The figures to remember, then the same at every radius that was asked about."""
    n, clean, median = len(points), clean_accuracy(points), median_radius(points)
    counted = Shares(points)
    shares = [counted.at(radius) for radius in radii_asked(points)]
    tiles = [_tile(f"{n:,}", "point" if n == 1 else "points")]
    if clean is not None:
        tiles.append(_tile(percent_at_most(clean), "clean accuracy"))  # what attacks leave is at most this
    # The radius that was attacked, else the largest: one figure is to be remembered, the table has them all.
    for share in [s for s in shares if s.attacked is not None][:1] or shares[-1:]:
        at = f"at radius {exactly(share.radius)}"
        if share.certified is not None:
            tiles.append(_tile(percent_at_least(share.certified), f"certified accuracy {at}"))
        else:
            tiles.append(_tile(percent_at_least(share.safe), f"proved safe {at}"))
        if share.attacked is not None:
            tiles.append(_tile(percent_at_most(share.attacked), f"attacked accuracy {at}"))
    if median is not None:
        tiles.append(_tile(radius_at_least(median), "median certified radius"))
    parts = [tag("div", *tiles, class_="tiles")]
    if shares:
        parts += [_by_radius(shares), tag("p", _MEANING, class_="soft")]
    return join(parts)


def _tile(figure: str, what: str) -> Html:
    return tag("div", tag("b", figure), tag("span", what), class_="tile")


def _by_radius(shares: Sequence[AtRadius]) -> Html:
    """A line per radius: what is proved at least, what may be at most."""
    proved = ("radius", "proved safe", "unsafe", "not decided")
    head = (*proved, "certified accuracy", "at most", "attacked accuracy")
    rows = []
    for s in shares:
        shown = (
            (percent_at_least, s.safe),
            (percent_at_least, s.unsafe),
            (percent_at_most, 1 - s.safe - s.unsafe),
            (percent_at_least, s.certified),
            (percent_at_most, s.certified_most),
            (percent_at_most, s.attacked),
        )
        rows.append((exactly(s.radius), *("" if share is None else told(share) for told, share in shown)))
    filled = [j for j in range(len(head)) if any(row[j] for row in rows)]
    return table([head[j] for j in filled], [[row[j] for j in filled] for row in rows])


def curves(points: Sequence[Point]) -> Html:
    """Certified accuracy and safety against the radius: step functions of what is proved."""
    counted = Shares(points)
    ends = counted.ends()
    if not ends:
        return Html("")
    steps = [counted.at(radius) for radius in (*ends, 1.05 * ends[-1])]
    figures = [_safety_plot(steps)]
    clean = clean_accuracy(points)
    if clean is not None:
        tried = [counted.at(radius) for radius in radii_asked(points)]
        figures.insert(0, _accuracy_plot(clean, steps, [s for s in tried if s.attacked is not None]))
    return tag("div", *figures, class_="plots")


def _safety_plot(steps: Sequence[AtRadius]) -> Html:
    xs = [s.radius for s in steps]
    plot = Plot(xs[-1], 1.0, ("radius", "share of points"), percent=True)
    # A point proved safe up to r counts up to r; a counterexample at r counts from r on.
    for ys, look, onto in (
        ([float(s.safe) for s in steps], "good", 0.0),
        ([1.0, *(float(1 - s.unsafe) for s in steps[:-1])], "bad", 1.0),
    ):
        plot.steps(xs, ys, look, onto=onto)
        plot.steps(xs, ys, look)
    keys = (
        ("good", "proved safe: the label cannot change"),
        ("bad", "unsafe: a point of another label is known"),
    )
    picture = plot.html("share of points proved safe and known unsafe against the radius")
    return _captioned(picture, "Safety", keys, "Between the curves: not decided.")


def _accuracy_plot(clean: Fraction, steps: Sequence[AtRadius], tried: Sequence[AtRadius]) -> Html:
    xs = [s.radius for s in steps]
    plot = Plot(xs[-1], 1.0, ("radius", "accuracy"), percent=True)
    certified = [float(s.certified or 0) for s in steps]
    plot.steps(xs, [float(clean), *(float(s.certified_most or 0) for s in steps[:-1])], "soft")
    plot.steps(xs, certified, "good", onto=0.0)
    plot.steps(xs, certified, "good")
    left = [s.attacked or Fraction() for s in tried]
    told = [
        f"attacked accuracy {percent_at_most(share)} at {exactly(s.radius)}"
        for share, s in zip(left, tried, strict=True)
    ]
    plot.dots([s.radius for s in tried], list(map(float, left)), "bad", told)
    keys = [("good", "certified accuracy (proved)"), ("", "the most it can be, given the counterexamples")]
    keys += [("bad", "accuracy under attack")] if tried else []
    return _captioned(plot.html("certified accuracy against the radius"), "Accuracy", keys, "")


def _captioned(picture: Html, title: str, keys: Sequence[tuple[str, str]], text: str) -> Html:
    told = [tag("div", tag("span", "", class_=f"key {look}"), name) for look, name in keys]
    return tag("figure", tag("h3", title), picture, tag("figcaption", *told, text))


def distributions(points: Sequence[Point]) -> Html:
    """Histograms of certified radii and of delta."""
    figures = []
    radii = [p.found[0] for p in points if p.found]
    if radii:
        figures.append(_histogram(radii, "radius proved safe", "Certified radii", radius_at_least))
    ranges = [p.ranges[-1] for p in points if p.ranges]
    deltas = [r.delta for r in ranges if r.name == ranges[0].name]
    if deltas:
        name = f"delta: largest minus smallest P({ranges[0].name}), at most"
        figures.append(_histogram(deltas, name, "Delta", at_most, upper=True))
    return tag("div", *figures, class_="plots") if figures else Html("")


def _histogram(
    values: Sequence[_E], name: str, title: str, told: Callable[[_E], str], upper: bool = False
) -> Html:
    """`told` rounds a value to the side on which it still holds; so does the median, `upper` or lower."""
    most = float(max(values)) or 1.0
    counts = [0] * _BINS
    for value in values:
        counts[min(int(_BINS * (float(value) / most)), _BINS - 1)] += 1
    plot = Plot(most, max(counts) * 1.05, (name, "points"))
    for k, count in enumerate(counts):
        low, high = most * (k / _BINS), most * ((k + 1) / _BINS)
        plot.bar(low, high, count, "plain", f"{count} between about {low:.4g} and {high:.4g}")
    middle = sorted(values)[(len(values) - (not upper)) // 2]
    caption = f"median {told(middle)}, smallest {told(min(values))}, largest {told(max(values))}"
    return _captioned(plot.html(f"histogram: {name}"), title, (), caption)


def explanations(points: Sequence[Point], names: Sequence[str], image_shape: tuple[int, int] | None) -> Html:
    """Mean influence of each feature over the points, with proved bounds; of pixels, also as a picture."""
    every = [p.explained[-1] for p in points if p.explained]
    if not every:
        return Html("")
    first, size = every[0], len(every[0].value)
    found = [e for e in every if (e.name, e.radius, len(e.value)) == (first.name, first.radius, size)]
    value = np.mean([e.value for e in found], axis=0)
    rows = []
    for j in np.argsort(-np.abs(value), kind="stable")[:_FEATURES].tolist():
        low, high = exact_mean([e.lower[j] for e in found]), exact_mean([e.upper[j] for e in found])
        rows.append((names[j] if j < len(names) else f"x{j}", f"{value[j]:+.3f}", between(low, high)))
    text = (
        f"How much each feature alone, moving by up to {exactly(first.radius)}, moves P({first.name}), "
        f"averaged over {len(found)} points: positive where more of the feature speaks for the class."
    )
    told = [tag("p", text)]
    if image_shape is not None and size == image_shape[0] * image_shape[1]:
        picture = heat_image(
            value.reshape(image_shape), float(np.abs(value).max()), "mean influence of pixels"
        )
        caption = tag("figcaption", "orange: brighter speaks for the class")
        told.append(tag("div", tag("figure", picture, caption), class_="pictures"))
    return join([*told, table(("feature", "mean influence", "proved bounds"), rows)])


def settings(documents: Sequence[tuple[str, Mapping[str, Any]]]) -> Html:
    """Everything needed to ask again: for each file its settings, once the model, the data, the versions."""
    parts = []
    for name, document in documents:
        head = {key: document[key] for key in ("verb", "created", "complete", "asked", "seconds")}
        parts.append(tag("h3", name))
        parts.append(_listed(head | dict(document["settings"])))
    first = documents[0][1]
    for title in ("model", "data", "versions"):
        parts += [tag("h3", title.capitalize()), _listed(first[title])]
    return join(parts)


def _listed(values: Mapping[str, Any]) -> Html:
    return table((), [(str(key), _told(value)) for key, value in values.items()])


def _told(value: Any) -> Html:
    """A value in full; a long one folded away behind its beginning."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _LONG:
        return tag("code", text)
    return tag("details", tag("summary", tag("code", text[:_LONG] + " ...")), tag("code", text))


_MEANING = (
    "“Proved safe”: no point of the region, tried or not, has another label, in real arithmetic for the "
    "stored model. “Unsafe”: a point of the region with another label is known. “Certified accuracy” counts "
    "points whose label is right and proved safe: accuracy under any perturbation is at least this. "
    "“Attacked accuracy” is what the attacks tried left over: an upper bound, never a guarantee. "
    "What is proved is rounded down, what may be left is rounded up."
)

"""The parts of the report besides its table: headline, curves, distributions, explanations, settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.report.html import Html, join, table, tag
from gpcert.report.numbers import between, radius_at_least
from gpcert.report.pictures import heat_image
from gpcert.report.points import Point
from gpcert.report.summary import AtRadius, Shares, clean_accuracy, median_radius, radii_asked
from gpcert.report.svg import Plot

__all__ = ["curves", "distributions", "explanations", "headline", "settings"]

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
        tiles.append(_tile(_percent(clean), "clean accuracy"))
    # The radius that was attacked, else the largest: one figure is to be remembered, the table has them all.
    for share in [s for s in shares if s.attacked is not None][:1] or shares[-1:]:
        at = f"at radius {share.radius:g}"
        if share.certified is not None:
            tiles.append(_tile(_percent(share.certified), f"certified accuracy {at}"))
        else:
            tiles.append(_tile(_percent(share.safe), f"proved safe {at}"))
        if share.attacked is not None:
            tiles.append(_tile(_percent(share.attacked), f"attacked accuracy {at}"))
    if median is not None:
        tiles.append(_tile(radius_at_least(median), "median certified radius"))
    parts = [tag("div", *tiles, class_="tiles")]
    if shares:
        parts += [_by_radius(shares), tag("p", _MEANING, class_="soft")]
    return join(parts)


def _tile(figure: str, what: str) -> Html:
    return tag("div", tag("b", figure), tag("span", what), class_="tile")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _by_radius(shares: Sequence[AtRadius]) -> Html:
    proved = ("radius", "proved safe", "unsafe", "not decided")
    head = (*proved, "certified accuracy", "at most", "attacked accuracy")
    rows = []
    for s in shares:
        verdicts = (s.safe, s.unsafe, max(0.0, 1.0 - s.safe - s.unsafe))
        accuracies = (s.certified, s.certified_most, s.attacked)
        rows.append((f"{s.radius:g}", *(_percent(share) for share in (*verdicts, *accuracies))))
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
        ([s.safe for s in steps], "good", 0.0),
        ([1.0, *(1.0 - s.unsafe for s in steps[:-1])], "bad", 1.0),
    ):
        plot.steps(xs, ys, look, onto=onto)
        plot.steps(xs, ys, look)
    keys = (
        ("good", "proved safe: the label cannot change"),
        ("bad", "unsafe: a point of another label is known"),
    )
    picture = plot.html("share of points proved safe and known unsafe against the radius")
    return _captioned(picture, "Safety", keys, "Between the curves: not decided.")


def _accuracy_plot(clean: float, steps: Sequence[AtRadius], tried: Sequence[AtRadius]) -> Html:
    xs = [s.radius for s in steps]
    plot = Plot(xs[-1], 1.0, ("radius", "accuracy"), percent=True)
    certified = [s.certified or 0.0 for s in steps]
    plot.steps(xs, [clean, *(s.certified_most or 0.0 for s in steps[:-1])], "soft")
    plot.steps(xs, certified, "good", onto=0.0)
    plot.steps(xs, certified, "good")
    told = [f"attacked accuracy {_percent(s.attacked)} at {s.radius:g}" for s in tried]
    plot.dots([s.radius for s in tried], [s.attacked or 0.0 for s in tried], "bad", told)
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
        figures.append(_histogram(radii, "radius proved safe", "Certified radii"))
    deltas = [p.ranges[-1].delta[1] for p in points if p.ranges]
    if deltas:
        figures.append(_histogram(deltas, "delta: largest minus smallest probability, at most", "Delta"))
    return tag("div", *figures, class_="plots") if figures else Html("")


def _histogram(values: Sequence[float], name: str, title: str) -> Html:
    counts, edges = np.histogram(values, bins=_BINS, range=(0.0, max(values) or 1.0))
    plot = Plot(float(edges[-1]), float(counts.max()) * 1.05, (name, "points"))
    for count, low, high in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        plot.bar(low, high, count, "plain", f"{count} in [{low:.4g}, {high:.4g}]")
    middle = sorted(values)[(len(values) - 1) // 2]
    caption = f"median {middle:.4g}, smallest {min(values):.4g}, largest {max(values):.4g}"
    return _captioned(plot.html(f"histogram: {name}"), title, (), caption)


def explanations(points: Sequence[Point], names: Sequence[str], image_shape: tuple[int, int] | None) -> Html:
    """Mean influence of each feature over the points, with proved bounds; of pixels, also as a picture."""
    found = [p.explained[-1] for p in points if p.explained]
    size = len(found[0].value) if found else 0
    found = [e for e in found if e.value.shape == e.lower.shape == e.upper.shape == (size,)]
    if not found:
        return Html("")
    parts = ("value", "lower", "upper")
    value, low, high = (np.mean([getattr(e, part) for e in found], axis=0) for part in parts)
    order = np.argsort(-np.abs(value), kind="stable")[:_FEATURES].tolist()
    rows = [
        (names[j] if j < len(names) else f"x{j}", f"{value[j]:+.3f}", between(low[j], high[j])) for j in order
    ]
    text = (
        f"How much each feature alone, moving by up to {found[0].radius:g}, moves P({found[0].name}), "
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
    "“Attacked accuracy” is what the attacks tried left over: an upper bound, never a guarantee."
)

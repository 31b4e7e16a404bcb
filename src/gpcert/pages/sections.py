"""The parts of the report in words and tables: the claim, figures to remember, classes, settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from gpcert.html import Html, join, table, tag
from gpcert.numbers import exactly, percent, percent_at_least, percent_at_most, radius_at_least
from gpcert.pages.groups import Group
from gpcert.pages.html import packaged
from gpcert.pages.points import Point
from gpcert.pages.summary import AtRadius, Shares, clean_accuracy, main_radius, median_radius, radii_asked
from gpcert.records.results_file import summary
from gpcert.results.wording import NOT_MEANT, proved, while_moving

__all__ = ["claim", "classes", "glossary", "headline", "settings"]

_LONG = 90  # characters of a setting shown without a click
_DIGITS = 5  # of a number that is shown for people


def claim(group: Group) -> Html:
    """What is proved in one sentence, what it does not mean, and the sentences of every file."""
    radius, shares = main_radius(group.points), Shares(group.points)
    every = [text for _, document, rows in group.results for text in summary(document, rows)]
    first = every[0] if every else ""
    if radius is not None:
        at = shares.at(radius)
        share = at.safe if at.certified is None else at.certified
        moving = while_moving(group.region, exactly(radius), group.words)
        first = proved(
            int(share * len(group.points)), len(group.points), shares.labelled, group.threshold, moving
        )
    rest = [text for text in every if text != first]
    link = tag("a", "What the words mean", href="#what-the-words-mean")
    parts = [tag("p", first, class_="claim"), tag("p", " ".join(NOT_MEANT), " ", link, class_="soft")]
    if rest:
        parts.append(
            tag(
                "details",
                tag("summary", "everything these files show, sentence by sentence"),
                tag("ul", *(tag("li", text) for text in rest)),
            )
        )
    return tag("div", *parts, class_="lead")


def headline(group: Group) -> Html:
    """The figures to remember, each explained, then the same at every radius that was asked about."""
    points, counted = group.points, Shares(group.points)
    n, clean, middle, radius = len(points), clean_accuracy(points), median_radius(points), main_radius(points)
    tiles = [_tile(f"{n:,}", "row" if n == 1 else "rows", "asked about")]
    if clean is not None:
        tiles.append(_tile(percent(clean), "accuracy", f"{_of(clean, n)} right while no input is off"))
    if radius is not None:
        share, at = counted.at(radius), f"at radius {exactly(radius)}"
        if share.certified is not None:
            counts = f"{_of(share.certified, n)} right and proved safe"
            told = percent_at_least(share.certified), f"certified accuracy {at}", counts
        else:
            told = percent_at_least(share.safe), f"proved safe {at}", f"{_of(share.safe, n)} cannot change"
        tiles.append(_tile(*told))
        if share.attacked is not None:
            left = f"{_of(share.attacked, n)} left by an attack: no proof"
            tiles.append(_tile(percent_at_most(share.attacked), f"accuracy under attack {at}", left))
    if middle is not None and math.isfinite(middle):
        tiles.append(
            _tile(radius_at_least(middle), "median certified radius", "half of the rows are safe up to it")
        )
    shares = [counted.at(r) for r in radii_asked(points)]
    by_radius = [_by_radius(shares), tag("p", _ROUNDED, class_="soft")] if shares else []
    return join([tag("div", *tiles, class_="tiles"), *by_radius])


_ROUNDED = (
    "Shares that are proved are rounded down, what may at most be is rounded up: so the same count of rows "
    "can be shown as 90.5 % and as 90.6 %."
)


def _of(share: Fraction, n: int) -> str:
    return f"{int(share * n):,} of {n:,}"


def _tile(figure: str, what: str, meaning: str) -> Html:
    return tag("div", tag("b", figure), tag("span", what), tag("small", meaning), class_="tile")


def _by_radius(shares: Sequence[AtRadius]) -> Html:
    """A line per radius: what is proved at least, what may be at most."""
    known = ("radius", "proved safe", "can change", "not decided")
    head = (*known, "certified accuracy", "at most", "accuracy under attack")
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
    return table([head[j] for j in filled], [[row[j] for j in filled] for row in rows], "figures")


def classes(group: Group) -> Html:
    """Each class by itself: clean and certified recall, and a confusion matrix of what is certain."""
    names, radius = group.words.classes, main_radius(group.points)
    members = {name: [p for p in group.points if p.label == name] for name in names}
    if any(p.label is None for p in group.points) or radius is None or not any(members.values()):
        return Html("")
    called = {name: f"{name}{_ROLES[len(names) == 2][k % 2]}" for k, name in enumerate(names)}
    rows = [_class_row(called[name], some, radius) for name, some in members.items() if some]
    head = ("true class", "rows", "recall", "certified recall", "at most")
    certain = ("certainly right", "can be made wrong", "wrong already", "undecided")
    matrix = [
        (name, *(_cell([p for p in some if p.predicted == other], radius) for other in names))
        for name, some in members.items()
        if some
    ]
    told = (
        f"At radius {exactly(radius)}: “certainly right” are rows predicted rightly and proved safe; “can be "
        "made wrong” are right, but a counterexample is known. Below, rows by true and predicted class, with "
        "how many keep that prediction, proved."
    )
    return join(
        [
            tag("p", told),
            table((*head, *certain), rows, "figures"),
            table(("true \\ predicted", *names), matrix, "figures") if len(names) <= 12 else Html(""),
        ]
    )


_ROLES = {True: (" (specificity)", " (sensitivity)"), False: ("", "")}


def _class_row(name: str, some: Sequence[Point], radius: float) -> tuple[str, ...]:
    n, at = len(some), Shares(some).at(radius)
    right = sum(bool(p.correct) for p in some)
    sure = sum(bool(p.correct) and p.safe >= radius for p in some)
    broken = sum(bool(p.correct) and p.unsafe <= radius for p in some)
    shares = (
        percent(Fraction(right, n)),
        percent_at_least(at.certified or 0),
        percent_at_most(at.certified_most or 0),
    )
    return (name, f"{n:,}", *shares, *(f"{k:,}" for k in (sure, broken, n - right, right - sure - broken)))


def _cell(some: Sequence[Point], radius: float) -> str:
    kept = sum(p.safe >= radius for p in some)
    return f"{len(some):,} ({kept:,} proved to stay)" if some else "0"


def settings(group: Group) -> Html:
    """Everything needed to ask again: for each file its settings, once the model, the data, the versions."""
    parts = []
    for path, document, _ in group.results:
        head = {key: document[key] for key in ("verb", "created", "complete", "asked", "seconds")}
        parts += [tag("h3", path.name), _listed(head | dict(document["settings"]))]
    for title in ("model", "data", "versions"):
        parts += [tag("h3", title.capitalize()), _listed(group.document[title])]
    return tag(
        "div",
        tag("p", "Rounded for people; a click shows a value in full.", class_="soft"),
        *parts,
        class_="settings",
    )


def _listed(values: Mapping[str, Any]) -> Html:
    return table((), [(str(key), _setting(value)) for key, value in values.items()])


def _setting(value: Any) -> Html:
    """A value for people; behind it, where that is less, in full."""
    exact = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else json.dumps(_short(value), ensure_ascii=False)
    text = text if len(text) <= _LONG else text[:_LONG] + " …"
    if text == exact:
        return tag("code", {"null": "none", "true": "yes", "false": "no"}.get(text, text))
    return tag("details", tag("summary", tag("code", text)), tag("code", exact))


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        if value and all(each == value[0] for each in value):
            return (
                f"{json.dumps(_short(value[0]))} for all {len(value)}"
                if len(value) > 2
                else list(map(_short, value))
            )
        return [_short(each) for each in value]
    return {k: _short(v) for k, v in value.items()} if isinstance(value, dict) else value


def glossary() -> Html:
    """The words of the page, explained in it."""
    return Html(packaged("words.html"))

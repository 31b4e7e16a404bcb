"""The parts of the report in words and tables: the claim, figures to remember, classes, settings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from gpcert.html import Html, join, table, tag
from gpcert.numbers import exactly, percent, radius_at_least
from gpcert.pages.groups import ResultGroup
from gpcert.pages.html import word
from gpcert.pages.points import (
    AtRadius,
    ProvedShares,
    RowAnswers,
    clean_accuracy,
    main_radius,
    median_radius,
    own_statuses,
    radii_asked,
    radii_attacked,
    shown_radius,
)
from gpcert.records.results_file import impossible as unlike_training_of
from gpcert.records.results_file import summary
from gpcert.records.results_file import units as tables_of
from gpcert.results.wording import proved, while_moving

_LONG = 90  # characters of a setting shown without a click
_DIGITS = 5  # of a number that is shown for people
_NAMES = 12  # classes of a confusion matrix
_FEW = 3  # sentences that are not folded away

#: Said under every claim.
_NOT_MEANT = (
    "It does not say that other predictions are right, nor that real errors stay this small: that is for you "
    "to know.",
    "It holds for the model as stored, and for every change of that size at once, tried or not; for another "
    "model, retrained or rounded, it has to be proved again.",
)
#: The same under what attacks show.
_ATTACK_MEANS = (
    "Where an attack finds nothing it proves nothing: a change that it missed may exist.",
    "It does not say that real errors stay this small; for another model, retrained or rounded, ask again.",
)


def claim(group: ResultGroup) -> Html:
    """What is proved in one sentence, what it does not mean, and the sentences of every file."""
    first, *rest = claims(group)
    more = "everything these files show, sentence by sentence"
    return stated(first, more, rest, only_attacked(group), len(rest) > _FEW)


def impossible(group: ResultGroup) -> Html:
    """That regions and counterexamples have values unlike any in training."""
    found = unlike_training_of(group.document, group.rows, ("--domain data", "--features"))
    meant = "What is proved safe is safe without such values, too; a counterexample may need one."
    return tag("p", tag("b", "Careful: "), f"{found}. {meant}") if found else Html("")


def units(group: ResultGroup) -> Html:
    """How far each feature may be off, in its own unit, where a sentence cannot say it."""
    found = [table(head, lines, "figures") for head, lines in tables_of(group.document, group.rows)]
    text = "How far each feature may be off, in its own unit (rounded down):"
    return join([tag("p", text), *found]) if found else Html("")


def only_attacked(group: ResultGroup) -> bool:
    """Whether nothing was asked that could be proved."""
    return all(document["verb"] == "attack" for _, document, _ in group.results)


def claims(group: ResultGroup) -> list[str]:
    """The sentences of every file; the one to remember first."""
    radius, shares = main_radius(group.points), ProvedShares(group.points)
    every = [text for _, document, rows in group.results for text in summary(document, rows)]
    first = every[0] if every else ""
    if radius is not None:
        at = shares.at(radius)
        share = at.safe if at.certified is None else at.certified
        moving, n = while_moving(group.region, exactly(radius), group.words), len(group.points)
        first = proved(int(share * n), n, shares.labelled, group.threshold, moving, group.words)
    elif own_statuses(group.points):
        one = all(len(p.verdicts) == 1 for p in group.points)
        far = "the radius of its" if one else "the largest radius asked of its"
        moving, n = while_moving(group.region, f"{far} {group.words.row}", group.words), len(group.points)
        first = proved(_held_alone(group), n, shares.labelled, group.threshold, moving, group.words)
    return [first, *(text for text in every if text != first)]


def _held_alone(group: ResultGroup) -> int:
    """How many rows are proved safe, and right where labels are known, each at its own radius."""
    pairs = zip(group.points, own_statuses(group.points), strict=True)
    labelled = all(p.correct is not None for p in group.points)
    return sum(status == "safe" and (not labelled or bool(p.correct)) for p, status in pairs)


def stated(first: str, more: str, rest: Sequence[str], attacked: bool, folded: bool) -> Html:
    """A sentence to remember, what it does not mean, and `more`; `attacked`: nothing is proved."""
    link = tag("a", "What the words mean", href="#what-the-words-mean")
    meant = _ATTACK_MEANS if attacked else _NOT_MEANT
    look = "claim tried" if attacked else "claim"
    parts = [tag("p", first, class_=look), tag("p", " ".join(meant), " ", link, class_="soft")]
    if rest:
        every = tag("ul", *(tag("li", text) for text in rest))
        parts.append(tag("details", tag("summary", more), every, **({} if folded else {"open": ""})))
    return tag("div", *parts, class_="lead")


def headline(group: ResultGroup) -> Html:
    """The figures to remember, each explained, then the same at every radius that was asked."""
    points, counted, words = group.points, ProvedShares(group.points), group.words
    n, clean, middle, radius = len(points), clean_accuracy(points), median_radius(points), main_radius(points)
    about = "with answers" if words.partly else "in this report"
    tiles = [_tile(f"{n:,}", words.row if n == 1 else words.rows, about)]
    if clean is not None:
        text = f"{_of(clean, n)} right while no input is off"
        tiles.append(_tile(percent(clean), word("accuracy", "clean"), text))
    if radius is not None:
        share, at = counted.at(radius), f" at radius {group.far(radius)}"
        if share.certified is not None:
            what = join([word("certified accuracy", "certified", group.threshold), at])
            text = f"{_of(share.certified, n)} right and proved safe"
            tiles.append(_tile(percent(share.certified), what, text))
        else:
            kept = "cannot change" if group.threshold == 0.5 else f"stay above {exactly(group.threshold)}"
            what = join([word("proved safe", "safe", group.threshold), at])
            tiles.append(_tile(percent(share.safe), what, f"{_of(share.safe, n)} {kept}"))
    if own_statuses(points):
        held, key = (_held_alone(group), n), "safe" if clean is None else "certified"
        what = word("proved safe" if clean is None else "certified accuracy", key, group.threshold)
        text = f"{held[0]:,} of {n:,}{'' if clean is None else ' right and'} proved safe"
        where = "at its own radius" if any(p.verdicts for p in points) else "over its own box"
        each = join([what, f", each {words.row} {where}"])
        tiles.append(_tile(percent(Fraction(*held)), each, text))
    attacked = radii_attacked(points)
    for tried in [radius] if radius in attacked else attacked[-1:]:
        left = counted.at(tried).attacked
        if left is not None:
            what = join([word("accuracy under attack", "attacked"), f" at radius {group.far(tried)}"])
            text = f"{_of(left, n)} right and not changed by an attack: no proof"
            tiles.append(_tile(percent(left), what, text))
    if middle is not None and math.isfinite(middle):
        unit = f" (in {words.unit})" if words.unit else ""
        text = f"at least half of the {words.rows} are proved safe up to it{unit}"
        text = text if middle > 0 else f"less than half of the {words.rows} have one"
        tiles.append(_tile(radius_at_least(middle), word("median certified radius", "median"), text))
    shares = [counted.at(r) for r in radii_asked(points)]
    parts = [impossible(group), _below_threshold(group), tag("div", *tiles, class_="tiles")]
    return join([*parts, _by_radius(group, shares)] if shares else parts)


def _below_threshold(group: ResultGroup) -> Html:
    """What is proved where another threshold than one half was asked for."""
    if group.threshold == 0.5:
        return Html("")
    least = exactly(group.threshold)
    text = f"Here “safe” means that the probability of the predicted class stays above {least}"
    but = ", which does not say that it stays the largest" if group.threshold < 0.5 else ""
    return tag("p", f"{text}{but}; “can fall to {least}”: an input is known where it is at most that.")


def _of(share: Fraction, n: int) -> str:
    return f"{int(share * n):,} of {n:,}"


def _tile(figure: str, what: str, meaning: str) -> Html:
    return tag("div", tag("b", figure), tag("span", what), tag("small", meaning), class_="tile")


def _by_radius(group: ResultGroup, shares: Sequence[AtRadius]) -> Html:
    """A line per radius: what is proved at least, what may be at most."""
    n, proves = len(group.points), any(p.verdicts or p.found for p in group.points)
    explained = partial(word, threshold=group.threshold)
    head = (
        explained(group.radius_name, "radius"),
        explained("proved safe", "safe"),
        explained(group.called["unsafe"], "unsafe"),
        explained("not decided", "open"),
        explained("certified accuracy", "certified"),
        explained(group.most, "most"),
        explained("accuracy under attack", "attacked"),
    )
    rows = []
    for s in shares:
        known = s.safe, s.unsafe, 1 - s.safe - s.unsafe, s.certified, s.certified_most
        shown = *(known if proves else [None] * len(known)), s.attacked
        cells = ("" if share is None else f"{int(share * n):,} ({percent(share)})" for share in shown)
        rows.append((exactly(s.radius), *cells))
    filled = [j for j in range(len(head)) if any(row[j] for row in rows)]
    figures = table([head[j] for j in filled], [[row[j] for j in filled] for row in rows], "figures")
    return join([figures, tag("p", f"Counts of {n:,} {group.words.rows}.", class_="soft")])


def classes(group: ResultGroup) -> Html:
    """Each class by itself: clean and certified recall, and a confusion matrix of what is certain."""
    names, radius, rows = group.words.classes, shown_radius(group.points), group.words.rows
    members = {name: [p for p in group.points if p.label == name] for name in names}
    if any(p.label is None for p in group.points) or radius is None or not any(members.values()):
        return Html("")
    lines = [_class_row(name, some, radius) for name, some in members.items() if some]
    certain = "certainly right", "can be made wrong", "wrong already", "undecided"
    if group.threshold != 0.5:
        certain = "right and proved safe", f"right, {group.called['unsafe']}", "wrong already", "undecided"
    most = word(group.most, "most", group.threshold)
    recall = word("recall", "recall"), word("certified recall", "recall"), most
    text = (
        f"At radius {group.far(radius)}: “{certain[0]}” are {rows} predicted rightly and proved safe; "
        f"“{certain[1]}” are right, but a counterexample is known."
    )
    if len(names) == 2:  # which of them is looked for, nobody has said
        text += " The recall of the positive class is the sensitivity, that of the other the specificity."
    below = f"The {rows} by true and predicted class, with how many of them are proved safe:"
    matrix = [
        (name, *(_cell([p for p in some if p.predicted == other], radius) for other in names))
        for name, some in members.items()
        if some
    ]
    parts = [tag("p", text), table(("true class", rows, *recall, *certain), lines, "figures")]
    if len(names) <= _NAMES:
        parts += [tag("p", below), table(("true \\ predicted", *names), matrix, "figures")]
    return join(parts)


def _class_row(name: str, some: Sequence[RowAnswers], radius: float) -> tuple[str, ...]:
    n, at = len(some), ProvedShares(some).at(radius)
    right = sum(bool(p.correct) for p in some)
    sure = sum(bool(p.correct) and p.safe >= radius for p in some)
    broken = sum(bool(p.correct) and p.unsafe <= radius for p in some)
    shares = (
        percent(Fraction(right, n)),
        percent(at.certified or Fraction()),
        percent(at.certified_most or Fraction()),
    )
    return (name, f"{n:,}", *shares, *(f"{k:,}" for k in (sure, broken, n - right, right - sure - broken)))


def _cell(some: Sequence[RowAnswers], radius: float) -> str:
    kept = sum(p.safe >= radius for p in some)
    return f"{len(some):,} ({kept:,} proved safe)" if some else "0"


def settings(group: ResultGroup) -> Html:
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
    return table((), [(str(key), _setting(value, str(key))) for key, value in values.items()])


#: What nothing means where a setting was not given.
_NONE = {
    "features": "all",
    "domain": "no limits",
    "scale": "units of the data",
    "max_seconds": "no limit",
    "max_nodes": "no limit",
}


def _setting(value: Any, name: str) -> Html:
    """A value for people; behind it, where that is less, in full."""
    exact = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else json.dumps(_short(value), ensure_ascii=False)
    text = text if len(text) <= _LONG else text[:_LONG] + " …"
    if text == exact:
        return tag("code", {"null": _NONE.get(name, "none"), "true": "yes", "false": "no"}.get(text, text))
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

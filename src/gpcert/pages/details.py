"""What is known of one point: verdicts, ranges, counterexample, pictures; influences of features."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_least, at_most, between, exact_mean, exactly, radius_at_least, radius_at_most
from gpcert.pages.groups import Group
from gpcert.pages.html import word
from gpcert.pages.points import Explained, Point, Ranged
from gpcert.pictures import grey_image, heat_image
from gpcert.results import ProbabilityRange, ProofFile
from gpcert.results.wording import Words, far, within_limits
from gpcert.validation import Float

_BARS = 15  # features of an explanation that are drawn, the most influential first
_OWN = 8  # of one row
_LETTERS = 30  # of a feature's name beside its bar, for which there is room
_PRINTED = 60  # features of a list that is unfolded on paper


def influences(group: Group, shape: tuple[int, int] | None) -> Html:
    """Mean influence of each feature as bars with proved intervals; of pixels, a picture, too."""
    every = [p.explained[-1] for p in group.points if p.explained]
    if not every:
        return Html("")
    first, size = every[0], len(every[0].value)
    kind = first.name, first.ball.radius, size
    found = [e for e in every if (e.name, e.ball.radius, len(e.value)) == kind]
    means = _means(found, size)
    order = sorted(range(size), key=lambda j: -abs(means[j][0] + means[j][1]))
    noun = group.words.noun
    text = (
        f"How much each of the {noun} alone, off by up to {_reach(first, group.words)}, moves "
        f"P({first.name}), averaged over {group.words.counted(len(found))}. To the right: more of it speaks "
        f"for {first.name}. The solid bar is proved; the true value may be as far as the faint end."
    )
    drawn = [tag("figure", _bars([(group.words.feature(j), *means[j]) for j in order[:_BARS]]))]
    if shape is not None and size == shape[0] * shape[1]:
        value = np.array([float(low + high) / 2 for low, high in means])
        picture = heat_image(value.reshape(shape), float(np.abs(value).max()), "mean influence of pixels")
        told = f"orange: brighter speaks for {first.name}; blue: against"
        caption = tag("figcaption", told)
        drawn.append(tag("figure", picture, caption, class_="wide"))
    rows = [(group.words.feature(j), between(*means[j])) for j in order]
    head = ("feature", join(["mean ", word("influence", "influence"), ", proved in"]))
    all_ = tag("details", tag("summary", f"all {size} {noun}"), table(head, rows), class_=_fold(size))
    return join([tag("p", text), tag("div", *drawn, class_="pictures"), all_])


def _fold(size: int) -> str:
    """Lists of many pages stay folded on paper."""
    return "long" if size > _PRINTED else ""


def own_influences(point: Point, words: Words) -> Html:
    """What moves the probability of one row, the most influential features first."""
    if not point.explained:
        return Html("")
    found = point.explained[-1]
    ends = _means([found], len(found.value))
    order = sorted(range(len(ends)), key=lambda j: -abs(ends[j][0] + ends[j][1]))[:_OWN]
    reach = _reach(found, words)
    told = f"Influence on P({found.name}) of one of the {words.noun} alone, off by up to {reach}:"
    bars = _bars([(words.feature(j), *ends[j]) for j in order], 150.0)
    return tag("figure", tag("p", told), bars, class_="own")


def _reach(found: Explained, words: Words) -> str:
    """How far one feature moves alone, and within which limits."""
    return far(exactly(found.ball.radius), words, found.ball) + within_limits(found.ball, words)


def _means(found: Sequence[Explained], size: int) -> list[tuple[Fraction, Fraction]]:
    return [
        (exact_mean([e.lower[j] for e in found]), exact_mean([e.upper[j] for e in found]))
        for j in range(size)
    ]


def _bars(rows: Sequence[tuple[str, Fraction, Fraction]], width: float = 330.0) -> Html:
    """Bars from 0: solid up to the nearer end of the interval, faint to the farther."""
    left, line = 12.0 + 7.5 * min(_LETTERS, max(len(name) for name, *_ in rows)), 21.0
    most = max(max(abs(low), abs(high)) for _, low, high in rows) or Fraction(1)
    negative = any(low < 0 for _, low, _ in rows)
    zero = left + (width / 2 if negative else 0.0)
    half = width / 2 if negative else width

    def x(value: Fraction) -> float:
        return zero + float(value / most) * half

    parts = [
        tag("line", x1=f"{zero:.1f}", x2=f"{zero:.1f}", y1="0", y2=f"{line * len(rows):g}", class_="grid")
    ]
    for k, (name, low, high) in enumerate(rows):
        near = max(low, Fraction()) if low + high >= 0 else min(high, Fraction())
        far = min(x(low), zero), max(x(high), zero)
        inner = sorted((zero, x(near)))
        spans = ((far[0], far[1], "wide"), (inner[0], inner[1], "sure"))
        bars = [
            tag("rect", x=f"{a:.1f}", y=f"{line * k + 4:.1f}", width=f"{b - a:.1f}", height="13", class_=look)
            for a, b, look in spans
        ]
        y = f"{line * k + 15:.1f}"
        shown = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        parts.append(
            tag(
                "g",
                tag("title", f"{name}: {between(low, high)}"),
                tag("text", shown, x=f"{left - 8:g}", y=y, class_="name end"),
                *bars,
                tag("text", between(low, high), x=f"{left + width + 8:g}", y=y, class_="tick"),
                class_="up" if low + high >= 0 else "down",
            )
        )
    box = f"0 0 {left + width + 110:g} {line * len(rows):g}"
    return tag(
        "svg", *parts, viewBox=box, role="img", aria_label="influences with proved intervals", class_="bars"
    )


_MOVES = 12  # features listed of a counterexample without a click, the largest moves first
_SHORT = 6  # characters of a radius that somebody typed


class Pictures(NamedTuple):
    """How to show a point: shape of its image if it is one, words, units of features, black and white.

    `threshold`: what the probability of its class has to stay above.
    """

    shape: tuple[int, int] | None
    words: Words
    scale: Float | None
    low: float
    high: float
    threshold: float = 0.5

    @property
    def kept(self) -> str:
        """What is proved of a safe point."""
        if self.threshold == 0.5:
            return "the class cannot change"
        return f"the probability stays above {exactly(self.threshold)}"

    @property
    def lost(self) -> str:
        """What is known of an unsafe one."""
        if self.threshold == 0.5:
            return "the class can change"
        return f"the probability can fall to {exactly(self.threshold)}"

    def other(self, point: Point) -> str:
        """What a counterexample is: of two classes, the other one."""
        if self.threshold != 0.5:
            return f"probability at most {exactly(self.threshold)}"
        others = [name for name in self.words.classes if name != point.predicted]
        return (
            f"predicted {others[0]}" if len(self.words.classes) == 2 and len(others) == 1 else "another class"
        )


def card(point: Point, pictures: Pictures) -> Html:
    """A point with its heading, for the gallery."""
    true = "" if point.label is None else f"true {point.label}, "
    mark = tag("span", f"predicted {point.predicted}", class_="wrong" if point.correct is False else "")
    return tag(
        "article",
        tag("h3", f"{pictures.words.row} {point.name}: {true}", mark),
        details(point, pictures),
        class_="card",
    )


def details(point: Point, pictures: Pictures, whole: bool = True) -> Html:
    """What is known of a point, in words and pictures; `whole`: with its counterexample."""
    parts, found = [], point.counterexample if whole else None
    if (
        pictures.shape is not None
        and whole
        and point.x is not None
        and point.x.size == math.prod(pictures.shape)
    ):
        parts.append(_images(point, found, pictures))
    elif found is not None and point.x is not None and found[1].shape == point.x.shape:
        parts.append(_moves(point, *found, pictures))
    elif point.counterexample is not None and not whole:
        parts.append(tag("p", "Its counterexample is in the results file: this page holds the closest ones."))
    own = own_influences(point, pictures.words) if whole else Html("")
    ranges = [_range(found) for found in point.ranges]
    missing = [] if point.unproved is None else [tag("p", f"A proof was asked for: {point.unproved}.")]
    return join([_sentence(point, pictures), *parts, own, *ranges, *map(_proof, point.proofs), *missing])


def _proof(file: ProofFile) -> Html:
    """Where a proof file lies, and the command that checks it; a path of a stranger is never a script."""
    link = tag("a", file.path, href=quote(file.path, safe="/"))
    known = f"the model file with the SHA-256 {file.model}; that of the proof is {file.digest}"
    command = tag("code", _command(file))
    return tag("p", "Proof: ", link, "; checked by ", command, f", where MODEL is {known}.{_less(file)}")


def _less(file: ProofFile) -> str:
    """That a file proves less than the row beside it says, and how much."""
    if file.exact:
        return ""
    ends = "" if file.lower is None or file.upper is None else f": the ends {file.lower!r} and {file.upper!r}"
    return f" The file proves less than the answer says{ends}."


def _command(file: ProofFile) -> str:
    return f"python -m gpcert_check MODEL {shlex.quote(file.path)}"


def _sentence(point: Point, pictures: Pictures) -> Html:
    said = []
    verdicts = [(f"radius {exactly(radius)}", verdict) for radius, verdict in sorted(point.verdicts.items())]
    for where, verdict in [*verdicts, *(("box", verdict) for verdict in point.boxed.values())]:
        told = {"safe": pictures.kept, "unsafe": pictures.lost, "unknown": "not decided"}[verdict.status]
        margin = (
            f"at least {at_least(verdict.margin[0])}"
            if verdict.status == "safe"
            else f"at most {at_most(verdict.margin[1])}"
            if verdict.status == "unsafe"
            else f"in {between(*verdict.margin)}"
        )
        state = tag("span", f"{where}: {told}", class_=verdict.status)
        said.append(tag("li", state, " (", tag("a", "margin", href="#w-margin"), f" {margin})"))
    if point.found is not None:
        known = "no counterexample found"
        if math.isfinite(point.unsafe):
            known = f"{pictures.other(point)} within {radius_at_most(point.unsafe)}"
        held = "no radius is proved safe"  # not even 0: of a tie, or below a threshold of its own
        held = held if point.safe < 0 else f"proved safe up to {radius_at_least(point.safe)}"
        said.append(tag("li", f"{held}; {known}"))
    for radius, attack in sorted(point.attacks.items()):
        did = "changed the class" if attack.success else "did not change the class"
        told = f"attack {attack.method}, radius {exactly(radius)}: {did}"
        left = f"probability of “{attack.label}” then {attack.probability:.3f}"
        said.append(tag("li", f"{told} ({left})"))
    return tag("ul", *said) if said else Html("")


def _range(found: Ranged) -> Html:
    where = "box" if found.radius is None else f"radius {exactly(found.radius)}"
    r = found.answer
    text = (
        f"{where}: the probability of {found.name} is proved to stay in {between(r.lower, r.upper)}; its "
        f"smallest value lies in {between(r.min.lower, r.min.upper)}, its largest in "
        f"{between(r.max.lower, r.max.upper)}"
    )
    text += "." if r.status == "converged" else f" (the search ended early: {r.status})."
    return join([tag("p", text), _bar(found.name, r)])


def _bar(name: str, found: ProbabilityRange) -> Html:
    """The range on the line from 0 to 1, which is 200 wide: faint what the search left open."""

    def span(low: float, high: float, look: str) -> Html:
        x, width = f"{200 * low:.2f}", f"{200 * max(0.0, high - low):.2f}"
        return tag("rect", x=x, y="3", width=width, height="10", class_=look)

    parts = [
        span(0.0, 1.0, "frame"),
        span(found.lower, found.upper, "wide"),
        span(found.min.upper, found.max.lower, "sure"),
        tag("line", x1="100", x2="100", y1="0", y2="16", class_="half"),
    ]
    marks = (("0", 0, ""), ("1/2", 100, "middle"), ("1", 200, "end"))
    parts += [tag("text", text, x=f"{x}", y="25", class_=f"tick {look}") for text, x, look in marks]
    told = f"P({name}) in {between(found.lower, found.upper)}"
    picture = tag("svg", *parts, viewBox="-2 0 204 27", class_="bar", role="img", aria_label=told)
    keys = (("plain", "reached, proved"), ("faint", "not excluded"))
    legend = join(join([tag("span", "", class_=f"key {look}"), f"{text} "]) for look, text in keys)
    return tag("figure", picture, tag("figcaption", legend))


def _images(point: Point, found: tuple[float | None, Float] | None, pictures: Pictures) -> Html:
    assert pictures.shape is not None
    assert point.x is not None
    grey = pictures.low, pictures.high
    shown = [_figure(grey_image(point.x.reshape(pictures.shape), *grey, f"image {point.name}"), "original")]
    if found is not None and found[1].shape == point.x.shape:
        radius, other = found
        moved = (other - point.x).reshape(pictures.shape)
        picture = grey_image(other.reshape(pictures.shape), *grey, f"counterexample to {point.name}")
        shown.append(_figure(picture, f"{pictures.other(point)}, {_near(radius)}"))
        most = float(np.abs(moved).max())
        told = f"{np.count_nonzero(moved)} pixels moved, by up to {radius_at_most(most)}"
        shown.append(_figure(heat_image(moved, most, told), told))
    for influence in point.explained[-1:]:
        if influence.value.shape == point.x.shape:
            map_ = influence.value.reshape(pictures.shape)
            picture = heat_image(map_, float(np.abs(map_).max()), "influence of each pixel")
            shown.append(_figure(picture, f"influence on P({influence.name})"))
    return tag("div", *shown, class_="pictures")


def _near(radius: float | None) -> str:
    """A radius as it was asked, else rounded up; None: that of a box."""
    if radius is None:
        return "in the box"
    text = exactly(radius)
    return f"radius {text if len(text) <= _SHORT else radius_at_most(radius)}"


def _figure(picture: Html, caption: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption))


def _moves(point: Point, radius: float | None, other: Float, pictures: Pictures) -> Html:
    """A counterexample feature by feature, by change in units of the scale; what is less, on demand."""
    assert point.x is not None
    x = point.x
    unit = np.ones_like(x) if pictures.scale is None else pictures.scale
    with np.errstate(over="ignore"):
        change = (other - x) / unit
    order = np.argsort(-np.abs(change), kind="stable").tolist()
    head = ["feature", "value", "changed to", "difference"]
    head += [f"in {pictures.words.unit or 'units of the scale'}"] if pictures.scale is not None else []
    rows = [
        (
            pictures.words.feature(j),
            f"{x[j]:.6g}",
            f"{other[j]:.6g}",
            _signed(float(other[j] - x[j])),
            *([_signed(float(change[j]))] if pictures.scale is not None else []),
        )
        for j in order
    ]
    what = f"A counterexample ({pictures.other(point)}){' at' * (radius is not None)} {_near(radius)}"
    told = tag("p", f"{what}, the largest changes first:")
    first = table(head, rows[:_MOVES])
    rest = rows[_MOVES:]
    more = tag("details", tag("summary", f"the other {len(rest)} {pictures.words.noun}"), table(head, rest))
    return join([told, first, more] if rest else [told, first])


def _signed(value: float) -> str:
    """A number with its sign, without -0."""
    text = f"{value:+.4g}"
    return "0" if float(text) == 0 else text

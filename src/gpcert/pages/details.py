"""What is known of one point: verdicts, ranges, counterexample, pictures; influences of features."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from fractions import Fraction
from urllib.parse import quote

import numpy as np

from gpcert.html import Html, join, table, tag
from gpcert.numbers import (
    at_least,
    at_most,
    between,
    exact_mean,
    exactly,
    radius_at_least,
    radius_at_most,
)
from gpcert.pages.groups import ResultGroup
from gpcert.pages.html import word
from gpcert.pages.points import RowAnswers, RowVerdict
from gpcert.pictures import grey_image, heat_image
from gpcert.results import Explanation, ProbabilityRange, ProofFile
from gpcert.results.wording import Words, far, within_limits
from gpcert.validation import Float

_BARS = 15  # features of an explanation that are drawn, the most influential first
_OWN = 8  # of one row
_LETTERS = 30  # of a feature's name beside its bar, for which there is room
_PRINTED = 60  # features of a list that is unfolded on paper
_MOVES = 12  # features listed of a counterexample without a click, the largest moves first
_SHORT = 6  # characters of a radius that somebody typed


def card(point: RowAnswers, group: ResultGroup) -> Html:
    """A point with its heading, for the gallery."""
    true = "" if point.label is None else f"true {point.label}, "
    mark = tag("span", f"predicted {point.predicted}", class_="wrong" if point.correct is False else "")
    heading = tag("h3", f"{group.words.row} {point.name}: {true}", mark)
    return tag("article", heading, details(point, group), class_="card")


def details(point: RowAnswers, group: ResultGroup, whole: bool = True) -> Html:
    """What is known of a point, in words and pictures; `whole`: with its counterexample."""
    parts, found = [], point.counterexample if whole else None
    if whole and group.image is not None and point.x is not None and point.x.size == math.prod(group.image):
        parts.append(_images(point, point.x, group, group.image))
    elif found is not None and point.x is not None and found[1].shape == point.x.shape:
        parts.append(_moves(point, point.x, *found, group))
    elif point.counterexample is not None and not whole:
        parts.append(tag("p", "Its counterexample is in the results file: this page holds the closest ones."))
    own = _own_influences(point.explained[-1], group.words) if whole and point.explained else Html("")
    missing = [] if point.unproved is None else [tag("p", f"A proof was asked for: {point.unproved}.")]
    said = _sentences(point, group)
    return join([said, *parts, own, *map(_range, point.ranges), *map(_proof, point.proofs), *missing])


def _proof(file: ProofFile) -> Html:
    """Where a proof file lies, and the command that checks it; a path of a stranger is never a script."""
    link = tag("a", file.path, href=quote(file.path, safe="/"))
    known = f"the model file with the SHA-256 {file.model}; that of the proof is {file.digest}"
    command = tag("code", f"python -m gpcert_check MODEL {shlex.quote(file.path)}")
    ends = "" if file.lower is None or file.upper is None else f": the ends {file.lower!r} and {file.upper!r}"
    weaker = "" if file.exact else f" The file proves less than the answer says{ends}."
    return tag("p", "Proof: ", link, "; checked by ", command, f", where MODEL is {known}.{weaker}")


def _sentences(point: RowAnswers, group: ResultGroup) -> Html:
    said = [_verdict(f"radius {exactly(r)}", verdict, group) for r, verdict in sorted(point.verdicts.items())]
    said += [_verdict("box", verdict, group) for verdict in point.boxed.values()]
    if point.found is not None:
        known = "no counterexample found"
        if math.isfinite(point.unsafe):
            known = f"{group.other(point)} within {radius_at_most(point.unsafe)}"
        held = "no radius is proved safe"  # not even 0: of a tie, or below a threshold of its own
        held = held if point.safe < 0 else f"proved safe up to {radius_at_least(point.safe)}"
        said.append(tag("li", f"{held}; {known}"))
    for radius, attack in sorted(point.attacks.items()):
        did = "changed the class" if attack.success else "did not change the class"
        text = f"attack {attack.method}, radius {exactly(radius)}: {did}"
        said.append(tag("li", f"{text} (probability of “{attack.label}” then {attack.probability:.3f})"))
    return tag("ul", *said) if said else Html("")


def _verdict(where: str, verdict: RowVerdict, group: ResultGroup) -> Html:
    low, high = verdict.margin
    least = "" if group.threshold == 0.5 else exactly(group.threshold)
    what, margin = {
        "safe": (
            f"the probability stays above {least}" if least else "the class cannot change",
            f"at least {at_least(low)}",
        ),
        "unsafe": (
            f"the probability can fall to {least}" if least else "the class can change",
            f"at most {at_most(high)}",
        ),
        "unknown": ("not decided", f"in {between(low, high)}"),
    }[verdict.status]
    state = tag("span", f"{where}: {what}", class_=verdict.status)
    return tag("li", state, " (", tag("a", "margin", href="#w-margin"), f" {margin})")


def _range(r: ProbabilityRange) -> Html:
    radius = r.region.radius
    where = "box" if radius is None else f"radius {exactly(radius)}"
    text = (
        f"{where}: the probability of {r.label} is proved to stay in {between(r.lower, r.upper)}; its "
        f"smallest value lies in {between(r.min.lower, r.min.upper)}, its largest in "
        f"{between(r.max.lower, r.max.upper)}"
    )
    text += "." if r.status == "converged" else f" (the search ended early: {r.status})."
    return join([tag("p", text), _bar(r)])


def _bar(found: ProbabilityRange) -> Html:
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
    sentence = f"P({found.label}) in {between(found.lower, found.upper)}"
    picture = tag("svg", *parts, viewBox="-2 0 204 27", class_="bar", role="img", aria_label=sentence)
    keys = (("plain", "reached, proved"), ("faint", "not excluded"))
    legend = join(join([tag("span", "", class_=f"key {look}"), f"{text} "]) for look, text in keys)
    return _figure(picture, legend)


def _images(point: RowAnswers, x: Float, group: ResultGroup, shape: tuple[int, int]) -> Html:
    shown = [_figure(grey_image(x.reshape(shape), *group.grey, f"image {point.name}"), "original")]
    found = point.counterexample
    if found is not None and found[1].shape == x.shape:
        radius, other = found
        picture = grey_image(other.reshape(shape), *group.grey, f"counterexample to {point.name}")
        shown.append(_figure(picture, f"{group.other(point)}, {_near(radius)}"))
        moved = (other - x).reshape(shape)
        most = float(np.abs(moved).max())
        text = f"{np.count_nonzero(moved)} pixels moved, by up to {radius_at_most(most)}"
        shown.append(_figure(heat_image(moved, most, text), text))
    for explained in point.explained[-1:]:
        value = explained.value[0]
        if value.shape == x.shape:
            picture = heat_image(value.reshape(shape), float(np.abs(value).max()), "influence of each pixel")
            shown.append(_figure(picture, f"influence on P({explained.label})"))
    return tag("div", *shown, class_="pictures")


def _near(radius: float | None) -> str:
    """A radius as it was asked, else rounded up; None: that of a box."""
    if radius is None:
        return "in the box"
    text = exactly(radius)
    return f"radius {text if len(text) <= _SHORT else radius_at_most(radius)}"


def _figure(picture: Html, caption: str, **look: str) -> Html:
    return tag("figure", picture, tag("figcaption", caption), **look)


def _moves(point: RowAnswers, x: Float, radius: float | None, other: Float, group: ResultGroup) -> Html:
    """A counterexample feature by feature, by change in units of the scale; what is less, on demand."""
    scale = group.scale
    with np.errstate(over="ignore"):
        change = (other - x) / (1.0 if scale is None else scale)
    head = ["feature", "value", "changed to", "difference"]
    head += [] if scale is None else [f"in {group.words.unit or 'units of the scale'}"]
    rows = [
        (
            group.words.feature(j),
            f"{x[j]:.6g}",
            f"{other[j]:.6g}",
            _signed(float(other[j] - x[j])),
            *([] if scale is None else [_signed(float(change[j]))]),
        )
        for j in np.argsort(-np.abs(change), kind="stable").tolist()
    ]
    what = f"A counterexample ({group.other(point)}){' at' * (radius is not None)} {_near(radius)}"
    parts = [tag("p", f"{what}, the largest changes first:"), table(head, rows[:_MOVES])]
    if rest := rows[_MOVES:]:
        summary = tag("summary", f"the other {len(rest)} {group.words.noun}")
        parts.append(tag("details", summary, table(head, rest)))
    return join(parts)


def _signed(value: float) -> str:
    """A number with its sign, without -0."""
    text = f"{value:+.4g}"
    return "0" if float(text) == 0 else text


def influences(group: ResultGroup) -> Html:
    """Mean influence of each feature as bars with proved intervals; of pixels, a picture, too."""
    every = [p.explained[-1] for p in group.points if p.explained]
    if not every:
        return Html("")
    first, noun = every[0], group.words.noun
    size = first.value.shape[1]
    found = [e for e in every if (e.label, e.radius, e.value.shape[1]) == (first.label, first.radius, size)]
    means = _means(found, group.words)
    text = (
        f"How much each of the {noun} alone, off by up to {_reach(first, group.words)}, moves "
        f"P({first.label}), averaged over {group.words.counted(len(found))}. To the right: more of it speaks "
        f"for {first.label}. The solid bar is proved; the true value may be as far as the faint end."
    )
    ordered = _ordered(means)
    drawn = [tag("figure", _bars(ordered[:_BARS]))]
    if group.image is not None and size == math.prod(group.image):
        value = np.array([float(low + high) / 2 for _, low, high in means])
        most = float(np.abs(value).max())
        picture = heat_image(value.reshape(group.image), most, "mean influence of pixels")
        caption = f"orange: brighter speaks for {first.label}; blue: against"
        drawn.append(_figure(picture, caption, class_="wide"))
    head = ("feature", join(["mean ", word("influence", "influence"), ", proved in"]))
    every_one = table(head, [(name, between(low, high)) for name, low, high in ordered])
    fold = "long" if size > _PRINTED else ""  # lists of many pages stay folded on paper
    all_ = tag("details", tag("summary", f"all {size} {noun}"), every_one, class_=fold)
    return join([tag("p", text), tag("div", *drawn, class_="pictures"), all_])


def _own_influences(found: Explanation, words: Words) -> Html:
    """What moves the probability of one row, the most influential features first."""
    reach = _reach(found, words)
    text = f"Influence on P({found.label}) of one of the {words.noun} alone, off by up to {reach}:"
    bars = _bars(_ordered(_means([found], words))[:_OWN], 150.0)
    return tag("figure", tag("p", text), bars, class_="own")


def _reach(found: Explanation, words: Words) -> str:
    """How far one feature moves alone, and within which limits."""
    ball = found.balls[0]
    return far(exactly(ball.radius), words, ball) + within_limits(ball, words)


def _means(found: Sequence[Explanation], words: Words) -> list[tuple[str, Fraction, Fraction]]:
    """Every feature with the ends of its mean influence."""
    lower, upper = (np.array([getattr(e, end)[0] for e in found]).T.tolist() for end in ("lower", "upper"))
    pairs = zip(lower, upper, strict=True)
    return [(words.feature(j), exact_mean(low), exact_mean(high)) for j, (low, high) in enumerate(pairs)]


def _ordered(means: Sequence[tuple[str, Fraction, Fraction]]) -> list[tuple[str, Fraction, Fraction]]:
    """The most influential first."""
    return sorted(means, key=lambda mean: -abs(mean[1] + mean[2]))


def _bars(rows: Sequence[tuple[str, Fraction, Fraction]], width: float = 330.0) -> Html:
    """Bars from 0: solid up to the nearer end of the interval, faint to the farther."""
    left, line = 12.0 + 7.5 * min(_LETTERS, max(len(name) for name, *_ in rows)), 21.0
    most = max(max(abs(low), abs(high)) for _, low, high in rows) or Fraction(1)
    negative = any(low < 0 for _, low, _ in rows)
    zero, reach = (left + width / 2, width / 2) if negative else (left, width)

    def x(value: Fraction) -> float:
        return zero + float(value / most) * reach

    def bar(k: int, a: float, b: float, look: str) -> Html:
        size = {"x": f"{a:.1f}", "y": f"{line * k + 4:.1f}", "width": f"{b - a:.1f}", "height": "13"}
        return tag("rect", **size, class_=look)

    axis = {"x1": f"{zero:.1f}", "x2": f"{zero:.1f}", "y1": "0", "y2": f"{line * len(rows):g}"}
    parts = [tag("line", **axis, class_="grid")]
    for k, (name, low, high) in enumerate(rows):
        up, y = low + high >= 0, f"{line * k + 15:.1f}"
        near = x(max(low, Fraction()) if up else min(high, Fraction()))
        shown = name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
        parts.append(
            tag(
                "g",
                tag("title", f"{name}: {between(low, high)}"),
                tag("text", shown, x=f"{left - 8:g}", y=y, class_="name end"),
                bar(k, min(x(low), zero), max(x(high), zero), "wide"),
                bar(k, min(near, zero), max(near, zero), "sure"),
                tag("text", between(low, high), x=f"{left + width + 8:g}", y=y, class_="tick"),
                class_="up" if up else "down",
            )
        )
    box, text = f"0 0 {left + width + 110:g} {line * len(rows):g}", "influences with proved intervals"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=text, class_="bars")

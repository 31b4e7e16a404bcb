"""Curves over the radius: what is proved of all rows, of each class, of several models."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gpcert.html import Html, tag
from gpcert.numbers import exactly, percent
from gpcert.pages.groups import Group
from gpcert.pages.summary import AtRadius, Shares, clean_accuracy, radii_asked
from gpcert.pages.svg import Plot, captioned

_COLOURS = 8  # looks of curves, then they repeat


def curves(group: Group) -> Html:
    """Certified accuracy, for all and for each class, and safety against the radius: what is proved."""
    counted = Shares(group.points)
    ends = counted.ends()
    if not ends:
        return Html("")
    steps = [counted.at(radius) for radius in ends]
    figures = [_safety_plot(group, steps)]
    clean, classes = clean_accuracy(group.points), group.words.classes
    if clean is not None:
        tried = [counted.at(radius) for radius in radii_asked(group.points)]
        figures.insert(0, _accuracy_plot(group, clean, steps, [s for s in tried if s.attacked is not None]))
        members = {name: [p for p in group.points if p.label == name] for name in classes}
        apart = [(name, some, Shares(some)) for name, some in members.items() if some]
        if 1 < len(apart) <= _COLOURS:
            told = f"Of the {group.words.rows} of each class, the share that is right and proved safe."
            lines = [(f"{name} ({group.words.counted(len(some))})", shares) for name, some, shares in apart]
            names = "Certified recall by class", "certified recall"
            figures.insert(1, together(lines, *names, told, group.radius_name))
    return tag("div", *figures, class_="plots")


def together(
    lines: Sequence[tuple[str, Shares]], title: str, axis: str, text: str, radius_name: str = "radius"
) -> Html:
    """Certified shares of several groups of points in one picture, each up to where it was asked."""
    ends = [shares.ends() for _, shares in lines]
    last = max((xs[-1] for xs in ends if xs), default=0.0)
    if last <= 0:
        return Html("")
    plot, keys = Plot(last, 1.0, (radius_name, axis), percent=True), []
    for k, ((name, shares), xs) in enumerate(zip(lines, ends, strict=True)):
        found = [shares.at(radius) for radius in xs]
        values = [s.safe if s.certified is None else s.certified for s in found]
        look = f"line{k % _COLOURS}"
        keys.append((look, name))
        if xs:
            plot.steps(xs, list(map(float, values)), look)
            plot.tell(name, xs, [percent(v) for v in values])
    return captioned(plot.html(f"{title} against the radius"), title, keys, text)


def _safety_plot(group: Group, steps: Sequence[AtRadius]) -> Html:
    xs, rows, lost = [s.radius for s in steps], group.words.rows, group.called["unsafe"]
    plot = Plot(xs[-1], 1.0, (group.radius_name, f"share of {rows}"), percent=True)
    # A point proved safe up to r counts up to r; a counterexample at r counts from r on.
    broken = [Fraction(), *(s.unsafe for s in steps)]
    for ys, look, onto in (
        ([float(s.safe) for s in steps], "good", 0.0),
        ([float(1 - u) for u in broken], "bad", 1.0),
    ):
        plot.steps(xs, ys, look, onto=onto)
        plot.steps(xs, ys, look)
    plot.tell("proved safe", xs, [percent(s.safe) for s in steps])
    plot.tell(lost, xs, [percent(u) for u in broken])
    keys = (
        ("good", "proved safe" + (": the class cannot change" if group.threshold == 0.5 else "")),
        ("bad", f"{lost}: a counterexample is known"),
    )
    picture = plot.html(f"share of {rows} proved safe and known to change against the radius")
    text = f"Between the two: not decided, or not asked at this radius. {group.ends}"
    return captioned(picture, "Safety", keys, text)


def _accuracy_plot(
    group: Group, clean: Fraction, steps: Sequence[AtRadius], tried: Sequence[AtRadius]
) -> Html:
    xs = [s.radius for s in steps]
    plot = Plot(xs[-1], 1.0, (group.radius_name, "accuracy"), percent=True)
    certified = [s.certified or Fraction() for s in steps]
    most = [clean, *(s.certified_most or Fraction() for s in steps)]
    plot.steps(xs, list(map(float, most)), "soft")
    plot.steps(xs, list(map(float, certified)), "good", onto=0.0)
    plot.steps(xs, list(map(float, certified)), "good")
    plot.tell("at most", xs, list(map(percent, most)))
    plot.tell("certified accuracy", xs, list(map(percent, certified)))
    for s in tried:
        told = f"accuracy under attack {percent(s.attacked or Fraction())} at radius {exactly(s.radius)}"
        plot.dots([s.radius], [float(s.attacked or 0)], "bad", [told])
    keys = [
        ("good", "certified accuracy: right and proved safe"),
        ("dash", f"{group.most}: right, and no counterexample is known"),
    ]
    keys += [("bad ring", "accuracy under attack: right, and no attack succeeded")] if tried else []
    return captioned(plot.html("certified accuracy against the radius"), "Accuracy", keys, "")

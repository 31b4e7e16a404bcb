"""Tables for people on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gpcert.report.numbers import exactly

__all__ = ["by_radius", "columns", "printable"]


def printable(text: str) -> str:
    """The text without control characters: a name in a file must not steer the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as their widest cell."""
    lines = [[printable(cell) for cell in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def by_radius(
    answers: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    of: Callable[[Mapping[str, Any]], str],
    told: Callable[[Fraction], str],
) -> str:
    """For each radius how many answers are called what, and how many of those called `names[0]` are right.

    `told` rounds that share to the side on which it still holds.
    """
    lines = []
    for radius in sorted({a["radius"] for a in answers}):
        some = [a for a in answers if a["radius"] == radius]
        counts = ", ".join(f"{sum(of(a) == name for a in some)} {name}" for name in names)
        right = sum(of(a) == names[0] and a.get("label") == a["predicted"] for a in some)
        share = f"; right and {names[0]}: {told(Fraction(right, len(some)))}" if "label" in some[0] else ""
        lines.append(f"radius {exactly(radius)}: {counts}{share}")
    return "\n".join(lines)

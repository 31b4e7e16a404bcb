"""Tables for people on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["columns", "printable"]


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

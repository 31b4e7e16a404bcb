"""The table of units: how far each feature may be off, in its own unit, and within which limits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from gpcert.numbers import exactly, radius_at_least
from gpcert.regions import Ball, Region
from gpcert.results.phrases import Words, between_ends, has_table

_RADII = 4  # columns; of more radii only what radius 1 is
_KINDS = 8  # of balls; of more each row has a region of its own
_LINES = 12  # features of a table on a terminal
_HUGE = 2**1023  # a float has it
_SHORT = 6  # digits of a number that somebody typed

#: Heading and cells by feature.
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def unit_tables(
    regions: Sequence[Region | None], words: Words, radii: Iterable[float] | None = None
) -> list[Table]:
    """The tables that the sentences about these regions point to, one for each kind of ball; of very many
    kinds nothing is said. `radii`: where they are not those of the balls.
    """
    kinds: dict[Hashable, list[Ball]] = {}
    for ball in regions:
        if isinstance(ball, Ball) and has_table(ball, words):
            limits = None if ball.domain is None else tuple(end.tobytes() for end in ball.domain)
            unit = None if ball.scale is None else ball.scale.tobytes()
            kinds.setdefault((ball.norm, ball.features, unit, limits), []).append(ball)
    many = words.apart or len(kinds) > _KINDS
    return (
        []
        if many
        else [
            _table(some[0], {ball.radius for ball in some} if radii is None else radii, words)
            for some in kinds.values()
        ]
    )


def _table(ball: Ball, radii: Iterable[float], words: Words) -> Table:
    moving = np.flatnonzero(ball.moving()).tolist()
    asked = sorted({float(r) for r in radii if 0 < r < math.inf})
    scale = np.ones(ball.n_features) if ball.scale is None else ball.scale
    unit = words.unit.removesuffix("s") if words.unit else "radius"
    alone = "up to" if ball.norm == math.inf else "alone up to"
    head, columns = ["feature"], [[words.feature(j) for j in moving]]
    if ball.norm != 0:
        head.append(f"1 {unit}" if words.unit else "radius 1")
        columns.append([_number(1.0, float(scale[j])) for j in moving])
        for radius in asked if len(asked) <= _RADII else ():
            head.append(f"at {exactly(radius)}: {alone}")
            columns.append([_number(radius, float(scale[j])) for j in moving])
    if ball.domain is not None and any(np.isfinite(end[moving]).any() for end in ball.domain):
        head.append("limits")
        columns.append([between_ends(float(ball.domain[0][j]), float(ball.domain[1][j])) for j in moving])
    return tuple(head), list(zip(*columns, strict=True))


def lines(tables: Sequence[Table]) -> list[str]:
    """The tables for a terminal."""
    return [line for k, table in enumerate(tables) for line in _lines(table, k + 1, len(tables))]


def _lines(table: Table, k: int, of: int) -> list[str]:
    """One of them; of many features the first."""
    head, rows = table
    shown = [head, *rows[:_LINES]]
    widths = [max(len(row[k]) for row in shown) for k in range(len(head))]
    told = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
    more = len(rows) - _LINES
    which = "Units:" if of == 1 else f"Units {k} of {of}, in the order of the sentences:"
    return [which, *told, *([f"  ... {more} more features, which a report shows"] if more > 0 else [])]


def _number(radius: float, scale: float) -> str:
    """Radius times unit, as they are written: rounded down, for what is proved is proved of no more."""
    product = Fraction(repr(radius)) * Fraction(repr(scale))
    if not 0 < product < _HUGE:
        return radius_at_least(product)
    text = exactly(float(product))
    short = Fraction(text) == product and len(text.lstrip("-0.").replace(".", "")) <= _SHORT
    return text if short else radius_at_least(product)

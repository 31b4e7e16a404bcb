"""The words of sentences: what classes, features and rows are called, and a region around a row, told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.numbers import exactly
from gpcert.regions import Ball, Region

#: How a sentence ends that cannot say how far each feature moves.
SEE = " (see the table of units)"
_FEW = 3  # features that are called by their names


@dataclass(frozen=True)
class Words:
    """The names that sentences use: of classes, features, what a feature is, radius 1, what a row is.

    `apart`: regions differ from row to row in more than their centres; `partly`: some have no answer.
    """

    classes: Sequence[str] = ()
    features: Sequence[str] = ()
    noun: str = "features"
    unit: str | None = None
    rows: str = "rows"
    apart: bool = False
    partly: bool = False

    @property
    def row(self) -> str:
        """One of the rows."""
        return self.rows.removesuffix("s")

    def counted(self, n: int) -> str:
        """So many rows."""
        return f"{n:,} {self.row if n == 1 else self.rows}"

    def feature(self, j: int) -> str:
        """The feature at a position."""
        return self.features[j] if j < len(self.features) else f"x{j}"


PLAIN = Words()


def while_moving(region: Region | None, radius: str, words: Words = PLAIN) -> str:
    """The region around a row, in words: what moves, how far, within which limits."""
    if not isinstance(region, Ball) or words.apart:
        return f"while the {words.row} is anywhere in its {'region' if words.apart else 'box'}"
    moving = np.flatnonzero(region.moving())
    if not len(moving):
        return "while nothing moves"
    which, one = _which(moving.tolist(), region.n_features, words), len(moving) == 1
    reach, within = far(radius, words, region), within_limits(region, words)
    if region.norm == 0:
        see = SEE if has_table(region, words) else ""
        return _some(radius, len(moving), which, within) + see
    how = {
        math.inf: f"by up to {reach}" + ("" if one else " each, in any combination"),
        2.0: f"by a Euclidean distance of up to {reach.removesuffix(',')}",
        1.0: f"by up to {reach} in sum",
    }.get(region.norm, f"by up to {reach} in the {region.norm:g}-norm")
    how = "by any amount" if radius == "Infinity" else how
    see = SEE if has_table(region, words) else ""
    return f"while {which} {'is' if one else 'are'} off {how}{within}{see}"


def has_table(ball: Ball, words: Words) -> bool:
    """Whether a sentence cannot say how far each feature moves, or within which limits."""
    moving = np.flatnonzero(ball.moving())
    scale = None if ball.norm == 0 else ball.scale
    apart = [each for each in (scale, *(ball.domain or ())) if each is not None]
    many = len(moving) > _FEW and any(len(set(each[moving].tolist())) > 1 for each in apart)
    return bool(len(moving)) and (many or (words.unit is not None and scale is not None))


def _some(radius: str, n: int, which: str, within: str) -> str:
    """So many of n features, or as many as there are: half a feature is none."""
    if radius.startswith("the "):
        return f"while as many of {which} as {radius} says take any values{within}"
    count = math.floor(min(float(radius), n))
    if count == 0:
        return "while nothing moves"
    many = f"up to {count} of " if count < n else ""
    return f"while {many}{which} take{'s' if n == 1 else ''} any values{within}"


def far(radius: str, words: Words, ball: Ball) -> str:
    """A radius with its unit: 2 standard deviations, 1 times the scale, or what a table has."""
    named = words.unit and words.unit.removesuffix("s" if radius == "1" else "")
    if named and radius.startswith("the "):
        return f"{radius} (in {named})"
    if named or ball.scale is None:
        return f"{radius} {named or ''}".rstrip()
    moving = np.flatnonzero(ball.moving()).tolist()
    told = [exactly(float(ball.scale[j])) for j in moving]
    if each := _each(told, moving, words):
        return f"{radius} times the scale{each}"
    if ball.norm != math.inf:
        return f"{radius}, counted in their own units,"
    if radius.startswith("the "):
        return f"{radius} (in the feature's unit)"
    return f"{radius} unit{'' if radius == '1' else 's'}"


def _each(told: list[str], moving: list[int], words: Words) -> str:
    """Numbers of features, in brackets: one for all, or of a few each; many are among the settings."""
    if len(set(told)) == 1:
        return f" ({told[0]})"
    named = (f"“{words.feature(j)}”: {text}" for j, text in zip(moving, told, strict=True))
    return f" ({', '.join(named)})" if len(told) <= _FEW else ""


def _which(moving: list[int], d: int, words: Words) -> str:
    if len(moving) < d and len(moving) <= _FEW:
        *most, last = (f"“{words.feature(j)}”" for j in moving)
        return f"{', '.join(most)} and {last}" if most else last
    if len(moving) == d:
        return f"“{words.feature(0)}”" if d == 1 else f"{'both' if d == 2 else f'all {d}'} {words.noun}"
    return f"{len(moving)} of {d} {words.noun}"


def within_limits(ball: Ball, words: Words) -> str:
    """The limits that the features that move keep to, to follow how far they move; "" without."""
    moving = np.flatnonzero(ball.moving()).tolist()
    if ball.domain is None or not moving:
        return ""
    pairs = [
        (float(low), float(high)) for low, high in zip(*(end[moving] for end in ball.domain), strict=True)
    ]
    if len(set(pairs)) > 1:
        told = [between_ends(low, high) for low, high in pairs]
        return f", each within its own limits{_each(told, moving, words)}"
    low, high = pairs[0]
    if math.isinf(low) and math.isinf(high):
        return ""
    if math.isinf(high):
        return f", staying at or above {exactly(low)}"
    return f", staying {'at or below' if math.isinf(low) else f'between {exactly(low)} and'} {exactly(high)}"


def between_ends(low: float, high: float) -> str:
    """The limits of one feature."""
    if math.isinf(low) and math.isinf(high):
        return "none"
    if math.isinf(high):
        return f"from {exactly(low)} on"
    return f"up to {exactly(high)}" if math.isinf(low) else f"{exactly(low)} to {exactly(high)}"

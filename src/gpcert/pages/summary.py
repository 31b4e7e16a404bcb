"""Shares of points: clean, certified and attacked accuracy, and what is proved safe or unsafe at a radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

import numpy as np

from gpcert.pages.points import Point
from gpcert.validation import Mask


@dataclass(frozen=True)
class AtRadius:
    """Shares in [0, 1] of all points at one radius. Accuracies are None where labels are not known.

    `certified` and `certified_most` are proved bounds of the accuracy under the worst perturbation;
    `attacked` is what the attacks left: certified <= true value <= min(certified_most, attacked).
    """

    radius: float
    safe: Fraction
    unsafe: Fraction
    certified: Fraction | None
    certified_most: Fraction | None
    attacked: Fraction | None


class Shares:
    """Counts what is proved at any radius; the radii of the points are looked up once."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self.safe = np.array([p.safe for p in points])
        self.unsafe = np.array([p.unsafe for p in points])
        self.right = np.array([bool(p.correct) for p in points])
        self.labelled = all(p.correct is not None for p in points)

    def ends(self, most: int = 400) -> list[float]:
        """The radii at which a share changes, up to where something was asked about every point.

        Of more than `most` some are left out: between those that stay a step function falls early.
        """
        known = np.concatenate([self.safe, self.unsafe])
        known = known[(known > 0) & np.isfinite(known)]
        asked = [p.reach for p in self._points if not math.isfinite(p.unsafe)]
        last = min(asked, default=float(known.max(initial=0.0)))  # a counterexample holds for larger radii
        found = np.unique([*known[known <= last], *([last] if math.isfinite(last) and last > 0 else [])])
        if len(found) > most:
            found = found[np.unique(np.linspace(0, len(found) - 1, most).astype(int))]
        return [float(r) for r in found]

    def at(self, radius: float) -> AtRadius:
        """The shares at one radius."""
        safe, unsafe = self.safe >= radius, self.unsafe <= radius
        return AtRadius(
            radius=radius,
            safe=_share(safe),
            unsafe=_share(unsafe),
            certified=_share(safe & self.right) if self.labelled else None,
            certified_most=_share(~unsafe & self.right) if self.labelled else None,
            attacked=self._attacked(radius) if self.labelled else None,
        )

    def _attacked(self, radius: float) -> Fraction | None:
        if radius not in self._points[0].attacks:
            return None
        tried = [p.attacks.get(radius) for p in self._points]
        if any(a is None for a in tried):
            return None
        stood = np.array([a is not None and not a.success for a in tried])
        return _share(stood & self.right)


def _share(which: Mask) -> Fraction:
    return Fraction(int(np.count_nonzero(which)), len(which))


def clean_accuracy(points: Sequence[Point]) -> Fraction | None:
    """Share of points whose predicted label is the true one; None where labels are not known."""
    known = [p.correct for p in points]
    return None if None in known or not known else Fraction(sum(map(bool, known)), len(known))


def median_radius(points: Sequence[Point]) -> float | None:
    """The radius up to which at least half of the points are proved safe; None if none was asked for."""
    if not all(p.found for p in points):
        return None
    return sorted(max(0.0, p.safe) for p in points)[(len(points) - 1) // 2]


def radii_asked(points: Sequence[Point]) -> list[float]:
    """The radii at which verdicts or attacks were asked for at every point."""
    every = [set(p.verdicts) | set(p.attacks) for p in points]
    common = set.intersection(*every) if every else set()
    return sorted(r for r in common if math.isfinite(r))


def radii_decided(points: Sequence[Point]) -> list[float]:
    """The radii at which verdicts were asked for at every point."""
    return [r for r in radii_asked(points) if all(r in p.verdicts for p in points)]


def radii_attacked(points: Sequence[Point]) -> list[float]:
    """The radii at which every point was attacked."""
    return [r for r in radii_asked(points) if all(r in p.attacks for p in points)]


def own_statuses(points: Sequence[Point]) -> list[str]:
    """The verdict of every point at its own radius, or over its box, where none is of all of them."""
    found = [p.own.status for p in points if p.own is not None]
    alike = len({bool(p.verdicts) for p in points}) == 1 and not any(len(p.boxed) > 1 for p in points)
    return found if len(found) == len(points) and alike and not radii_decided(points) else []


def main_radius(points: Sequence[Point]) -> float | None:
    """The radius of the figure to remember: the largest with verdicts, of those attacked if there are any."""
    decided = [r for r in radii_decided(points) if r > 0]
    tried = [r for r in radii_attacked(points) if r in decided]
    return max(tried or decided, default=None)


def typical_radius(points: Sequence[Point]) -> float | None:
    """Where radii were searched for, one to look at: what half of the points reach, in two digits."""
    middle = median_radius(points)
    if not middle or not math.isfinite(middle):
        return None
    return float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(middle)) or None


def shown_radius(points: Sequence[Point]) -> float | None:
    """The radius at which rows and classes are shown."""
    return main_radius(points) or typical_radius(points)

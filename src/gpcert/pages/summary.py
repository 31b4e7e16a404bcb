"""Shares of points: clean, certified and attacked accuracy, and what is proved safe or unsafe at a radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gpcert.pages.points import Point
from gpcert.validation import Mask

__all__ = ["AtRadius", "Shares", "clean_accuracy", "median_radius", "radii_asked"]


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
    """Counts what is proved at any radius; the radii of the points are sorted once."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._safe = np.array([p.safe for p in points])
        self._unsafe = np.array([p.unsafe for p in points])
        self._right = np.array([bool(p.correct) for p in points])
        self._labelled = all(p.correct is not None for p in points)

    def ends(self) -> list[float]:
        """The radii at which a share changes."""
        known = np.concatenate([self._safe, self._unsafe])
        return [float(r) for r in np.unique(known[(known > 0) & np.isfinite(known)])]

    def at(self, radius: float) -> AtRadius:
        """The shares at one radius."""
        safe, unsafe = self._safe >= radius, self._unsafe <= radius
        return AtRadius(
            radius=radius,
            safe=_share(safe),
            unsafe=_share(unsafe),
            certified=_share(safe & self._right) if self._labelled else None,
            certified_most=_share(~unsafe & self._right) if self._labelled else None,
            attacked=self._attacked(radius) if self._labelled else None,
        )

    def _attacked(self, radius: float) -> Fraction | None:
        tried = [p.attacks.get(radius) for p in self._points]
        if any(a is None for a in tried):
            return None
        stood = np.array([a is not None and not a.success for a in tried])
        return _share(stood & self._right)


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

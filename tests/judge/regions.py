"""Membership of regions, decided exactly from the definition in docs/regions.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from gpcert.regions import Ball, Box, Region
from judge.decide import at_most


def inside(region: Region, z: Sequence[float | Fraction] | np.ndarray) -> bool | None:
    """Whether z (d,) is a point of the region; None if the highest precision does not decide."""
    point = [_fraction(v) for v in z]
    if isinstance(region, Box):
        return _within(point, region.lower, region.upper)
    if region.domain is not None and not _within(point, *region.domain):
        return False
    features = range(len(point)) if region.features is None else region.features
    centre = [Fraction(v) for v in region.x.tolist()]
    if any(point[j] != centre[j] for j in set(range(len(point))) - set(features)):
        return False
    scale = np.ones(len(point)) if region.scale is None else region.scale
    steps = [abs(point[j] - centre[j]) / Fraction(float(scale[j])) for j in features]
    return _short([v for v in steps if v], region)


def _within(point: Sequence[Fraction], lower: np.ndarray, upper: np.ndarray) -> bool:
    """Python compares fractions with doubles exactly, infinities included."""
    return all(l <= v <= u for l, v, u in zip(lower.tolist(), point, upper.tolist(), strict=True))


def _short(steps: list[Fraction], region: Ball) -> bool | None:
    """Whether |steps|_p <= radius, for steps > 0."""
    p, radius = region.norm, Fraction(region.radius)
    if p == 0:
        return len(steps) <= radius
    if p == math.inf or len(steps) <= 1:
        return all(v <= radius for v in steps)
    if max(steps) > radius:
        return False
    if p in (1.0, 2.0, 3.0):
        return sum(v ** int(p) for v in steps) <= radius ** int(p)
    ratios = [fmpq(r.numerator, r.denominator) for r in (v / radius for v in steps)]
    return at_most(lambda: sum(((arb(p) * arb(r).log()).exp() for r in ratios), arb(0)), 1.0)


def _fraction(value: float | Fraction) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(float(value))


def points(region: Region, rng: np.random.Generator, count: int) -> np.ndarray:
    """Doubles (count, d) of the region."""
    return np.repeat([region.x if isinstance(region, Ball) else region.lower], count, axis=0)

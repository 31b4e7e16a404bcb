"""Membership of regions, decided exactly from the definition in docs/regions.md, and points inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from gpcert.regions import Ball, Box, Region
from judge.decide import at_most

_EXACT = 16  # integer norms up to this one are decided in fractions


def inside(region: Region, z: Sequence[float | Fraction] | np.ndarray) -> bool | None:
    """Whether z (d,) is a point of the region; None if the highest precision does not decide."""
    if not all(isinstance(v, Fraction) or math.isfinite(v) for v in z):
        return False
    point = [v if isinstance(v, Fraction) else Fraction(float(v)) for v in z]
    if isinstance(region, Box):
        return _within(point, region.lower, region.upper)
    if region.domain is not None and not _within(point, *region.domain):
        return False
    features = _moving(region)
    centre = [Fraction(v) for v in region.x.tolist()]
    if any(point[j] != centre[j] for j in set(range(len(point))) - set(features)):
        return False
    scale = [1.0] * len(point) if region.scale is None else region.scale.tolist()
    steps = [abs(point[j] - centre[j]) / Fraction(scale[j]) for j in features]
    return _short([v for v in steps if v], region.norm, Fraction(region.radius))


def _moving(region: Ball) -> Sequence[int]:
    return range(len(region.x)) if region.features is None else region.features


def _within(point: Sequence[Fraction], lower: np.ndarray, upper: np.ndarray) -> bool:
    """Python compares fractions with doubles exactly, infinities included."""
    return all(l <= v <= u for l, v, u in zip(lower.tolist(), point, upper.tolist(), strict=True))


def _short(steps: list[Fraction], p: float, radius: Fraction) -> bool | None:
    """Whether |steps|_p <= radius, for steps > 0."""
    if p == 0:
        return len(steps) <= radius
    if p == math.inf or len(steps) <= 1:
        return all(v <= radius for v in steps)
    if max(steps) > radius:
        return False
    if p == int(p) <= _EXACT:
        return sum(v ** int(p) for v in steps) <= radius ** int(p)
    ratios = [fmpq(r.numerator, r.denominator) for r in (v / radius for v in steps)]
    return at_most(lambda: sum(((arb(p) * arb(r).log()).exp() for r in ratios), arb(0)), 1.0)


def points(region: Region, rng: np.random.Generator, count: int) -> np.ndarray:
    """Doubles (count, d) that are inside: the centre, ends, corners, faces, the boundary, and between."""
    kinds = (_box_point if isinstance(region, Box) else _ball_point)(region, rng)
    found = [region.centre if isinstance(region, Box) else region.x]
    while len(found) < count:
        found.append(_pulled(region, next(kinds)))
    return np.array(found[:count])


def _pulled(region: Region, z: np.ndarray) -> np.ndarray:
    """z if it is inside, else pulled towards the centre: by single doubles, then by more and more."""
    centre = region.centre if isinstance(region, Box) else region.x
    for k in range(-3, 56):
        if inside(region, z):
            return z
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            share = 1.0 - 0.5 ** max(52 - 3 * k, 1)
            z = np.nextafter(z, centre) if k < 0 else centre + (z - centre) * share
    return centre


def _box_point(region: Box, rng: np.random.Generator):
    low, high, d = region.lower, region.upper, len(region.lower)
    yield from (low, high)
    while True:
        part = rng.random(d)
        between = np.clip((1.0 - part) * low + part * high, low, high)
        corner = np.where(rng.random(d) < 0.5, low, high)
        yield between
        yield corner
        yield np.where(rng.random(d) < 0.5, between, corner)  # a face
        yield np.where(np.arange(d) == rng.integers(d), corner, region.centre)
        yield np.clip(np.nextafter(corner, region.centre), low, high)


def _ball_point(region: Ball, rng: np.random.Generator):
    x, d = region.x, len(region.x)
    moving = np.isin(np.arange(d), _moving(region))
    low, high = (np.full(d, -np.inf), np.full(d, np.inf)) if region.domain is None else region.domain
    low, high = (np.clip(end, -1e308, 1e308) for end in (low, high))
    with np.errstate(over="ignore", under="ignore"):
        reach = region.radius * (np.ones(d) if region.scale is None else region.scale)
    while not moving.any():
        yield x
    while True:
        part = rng.random(d)
        if region.norm == 0:
            chosen = rng.permutation(np.flatnonzero(moving))[: int(min(region.radius, d))]
            mask = np.isin(np.arange(d), chosen)
            yield np.where(mask, (1.0 - part) * low + part * high, x)
            yield np.where(mask, np.where(part < 0.5, low, high), x)
            continue
        for direction in (
            rng.standard_normal(d),
            rng.choice([-1.0, 1.0], d),
            rng.choice([-1.0, 1.0], d) * (np.arange(d) == rng.permutation(np.flatnonzero(moving))[:1]),
            rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 0, d),
        ):
            u = np.where(moving, direction, 0.0)
            u = u / (_length(u, region.norm) or 1.0)
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                for share in (1.0, rng.random()):
                    yield np.clip(np.nan_to_num(x + share * reach * u), low, high)


def _length(u: np.ndarray, p: float) -> float:
    size = float(np.abs(u).max(initial=0.0))
    if p == math.inf or size == 0.0:
        return size
    return size * float(np.sum((np.abs(u) / size) ** p)) ** (1.0 / p)

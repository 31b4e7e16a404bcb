"""Balls of norm 0 as the union of what few features can do (V14): one proof for each set of features."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

from gpcert_check.balls import Ball
from gpcert_check.model_file import Model
from gpcert_check.reading import fields, integer, need
from gpcert_check.regions import Box
from gpcert_check.work import spend

__all__ = ["prove"]

MOST_SUPPORTS = 100_000  # sets of as many features as may move


def prove(subject: Any, model: Model, claim: Any, region: Box, proof: Any) -> None:
    """A claim everywhere in a region, all at once or by supports."""
    if not (isinstance(proof, dict) and "supports" in proof):
        subject.prove(claim, region, proof)
        return
    (parts,) = fields(proof, "supports")
    need(isinstance(region, Ball) and region.norm == "0", "V14: only a ball of norm 0 has supports")
    need(isinstance(parts, list), "V14: supports are a list")
    spend(len(parts) * model.n**2)
    told = [fields(part, "features proof") for part in parts]
    supports = [_support(features, region) for features, _ in told]
    covers(supports, region)
    for features, (_, part) in zip(supports, told, strict=True):
        subject.prove(claim, restricted(region, features), part)


def _support(features: Any, region: Box) -> list[int]:
    need(isinstance(features, list) and len(features) > 0, "V14: a support is a list of features")
    found = [integer(j, 0, len(region.lower) - 1) for j in features]
    fits = found == sorted(set(found)) and set(found) <= set(region.moving)
    need(fits, "V14: the features of a support must move, and increase")
    return found


def covers(supports: list[list[int]], region: Any) -> None:
    """Every set of as many moving features as the ball lets move lies in a support."""
    count = min(int(region.radius), len(region.moving))
    fits = all(len(each) >= count for each in supports)
    need(fits, "V14: a support has fewer features than may move")
    total = comb(len(region.moving), count)
    work = max(total, sum(comb(len(each), count) for each in supports))
    need(work <= MOST_SUPPORTS, f"V14: there are more than {MOST_SUPPORTS} supports")
    held = {few for each in supports for few in combinations(each, count)}
    need(len(held) == total, "V14: the supports do not cover the ball")


def restricted(region: Any, features: list[int]) -> Box:
    """The part of the ball in which only these features move: a box if all of them may."""
    moves, x = set(features), [Fraction(c) for c in region.x]
    lower = [a if j in moves else c for j, (a, c) in enumerate(zip(region.lower, x, strict=True))]
    upper = [b if j in moves else c for j, (b, c) in enumerate(zip(region.upper, x, strict=True))]
    hull = Box(lower, upper)
    if len(features) <= region.radius:
        return hull
    return Ball(hull, "0", region.x, region.radius, region.units)

"""Supporting planes of several classes added up, and their smallest value over a set (G1 to G5, O6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.levels.curves import Level
from gpcert.bounds.local.forms import Pieces, Subtracted, least
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.gaussian.sums import KernelSum
from gpcert.bounds.local.radial.functional import plane_pieces
from gpcert.bounds.one.level import LevelBound
from gpcert.rounding import exp_up
from gpcert.validation import Float


class Bracket(NamedTuple):
    """factor * (mu - m_p(S)) of a class: `level` is the curve m_p, factor >= 0."""

    factor: float
    bound: LevelBound
    level: Level


def level_pieces(bound: LevelBound, domain: Domain, start: Float, level: Level, sharp: bool) -> Pieces | None:
    """Pieces of a lower bound of mu - m_p(S), for a Gaussian kernel of e^r times that; None: none known."""
    slice_ = bound.slice
    if not isinstance(slice_, Slice):
        return plane_pieces(slice_, domain, start, level, slice_.largest_variance)
    plane = plane_at(slice_, domain, start, level, slice_.largest_variance)
    return None if plane is None or not math.isfinite(exp_up(plane.around.radius)) else plane.pieces(sharp)


def smallest_sum(
    brackets: Sequence[Bracket], box: tuple[Float, Float], start: Float, sharp: bool, enough: float
) -> Subtracted | None:
    """If its value is above 0, then at every point of the box a bracket is; None: nothing is known.

    Each bracket may be multiplied by a positive function of its own: e^r of its kernel.
    """
    first = brackets[0].bound
    domain = first.shape.domain(*box, start, first.lengthscale)
    if domain is None:
        return None
    groups: list[list[Bracket]] = []
    for bracket in brackets:
        group = next((each for each in groups if _same_kernel(each[0].bound, bracket.bound)), None)
        if group is None:
            groups.append([bracket])
        else:
            group.append(bracket)
    total = []
    for group in groups:
        pieces = _pieces(group, box, start, sharp)
        if pieces is None:
            return None
        units = first.lengthscale / group[0].bound.lengthscale
        total.append(pieces if (units == 1.0).all() else pieces.measured_by(units, domain.reach))
    rough = total[0].rough(domain) if len(total) == 1 else -math.inf
    if rough > enough:
        still = np.zeros(len(start))
        return Subtracted(rough, still, 0.0, still)
    return least(domain, total, (enough, 1e-3))


def _pieces(group: list[Bracket], box: tuple[Float, Float], start: Float, sharp: bool) -> Pieces | None:
    """Of the sum of brackets with one kernel, in its units: Gaussian ones as one sum, with one remainder."""
    factor, bound, level = group[0]
    domain = bound.shape.domain(*box, start, bound.lengthscale)
    if domain is None:
        return None
    if len(group) == 1:
        pieces = level_pieces(bound, domain, start, level, sharp)
        return None if pieces is None else pieces.times(factor)
    planes: list[tuple[float, KernelSum]] = []
    for factor, bound, level in group:
        assert isinstance(bound.slice, Slice)
        plane = plane_at(bound.slice, domain, start, level, bound.slice.largest_variance)
        if plane is None or not math.isfinite(exp_up(plane.around.radius)):
            return None
        planes.append((factor, plane))
    return KernelSum.total(planes).pieces(sharp)


def _same_kernel(one: LevelBound, other: LevelBound) -> bool:
    """Whether both are sums of the same Gaussian kernels, at the same centres."""
    a, b = one.slice, other.slice
    if not (isinstance(a, Slice) and isinstance(b, Slice) and a.tiny == b.tiny):
        return False
    pairs = (
        (a.lengthscale, b.lengthscale),
        (a.amplitude, b.amplitude),
        (a.still, b.still),
        (a.points, b.points),
    )
    return all(np.array_equal(*pair) for pair in pairs)

"""The tangent's penalty for the covariance, its scale apart (docs/maths-multiclass.md, T7, T8).

Over a box a covariance changes mostly as a whole: all variances grow away from the data. So the range of its
scale, one affine functional, is cut into cells, each with an anchor of its own scale. In a cell that part of
the penalty lies below a line, which joins the tangent; the slope of the line is free, and is chosen so that
the programme's minimum lies in the cell. Where that is not enough, the cell gets an anchor nearer to its
worst point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.several.tangents.anchor import Anchor, anchor_at
from gpcert.bounds.several.tangents.tangent import Expanded, Tangent, Whitened, penalty, tangent, whitened
from gpcert.validation import Float

#: Cells are so many that the penalty of the scale is about this at their ends.
_PENALTY = 0.02
_CELLS = 6
#: Anchors per cell, how much nearer to the worst point each is, and what no other anchor makes good.
_ANCHORS, _NEARER, _HOPELESS = 4, 0.3, 0.8
#: Neighbouring cells overlap by this, and by what rounding moves the scale: together they are the whole.
_OVERLAP = 1e-6
#: Programmes per cell, and the first change of the slope of its line.
_PROGRAMMES, _STEP = 3, 0.3

#: (a, B, offset, less, enough) to a lower bound of a.m + <B, Sigma> - offset - less over the box.
Smallest = Callable[[Float, Float, float, Loss, float], FunctionalBound]


@dataclass(frozen=True, eq=False)
class Scales:
    """A box seen from anchors of several scales, each for a cell; `whole`: from one for all of them."""

    whole: Whitened
    correlated: bool
    #: Of each cell by its ends, one after the other; what one beta needed serves the next.
    anchors: dict[tuple[float, float], list[Whitened | None]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, x: Expanded, anchor: Anchor, correlated: bool) -> Scales | None:
        """From an anchor; None where that says nothing."""
        whole = whitened(x, anchor)
        return None if whole is None else cls(whole, correlated)

    @property
    def cells(self) -> list[tuple[float, float]]:
        """Ends of the scale 1 + e; together the whole box."""
        low, high, N = self.whole.scale.low, self.whole.scale.high, len(self.whole.root)
        wide = math.log((1.0 + high) / (1.0 + low))
        count = min(math.ceil(wide / math.sqrt(16.0 * _PENALTY / N)), _CELLS)
        if len(self.whole.x.reach) <= CHEAP_DIMENSIONS:  # rather the box is split
            count = 1
        return list(pairwise(np.geomspace(1.0 + low, 1.0 + high, max(count, 1) + 1).tolist()))

    def largest(self, beta: Float, target: float, smallest: Smallest) -> tuple[float, FunctionalBound] | None:
        """A bound of log sum_i beta_i p_i over the box, and the programme that gave it.

        Effort ends once it is at most `target`, or once that is out of reach; None where nothing is proved.
        """
        found, cells = None, self.cells
        if self.whole.definite:
            found = _in_cell(self.whole, beta, target, smallest)
        if len(cells) > 1 and (found is None or not found.settled(target, _HOPELESS)):
            worst = self._worst(cells, beta, target, smallest)
            if worst is not None and (found is None or worst.exponent < found.exponent):
                found = worst
        return None if found is None else (found.exponent, found.bound)

    def _worst(
        self, cells: list[tuple[float, float]], beta: Float, target: float, smallest: Smallest
    ) -> _Found | None:
        """The largest bound of all cells: it is that of the box; None where one of them has none."""
        worst: _Found | None = None
        for ends in cells:
            # Once the target is missed, the others only have to be known.
            most = _ANCHORS if worst is None or worst.exponent <= target else 1
            found = self._in_cell(ends, beta, target, smallest, most)
            if found is None:
                return None
            worst = found if worst is None or found.exponent > worst.exponent else worst
        return worst

    def _in_cell(
        self, ends: tuple[float, float], beta: Float, target: float, smallest: Smallest, most: int
    ) -> _Found | None:
        """The best bound from at most so many anchors, each nearer to where the last one's is worst (T8)."""
        anchors = self.anchors.setdefault(ends, [])
        best: _Found | None = None
        mean, covariance = self.whole.anchor.mean, self.whole.anchor.covariance * math.sqrt(math.prod(ends))
        for i in range(most):
            if i == len(anchors):
                anchors.append(self.seen_from(ends, mean, covariance))
            seen = anchors[i]
            found = _in_cell(seen, beta, target, smallest) if seen is not None and seen.definite else None
            if seen is None or found is None:
                break
            best = found if best is None or found.exponent < best.exponent else best
            if best.exponent <= target or best.exponent > target + _HOPELESS:
                break
            near = _latents(self.whole.x, found.bound.point)
            mean = seen.anchor.mean + _NEARER * (near[0] - seen.anchor.mean)
            covariance = seen.anchor.covariance + _NEARER * (near[1] - seen.anchor.covariance)
        return best

    def seen_from(self, ends: tuple[float, float], mean: Float, covariance: Float) -> Whitened | None:
        """A cell from an anchor anywhere: T8 bounds its own scale there."""
        x, first = self.whole.x, self.whole.scale
        anchor = anchor_at(mean, covariance, self.correlated)
        seen = None if anchor is None else whitened(x, anchor)
        if seen is None:
            return None
        own, none = seen.scale, np.zeros(len(mean))
        ratio = max(1.0 + float(np.vdot(own.matrix, self.whole.anchor.covariance)) - own.offset, 0.0)
        matrix, offset = own.matrix - ratio * first.matrix, own.offset - ratio * first.offset
        low, high = (sign * x.smallest(none, sign * matrix, sign * offset).latent for sign in (1.0, -1.0))
        slack = _OVERLAP + 4.0 * (own.error + ratio * first.error)
        low = max(own.low, low + ratio * (ends[0] - 1.0) - slack)
        high = min(own.high, high + ratio * (ends[1] - 1.0) + slack)
        return replace(seen, scale=own._replace(low=low, high=max(low, high)))


def _latents(x: Expanded, d: Float) -> tuple[Float, Float]:
    """About the means (C,) and covariances (C, C) at the displacement d (d,)."""
    covariances = x.covariance_gradient @ d + 0.5 * (x.covariance_hessian @ d) @ d
    mean = x.latents.mean + x.mean_gradient @ d + 0.5 * (x.mean_hessian @ d) @ d
    return mean, x.latents.covariance + x.matrix(covariances)


class _Found(NamedTuple):
    """A bound in a cell; `saved`: what smaller cells may make it smaller by, about."""

    exponent: float
    bound: FunctionalBound
    saved: float

    def settled(self, target: float, more: float = 0.0) -> bool:
        """Whether smaller cells are not needed, or do not help, even if other anchors save as much again."""
        return self.exponent <= target or self.exponent > target + self.saved + more


def _in_cell(seen: Whitened, beta: Float, target: float, smallest: Smallest) -> _Found | None:
    """The bound of a cell: convex in the slope of the line, and its derivative is seen at the minimum."""
    line = tangent(seen, beta)
    if line is None:
        return None
    low, high, N = seen.scale.low, seen.scale.high, len(seen.root)
    slope, best, tried = chord(N, low, high), None, []
    for _ in range(_PROGRAMMES):
        bound = smallest(*_with(seen, line, slope), line.log_total - target)
        exponent = line.log_total - bound.latent
        if not math.isfinite(exponent):
            return best
        if best is None or exponent < best.exponent:
            saved = max(_penalty(N, low), _penalty(N, high)) + 0.5 * _weight(seen) * _at(
                seen.square, bound.point
            )
            best = _Found(exponent, bound, saved)
        scale = seen.scale_at(bound.point)
        if best.settled(target) or low <= scale <= high:
            break
        tried.append((slope, exponent, scale - (high if scale > high else low)))
        slope = _next(tried)
    return best


def _at(loss: Loss, d: Float) -> float:
    return loss.constant + float(loss.gradient @ d) + float(d @ loss.matrix @ d)


def _weight(seen: Whitened) -> float:
    """pen(E') <= this times |E - e I|_F^2, E' = (E - e I) / (1 + e), in the cell."""
    least = 1.0 + seen.scale.low
    return penalty(seen.shrunk / least) / least**2 * (1.0 + 1e-12)


def _next(found: list[tuple[float, float, float]]) -> float:
    """The next slope: where the last two lines of support (slope, value, derivative) meet, else farther."""
    slope, value, change = found[-1]
    for other, height, turn in reversed(found[:-1]):
        if turn * change < 0.0:
            return (height - value - turn * other + change * slope) / (change - turn)
    return slope - math.copysign(_STEP * 2.0 ** (len(found) - 1), change)


def _penalty(N: int, e: float) -> float:
    """N/2 (e - log(1 + e))."""
    return 0.5 * N * (e - math.log1p(e))


def chord(N: int, low: float, high: float) -> float:
    """The slope of the line through the penalties at both ends of a cell."""
    return (_penalty(N, high) - _penalty(N, low)) / (high - low) if high > low else 0.0


def height(N: int, low: float, high: float, slope: float) -> float:
    """Such that N/2 (e - log(1 + e)) <= height + slope e for e in the cell: convex, so at its ends."""
    rounding = 1e-14 * (N * (1.0 + abs(low) + abs(high) + abs(math.log1p(low))) + abs(slope) * (2.0 + high))
    return max(_penalty(N, e) - slope * e for e in (low, high)) + rounding


def _with(seen: Whitened, line: Tangent, slope: float) -> tuple[Float, Float, float, Loss]:
    """The functional -(tangent + line) and what is subtracted from it besides."""
    scale, weight = seen.scale, _weight(seen)
    most = max(abs(scale.low), abs(scale.high)) / (1.0 + scale.low)
    constant = height(len(seen.root), scale.low, scale.high, slope) + (abs(slope) + most) * seen.blur
    loss, square = line.loss, seen.square
    less = Loss(
        loss.constant + weight * square.constant + max(constant, 0.0),
        loss.gradient + weight * square.gradient,
        loss.matrix + weight * square.matrix,
    )
    offset = -line.offset - slope * scale.offset + min(constant, 0.0)
    offset += 1e-14 * (abs(line.offset) + abs(slope * scale.offset))
    return -line.a, np.asarray(-line.B - slope * scale.matrix), offset, less

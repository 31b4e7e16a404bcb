"""The tangent's penalty for the covariance, its scale apart (docs/maths-multiclass.md, T7).

Over a box a covariance changes mostly as a whole: all variances grow away from the data. So the range of its
scale, one affine functional, is cut into cells, each with an anchor of its own scale. In a cell that part of
the penalty lies below a line, which joins the tangent; the slope of the line is free, and is chosen so that
the programme's minimum lies in the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.several.tangents.anchor import Anchor, anchor_at
from gpcert.bounds.several.tangents.tangent import Expanded, Tangent, Whitened, penalty, tangent, whitened
from gpcert.validation import Float

#: Cells are so many that the penalty of the scale is about this at their ends.
_PENALTY = 0.02
_CELLS = 6
#: Neighbouring cells overlap by this, and by what rounding moves the scale: together they are the whole.
_OVERLAP = 1e-6
#: Programmes per cell, and the first change of the slope of its line.
_PROGRAMMES, _STEP = 3, 0.3
#: A cell that misses its target by more than this after one programme is given up.
_HOPELESS = 0.5

#: (a, B, offset, less, enough) to a lower bound of a.m + <B, Sigma> - offset - less over the box.
Smallest = Callable[[Float, Float, float, Loss, float], FunctionalBound]


def scales(x: Expanded, anchor: Anchor, correlated: bool) -> tuple[Whitened, ...] | None:
    """The box seen from anchors of several scales, each for a cell; None where that says nothing."""
    whole = whitened(x, anchor)
    if whole is None:
        return None
    low, high, N = whole.scale.low, whole.scale.high, len(whole.root)
    width = math.sqrt(16.0 * _PENALTY / N)
    count = min(math.ceil(math.log((1.0 + high) / (1.0 + low)) / width), _CELLS)
    if count <= 1:
        return (whole,) if whole.definite else None
    ends = np.geomspace(1.0 + low, 1.0 + high, count + 1)
    found = []
    for first, last in pairwise(ends.tolist()):
        scale = math.sqrt(first * last)
        moved = anchor_at(anchor.mean, scale * anchor.covariance, correlated)
        seen = None if moved is None else whitened(x, moved)
        if seen is None:
            return None
        slack = _OVERLAP + 4.0 * (whole.scale.error + seen.scale.error)
        cell = (
            max(seen.scale.low, first / scale - 1.0 - slack),
            min(seen.scale.high, last / scale - 1.0 + slack),
        )
        if not cell[0] <= cell[1]:
            continue
        seen = replace(seen, scale=seen.scale._replace(low=cell[0], high=cell[1]))
        if not seen.definite:
            return None
        found.append(seen)
    return tuple(found)


def largest(
    cells: Sequence[Whitened], beta: Float, target: float, smallest: Smallest
) -> tuple[float, FunctionalBound] | None:
    """A bound of log sum_i beta_i p_i over the box, and the programme that gave it; effort ends once it is at
    most `target`, or once that is out of reach. None where nothing is proved.
    """
    worst: tuple[float, FunctionalBound] | None = None
    for seen in cells:
        line = tangent(seen, beta)
        found = None if line is None else _in_cell(seen, line, target, smallest)
        if found is None:
            return None
        if worst is None or found[0] > worst[0]:
            worst = found
    return worst


def _in_cell(
    seen: Whitened, line: Tangent, target: float, smallest: Smallest
) -> tuple[float, FunctionalBound] | None:
    """The same for one cell: convex in the slope of the line, and its derivative is seen at the minimum."""
    low, high = seen.scale.low, seen.scale.high
    slope, best, found = chord(len(seen.root), low, high), None, []
    for _ in range(_PROGRAMMES):
        bound = smallest(*_with(seen, line, slope), line.log_total - target)
        exponent = line.log_total - bound.latent
        if not math.isfinite(exponent):
            return best
        if best is None or exponent < best[0]:
            best = exponent, bound
        scale = seen.scale_at(bound.point)
        if best[0] <= target or low <= scale <= high or exponent > target + _HOPELESS:
            break
        found.append((slope, exponent, scale - (high if scale > high else low)))
        slope = _next(found)
    return best


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
    """The functional -(tangent + line) and what is subtracted from it besides.

    pen(E') <= weight |E - e I|_F^2, E' = (E - e I) / (1 + e).
    """
    scale, N = seen.scale, len(seen.root)
    least = 1.0 + scale.low
    weight = penalty(seen.shrunk / least) / least**2 * (1.0 + 1e-12)
    most = max(abs(scale.low), abs(scale.high))
    constant = height(N, scale.low, scale.high, slope) + (abs(slope) + most / least) * seen.blur
    loss, square = line.loss, seen.square
    less = Loss(
        loss.constant + weight * square.constant + max(constant, 0.0),
        loss.gradient + weight * square.gradient,
        loss.matrix + weight * square.matrix,
    )
    offset = -line.offset - slope * scale.offset + min(constant, 0.0)
    offset += 1e-14 * (abs(line.offset) + abs(slope * scale.offset))
    return -line.a, np.asarray(-line.B - slope * scale.matrix), offset, less

"""The tangent's penalty for the covariance, its scale apart (docs/maths/multiclass.md, T7).

Over a box a covariance changes mostly as a whole: all variances grow away from the data. That part of the
penalty, of one affine functional, lies below a line, which joins the tangent; the slope of the line is free,
and is chosen so that the programme's minimum lies in the range of the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.several.tangents.tangent import Tangent, Whitened, penalty, tangent
from gpcert.validation import Float

#: Programmes per box, and the first change of the slope of its line.
_PROGRAMMES, _STEP = 3, 0.3

#: (a, B, offset, less, enough) to a lower bound of a.m + <B, Sigma> - offset - less over the box.
Smallest = Callable[[Float, Float, float, Loss, float], FunctionalBound]


def largest(
    seen: Whitened, beta: Float, target: float, smallest: Smallest
) -> tuple[float, FunctionalBound] | None:
    """A bound of log sum_i beta_i p_i over the box, and the programme that gave it; None where nothing is
    proved.

    It is convex in the slope of the line, and its derivative is seen at the minimum. Effort ends once it is
    at most `target`, or once that is out of reach.
    """
    line = tangent(seen, beta) if seen.definite else None
    if line is None:
        return None
    low, high, N = seen.scale.low, seen.scale.high, len(seen.root)
    slope, best, saved, tried = chord(N, low, high), None, 0.0, []
    for _ in range(_PROGRAMMES):
        bound = smallest(*_with(seen, line, slope), line.log_total - target)
        exponent = line.log_total - bound.latent
        if not math.isfinite(exponent):
            break
        if best is None or exponent < best[0]:
            best = exponent, bound
            saved = max(_penalty(N, low), _penalty(N, high))
            saved += 0.5 * _weight(seen) * _at(seen.square, bound.point)
        scale = seen.scale_at(bound.point)
        if not target < best[0] <= target + saved or low <= scale <= high:
            break
        tried.append((slope, exponent, scale - (high if scale > high else low)))
        slope = _next(tried)
    return best


def _at(loss: Loss, d: Float) -> float:
    return loss.constant + float(loss.gradient @ d) + float(d @ loss.matrix @ d)


def _weight(seen: Whitened) -> float:
    """pen(E') <= this times |E - e I|_F^2, E' = (E - e I) / (1 + e), on the box."""
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
    """The slope of the line through the penalties at both ends of the range of e."""
    return (_penalty(N, high) - _penalty(N, low)) / (high - low) if high > low else 0.0


def height(N: int, low: float, high: float, slope: float) -> float:
    """Such that N/2 (e - log(1 + e)) <= height + slope e for e in [low, high]: convex, so at its ends."""
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

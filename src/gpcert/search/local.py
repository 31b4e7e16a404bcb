"""Local search for a small probability: any point of the region is sound, a good one saves work."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.special import ndtri

from gpcert.bounds.interface import BoxBound
from gpcert.clock import OutOfTime, check
from gpcert.validation import Float

_VERTEX_STEPS = 6
_PROJECTED_STEPS = 40
_EXCHANGES = 12
#: Remembered values: a projected step may rise above the last one, not above all of these.
_MEMORY = 6


def descend(
    bound: BoxBound,
    lower: Float,
    upper: Float,
    enough: float = -np.inf,
    negligible: float = 0.0,
    worth: float = 0.0,
) -> Float:
    """A point (d,) of the bound's region, which lies in the box, with small P: vertex iteration first,
    projected gradients where that does not settle; ends once the objective is below `enough`,
    P negligible, or no more than `worth` of the objective is to be gained.
    """
    if lower.size == 0:
        return lower.copy()
    timed = _Timed(bound, bound.shape.project(bound.shape.middle(lower, upper)))
    with suppress(OutOfTime):  # any point of the region is sound
        return _descend(timed, lower, upper, enough, negligible, worth)
    return timed.best


class _Timed:
    """A bound whose objective ends with the time; `best`: the point of the region where it was smallest."""

    def __init__(self, bound: BoxBound, best: Float) -> None:
        self.shape, self.at = bound.shape, bound.at
        self._objective = bound.objective
        self.best, self._least = best, np.inf

    def objective(self, x: Float) -> tuple[float, Float]:
        """See `BoxBound`; x (d,) lies in the region."""
        check()
        value, gradient = self._objective(x)
        if value < self._least:
            self.best, self._least = x, value
        return value, gradient


def _descend(
    bound: _Timed, lower: Float, upper: Float, enough: float, negligible: float, worth: float
) -> Float:
    # Features without data have zero gradient at the centre, a saddle: start a little beside it.
    tilt = np.where(np.arange(len(lower)) * 0x9E3779B1 & 0x10000, 0.01, -0.01)
    shape = bound.shape
    x = shape.project(shape.middle(lower, upper) + tilt * (upper - lower))
    best, gradient = bound.objective(x)
    point = x
    for _ in range(_VERTEX_STEPS):
        vertex = shape.vertex(gradient, point)
        value, gradient = bound.objective(vertex)
        if value < best:
            best, point = value, vertex
        if best < enough:
            return point
        settled = shape.vertex(gradient, vertex)
        if value > best:
            break
        if gradient @ (vertex - settled) <= worth:  # to first order there is no more to gain
            return _exchange(bound, point)
    # The objective is about a normal quantile: few points need an enclosure to tell.
    if best < ndtri(negligible) + 0.5 and bound.at(point)[1] <= negligible:
        return point
    return _exchange(bound, _polish(bound, lower, upper, point, best, worth))


def _exchange(bound: _Timed, point: Float) -> Float:
    """Moves to neighbours of the region's own kind as long as one is lower."""
    if bound.shape.is_box:
        return point
    best, gradient = bound.objective(point)
    for _ in range(_EXCHANGES):
        for other in bound.shape.neighbours(gradient, point):
            value, slope = bound.objective(other)
            if value < best:
                best, gradient, point = value, slope, other
                break
        else:
            break
    return point


def _polish(bound: _Timed, lower: Float, upper: Float, point: Float, best: float, worth: float) -> Float:
    """Spectral projected gradients (Birgin, Martinez, Raydan 2000), in units of the box's widths."""
    project, width = bound.shape.project, upper - lower
    x, value = point, best
    _, gradient = bound.objective(x)
    length = 1.0 / max(float(np.abs(gradient * width).max()), 1e-300)
    last = [value]
    for _ in range(_PROJECTED_STEPS):
        step = project(x - length * gradient * width * width) - x
        slope = float(gradient @ step)
        if not slope < -max(0.1 * worth, 1e-7 * (1.0 + abs(value))):
            break
        share = 1.0
        while True:
            new = project(x + share * step)
            new_value, new_gradient = bound.objective(new)
            if new_value <= max(last) + 1e-4 * share * slope or share < 1e-4:
                break
            share *= 0.3
        moved, turned = (new - x) / width, (new_gradient - gradient) * width
        curvature = float(moved @ turned)
        length = float(moved @ moved) / curvature if curvature > 0 else 4.0 * length
        x, value, gradient = new, new_value, new_gradient
        last = [*last[1 - _MEMORY :], value]
        if value < best:
            best, point = value, x
    return point

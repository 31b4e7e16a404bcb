"""Local search for a small probability: any point of the box is sound, a good one makes the search short."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from gpcert.bounds import BoxBound
from gpcert.validation import Float

__all__ = ["descend"]

_VERTEX_STEPS = 6


def descend(
    bound: BoxBound, lower: Float, upper: Float, enough: float = -np.inf, negligible: float = 0.0
) -> Float:
    """A point (d,) of the bound's region, which lies in the box, with small P: vertex iteration first,
    L-BFGS-B where that does not settle; ends once the bound's objective is below `enough` or P negligible.
    """
    if lower.size == 0:
        return lower.copy()
    # Features without data have zero gradient at the centre, a saddle: start a little beside it.
    tilt = np.where(np.arange(len(lower)) * 0x9E3779B1 & 0x10000, 0.01, -0.01)
    shape = bound.shape
    x = shape.project(0.5 * lower + 0.5 * upper + tilt * (upper - lower))
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
        if (settled == vertex).all():
            return point
    if bound.at(point)[1] <= negligible:
        return point
    return _polish(bound, lower, upper, point, best)


def _polish(bound: BoxBound, lower: Float, upper: Float, point: Float, best: float) -> Float:
    width = upper - lower

    def scaled(y: Float) -> tuple[float, Float]:
        value, gradient = bound.objective(lower + y * width)
        return value, gradient * width

    start = (point - lower) / width
    result = minimize(
        scaled, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(width), options={"maxiter": 40}
    )
    # Coordinates at an end of the box are set to it exactly: the bound is exact at such a reference.
    moved = np.where(result.x <= 0, lower, np.where(result.x >= 1, upper, lower + result.x * width))
    return bound.shape.project(moved) if result.fun < best else point

"""Differences of stored points and inputs, rounded once (docs/maths/bounds.md, E1)."""

from __future__ import annotations

import numpy as np

from gpcert.validation import Float


def difference(points: Float, x: Float) -> Float:
    """points - x (n, d); NaN, not inf, beyond the doubles: lengthscales may be as large (E1)."""
    with np.errstate(over="ignore"):
        found = np.asarray(points - x)
    if not np.abs(x).max(initial=0.0) < 2.0**960:
        found[np.isinf(found)] = np.nan
    return found


def nearest_and_farthest(points: Float, lower: Float, upper: Float) -> tuple[Float, Float]:
    """The smallest and the largest |points - x| (n, d) over a box of raw units, each rounded once."""
    left, right = difference(points, lower), difference(points, upper)
    return np.maximum(np.maximum(-left, right), 0.0), np.maximum(np.abs(left), np.abs(right))

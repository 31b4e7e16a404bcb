"""The Gram matrix of the unit Gaussian kernel with a bound on every entry's error (docs/maths.md, E2)."""

from __future__ import annotations

import numpy as np

from gpcert.rounding import UNIT
from gpcert.validation import Float

__all__ = ["unit_gram"]


def unit_gram(points: Float, lengthscale: Float) -> tuple[Float, float]:
    """exp(-|(x_i - x_j) / l|^2 / 2) for raw points (n, d), (n, n), and its largest absolute error."""
    d = len(lengthscale)
    centred = (points - points.mean(axis=0)) / lengthscale
    norms = np.einsum("ij,ij->i", centred, centred)
    half = centred @ centred.T
    half -= 0.5 * norms[:, None]
    half -= 0.5 * norms[None, :]
    np.minimum(half, 0.0, out=half)
    # Centring rounds a coordinate by at most 2u times the raw one: the second term, for far-away data.
    largest = float(norms.max(initial=0.0))
    moved = 4.0 * UNIT * float((np.abs(points) / lengthscale).max(initial=0.0)) * np.sqrt(d)
    exponent = 8.0 * UNIT * (d + 8) * largest + 4.0 * moved * (np.sqrt(largest) + moved)
    error = 2.0 * exponent + 32.0 * UNIT if exponent < 0.25 else 1.0
    return np.exp(half, out=half), float(error)

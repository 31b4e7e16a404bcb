"""Gram matrices of unit variance with a bound on every entry's error (docs/maths/bounds.md, E2)."""

from __future__ import annotations

import numpy as np

from gpcert.kernels import RBF, Kernel
from gpcert.rounding import UNIT
from gpcert.validation import Float


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


def kernel_gram(kernel: Kernel, points: Float) -> tuple[Float, float]:
    """K / k(x, x) for raw points (n, d), (n, n), and its largest absolute error, for any kernel.

    Distances are wrong by a factor 1 +- 200 (d + 4) u (kernels/distances.py), and z |phi'(z)| <= phi(0) -
    phi(z), because phi is convex and decreasing. Products of factors add their errors.
    """
    if isinstance(kernel, RBF):
        scales = np.array(np.broadcast_to(kernel.lengthscale, (points.shape[1],)), dtype=np.float64)
        return unit_gram(points, scales)
    K = kernel(points)
    K /= kernel.prior_variance
    factors = 1 + sum(name.endswith("variance") for name in kernel.parameter_names)  # one per kernel in it
    drop = 1.0 - float(K.min(initial=1.0)) + 1e-6
    return K, UNIT * factors * (300.0 * (points.shape[1] + 8) * drop + 64.0)

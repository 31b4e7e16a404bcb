"""From a variational posterior over inducing values to weights and precision.

q(u) = N(m, C) over u = f(Z), prior covariance K (with the library's jitter) and prior mean m0. With
A(x) = L^-1 k(Z, x), L L^T = K, the library predicts
    whitened    mean m0 + A^T m,              variance k(x, x) - A^T (I - C) A
    unwhitened  mean m0 + A^T L^-1 (m - m0),  variance k(x, x) - A^T (I - L^-1 C L^-T) A.
So weights = L^-T (whitened m) and precision = L^-T (I - whitened C) L^-1, indefinite where C exceeds I.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gpcert.adapters.covariance import rescaled
from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.validation import Float


def conditional(K: Float, mean: Float, covariance: Float, whitened: bool) -> tuple[Float, Float]:
    """Weights (n,) and precision (n, n) from K (n, n), the mean of u minus the prior mean (n,), and C."""
    try:
        L = cholesky(K, lower=True)
    except np.linalg.LinAlgError:
        raise InvalidInputError(
            "model must have inducing points with a positive definite kernel matrix, got one that is not"
        ) from None
    if not whitened:
        mean = solve_triangular(L, mean, lower=True)
        half = solve_triangular(L, covariance, lower=True)
        covariance = solve_triangular(L, half.T, lower=True)
    rest = np.eye(len(K)) - covariance
    left = solve_triangular(L, rest, lower=True, trans="T")
    precision = solve_triangular(L, left.T, lower=True, trans="T")
    weights = solve_triangular(L, mean, lower=True, trans="T")
    return weights, 0.5 * precision + 0.5 * precision.T


def widened(kernel: Kernel, extra: float, weights: Float, precision: Float) -> tuple[Kernel, Float, Float]:
    """The same predictor with `extra` >= 0 added to its variance: k -> r k, weights / r, precision / r^2.

    With r = 1 + extra / k(x, x): the mean and k^T R k stay as they are, k(x, x) grows by `extra`.
    """
    if extra == 0.0:
        return kernel, weights, precision
    ratio = 1.0 + extra / kernel.prior_variance
    return rescaled(kernel, ratio), weights / ratio, precision / ratio**2


def stacked(
    parts: Sequence[tuple[Float, Float, Float]],
) -> tuple[Float, Float, Float]:
    """Centres (n, d), weights (n, C), precision (C, n, n) of C latents, each with its own (Z, weights, R).

    Equal inducing points are shared; else the centres of all latents are stacked and the others' are idle.
    """
    first = parts[0][0]
    if all(np.array_equal(Z, first) for Z, _, _ in parts):
        return first, np.stack([w for _, w, _ in parts], axis=1), np.stack([R for _, _, R in parts])
    sizes = [len(Z) for Z, _, _ in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.zeros((starts[-1], len(parts)))
    precision = np.zeros((len(parts), starts[-1], starts[-1]))
    for c, (_, w, R) in enumerate(parts):
        own = slice(starts[c], starts[c + 1])
        weights[own, c] = w
        precision[c, own, own] = R
    return np.concatenate([Z for Z, _, _ in parts]), weights, precision

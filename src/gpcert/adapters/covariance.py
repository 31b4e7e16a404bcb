"""Foreign kernel expressions and variational posteriors as kernels, weights and precision.

A kernel is a sum of products of stationary kernels, constants and white noise. Of a variational posterior
q(u) = N(m, C) over u = f(Z), prior covariance K (with the library's jitter) and prior mean m0, with
A(x) = L^-1 k(Z, x), L L^T = K, the library predicts
    whitened    mean m0 + A^T m,              variance k(x, x) - A^T (I - C) A
    unwhitened  mean m0 + A^T L^-1 (m - m0),  variance k(x, x) - A^T (I - L^-1 C L^-T) A.
So weights = L^-T (whitened m) and precision = L^-T (I - whitened C) L^-1, indefinite where C exceeds I.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel, Product, Stationary, Sum
from gpcert.validation import Float


@dataclass(frozen=True)
class Covariance:
    """sum of `terms` + `constant` + `noise` [x is the same point as x']: what an expression amounts to."""

    terms: tuple[Kernel, ...] = ()
    constant: float = 0.0
    noise: float = 0.0

    @property
    def _smooth(self) -> float:
        """k(x, x) without the noise."""
        return self.constant + sum(term.prior_variance for term in self.terms)

    def __add__(self, other: Covariance) -> Covariance:
        return Covariance(self.terms + other.terms, self.constant + other.constant, self.noise + other.noise)

    def __mul__(self, other: Covariance) -> Covariance:
        crossed = [Product((a, b)) for a in self.terms for b in other.terms]
        mine = [rescaled(term, other.constant) for term in self.terms if other.constant]
        theirs = [rescaled(term, self.constant) for term in other.terms if self.constant]
        # Noise lives on the diagonal only: there a product is one of variances.
        total = (self._smooth + self.noise) * (other._smooth + other.noise)
        return Covariance(
            (*crossed, *mine, *theirs),
            self.constant * other.constant,
            max(0.0, total - self._smooth * other._smooth) if self.noise or other.noise else 0.0,
        )

    def kernel(self) -> Kernel:
        """The kernel without its noise; a constant term is refused, since no certified bound knows it."""
        if self.constant != 0.0:
            raise InvalidInputError(
                f"kernel must not add a constant (bias) term to others, got one of variance {self.constant:g}"
            )
        if not self.terms:
            raise InvalidInputError("kernel must have a stationary term such as RBF, got none")
        return self.terms[0] if len(self.terms) == 1 else Sum(self.terms)

    def predictor(self, weights: Float, precision: Float) -> tuple[Kernel, Float, Float]:
        """The kernel, weights and precision of the predictor whose variance has the noise, too."""
        return widened(self.kernel(), self.noise, weights, precision)


def rescaled(kernel: Kernel, ratio: float) -> Kernel:
    """ratio * kernel, by its variances."""
    if isinstance(kernel, Sum):
        return Sum(tuple(rescaled(part, ratio) for part in kernel.parts))
    if isinstance(kernel, Product):
        return Product((rescaled(kernel.parts[0], ratio), *kernel.parts[1:]))
    assert isinstance(kernel, Stationary)
    return replace(kernel, variance=kernel.variance * ratio)


def stretched(kernel: Kernel, lengthscales: Callable[[Float], Float]) -> Kernel:
    """The kernel with other lengthscales, each (d,) from what it was."""
    if isinstance(kernel, Sum | Product):
        return type(kernel)(tuple(stretched(part, lengthscales) for part in kernel.parts))
    assert isinstance(kernel, Stationary)
    return replace(kernel, lengthscale=lengthscales(np.asarray(kernel.lengthscale)))


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


def stacked(parts: Sequence[tuple[Float, Float, Float, Kernel, float]]) -> dict[str, Any]:
    """Those of `Foreign` that C latents make together, each with its own (Z, weights, R, kernel, mean).

    Equal inducing points are shared; else the centres of all latents are stacked and the others' are idle.
    """
    points, weights, precision, kernels, means = zip(*parts, strict=True)
    found = {"centres": points[0], "weights": weights[0], "precision": precision[0], "mean": means[0]}
    if len(parts) > 1:
        found |= {"weights": np.stack(weights, axis=1), "precision": np.stack(precision), "mean": means}
    if not all(np.array_equal(Z, points[0]) for Z in points):
        ends = np.cumsum([0, *map(len, points)])
        found |= {"centres": np.concatenate(points), "weights": np.zeros((ends[-1], len(parts)))}
        found["precision"] = np.zeros((len(parts), ends[-1], ends[-1]))
        for c, own in enumerate(map(slice, ends[:-1], ends[1:])):
            found["weights"][own, c] = weights[c]
            found["precision"][c, own, own] = precision[c]
    return {**found, "kernel": list(kernels)}

"""Laplace's method for two classes: Rasmussen and Williams (2006), Algorithms 3.1, 3.2 and 5.1.

Comments name the lines of the book's algorithms. Departures: a Newton step that would not raise the objective
enough is shortened to where it is highest; the search may start from the sites of a similar problem, such as
the one before in a sequence of hyper-parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.inference.approximation import Approximation, Sites
from gpcert.inference.factor import factorise
from gpcert.inference.newton import DECREMENT, MAX_ITERATIONS, ascend
from gpcert.likelihoods import BinaryLikelihood
from gpcert.validation import Float


@dataclass(frozen=True)
class _Point:
    """A value of the latent vector f = K a with everything the next step needs, all (n,)."""

    a: Float
    f: Float
    gradient: Float
    W: Float
    slope: Float
    log_likelihood: float

    @property
    def objective(self) -> float:
        """log p(y|f) - f^T K^-1 f / 2 (eq. 3.12 without its constants)."""
        return self.log_likelihood - 0.5 * float(self.a @ self.f)


def fit_laplace(
    K: Float, y: Float, likelihood: BinaryLikelihood, start: Sites | None = None
) -> Approximation:
    """Laplace approximation for the kernel matrix K (n, n) and labels y = +-1 (n,)."""

    def at(a: Float, f: Float) -> _Point:
        terms = likelihood.log_likelihood(y, f)
        return _Point(a, f, terms.d1, np.maximum(-terms.d2, 0.0), terms.d3, float(np.sum(terms.value)))

    point = _first_point(K, at, start)
    settled = False
    for iteration in range(1, MAX_ITERATIONS + 1):
        factor = factorise(K, point.W)  # 3.1, lines 4 and 5
        if settled or iteration == MAX_ITERATIONS:
            break
        b = point.W * point.f + point.gradient  # 3.1, line 6
        a = b - factor.solve(K @ b)  # 3.1, line 7
        f = K @ a  # 3.1, line 8
        # The gradient in f is `gradient - a`, so this is the squared decrement.
        decrement = float((f - point.f) @ (point.gradient - point.a))
        following = ascend(point, a, f, decrement, at)
        # No gain: what is left is rounding.
        settled = decrement <= DECREMENT**2 or following.objective <= point.objective
        point = following
    return Approximation(
        weights=point.a,
        sites=Sites(point.W, point.W * point.f + point.gradient),
        factor=factor,
        log_marginal_likelihood=point.objective - factor.half_log_determinant,  # 3.1, line 10
        converged=settled,
        iterations=iteration,
        slope=point.slope,
    )


def _first_point(K: Float, at: Callable[[Float, Float], _Point], start: Sites | None) -> _Point:
    """f = 0 (3.1, line 2) or the mean that the given sites have under K, if that has a larger objective."""
    zero = at(np.zeros(len(K)), np.zeros(len(K)))
    if start is None:
        return zero
    a = start.shift - factorise(K, start.precision).solve(K @ start.shift)
    warm = at(a, K @ a)
    return warm if warm.objective > zero.objective else zero

"""Laplace's method: Rasmussen and Williams (2006), Algorithms 3.1, 3.2 and 5.1, and 3.3 for the softmax.

Comments name the lines of the book's algorithms. Departures: a Newton step that would not raise the objective
enough is shortened to where it is highest; the search may start from the sites of a similar problem, such as
the one before in a sequence of hyper-parameters; the log determinant of the softmax is complete (its
algorithm leaves out the factor |sum_c E_c|). The C latents of a softmax share one kernel; arrays over classes
and points are (C, n), and W, the negative Hessian of the log likelihood, has one C x C block per point,
diag(p) - p p^T, so that nothing larger than n x n is factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from gpcert.inference.approximation import Approximation, ClassBlocks, Sites, factorise, factorise_classes
from gpcert.likelihoods import BinaryLikelihood, Softmax
from gpcert.validation import Float

_MAX_ITERATIONS = 200
# A full Newton step whose decrement (the step's length in the metric of the Hessian) is this small
# leaves an error of about its square, below 1e-10.
_DECREMENT = 1e-5
_FAIR_PART = 0.1
_HALVINGS = 20


@dataclass(frozen=True)
class _Point:
    """Latent values f = K a, and what the next step needs: all (n,), or (C, n).

    `curvature`: W of two classes, the class probabilities p of a softmax.
    """

    a: Float
    f: Float
    gradient: Float
    curvature: Float
    log_likelihood: float
    slope: Float | None = None

    @property
    def objective(self) -> float:
        """log p(y|f) - f^T K^-1 f / 2 (eq. 3.12 without its constants)."""
        return self.log_likelihood - 0.5 * float(np.vdot(self.a, self.f))


class _Factors(Protocol):
    def solve(self, v: Float) -> Float:
        """(K + W^-1)^-1 v."""


_F = TypeVar("_F", bound=_Factors)


@dataclass(frozen=True)
class SoftmaxApproximation:
    """N(K weights_c, (K^-1 + W)^-1) at the training points; latent c at x has mean k(x)^T weights[:, c]."""

    weights: Float  #: (n, C)
    sites: Sites
    blocks: ClassBlocks
    log_marginal_likelihood: float
    converged: bool
    iterations: int

    def precision(self) -> Float:
        """R = (K + W^-1)^-1 in blocks (C, C, n, n); R_ce is exactly the transpose of R_ec."""
        return self.blocks.precision()

    def gradient_matrix(self, K: Float) -> Float:
        """G (n, n), symmetric: d log_marginal_likelihood / d theta = sum_ij G_ij dK_ij/d theta.

        As in Algorithm 5.1: at fixed mode sum_c (a_c a_c^T - R_cc)/2, and sum_c u_c a_c^T for the movement of
        the mode, u = (I - R K) s with s = -(1/2) d log|I + K W| / df.
        """
        p, a = self.sites.precision, self.weights.T
        covariance = self.blocks.covariance(K)  # (n, C, C)
        # tr(Sigma_i dW_i/df_c) = p_c (g_c - p.g) with g_j = Sigma_jj - 2 (Sigma p)_j
        g = np.einsum("icc->ci", covariance) - 2.0 * np.einsum("ice,ei->ci", covariance, p)
        s = -0.5 * p * (g - (p * g).sum(axis=0))
        u = s - self.blocks.solve(s @ K)
        G: Float = (0.5 * a + u).T @ a
        return np.asarray(0.5 * (G + G.T - self.blocks.diagonal_sum()))


def fit_laplace(
    K: Float, y: Float, likelihood: BinaryLikelihood, start: Sites | None = None
) -> Approximation:
    """Laplace approximation for the kernel matrix K (n, n) and labels y = +-1 (n,)."""

    def at(a: Float, f: Float) -> _Point:
        terms = likelihood.log_likelihood(y, f)
        W = np.maximum(-terms.d2, 0.0)
        return _Point(a, f, terms.d1, W, float(np.sum(terms.value)), terms.d3)

    point, factor, shift, settled, count = _mode(
        K, np.zeros(len(K)), start, at, factorise, lambda point: point.curvature * point.f + point.gradient
    )
    return Approximation(
        weights=point.a,
        sites=Sites(point.curvature, shift),
        factor=factor,
        log_marginal_likelihood=point.objective - factor.half_log_determinant,  # 3.1, line 10
        converged=settled,
        iterations=count,
        slope=point.slope,
    )


def fit_softmax(K: Float, y: Float, likelihood: Softmax, start: Sites | None = None) -> SoftmaxApproximation:
    """Laplace approximation for the kernel matrix K (n, n) and class indices y (n,), every class present."""
    target = (np.arange(int(y.max()) + 1)[:, None] == y).astype(np.float64)

    def at(a: Float, f: Float) -> _Point:
        top = f.max(axis=0)
        e = np.exp(f - top)
        total = e.sum(axis=0)
        p = e / total
        value = float((np.vdot(target, f)) - (top + np.log(total)).sum())
        return _Point(a, f, target - p, p, value)

    def shift(point: _Point) -> Float:
        p, f = point.curvature, point.f
        return np.asarray(p * (f - (p * f).sum(axis=0)) + point.gradient)

    point, blocks, shifted, settled, count = _mode(
        K, np.zeros_like(target), start, at, factorise_classes, shift
    )
    return SoftmaxApproximation(
        weights=np.ascontiguousarray(point.a.T),
        sites=Sites(point.curvature, shifted),
        blocks=blocks,
        log_marginal_likelihood=point.objective - blocks.half_log_determinant,  # eq. 3.44
        converged=settled,
        iterations=count,
    )


def _mode(
    K: Float,
    zero: Float,
    start: Sites | None,
    at: Callable[[Float, Float], _Point],
    factorised: Callable[[Float, Float], _F],
    shift: Callable[[_Point], Float],
) -> tuple[_Point, _F, Float, bool, int]:
    """The mode, its factors and its shift W f + gradient; whether it is settled, and the number of steps.

    From f = 0 (3.1 and 3.3, line 2) or from the mean that the sites of `start` have under K, where the
    objective is larger.
    """

    def newton(factor: _F, b: Float) -> tuple[Float, Float]:
        a = b - factor.solve(b @ K)  # 3.1, line 7; 3.3, lines 9 and 10
        return a, a @ K

    point = at(zero, zero)
    if start is not None:
        warm = at(*newton(factorised(K, start.precision), start.shift))
        point = warm if warm.objective > point.objective else point
    settled = False
    for iteration in range(1, _MAX_ITERATIONS + 1):
        factor = factorised(K, point.curvature)  # 3.1, lines 4 and 5; 3.3, lines 4 to 7
        b = shift(point)  # 3.1, line 6; 3.3, line 8
        if settled or iteration == _MAX_ITERATIONS:
            break
        a, f = newton(factor, b)
        # The gradient in f is `gradient - a`, so this is the squared decrement.
        decrement = float(np.vdot(f - point.f, point.gradient - point.a))
        following = _ascend(point, a, f, decrement, at)
        # No gain: what is left is rounding.
        settled = decrement <= _DECREMENT**2 or following.objective <= point.objective
        point = following
    return point, factor, b, settled, iteration


def _ascend(
    point: _Point, a: Float, f: Float, decrement: float, at: Callable[[Float, Float], _Point]
) -> _Point:
    """The Newton point (a, f) if it gains a fair part of decrement/2, else the best one on the way there.

    The objective is concave: it is highest where its slope along the way changes sign, found by halving.
    """
    newton = at(a, f)
    rounding = 4.0 * np.finfo(np.float64).eps * (abs(point.objective) + f.size)
    if newton.objective >= point.objective + _FAIR_PART * decrement - rounding:
        return newton
    da, df = a - point.a, f - point.f
    best = point
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        candidate = at(point.a + middle * da, point.f + middle * df)
        if candidate.objective > best.objective:
            best = candidate
        if np.vdot(df, candidate.gradient - candidate.a) > 0.0:
            low = middle
        else:
            high = middle
    return best

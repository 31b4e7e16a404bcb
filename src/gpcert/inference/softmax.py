"""Laplace's method with the softmax likelihood: Rasmussen and Williams (2006), Algorithm 3.3 and eq. 3.44.

C latent functions share one kernel. Arrays over classes and points are (C, n). W, the negative Hessian of the
log likelihood, has one C x C block per point, diag(p) - p p^T, so nothing larger than n x n is factorised.
Departures from the book: the log determinant is complete (its algorithm leaves out the factor |sum_c E_c|),
and Newton steps are shortened as in `laplace.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.inference.class_blocks import ClassBlocks, factorise_classes
from gpcert.inference.newton import DECREMENT, MAX_ITERATIONS, ascend
from gpcert.likelihoods import Softmax
from gpcert.validation import Float


class ClassSites(NamedTuple):
    """The quadratic model of the log likelihood at a mode: p (C, n), which gives W, and W f + gradient."""

    p: Float
    shift: Float


@dataclass(frozen=True)
class SoftmaxApproximation:
    """N(K weights_c, (K^-1 + W)^-1) at the training points; latent c at x has mean k(x)^T weights[:, c]."""

    weights: Float  #: (n, C)
    sites: ClassSites
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
        p, a = self.sites.p, self.weights.T
        covariance = self.blocks.covariance(K)  # (n, C, C)
        # tr(Sigma_i dW_i/df_c) = p_c (g_c - p.g) with g_j = Sigma_jj - 2 (Sigma p)_j
        g = np.einsum("icc->ci", covariance) - 2.0 * np.einsum("ice,ei->ci", covariance, p)
        s = -0.5 * p * (g - (p * g).sum(axis=0))
        u = s - self.blocks.solve(s @ K)
        G: Float = (0.5 * a + u).T @ a
        return np.asarray(0.5 * (G + G.T - self.blocks.diagonal_sum()))


@dataclass(frozen=True)
class _Point:
    """A value f = K a of the latents with what the next step needs, all (C, n)."""

    a: Float
    f: Float
    p: Float
    gradient: Float
    log_likelihood: float

    @property
    def objective(self) -> float:
        """log p(y|f) - f^T K^-1 f / 2."""
        return self.log_likelihood - 0.5 * float(np.vdot(self.a, self.f))


def fit_softmax(
    K: Float, y: Float, likelihood: Softmax, start: ClassSites | None = None
) -> SoftmaxApproximation:
    """Laplace approximation for the kernel matrix K (n, n) and class indices y (n,), every class present."""
    classes = int(y.max()) + 1
    target = (np.arange(classes)[:, None] == y).astype(np.float64)

    def at(a: Float, f: Float) -> _Point:
        top = f.max(axis=0)
        e = np.exp(f - top)
        total = e.sum(axis=0)
        p = e / total
        value = float((np.vdot(target, f)) - (top + np.log(total)).sum())
        return _Point(a, f, p, target - p, value)

    def newton(blocks: ClassBlocks, shift: Float) -> tuple[Float, Float]:
        a = shift - blocks.solve(shift @ K)  # lines 8 to 10
        return a, a @ K

    point = at(np.zeros_like(target), np.zeros_like(target))  # line 2
    if start is not None:
        warm = at(*newton(factorise_classes(K, start.p), start.shift))
        point = warm if warm.objective > point.objective else point
    settled = False
    for iteration in range(1, MAX_ITERATIONS + 1):
        blocks = factorise_classes(K, point.p)  # lines 4 to 7
        shift = point.p * (point.f - (point.p * point.f).sum(axis=0)) + point.gradient  # line 8
        if settled or iteration == MAX_ITERATIONS:
            break
        a, f = newton(blocks, shift)
        decrement = float(np.vdot(f - point.f, point.gradient - point.a))
        following = ascend(point, a, f, decrement, at)
        settled = decrement <= DECREMENT**2 or following.objective <= point.objective
        point = following
    return SoftmaxApproximation(
        weights=np.ascontiguousarray(point.a.T),
        sites=ClassSites(point.p, shift),
        blocks=blocks,
        log_marginal_likelihood=point.objective - blocks.half_log_determinant,  # eq. 3.44
        converged=settled,
        iterations=iteration,
    )

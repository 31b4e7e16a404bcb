"""A Gaussian approximation of the latent posterior, and the factors that Laplace's method and EP make it of.

B = I + W^1/2 K W^1/2 is the one well-conditioned matrix of both: its eigenvalues are at least 1 and at most
1 + max(W) trace(K), also where K is singular (duplicated points) and where entries of W are 0 (Rasmussen and
Williams, eq. 3.26).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from gpcert.errors import InvalidInputError
from gpcert.validation import Float

_BLOCK = 64
# (1 - (B^-1)_ii)/W_i has a relative error of about eps/(1 - (B^-1)_ii); below this it is computed otherwise.
_CANCELLATION = 1e-6


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of B for one W.

    `root`: W^1/2 (n,); `lower` (n, n): L with L L^T = B in its lower triangle, the rest unspecified,
    Fortran order as LAPACK wants it.
    """

    root: Float
    lower: Float

    @property
    def half_log_determinant(self) -> float:
        """(1/2) log |B| = sum_i log L_ii."""
        return float(np.log(self.lower.diagonal()).sum())

    def solve(self, v: Float) -> Float:
        """R v (n,) for v (n,), R = (K + W^-1)^-1 = W^1/2 B^-1 W^1/2."""
        x, _ = lapack.dpotrs(self.lower, self.root * v, lower=1, overwrite_b=1)
        return np.asarray(self.root * x)

    @cached_property
    def inverse(self) -> Float:
        """B^-1 (n, n), exactly symmetric."""
        lower, _ = lapack.dpotri(self.lower, lower=1)
        inverse = lower.T  # C order; LAPACK's lower triangle is the upper one here
        _mirror_upper(inverse)
        return np.asarray(inverse)

    def precision(self) -> Float:
        """R (n, n), exactly symmetric, a new array."""
        R = np.multiply.outer(self.root, self.root)
        R *= self.inverse
        return R

    def marginals(self, K: Float) -> tuple[Float, Float]:
        """Diagonals (n,) of B^-1 and of the posterior covariance (K^-1 + W)^-1.

        From B^-1 = I - W^1/2 (K^-1 + W)^-1 W^1/2 the second is (1 - (B^-1)_ii)/W_i, except where W_i is so
        small that this cancels and K_ii - |L^-1 W^1/2 k_i|^2 does not.
        """
        beta = self.inverse.diagonal()
        W, prior = self.root**2, K.diagonal()
        variance = (1.0 - beta) / np.where(W > 0.0, W, 1.0)
        doubtful = np.flatnonzero((W * prior < 1.0) & (1.0 - beta < _CANCELLATION))
        if doubtful.size:
            V, _ = lapack.dtrtrs(self.lower, (K[doubtful] * self.root).T, lower=1, overwrite_b=1)
            variance[doubtful] = prior[doubtful] - np.einsum("ij,ij->j", V, V)
        # The truth is positive; rounding leaves at worst a few units of the prior's last place.
        return beta, np.asarray(np.maximum(variance, np.finfo(np.float64).eps * prior))


def factorise(K: Float, W: Float) -> Factor:
    """Cholesky factor of B for the kernel matrix K (n, n) and W >= 0 (n,)."""
    root = np.sqrt(W)
    B = K * root
    B *= root[:, None]
    B[np.diag_indices_from(B)] += 1.0
    lower, info = lapack.dpotrf(B.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise InvalidInputError(
            "kernel must give a matrix that is positive semi-definite to rounding, "
            f"got one that is not, with prior variance {float(K[0, 0]):.3g}"
        )
    return Factor(root, lower)


def _mirror_upper(A: Float) -> None:
    """Copy the upper triangle of A (n, n) onto the lower one, block by block."""
    for start in range(0, len(A), _BLOCK):
        rows = slice(start, start + _BLOCK)
        A[start + _BLOCK :, rows] = A[rows, start + _BLOCK :].T
        square = A[rows, rows]
        below = np.tril_indices(len(square), -1)
        square[below] = square.T[below]


@dataclass(frozen=True)
class ClassBlocks:
    """The factors B_c of the classes and the Cholesky factor of sum_c E_c (lower triangle, Fortran order)."""

    factors: tuple[Factor, ...]
    E: Float  #: (C, n, n)
    lower: Float  #: (n, n)

    @property
    def half_log_determinant(self) -> float:
        """(1/2) log |I + K W|."""
        parts = sum(factor.half_log_determinant for factor in self.factors)
        return parts + float(np.log(self.lower.diagonal()).sum())

    def solve(self, v: Float) -> Float:
        """R v (C, n) for v (C, n)."""
        Ev = np.stack([factor.solve(row) for factor, row in zip(self.factors, v, strict=True)])
        x, _ = lapack.dpotrs(self.lower, Ev.sum(axis=0), lower=1)
        return np.asarray(Ev - self.E @ x)

    @cached_property
    def _halves(self) -> Float:
        """H_c = L^-1 E_c (C, n, n), so that R_ce = [c = e] E_c - H_c^T H_e."""
        halves = [lapack.dtrtrs(self.lower, E, lower=1)[0] for E in self.E]
        return np.stack(halves)

    def precision(self) -> Float:
        C, n, _ = self.E.shape
        R = np.empty((C, C, n, n))
        for c in range(C):
            for e in range(c, C):
                block = -(self._halves[c].T @ self._halves[e])
                if c == e:
                    block += self.E[c]
                    block = 0.5 * (block + block.T)
                R[c, e], R[e, c] = block, block.T
        return R

    def diagonal_sum(self) -> Float:
        """sum_c R_cc (n, n), exactly symmetric."""
        stacked = self._halves.reshape(-1, self.E.shape[1])
        total: Float = self.E.sum(axis=0) - stacked.T @ stacked
        return 0.5 * (total + total.T)

    def covariance(self, K: Float) -> Float:
        """The posterior covariance of the C latents at each training point, (n, C, C)."""
        C, n, _ = self.E.shape
        projected = self._halves @ K  # L^-1 E_c K
        covariance = np.empty((n, C, C))
        for c in range(C):
            for e in range(c, C):
                covariance[:, c, e] = covariance[:, e, c] = np.einsum("ji,ji->i", projected[c], projected[e])
            covariance[:, c, c] += self.factors[c].marginals(K)[1]
        return covariance


def factorise_classes(K: Float, p: Float) -> ClassBlocks:
    """The blocks for the kernel matrix K (n, n) and class probabilities p (C, n) at the training points."""
    factors = tuple(factorise(K, row) for row in p)
    E = np.stack([factor.precision() for factor in factors])
    lower, info = lapack.dpotrf(np.asfortranarray(E.sum(axis=0)), lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise InvalidInputError(
            "kernel must leave the class probabilities of the training points away from 0 and 1, "
            f"got a prior variance of {float(K[0, 0]):.3g} that does not"
        )
    return ClassBlocks(factors, E, lower)


@dataclass(frozen=True)
class Sites:
    """Unnormalised Gaussians exp(-precision_i f_i^2/2 + shift_i f_i) in place of the likelihood terms.

    `precision` >= 0 (n,), of a softmax the class probabilities (C, n) that give it; `shift` of the same
    shape. Under a similar kernel matrix they still are a good first guess, which makes a sequence of
    hyper-parameters cheap.
    """

    precision: Float
    shift: Float


@dataclass(frozen=True)
class Approximation:
    """N(K weights, (K^-1 + W)^-1) at the training points, W = diag(sites.precision).

    Latent mean at x: k(x)^T weights, `weights` (n,). Latent variance: k(x,x) - k(x)^T R k(x) with
    R = `precision()`. `slope` (n,): third derivatives of the log likelihood at the mode where W follows the
    mode (Laplace), None where the sites are a stationary point (EP).
    """

    weights: Float
    sites: Sites
    factor: Factor
    log_marginal_likelihood: float
    converged: bool
    iterations: int
    slope: Float | None = None

    @property
    def site_precision(self) -> Float:
        return self.sites.precision

    def precision(self) -> Float:
        """R = (K + W^-1)^-1 (n, n), exactly symmetric."""
        return self.factor.precision()

    def gradient_matrix(self, K: Float) -> Float:
        """G (n, n), symmetric: d log_marginal_likelihood / d theta = sum_ij G_ij dK_ij/d theta.

        EP (Algorithm 5.2, line 6): G = (a a^T - R)/2 with a = weights. Laplace (Algorithm 5.1, lines 7 to 12)
        adds the movement of the mode: s2^T (I - K R) dK a, that is u a^T with u = (I - R K) s2.
        """
        half = 0.5 * self.weights
        if self.slope is not None:
            s2 = 0.5 * self._covariance_diagonal() * self.slope
            half += s2 - self.factor.solve(K @ s2)
        # R becomes G in place: -R/2, plus (half a^T + a half^T)/2 as two rank-one updates.
        G = self.factor.precision()
        G *= -0.5
        by_blas = blas.dger(0.5, self.weights, half, a=G.T, overwrite_a=1)
        return np.asarray(blas.dger(0.5, half, self.weights, a=by_blas, overwrite_a=1).T)

    def _covariance_diagonal(self) -> Float:
        """Diagonal (n,) of (K^-1 + W)^-1 = W^-1/2 (I - B^-1) W^-1/2, 0 where W is.

        Absolute errors are some eps/W_i, harmless here: `slope` is at most of the order of W.
        """
        W = self.sites.precision
        return np.where(W > 0.0, 1.0 - self.factor.inverse.diagonal(), 0.0) / np.where(W > 0.0, W, 1.0)

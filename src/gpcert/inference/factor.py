"""B = I + W^1/2 K W^1/2, factorised: the one well-conditioned matrix of Laplace's method and EP.

Its eigenvalues are at least 1 and at most 1 + max(W) trace(K), also where K is singular (duplicated points)
and where entries of W are 0 (Rasmussen and Williams, eq. 3.26).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

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

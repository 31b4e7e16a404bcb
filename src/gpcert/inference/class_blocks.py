"""(K + W^-1)^-1 for the block structure of the softmax likelihood, W_i = diag(p_i) - p_i p_i^T per point.

With E_c = (K + D_c^-1)^-1, D_c = diag(p_c), the blocks are R_ce = [c = e] E_c - E_c (sum_j E_j)^-1 E_e
(Rasmussen and Williams, eqs. 3.45 to 3.48), and |I + K W| = |sum_j E_j| prod_c |B_c|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from gpcert.errors import InvalidInputError
from gpcert.inference.factor import Factor, factorise
from gpcert.validation import Float


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
        """R (C, C, n, n)."""
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

"""Precisions without a witness (V1'), definite or not: two contractions, each verified by one residual."""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import cholesky, indefiniteness, norm
from gpcert_check.model import Latent
from gpcert_check.reading import fields, need, reals

__all__ = ["contractions"]


def contractions(latent: Latent, fact: Any) -> None:
    """-negative |g|^2 <= z^T R z <= contraction |g|^2 for z = (g(x_i)), with a factor L of K + jitter I.

    L L^T >= K gives z = L y with |y| <= |g|: it suffices to enclose L^T R L between multiples of I.
    """
    jitter, contraction, negative = reals([*fields(fact, "jitter contraction negative")], 3)
    need(jitter > 0 and contraction >= 0 and negative >= 0, "V1': jitter must be > 0, the contractions >= 0")
    n, K = latent.n, latent.gram(range(latent.D)) * arb(latent.s2)
    for i in range(n):
        K[i, i] += jitter
    guess = cholesky([[float(x.mid()) for x in row] for row in K.tolist()])
    need(guess is not None, "V1': K + jitter I has no Cholesky factor in doubles")
    L = arb_mat([row + [0.0] * (n - len(row)) for row in guess or []])
    Lt = L.transpose()
    need(norm(L * Lt - K) <= jitter, "V1': the jitter does not cover the error of the factor")
    M = Lt * (latent.R * L)
    M = (M + M.transpose()) / 2
    above = contraction + indefiniteness(_identity(n, contraction) - M, "contraction I - L^T R L")
    below = negative + indefiniteness(_identity(n, negative) + M, "negative I + L^T R L")
    latent.settle((above - 1).nonnegative_part(), below)


def _identity(n: int, factor: float) -> arb_mat:
    matrix = arb_mat(n, n)
    for i in range(n):
        matrix[i, i] = factor
    return matrix

"""Precisions without a witness (V1'), definite or not: two contractions, each verified by one residual; and
what they leave of the variance on a cell (V3').
"""

from __future__ import annotations

from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import cholesky, indefiniteness, norm
from gpcert_check.model import Latent
from gpcert_check.reading import fields, need, reals

__all__ = ["contractions", "lifted", "variances"]


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


def variances(latent: Latent, q0: arb, x: arb | None) -> tuple[arb, arb, arb]:
    """V3': the ends of max(S, 0) where |d|^2 <= x (None: anywhere), and how far S may lie below 0 there."""
    if x is None:
        return latent.bottom, latent.top, latent.lift
    here, wide = latent.s2 - q0, (latent.s2 + latent.lift + latent.negative * latent.s2) * x
    change = 2 * ((here + latent.lift).nonnegative_part().upper() * wide).sqrt() + wide
    below = (change - here).nonnegative_part().min(latent.lift)
    least = (here - change).nonnegative_part().max(latent.bottom)
    return least, (here + change).nonnegative_part().min(latent.top), below


def lifted(latent: Latent, c: arb, q0: arb, x: arb | None) -> tuple[arb, arb]:
    """V3': where |d|^2 <= x, sqrt(c + S + lift) - sqrt(c + max(S, 0)) <= lost - rate (S + S(ref))."""
    least, most, _ = variances(latent, q0, x)
    lost = latent.lift / ((c + least).sqrt() + (c + least + latent.lift).sqrt())
    steepness = 1 / (c + most).sqrt() - 1 / (c + most + latent.lift).sqrt()
    rate = steepness.lower().nonnegative_part() / 2  # any number in [0, steepness/2] will do
    return lost + rate * (latent.s2 - q0 + least), rate


def _identity(n: int, factor: float) -> arb_mat:
    matrix = arb_mat(n, n)
    for i in range(n):
        matrix[i, i] = factor
    return matrix

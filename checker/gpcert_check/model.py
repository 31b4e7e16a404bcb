"""One latent of a model, and what is proved about it once (V1). All numbers are doubles, taken as the
rational numbers they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot, largest
from gpcert_check.reading import fields, need, real, reals

MOST_RESIDUAL = arb(2) ** -10


class Latent:
    """mu(x) = m0 + k(x).alpha and S(x) = s2 - k(x)^T R k(x), k(x, x') = s2 exp(-|(x - x')/l|^2/2).

    After `verify`: -negative |g|^2 <= z^T R z <= (1 + surplus) |g|^2 for every g in the kernel's Hilbert
    space and z = (g(x_i)), so -lift <= S <= top everywhere.
    """

    def __init__(
        self, centres: list[list[float]], kernel: Any, alpha: list[float], R: list[float], m0: float
    ) -> None:
        self.X, self.alpha, self.m0 = centres, alpha, m0
        self.n, self.D = len(centres), len(centres[0])
        kind, scales, s2 = fields(kernel, "type lengthscale variance")
        need(kind == "rbf", f"this checker knows the Gaussian kernel, got {str(kind)[:40]}")
        self.scale = [real(scales)] * self.D if isinstance(scales, str) else reals(scales, self.D)
        self.s2 = real(s2)
        need(self.s2 > 0 and all(x > 0 for x in self.scale), "variance and lengthscales must be positive")
        n = self.n
        symmetric = all(R[i * n + j] == R[j * n + i] for i in range(n) for j in range(i))
        need(symmetric, "the precision is not symmetric")
        self.R = arb_mat(n, n, R)
        self._grams: dict[tuple[int, ...], arb_mat] = {}
        self.surplus = self.negative = self.lift = self.top = arb("nan")  # until they are proved

    def gram(self, features: Sequence[int]) -> arb_mat:
        """The matrix exp(-|x_i - x_j|^2/2) over the given features, in lengthscales; the last one is kept."""
        key = tuple(features)
        if key not in self._grams:
            n = self.n
            Z = arb_mat(n, len(key), [arb(row[j]) / self.scale[j] for row in self.X for j in key])
            inner = (Z * Z.transpose()).tolist()
            half = [inner[i][i] / 2 for i in range(n)]
            K = [[arb(1)] * n for _ in range(n)]
            for i, (row, h) in enumerate(zip(inner, half, strict=True)):
                for j in range(i):
                    K[i][j] = K[j][i] = (row[j] - h - half[j]).exp()
            self._grams = {key: arb_mat(K)}
        return self._grams[key]

    def verify(self, W: Sequence[float]) -> None:
        """V1: R = (K + diag(1/W))^-1 up to a residual, for a positive witness W."""
        n = self.n
        need(all(w > 0 for w in W), "V1: the witness must be positive")
        B = self.gram(range(self.D)) * arb(self.s2)
        for i in range(n):
            B[i, i] += 1 / arb(W[i])
        columns = [arb(0)] * n
        for i, row in enumerate((self.R * B).tolist()):
            row[i] -= 1
            columns = [total + abs(x) for total, x in zip(columns, row, strict=True)]
        rho = largest(columns)
        need(rho < MOST_RESIDUAL, "V1: the precision is not (K + W^-1)^-1 for the witness W")
        self.settle(rho, arb(0))

    def settle(self, surplus: arb, negative: arb) -> None:
        """What follows from the two contractions."""
        self.surplus, self.negative = surplus, negative
        self.lift, self.top = surplus * self.s2, (1 + negative) * self.s2

    def at(self, x: Sequence[float]) -> tuple[arb, arb]:
        """The latent mean and the variance, clipped at 0, at a point of doubles."""
        steps = [[(arb(c) - a) / s for c, a, s in zip(row, x, self.scale, strict=True)] for row in self.X]
        k = [self.s2 * (-dot(row, row) / 2).exp() for row in steps]
        column = arb_mat(self.n, 1, k)
        explained = (column.transpose() * (self.R * column))[0, 0]
        return self.m0 + dot(self.alpha, k), (self.s2 - explained).nonnegative_part()

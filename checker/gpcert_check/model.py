"""One latent of a model, and what is proved about it once (V1). All numbers are doubles, taken as the
rational numbers they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, ldexp
from typing import Any

from flint import arb, arb_mat, ctx, fmpz_mat

from gpcert_check.arithmetic import dot, integers, largest
from gpcert_check.profiles import profile_of
from gpcert_check.reading import need, real, reals
from gpcert_check.work import spend

MOST_RESIDUAL = arb(2) ** -10
_ROWS = 500  # of one product: bounds the memory
_BITS = 76  # of the integers that stand for K and R in V1: they cost n^2 2^-74, by their rounding


class Latent:
    """mu(x) = m0 + k(x).alpha and S(x) = s2 - k(x)^T R k(x), k(x, x') = s2 phi(|(x - x')/l|^2/2)
    (the Gaussian: phi = e^-z).

    After `verify`: -negative |g|^2 <= z^T R z <= (1 + surplus) |g|^2 for every g in the kernel's Hilbert
    space and z = (g(x_i)), so -lift <= S <= top everywhere.
    """

    def __init__(self, X: list[Any], kernel: Any, alpha: list[Any], R: list[float], m0: Any) -> None:
        self.X, self.kernel, self.alpha, self.m0 = X, kernel, alpha, m0
        self.n, self.D, n = len(X), len(X[0]), len(X)
        self.profile, scales, s2 = profile_of(kernel)
        self.scale = [real(scales)] * self.D if isinstance(scales, str) else reals(scales, self.D)
        self.s2 = real(s2)
        need(self.s2 > 0 and all(x > 0 for x in self.scale), "variance and lengthscales must be positive")
        need(all(R[i::n] == R[i * n : (i + 1) * n] for i in range(n)), "the precision is not symmetric")
        self.R, self.entries = arb_mat(n, n, R), R
        self._grams: dict[Any, arb_mat] = {}
        self.surplus = self.negative = self.lift = self.top = arb("nan")  # until they are proved

    def gram(self, features: Sequence[int], metric: Sequence[float] = ()) -> arb_mat:
        """The matrix phi(|x_i - x_j|^2/2) over the given features, in lengthscales times roots of the metric
        where there is one; the last two are kept.
        """
        key, n, weights = (tuple(features), tuple(metric)), self.n, metric or [1.0] * len(features)
        if key not in self._grams:
            spend(n * n * (len(features) + 100) // 100)
            units = [(j, self.scale[j] * arb(m).sqrt()) for j, m in zip(features, weights, strict=True)]
            Z = [[row[j] / unit for j, unit in units] for row in self.X]
            half = [dot(z, z) / 2 for z in Z]
            K = [[arb(1)] * n for _ in range(n)]
            for start in range(0, n, _ROWS):
                inner = arb_mat(Z[start : start + _ROWS]) * arb_mat(Z[: start + _ROWS]).transpose()
                for i, row in enumerate(inner.tolist(), start):
                    for j in range(i):
                        K[i][j] = K[j][i] = self.profile.value(half[i] + half[j] - row[j])
            self._grams = dict([*self._grams.items()][-1:]) | {key: arb_mat(K)}
        return self._grams[key]

    def verify(self, W: Sequence[float]) -> None:
        """V1: R = (K + diag(1/W))^-1 up to a residual, for a positive witness W."""
        need(all(w > 0 for w in W), "V1: the witness must be positive")
        n, most = self.n, frexp(max(map(abs, self.entries)))[1]  # |R| <= 2^most
        bits = min(max(_BITS, _BITS + most + frexp(self.s2)[1]), ctx.prec - 12)
        K, bits = integers(self.gram(range(self.D)), bits)
        R = fmpz_mat(n, n, [int(ldexp(x, bits - most)) for x in self.entries])
        unit, worst = self.s2 * arb(2) ** (most - 2 * bits), arb(0)
        for start in range(0, n, _ROWS):
            rows = fmpz_mat(min(_ROWS, n - start), n, K[start * n : (start + _ROWS) * n]) * R
            for i, row in enumerate(arb_mat(rows).tolist(), start):
                noise = 1 / (W[i] * unit)
                row = [x + self.R[i, j] * noise for j, x in enumerate(row)]
                row[i] -= 1 / unit
                worst = largest([worst, sum(map(abs, row), arb(0))])
        rho = (worst + 4 * n * n * arb(2) ** bits) * unit
        need(rho < MOST_RESIDUAL, "V1: the precision is not (K + W^-1)^-1 for the witness W")
        self.settle(rho, arb(0))

    def settle(self, surplus: arb, negative: arb) -> None:
        """What follows from the two contractions."""
        self.surplus, self.negative = surplus, negative
        self.lift, self.top, self.bottom = surplus * self.s2, (1 + negative) * self.s2, arb(0)

    def covariances(self, x: Sequence[Any]) -> list[arb]:
        """k(x) at a point of doubles, or of balls."""
        steps = [[(arb(c) - a) / s for c, a, s in zip(row, x, self.scale, strict=True)] for row in self.X]
        return [self.s2 * self.profile.value(dot(row, row) / 2) for row in steps]

    def at(self, x: Sequence[float]) -> tuple[arb, arb]:
        """The latent mean and the variance, clipped at 0, at a point of doubles."""
        spend(self.n * self.D + self.n**2 // 20)
        k = self.covariances(x)
        column = arb_mat(self.n, 1, k)
        explained = (column.transpose() * (self.R * column))[0, 0]
        return self.m0 + dot(self.alpha, k), (self.s2 - explained).nonnegative_part()

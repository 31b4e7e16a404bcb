"""Means and covariances of a stored posterior in balls, from the definition in `gpcert.posterior`.

    m_c(x) = mean_c + k_c(x)^T weights_c,   S_ce(x) = [c = e] k_c(x, x) - k_c(x)^T precision_ce k_e(x)

for one latent (weights (n,)) or C, with one kernel or one each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb, arb_mat

from gpcert.kernels import Kernel
from gpcert.posterior import Posterior
from judge.column import Column, form, product
from judge.decide import Number, ball
from judge.kernels import covariance

Point = np.ndarray | Sequence[Number]


class Latents:
    """The latents of a posterior at points (d,) of doubles, fractions or balls."""

    def __init__(self, post: Posterior) -> None:
        self.count = 1 if post.weights.ndim == 1 else post.weights.shape[1]
        self.correlated = post.precision.ndim == 4
        self._centres = [[arb(v) for v in row] for row in post.centres.tolist()]
        self._kernels = post.kernel if isinstance(post.kernel, tuple) else (post.kernel,) * self.count
        self._origin = [arb(0)] * post.centres.shape[1]
        self._mean = [arb(float(v)) for v in np.broadcast_to(post.mean, (self.count,))]
        self._weights = [_row(w) for w in np.atleast_2d(post.weights.T)]
        n = len(self._centres)
        blocks = post.precision.reshape(-1, n, n)
        self._blocks = [arb_mat(n, n, [arb(v) for v in block.ravel().tolist()]) for block in blocks]

    def one(self, x: Point, c: int) -> tuple[arb, arb]:
        """m_c(x) and S_cc(x), unclipped."""
        k = self._column(x, self._kernels[c])
        return self._mean_of(c, k), self._entry(c, c, k, k)

    def all(self, x: Point) -> tuple[list[arb], list[list[arb]]]:
        """m(x) (C,) and S(x) (C, C), unclipped."""
        k, C = self._columns(x), range(self.count)
        upper = {(c, e): self._entry(c, e, k[c], k[e]) for c in C for e in C if c <= e}
        return [self._mean_of(c, k[c]) for c in C], [[upper[min(c, e), max(c, e)] for e in C] for c in C]

    def _columns(self, x: Point) -> list[Column]:
        if all(kernel is self._kernels[0] for kernel in self._kernels):
            return [self._column(x, self._kernels[0])] * self.count
        return [self._column(x, kernel) for kernel in self._kernels]

    def _column(self, x: Point, kernel: Kernel) -> Column:
        return Column(kernel, self._centres, [ball(v) for v in x])

    def _mean_of(self, c: int, k: Column) -> arb:
        return self._mean[c] + product(self._weights[c], k)

    def _entry(self, c: int, e: int, left: Column, right: Column) -> arb:
        if c != e and not self.correlated:
            return arb(0)
        block = self._blocks[c * self.count + e if self.correlated else c]
        return (covariance(self._kernels[c], self._origin) if c == e else arb(0)) - form(left, block, right)


def _row(values: np.ndarray) -> arb_mat:
    return arb_mat(1, len(values), [arb(v) for v in values.tolist()])

"""E softmax of any Gaussian latents by a tensor trapezoidal rule in floating point, with a proved error.

f = m + B z, z standard normal in r dimensions (B (C, r), so cov = B B^T up to common shifts of all latents).

**Truncation.** Let z_k have the imaginary part b and D_k = max_j B_jk - min_j B_jk, b D_k < pi. Up to a
common factor the numbers e^(f_j) lie in a cone of opening b D_k; projected on its bisector |sum_j e^(f_j)| >=
cos(b D_k / 2) sum_j |e^(f_j)|, so |softmax_c(f)| <= softmax_c(Re f) / cos(b D_k / 2). With |phi(x + ib)| =
e^(b^2/2) phi(x) the trapezoidal rule along z_k has the relative error e_k = 2 e^(b^2/2) / cos(b D_k / 2) /
(e^(2 pi b / h) - 1) for all real values of the other coordinates; the integral over z_k is again positive and
obeys the same bound in the next coordinate. Together prod (1 + e_k) - 1, relatively. Nodes beyond T_k, the
last one, are left out: softmax <= 1 and phi decreases, so they are worth at most sum_k 2 Phi(-T_k).

**Rounding.** f_j is off by at most e_f = (r + 3) u (|m_j| + sum_k |B_jk| T_k), which moves a probability by
at most e_f / 2 (its gradient has the absolute sum 2 p (1 - p)); exp, sum and quotient by (C + 12) u
relatively; weights by (T_k^2 + 12) u; the sum of n positive terms by n u along every axis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from judge.doubles import UNIT

_BLOCK = 2**17


class Axis(NamedTuple):
    """Step, number of nodes on each side, and e_k + 2 Phi(-T_k)."""

    step: float
    count: int
    error: float

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights."""
        z = self.step * np.arange(-self.count, self.count + 1)
        return z, self.step / math.sqrt(2.0 * math.pi) * np.exp(-0.5 * z * z)


def axis(spread: float, error: float) -> Axis:
    """The rule of an axis with D_k = spread for a wanted error; nodes run from -count to count."""
    digits = math.log(8.0 / error)
    b = min(math.sqrt(2.0 * digits), 0.93 * math.pi / max(spread, 1e-9))
    opening = math.cos(0.5 * b * spread)
    h = 2.0 * math.pi * b / (digits + 0.5 * b * b - math.log(opening))
    count = math.ceil(math.sqrt(2.0 * math.log(1.0 / error)) / h)
    strip = 2.0 * math.exp(0.5 * b * b) / opening / math.expm1(2.0 * math.pi * b / h)
    return Axis(h, count, 1.001 * strip + 1.001 * math.erfc(h * count / math.sqrt(2.0)))


def tensor(mean: np.ndarray, B: np.ndarray, axes: list[Axis]) -> tuple[np.ndarray, float]:
    """E softmax (C,) for f = mean + B z, B (C, r), r >= 1, and a bound of the error of every entry."""
    f, w = mean[:, None], np.ones(1)
    for k in range(1, len(axes)):
        z, weights = axes[k].nodes()
        f = (f[:, :, None] + np.multiply.outer(B[:, k], z)[:, None, :]).reshape(len(mean), -1)
        w = np.multiply.outer(w, weights).ravel()
    total = np.zeros(len(mean))
    for z, weight in zip(*axes[0].nodes(), strict=True):
        for start in range(0, len(w), _BLOCK):
            e = f[:, start : start + _BLOCK] + (B[:, 0] * z)[:, None]
            e -= e.max(axis=0)
            np.exp(e, out=e)
            total += weight * (e @ (w[start : start + _BLOCK] / e.sum(axis=0)))
    ends = np.array([a.step * a.count for a in axes])
    moved = (len(axes) + 3) * UNIT * float((np.abs(mean) + np.abs(B) @ ends).max())
    terms = 2 * axes[0].count + 1 + len(w) // _BLOCK + min(_BLOCK, len(w))
    rounding = (terms + len(mean) + 12 + float(np.sum(ends**2 + 12))) * UNIT + moved
    return total, 1.01 * (math.prod(1.0 + a.error for a in axes) - 1.0 + rounding)

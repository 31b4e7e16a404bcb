"""Every kernel of the package in balls, written from its formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb

from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, Product, RationalQuadratic, Sum

_TWICE_NU = {Matern12: 1, Matern32: 3, Matern52: 5}


def covariance(kernel: Kernel, difference: Sequence[arb]) -> arb:
    """k(x, x') for x - x' = difference (d,), in balls."""
    if isinstance(kernel, Sum):
        return sum((covariance(part, difference) for part in kernel.parts), arb(0))
    if isinstance(kernel, Product):
        return math.prod((covariance(part, difference) for part in kernel.parts), start=arb(1))
    lengthscale = np.broadcast_to(kernel.lengthscale, (len(difference),)).tolist()
    squares = ((v / arb(l)) ** 2 for v, l in zip(difference, lengthscale, strict=True))
    square = sum(squares, arb(0)).nonnegative_part()
    return arb(float(kernel.variance)) * _decreasing(kernel, square)


def _decreasing(kernel: Kernel, square: arb) -> arb:
    """The kernel of variance 1 at a squared scaled distance; of an interval its two ends, as it decreases."""
    if square.rel_accuracy_bits() > 20 or square == 0:
        return _shape(kernel, square)
    return _shape(kernel, square.lower()).union(_shape(kernel, square.upper()))


def _shape(kernel: Kernel, square: arb) -> arb:
    if isinstance(kernel, RBF):
        return (-square / 2).exp()
    if isinstance(kernel, RationalQuadratic):  # by log1p: alpha of any size
        alpha = arb(kernel.alpha)
        return (-alpha * (square / (2 * alpha)).log1p()).exp()
    nu2 = _TWICE_NU[type(kernel)]
    s = (nu2 * square.nonnegative_part()).sqrt()
    return {1: arb(1), 3: 1 + s, 5: 1 + s + s * s / 3}[nu2] * (-s).exp()

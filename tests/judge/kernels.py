"""Every kernel of the package in balls, or as power series along a line, written from its formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb, arb_series

from gpcert.kernels import RBF, Kernel, Matern12, Matern32, Matern52, Product, RationalQuadratic, Sum

_TWICE_NU = {Matern12: 1, Matern32: 3, Matern52: 5}


def covariance(kernel: Kernel, difference: Sequence[arb | arb_series]) -> arb | arb_series:
    """k(x, x') for x - x' = difference (d,), in balls; with a power series in one place, a power series."""
    if isinstance(kernel, Sum):
        return sum((covariance(part, difference) for part in kernel.parts), arb(0))
    if isinstance(kernel, Product):
        return math.prod((covariance(part, difference) for part in kernel.parts), start=arb(1))
    lengthscale = np.broadcast_to(kernel.lengthscale, (len(difference),)).tolist()
    steps = (v / arb(l) for v, l in zip(difference, lengthscale, strict=True))
    square = sum((v * v for v in steps), arb(0))
    variance = arb(float(kernel.variance))
    if isinstance(square, arb_series):
        return variance * _shape(kernel, square)
    square = square.nonnegative_part()
    if square == 0 or square.rel_accuracy_bits() > 20:
        return variance * _shape(kernel, square)
    # Over an interval the two ends, because every kernel decreases with the distance.
    return variance * _shape(kernel, square.lower().nonnegative_part()).union(_shape(kernel, square.upper()))


def _shape(kernel: Kernel, square: arb | arb_series) -> arb | arb_series:
    """The kernel of variance 1 at a squared scaled distance."""
    if isinstance(kernel, RBF):
        return (-square / 2).exp()
    if isinstance(kernel, RationalQuadratic):  # by log1p: alpha of any size
        alpha = arb(kernel.alpha)
        part = square / (2 * alpha)
        return (-alpha * (part.log1p() if isinstance(part, arb) else (1 + part).log())).exp()
    nu2 = _TWICE_NU[type(kernel)]
    s = (nu2 * square).sqrt()
    return {1: arb(1), 3: 1 + s, 5: 1 + s + s * s / 3}[nu2] * (-s).exp()

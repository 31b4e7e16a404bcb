"""mu / sqrt(c + S) in single precision, for local searches: any point they find is sound.

Displacements from one point of the region are small, so exp(a_i - r) of them loses nothing in float32,
whatever the units of the data; a product with the precision then costs a quarter of what it costs in float64,
and the kernels a tenth (one product with the centres instead of differences).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import ssymv

from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.validation import Float

#: Covariances below this share of the variance are left out.
_NOTHING = 1e-15


class Nearby:
    """The function around `middle` (d,), raw units; c = `noise`."""

    def __init__(self, slice_: Slice, middle: Float, noise: float) -> None:
        self._v, self._k = slice_.single(middle)
        self._weights = slice_.weights.astype(np.float32)
        self._slice, self._middle, self._noise = slice_, middle, noise

    def __call__(self, x: Float) -> tuple[float, Float]:
        """Value and gradient in raw units at x (d,)."""
        slice_, model = self._slice, self._slice.model
        d = ((x - self._middle) / slice_.lengthscale).astype(np.float32)
        k = self._k * np.exp(self._v @ d - 0.5 * (d @ d))
        k[k < _NOTHING * model.variance] = 0.0  # products with subnormal numbers take many times as long
        r = ssymv(1.0, model.single, k)
        mu = slice_.mean + float(self._weights @ k)
        c = self._noise + max(model.prior - float(k @ r), 0.0)
        root = math.sqrt(c)
        slopes = k * (self._weights / np.float32(root) + np.float32(mu / (c * root)) * r)
        return mu / root, (slopes @ self._v - slopes.sum() * d) / slice_.lengthscale

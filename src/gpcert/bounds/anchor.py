"""E softmax and its gradient at one mean and covariance, with proved errors: where tangents are anchored.

Two rules: three correlated classes by the tensor trapezoid rule; otherwise Gumbel integrals of independent
latents, for correlated ones at the nearby covariance diag(d) (docs/maths-multiclass.md, section 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.gumbel import gumbel_derivatives, split_covariance
from gpcert.likelihoods.nodes import derivatives, tensor_average
from gpcert.validation import Float

__all__ = ["Anchor", "anchor_at"]

#: Products of three probabilities lose at most 1/cos^2(0.93 pi/2) = 83 against one (A1).
_PRODUCTS = 100.0
#: Second derivatives of p_c are sums of at most six such products.
_TERMS = 6.0


class Anchor(NamedTuple):
    """Probabilities and derivatives at (mean, covariance); `covariance` (C, C) has softmax's values.

    `first[c, j]` = dF_c/dm_j, `second[c]` = the symmetric dF_c/dSigma; every entry to `error`.
    """

    mean: Float
    covariance: Float
    p: Float  #: (C,)
    first: Float  #: (C, C)
    second: Float  #: (C, C, C)
    error: float


def anchor_at(mean: Float, covariance: Float, correlated: bool) -> Anchor | None:
    """The anchor for a computed mean (C,) and covariance (C, C); None where no rule applies."""
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return None
    if correlated and len(mean) == 3:
        if not np.linalg.eigvalsh(covariance)[0] > 0:
            return None
        average = tensor_average(mean, covariance)
        first, hessian = derivatives(average)
        error = _TERMS * _PRODUCTS * average.error + _rounding(mean, covariance)
        return Anchor(mean, covariance, average.weights @ average.p, first, 0.5 * hessian, error)
    d = split_covariance(covariance)[0] if correlated else np.diagonal(covariance)
    if not (d > 0).all():
        return None
    p, first, second, error = gumbel_derivatives(mean, d)
    base = np.diag(d)
    return Anchor(mean, base, p, first, 0.5 * second, error + _rounding(mean, base))


def _rounding(mean: Float, covariance: Float) -> float:
    """docs/likelihoods.md#softmax, Inputs: forming differences of means and covariances."""
    C, size = len(mean), float(np.abs(covariance).max())
    return float(2.0**-53 * C * (100 + 20 * np.sqrt(size) + 100 * C * size))

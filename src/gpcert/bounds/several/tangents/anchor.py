"""E softmax and its gradient at one mean and covariance, with proved errors: where tangents are anchored.

Two rules: three correlated classes by the tensor trapezoid rule; otherwise Gumbel integrals, averaged over
nodes where latents are correlated (docs/maths/multiclass.md, section 3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.integrals.correlated import correlated_rules
from gpcert.likelihoods.integrals.gumbel import gumbel_derivatives
from gpcert.likelihoods.integrals.nodes import derivatives, tensor_average
from gpcert.validation import Float

#: Distance of the rule for four and more correlated classes: a search does not need the predictor's accuracy.
ACCURACY = 3e-5

#: Products of three probabilities lose at most 1/cos^2(0.93 pi/2) = 83 against one (A1).
_PRODUCTS = 100.0
#: Second derivatives of p_c are sums of at most six such products.
_TERMS = 6.0


class Anchor(NamedTuple):
    """Probabilities and derivatives at (mean, covariance).

    `first[c, j]` = dF_c/dm_j, `second[c]` = the symmetric dF_c/dSigma; p[c] to `error[c]`. Derivatives over
    p[c]: every entry to about `entries`/p[c], and any combination that is at most 1 times p_c everywhere to
    `joint[c]` (A1).
    """

    mean: Float
    covariance: Float
    p: Float  #: (C,)
    first: Float  #: (C, C)
    second: Float  #: (C, C, C)
    error: Float  #: (C,)
    entries: float
    joint: Float  #: (C,)


def anchor_at(mean: Float, covariance: Float, correlated: bool, accuracy: float = ACCURACY) -> Anchor | None:
    """The anchor for a computed mean (C,) and covariance (C, C); None where no rule applies."""
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return None
    rounding, exact = _rounding(mean, covariance), np.zeros(len(mean))
    if correlated and len(mean) == 2:  # independent ones with the same difference have the same softmax
        half = 0.5 * (covariance[0, 0] - 2.0 * covariance[0, 1] + covariance[1, 1])
        covariance, correlated = half * np.eye(2), False
    if correlated and len(mean) == 3:
        if not np.linalg.eigvalsh(covariance)[0] > 0:
            return None
        average = tensor_average(mean, covariance)
        first, hessian = derivatives(average)
        error = _TERMS * _PRODUCTS * average.error + rounding
        p = average.weights @ average.p
        return Anchor(mean, covariance, p, first, 0.5 * hessian, exact + error, error, exact)
    if not correlated:
        d = np.diagonal(covariance)
        if not (d > 0).all():
            return None
        p, first, second, error = gumbel_derivatives(mean, d)
        error += rounding
        return Anchor(mean, np.diag(d), p, first, 0.5 * second, exact + error, error, exact)
    rule = correlated_rules(covariance[None], accuracy)[0]
    if rule is None:
        return None
    p, first, second, error = rule.derivatives(mean)
    p = np.clip(p, 1e-300, 1.0)
    error += rounding
    apart = rule.apart(p)
    joint = 2.0 * rule.distance * np.sqrt(p + apart + error) / p
    return Anchor(mean, covariance, p, first, 0.5 * second, error + apart, error, joint)


def _rounding(mean: Float, covariance: Float) -> float:
    """docs/maths/likelihoods.md#softmax, Inputs: forming differences of means and covariances."""
    C, size = len(mean), float(np.abs(covariance).max())
    return float(2.0**-53 * C * (100 + 20 * np.sqrt(size) + 100 * C * size))

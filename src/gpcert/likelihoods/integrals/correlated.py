"""E softmax for four and more correlated latents: an independent part, and few nodes for the rest.

Sigma = D + rest on differences of latents; the rest moves the means of independent latents, over a mixture
whose distance from the Gaussian is known (docs/maths/likelihoods.md, H11, H12).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.integrals.gumbel import (
    Cloud,
    GumbelIntegral,
    gumbel_derivatives,
    gumbel_integral,
    unmoved,
)
from gpcert.likelihoods.integrals.independent_part import centred, independent_part, split
from gpcert.likelihoods.integrals.mixtures import mixture
from gpcert.likelihoods.integrals.nodes import axis_rule
from gpcert.validation import Float

#: Distance aimed at: twice the error of a probability near 1/2.
TARGET = 2e-5
#: Nodes at most: beyond, the distance is what they reach, and the error says so.
MOST = 2000


#: Beyond this variance, relative to the independent part, an axis has a trapezoid rule of its own.
_WIDE = 20.0
_STRIP, _REACH = 1e-9, 6.2  # its relative error and range
#: Products of three probabilities lose at most 1/cos^2(0.93 pi/2) = 83 on the strip, and second derivatives
#: are sums of at most six (docs/maths/multiclass.md, A1).
_PRODUCTS = 600.0
#: A change of covariance moves second derivatives by fourth ones: below 0.875, the second below 0.1.
_HIGHER = 10.0
#: Added to every variance where a difference of latents is all but certain; what that can change, per class.
_RAISED, _PER_CLASS = 1e-5, 0.05e-5


class CorrelatedRule(NamedTuple):
    """Independent variances d (C,), shifts of the mean, and how far the two together are from N(m, Sigma).

    For 0 <= g <= 1 the rule's average of g is within `distance` sqrt(E g (1 - E g)) + `defect` of E g;
    softmax probabilities are within another `strip`.
    """

    d: Float
    cloud: Cloud
    distance: float
    defect: float
    strip: float

    def integral(self, mean: Float) -> GumbelIntegral:
        """E softmax (C,) at a mean (C,), and its error."""
        p, error = gumbel_integral(mean, self.d, self.cloud)
        return GumbelIntegral(p, error + self.apart(p) + self.defect + self.strip)

    def derivatives(self, mean: Float) -> tuple[Float, Float, Float, float]:
        """As `gumbel_derivatives`; the error leaves out what `distance` stands for."""
        p, first, second, error = gumbel_derivatives(mean, self.d, self.cloud)
        return p, first, second, error + _HIGHER * self.defect + _PRODUCTS * self.strip

    def apart(self, p: Float) -> Float:
        """Bounds distance * sqrt(F (1 - F)) for the exact F, from the computed p (C,)."""
        return self.distance * (np.sqrt(p * (1.0 - p)) + self.distance)


def correlated_rules(cov: Float, target: float = TARGET, most: int = MOST) -> list[CorrelatedRule | None]:
    """A rule for each covariance (n, C, C); None where it would need too many nodes."""
    C = cov.shape[1]
    sigma = centred(cov)
    values = np.linalg.eigvalsh(sigma + np.abs(sigma).max(axis=(1, 2), keepdims=True))  # 1 gets a large one
    thin = (values[:, 0] < _RAISED) & (values[:, 0] <= 0.01 * values[:, -2])
    cost = np.where(thin, _PER_CLASS * C, 0.0)
    nothing = thin & (0.1 * np.abs(sigma).sum(axis=(1, 2)) <= cost)  # cheaper to leave out altogether
    sigma[thin] += _RAISED * np.eye(C)
    rules: list[CorrelatedRule | None] = []
    for i, d in enumerate(independent_part(sigma)):
        if nothing[i]:
            certain = float(0.1 * np.abs(centred(cov[i])).sum())
            rules.append(CorrelatedRule(np.zeros(C), unmoved(C), 0.0, certain, 0.0))
        else:
            rules.append(_rule(sigma[i], d, target, most, float(cost[i])) if (d > 0).all() else None)
    return rules


def _rule(cov: Float, d: Float, target: float, most: int, raised: float) -> CorrelatedRule | None:
    parts = split(cov, d)
    shifts, weights, strip = np.zeros((1, len(d))), np.ones(1), 0.0
    wide = parts.variances > _WIDE
    for i in np.flatnonzero(wide):
        column = parts.directions[:, i] * np.sqrt(parts.variances[i])
        z, w, error = axis_rule(float(np.ptp(column)), _STRIP, _REACH)
        strip = strip + error + strip * error
        if len(z) * len(weights) > most or not strip < 0.1:
            return None
        shifts = (shifts[:, None] + np.multiply.outer(z, column)).reshape(-1, len(d))
        weights = np.multiply.outer(weights, w).ravel()
    nodes, shares, distance = mixture(parts.variances[~wide], target, max(most // len(weights), 1))
    if not distance < 1.0:
        return None
    shifts = (shifts[:, None] + nodes @ parts.directions[:, ~wide].T).reshape(-1, len(d))
    weights = np.multiply.outer(weights / weights.sum(), shares).ravel()
    # Weights divided by their sum, which is 1 up to the same error: twice, and a little.
    return CorrelatedRule(d, Cloud(shifts, weights), distance, parts.defect + raised, 3.0 * strip)

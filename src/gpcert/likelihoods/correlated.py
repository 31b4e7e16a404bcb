"""E softmax for four and more correlated latents: an independent part, and few nodes for the rest.

Sigma = D + rest on differences of latents; the rest moves the means of independent latents, over a mixture
whose distance from the Gaussian is known (docs/likelihoods.md, (11), (12)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.likelihoods.gumbel import Cloud, GumbelIntegral, gumbel_derivatives, gumbel_integral
from gpcert.likelihoods.independent_part import centred, independent_part, split
from gpcert.likelihoods.mixtures import mixture
from gpcert.validation import Float

__all__ = ["CorrelatedRule", "correlated_rules"]

#: Distance aimed at: twice the error of a probability near 1/2.
TARGET = 2e-5
#: Nodes at most: beyond, the distance is what they reach, and the error says so.
MOST = 2000


class CorrelatedRule(NamedTuple):
    """Independent variances d (C,), shifts of the mean, and how far the two together are from N(m, Sigma).

    For 0 <= g <= 1 the rule's average of g is within `distance` sqrt(E g (1 - E g)) + `defect` of E g.
    """

    d: Float
    cloud: Cloud
    distance: float
    defect: float

    def integral(self, mean: Float) -> GumbelIntegral:
        """E softmax (C,) at a mean (C,), and its error."""
        p, error = gumbel_integral(mean, self.d, self.cloud)
        return GumbelIntegral(p, error + self.spread(p) + self.defect)

    def derivatives(self, mean: Float) -> tuple[Float, Float, Float, float]:
        """As `gumbel_derivatives`; the error is of the integrals only."""
        return gumbel_derivatives(mean, self.d, self.cloud)

    def spread(self, p: Float) -> Float:
        """Bounds distance * sqrt(F (1 - F)) for the exact F, from the computed p (C,)."""
        return self.distance * (np.sqrt(p * (1.0 - p)) + self.distance)


def correlated_rules(cov: Float, target: float = TARGET, most: int = MOST) -> list[CorrelatedRule | None]:
    """A rule for each covariance (n, C, C); None where a difference of latents has (nearly) no variance."""
    sigma = centred(cov)
    return [
        _rule(S, d, target, most) if (d > 0).all() else None
        for S, d in zip(sigma, independent_part(sigma), strict=True)
    ]


def _rule(cov: Float, d: Float, target: float, most: int) -> CorrelatedRule | None:
    parts = split(cov, d)
    nodes, weights, distance = mixture(parts.variances, target, most)
    if not distance < 1.0:
        return None
    return CorrelatedRule(d, Cloud(nodes @ parts.directions.T, weights), distance, parts.defect)

"""Mean and variance of a posterior from covariances known to within bounds (docs/maths/bounds.md, E3, E4).

True for all finite doubles: underflow has its absolute terms (TINY), and whatever overflows is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Restricted:
    """A model on its d moving features. `sign` = -1 bounds the other class: weights and mean change sign;
    with 0 there is no mean.
    """

    model: Model  #: of all features
    points: Float  #: centres on the moving features (n, d), raw units
    lengthscale: Float  #: (d,)
    sign: float

    #: Relative error of the stored prior variance: none for a single kernel.
    prior_blur: ClassVar[float] = 0.0

    @property
    def weights(self) -> Float:
        """alpha of the class whose probability is bounded below (n,)."""
        return self.sign * self.model.weights

    @property
    def mean(self) -> float:
        """The prior mean of that class's latent."""
        return self.sign * self.model.mean

    @property
    def prior(self) -> Interval:
        """The prior variance, enclosed, with what the variance of a functional is off by elsewhere (M3)."""
        slack = self.prior_blur * abs(self.model.prior) + TINY if self.prior_blur else 0.0
        slack += self.model.prior_error
        return self.model.prior - slack, self.model.prior + slack

    @property
    def tiny(self) -> float:
        """E1: added to a computed k_i, it covers underflow: the error of k is then relative to the sum."""
        return float(2.0**-960 * (1.0 + self.model.variance))

    def flipped(self) -> Self:
        """The same slice for the other class, sharing every array."""
        return replace(self, sign=-self.sign)


@np.errstate(all="ignore")  # overflow and NaN end as unknown
def latent_at(slice_: Restricted, k: Float, relative: Float, r: Float) -> tuple[Interval, Interval]:
    """E3: mean and (unclipped) variance for k (n,) of relative error `relative` (n,), r = precision @ k."""
    model, weights = slice_.model, slice_.weights
    unit = relative + gamma(len(k) + 20)
    bound = k + slice_.tiny
    mu = slice_.mean + float(weights @ k)
    error = sum_up(np.abs(weights) * bound * unit) * 1.01
    error += 4 * UNIT * (abs(mu) + abs(slice_.mean))
    low, high = slice_.prior
    S = model.prior - float(k @ r)
    roots = np.sqrt(model.row_weight) * bound
    error_S = 2.02 * sqrt_up(sum_up((roots * unit) ** 2)) * sqrt_up(sum_up(roots * roots))
    error_S += (high - low) + 8 * UNIT * (abs(model.prior) + abs(S)) + TINY
    return _around(mu, error), _around(S, error_S)


def _around(value: float, error: float) -> Interval:
    """Everything where a partial sum may have overflowed: it may have overflowed to the wrong side."""
    if not math.isfinite(value + error):
        return -math.inf, math.inf
    return value - error, value + error


@np.errstate(all="ignore")
def mean_between(slice_: Restricted, small: Float, large: Float) -> Interval:
    """E4: the mean if small <= k <= large (n,)."""
    weights = slice_.weights
    ends = []
    for direction, (first, second) in ((-1.0, (small, large)), (1.0, (large, small))):
        terms = np.where(weights > 0, weights * first, weights * second)
        error = gamma(len(terms) + 8) * float(np.abs(terms).sum()) * 1.01 + 4 * UNIT * abs(slice_.mean) + TINY
        end = slice_.mean + float(terms.sum()) + direction * error
        ends.append(end if math.isfinite(end) else direction * math.inf)
    return ends[0], ends[1]

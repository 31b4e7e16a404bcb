"""By how much the predictor raises variances that would be negative, over one box (M4).

The stored precision may make a variance s2 - k^T R_cc k negative, by rounding, or because it belongs to no
posterior; the predictor then takes 0. The theorems about softmax speak of the matrix as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.several.tangents.expansion import ClassExpansion, Latents
from gpcert.bounds.several.tangents.functionals import View
from gpcert.bounds.several.tangents.separate import SeparateExpansion
from gpcert.rounding import sum_up
from gpcert.validation import Float

#: A lift that costs a probability no more than this is counted, and no box asked.
_NEGLIGIBLE = 1e-7
#: sup |p''| / 2 = 1 / (12 sqrt 3) < 0.04812.
_COST = 0.0482


class Variances(NamedTuple):
    """The variances of the latents on one box; the predictor's are larger by at most `most`."""

    low: Float  #: (C,): the least variances
    reach: Float  #: (C,): how far each may be from its value at the reference

    def most(self, lift: float) -> Float:
        """t (C,), by the box and by the lift that holds everywhere."""
        return np.minimum(np.maximum(-self.low, 0.0), lift)

    @property
    def raising(self) -> Float:
        """What added to the variances (C,) makes them vary little relative to themselves; 0 if they do.

        Any amount is sound. It costs in proportion, and what remains of a variation relative to its size by
        its square: this minimises the sum, roughly.
        """
        C, reach = len(self.low), float(self.reach.max())
        if (self.low > 2.0 * (C - 1) * self.reach).all() or not 0.0 < reach < np.inf:
            return np.zeros(C)
        share = max(2.0, ((C - 1) ** 2 / (_COST * C * reach)) ** (1.0 / 3.0))
        return np.asarray(np.maximum(share * self.reach - self.low, 0.0))


def probability_cost(raised: Float) -> float:
    """M4: by how much 1 - sum_i beta_i p_i moves if variances change by at most `raised` (C,)."""
    return _COST * sum_up(raised)


def most_clipped(model: ClassModel, variances: Callable[[], Variances]) -> Float:
    """`Variances.most`, without asking for them where no variance falls much below 0 anywhere."""
    everywhere = np.full(model.classes, model.lift)
    if probability_cost(everywhere) <= _NEGLIGIBLE:
        return everywhere
    return variances().most(model.lift)


def variances_seen(model: ClassModel, view: View, latents: Latents) -> Variances:
    """M3: each variance by its own range, seen from the reference where the latents are `latents`."""
    here = np.diagonal(latents.covariance)
    ranges = np.array([view.range(np.diag(unit), float(here @ unit)) for unit in np.eye(model.classes)])
    low = here + ranges[:, 0] - latents.covariance_error
    return Variances(np.where(np.isnan(low), -np.inf, low), np.abs(ranges).max(axis=1))


def variances_over(x: ClassExpansion | SeparateExpansion) -> Variances:
    """Y1: each variance at the reference, less all it can lose."""
    reach = np.array([x.covariance_reach(np.diag(unit)) for unit in np.eye(x.model.classes)])
    low = np.diagonal(x.latents.covariance) - (reach + x.latents.covariance_error) * (1.0 + 1e-9)
    return Variances(np.where(np.isnan(low), -np.inf, low), reach)

"""E softmax and its gradient at one mean and covariance, with proved errors: where tangents are anchored.

Two rules: three correlated classes by the tensor trapezoid rule; otherwise Gumbel integrals, averaged over
nodes where latents are correlated (docs/maths/multiclass.md, section 3).
Below, several displacements at once over a box, each linear plus a form plus a rest (T2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.forms import Loss
from gpcert.likelihoods.integrals.correlated import correlated_rules
from gpcert.likelihoods.integrals.gumbel import gumbel_derivatives
from gpcert.likelihoods.integrals.nodes import derivatives, tensor_average
from gpcert.rounding import TINY, symmetric
from gpcert.validation import Float

SLACK = 1.0 + 1e-9
#: Best of 1, 2, 3, 5 on ten digits, all pixels by 1/16.
_SHARE = 2.0


@dataclass(frozen=True, eq=False)
class Shifts:
    """Displacements constant + gradient.d + d^T hessian d / 2 up to `rest` each, and up to a vector of
    Euclidean norm `joint` together.
    """

    reach: Float  #: the largest |d_j| (d,)
    constant: Float  #: (N,)
    gradient: Float  #: (N, d)
    hessian: Float  #: (N, d, d)
    rest: Float  #: (N,)
    joint: float

    @cached_property
    def slopes(self) -> Float:
        """sup |constant + gradient.d| (N,)."""
        return np.asarray(np.abs(self.constant) + np.abs(self.gradient) @ self.reach)

    @cached_property
    def _scaled(self) -> Float:
        """The Hessians in units of the box (N, d, d), where every coordinate is at most 1."""
        unit = np.maximum(self.reach, TINY)
        return np.asarray(self.hessian * np.outer(unit, unit))

    @cached_property
    def bends(self) -> Float:
        """sup |d^T hessian d| / 2 (N,): by absolute values, or d times the largest eigenvalue."""
        sums = np.abs(self._scaled).sum(axis=2).sum(axis=1)  # row by row: no sum of more than d terms
        if not np.isfinite(sums).all():
            return np.full(len(sums), math.inf)
        values = np.abs(np.linalg.eigvalsh(self._scaled)).max(axis=1, initial=0.0)
        slack = 1e-9 * sums + TINY
        return np.asarray(0.5 * np.minimum(sums, len(self.reach) * (values + slack)) * SLACK)

    def largest(self) -> float:
        """sup of the Euclidean norm."""
        bent = self._bent(np.ones(len(self.constant)))
        curved = 0.5 * math.sqrt(len(self.reach) * float(np.abs(bent).sum(axis=1).sum())) * SLACK
        return float(np.linalg.norm(self.slopes)) + curved + float(np.linalg.norm(self.rest)) + self.joint

    def _bent(self, weight: Float) -> Float:
        """Q (d, d) with sum_n weight_n (d^T hessian_n d)^2 <= |u|^2 u^T Q u, u = d over the reach.

        (u^T H u)^2 <= |u|^2 |H u|^2.
        """
        scaled = self._scaled * np.sqrt(weight)[:, None, None]
        return np.asarray(np.einsum("nij,njk->ik", scaled, scaled, optimize=True))

    def square(self, weight: Float, share: float = _SHARE) -> Loss:
        """A bound of sum_n weight_n coordinate_n^2, with (x + y)^2 <= (1 + t) x^2 + (1 + 1/t) y^2.

        t is the quotient of the sizes of curved and linear part, times `share`: 1 for the supremum; where a
        tangent decides on the place, the linear part is smaller there.
        """
        d = len(self.reach)
        bent = (0.25 * d) * self._bent(weight)
        linear = math.sqrt(float(weight @ self.slopes**2))
        curved = math.sqrt(max(float(np.linalg.eigvalsh(symmetric(bent))[-1]) * d, 0.0))
        small = math.sqrt(float(weight @ self.rest**2)) + math.sqrt(float(weight.max())) * self.joint
        t = share * _ratio(curved + small, linear)
        u = _ratio(small, curved)
        constant = (1.0 + t) * float(weight @ self.constant**2) + (1.0 + 1.0 / t) * (1.0 + 1.0 / u) * small**2
        scaled = weight[:, None] * self.gradient
        matrix = (1.0 + t) * (self.gradient.T @ scaled)
        # It vanishes at the reference, as all the rest does: |u|^2 <= d on the box.
        unit = np.maximum(self.reach, TINY)
        matrix += (1.0 + 1.0 / t) * (1.0 + u) * bent / np.outer(unit, unit)
        # The last term covers the rounding of these sums.
        return Loss(
            constant * SLACK + 1e-11 * (linear + float(np.sqrt(np.abs(bent).sum()))) ** 2,
            2.0 * (1.0 + t) * (self.constant @ scaled),
            matrix,
        )


def _ratio(x: float, y: float) -> float:
    """x / y kept inside the range of doubles; any positive number is sound."""
    return min(max(x / y, 1e-6), 1e6) if y > 0 else 1.0


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

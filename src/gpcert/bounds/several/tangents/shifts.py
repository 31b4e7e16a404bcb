"""Several displacements at once over a box, each linear plus a form plus a rest: suprema and squares (T2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.bounds.local.forms import Loss
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

"""Norms of which the tails of an expansion are made, for the functional a M + 2 tau (linear part of q)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.gaussian.expansion import Expansion
from gpcert.rounding import TINY, gamma, sum_up
from gpcert.validation import Float


class Norms(NamedTuple):
    """Quadratic forms (M, M), (M, q), (q, q) of which tails are made, with their error."""

    forms: tuple[float, float, float]
    sizes: tuple[float, float]  #: sum |alpha| amplitude, sum |R k| amplitude
    relative: float

    def form(self, a: float, tau: float) -> float:
        """The form of a M + 2 tau (linear part of q)."""
        f = self.forms
        return a * f[0] + 4.0 * tau * a * f[1] + 4.0 * tau * tau * f[2]

    def size(self, a: float, tau: float) -> float:
        """The size its error is relative to."""
        return a * self.sizes[0] + 2.0 * abs(tau) * self.sizes[1]


def quartic(e: Expansion, G2: Float, b: Float) -> Norms:
    """C4: forms of (M, linear part of q) with G o G o G o G; |G_ij| <= norm_i norm_j / span^2."""
    n, d = e.v.shape
    forms = b.T @ ((G2 * G2) @ b)
    power = e.norm**4 / max(e.span**4, TINY)
    sizes = np.abs(b) * power[:, None]
    unit = e.relative + gamma(2 * n + 8 * d + 160)
    drift = e.weighted(e.grown * power) * e.error_r
    relative = 2.0 * float(np.max(unit, initial=0.0)) + gamma(2 * n + 8 * d + 160)
    return Norms(
        _triple(forms), (sum_up(sizes[:, 0]), sum_up(sizes[:, 1]) + drift / min(relative, 1.0)), relative
    )


def _triple(forms: Float) -> tuple[float, float, float]:
    return float(forms[0, 0]), float(forms[0, 1]), float(forms[1, 1])

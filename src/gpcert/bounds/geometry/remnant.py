"""What a bound that fails leaves of a box (docs/maths/bounds.md, Q3 and Q4).

Its slopes say how fast the functional rises from the ends where the quadratic was smallest: at some distance
from them it cannot be negative any more. On what is left every remainder is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.domain import BoxDomain, Domain
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float


@dataclass(frozen=True, eq=False)
class Remnant(BoxDomain):
    """All d of the box with sum_j |slopes_j| delta_j <= room, delta_j the distance from low_j where
    slopes_j > 0, from high_j where it is < 0. Unlike other domains it need not hold 0.
    """

    slopes: Float  #: (d,)
    room: float

    def norm(self, metric: Float) -> float:
        """Q4: near is where delta is 0, far the other end; the best multiplier, as in a knapsack."""
        steep, low, high = np.abs(self.slopes), metric * self.low**2, metric * self.high**2
        near, far = np.where(self.slopes > 0, low, high), np.where(self.slopes > 0, high, low)
        near = np.where(steep > 0, near, np.maximum(near, far))
        gain, price = np.maximum(far - near, 0.0), steep * (self.high - self.low)
        rate = np.divide(gain, price, out=np.zeros_like(gain), where=price > 0)
        order = np.argsort(-rate)
        beyond = np.flatnonzero(np.cumsum(price[order]) > self.room)
        multiplier = float(rate[order[beyond[0]]]) if len(beyond) else 0.0
        total = multiplier * self.room + sum_up(near + np.maximum(gain - multiplier * price, 0.0))
        total += 32 * UNIT * (sum_up(near + np.maximum(near, far)) + sum_up(multiplier * price))
        return float(np.fmin(sqrt_up(total * (1.0 + 16 * UNIT) + TINY), super().norm(metric)))

    def support(self, rows: Float) -> Float:
        """At a corner per row, which may lie on the other side of 0."""
        sums = np.maximum(rows, 0.0) @ self.high + np.minimum(rows, 0.0) @ self.low
        return np.asarray(sums + 4.0 * gamma(2 * len(self.low) + 16) * self.absolute(rows) + TINY)

    def shortened(
        self, reference: Float, lengthscale: Float, lower: Float, upper: Float
    ) -> tuple[Float, Float]:
        """A box of raw units that contains its part of [lower, upper], seen from `reference`; all (d,)."""
        slack = 8 * UNIT * (np.abs(reference) + self.reach * lengthscale) + TINY
        lower = np.minimum(np.fmax(lower, reference + self.low * lengthscale - slack), upper)
        return lower, np.maximum(lower, np.fmin(upper, reference + self.high * lengthscale + slack))


def remnant(domain: Domain, value: float, slopes: Float | None) -> Remnant | None:
    """Q4: where on a box a functional may be negative that is at least value + sum_j |slopes_j| delta_j;
    None: anywhere, or nowhere.
    """
    if slopes is None or not isinstance(domain, BoxDomain) or not -np.inf < value < 0.0:
        return None
    if not np.isfinite(slopes).all():
        return None
    room = -value * (1.0 + 4 * UNIT)
    with np.errstate(all="ignore"):  # inf: no end
        far = room / np.abs(slopes) * (1.0 + 8 * UNIT)
    high = domain.low + far + 4 * UNIT * (np.abs(domain.low) + far) + TINY
    low = domain.high - far - 4 * UNIT * (np.abs(domain.high) + far) - TINY
    return Remnant(
        np.where(slopes < 0, np.fmax(domain.low, low), domain.low),
        np.where(slopes > 0, np.fmin(domain.high, high), domain.high),
        slopes,
        room,
    )

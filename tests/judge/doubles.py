"""From balls to doubles with a bound, for rules that are summed in floating point.

What is assumed of the machine, and swept in ball arithmetic by the tests of the judge: IEEE doubles; numpy's
exp to 4 units in the last place; scipy's ndtr to 1e-15 absolutely.
"""

from __future__ import annotations

import math

from flint import arb

UNIT = 2.0**-53
NDTR = 1e-15  #: the absolute error of scipy.special.ndtr


def upper(value: arb) -> float:
    """A double not below the ball; inf if there is none."""
    if not value.is_finite():
        return math.inf
    high = float(value.upper())
    return high if arb(high) >= value else math.nextafter(high, math.inf)


def nearest(value: arb) -> tuple[float, float]:
    """A double near the middle of the ball, and how far from it the ball reaches at most."""
    middle = float(value.mid()) if value.is_finite() else 0.0
    return (middle, upper(abs(value - arb(middle)))) if math.isfinite(middle) else (0.0, math.inf)


def around(value: float, error: float) -> arb:
    """The part of [value - error, value + error] in [0, 1] as a ball."""
    if not error < 1.0:
        return arb(0.5, 0.5)
    low, high = arb(value) - arb(error), arb(value) + arb(error)
    return low.max(arb(0)).min(arb(1)).union(high.min(arb(1)).max(arb(0)))

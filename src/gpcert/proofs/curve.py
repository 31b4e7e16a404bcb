"""The curve of a logistic level to a few units in the last place: where E sigma(N(m, S)) is p.

The search knows it to 4e-13, which is more than what its answers have to spare. Nothing here is certified: a
checker encloses the integral itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

from flint import arb, ctx

from gpcert.rounding import down, up

#: Variances beyond it need too many nodes.
_LARGEST = 10.0
#: Nodes reach so many standard deviations beyond where e^u puts its weight; the width of a strip in which all
#: is analytic, at most; how many powers of e the rule is right to; binary digits.
_FAR, _STRIP, _SMALL, _BITS = 12.0, 6.0, 60.0, 100
#: What a checker surely sees of a number, relative to it; and what the rule is surely right to.
_SEEN, _RIGHT = 1e-26, 1e-23


@lru_cache(maxsize=4096)
def sharpened(p: float, S: float, low: float, high: float) -> tuple[float, float]:
    """A narrower enclosure of m_p(S), of one of width about 1e-12; or that itself."""
    if not (0.0 < S <= _LARGEST and high - low < 1e-9):
        return low, high
    if p <= 0.5:
        return _narrower(p, S, low, high, p)
    low, high = _narrower(1.0 - p, S, -high, -low, 1.0)  # exact: p is not small
    return -high, -low


def _narrower(q: float, S: float, low: float, high: float, unit: float) -> tuple[float, float]:
    """Of a level up to 1/2; `unit`: the size of the number that a checker compares."""
    saved, ctx.prec = ctx.prec, _BITS
    try:
        m = 0.5 * (low + high)
        value, slope = _expected(m, S)
        m += float((arb(q) - value) / slope)
    finally:
        ctx.prec = saved
    room = max(2.0 * math.ulp(m), (_SEEN * unit + _RIGHT * q) / float(slope))
    return max(low, down(m - room)), min(high, up(m + room))


def _expected(m: float, S: float) -> tuple[arb, arb]:
    """E sigma and E sigma' by the trapezoid rule, whose error is e^(-2 pi y/h) with a strip of width y."""
    root = math.sqrt(S)
    y = min(0.5 * math.pi / root, _STRIP)
    h = 2.0 * math.pi * y / (_SMALL + 0.5 * y * y)
    last = math.ceil((_FAR + root) / h)
    value = slope = arb(0)
    weights, step = _weights(h, last), arb(S).sqrt() * h
    for n in range(-last, last + 1):
        share = 1 / (1 + (-(m + step * n)).exp())
        part = weights[abs(n)] * share
        value, slope = value + part, slope + part * (1 - share)
    return value, slope


@lru_cache(maxsize=64)
def _weights(h: float, last: int) -> list[arb]:
    scale = h / (2 * arb.pi()).sqrt()
    return [scale * (-((arb(h) * n) ** 2) / 2).exp() for n in range(last + 1)]

"""Lengths |s|_p of exact steps s > 0: compared, and rounded up, for every p and every magnitude.

Steps are rational numbers, and so are |s|_1, |s|_inf and the square of |s|_2. Other powers are balls
(python-flint), whose exponents have no range to leave: p = 1e6 or steps of 1e-300 lose nothing
(docs/maths/regions.md, B8).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # imported where it is used: a model is exported where there is no python-flint
    from flint import arb

#: Bits of the balls, until one decides.
_PRECISIONS = (64, 256, 1024)


def length_at_most(steps: Sequence[Fraction], norm: float, radius: float) -> bool:
    """True only if |steps|_norm <= radius; other p than 0, 1, 2, inf: False also within 2^-1000 of it."""
    limit = Fraction(radius)
    if norm == 0:
        return len(steps) <= limit
    if norm == math.inf or len(steps) <= 1:
        return all(step <= limit for step in steps)
    if norm in (1.0, 2.0):
        return bool(sum((step ** int(norm) for step in steps), Fraction(0)) <= limit ** int(norm))
    if max(steps) >= limit:  # there is another step beside it
        return False
    for bits in _PRECISIONS:
        with _precision(bits):
            total = _power_sum(steps, limit, norm)
        if total <= 1:
            return True
        if total > 1:
            return False
    return False


def length_up(steps: Sequence[Fraction], norm: float) -> float:
    """A double at least |steps|_norm, the next one up to a rounding; inf beyond the doubles."""
    if norm == 0:
        return float(len(steps))
    if norm == 1.0:
        return round_up(sum(steps, Fraction(0)))
    top = max(steps, default=Fraction(0))
    if norm == math.inf or len(steps) <= 1:
        return round_up(top)
    with _precision(_PRECISIONS[1]):
        ball = _ball(top) * _power_sum(steps, top, norm) ** (1 / _ball(Fraction(norm)))
        mantissa, exponent = ball.upper().man_exp()
    return round_up(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def _power_sum(steps: Sequence[Fraction], unit: Fraction, norm: float) -> arb:
    """sum (steps / unit)^norm."""
    exponent = _ball(Fraction(norm))
    return sum((_ball(step / unit) ** exponent for step in steps), _ball(Fraction(0)))


def _ball(value: Fraction) -> arb:
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


@contextmanager
def _precision(bits: int) -> Iterator[None]:
    """The context's precision for a while: it may be a user's own."""
    from flint import ctx

    saved, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = saved


def round_down(value: Fraction) -> float:
    """The largest double <= value; -inf below all."""
    try:
        nearest = float(value)
    except OverflowError:
        return -math.inf if value < 0 else sys.float_info.max
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > value else nearest


def round_up(value: Fraction) -> float:
    """The smallest double >= value; inf above all."""
    return -round_down(-value)


def add(x: Any, y: Any, down: bool, xp: Any = np) -> Any:
    """x + y rounded down or up, exactly: the error of the rounded sum is a double (Knuth's TwoSum).

    `xp`: the namespace of the arrays, numpy's or that of a device with the doubles of IEEE 754.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = x + y
        part = total - x
        error = (x - (total - part)) + (y - part)
    end = xp.full_like(total, -math.inf if down else math.inf)
    return xp.where(error < 0 if down else error > 0, xp.nextafter(total, end), total)

"""Bounds as text: rounded outward from their exact values, so that what is printed still holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

#: A number that is what it is: a double, or what follows from doubles without rounding.
Exact = float | Fraction


class Lower(float):
    """A proved lower bound: a double that format strings round down."""

    __slots__ = ()
    rounding = ROUND_FLOOR

    def __format__(self, spec: str) -> str:
        kind = spec[-1:] if spec[-1:] in tuple("eEfFgG%") else ""
        if not math.isfinite(self) or not (kind or "." in spec):  # as it is, every digit
            return super().__format__(spec)
        rest = spec.removesuffix(kind)
        rest = rest if "." in rest else f"{rest}.6"  # what a double has where nothing is said
        with localcontext(rounding=self.rounding):
            return format(Decimal(self), f"{rest}{kind or 'g'}")


class Upper(Lower):
    """A proved upper bound: a double that format strings round up."""

    __slots__ = ()
    rounding = ROUND_CEILING


def at_least(p: Exact, decimals: int = 3) -> str:
    """p to three decimals, rounded down: still a lower bound."""
    if p in (-math.inf, math.inf):
        return str(p)
    return _decimal(math.floor(Fraction(p) * 10**decimals), decimals)


def at_most(p: Exact, decimals: int = 3) -> str:
    """p to three decimals, rounded up: still an upper bound."""
    if p in (-math.inf, math.inf):
        return str(p)
    return _decimal(math.ceil(Fraction(p) * 10**decimals), decimals)


def between(lower: Exact, upper: Exact) -> str:
    """[lower, upper] to three decimals, rounded outward."""
    return f"[{at_least(lower)}, {at_most(upper)}]"


def percent_at_least(share: Fraction) -> str:
    """A lower bound of a share as a percentage."""
    return f"{at_least(100 * share, 1)} %"


def percent_at_most(share: Fraction) -> str:
    """An upper bound of a share as a percentage."""
    return f"{at_most(100 * share, 1)} %"


def percent(share: Fraction) -> str:
    """A counted share as a percentage, rounded to the nearest; 100 and 0 only where it is exactly that."""
    tenths = min(max(round(1000 * share), int(share > 0)), 1000 - int(share < 1))
    return f"{_decimal(tenths, 1)} %"


def counted(count: int, n: int) -> str:
    """A count of n, with the percentage."""
    return f"{count:,} of {n:,} ({percent(Fraction(count, n))})"


def radius_at_least(r: Exact) -> str:
    """r to four significant digits, rounded down."""
    return _significant(r, ROUND_FLOOR)


def radius_at_most(r: float) -> str:
    """r to four significant digits, rounded up."""
    return _significant(r, ROUND_CEILING)


def exactly(r: float) -> str:
    """The shortest decimal that reads back as this double, as in files: a radius as it was asked."""
    return repr(float(r)).removesuffix(".0")


def exact_mean(values: Sequence[float]) -> Fraction:
    """The mean without rounding."""
    return sum(map(Fraction, values), Fraction()) / len(values)


def _decimal(units: int, decimals: int) -> str:
    return f"{Decimal(f'{units}e-{decimals}'):f}"


def _significant(r: Exact, rounding: str) -> str:
    if r == 0:
        return "0"
    context = Context(prec=4, rounding=rounding)
    found = context.divide(*r.as_integer_ratio()) if isinstance(r, Fraction) else context.create_decimal(r)
    rounded = found.normalize()
    return f"{rounded:f}" if -6 <= rounded.adjusted() <= 6 else f"{rounded:e}"

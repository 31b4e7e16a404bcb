"""Bounds as text: rounded outward, so that what is printed still holds."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["at_least", "at_most", "between", "radius_at_least", "radius_at_most"]


def at_least(p: float) -> str:
    """p to three decimals, rounded down: still a lower bound."""
    return str(Decimal(p).quantize(Decimal("0.001"), rounding=ROUND_FLOOR))


def at_most(p: float) -> str:
    """p to three decimals, rounded up: still an upper bound."""
    return str(Decimal(p).quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def between(lower: float, upper: float) -> str:
    """[lower, upper] to three decimals, rounded outward."""
    return f"[{at_least(lower)}, {at_most(upper)}]"


def radius_at_least(r: float) -> str:
    """r to four significant digits, rounded down."""
    return _significant(r, ROUND_FLOOR)


def radius_at_most(r: float) -> str:
    """r to four significant digits, rounded up."""
    return _significant(r, ROUND_CEILING)


def _significant(r: float, rounding: str) -> str:
    return f"{Context(prec=4, rounding=rounding).create_decimal(r).normalize():f}" if r else "0"

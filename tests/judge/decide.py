"""Decisions about real numbers at rising precision: True and False are certain, None is "not decided".

Every question is asked positively, so that an undecided ball never passes for a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

PRECISIONS = (160, 640, 2560)  # bits: cancellation in models of condition 1e12 needs more than one

Number = float | Fraction | arb
Real = Callable[[], arb]  #: a real number, enclosed at the precision of the context whenever it is called


def ball(value: Number) -> arb:
    """A double or a fraction as a ball (exact, or to the precision of the context); balls stay."""
    if isinstance(value, arb):
        return value
    return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else arb(float(value))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """The context's precision for a while."""
    saved, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = saved


def at_rising_precision() -> Iterator[int]:
    """Sets the context's precision to one of PRECISIONS after the other, and puts it back."""
    saved = ctx.prec
    try:
        for ctx.prec in PRECISIONS:
            yield ctx.prec
    finally:
        ctx.prec = saved


def at_least(f: Real, bound: Number) -> bool | None:
    """Whether f >= bound."""
    return _decide(f, bound, lambda x, b: x >= b, lambda x, b: x < b)


def at_most(f: Real, bound: Number) -> bool | None:
    """Whether f <= bound."""
    return _decide(f, bound, lambda x, b: x <= b, lambda x, b: x > b)


def above(f: Real, bound: Number) -> bool | None:
    """Whether f > bound."""
    return _decide(f, bound, lambda x, b: x > b, lambda x, b: x <= b)


def below(f: Real, bound: Number) -> bool | None:
    """Whether f < bound."""
    return _decide(f, bound, lambda x, b: x < b, lambda x, b: x >= b)


def _decide(
    f: Real, bound: Number, yes: Callable[[arb, arb], bool], no: Callable[[arb, arb], bool]
) -> bool | None:
    width = None
    for _ in at_rising_precision():
        x, b = f(), ball(bound)
        if yes(x, b):
            return True
        if no(x, b):
            return False
        if width is not None and not x.rad() < width / 2:  # an error that no precision makes smaller
            return None
        width = x.rad()
    return None

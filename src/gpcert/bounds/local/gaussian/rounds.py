"""One sum of kernels bounded again and again on what the last bound left (docs/maths/bounds.md, Q4, B10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from gpcert.bounds.geometry.remnant import remnant
from gpcert.bounds.local.gaussian.sums import KernelSum
from gpcert.bounds.local.protocol import FunctionalBound

Sum = TypeVar("Sum", bound=KernelSum)

#: How often at most, and to which share of its length a set has to shrink.
_ROUNDS, _SHORTER = 5, 0.97


def rounds(
    sum_: Sum, bounded: Callable[[Sum], FunctionalBound | None], last: bool = True
) -> Iterator[tuple[FunctionalBound, Sum]]:
    """Lower bounds, and each time the sum on what is left: the bounds are of smaller and smaller sets, and on
    the rest of the first the functional is not negative. Each round costs one programme.

    `last`: no better price is to come; otherwise it has to seem that the next round succeeds.
    """
    for _ in range(_ROUNDS):
        bound, whole = bounded(sum_), sum_
        if bound is None:
            return
        part = remnant(whole.around.domain, bound.value, bound.slopes)
        if part is not None:
            sum_ = whole.on(part)
        yield bound, sum_
        if part is None:
            return
        share = sum_.around.s / whole.around.s
        if not share < _SHORTER or not (last or _gained(whole, bound, share) > -bound.value):
            return


def _gained(sum_: KernelSum, bound: FunctionalBound, share: float) -> float:
    """About what the norm of all higher orders loses where the bound is attained on the shorter set."""
    return (1.0 - share) * sum_.tail(3) * float(sum_.around.elliptic @ bound.point**2)

"""Rigorous extremes of a function along one coordinate, by subdivision in balls."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, ctx

from judge.decide import ball
from judge.latents import Point

_PIECES = 16  # to begin with

Function = Callable[[Sequence[arb]], arb]


def extremes(
    f: Function,
    x: Point,
    i: int,
    t0: float | Fraction,
    t1: float | Fraction,
    width: float = 1e-5,
    budget: int = 2000,
) -> tuple[arb, arb]:
    """Balls that hold the minimum and the maximum of t -> f(x + t e_i) over the real interval [t0, t1].

    f takes a point of balls and encloses its range there (`Truth.probability` does). Pieces are halved until
    both balls are at most `width` wide or f has been called `budget` times.
    """
    saved, ctx.prec = ctx.prec, max(ctx.prec, 128)
    try:
        line = _Line(f, [ball(v) for v in x], i, budget)
        low = line.minimum(Fraction(t0), Fraction(t1), width, 1)
        high = line.minimum(Fraction(t0), Fraction(t1), width, -1)
        return low, -high
    finally:
        ctx.prec = saved


class _Line:
    """f along the line; every piece and every point is evaluated once."""

    def __init__(self, f: Function, x: list[arb], i: int, budget: int) -> None:
        self.f, self.x, self.i, self.left = f, x, i, budget
        self._known: dict[tuple[Fraction, Fraction], arb] = {}

    def value(self, a: Fraction, b: Fraction) -> arb:
        """The range over [a, b]."""
        if (a, b) not in self._known:
            self.left -= 1
            t = ball(a) if a == b else ball(a).union(ball(b))
            self._known[a, b] = self.f([v + t if j == self.i else v for j, v in enumerate(self.x)])
        return self._known[a, b]

    def minimum(self, t0: Fraction, t1: Fraction, width: float, sign: int) -> arb:
        """Encloses the minimum of sign * f: pieces of the smallest lower end are halved first."""

        def lower(a: Fraction, b: Fraction) -> arb:
            v = sign * self.value(a, b)
            return v.lower() if v.is_finite() else arb.neg_inf()  # a piece that says nothing comes first

        def upper(t: Fraction) -> arb:
            v = sign * self.value(t, t)
            return v.upper() if v.is_finite() else arb.pos_inf()

        edges = [t0 + (t1 - t0) * Fraction(k, _PIECES) for k in range(_PIECES + 1)]
        best = min(upper(t) for t in edges)
        if t0 == t1:
            return sign * self.value(t0, t0)
        limit = self.left // 2 if sign > 0 else 0
        heap = [(lower(a, b), a, b) for a, b in pairwise(edges)]
        heapq.heapify(heap)
        while heap[0][0] < best - arb(width) and self.left > limit:
            _, a, b = heapq.heappop(heap)
            middle = (a + b) / 2
            best = min(best, upper(middle))
            for piece in ((a, middle), (middle, b)):
                heapq.heappush(heap, (lower(*piece), *piece))
        return min(heap[0][0], best).union(best)

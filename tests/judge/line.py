"""Rigorous extremes of a probability along one coordinate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import arb

from judge.decide import Number, ball
from judge.latents import Point


def extremes(
    f: Callable[[Sequence[arb]], arb], x: Point, i: int, t0: Number, t1: Number, width: float = 1e-5
) -> tuple[arb, arb]:
    """Balls that hold the minimum and the maximum of t -> f(x + t e_i) over the real interval [t0, t1]."""
    point = [ball(v) for v in x]
    moved = [v + ball(t0).union(ball(t1)) if j == i else v for j, v in enumerate(point)]
    value = f(moved)
    return value, value

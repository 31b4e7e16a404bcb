"""A quadratic over a p-ball in a box by the ball's own constraint (docs/maths/regions.md, B11).

The quadratic is made convex by E u^2 / 2, whose tangent is linear; what is taken off again, less a multiple
of |u|_p^p - 1, falls apart into functions of one coordinate, and these have their minima in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.box_quadratic import convexified
from gpcert.bounds.geometry.unit_ball import UnitBall
from gpcert.rounding import POWER, TINY, gamma
from gpcert.validation import Float

#: Steps towards the best tangent and multiplier, and of Newton's method for one coordinate: any are sound.
_STEPS, _NEWTON_STEPS = 12, 4
#: The first step of the tangent and of the multiplier, what is kept of the last one, and what shortens them.
_FIRST, _OF_MULTIPLIER, _KEPT, _SHORTER = 0.25, 0.4, 0.7, 0.6
#: The last step.
_SHORTEST = 0.05
#: Sizes of u below are taken for this, so that powers stay finite.
_NARROW = 1e-100


class Tangent(NamedTuple):
    """Where the convex part is touched, the ball's multiplier, what that proves, and the minimiser."""

    y: Float
    m: float
    value: float
    u: Float


def separable_bound(
    g: Float, H: Float, ball: UnitBall, E: Float, starts: Sequence[tuple[Float, float]], enough: float
) -> float:
    """B11 with E (d,) >= 0, from the best of the `starts`, each (y, m); ends once `enough` is met.

    -inf: H + diag(E) could not be verified.
    """
    certain = convexified(H, E, ball.high - ball.low)
    if certain is None:
        return -np.inf
    A = H.copy()
    A[np.diag_indices(len(g))] += certain
    floor = 1e-9 * (float(np.abs(g).max()) + float(certain.max())) + TINY
    tangents = [_touching(g, A, ball, certain, y, max(m, floor)) for y, m in starts]
    best = max(tangents, key=lambda each: each.value)
    share, last = _FIRST, (np.zeros(len(g)), 0.0)
    for _ in range(_STEPS):
        if best.value >= enough or share < _SHORTEST:
            break
        loose = float((np.abs(best.u) ** ball.norm).sum()) - 1.0
        step = _KEPT * last[0] + share * (best.u - best.y)
        longer = _KEPT * last[1] + share * _OF_MULTIPLIER * loose * best.m
        trial = _touching(g, A, ball, certain, best.y + step, max(best.m + longer, floor))
        if trial.value > best.value:
            best, last = trial, (step, longer)
        else:
            share, last = _SHORTER * share, (0.0 * step, 0.0)
    return best.value


def _touching(g: Float, A: Float, ball: UnitBall, E: Float, y: Float, m: float) -> Tangent:
    """B11 for one y and m, rounded down."""
    p, Ay = ball.norm, A @ y
    values, u = _least(g + Ay, E, m, ball)
    size = (np.abs(g) + np.abs(A) @ np.abs(y)) * (1.0 + np.abs(y)) + 2.0 * E + (2.0 + p) * m
    error = 4.0 * (POWER + gamma(4 * len(g) + 60)) * float(size.sum()) + TINY
    value = float(values.sum()) - 0.5 * float(Ay @ y) - m - error
    return Tangent(y, m, value if np.isfinite(value) else -np.inf, u)


def _least(s: Float, E: Float, m: float, ball: UnitBall) -> tuple[Float, Float]:
    """At most min of s u - E u^2 / 2 + m |u|^p over each coordinate's interval (d,), and about where (d,)."""
    up = (ball.high > 0) | (ball.low >= 0)
    a = np.maximum(np.stack([ball.low, -ball.high]), 0.0)
    b = np.maximum(np.stack([ball.high, -ball.low]), 0.0)
    values, u = _one_side(np.stack([s, -s]), E, m, a, b, ball.norm)
    values = np.where([up, ball.low < 0], values, np.inf)
    right = values[0] <= values[1]
    return np.where(right, values[0], values[1]), np.where(right, u[0], -u[1])


def _one_side(s: Float, E: Float, m: float, a: Float, b: Float, p: float) -> tuple[Float, Float]:
    """The same over [a, b], 0 <= a <= b.

    w'' = p (p - 1) m u^(p-2) - E is monotone: on one side of c, where it vanishes, w is convex and lies above
    every tangent, on the other it is concave and smallest at an end. `bend` covers that c is rounded.
    """
    steep = p * (p - 1.0) * m
    c = np.maximum(np.clip((E / steep) ** (1.0 / (p - 2.0)), a, b), _NARROW)
    low, high, end = (a, c, b) if p < 2.0 else (c, b, a)

    def slope(u: Float) -> Float:
        return np.asarray(s + p * m * u ** (p - 1.0) - E * u)

    e = (np.maximum(-s, 0.0) / (p * m)) ** (1.0 / (p - 1.0))  # without E; from there Newton is monotone
    e = np.clip(e if p < 2.0 else e + 2.0 * c, low, high)
    for _ in range(_NEWTON_STEPS):
        rise = steep * np.maximum(e, _NARROW) ** (p - 2.0) - E
        e = np.clip(np.where(rise > 0, e - slope(e) / rise, e), low, high)
    at_c = steep * c ** (p - 2.0)
    bend, error = at_c - E, 16.0 * POWER * (at_c + E)  # p - 2 is rounded, too
    values = [u * (s - 0.5 * E * u) + m * u**p for u in (e, end, c)]
    turn = slope(e)
    convex = values[0] + np.minimum(turn * (low - e), turn * (high - e))
    convex = convex - 0.5 * (np.maximum(-bend, 0.0) + error) * (high - low) ** 2
    concave = np.minimum(values[1], values[2]) - 0.125 * (np.maximum(bend, 0.0) + error) * (end - c) ** 2
    return np.minimum(convex, concave), np.where(
        concave < convex, np.where(values[1] <= values[2], end, c), e
    )

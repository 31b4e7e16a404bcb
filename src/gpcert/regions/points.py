"""Points of p-balls: the nearest to a given point, and the lowest of a linear function.

All on the normalised set {u: low <= u <= high, |u|_p <= 1}, in ordinary floating point: they guide searches
and place tangents, and certify nothing.
Statements B2 and B3 of `docs/maths/regions.md`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcert.validation import Float

#: Below, the ball is that of norm 1 to within rounding that matters, and powers 1 / (norm - 1) underflow.
_NEARLY_1 = 1.0 + 1e-6
_ROOT_STEPS = 100
_NEWTON_STEPS = 8


@np.errstate(all="ignore")
def nearest(z: Float, low: Float, high: Float, norm: float) -> Float:
    """The point (d,) of the set nearest to z in the Euclidean sense, 1 <= norm < inf."""
    inside = np.clip(z, low, high)
    if length(inside, norm) <= 1.0:
        return inside
    inside = np.clip(0.0 * z, low, high)
    a, sign = np.abs(z), np.sign(z)
    if norm == 1.0:
        return np.asarray(np.clip(sign * np.maximum(a - _threshold(a, sign, low, high), 0.0), low, high))
    least, most, c, top = 0.0, np.inf, 0.0, float(a.max())  # a bracket of the multiplier
    for _ in range(_ROOT_STEPS):
        e = sign * _shrink(a, c, norm) if c > 0 else z
        u = np.clip(e, low, high)
        size = length(u, norm)
        if size <= 1.0:
            inside, most = u, c
        else:
            least = c
        if 1.0 - 1e-11 < size <= 1.0 or least >= most * (1.0 - 1e-15):
            break
        c = _following(c, np.abs(e[(u == e) & (e != 0)]), size, norm)
        if not least < c < min(most, 16.0 * max(least, top)):
            c = 0.5 * (least + most) if most <= 4.0 * max(least, top) else 4.0 * max(least, 0.01 * top)
    return inside


def _threshold(a: Float, sign: Float, low: Float, high: Float) -> float:
    """B2 for norm 1: the c at which sum_j clip(a_j - c, least_j, most_j) = 1, a line between its kinks."""
    least = np.abs(np.clip(0.0 * a, low, high))
    most = np.maximum(np.where(sign < 0, -low, high), least)
    kinks = np.concatenate([a - most, a - least])
    order = np.argsort(kinks)
    kinks = kinks[order]
    slope = np.cumsum(np.repeat([-1.0, 1.0], len(a))[order])
    size = float(most.sum()) + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(kinks))])
    k = max(int(np.searchsorted(-size, -1.0)) - 1, 0)  # the last kink at which it exceeds 1
    return max(float(kinks[k]) + (float(size[k]) - 1.0) / max(-float(slope[k]), 1.0), 0.0)


def _following(c: float, e: Float, size: float, norm: float) -> float:
    """Newton's step for |u|_p = 1, a little inside: powers of the length are nearly linear in c; e (m,) are
    the sizes of the coordinates that no end of the box holds.
    """
    powers = e ** (norm - 1.0)
    fall = (powers * powers / (1.0 + c * (norm - 1.0) * e ** (norm - 2.0))).sum() / size ** (norm - 1.0)
    q = norm - 1.0 if norm >= 1.5 else -1.0
    with np.errstate(all="ignore"):  # norms of 1e15: the caller halves where this is none
        change = (np.float64(1.0 - 5e-12) ** -q - np.float64(size) ** -q) / (
            q * np.float64(size) ** (-q - 1.0)
        )
    return c + float(np.divide(change, fall))


def _shrink(a: Float, c: float, norm: float) -> Float:
    """The e >= 0 with e + c e^(norm-1) = a, for a >= 0: B2."""
    if norm == 1.0:
        return np.maximum(a - c, 0.0)
    if norm == 2.0:
        return a / (1.0 + c)
    if norm == 3.0:
        return np.asarray(2.0 * a / (1.0 + np.hypot(1.0, 2.0 * np.sqrt(c) * np.sqrt(a))))
    if norm == 1.5:  # a quadratic in the root of e
        root = np.sqrt(a)
        return np.minimum(a, np.square(2.0 * root * (root / (c + np.hypot(c, 2.0 * root)))))
    # With e = a exp(y) and k = log(c a^(norm-2)): exp(y) + exp(k + (norm-1) y) = 1, convex in y; both terms
    # are at most 1, and from there Newton falls to the root.
    k = np.log(max(c, 1e-300)) + (norm - 2.0) * np.log(np.maximum(a, 1e-300))
    y = np.minimum(0.0, -k / (norm - 1.0))
    for _ in range(_NEWTON_STEPS):
        one, other = np.exp(y), np.exp(k + (norm - 1.0) * y)
        y = y - np.maximum(one + other - 1.0, 0.0) / (one + (norm - 1.0) * other)
    return np.asarray(a * np.exp(y))


@np.errstate(all="ignore")
def lowest(gradient: Float, low: Float, high: Float, norm: float) -> Float:
    """A point (d,) of the set where gradient . u is about smallest, 1 <= norm < inf: B3."""
    size = np.abs(gradient)
    rest: Float = np.asarray(np.clip(0.0, low, high))
    if not size.any():
        return rest
    if norm < _NEARLY_1:
        return _fill(gradient, low, high, rest)
    # Where no end holds it, |u_j| is proportional to this: the conditions of Karush, Kuhn and Tucker.
    step = -np.sign(gradient) * (size / size.max()) ** (1.0 / (norm - 1.0))

    def reached(c: float) -> Float:
        return np.asarray(np.clip(step / c, low, high))

    bottom, top = 1e-300, max(length(step, norm), 1.0)
    if length(reached(bottom), norm) <= 1.0:
        return np.where(step < 0, low, np.where(step > 0, high, rest))
    for _ in range(500):  # a bracket of the root: `top` fits, `bottom` does not
        if length(reached(top), norm) > 1.0:
            bottom, top = top, 4.0 * top
        elif length(reached(0.25 * top), norm) > 1.0:
            bottom = 0.25 * top
            break
        else:
            top *= 0.25
    return reached(_root(lambda c: length(reached(c), norm) - 1.0, bottom, top))


def _fill(gradient: Float, low: Float, high: Float, rest: Float) -> Float:
    """norm = 1 or nearly: coordinates by falling slope, each to its end, until the budget is spent."""
    end = np.where(gradient > 0, low, high)
    room = np.where(np.abs(end) > np.abs(rest), np.abs(end) - np.abs(rest), 0.0)
    order = np.argsort(-np.abs(gradient), kind="stable")
    left = max(1.0 - float(np.abs(rest).sum()), 0.0) - np.concatenate([[0.0], np.cumsum(room[order])[:-1]])
    step = np.clip(left, 0.0, room[order])
    point = rest.copy()
    point[order] += np.sign(end - rest)[order] * step
    return point


def length(u: Float, norm: float) -> float:
    """|u|_p, estimated; powers of shares of the largest entry, which neither underflow nor overflow."""
    if norm in (1.0, 2.0):
        return float(np.linalg.norm(u, norm))
    size = np.abs(u)
    top = float(size.max(initial=0.0))
    return top * float(((size / top) ** norm).sum()) ** (1.0 / norm) if top > 0 else 0.0


def _root(f: Callable[[float], float], a: float, b: float) -> float:
    """About a zero of a decreasing function, f(a) > 0 >= f(b), from the right: false position (Illinois)."""
    fa, fb = f(a), f(b)
    reached, side = fb, 0
    for step in range(_ROOT_STEPS):
        if reached > -1e-14 or b - a <= 1e-15 * b:
            break
        c = (a * fb - b * fa) / (fb - fa)
        c = c if a < c < b and step % 3 < 2 else 0.5 * (a + b)  # halving: where the function is a step
        fc = f(c)
        if fc > 0:
            a, fa, fb, side = c, fc, fb if side >= 0 else 0.5 * fb, -1
        else:
            b, fb, fa, side = c, fc, fa if side <= 0 else 0.5 * fa, 1
            reached = fc
    return b

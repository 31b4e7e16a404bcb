"""Rows that are Euclidean balls cut by a box: a multiplier of the ball makes them rows over the box alone
(docs/maths/batches.md, J12 and J13).

Any multiplier m >= 0 is sound, so it is chosen in float32; what it leaves is a separable quadratic, or one
with a Hessian, over the box. The local search moves in units u of the half axes, where a ball is a ball.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpcert.engine.backend import Array, Backend
from gpcert.engine.quadratic import Choices
from gpcert.rounding import UNIT, gamma

#: Relative distance from the sphere at which a witness is placed.
_MARGIN = 1e-11
#: Beyond this many half axes from the reference to the centre a ball is not used: its box is.
_FARTHEST = 1e6
#: Multipliers that float32 can hold.
_LARGEST = 1e30
#: Rounds of the nearest point, halvings for a separable multiplier, rounds and steps for one with a Hessian.
_NEAREST, _HALVINGS, _ROUNDS, _STEPS = 6, 18, 4, 5


class Cap(NamedTuple):
    """J12: sum_j w_j (d_j - o_j)^2 <= 1 on the region, for displacements d; both (N, d) doubles, w >= 0."""

    o: Array
    w: Array

    def take(self, rows: Array) -> Cap:
        """Those of some rows."""
        return Cap(self.o[rows], self.w[rows])

    def spent(self, xp: Any, m: Array) -> tuple[Array, Array]:
        """m (|o|_w^2 - 1) / 2 from below (N,), and how large its terms are."""
        size = 0.5 * m * xp.sum(self.w * self.o * self.o, axis=1)
        total = size + 0.5 * m
        return size - 0.5 * m - gamma(self.o.shape[1] + 16) * total, total


def cap(xp: Any, centre: Array, axes: Array, reference: Array, lengths: Array) -> Cap:
    """Of balls with half axes (N, d), raw units, to within one rounding, around centres (N, d)."""
    o = (centre - reference) / lengths
    w = (lengths / axes) ** 2
    away = xp.sqrt(xp.sum(w * o * o, axis=1))[:, None]
    return Cap(o, xp.where(away < _FARTHEST, w * (1.0 - 64 * UNIT * (1.0 + away)), w * 0.0))


def farthest(backend: Backend, inside: Cap, metric: Array, box: Array) -> Array:
    """B4: sup sum_j metric_j d_j^2 (N,) on balls, up, or that of their boxes; metric (d,)."""
    xp, (o, w) = backend.xp, inside
    square = metric / w  # inf where the ball is not used
    linear = xp.sqrt(xp.sum(metric * square * o * o, axis=1))
    total = xp.sum(metric * o * o, axis=1) + 2.0 * linear + xp.max(square, axis=1)
    total = total * (1.0 + 4.0 * gamma(2 * o.shape[1] + 32))
    return xp.where(total < box, total, box)


def separable(
    backend: Backend, inside: Cap, g: Array, lam: Array, low: Array, high: Array
) -> tuple[Array, Array]:
    """J13: a lower bound (N,) of sum_j g_j d_j - lam_j d_j^2 on balls in boxes, lam (N, d) >= 0, and how
    large its terms are; rounding is not yet taken from it.
    """
    xp, (o, w) = backend.xp, inside
    m = backend.double(_separable_multiplier(backend, inside, g, lam, low, high))
    pull = m[:, None] * w
    a, b = 0.5 * pull - lam, g - pull * o
    y = _lowest(xp, a, b, low, high)
    slope = b + 2.0 * a * y
    tangent = (b + a * y) * y + xp.minimum(slope * (low - y), slope * (high - y))
    ends = xp.minimum((b + a * low) * low, (b + a * high) * high)
    far = 2.0 * (xp.abs(y) + xp.maximum(-low, high))
    size = xp.sum((xp.abs(g) + pull * xp.abs(o) + (pull + 2.0 * lam) * far) * far, axis=1)
    spent, total = inside.spent(xp, m)
    return xp.sum(xp.where(a > 0, tangent, ends), axis=1) + spent, size + total


def _lowest(xp: Any, a: Array, b: Array, low: Array, high: Array) -> Array:
    """Where b d + a d^2 is about smallest, coordinate by coordinate (N, d)."""
    where = xp.where
    inside = xp.clip(where(a > 0, -b / where(a > 0, 2.0 * a, a * 0.0 + 1.0), b * 0.0), low, high)
    return where(a > 0, inside, where((b + a * low) * low < (b + a * high) * high, low, high))


def _separable_multiplier(
    backend: Backend, inside: Cap, g: Array, lam: Array, low: Array, high: Array
) -> Array:
    """About the best (N,): where the minimiser lies on the sphere, by halving in units of the half axes."""
    xp, (o, w) = backend.xp, inside
    root = xp.sqrt(w)
    units = (g - 2.0 * lam * o) / root, lam / w, (low - o) * root, (high - o) * root
    linear, square, low, high = (backend.single(each) for each in units)
    least = linear[:, 0] * 0.0
    most = 2.0 * xp.max(square, axis=1) + xp.sqrt(xp.sum(linear * linear, axis=1))
    for _ in range(_HALVINGS):
        m = 0.5 * (least + most)
        u = _lowest(xp, 0.5 * m[:, None] - square, linear, low, high)
        outside = xp.sum(u * u, axis=1) > 1.0
        least, most = xp.where(outside, m, least), xp.where(outside, most, m)
    return _usable(xp, most)


def quadratic_multiplier(few: Choices, inside: Cap, backend: Backend) -> Array:
    """About the multiplier (N,) of a local minimiser of quadratics over balls in boxes."""
    xp, (o, w) = backend.xp, (backend.single(each) for each in inside)
    root = xp.sqrt(w)
    m = xp.sqrt(xp.sum((few.g / root) ** 2, axis=1))
    y = o * 0.0
    for _ in range(_ROUNDS):
        y = few.penalised_minimiser(m[:, None] * w, o, y, _STEPS)
        m = m * xp.clip(xp.sqrt(xp.sum((root * (y - o)) ** 2, axis=1)), 0.2, 5.0)
    return _usable(xp, m)


def _usable(xp: Any, m: Array) -> Array:
    """0, which leaves the box alone, where no multiplier was found."""
    return xp.where(m < _LARGEST, m, xp.zeros_like(m))


def nearest(xp: Any, z: Array, low: Array, high: Array) -> Array:
    """About the points nearest to z (N, d) with |u| <= 1, low <= u <= high, for low <= 0 <= high: B2."""
    total, clip, where, sqrt = xp.sum, xp.clip, xp.where, xp.sqrt
    c = clip(sqrt(total(z * z, axis=1)), 1.0, None)
    u = clip(z / c[:, None], low, high)
    for _ in range(_NEAREST):
        free = (u > low) & (u < high)
        held = total(where(free, z * 0.0, u * u), axis=1)
        loose = total(where(free, z * z, z * 0.0), axis=1)
        c = clip(sqrt(loose / clip(1.0 - held, 1e-6, None)), 1.0, None)
        u = clip(z / c[:, None], low, high)
    return u / clip(sqrt(total(u * u, axis=1)), 1.0, None)[:, None]


def placed(xp: Any, u: Array, centre: Array, axes: Array, lower: Array, upper: Array) -> Array:
    """Raw points (N, d) certainly in the balls and in [lower, upper], next to those of units u; else the
    centres (J12).
    """
    minimum, maximum, total = xp.minimum, xp.maximum, xp.sum
    where, sqrt, clip = xp.where, xp.sqrt, xp.clip
    u = u * ((1.0 - _MARGIN) / clip(sqrt(total(u * u, axis=1)), 1.0 - _MARGIN, None))[:, None]
    x = minimum(maximum(centre + axes * u, lower), upper)
    steps = (x - centre) / axes
    size = total(steps * steps, axis=1) * (1.0 + 2.0 * gamma(u.shape[1] + 32))
    return where((size <= 1.0)[:, None], x, centre)

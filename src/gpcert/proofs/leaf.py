"""One leaf of a proof: a plane at a reference, its quadratic, and multipliers (docs/maths-proof.md).

By V3, mu - t sqrt(c0 + max(S, 0)) >= f = sum_i b_i k_i(x) + still k(x, xh) / s2 + constant; by
V2, e^r f is at least a quadratic of the displacement d from xh; by V5 that is >= 0. The formulas are
the checker's, in floats: what they choose is a hint, and a value that is positive by more than rounding
passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds import KernelSum
from gpcert.proofs.levels import Level, Place, Plane
from gpcert.proofs.quadratic import Multipliers, multipliers
from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float

__all__ = ["CLEAR", "TENSOR", "Expansion", "Forms", "Leaf", "expansion", "leaf_at"]

#: What a value has above 0, relative to the terms it is made of, passes surely.
CLEAR = 1e-12
#: Theta of a form as a share of the balanced one (any is sound).
_THETA = 0.35
#: Features up to which the cubic alone is a form, made from its tensor.
TENSOR = 24
#: Orders that may be bounded by a number each, after the last one that is a form.
_NORMS = 3


class Forms(NamedTuple):
    """Orders from three on: one form for each theta, then `norms` by a number each; the rest by one norm."""

    metric: Float
    thetas: tuple[float, ...]
    norms: int


class Leaf(NamedTuple):
    """What proves a level on a box; `hints`: those of its plane."""

    reference: Float
    level: Level
    hints: dict[str, Any]
    forms: Forms | None
    programme: Multipliers
    clear: float  #: what is left above 0, relative to the terms it is made of

    @property
    def passes(self) -> bool:
        """Whether the value is positive by more than rounding."""
        return self.clear >= CLEAR


class Expansion(NamedTuple):
    """A plane around its reference; its orders from two on are at least d^T (H - rest I) d/2."""

    plane: Plane
    H: Float
    forms: Forms | None
    rest: float

    @property
    def size(self) -> float:
        """Of the terms whose sum it is."""
        kernels, c = self.plane.kernels, self.plane.kernels.around
        return float(np.abs(kernels.b) @ c.k) + abs(kernels.still) + self.plane.size * math.exp(c.radius)

    @property
    def hidden(self) -> float:
        """How much of the rest may be rounding, which a checker, who knows it better, does not find."""
        return self.rest - 2.0 * _tail(self.plane.kernels, _first(self.forms), known=True)


def expansion(place: Place, level: Level) -> Expansion | None:
    """None where e^r says nothing any more."""
    plane = level.plane(place)
    kernels, H = plane.kernels, plane.kernels.head[2]
    if not kernels.around.radius < 50.0:
        return None
    H, forms = _with_orders(kernels, H, place.sharp) if place.sharp else (H.copy(), None)
    return Expansion(plane, H, forms, 2.0 * _tail(kernels, _first(forms)))


def _first(forms: Forms | None) -> int:
    """The lowest order that is bounded by the one norm."""
    return 3 if forms is None else 3 + len(forms.thetas) + forms.norms


def leaf_at(place: Place, level: Level) -> Leaf | None:
    """The leaf of a level at a place; None where e^r, or a number of it, says nothing any more."""
    found = expansion(place, level)
    if found is None:
        return None
    (kernels, bend, hints, _), H, forms, rest = found
    c, constant, size = kernels.around, kernels.constant, found.size
    M0, g, _ = kernels.head
    base = M0 + kernels.still + constant
    chord = math.expm1(c.radius) / c.radius
    rise = constant * (1.0 if constant >= 0 else chord) - bend * chord
    H[np.diag_indices(len(g))] += rise - rest
    best = multipliers(c.domain, g, H, CLEAR * size - base)
    if not best.finite:
        return None
    clear = (base + best.value) / size
    if clear > 0.0:
        clear -= _drift(found, best) / size
    if 0.0 < clear < CLEAR and clear * size > _noise(place, found, best, H):
        clear = CLEAR
    return Leaf(place.reference, level, hints, forms, best, clear)


def _drift(found: Expansion, best: Multipliers) -> float:
    """What multipliers lose that fit a rest in which roundings are hidden: a checker finds H + x I with
    0 <= x <= what is hidden, whose gradient at y is another by x y.
    """
    domain, y = found.plane.kernels.around.domain, np.abs(best.y)
    return found.hidden * float(y @ (np.maximum(np.abs(domain.low), np.abs(domain.high)) + 0.5 * y))


def _noise(place: Place, found: Expansion, best: Multipliers, H: Float) -> float:
    """More than the rounding of a leaf's value, and than what a checker's guess of a factor costs it."""
    kernels, c = found.plane.kernels, found.plane.kernels.around
    r = np.abs(c.slice.visit(place.reference).r)
    twist = float(np.abs(kernels.b - place.slice.weights).max()) / max(float(r.max()), 1e-300)
    terms = twist * float(c.k @ (np.abs(place.slice.model.precision) @ c.k))
    inner = float((np.abs(kernels.b) * c.k) @ c.relative)
    factor = 2e-14 * (float(np.abs(np.diagonal(H)).sum()) + float(best.D.sum())) * c.s * c.s
    return 32.0 * UNIT * (found.size + terms) + 2.0 * inner + factor


def _tail(kernels: KernelSum, order: int, known: bool = False) -> float:
    """V2: all orders from `order` on are at most this times |d|^2; `known`: but for what rounding hides."""
    x = kernels.around.s**2
    term, total = 1.0, 0.0
    for m in range(1, 400):
        term *= x / m
        total += term if m >= order else 0.0
        if m > order and term < 1e-17 * total:
            break
    return _rest(kernels, known) * math.sqrt(total) / x


def _rest(kernels: KernelSum, known: bool) -> float:
    """V2: the norm of the sum less its orders zero to two; what rounding hides stays in unless `known`.

    Multipliers fit the numbers that a checker will find, not bounds of them: roundings of the Gram matrix
    are guessed, not bounded.
    """
    c = kernels.around
    gram, _ = c.slice.gram(np.ones(c.v.shape[1]))
    b = kernels.b * c.slice.amplitude
    constant, gradient, hessian = kernels.head
    head = constant * constant + float(gradient @ gradient) + 0.5 * float(np.vdot(hessian, hessian))
    size = float(np.abs(b).sum())
    hidden = 4.0 * gamma(2 * len(b) + 40) * size * (size + math.sqrt(head))
    rest = float(b @ (gram @ b)) - head
    return math.sqrt(max(rest - hidden, 0.0) if known else max(rest, 0.0) + hidden)


def _with_orders(kernels: KernelSum, H: Float, sharp: int) -> tuple[Float, Forms]:
    """C1: H less the forms of the lowest orders, C4: less a number for each of the next, as many as pay."""
    c = kernels.around
    few = sharp < 2 and c.v.shape[1] <= TENSOR
    metric = np.diag(c.metric)
    thetas = []
    for order, N in _cubic(kernels) if few else _forms(kernels):
        theta = max(_THETA * math.sqrt(max(c.domain.largest(N), 0.0)) / c.span, 1e-12)
        H = H - c.span ** (order - 2) * (theta * metric + N / theta)
        thetas.append(theta)
    best, taken = (0.0, 0), 0.0
    smooth = partial(_tail, kernels)
    least, reach = smooth(3 + len(thetas)) * c.s**2, 0.0
    for count, number in enumerate(() if few else _norms(kernels), 1):
        reach += number
        total = reach * c.span**2 + smooth(5 + count) * c.s**2
        if total < least:
            least, best = total, (reach, count)
    taken, norms = best
    return H - 2.0 * taken * metric, Forms(c.metric, tuple(thetas), norms)


def _cubic(kernels: KernelSum) -> Iterator[tuple[int, Float]]:
    """C1 of order three, by its tensor: the order is at most |L d|^2 sqrt(d^T N d)."""
    c = kernels.around
    n, d = c.v.shape
    u = c.v / np.sqrt(c.metric)
    T = ((kernels.b * c.k / 6.0)[:, None] * c.v).T @ (u[:, :, None] * u[:, None, :]).reshape(n, d * d)
    yield 3, T @ T.T


def _forms(kernels: KernelSum) -> Iterator[tuple[int, Float]]:
    """C1 of orders three and four."""
    c = kernels.around
    Z, Q = (kernels.b * c.k)[:, None] * c.v, _products(kernels)
    power = Q * Q
    for order in (3, 4):
        yield order, Z.T @ (power @ Z) / math.factorial(order) ** 2
        power = power * Q


def _norms(kernels: KernelSum) -> Iterator[float]:
    """C4 of the orders from five on: each is at most this times |L d|^2."""
    c, Q = kernels.around, _products(kernels)
    bk, power = kernels.b * c.k, Q**4
    for order in range(5, 5 + _NORMS):
        power = power * Q
        square = max(float(bk @ (power @ bk)), 0.0)
        yield c.span ** (order - 2) * math.sqrt(square) / math.factorial(order)


def _products(kernels: KernelSum) -> Float:
    """v L^-2 v^T (n, n)."""
    u = kernels.around.v / np.sqrt(kernels.around.metric)
    return np.asarray(u @ u.T)

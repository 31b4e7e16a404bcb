"""One leaf of a proof: a plane at a reference, its quadratic, and multipliers (docs/maths/proof.md).

By V3, mu - t sqrt(c0 + max(S, 0)) >= f = sum_i b_i k_i(x) + still k(x, xh) / s2 + constant. Gaussian kernels:
by V2, e^r f is at least a quadratic of the displacement d from xh. Other kernels, centre by centre (V13):
k_i(x) = phi(z_i + delta_i), delta_i = |d|^2/2 - v_i.d; each b_i phi is at least a constant, plus a slope
times delta, plus a curve times delta^2/2. By V5 the quadratic is >= 0. The formulas are the checker's, in
floats: what they choose is a hint, and a value that is positive by more than rounding passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.gaussian.sums import KernelSum
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.kernels import Radial
from gpcert.proofs.levels import Level, Place, Plane, slope_at
from gpcert.proofs.quadratic import Multipliers, multipliers
from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float

#: What a value has above 0, relative to the terms it is made of, passes surely.
CLEAR = 1e-12
#: Theta of a form as a share of the balanced one (any is sound).
_THETA = 0.35
#: Features up to which the cubic alone is a form, made from its tensor.
TENSOR = 24


class Forms(NamedTuple):
    """Orders from three on: one form for each theta, the rest by one norm, of this metric if `own`."""

    metric: Float
    thetas: tuple[float, ...]
    own: bool
    square: float  #: of the norm of the orders that are forms


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
    hidden: Float  #: (d,): by how much the diagonal of H may be larger, seen by a checker that rounds less

    @property
    def size(self) -> float:
        """Of the terms whose sum it is."""
        kernels, c = self.plane.kernels, self.plane.kernels.around
        return float(np.abs(kernels.b) @ c.k) + abs(kernels.still) + self.plane.size * math.exp(c.radius)

    @property
    def known(self) -> Expansion:
        """As a checker may find it, who knows the rest better."""
        if self.forms is not None and self.forms.own:
            return self._replace(H=self.H + np.diag(self.hidden))
        return self._replace(rest=self.rest - float(self.hidden[0]))


def expansion(place: Place, level: Level) -> Expansion | None:
    """None where e^r says nothing any more."""
    plane = level.below(place)
    if plane is None or not plane.kernels.around.radius < 50.0:
        return None
    kernels, H = plane.kernels, plane.kernels.head[2]
    H, forms = _with_orders(kernels, H, place.sharp)
    metric, tail, known = _tail(kernels, forms)
    hidden = 2.0 * (tail - known) * metric
    if forms is not None and forms.own:
        return Expansion(plane, H - np.diag(2.0 * tail * metric), forms, 0.0, hidden)
    return Expansion(plane, H, forms, 2.0 * tail, hidden)


def leaf_at(place: Place, level: Level) -> Leaf | None:
    """The leaf of a level at a place; None where e^r, or a number of it, says nothing any more."""
    found = expansion(place, level)
    if found is None:
        return None
    (kernels, bend, hints, _), H, forms, rest, hidden = found
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
        clear -= _drift(c.domain, hidden, best) / size
    if 0.0 < clear < CLEAR and clear * size > _noise(place, found, best, H):
        clear = CLEAR
    return Leaf(place.reference, level, hints, forms, best, clear)


def _drift(domain: Domain, hidden: Float, best: Multipliers) -> float:
    """What multipliers lose that fit a rest in which roundings are hidden: a checker, which knows it better,
    finds H + X with 0 <= X <= diag(hidden), whose gradient at y is another by X y.
    """
    y = np.abs(best.y)
    return float((hidden * y) @ (np.maximum(np.abs(domain.low), np.abs(domain.high)) + 0.5 * y))


def _noise(place: Place, found: Expansion, best: Multipliers, H: Float) -> float:
    """More than the rounding of a leaf's value, and than what a checker's guess of a factor costs it."""
    kernels, c = found.plane.kernels, found.plane.kernels.around
    terms = slope_at(place, found.plane) * float(c.k @ (np.abs(place.slice.model.precision) @ c.k))
    inner = float((np.abs(kernels.b) * c.k) @ c.relative)
    factor = 2e-14 * (float(np.abs(np.diagonal(H)).sum()) + float(best.D.sum())) * c.s * c.s
    return 32.0 * UNIT * (found.size + terms) + 2.0 * inner + factor


def _tail(kernels: KernelSum, forms: Forms | None) -> tuple[Float, float, float]:
    """V2 (a): a metric (d,), and all orders beyond the forms are at most the number times |L d|^2; last the
    number but for what rounding hides in it.
    """
    c, order, square = kernels.around, 3, 0.0
    metric, x = np.ones(c.v.shape[1]), c.s**2
    if forms is not None:
        order += len(forms.thetas)
        if forms.own:
            metric, x, square = c.metric, c.span**2, forms.square
    term, total = 1.0, 0.0
    for m in range(1, 400):
        term *= x / m
        total += term if m >= order else 0.0
        if m > order and term < 1e-17 * total:
            break
    rest, hidden = _rest(kernels, metric, square)
    factor = math.sqrt(total) / x
    return metric, math.sqrt(max(rest, 0.0) + hidden) * factor, math.sqrt(max(rest - hidden, 0.0)) * factor


def _rest(kernels: KernelSum, metric: Float, more: float) -> tuple[float, float]:
    """V2 (a): the squared norm of the sum less that of its orders zero to two and `more`; and what rounding
    hides.

    Multipliers fit the numbers that a checker will find, not bounds of them: roundings of the Gram matrix
    are guessed, not bounded.
    """
    c, inverse = kernels.around, 1.0 / metric
    gram, _ = c.slice.gram(metric)
    b = kernels.b * c.slice.amplitude
    if (metric != 1.0).any():  # b k e^{|L^-1 v|^2 / 2}
        b = b * np.exp(0.5 * (c.squares @ (inverse - 1.0)))
    constant, gradient, hessian = kernels.head
    head = constant * constant + float((gradient * gradient) @ inverse) + more
    head += 0.5 * float(inverse @ (hessian * hessian) @ inverse)
    size = float(np.abs(b).sum())
    hidden = 4.0 * gamma(2 * len(b) + 40) * size * (size + math.sqrt(head))
    return float(b @ (gram @ b)) - head, hidden


def _with_orders(kernels: KernelSum, H: Float, sharp: int) -> tuple[Float, Forms | None]:
    """V2 (b): H less the forms of the lowest orders if `sharp`; of many features the rest has a metric."""
    c = kernels.around
    few = sharp < 2 and c.v.shape[1] <= TENSOR
    if few and not sharp:
        return H.copy(), None
    metric = np.diag(c.metric)
    thetas, square = [], 0.0
    for order, N in () if not sharp else _cubic(kernels) if few else _forms(kernels):
        theta = max(_THETA * math.sqrt(max(c.domain.largest(N), 0.0)) / c.span, 1e-12)
        H = H - c.span ** (order - 2) * (theta * metric + N / theta)
        thetas.append(theta)
        square += math.factorial(order) * float(np.diagonal(N) @ (1.0 / c.metric))
    return H, Forms(c.metric, tuple(thetas), not few, square)


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
    u = c.v / np.sqrt(c.metric)
    Z, Q = (kernels.b * c.k)[:, None] * c.v, u @ u.T
    power = Q * Q
    for order in (3, 4):
        yield order, Z.T @ (power @ Z) / math.factorial(order) ** 2
        power = power * Q


#: Where a kernel's own tangent may touch, as a share of the largest r.
_TOUCHES = (0.25, 0.0)
#: Up to this relative size of a step its second difference is taken from derivatives.
_NEAR = 1e-4
_UNIT = 1e-15


class _Below(NamedTuple):
    """constant + slope delta + curve delta^2/2 (n,), at most b phi(z + delta) on the range of delta; `noise`:
    how far rounding may move it.
    """

    constant: Float
    slope: Float
    curve: Float
    noise: Float


def leaf_on(place: Place, level: Level) -> Leaf | None:
    """The leaf of a level at a place; None where a number of it is not finite."""
    slice_, domain = place.slice, place.domain
    if not isinstance(slice_, RadialSlice):
        return leaf_at(place, level)
    plane = level.below(place)
    if plane is None:
        return None
    ((group,),) = slice_.terms
    v, s2 = plane.kernels.around.v, slice_.model.variance
    z = group.still + 0.5 * np.einsum("ij,ij->i", v, v)
    low, high = _span(domain, v)
    part = _below(group.phi, plane.kernels.b, z, low, high)
    most = 0.5 * domain.norm(np.ones(v.shape[1])) ** 2
    mixed = part.curve @ v
    lost = max(0.0, float(np.maximum(mixed * domain.low, mixed * domain.high).sum()))
    rise = float(part.slope.sum()) - lost + 0.5 * min(0.0, float(part.curve.sum())) * most
    own, g = plane.kernels.still + plane.bend, -(part.slope @ v)
    H = (part.curve[:, None] * v).T @ v
    base = float(part.constant.sum()) + plane.kernels.constant - plane.bend
    size = float(np.abs(plane.kernels.b).sum()) * float(group.phi.value(np.zeros(1))[0]) + own + plane.size
    best, noise = None, float(part.noise.sum())
    for touch in _TOUCHES if own > 0 else _TOUCHES[:1]:
        t = touch * most
        value, fall = (float(each[0]) / s2 for each in group.phi.derivatives(np.array([t]), 1))
        constant, curved = base, H.copy()
        constant += own * (value - fall * t) if own > 0 else 0.0
        curved[np.diag_indices(len(g))] += rise + (own * fall if own > 0 else 0.0)
        found = multipliers(domain, g, curved, CLEAR * size - constant)
        if not (found.finite and np.isfinite(constant)):
            continue
        clear = (constant + found.value - noise) / size - CLEAR
        hints = plane.hints | {"touch": t}
        leaf = Leaf(place.reference, level, hints, None, found, clear)
        best = leaf if best is None or leaf.clear > best.clear else best
    return best


def _span(domain: Domain, v: Float) -> tuple[Float, Float]:
    """The smallest and the largest delta (n,) over the box of the domain."""
    near = np.clip(v, domain.low, domain.high)
    ends = [end * (0.5 * end - v) for end in (domain.low, domain.high)]
    return (near * (0.5 * near - v)).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _below(phi: Radial, b: Float, z: Float, low: Float, high: Float) -> _Below:
    """For b >= 0 a tangent and what bends it up at least; for b < 0 the same at most, or the chord."""
    value, slope, *_ = phi.derivatives(z, 1)
    at = np.where(np.isfinite(slope), 0.0, 0.25 * high)
    touched, steep = phi.derivatives(z + at, 1)
    step = (high - low) / 2**20
    up, up_error = _bend(phi, z, np.maximum(high, step))
    curve = np.where((at == 0.0) & np.isfinite(up), np.maximum(up, 0.0), 0.0)
    first = phi.value(np.maximum(z + low - _UNIT * (z + np.abs(low)), 0.0))  # steep there, if at all
    last = phi.value(np.maximum(z + high, 0.0))
    chord = (last - first) / (high - low)
    start = first - chord * low
    down, down_error = _bend(phi, z, np.minimum(low, -step))
    most = np.where((low < -step) | (z >= step), down, np.nan)
    bent = value + slope * high + 0.5 * most * high * high - last
    plain = np.isfinite(bent) & (bent <= 3.0 * (start - value) + value / 2**30)  # as a checker does
    falling = [np.where(plain, one, other) for one, other in ((value, start), (slope, chord), (most, 0.0))]
    rising = (touched - steep * at, steep, curve)
    error = np.where(b >= 0.0, up_error * (curve != 0.0), down_error * plain)
    noise = 0.5 * np.abs(b) * np.nan_to_num(error) * np.maximum(np.abs(low), np.abs(high)) ** 2
    constant, slope, curve = (b * np.where(b >= 0.0, *pair) for pair in zip(rising, falling, strict=True))
    return _Below(constant, slope, curve, noise)


def _bend(phi: Radial, z: Float, delta: Float) -> tuple[Float, Float]:
    """2 (phi(z + delta) - phi(z) - phi'(z) delta) / delta^2, of small steps by the next derivatives, and by
    how much it may be off.
    """
    value, slope, second, third, fourth = phi.derivatives(z, 4)
    end = phi.value(np.maximum(z + delta, 0.0))
    near = second + third * delta / 3.0 + fourth * delta * delta / 12.0
    small = np.abs(third * delta) < _NEAR * second
    far = 2.0 * (end - value - slope * delta) / (delta * delta)
    lost = _UNIT * (value + np.abs(slope * delta)) / (delta * delta)
    return np.where(small, near, far), np.where(small, 1e-11 * second, lost)

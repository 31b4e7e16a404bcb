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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.geometry.ball import BallDomain
from gpcert.bounds.geometry.ball_quadratic import descended
from gpcert.bounds.geometry.ball_quadratic import multipliers as ellipsoid_multipliers
from gpcert.bounds.geometry.box_quadratic import curvature, settled_faces
from gpcert.bounds.geometry.domain import BoxDomain, Domain
from gpcert.bounds.local.gaussian.sums import KernelSum
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.kernels import Radial
from gpcert.proofs.levels import Place, ProofLevel, ProofPlane, slope_at
from gpcert.rounding import UNIT, gamma
from gpcert.validation import Float

#: Of a multiplier that has to show that a box misses a ball.
_DOUBLINGS = 60


class Multipliers(NamedTuple):
    """D (d,), y (d,), the ball's for its square and for its norm, and about the bound that they give.

    Those of the ball are of |u|^2 <= 1 and of |u|_1 <= 1, u = (d - offset) / unit.
    """

    D: Float
    y: Float
    value: float
    square: float = 0.0
    norm: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether they can be written."""
        return bool(np.isfinite([*self.D, *self.y, self.square, self.norm]).all())


@dataclass(frozen=True, eq=False)
class CheckedBall(BallDomain):
    """A ball whose reach is the checker's: |offset| and the longest half axis."""

    @classmethod
    def of(cls, ball: BallDomain) -> CheckedBall:
        return cls(ball.low, ball.high, ball.offset, ball.unit, ball.ball)

    def norm(self, metric: Float) -> float:
        o, reach = self.offset, self.reach
        root = float(np.sqrt(metric @ (o * o))) + float(np.sqrt((metric * self.unit**2).max()))
        return min(float(np.sqrt(metric @ (reach * reach))), root) * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class Outside(BoxDomain):
    """A box that misses the ball."""

    offset: Float
    unit: Float
    norm_of_ball: float


def multipliers(domain: Domain, g: Float, H: Float, enough: float) -> Multipliers:
    """For g.d + d^T H d / 2 on the domain; effort ends once `enough` is met."""
    try:
        if isinstance(domain, Outside):
            return _outside(domain, g, H, enough)
        if isinstance(domain, BallDomain):
            return _of_ball(domain, g, H, enough)
        return _of_box(g, H, domain.low, domain.high, enough)
    except np.linalg.LinAlgError:
        return Multipliers(np.zeros_like(g), np.zeros_like(g), -np.inf)


def _of_box(g: Float, H: Float, low: Float, high: Float, enough: float) -> Multipliers:
    """A coordinate j that is settled at an end (Q1) has y_j there and D_j = 2 |G_j| / width_j, G the
    gradient: the derivative of V5's quadratic then vanishes. Where that D does not make it convex, all are
    searched.
    """
    if len(g) == 1:
        return _of_interval(g, H, low, high)
    y, free, _ = settled_faces(g, H, low, high)
    D = np.zeros_like(g)
    if free.any():
        fixed = np.where(free, 0.0, y)
        rest = (g + H @ fixed)[free]
        short = enough - float(g @ fixed + 0.5 * fixed @ H @ fixed)
        D[free], y[free] = curvature(rest, H[np.ix_(free, free)], low[free], high[free], short, 1e-6)
    if not free.all():
        slope = np.abs(g + H @ y)
        D[~free] = (2.0 * slope / np.maximum(high - low, 1e-300))[~free]
        if not _convex(H, D):
            D, y = curvature(g, H, low, high, enough, 1e-6)
    return Multipliers(D, y, _dual(g, H, D, y, low, high) if _convex(H, D) else -np.inf)


def _of_interval(g: Float, H: Float, low: Float, high: Float) -> Multipliers:
    """One coordinate: a convex quadratic from its minimiser, any other one from its chord; both are exact."""
    curve = H[0]
    D, y = np.maximum(-curve, 0.0), np.zeros_like(g)
    if curve[0] > 0.0:
        y = np.clip(-g / curve, low, high)
    return Multipliers(D, y, _dual(g, H, D, y, low, high))


def _of_ball(domain: BallDomain, g: Float, H: Float, enough: float) -> Multipliers:
    """In normalised coordinates u = (d - offset) / unit, where the ball is |u| <= 1."""
    o, unit, ball = domain.offset, domain.unit, domain.ball
    constant, slope, matrix = _normalised(domain, g, H)
    low, high = ball.low, np.maximum(ball.high, ball.low + 1e-300)
    far = np.maximum(np.abs(low), np.abs(high))
    if ball.norm == 2.0 and (len(g) == 1 or far @ far <= 1.0):  # the box lies in the ball
        best = _of_box(slope, matrix, low, high, enough - constant)
    elif ball.norm == 2.0:
        ones = np.ones_like(g)
        D, E, u = ellipsoid_multipliers(slope, matrix, low, high, ones, enough - constant, 1e-6)
        best = _valued(slope, matrix, low, high, Multipliers(D, u, 0.0, float(E)))
    else:
        best = _of_cross(slope, matrix, domain, high, enough - constant)
    return Multipliers(best.D / unit**2, o + unit * best.y, constant + best.value, best.square, best.norm)


def _of_cross(slope: Float, matrix: Float, domain: BallDomain, high: Float, enough: float) -> Multipliers:
    """Norm 1: by the box alone, which is all that small boxes within the ball need; else the quadratic is
    made convex by the box, then by the ball, and the multiplier of the norm is that of its minimiser.
    """
    ball = domain.ball
    best = _of_box(slope, matrix, ball.low, high, enough)
    for D, E in ((best.D, 0.0), (np.zeros_like(slope), _convexity(matrix))):
        if best.value >= enough:
            break
        c, A = slope - 0.5 * D * (ball.low + high), matrix + np.diag(D + E)
        u = descended(c, A, ball)
        found = Multipliers(D, u, 0.0, E, ball.multiplier(c + A @ u))
        best = max(best, _valued(slope, matrix, ball.low, high, found), key=lambda each: each.value)
    return best


def _valued(slope: Float, matrix: Float, low: Float, high: Float, found: Multipliers) -> Multipliers:
    """With the bound that they give in normalised coordinates."""
    D, u, _, E, norm = found
    shifted = matrix + E * np.eye(len(u))
    value = _dual(slope, shifted, D, u, low, high, norm) - 0.5 * E - norm if _convex(shifted, D) else -np.inf
    return found._replace(value=value)


def _outside(domain: Outside, g: Float, H: Float, enough: float) -> Multipliers:
    """On a box that misses the ball, a large multiple of what is negative in the ball alone exceeds all."""
    constant, slope, matrix = _normalised(domain, g, H)
    low, high = ((end - domain.offset) / domain.unit for end in (domain.low, domain.high))
    u, D = np.clip(0.0, low, high), np.zeros_like(g)
    E, norm, value = _convexity(matrix), 0.0, -np.inf
    for _ in range(_DOUBLINGS):
        shifted = matrix + E * np.eye(len(g))
        value = constant + _dual(slope, shifted, D, u, low, high, norm) - 0.5 * E - norm
        if value >= enough:
            break
        if domain.norm_of_ball == 1.0:
            norm = 2.0 * norm + float(np.abs(slope).max())
        else:
            E = 2.0 * E + float(np.abs(slope).max())
    return Multipliers(D, domain.offset + domain.unit * u, value, E, norm)


def _normalised(domain: BallDomain | Outside, g: Float, H: Float) -> tuple[float, Float, Float]:
    """Constant, slope and matrix in the coordinates u = (d - offset) / unit."""
    o, unit = domain.offset, domain.unit
    Ho = H @ o
    return float((g + 0.5 * Ho) @ o), (g + Ho) * unit, H * np.outer(unit, unit)


def _convexity(matrix: Float) -> float:
    """A multiple of the identity that makes it convex."""
    least = max(0.0, -float(np.linalg.eigvalsh(matrix)[0])) * (1.0 + 1e-9)
    return least + 1e-12 * float(np.abs(matrix).max())


def _convex(H: Float, D: Float) -> bool:
    try:
        np.linalg.cholesky(H + np.diag(D * (1.0 + 1e-12) + 1e-13 * np.abs(H).max()))
    except np.linalg.LinAlgError:
        return False
    return True


def _dual(g: Float, H: Float, D: Float, y: Float, low: Float, high: Float, norm: float = 0.0) -> float:
    """Q2; with a multiplier of sum |d_j| the linear part has a kink at 0."""
    c = g - 0.5 * D * (low + high)
    Ay = H @ y + D * y
    G = c + Ay
    ends = [G * d + norm * np.abs(d) for d in (low, high, np.clip(0.0, low, high) if norm else low)]
    return float((c * y + 0.5 * Ay * y + 0.5 * D * low * high - G * y + np.minimum.reduce(ends)).sum())


#: What a value has above 0, relative to the terms it is made of, passes surely.
CLEAR = 1e-12
#: Theta of a form as a share of the balanced one (any is sound).
_THETA = 0.35
#: Features up to which the cubic alone is a form, made from its tensor.
TENSOR = 24


class LeafForms(NamedTuple):
    """Orders from three on: one form for each theta, the rest by one norm, of this metric if `own`."""

    metric: Float
    thetas: tuple[float, ...]
    own: bool
    square: float  #: of the norm of the orders that are forms


class Leaf(NamedTuple):
    """What proves a level on a box; `hints`: those of its plane."""

    reference: Float
    level: ProofLevel
    hints: dict[str, Any]
    forms: LeafForms | None
    programme: Multipliers
    clear: float  #: what is left above 0, relative to the terms it is made of

    @property
    def passes(self) -> bool:
        """Whether the value is positive by more than rounding."""
        return self.clear >= CLEAR


class LeafExpansion(NamedTuple):
    """A plane around its reference; its orders from two on are at least d^T (H - rest I) d/2."""

    plane: ProofPlane
    H: Float
    forms: LeafForms | None
    rest: float
    hidden: Float  #: (d,): by how much the diagonal of H may be larger, seen by a checker that rounds less

    @property
    def size(self) -> float:
        """Of the terms whose sum it is."""
        kernels, c = self.plane.kernels, self.plane.kernels.around
        return float(np.abs(kernels.b) @ c.k) + abs(kernels.still) + self.plane.size * math.exp(c.radius)

    @property
    def known(self) -> LeafExpansion:
        """As a checker may find it, who knows the rest better."""
        if self.forms is not None and self.forms.own:
            return self._replace(H=self.H + np.diag(self.hidden))
        return self._replace(rest=self.rest - float(self.hidden[0]))


def expansion(place: Place, level: ProofLevel) -> LeafExpansion | None:
    """None where e^r says nothing any more."""
    plane = level.below(place)
    if plane is None or not plane.kernels.around.radius < 50.0:
        return None
    kernels, H = plane.kernels, plane.kernels.head[2]
    H, forms = _with_orders(kernels, H, place.sharp)
    metric, tail, known = _tail(kernels, forms)
    hidden = 2.0 * (tail - known) * metric
    if forms is not None and forms.own:
        return LeafExpansion(plane, H - np.diag(2.0 * tail * metric), forms, 0.0, hidden)
    return LeafExpansion(plane, H, forms, 2.0 * tail, hidden)


def leaf_at(place: Place, level: ProofLevel) -> Leaf | None:
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


def _noise(place: Place, found: LeafExpansion, best: Multipliers, H: Float) -> float:
    """More than the rounding of a leaf's value, and than what a checker's guess of a factor costs it."""
    kernels, c = found.plane.kernels, found.plane.kernels.around
    terms = slope_at(place, found.plane) * float(c.k @ (np.abs(place.slice.model.precision) @ c.k))
    inner = float((np.abs(kernels.b) * c.k) @ c.relative)
    factor = 2e-14 * (float(np.abs(np.diagonal(H)).sum()) + float(best.D.sum())) * c.s * c.s
    return 32.0 * UNIT * (found.size + terms) + 2.0 * inner + factor


def _tail(kernels: KernelSum, forms: LeafForms | None) -> tuple[Float, float, float]:
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


def _with_orders(kernels: KernelSum, H: Float, sharp: int) -> tuple[Float, LeafForms | None]:
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
    return H, LeafForms(c.metric, tuple(thetas), not few, square)


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


def leaf_on(place: Place, level: ProofLevel) -> Leaf | None:
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

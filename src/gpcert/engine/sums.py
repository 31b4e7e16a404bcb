"""Lower bounds of one sum of Gaussian kernels per row, over one box per row (docs/maths/batches.md, J2
and J5).

    e^r f = still + sum_i b_i k_i e^{a_i} + constant e^r - (lost, bend),    a_i = d . v_i,  r = |d|^2 / 2:

`order_two` needs the gradient alone, and its minimum over a box is termwise; `quadratic` knows the
Hessian. What lies beyond is bounded by one norm in the metric L, a product with one fixed matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gpcert.engine.backend import Array
from gpcert.engine.boxes import Boxes
from gpcert.engine.facts import Facts
from gpcert.engine.planes import Plane
from gpcert.engine.rounding import exp_up, sqrt_up, tail_squares
from gpcert.engine.values import Points
from gpcert.rounding import UNDERFLOW, UNIT, gamma

#: J1: (|L^-1 z| + |L^-1 y|)^2 of rows that are bounded at all.
_FARTHEST = 180.0
#: What depends on the points alone.
_OF_POINTS = "bk", "value", "gradient", "_form", "_size"


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of a batch of planes, expanded at their points over their boxes; `few` and `missed` (N,):
    J23's sums of fewer centres, which stand for these from order two on, and what they miss, in norm.
    """

    at: Points
    boxes: Boxes
    plane: Plane
    few: Sums | None = None
    missed: Array = None

    def take(self, rows: Array) -> Sums:
        """Those of some rows, with what is known of them."""
        seen = (None, None) if self.few is None else (self.few.take(rows), self.missed[rows])
        few = Sums(self.at.take(rows), self.boxes.take(rows), self.plane.take(rows), *seen)
        for name in (*_OF_POINTS, "excess", "slope", "_grow"):
            if name in self.__dict__:
                few.__dict__[name] = self.__dict__[name][rows]
        return few

    def on(self, boxes: Boxes) -> Sums:
        """The same on other boxes, which need not hold the points, with what does not depend on them."""
        seen = None if self.few is None else self.few.on(replace(boxes, facts=self.few.at.facts))
        other = replace(self, boxes=boxes, few=seen)
        other.__dict__.update({name: self.__dict__[name] for name in _OF_POINTS if name in self.__dict__})
        return other

    @property
    def _facts(self) -> Facts:
        return self.at.facts

    @property
    def seen(self) -> Sums:
        """The sums of order two and beyond."""
        return self if self.few is None else self.few

    @cached_property
    def apart(self) -> Array:
        """J23: t (N,), t |d|^2 is at least what orders from two on of these differ by from those of `few`."""
        if self.few is None:
            return self.value * 0.0
        backend, squares = self._facts.backend, self.boxes.squares
        return self.missed * sqrt_up(backend, tail_squares(backend, 2, squares)) / squares * (1.0 + 1e-9)

    @property
    def _features(self) -> int:
        return int(self.at.y.shape[1])

    @cached_property
    def bk(self) -> Array:
        """b_i k_i (N, n): from here on these doubles define the sum."""
        return self.plane.b * self.at.k

    @cached_property
    def value(self) -> Array:
        """Order zero (N,)."""
        return self._facts.backend.xp.sum(self.bk, axis=1)

    @cached_property
    def gradient(self) -> Array:
        """Order one (N, d)."""
        return self.bk @ self._facts.Z - self.value[:, None] * self.at.y

    @cached_property
    def _grow(self) -> Array:
        """At least e^r on the box (N,)."""
        return exp_up(self._facts.backend, 0.5 * self.boxes.squares * (1.0 + 4 * UNIT))

    @cached_property
    def slope(self) -> Array:
        """X6: constant e^r - bend 2 (e^r - 1) >= constant + slope r (N,): tangents where convex, else
        chords.
        """
        xp = self._facts.backend.xp
        radius = 0.5 * self.boxes.squares * (1.0 + 4 * UNIT)
        chord = xp.expm1(radius) / radius * (1.0 + 64 * UNIT)
        constant, bend = self.plane.constant, self.plane.bend
        slope = xp.where(constant >= 0, constant, constant * chord)
        return slope - 2.0 * bend * chord * (1.0 + 8 * UNIT) - 64 * UNIT * xp.abs(constant) * self._grow

    @cached_property
    def excess(self) -> Array:
        """What e^r f may lack besides the remainders (N,): J5, (i) to (iii)."""
        plane, xp = self.plane, self._facts.backend.xp
        s = xp.sqrt(self.boxes.squares) * (1.0 + 8 * UNIT)
        longest = (self.at.norms + self._facts.reach) * (1.0 + 1e-9)  # |z_i| + |y|
        moved = self.at.unit + 8 * UNIT * (1.0 + s * longest)
        stretched = s * longest
        polynomial = 1.0 + stretched + 0.5 * stretched * stretched
        n = self.bk.shape[1]
        found = (plane.lost + plane.blur + 1.02 * moved * plane.size) * self._grow
        found = found + 3.1 * gamma(n + 32) * xp.sum(xp.abs(self.bk), axis=1) * polynomial
        sizes = xp.abs(self.value) + plane.still + xp.abs(plane.constant)
        found = found * (1.0 + 1e-9) + gamma(80) * sizes * self._grow + UNDERFLOW
        return found if self.few is None else found + self.few.excess

    @cached_property
    def _form(self) -> Array:
        """J2: sum_ij bk_i bk_j exp(v_i L^-2 v_j) (N,)."""
        u = self._tilted
        return self._facts.backend.xp.sum((u @ self._facts.exponentials) * u, axis=1) * self._turned**2

    @cached_property
    def _tilted(self) -> Array:
        u = self._facts.backend.xp.exp(-(self.at.y @ self._facts.tilted.T))
        u *= self.bk
        return u

    @cached_property
    def _turned(self) -> Array:
        """exp(|L^-1 y|^2 / 2) (N,)."""
        y = self.at.y
        return self._facts.backend.xp.exp(0.5 * ((y * y) @ self._facts.metrics[1]))

    @cached_property
    def _size(self) -> Array:
        """At least sum_i |bk_i| exp(|L^-1 v_i|^2 / 2) (N,)."""
        xp = self._facts.backend.xp
        return (xp.abs(self._tilted) @ self._facts.sizes[0]) * self._turned * (1.0 + 1e-8)

    def remainder(self, known: Array, order: int, within: Array = None) -> Array:
        """J2: t (N,) with |orders from `order` on| <= t |L d|^2 on the box, or where |L d|^2 <= `within`
        (N,), if the orders below have the squared norm `known` (N,) in units of L.
        """
        facts, backend = self._facts, self._facts.backend
        xp, d, n = backend.xp, self._features, self.bk.shape[1]
        longest = facts.sizes[1]
        turned = xp.sqrt((self.at.y * self.at.y) @ facts.metrics[1]) * (1.0 + 1e-9) + longest
        # (i) terms of the form: exponents of E, of u twice and of e^c; exp thrice; two sums over n
        squared = turned * turned
        entry = 16.0 * UNIT * (d + 16) * squared + 160 * UNIT + gamma(2 * n + 16)
        # (ii) the head in norm: sums over n of terms (1, |v|, |v|^2/sqrt 2) with |v| <= |z| + |y|
        head = 3.1 * gamma(n + 32) * xp.sqrt(1.0 + squared + 0.5 * squared * squared) * (1.0 + 1e-9)
        size, form = self._size, self._form
        slack = size * size * (2.0 * entry + head * head) + 2.0 * head * size * xp.sqrt(known)
        square = xp.clip(form - known, 0.0, None) + (slack + gamma(d * d + 64) * known) * 1.02 + UNDERFLOW
        usable = xp.where(squared < _FARTHEST, square, square * 0.0 + float("inf"))
        span = self.boxes.span if within is None else within
        tail = tail_squares(backend, order, span)
        return sqrt_up(backend, usable) * sqrt_up(backend, tail) / span * (1.0 + 1e-9)

    def latent(self, values: Array) -> Array:
        """From bounds of e^r f to bounds of f (N,): a positive one shrinks by e^R, a negative one is kept."""
        return self._facts.backend.xp.where(values > 0, values / self._grow * (1.0 - 16 * UNIT), values)

    def order_two(self) -> Array:
        """J5: a lower bound of e^r f on the box (N,), without a Hessian."""
        xp, seen = self._facts.backend.xp, self.seen
        metric, inverse = seen._facts.metrics
        known = seen.value**2 + (seen.gradient * seen.gradient) @ inverse
        lam = seen.remainder(known, 2)[:, None] * metric
        lam = lam + (self.apart + 0.5 * xp.clip(-self.slope, 0.0, None))[:, None]
        least, size = self.boxes.separable(self.gradient, lam)
        total = self.value + self.plane.still + self.plane.constant
        return total + least - self.excess - gamma(2 * self._features + 80) * size

    def hessian(self) -> Array:
        """G5 of the packed products: order two (N, d, d), symmetric to the last bit."""
        first = self.gradient + 0.5 * self.value[:, None] * self.at.y
        return unpacked(self._facts, self.bk, first, self.at.y)

    def cubic(self, centres: int) -> tuple[Array, Array, Array, Array]:
        """J11 of so many centres, those that count most: N (N, d, d), symmetric to the last bit, what its
        eigenvalues may lack (N,), at most |T_3|^2 / 6 (N,) of all, and rho of the others (N,).
        """
        facts, xp, d = self._facts, self._facts.backend.xp, self._features
        terms, size = 2 * self.bk.shape[1] + 4 * d + 400, self._size * self._size * 1.02
        Z, beta, rho = facts.Z[None, :, :], self.bk, self.value * 0.0
        if centres < self.bk.shape[1]:
            cubes = self._cubes()
            order = xp.argsort(-cubes, axis=1)
            here = facts.backend.arange(len(order))[:, None]
            rho = xp.sum(cubes[here, order[:, centres:]], axis=1) * (1.0 / 6.0) * (1.0 + 1e-9)
            Z, beta = facts.Z[order[:, :centres]], beta[here, order[:, :centres]]
        v = (Z - self.at.y[:, None, :]) / xp.sqrt(facts.metrics[0])
        G, B = facts.backend.grams(v), v * beta[:, :, None]
        power = G * G
        N = (facts.backend.transposed(B) @ (power @ B)) * (1.0 / 36.0)
        power *= G
        cube = xp.sum((power @ beta[:, :, None])[:, :, 0] * beta, axis=1) * (1.0 / 6.0)
        cube = xp.clip(cube - 0.25 * gamma(terms) * size, 0.0, None)
        cube = xp.clip(xp.sqrt(cube) * (1.0 - 1e-9) - 2.45 * rho, 0.0, None) ** 2 * (1.0 - 1e-9)
        return 0.5 * (N + facts.backend.transposed(N)), 0.04 * gamma(terms) * size, cube, rho

    def _cubes(self) -> Array:
        """At least |bk_i| |L^-1 v_i|^3 (N, n)."""
        facts, xp, y, d = self._facts, self._facts.backend.xp, self.at.y, self._features
        inverse = facts.metrics[1]
        mine, theirs = (y * y) @ inverse, (facts.Z * facts.Z) @ inverse
        lengths = mine[:, None] + theirs - 2.0 * (y @ facts.tilted.T)
        lengths = lengths + 4.0 * gamma(d + 16) * (mine[:, None] + theirs)
        lengths = xp.clip(lengths, 0.0, None)
        return xp.abs(self.bk) * lengths * xp.sqrt(lengths)

    def order_three(self, tries: int) -> Array:
        """J5: a lower bound of e^r f on the box (N,), with the Hessian; exact to order two."""
        xp, box, g, seen = self._facts.backend.xp, self.boxes, self.gradient, self.seen
        H = seen.hessian()
        metric = seen._facts.metrics[0]
        norm = xp.sqrt(xp.sum(H * H, axis=(1, 2)))
        rest = seen.remainder(seen.known(H), 3)
        diagonal = (self.slope - 2.0 * self.apart)[:, None] - 2.0 * rest[:, None] * metric
        size = xp.sum(xp.abs(diagonal) * box.reach * box.reach, axis=1) + norm * box.squares
        base = self.value + self.plane.still + self.plane.constant
        return box.quadratic(g, H, diagonal, base, self.excess, size, tries).value

    def known(self, H: Array) -> Array:
        """The squared norm of the orders below three (N,), in units of L; H (N, d, d) is the Hessian."""
        inverse = self._facts.metrics[1]
        first = (self.gradient * self.gradient) @ inverse
        return self.value**2 + first + 0.5 * (((H * H) @ inverse) @ inverse)


def seen_by_few(sums: Sums) -> Sums:
    """The same with J23's fewer centres, where these know the planes."""
    at, where, plane = sums.at, sums.boxes, sums.plane
    if plane.parts is None or at.facts.fewer is None:
        return sums
    facts, fewer = at.facts.fewer
    around, zero = at.amplitudes.seen(facts, fewer.which), plane.still * 0.0
    b = fewer.of(plane.parts)
    size = around.sum(facts.backend.xp.abs(b)) + zero
    here = Points(facts, around, at.y, at.k[:, fewer.which], at.unit)
    few = Sums(here, replace(where, facts=facts), Plane(b, zero, zero, zero, zero, size, zero))
    return replace(sums, few=few, missed=fewer.missed(facts.backend.xp, plane.parts))


def unpacked(facts: Facts, weights: Array, first: Array, y: Array) -> Array:
    """J5: sum_i weights_i (z_i - y)(z_i - y)^T (N, d, d) from packed products, `first` (N, d) its a."""
    (rows, columns, place), xp, d = facts.triangle, facts.backend.xp, int(y.shape[1])

    def at(values: Array, places: Array) -> Array:
        # Not by an index, which leaves each row scattered: products of many matrices need it in one piece.
        return xp.take(values, places, axis=1)

    pairs, backend = len(facts.Z) * len(rows), facts.backend
    shared = len(y) > backend.few and pairs <= backend.most_pairs
    packed = weights @ facts.pairs if shared else _packed(facts, weights)
    packed -= at(y, rows) * at(first, columns) + at(first, rows) * at(y, columns)
    return xp.reshape(at(packed, place), (len(y), d, d))


def _packed(facts: Facts, weights: Array) -> Array:
    """The same products without the pairs, which few rows read more slowly than they make them."""
    xp, (rows, columns, _) = facts.backend.xp, facts.triangle

    def product(each: Array) -> Array:
        scaled = xp.sqrt(xp.abs(each))[:, None] * facts.Z
        more, less = scaled[each > 0], scaled[each < 0]  # with its own transpose: half the work
        return more.T @ more - less.T @ less

    return xp.stack([product(each)[rows, columns] for each in weights])

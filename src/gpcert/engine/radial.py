"""Lower bounds of one sum of kernels per row, for kernels other than the Gaussian (docs/maths/batches.md,
J14 and J15).

A sum of kernels is an element f of the RKHS. What its value and gradient at the reference do not tell is
orthogonal to k(., xh) and to its derivatives, so that at xh + d

    f = f(xh) phi(r) + g.d phi'(r)/phi'(0) + rest,    |rest| <= |f's rest| pi(r),

pi the power function of these data, in closed form; likewise with the Hessian, where phi''(0) is finite. No
remainder is summed centre by centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpcert.engine.backend import Array
from gpcert.engine.boxes import Boxes
from gpcert.engine.facts import Facts
from gpcert.engine.planes import Plane
from gpcert.engine.profiles import Ends, Thirds
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.sums import unpacked
from gpcert.engine.values import Points
from gpcert.rounding import UNDERFLOW, UNIT, gamma


class Data(NamedTuple):
    """Of each row's f: value (N,) and gradient (N, d) at the reference, their errors (N,), at least sum |b|,
    |z_i| + |y|, s2 |f|^2 and less than what the two tell of it (N,).
    """

    value: Array
    value_error: Array
    g: Array
    g_error: Array
    total: Array
    longest: Array
    norm: Array
    known: Array

    def take(self, rows: Array) -> Data:
        """Those of some rows."""
        return Data(*(each[rows] for each in self))


@dataclass(frozen=True, eq=False)
class RadialSums:
    """The sums of a batch of planes, seen from their points, as `Sums`."""

    at: Points
    boxes: Boxes
    plane: Plane

    def take(self, rows: Array) -> RadialSums:
        """Those of some rows, with what is known of them."""
        few = RadialSums(self.at.take(rows), self.boxes.take(rows), self.plane.take(rows))
        if "data" in self.__dict__:
            few.__dict__["data"] = self.data.take(rows)
        return few

    @property
    def _facts(self) -> Facts:
        return self.at.facts

    @property
    def _radius(self) -> Array:
        return 0.5 * self.boxes.squares * (1.0 + 4 * UNIT)

    @cached_property
    def _ends(self) -> Ends:
        return self._facts.profile.ends(self._facts.backend, self._radius)

    def latent(self, values: Array) -> Array:
        """From bounds of G f to bounds of f (N,): a positive one shrinks by G, a negative one is kept."""
        return self._facts.backend.xp.where(values > 0, values / self._ends.grow * (1.0 - 16 * UNIT), values)

    def order_two(self) -> Array:
        """J14: a lower bound of G f on the row (N,)."""
        xp, ends, data = self._facts.backend.xp, self._ends, self.data
        rest = self._rest(data.known)
        base, slope, lost = self._along_r(ends)
        lam = xp.clip(rest * ends.square - 0.5 * slope, 0.0, None)[:, None] + data.g * 0.0
        least, size = self.boxes.separable(data.g, lam)
        lost = lost + rest * ends.constant + data.g_error * self._reach
        return base + least - lost * (1.0 + 1e-9) - gamma(2 * data.g.shape[1] + 80) * size - UNDERFLOW

    def _along_r(self, ends: Ends | Thirds) -> tuple[Array, Array, Array]:
        """What depends on r alone (N,): the value at the reference, a slope in r, and losses."""
        plane, xp, first = self.plane, self._facts.backend.xp, self._facts.profile.first
        B = plane.constant
        value, error = self.data.value, self.data.value_error
        base = value + plane.still + B
        base = base - error - gamma(16) * (xp.abs(value) + plane.still + xp.abs(B))
        base = xp.where(base > 0, base, base * ends.level)
        slope = xp.where(B >= 0, B * first, B * ends.chord) - 2.0 * plane.bend * ends.chord
        slope = slope - gamma(64) * (xp.abs(B) + plane.bend) * (ends.chord + first)
        return base, slope, (plane.lost + plane.blur) * ends.grow

    @property
    def _reach(self) -> Array:
        return sqrt_up(self._facts.backend, self.boxes.squares)

    @cached_property
    def data(self) -> Data:
        """See `Data`."""
        facts, at, b = self._facts, self.at, self.plane.b
        xp, s2, profile = facts.backend.xp, facts.model.variance, facts.profile
        n, sizes = b.shape[1], xp.abs(b)
        value = xp.sum(b * at.k, axis=1)
        value_error = 1.02 * (at.unit + gamma(n + 64)) * xp.sum(sizes * at.k, axis=1) + UNDERFLOW
        steep = b * at.steep
        g = steep @ facts.Z - xp.sum(steep, axis=1)[:, None] * at.y
        longest = (at.norms + facts.reach) * (1.0 + 1e-9)
        total = xp.sum(sizes, axis=1) * (1.0 + 1e-9)
        own = (at.evaluation + 8 * UNIT + 3.1 * gamma(n + 32)) * longest * xp.sum(xp.abs(steep), axis=1)
        g_error = 1.02 * (own + s2 * total * profile.turned(at.error, longest)) + UNDERFLOW
        length = xp.sqrt(xp.sum(g * g, axis=1)) * (1.0 - 1e-12)
        known = xp.clip(xp.abs(value) - value_error, 0.0, None) ** 2
        known = known + xp.clip(length - g_error, 0.0, None) ** 2 / profile.first
        norm = xp.sum((b @ facts.gram[0]) * b, axis=1) * s2 * s2
        return Data(value, value_error, g, g_error, total, longest, norm, known)

    def _rest(self, known: Array) -> Array:
        """At least s |the rest of f| (N,), if the squared norm of what is known is at least that."""
        backend, data, n, d = self._facts.backend, self.data, self.plane.b.shape[1], self.data.g.shape[1]
        size = self._facts.model.variance * data.total
        wrong = 1.02 * (self._facts.gram[1] + gamma(2 * n + 32)) * size * size
        left = backend.xp.clip(data.norm - known, 0.0, None)
        left = left + wrong + gamma(d * d + 64) * (backend.xp.abs(data.norm) + known)
        return sqrt_up(backend, left) * (1.0 + 1e-9) + UNDERFLOW

    def order_three(self, tries: int) -> Array:
        """J15: a lower bound of G f on the row (N,), with the Hessian; there is nothing sharper."""
        facts, xp, data, box = self._facts, self._facts.backend.xp, self.data, self.boxes
        profile, d = facts.profile, data.g.shape[1]
        ends = profile.thirds(facts.backend, self._radius)
        H, shift, wrong = self._hessian()
        trace, share = xp.sum(xp.reshape(H, (len(H), d * d))[:, :: d + 1], axis=1) + d * shift, self._share(d)
        squares = xp.sum(H * H, axis=(1, 2)) + 2.0 * shift * (trace - d * shift) + d * shift * shift
        terms = xp.sum(H * H, axis=(1, 2)) + 2.0 * xp.abs(shift) * (xp.abs(trace) + d * xp.abs(shift))
        squares = squares - gamma(d * d + 64) * (terms + d * shift * shift + share * trace * trace)
        told = xp.sqrt(xp.clip(squares - share * trace * trace, 0.0, None)) * (1.0 - 1e-9) - wrong
        told = xp.clip(told, 0.0, None) ** 2 / (2.0 * profile.second)
        rest = self._rest(data.known + told * (1.0 - 1e-9))
        base, slope, lost = self._along_r(ends)
        spread = share / (profile.second - profile.first**2) * (xp.abs(trace) + d**0.5 * wrong)
        diagonal = slope - 2.0 * rest * ends.square - 2.0 * spread * ends.trace * (1.0 + 1e-9)
        lost = lost + data.g_error * self._reach * (1.0 + ends.linear)
        lost = lost + ends.linear * box.most(-data.g)
        lost = (lost + 0.5 * wrong * box.squares) * (1.0 + 1e-9) + UNDERFLOW
        size = (xp.abs(diagonal) + xp.abs(shift) + xp.sqrt(xp.sum(H * H, axis=(1, 2)))) * box.squares
        whole = (diagonal + shift)[:, None] + data.g * 0.0
        found = box.quadratic(data.g, H, whole, base, lost, size, tries).value
        return xp.where(found > 0, found * (self._ends.grow / ends.grow) * (1.0 - 16 * UNIT), found)

    def _share(self, d: int) -> float:
        """J15: what of the squared trace of a Hessian counts twice."""
        profile = self._facts.profile
        return 1.0 / (2.0 * profile.second / (profile.second - profile.first**2) + d)

    def _hessian(self) -> tuple[Array, Array, Array]:
        """sum_i b_i s2 phi''_i v v^T (N, d, d), what is to be added to its diagonal to make it the Hessian
        of the part of f orthogonal to k(., xh), and the norm of the errors of both; (N,).
        """
        facts, at, data = self._facts, self.at, self.data
        xp, s2, profile, y = facts.backend.xp, facts.model.variance, facts.profile, at.y
        n, d = self.plane.b.shape[1], y.shape[1]
        curve = self.plane.b * (s2 * profile.curve(xp, at.exponent))
        H = unpacked(facts, curve, curve @ facts.Z - 0.5 * xp.sum(curve, axis=1)[:, None] * y, y)
        steep = self.plane.b * at.steep
        shift = profile.first * data.value - xp.sum(steep, axis=1)
        slopes = xp.sum(xp.abs(steep), axis=1)
        wrong = (at.evaluation + 16 * UNIT + 4.7 * gamma(n + 32)) * data.longest**2
        wrong = wrong * xp.sum(xp.abs(curve), axis=1) + s2 * data.total * profile.bent(at.error)
        own = (at.evaluation + gamma(n + 64)) * slopes + s2 * profile.second * data.total * at.error
        own = (
            own + profile.first * data.value_error + 8 * UNIT * (profile.first * xp.abs(data.value) + slopes)
        )
        return H, shift, 1.02 * (wrong + d**0.5 * own) + UNDERFLOW

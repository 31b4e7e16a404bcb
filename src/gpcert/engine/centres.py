"""Lower bounds of one sum of radial kernels per row, centre by centre (docs/maths/batches.md, J29).

Seen from the reference, z_i(x) = z_i + delta_i, delta_i = r - a_i, a_i = d . v_i, r = |d|^2 / 2, and

    phi(z + delta) = phi - |phi'| delta + C(delta) delta^2,

where C falls (Lemma K, iii): its value at the right end of the range of delta bounds b phi from below where
b > 0, at the left end where b < 0. The squares add up to one form and a little: what cancels costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpcert.engine.backend import Array
from gpcert.engine.boxes import Boxes
from gpcert.engine.facts import Facts
from gpcert.engine.planes import Plane
from gpcert.engine.quadratic import Minima
from gpcert.engine.rounding import sqrt_up
from gpcert.engine.squares import Squares
from gpcert.engine.values import Points
from gpcert.rounding import UNDERFLOW, UNIT, gamma

#: Where the plane's own kernel is touched by a line in r, as a share of the largest r; any is sound.
_TOUCH = 0.25


class _Scalars(NamedTuple):
    """Per centre (N, n): z, s2 phi and s2 |phi'| there, and the ends of the range of delta, outward."""

    z: Array
    k: Array
    steep: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Centres:
    """The sums of a batch of planes, seen from their points, over sets that need not hold these."""

    at: Points
    boxes: Boxes
    plane: Plane

    @property
    def _facts(self) -> Facts:
        return self.at.facts

    @cached_property
    def _v(self) -> Array:
        """z_i - y (N, d, n)."""
        facts = self._facts
        return facts.backend.transposed(facts.Z[None, :, :] - self.at.y[:, None, :])

    @cached_property
    def _evaluation(self) -> Array:
        """Relative errors of phi and its derivatives (N, 1), at any z within the set."""
        xp, of = self._facts.backend.xp, self._scalars
        farthest = xp.max(of.z + xp.clip(of.high, 0.0, None), axis=1)
        return self._error(farthest)[:, None]

    def _error(self, z: Array) -> Array:
        """K1, as J14's."""
        return (24.0 * self._facts.profile.exponent(self._facts.backend.xp, -z) + 128.0) * UNIT

    @cached_property
    def _moved(self) -> Array:
        """At least |d|^2/2 + |d| |v_i| on the rows (N,)."""
        h = sqrt_up(self._facts.backend, self.boxes.squares)
        longest = (self.at.norms + self._facts.reach) * (1.0 + 1e-9)
        return (0.5 * h * h + h * longest) * (1.0 + 1e-9)

    @cached_property
    def _scalars(self) -> _Scalars:
        facts, v, xp = self._facts, self._v, self._facts.backend.xp
        low, high = self.boxes.low[:, :, None], self.boxes.high[:, :, None]
        z = -self.at.exponent + 1.05 * self.at.error[:, None]  # at least the true one, so that z + delta >= 0
        k, steep = facts.profile.both(xp, -z)
        nearest = xp.minimum(xp.maximum(v, low), high)
        slack = (gamma(2 * v.shape[1] + 40) * self._moved)[:, None]
        least = xp.sum(nearest * (0.5 * nearest - v), axis=1) - slack
        most = xp.sum(xp.maximum(low * (0.5 * low - v), high * (0.5 * high - v)), axis=1) + slack
        s2 = facts.model.variance
        return _Scalars(z, s2 * k, s2 * steep, xp.maximum(least, -z), most)

    @cached_property
    def _curvature(self) -> tuple[Array, Array]:
        """e_i = b_i C_i (N, n), towards the lower side of b_i phi, and K5's coefficients of r instead."""
        facts, xp, b = self._facts, self._facts.backend.xp, self.plane.b
        profile, s2, of = facts.profile, facts.model.variance, self._scalars
        below, error = b < 0, self._evaluation * 1.01
        end = xp.where(below, of.low, of.high)
        far = s2 * profile.both(xp, -(of.z + end))[0]
        linear, square = of.steep * xp.abs(end), end * end
        rise = far - of.k + of.steep * end
        wrong = (error + 8 * UNIT) * (far + of.k + linear)
        # Where the quotient is mostly rounding, half of phi'' takes over at the end, or at 0.
        inner = xp.where(below, xp.clip(of.low, None, 0.0), xp.clip(of.high, 0.0, None))
        half = 0.5 * s2 * profile.curve(xp, -(of.z + inner))
        upper, lower = (rise + wrong) / square * (1.0 + 8 * UNIT), (rise - wrong) / square * (1.0 - 8 * UNIT)
        most, least = half * (1.0 + 2.0 * error), half * (1.0 - 2.0 * error)
        upper, lower = xp.where(upper < most, upper, most), xp.where(lower > least, lower, least)
        C = xp.where(below, upper * (1.0 + 8 * UNIT), xp.clip(lower, 0.0, None) * (1.0 - 8 * UNIT))
        if profile.second < float("inf"):
            return b * C, b * 0.0
        line = s2 * profile.bend * (1.0 + 1e-12) + of.steep * (1.0 + error)
        widest = xp.maximum(-of.low, 0.5 * of.high)
        radius = 0.5 * self.boxes.squares[:, None]
        flat = below & ~(line * radius >= C * widest * widest)
        return xp.where(flat, b * 0.0, b * C), xp.where(flat, b * line * (1.0 + 4 * UNIT), b * 0.0)

    def minimum(self, squares: Squares | None, aim: Array, tries: int) -> tuple[Minima, Array, Array]:
        """Lower bounds of f on the rows, with what the planes leave out if that is given; what rounding takes
        from them (N,), and the sizes of what curves along each feature (N, d).
        """
        facts, plane, xp, box = self._facts, self.plane, self._facts.backend.xp, self.boxes
        of, v, (e, flat), moved = self._scalars, self._v, self._curvature, self._moved
        n = plane.b.shape[1]
        radius = 0.5 * box.squares * (1.0 + 4 * UNIT)
        steep = plane.b * of.steep
        value, slope = xp.sum(plane.b * of.k, axis=1), xp.sum(steep, axis=1)
        g, ev = (v @ steep[:, :, None])[:, :, 0], (v @ e[:, :, None])[:, :, 0]
        H = 2.0 * ((v * e[:, None, :]) @ facts.backend.transposed(v))
        H = 0.5 * (H + facts.backend.transposed(H))
        own, constant = plane.still + 2.0 * plane.bend, plane.constant - 2.0 * plane.bend
        touch = _TOUCH * radius
        share, fall = facts.profile.both(xp, -touch)
        base = value + constant + own * (share + fall * touch)
        diagonal = xp.sum(flat, axis=1) - slope - own * fall - box.most(2.0 * ev)
        diagonal = diagonal + xp.clip(xp.sum(e, axis=1), None, 0.0) * radius
        more, spent = H * 0.0, value * 0.0
        if squares is not None and squares.known:
            _, more, spent = squares.within(box.squares, aim)
        sizes = xp.sum(xp.abs(plane.b) * of.k, axis=1), xp.sum(xp.abs(steep), axis=1)
        curved, lines = xp.sum(xp.abs(e), axis=1), xp.sum(xp.abs(flat), axis=1)
        rough = gamma(n + 64)
        lost = (rough + 1.02 * self._evaluation[:, 0]) * (sizes[0] + sizes[1] * moved)
        lost = lost + rough * (curved * moved * moved + lines * radius)
        own_size = own * (1.0 + facts.profile.first * radius)
        lost = lost + 1.02 * self._error(touch) * own_size
        lost = lost + 1.2 * self.at.unit * plane.size + plane.lost + plane.blur
        lost = lost + gamma(80) * (xp.abs(value) + xp.abs(constant) + own_size)
        norm = xp.sqrt(xp.sum(H * H, axis=(1, 2))) + xp.sqrt(xp.sum(more * more, axis=(1, 2)))
        size = (xp.abs(diagonal) + norm + sizes[1] + lines + own * facts.profile.first) * box.squares
        lost = (lost + spent) * (1.0 + 1e-9) + UNDERFLOW
        H = H + more
        width = box.high - box.low
        found = box.quadratic(g, H, diagonal[:, None] + g * 0.0, base, lost, size, tries, 2)
        return found, lost, xp.sum(xp.abs(H) * width[:, None, :], axis=2) * width

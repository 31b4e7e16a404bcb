"""Other kernels than the Gaussian, k = s2 phi(z): a sum of kernels over a leaf, centre by centre (V13).

Around a reference z_i(x) = z_i + delta_i, delta_i = r - a_i, r = |d|^2/2, a_i = v_i.d. Each b_i phi(z_i +
delta) is at least a constant, plus a slope times delta, plus a curve times delta^2/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import arb, arb_mat

from gpcert_check.arithmetic import dot, quadratic
from gpcert_check.leaves import Point, Slice
from gpcert_check.model import Latent
from gpcert_check.profiles import Profile
from gpcert_check.reading import need, real, reals
from gpcert_check.regions import Box, Cell

__all__ = ["view_of"]


def view_of(latent: Latent, region: Box, sign: int) -> Slice:
    """One latent on a region, with the leaves of its kernel."""
    return (Slice if latent.profile.gaussian else RadialSlice)(latent, region, sign)


class Below(NamedTuple):
    """constant + slope delta + curve delta^2/2, at most b phi(z + delta) for all delta in the range."""

    constant: arb
    slope: arb
    curve: arb


class RadialSlice(Slice):
    """A latent with another kernel than the Gaussian where only some features move."""

    gaussian, required, optional = False, "ref D y touch", "ball t"

    def kernel(self, i: int, square: arb) -> arb:
        return self.latent.s2 * self.latent.profile.value((self.away[i] + square) / 2)

    def _orders(self, todo: Sequence[tuple[Point, Any]]) -> None:
        """V13 looks at kernels one by one."""

    def _value(self, point: Point) -> arb:
        """V13, V5: a lower bound of the plane over the leaf."""
        d, cell, plane, profile = len(self.moving), point.cell, point.plane, self.latent.profile
        most = cell.reach([1] * d) / 2
        touch = arb(real(point.leaf.get("touch")))
        need(touch >= 0, "V13: touch must be >= 0")
        own, fall = plane.still + plane.bend, profile.slope(touch)
        near = profile.value(touch) - fall * touch  # phi(r) >= near + fall r
        constant = plane.constant + plane.still * near + plane.bend * (near - 1)
        slopes, curves = [], []
        for b, v, away in zip(point.b, point.v, self.away, strict=True):
            part = below(profile, self.latent.s2 * b, (away + dot(v, v)) / 2, *span(cell, v))
            constant += part.constant
            slopes.append(part.slope)
            curves.append(part.curve)
        Vt, n = arb_mat(point.v).transpose(), len(slopes)
        g = [-x for x in (Vt * arb_mat(n, 1, slopes)).entries()]
        mixed = (Vt * arb_mat(n, 1, curves)).entries()  # - r (mixed.d) and, last, (sum of curves) r^2/2
        H = Vt * arb_mat(n, d, [c * a for c, v in zip(curves, point.v, strict=True) for a in v])
        lost = sum(
            (((m * low).max(m * high)) for m, (low, high) in zip(mixed, cell.box, strict=True)), arb(0)
        )
        total = sum(curves, arb(0))
        rise = own * fall + sum(slopes, arb(0)) - lost.max(arb(0)) + total.min(arb(0)) * most / 2
        for j in range(d):
            H[j, j] += rise
        gain, least = cell.gain(point.leaf.get("ball"), g, H)
        D, y = (reals(point.leaf[name], d) for name in ("D", "y"))
        return constant + gain + quadratic(g, H, cell.box, D, y, least)


def span(cell: Cell, v: Sequence[arb]) -> tuple[arb, arb]:
    """The smallest and the largest delta = |d|^2/2 - v.d over the box of a cell, feature by feature."""
    low = high = arb(0)
    for (a, b), w in zip(cell.box, v, strict=True):
        near = w.max(a).min(b)
        low += near * (near / 2 - w)
        high += (a * (a / 2 - w)).max(b * (b / 2 - w))
    return low, high


def below(profile: Profile, b: arb, z: arb, low: arb, high: arb) -> Below:
    """V13: for b >= 0 a tangent and what bends it up at least; for b < 0 the same at most, or the chord."""
    if not b >= 0:
        b = b.lower()  # phi >= 0: where the sign is not known
    value, slope, step = profile.value(z), profile.slope(z), (high - low) / 2**20
    if b >= 0:
        if not slope.is_finite():  # a kink at the reference: the tangent touches elsewhere
            at = high / 4
            steep = profile.slope(z + at)
            return Below(b * (profile.value(z + at) - steep * at), b * steep, arb(0))
        return Below(b * value, b * slope, b * _bend(profile, z, high.max(step)).nonnegative_part())
    first, last = profile.value(z + low), profile.value(z + high)
    chord = (last - first) / (high - low)
    start = first - chord * low
    inside = low < -step or z >= step  # else phi may not be known so far
    curve = _bend(profile, z, low.min(-step)) if inside else arb("nan")
    bent = value + slope * high + curve * high * high / 2 - last  # too much at the end
    beside = 3 * (start - value) + value / 2**30  # at a corner, where high is 0, both are 0: then the first
    if bent.is_finite() and float(bent.mid()) <= float(beside.mid()):
        return Below(b * value, b * slope, b * curve)
    return Below(b * start, b * chord, arb(0))


def _bend(profile: Profile, z: arb, delta: arb) -> arb:
    """2 (phi(z + delta) - phi(z) - phi'(z) delta)/delta^2, which falls as delta grows."""
    return 2 * (profile.value(z + delta) - profile.value(z) - profile.slope(z) * delta) / delta**2

"""One leaf of a proof for other kernels than the Gaussian: centre by centre (docs/maths/proof.md, V13).

k_i(x) = phi(z_i + delta_i), delta_i = |d|^2/2 - v_i.d; each b_i phi is at least a constant, plus a slope
times delta, plus a curve times delta^2/2. The formulas are the checker's, in floats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.kernels import Radial
from gpcert.proofs.leaf import CLEAR, Leaf, leaf_at
from gpcert.proofs.levels import Level, Place
from gpcert.proofs.quadratic import multipliers
from gpcert.validation import Float

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

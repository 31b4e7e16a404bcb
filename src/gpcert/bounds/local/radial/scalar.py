"""One centre, one dimension: phi(z + delta) as a polynomial in delta and an enclosed remainder.

Lemma K (docs/maths/kernels.md, section 2). For completely monotone phi and e = phi(z + delta) - (Taylor
polynomial of odd order): e >= 0; for order 3, e / delta^2 grows with |delta| on both sides of 0, for order 1
it falls throughout. So values at the ends of the range of delta bound it everywhere, with no bound on a
derivative and no trouble at a singularity: phi(0) is finite. Each centre gets the order, 3, 1 or 0, that
leaves least; order 0 is a line between a chord and a tangent (K7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.radial.slice import RadialSlice, SliceGroup
from gpcert.rounding import LARGEST, TINY, UNIT
from gpcert.validation import Float, Mask

#: A remainder that vanishes at the reference is preferred to a constant one up to this factor.
_PREFERENCE = 3.0
#: What a cubic costs beside lines that are free, as a share of its size: norms take it whole.
_CUBIC = 0.1


@dataclass(frozen=True, eq=False)
class Leftover:
    """-(low . (delta^2, r, 1)) <= e <= high . (delta^2, r, 1); each part (n,), >= 0."""

    square: tuple[Float, Float]  #: (low, high): coefficients of delta^2
    linear: Float  #: of r, above only
    constant: tuple[Float, Float]


@dataclass(frozen=True, eq=False)
class Scalar:
    """phi(z) + shift + P[1] delta + P[2] delta^2 / 2 + P[3] delta^3 / 6 + e, per centre (n,) each."""

    P: tuple[Float, Float, Float]
    remainder: Leftover
    most: Float  #: an upper bound of phi over the range
    shift: Float  #: by how much the polynomial's value at 0 differs from phi(z)
    order: int = 0  #: the lowest order of any centre
    at_zero: tuple[float, float] = (np.inf, np.inf)  #: phi''(0), |phi'''(0)|, up; inf for products


def _finite(x: Float) -> Float:
    return np.where(np.isfinite(x), x, np.inf)


def _usable(*coefficients: Float) -> Mask:
    """R7: near a singularity derivatives leave the numbers of which expansions may be made."""
    return np.asarray(np.max(np.abs(coefficients), axis=0) <= LARGEST * LARGEST)


class _Ends:
    """phi at one end of the range of delta, enclosed.

    A left end cut at the centre itself (K4) may lie 3.1 blur of z beyond it: `beyond` is what that costs the
    terms up to delta^3 and the quotient by delta^2, relatively.
    """

    def __init__(self, slice_: RadialSlice, group: SliceGroup, z: Float, delta: Float) -> None:
        moved = z + delta
        slack = 5.0 * slice_.blur * (z + np.abs(delta))
        self.delta = delta
        self.beyond = 12.0 * slice_.blur
        self.near = np.maximum(moved - slack, 0.0)
        far = np.maximum(moved + slack, 0.0)
        self.high = group.phi.value(self.near) * (1.0 + slice_.relative(group, self.near)) + slice_.tiny
        self.low = np.maximum(group.phi.value(far) * (1.0 - slice_.relative(group, far)) - slice_.tiny, 0.0)

    def excess(self, p: list[Float], order: int, relative: Float) -> tuple[Float, Float]:
        """Bounds (below, above) of phi minus its Taylor polynomial of the order at this end."""
        x = self.delta
        terms = [p[0], p[1] * x, p[2] * x * x / 2.0, p[3] * x * x * x / 6.0][: order + 1]
        total = sum(terms[1:], terms[0])
        error = (relative + self.beyond + 16 * UNIT) * sum(np.abs(term) for term in terms)
        return self.low - total - error, self.high - total + error


def _per_square(value: Float, end: _Ends) -> Float:
    """value / delta^2, upward; 0 where delta = 0 (that side is empty), inf where unknown."""
    with np.errstate(all="ignore"):
        ratio = _finite(np.maximum(value, 0.0) / (end.delta * end.delta)) * (1.0 + end.beyond + 4 * UNIT)
    return np.where(end.delta == 0.0, 0.0, ratio)


def expand_scalar(
    slice_: RadialSlice,
    group: SliceGroup,
    z: Float,
    low: Float,
    high: Float,
    radius: float,
    above: Mask | None,
    free: bool,
) -> Scalar:
    """Lemma K for one group: z (n,), delta in [low, high] (n,), low <= 0 <= high, r <= radius.

    `above` (n,): where only upper bounds of phi will count, elsewhere only lower ones; None: both (K7).
    `free`: whether the polynomial of a line may have another value at 0 than phi(z).
    """
    p = group.phi.derivatives(z, 4)
    relative = slice_.relative(group, z)
    left, right = _Ends(slice_, group, z, low), _Ends(slice_, group, z, high)
    steep = group.phi.derivatives(left.near, 4)
    steep_relative = 1.0 + slice_.relative(group, left.near)
    reach = np.maximum(-low, high)
    third = _cap(left, right, p, 3, relative, _finite(steep[4] * steep_relative * reach**2 / 24.0))
    first = _cap(left, right, p, 1, relative, _finite(steep[2] * steep_relative / 2.0))
    slope = _finite((group.phi.steepest + np.abs(p[1])) * (1.0 + 2.0 * relative))
    line = _line(slice_, group, z, left, right)
    loss = line.top - line.bottom
    if above is not None:
        loss = np.where(above, line.top - p[0] * (1.0 - relative), loss)
    cubic = _CUBIC * np.abs(p[3]) * reach**3 / 6.0 if free else 0.0
    unusable = ~np.stack([_usable(*p[1:4]), _usable(p[1])])
    costs = np.stack(
        [
            np.where(unusable[0], np.inf, third[0] * reach**2 / _PREFERENCE + cubic),
            np.where(unusable[0], np.inf, third[1] + cubic),
            np.where(unusable[1], np.inf, first[0] * reach**2 / _PREFERENCE),
            np.where(unusable[1], np.inf, slope * radius / _PREFERENCE),
            np.where(unusable[1], np.inf, first[1]),
            loss / _PREFERENCE if free else loss,
        ]
    )
    choice = np.argmin(np.where(np.isnan(costs), np.inf, costs), axis=0)
    zero = np.zeros_like(z)
    straight = choice == 5
    value = 0.5 * (line.top + line.bottom) if free else p[0]
    value = value if above is None else np.where(above, line.top, line.bottom)
    ends = [np.maximum(side, 0.0) * (1.0 + 4 * UNIT) for side in (value - line.bottom, line.top - value)]
    square = np.select([choice == 0, choice == 2], [third[0], first[0]], 0.0)
    constant = np.select([choice == 1, choice == 4, straight], [third[1], first[1], ends[1]], 0.0)
    return Scalar(
        P=(
            np.where(straight, line.slope, p[1]),
            np.where(choice < 2, p[2], zero),
            np.where(choice < 2, p[3], zero),
        ),
        remainder=Leftover(
            (zero, square),
            np.where(choice == 3, slope, zero),
            (np.where(straight, ends[0], zero), constant),
        ),
        most=left.high,
        shift=np.where(straight, value - p[0], zero),
        order=(3, 3, 1, 1, 1, 0)[int(choice.max(initial=0))],
        at_zero=_at_zero(group),
    )


class _Line(NamedTuple):
    """K7: bottom <= phi(z + delta) - slope delta <= top on the range; (n,) each."""

    slope: Float
    bottom: Float
    top: Float


def _line(slice_: RadialSlice, group: SliceGroup, z: Float, left: _Ends, right: _Ends) -> _Line:
    """The chord above; below, the tangent where one of a square root would be parallel to it."""
    slope = (right.high - left.high) / (right.delta - left.delta)
    slope = np.where(_usable(slope), np.minimum(slope, 0.0), 0.0)
    reach = np.maximum(-left.delta, right.delta)
    slack = (left.beyond + 32 * UNIT) * (left.high + np.abs(slope) * reach)
    top = np.maximum(left.high - slope * left.delta, right.high - slope * right.delta) + slack
    touch = (0.5 * np.sqrt(left.near) + 0.5 * np.sqrt(right.near)) ** 2
    value, steep = group.phi.derivatives(touch, 1)
    sizes = value + np.abs(steep) * (z + reach + touch) + np.abs(slope) * reach
    error = (2.0 * slice_.relative(group, touch) + 8.0 * slice_.blur + 32 * UNIT) * sizes
    sides = [value + steep * (z + end.delta - touch) - slope * end.delta for end in (left, right)]
    tangent = np.where(_usable(value, steep) & (touch > 0.0), np.minimum(*sides) - error, -np.inf)
    return _Line(slope, np.fmax(tangent, right.low - slope * left.delta - slack) - slice_.tiny, top)


def _at_zero(group: SliceGroup) -> tuple[float, float]:
    values = group.phi.derivatives(np.zeros(1), 3)
    second, third = (abs(float(x[0])) * (1.0 + 1e-12) for x in values[2:])
    return (second if second < np.inf else np.inf), (third if third < np.inf else np.inf)


def _cap(
    left: _Ends, right: _Ends, p: list[Float], order: int, relative: Float, coefficient: Float
) -> tuple[Float, Float]:
    """(sup e / delta^2, sup e) over the range; `coefficient` bounds the first where e is mostly rounding."""
    ends = [end.excess(p, order, relative)[1] for end in (left, right)]
    if order == 3:
        square = np.maximum(_per_square(ends[0], left), _per_square(ends[1], right))
    else:  # e / delta^2 falls throughout: its supremum is at the left end, or at 0 where there is none
        square = np.where(left.delta < 0.0, _per_square(ends[0], left), np.inf)
    square = np.minimum(square, coefficient) + TINY
    largest = _finite(np.maximum(np.maximum(ends[0], ends[1]), 0.0))
    return square, largest


def expand_product(
    slice_: RadialSlice, groups: tuple[SliceGroup, ...], z: list[Float], low: list[Float], high: list[Float]
) -> tuple[list[Scalar], dict[tuple[int, int], Float], Float]:
    """K3: a product of groups to second order in their deltas; (per group, mixed coefficients, most).

    The remainder is at most sum_f square_f delta_f^2 in absolute value, or constant where that is less.
    """
    p = [g.phi.derivatives(zg, 3) for g, zg in zip(groups, z, strict=True)]
    relative = [slice_.relative(g, zg) for g, zg in zip(groups, z, strict=True)]
    total_relative = sum(relative[1:], relative[0]) + 8 * len(groups) * UNIT
    ends = [
        (_Ends(slice_, g, zg, lo), _Ends(slice_, g, zg, hi))
        for g, zg, lo, hi in zip(groups, z, low, high, strict=True)
    ]
    reach = [np.maximum(-lo, hi) for lo, hi in zip(low, high, strict=True)]
    value = np.prod([q[0] for q in p], axis=0)
    most = np.prod([left.high for left, _ in ends], axis=0) * (1.0 + 8 * len(groups) * UNIT)
    least = np.prod([right.low for _, right in ends], axis=0) * (1.0 - 8 * len(groups) * UNIT)
    squares = _product_squares(slice_, groups, p, relative, ends, reach)
    cost = sum(c * w * w for c, w in zip(squares, reach, strict=True))
    widths = (
        np.maximum(value * (1.0 + total_relative) - least, 0.0),
        np.maximum(most - value * (1.0 - total_relative), 0.0),
    )
    smooth = np.isfinite(cost) & (cost <= _PREFERENCE * (widths[0] + widths[1]))
    smooth &= np.all([_usable(*q[:3]) for q in p], axis=0)
    zero = np.zeros_like(value)
    scalars = []
    for f, q in enumerate(p):
        others = np.prod([other[0] for g, other in enumerate(p) if g != f], axis=0)
        square = np.where(smooth, squares[f], zero)
        constant = [np.where(smooth | (f > 0), zero, width) for width in widths]
        scalars.append(
            Scalar(
                P=(np.where(smooth, q[1] * others, zero), np.where(smooth, q[2] * others, zero), zero),
                remainder=Leftover((square, square), zero, (constant[0], constant[1])),
                most=most,
                shift=zero,
            )
        )
    mixed = {}
    for f in range(len(groups)):
        for g in range(f):
            others = np.prod([q[0] for h, q in enumerate(p) if h not in (f, g)], axis=0) * np.ones_like(value)
            mixed[(g, f)] = np.where(smooth, p[f][1] * p[g][1] * others, zero)
    return scalars, mixed, most


def _product_squares(
    slice_: RadialSlice,
    groups: tuple[SliceGroup, ...],
    p: list[list[Float]],
    relative: list[Float],
    ends: list[tuple[_Ends, _Ends]],
    reach: list[Float],
) -> list[Float]:
    """c_f with |remainder| <= sum_f c_f delta_f^2 (n,) each; inf where singular."""
    squares = []
    sizes = []  # coefficients of |q_f| in powers of delta_f / reach_f
    for q, w in zip(p, reach, strict=True):
        sizes.append([q[0], np.abs(q[1]) * w, q[2] * w * w / 2.0])
    for f, (left, right) in enumerate(ends):
        steep = group_third(slice_, groups[f], left.near)
        excess = [
            np.maximum(np.abs(bounds[0]), np.abs(bounds[1]))
            for bounds in (end.excess(p[f], 2, relative[f]) for end in (left, right))
        ]
        own = np.maximum(_per_square(excess[0], left), _per_square(excess[1], right))
        own = np.minimum(own, _finite(steep * reach[f] / 6.0))
        before = np.prod([sizes[g][0] + sizes[g][1] + sizes[g][2] for g in range(f)], axis=0)
        after = np.prod([ends[g][0].high for g in range(f + 1, len(groups))], axis=0)
        squares.append(own * before * after)
    # The part of order >= 3 of the product of the quadratics: each monomial is at most its value at the ends
    # of the ranges times the cube of the largest |delta_f| / reach_f, so times sum_f (delta_f / reach_f)^2.
    orders = [np.ones_like(reach[0])]
    for size in sizes:
        wider = [np.zeros_like(reach[0]) for _ in range(len(orders) + 2)]
        for i, x in enumerate(orders):
            for j, y in enumerate(size):
                wider[i + j] = wider[i + j] + x * y
        orders = wider
    rest = sum(orders[3:], np.zeros_like(reach[0]))
    with np.errstate(all="ignore"):
        return [
            _finite((c + rest / (w * w)) * (1.0 + 1e-12 + 4.0 * sum(relative))) + TINY
            for c, w in zip(squares, reach, strict=True)
        ]


def group_third(slice_: RadialSlice, group: SliceGroup, z: Float) -> Float:
    """|phi'''| at z (n,), rounded up: the largest on [z, inf)."""
    return np.abs(group.phi.derivatives(z, 3)[3]) * (1.0 + slice_.relative(group, z))

"""Mean and variance over many small boxes at once: one expansion per cell, all of a block in a few products.

The expansion of `radial_expansion` at the centre of each cell, to second order, with every remainder an
absolute bound over the cell (docs/maths/kernels.md, section 5). Sharp for cells that are small against the
lengthscales; where it is not, the search takes over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import LARGEST, UNDERFLOW, UNIT, gamma, sum_up
from gpcert.validation import Float


class CellExtremes(NamedTuple):
    """Of one quantity on B cells: enclosures of min and max (B,) each, and where (B, d), raw units."""

    min_lower: Float
    min_upper: Float
    max_lower: Float
    max_upper: Float
    argmin: Float
    argmax: Float


def sweepable(slice_: RadialSlice) -> bool:
    """Sums of single groups (every stationary kernel), precision without a negative part, numbers of R7."""
    return slice_.model.definite and slice_.moderate and all(len(term) == 1 for term in slice_.terms)


@np.errstate(all="ignore")  # overflow and NaN end as an unknown cell
def bound_cells(
    slice_: RadialSlice, lower: Float, upper: Float, inner: tuple[Float, Float]
) -> tuple[CellExtremes, CellExtremes]:
    """Mean and variance (not clipped) over the boxes [lower, upper] (B, d), raw units.

    `inner`: the boxes in which the points must lie.
    """
    e = _expand(slice_, lower, upper)
    model = slice_.model
    low, high = slice_.prior
    error = e.M_error + 4 * UNIT * (abs(slice_.mean) + np.abs(e.M0))
    mean = _Quadratic(slice_.mean + e.M0, e.M1, e.M2, error)
    error = e.q_error + (high - low) + 8 * UNIT * (abs(model.prior) + np.abs(e.q0))
    variance = _Quadratic(model.prior - e.q0, -e.q1, -e.q2, error)
    return tuple(_extremes(each, e, slice_.lengthscale, inner) for each in (mean, variance))  # type: ignore[return-value]


class _Quadratic(NamedTuple):
    """constant + g.d + d^T H d / 2, up to `error`, on each cell."""

    constant: Float
    g: Float
    H: Float
    error: Float


@dataclass(frozen=True, eq=False)
class _Batch:
    centre: Float  #: (B, d), raw units
    reach: Float  #: (B, d)
    M0: Float  #: (B,)
    M1: Float  #: (B, d)
    M2: Float  #: (B, d, d)
    M_error: Float  #: (B,)
    q0: Float
    q1: Float
    q2: Float
    q_error: Float


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Absolute bounds over the cells, per cell and centre (B, n)."""

    unit: Float  #: relative error of a centre's contribution
    grown: Float  #: of the polynomial
    second: Float  #: of kappa_{>=2}
    third: Float  #: of kappa_{>=3}


def _expand(slice_: RadialSlice, lower: Float, upper: Float) -> _Batch:
    centre = 0.5 * lower + 0.5 * upper
    reach = np.maximum(upper - centre, centre - lower) / slice_.lengthscale * (1.0 + 8 * UNIT)
    v = (slice_.points[None] - centre[:, None]) / slice_.lengthscale
    B, n, d = v.shape
    weights, model = slice_.weights, slice_.model
    k, U, sizes, curves = _kernel(slice_, v, reach)
    r = k @ model.precision
    columns = np.ascontiguousarray(U.transpose(1, 0, 2)).reshape(n, B * d)
    RU = (model.precision @ columns).reshape(n, B, d).transpose(1, 0, 2)
    J = np.matmul(U.transpose(0, 2, 1), RU)
    M2, q2 = np.zeros((B, d, d)), J + J.transpose(0, 2, 1)
    diagonal = np.arange(d)
    for rho, w, P1, P2 in curves:
        for H, b, factor in ((M2, np.broadcast_to(weights, k.shape), 1.0), (q2, r, 2.0)):
            H += factor * np.matmul((w * (b * P2)[..., None]).transpose(0, 2, 1), w)
            H[:, diagonal, diagonal] += factor * np.einsum("bn,bn->b", b, P1)[:, None] * rho
    unit = sizes.unit + gamma(n + 60)
    W, D, defect = model.row_weight, model.diagonal, model.parts.defect
    first = np.matmul(np.abs(U), reach[..., None])[..., 0]
    norm_1 = np.einsum("bj,bjk,bk->b", reach, np.abs(J), reach)
    norm_1 = np.sqrt(norm_1 + (first * first) @ (defect + 2.2 * W * unit.max()))
    smooth = _Smooth.of(slice_, reach)
    norm_2 = np.minimum(np.sqrt((sizes.second * sizes.second) @ D), smooth.second)
    error_r = np.sqrt((sizes.grown * unit) ** 2 @ W)
    third_M = np.minimum(sizes.third @ np.abs(weights), smooth.third * slice_.model.mean_norm)
    third_q = np.einsum("bn,bn->b", np.abs(r), sizes.third) + error_r * np.sqrt(sizes.third**2 @ W)
    third_q = np.minimum(third_q, smooth.third * smooth.largest)
    q_error = 2.0 * third_q + norm_2 * (2.0 * norm_1 + norm_2)
    q_error += 2.02 * error_r * np.sqrt(sizes.grown**2 @ W)
    q_error += (first + sizes.second) ** 2 @ defect
    slack = 1.0 + 8.0 * gamma(n + 60) + 8.0 * sizes.unit.max()
    steepest = np.max([np.abs(P).max(axis=1) for _, _, *both in curves for P in both], axis=0)
    usual = (np.abs(v).max(axis=(1, 2)) <= LARGEST) & (steepest <= LARGEST * LARGEST)
    beyond = np.where(usual, UNDERFLOW, np.inf)  # R7
    return _Batch(
        centre=centre,
        reach=reach,
        M0=k @ weights,
        M1=np.matmul(weights, U),
        M2=M2,
        M_error=(third_M + (sizes.grown * unit) @ np.abs(weights)) * slack + beyond,
        q0=np.einsum("bn,bn->b", k, r),
        q1=2.0 * np.matmul(r[:, None, :], U)[:, 0],
        q2=q2,
        q_error=q_error * slack + beyond,
    )


class _Smooth(NamedTuple):
    """K6: norms of the remainders of x -> k(., x) in the RKHS of the kernel; inf where it is not smooth."""

    second: Float  #: of V kappa_{>=2} (B,)
    third: Float  #: of the remainder from order three on itself (B,)
    largest: float  #: of sum_i (R k)_i k(., x_i)

    @classmethod
    def of(cls, slice_: RadialSlice, reach: Float) -> _Smooth:
        """From derivatives of phi at 0 alone, so the same everywhere."""
        c = slice_.model.contraction
        second, third = np.zeros(len(reach)), np.zeros(len(reach))
        for (group,) in slice_.terms:
            at_zero = group.phi.derivatives(np.zeros(1), 3)
            square = (reach * reach) @ group.rho
            second = second + 0.75 * np.abs(at_zero[2]) * square**2
            third = third + 15.0 / 36.0 * np.abs(at_zero[3]) * square**3
        outward = 1.0 + 1e-12
        s2 = slice_.prior[1]
        largest = (c + s2 * sum_up(slice_.model.parts.defect)) * np.sqrt(s2) * outward
        return cls(np.sqrt(c * second) * outward, np.sqrt(third) * outward, float(largest))


Curve = tuple[Float, Float, Float, Float]  # rho, rho v, P1, P2


def _kernel(slice_: RadialSlice, v: Float, reach: Float) -> tuple[Float, Float, _Sizes, list[Curve]]:
    """k (B, n), U (B, n, d), sizes, and what the second derivatives need of each component."""
    k = np.zeros(v.shape[:2])
    U = np.zeros(v.shape)
    unit, grown, second, third = (np.zeros_like(k) for _ in range(4))
    curves: list[Curve] = []
    outward = 1.0 + 4.0 * gamma(2 * v.shape[2] + 24)
    for (group,) in slice_.terms:
        w = v if group.plain else v * group.rho
        z = group.still + 0.5 * np.einsum("bnd,bnd->bn", v, w)
        p0, P1, P2 = group.phi.derivatives(z, 2)
        X = np.matmul(np.abs(w), reach[..., None])[..., 0] * outward
        R = (0.5 * (reach * reach) @ group.rho * outward)[:, None]
        near = np.maximum(z - X - 1.1 * slice_.blur * (z + X), 0.0)
        steep = np.abs(group.phi.derivatives(near, 3)[3]) * (1.0 + slice_.relative(group, near))
        relative = slice_.relative(group, z) + 64 * UNIT
        delta = X + R
        rest = np.abs(P2) * R * (X + 0.5 * R) + steep * delta**3 / 6.0
        k += p0
        U -= P1[..., None] * w
        unit = np.maximum(unit, relative)
        grown += p0 + delta * (np.abs(P1) + 0.5 * delta * np.abs(P2))
        third += rest
        second += np.abs(P1) * R + 0.5 * np.abs(P2) * X * X + rest
        curves.append((group.rho, w, P1, P2))
    tiny = slice_.tiny
    return k, U, _Sizes(unit, grown + tiny, second + tiny, third + tiny), curves


def _extremes(q: _Quadratic, e: _Batch, lengthscale: Float, inner: tuple[Float, Float]) -> CellExtremes:
    size = np.einsum("bj,bj->b", np.abs(q.g), e.reach)
    size += 0.5 * np.einsum("bj,bjk,bk->b", e.reach, np.abs(q.H), e.reach)
    d = q.g.shape[1]
    # Displacements are recomputed from points of doubles: a few roundings of raw coordinates.
    slopes = np.abs(q.g) + np.matmul(np.abs(q.H), e.reach[..., None])[..., 0]
    drift = 8 * UNIT * np.einsum("bj,bj->b", slopes, np.abs(e.centre) / lengthscale + e.reach)
    error = q.error + gamma(d * d + 80) * (size + np.abs(q.constant)) + drift
    low, bottom, argmin = _smallest(q.g, q.H, e, lengthscale, inner)
    high, top, argmax = _smallest(-q.g, -q.H, e, lengthscale, inner)
    return CellExtremes(
        q.constant + low - error,
        q.constant + bottom + error,
        q.constant - top - error,
        q.constant - high + error,
        argmin,
        argmax,
    )


def _smallest(
    g: Float, H: Float, e: _Batch, lengthscale: Float, inner: tuple[Float, Float]
) -> tuple[Float, Float, Float]:
    """A lower bound of g.d + d^T H d / 2 on each cell (B,), its value at a good point, and the point."""
    w = e.reach
    h = np.einsum("bjj->bj", H)
    ends = np.where(g > 0, -w, w)
    interior = np.clip(-g / np.where(h > 0, h, 1.0), -w, w)
    d = np.where(h > 0, interior, ends)
    separate = np.minimum(g * ends + 0.5 * h * ends * ends, g * d + 0.5 * h * d * d)
    mixed = 0.5 * (np.einsum("bj,bjk,bk->b", w, np.abs(H), w) - np.einsum("bj,bj,bj->b", w, np.abs(h), w))
    point = np.clip(e.centre + d * lengthscale, *inner)
    at = (point - e.centre) / lengthscale
    value = np.einsum("bj,bj->b", g, at) + 0.5 * np.einsum("bj,bjk,bk->b", at, H, at)
    value = np.where((np.abs(at) <= w).all(axis=1), value, np.inf)  # a point outside tells nothing
    return separate.sum(axis=1) - mixed, value, point

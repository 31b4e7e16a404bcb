"""The posterior of any radial kernel around a reference: exact coefficients, enclosed remainders.

With delta_c = r_c - a_c for each component c (r_c = d^T diag(rho_c) d / 2, a_ci = d.v_ci),

    k_i(x) = k_i + sum_c (P1 delta + P2 delta^2 / 2 + P3 delta^3 / 6) + e_ci      (docs/maths/kernels.md, 3).

One component per metric of a sum; a product of different metrics gives one per factor and, for delta_f
delta_g = ((delta_f + delta_g)^2 - (delta_f - delta_g)^2) / 4, two more per pair. Names follow the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.domain import NARROWEST, Domain, difference
from gpcert.bounds.local.radial.scalar import Leftover, Scalar, expand_product, expand_scalar
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import LARGEST, TINY, UNIT, gamma, sqrt_up, sum_up, symmetric
from gpcert.validation import Float, Mask

#: Features up to which ranges of delta take the larger of two suprema for both: orders are then chosen better
#: (measured).
_FEW = 3


@dataclass(frozen=True, eq=False)
class Component:
    """One delta with its coefficients; n centres, d moving features."""

    rho: Float  #: (d,), of either sign
    v: Float  #: (n, d): a = v d
    P: tuple[Float, Float, Float]  #: P1, P2, P3 (n,) each
    remainder: Leftover
    shift: Float  #: of the value at the reference (n,)
    X: Float  #: sup |a| (n,), up
    X_abs: Float  #: |v| @ reach (n,), up: what roundings of a are relative to
    R: float  #: sup |r|, up
    order: int  #: the lowest Taylor order of any centre
    middle: float  #: K8: about which r is centred in |V kappa_{>=2}|
    at_zero: tuple[float, float]  #: phi''(0), |phi'''(0)|, up

    @property
    def definite(self) -> bool:
        """r >= 0."""
        return bool((self.rho >= 0).all())

    @cached_property
    def split(self) -> tuple[Float, Float]:
        """(s, t) with delta^2 <= s a^2 + t R |r| (n,) each, for any ratio: this balances the two."""
        ratio = np.clip(self.R / np.maximum(self.X, TINY), 1e-8, 1e8)
        return (1.0 + ratio) * (1.0 + 4 * UNIT), (1.0 + 1.0 / ratio) * (1.0 + 4 * UNIT)

    @property
    def size(self) -> Float:
        """At least |shift| + |P1 delta| + |P2| delta^2 / 2 + |P3| |delta|^3 / 6, by coordinates."""
        x = (self.X_abs + self.R) * (1.0 + 16 * UNIT)
        one, two, three = (np.abs(P) for P in self.P)
        return np.abs(self.shift) + x * (one + x * (two / 2.0 + x * (three / 6.0)))

    @property
    def largest_remainder(self) -> Float:
        """sup |e| (n,)."""
        e = self.remainder
        x = (self.X + self.R) ** 2
        sides = [square * x + constant for square, constant in zip(e.square, e.constant, strict=True)]
        return np.asarray(np.maximum(sides[0], sides[1] + e.linear * self.R) * (1.0 + 16 * UNIT))


@dataclass(frozen=True, eq=False)
class RadialExpansion:
    """Coefficients at one reference over one domain."""

    slice: RadialSlice
    domain: Domain
    components: tuple[Component, ...]
    k: Float  #: (n,), the polynomials' values at the reference
    relative: Float  #: relative error of k and of every P (n,)
    most: Float  #: an upper bound of k over the domain (n,)
    moved: Float  #: an upper bound of |kappa|, |kappa - m| and |k(x) - k(xh)| over the domain (n,)
    U: Float  #: (n, d): kappa_1 = U d
    r: Float  #: R k (n,), R the stored precision
    RU: Float  #: R U (n, d)
    RP: Float  #: R P1 of each component (n, components)
    metric: Float  #: (d,): |L d|^2 = sum_j metric_j d_j^2
    span: float  #: sup |L d|, up
    J: Float  #: U^T R U (d, d)
    J_size: Float  #: |V U d|^2 (d, d), V^T V = magnitude
    grown: Float  #: (n,), up: absolute values of the polynomial
    error_M: float  #: rounding of the coefficients of sum_i alpha_i k_i, over the domain
    error_q: float  #: same for k^T R k
    error_r: float  #: W-norm of the error of R k

    @cached_property
    def M0(self) -> float:
        """sum_i alpha_i k_i at the reference."""
        return float(self.slice.weights @ self.k)

    @cached_property
    def q0(self) -> float:
        """k^T R k at the reference."""
        return float(self.k @ self.r)

    @cached_property
    def centred(self) -> tuple[Float, float]:
        """K8: R (k + m) (n,), and m^T R m; m = sum over components of P1 times the middle of r."""
        middles = np.array([c.middle for c in self.components])
        m = np.stack([c.P[0] for c in self.components], axis=1) @ middles
        product = self.RP @ middles
        return self.r + product, float(m @ product)

    @cached_property
    def slack(self) -> float:
        """Factor that covers the relative error of every non-negative remainder computed from P."""
        n, d = self.U.shape
        return 1.0 + 8.0 * float(self.relative.max(initial=0.0)) + 4.0 * gamma(n + 4 * d + 100)

    def weighted(self, y: Float) -> float:
        """F2: an upper bound of |V y| for |entries| <= y (n,)."""
        return self.slice.model.weighted(y)

    @cached_property
    def hessians(self) -> tuple[Float, Float]:
        """Of the parts linear in kappa_2, with weights alpha and R (k + m) (d, d)."""
        return self._hessian(self.slice.weights), self._hessian(self.centred[0])

    def _hessian(self, b: Float) -> Float:
        d = self.U.shape[1]
        H = np.zeros((d, d))
        for c in self.components:
            H += second_moment(b * c.P[1], c.v)
            H[np.diag_indices(d)] += float(b @ c.P[0]) * c.rho
        return H

    @cached_property
    def cubes(self) -> tuple[tuple[Float, Float], ...]:
        """For each component sum_i b_i P3 v v^T with b = alpha and b = R (k + m) (d, d)."""
        return tuple(
            (second_moment(self.slice.weights * c.P[2], c.v), second_moment(self.centred[0] * c.P[2], c.v))
            for c in self.components
        )


def second_moment(b: Float, v: Float) -> Float:
    """sum_i b_i v_i v_i^T, exactly symmetric."""
    if not b.any():
        return np.zeros((v.shape[1], v.shape[1]))
    return symmetric(v.T @ (b[:, None] * v))


@np.errstate(all="ignore")  # overflow and NaN end as -inf, never as a bound
def expand_radial(
    slice_: RadialSlice, domain: Domain, reference: Float, above: Mask | None = None, free: bool = False
) -> RadialExpansion:
    """The expansion at `reference` (d,), raw units, over the domain of displacements around it; `above` (n,)
    and `free`: see `expand_scalar`; not free, its values at the reference are the posterior's.
    """
    moved = difference(slice_.points, reference)
    v = moved / slice_.lengthscale
    components, most = _components(slice_, domain, moved, v, above, free)
    value, relative = slice_.kernel(moved)
    k = sum((c.shift for c in components), value)
    relative = relative * (1.0 + (k != value))  # shifts are seen from a phi(z) of their own
    relative = relative + (64 * UNIT if np.abs(v).max(initial=0.0) <= LARGEST else np.inf)  # R7
    n, d = v.shape
    U = np.zeros((n, d))
    for c in components:
        U -= c.P[0][:, None] * c.v
    columns = np.concatenate([k[:, None], U, *(c.P[0][:, None] for c in components)], axis=1)
    product = slice_.model.precision @ columns
    r, RU, RP = (np.ascontiguousarray(part) for part in np.split(product, [1, 1 + d], axis=1))
    polynomial = sum((c.size for c in components), np.zeros(n))
    leftover = sum((c.largest_remainder for c in components), np.zeros(n))
    grown = (value + slice_.tiny + polynomial) * (1.0 + 4.0 * relative)
    change = (2.0 * polynomial + leftover) * (1.0 + 4.0 * relative) + slice_.tiny
    roots = np.sqrt(slice_.model.row_weight) * grown
    unit = relative + gamma(n + 60)
    error_r = sqrt_up(sum_up((roots * unit) ** 2))
    metric = domain.metric(np.sqrt(np.einsum("ij,ij->j", v, v) / n))
    J, parts = symmetric(U.T @ RU), slice_.model.parts
    return RadialExpansion(
        slice=slice_,
        domain=domain,
        components=components,
        k=k,
        relative=relative,
        most=most,
        moved=change,
        U=U,
        r=r[:, 0],
        RU=RU,
        RP=RP,
        metric=metric,
        span=max(domain.norm(metric), NARROWEST),
        J=J,
        J_size=J + second_moment(parts.defect, U)
        if parts.negative is None
        else symmetric(U.T @ (slice_.model.magnitude @ U)),
        grown=grown,
        error_M=sum_up(np.abs(slice_.weights) * grown * unit) * 1.01,
        error_q=8.08 * error_r * sqrt_up(sum_up(roots * roots)),
        error_r=error_r,
    )


def _components(
    slice_: RadialSlice, domain: Domain, moved: Float, v: Float, above: Mask | None, free: bool
) -> tuple[tuple[Component, ...], Float]:
    found: list[Component] = []
    most = np.full(len(v), slice_.tiny)
    for term in slice_.terms:
        frames = [_frame(domain, group.rho, v if group.plain else v * group.rho) for group in term]
        z = [group.distance(moved, v) for group in term]
        ranges = [
            _delta_range(domain, v, frame, -(1.0 + 2.0 * slice_.blur) * away)
            for frame, away in zip(frames, z, strict=True)
        ]
        if len(term) == 1:
            scalar = expand_scalar(slice_, term[0], z[0], *ranges[0], frames[0].R, above, free)
            found.append(frames[0].component(scalar, free))
            most = most + scalar.most
            continue
        low, high = [low for low, _ in ranges], [high for _, high in ranges]
        scalars, mixed, top = expand_product(slice_, term, z, low, high)
        most = most + top
        found += [frame.component(scalar) for frame, scalar in zip(frames, scalars, strict=True)]
        zero = np.zeros(len(v))
        nothing = Leftover((zero, zero), zero, (zero, zero))
        for (f, g), P in mixed.items():
            for sign in (1.0, -1.0):
                rho, w = frames[f].rho + sign * frames[g].rho, frames[f].v + sign * frames[g].v
                scalar = Scalar((zero, 0.5 * sign * P, zero), nothing, zero, zero)
                found.append(_frame(domain, rho, w).component(scalar))
    return tuple(found), most


class _Frame(NamedTuple):
    """The geometry of one delta; see `Component`."""

    rho: Float
    v: Float
    up: Float  #: sup a (n,)
    down: Float  #: sup -a (n,)
    X_abs: Float
    R: float

    @property
    def X(self) -> Float:
        return np.maximum(self.up, self.down)

    def component(self, scalar: Scalar, free: bool = False) -> Component:
        return Component(
            rho=self.rho,
            v=self.v,
            P=scalar.P,
            remainder=scalar.remainder,
            shift=scalar.shift,
            X=self.X,
            X_abs=self.X_abs,
            R=self.R,
            order=scalar.order,
            middle=0.5 * self.R if free and scalar.order == 0 else 0.0,
            at_zero=scalar.at_zero,
        )


def _frame(domain: Domain, rho: Float, v: Float) -> _Frame:
    outward = 1.0 + 4.0 * gamma(2 * len(rho) + 24)
    norm = domain.norm(np.abs(rho))
    up, down = (np.maximum(side, 0.0) for side in domain.sides(v))
    if len(rho) <= _FEW:
        up = down = np.maximum(up, down)
    return _Frame(
        rho=rho,
        v=v,
        up=up * outward,
        down=down * outward,
        X_abs=np.abs(v) @ domain.reach * outward,
        R=0.5 * norm * norm * outward,
    )


def _delta_range(domain: Domain, v: Float, frame: _Frame, centre: Float) -> tuple[Float, Float]:
    """K4: the range of delta_i = sum_j rho_j d_j (d_j / 2 - v_ij), from the box, sup a, sup -a and sup r.

    `centre` (n,): -z_i, where the centre itself is reached: rounding alone may pass it, and behind it phi has
    no values to compare with.
    """
    rho, low, high = frame.rho, domain.low, domain.high
    nearest = np.clip(v, low, high)
    least = (nearest * (0.5 * nearest - v)) @ rho
    most = np.maximum(low * (0.5 * low - v), high * (0.5 * high - v)) @ rho
    slack = gamma(2 * len(rho) + 24) * (frame.X_abs + float(rho @ domain.reach**2))
    least = np.maximum(np.maximum(least - slack, -frame.up), centre)
    most = np.minimum(most + slack, frame.down + frame.R * (1.0 + 4 * UNIT))
    return np.minimum(least, 0.0), np.maximum(most, 0.0)

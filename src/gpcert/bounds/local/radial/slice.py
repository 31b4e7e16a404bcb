"""Any radial kernel restricted to the features that move, and its posterior at points (docs/maths/kernels.md,
section 1).

k_i(x) = sum over terms of prod over groups of phi(z_i), z_i = still_i + (1/2) sum_j rho_j v_ij^2, with
v_i = (centre_i - x) / lengthscale over the moving features and rho_j = (lengthscale / group's lengthscale)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from gpcert.bounds.facts.model import Model
from gpcert.bounds.geometry.domain import difference, nearest_and_farthest
from gpcert.bounds.local.enclosures import Interval, Restricted, latent_at
from gpcert.kernels import Radial
from gpcert.rounding import LARGEST, UNIT
from gpcert.validation import Float, Index

_LARGEST_DOUBLE = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class SliceGroup:
    """One factor on the slice."""

    phi: Radial
    lengthscale: Float  #: of the group (d,)
    rho: Float  #: (d,), >= 0; for expansions only, as it may underflow
    still: Float  #: half squared distance on the features that stand still (n,)
    plain: bool  #: the group's lengthscale is the slice's

    def distance(self, moved: Float, v: Float) -> Float:
        """z (n,) for differences (n, d) in raw units and in the slice's: accurate at any lengthscale (K1)."""
        u = v if self.plain else moved / self.lengthscale
        return np.asarray(self.still + 0.5 * np.einsum("ij,ij->i", u, u))


@dataclass(frozen=True, eq=False)
class RadialSlice(Restricted):
    """A model with any kernel on its moving features."""

    terms: tuple[tuple[SliceGroup, ...], ...]
    own: Float | None = None  #: other weights than the model's (n,)

    prior_blur: ClassVar[float] = 4 * UNIT  # that of a sum or product is rounded

    @property
    def weights(self) -> Float:
        return super().weights if self.own is None else self.own

    @property
    def blur(self) -> float:
        """Relative error of every z (K1)."""
        return float(UNIT * (self.model.centres.shape[1] + 64))

    @property
    def moderate(self) -> bool:
        """R7: whether expansions may be used."""
        squares = [float(group.rho.min(initial=1.0)) for term in self.terms for group in term]
        return self.model.moderate and min(squares) * LARGEST * LARGEST >= 1.0

    @cached_property
    def amplitude(self) -> Float:
        """At least the largest k_i on the slice (n,)."""
        total = np.zeros(len(self.points))
        for term in self.terms:
            product = np.ones(len(total))
            for group in term:
                z = np.minimum(group.still * (1.0 - 4 * self.blur), _LARGEST_DOUBLE)
                product = product * group.phi.value(z) * (1.0 + self.relative(group, z))
            total = total + product
        return np.asarray(total * (1.0 + 8 * UNIT * (1 + len(self.terms))) + self.tiny)

    @cached_property
    def largest_variance(self) -> float:
        """F1: S <= this everywhere on the slice, and 0 too."""
        low, high = self.prior
        return max(self.model.largest_variance(self.amplitude) + (high - low), 0.0)

    def relative(self, group: SliceGroup, z: Float) -> Float:
        """K1: relative error of phi and its derivatives up to the fourth, computed at a computed z (n,)."""
        size = group.phi.size
        g = group.phi.exponent(z) + 5.0 + size
        return np.asarray(1.01 * self.blur * g + UNIT * (8.0 * g + 64.0 * size))

    @np.errstate(all="ignore")  # overflow and NaN end as unknown
    def kernel(self, moved: Float) -> tuple[Float, Float]:
        """k (n,) and its relative error (n,), inf: unknown, at the point with these differences (n, d)."""
        v = moved / self.lengthscale
        k = np.zeros(len(moved))
        worst = np.zeros(len(moved))
        for term in self.terms:
            product = np.ones(len(moved))
            relative = np.full(len(moved), 4 * UNIT)
            for group in term:
                z = group.distance(moved, v)
                product = product * group.phi.value(z)
                relative = relative + self.relative(group, z)
            k = k + product
            worst = np.maximum(worst, relative)
        return k, worst + 4 * len(self.terms) * UNIT

    def latent(self, x: Float) -> tuple[Interval, Interval]:
        """E3: enclosures of mean and (unclipped) variance at x (d,)."""
        k, relative = self.values(x)
        return latent_at(self, k, relative, self.model.precision @ k)

    def values(self, x: Float) -> tuple[Float, Float]:
        """k (n,) at x (d,) and its relative error (n,)."""
        return self.kernel(difference(self.points, x))

    @np.errstate(all="ignore")
    def gradient(self, x: Float) -> tuple[float, float, Float, Float]:
        """Mean, variance and their gradients in raw units at x (d,), estimated: for local search only."""
        k, _ = self.values(x)
        r = self.model.precision @ k
        mu = self.mean + float(self.weights @ k)
        S = self.model.prior - float(k @ r)
        slope, curve = self.pull(x, np.stack([self.weights, -2.0 * r]))
        return mu, S, slope, curve

    def pull(self, x: Float, c: Float) -> Float:
        """Gradients in raw units of c.k at x (d,), for c (m, n): (m, d), estimates."""
        moved = difference(self.points, x)
        v = moved / self.lengthscale
        total = np.zeros((len(c), v.shape[1]))
        for term in self.terms:
            parts = [group.phi.derivatives(group.distance(moved, v), 1) for group in term]
            for i, group in enumerate(term):
                others = np.prod([part[0] for j, part in enumerate(parts) if j != i], axis=0)
                slope = np.nan_to_num(parts[i][1] * others, posinf=0.0, neginf=0.0)  # d k / d z
                total -= (c * slope) @ v * group.rho  # d z / d x = -rho v / l
        return np.asarray(total / self.lengthscale)

    def extremes(self, lower: Float, upper: Float) -> tuple[Float, Float]:
        """K4: (smallest, largest) k_i (n,) over a box of raw units; 0 and phi(0) where nothing is known."""
        near, far = nearest_and_farthest(self.points, lower, upper)
        v_near, v_far = near / self.lengthscale, far / self.lengthscale
        small, large = np.zeros(len(near)), np.zeros(len(near))
        for term in self.terms:
            least, most = np.ones(len(near)), np.ones(len(near))
            for group in term:
                z = np.fmax(group.distance(near, v_near) * (1.0 - 4 * self.blur), 0.0)
                z = np.minimum(z, _LARGEST_DOUBLE)  # phi decreases: sound where the distance is larger still
                most = most * group.phi.value(z) * (1.0 + self.relative(group, z))
                z = group.distance(far, v_far) * (1.0 + 4 * self.blur)
                least = least * np.fmax(group.phi.value(z) * (1.0 - self.relative(group, z)), 0.0)
            small, large = small + least, large + most
        wide = 1.0 + 8 * UNIT * (1 + len(self.terms))
        return np.maximum(small / wide - self.tiny, 0.0), large * wide + self.tiny


def make_radial_slice(model: Model, x: Float, features: Index, sign: float = 1.0) -> RadialSlice:
    """The slice of `model` through x (D,) along `features`."""
    rest = np.ones(model.centres.shape[1], dtype=bool)
    rest[features] = False
    lengthscale = model.lengthscale[features]
    standing = difference(model.centres[:, rest], x[rest])

    def slice_group(scale: Float, phi: Radial) -> SliceGroup:
        with np.errstate(over="ignore", under="ignore"):
            still = standing / scale[rest]
            rho = (lengthscale / scale[features]) ** 2
            z = 0.5 * np.einsum("ij,ij->i", still, still)
        return SliceGroup(phi, scale[features], rho, z, bool((scale[features] == lengthscale).all()))

    return RadialSlice(
        model=model,
        points=np.ascontiguousarray(model.centres[:, features]),
        lengthscale=lengthscale,
        terms=tuple(tuple(slice_group(g.lengthscale, g.phi) for g in term) for term in model.terms),
        sign=sign,
    )

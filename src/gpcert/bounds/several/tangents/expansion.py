"""Means and covariances of all classes around one reference, from one shared expansion of k(x).

In scaled displacements d, every mean and covariance is value + gradient.d + d^T Hessian d / 2 + rest, with
exact coefficients and a bound of the rest (docs/maths/multiclass.md, Y1). What softmax sees are differences
of latents, whitened by their covariance V at the reference: `Whitened`.
`Reaches` bounds how far they go for any kernel, by first orders and norms in its RKHS (Y2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.facts.model import kept
from gpcert.bounds.geometry.domain import Domain, difference
from gpcert.bounds.local.forms import FunctionalBound, Loss, Remainder, subtract
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.radial.functional import away
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import TINY, UNDERFLOW, UNIT, gamma, tail_norm_up
from gpcert.validation import Float

#: Programmes of tangents need not be solved better than tangents are.
_ACCURACY = 1e-3


class Latents(NamedTuple):
    """Computed mean (C,) and covariance (C, C) at a point, and bounds of every entry's error.

    The covariance is prior - k^T R k: the predictor's own is `clipped`.
    """

    mean: Float
    covariance: Float
    mean_error: float
    covariance_error: float
    products: Float  #: (R_ce + R_ce^T) k / 2 (P, n): half the gradients of k^T R_ce k

    @property
    def clipped(self) -> Float:
        """The predictor's covariance (C, C): each variance at least 0."""
        covariance = self.covariance.copy()
        np.fill_diagonal(covariance, np.maximum(np.diagonal(covariance), 0.0))
        return covariance


def latents_at(
    model: ClassModel, k: Float, relative: Float, tiny: float, products: Float | None = None
) -> Latents:
    """Means and covariances for kernel values k (n,) of relative error `relative` (n,) (E3)."""
    n, (rows, columns) = len(k), model.places
    products = model.blocks @ k if products is None else products
    covariance = np.diag(model.prior)
    covariance[rows, columns] -= products @ k
    covariance[columns, rows] = covariance[rows, columns]
    unit = relative + gamma(n + 20)
    bound = k + tiny
    mean = model.mean + k @ model.weights
    mean_error = float((np.abs(model.weights).T @ (bound * unit)).max()) * 1.02
    mean_error += 8 * UNIT * float((np.abs(mean) + np.abs(model.mean)).max()) + TINY
    roots = np.sqrt((model.rows * (bound * unit) ** 2).sum(axis=1) * (model.rows * bound**2).sum(axis=1))
    covariance_error = 2.1 * float(roots.max()) + 16 * UNIT * (
        float(model.prior.max()) + float(np.abs(covariance).max())
    )
    covariance_error += TINY
    if not np.isfinite(mean).all():  # a partial sum may have overflowed to the wrong side
        mean_error = np.inf
    return Latents(mean, covariance, mean_error, covariance_error, products)


def latents_on(model: ClassModel, slice_: Slice | RadialSlice, x: Float) -> Latents:
    """The same at x (d,) of a slice; the prior of a sum or product is stored to a few roundings."""
    k, relative = slice_.values(x)
    latents = latents_at(model, k, relative, slice_.tiny)
    blur = slice_.prior_blur * float(model.prior.max())
    return latents._replace(covariance_error=latents.covariance_error + blur)


@dataclass(frozen=True, eq=False)
class ClassExpansion:
    """The shared expansion at one reference over one domain; names of `Expansion` where they agree."""

    model: ClassModel
    domain: Domain
    reference: Float  #: (d,), raw units
    latents: Latents
    reach: Float  #: w (d,)
    s: float  #: sup |d|, up
    mean_gradient: Float  #: (C, d)
    mean_hessian: Float  #: (C, d, d)
    covariance_gradient: Float  #: (P, d)
    covariance_hessian: Float  #: (P, d, d)
    error_mean: Float  #: (C,): rounding of value, gradient and Hessian, over the domain
    error_covariance: Float  #: (P,)
    hidden: float  #: Y1: k^T (R+ + R-) k is at most what is computed of k^T R k, and this
    orders: dict[bytes, tuple[Float, Float, Float]] = field(default_factory=dict, repr=False)  #: of B and -B

    @property
    def radius(self) -> float:
        """sup |d|^2 / 2, up."""
        return 0.5 * self.s * self.s * (1.0 + 4 * UNIT)

    def matrix(self, values: Float) -> Float:
        """(P, ...) to (C, C, ...), symmetric."""
        C, (rows, columns) = self.model.classes, self.model.places
        full = np.zeros((C, C, *values.shape[1:]))
        full[rows, columns] = full[columns, rows] = values
        return full

    def mean_rest(self, a: Float) -> float:
        """Y1: sup of a.m beyond second order."""
        return self._mean_orders(a)[1]

    def least_mean(self, a: Float) -> float:
        """Y1: a lower bound of a.m: crude and cheap."""
        near, rest = self._mean_orders(a)
        value, size = float(a @ self.latents.mean), float(np.abs(a) @ np.abs(self.latents.mean))
        return value - (near + rest) * (1.0 + 1e-9) - gamma(2 * len(a)) * size

    def _mean_orders(self, a: Float) -> tuple[float, float]:
        """Y1: suprema of the first two orders of a.m in sum, and of all beyond."""
        R = self.radius
        value = float(np.abs(a @ (self.latents.mean - self.model.mean)))
        gradient = float(np.abs(a @ self.mean_gradient) @ self.reach)
        curve = 0.5 * float(self.reach @ np.abs(np.tensordot(a, self.mean_hessian, 1)) @ self.reach)
        # The Hessian of a.m is M2 - value I: M2 alone may be larger by the latter.
        rest = 0.5 * R * R * value + R * (gradient + curve + R * value)
        rest += self.model.mean_norm(a) * tail_norm_up(3, self.s)
        return gradient + curve, rest * (1.0 + 1e-9) + float(np.abs(a) @ self.error_mean) + TINY

    def largest(self, B: Float) -> Float:
        """Y1: sup <B, Sigma> for each of several symmetric B (K, C, C), (K,): crude and cheap."""
        value = np.tensordot(B, self.latents.covariance, 2)
        return np.asarray(value + 1e-9 * np.abs(value) + self.covariance_reaches(B))

    def covariance_reach(self, B: Float) -> float:
        """Y1: sup of |<B, Sigma> - its value at the reference| for a symmetric B (C, C): crude and cheap."""
        return float(self.covariance_reaches(B[None])[0])

    def covariance_reaches(self, B: Float) -> Float:
        """The same for each of several B (K, C, C): (K,)."""
        slope, bend, third = self._orders(B)
        return np.asarray((slope + bend + third) * (1.0 + 1e-6) + self._rounding(B))

    def _rounding(self, B: Float) -> Float:
        return np.asarray(np.abs(self.model.folded(B)) @ self.error_covariance + TINY)

    def _orders(self, B: Float) -> tuple[Float, Float, Float]:
        """Y1: suprema of the first order, of the second, and of all beyond, of <B, Sigma>, B (K, C, C)."""
        return kept(self.orders, B.tobytes(), 2, lambda: self._order(B))

    def _order(self, B: Float) -> tuple[Float, Float, Float]:
        weights = self.model.folded(B)
        slope = np.abs(weights @ self.covariance_gradient) @ self.reach
        hessian = np.abs(np.tensordot(weights, self.covariance_hessian, 1))
        bend = 0.5 * (hessian @ self.reach) @ self.reach
        values, vectors = np.linalg.eigh(B)
        size = np.abs(values).sum(axis=1)
        explained = np.diag(self.model.prior) - self.latents.covariance
        squares = np.einsum("kcl,ce,kel->kl", vectors, explained, vectors, optimize=True)
        absolute = np.maximum((np.abs(values) * squares).sum(axis=1), 0.0) + self.hidden * size
        norm = np.abs(np.tensordot(B, explained, 2))
        R, (z1, z2, z3) = self.radius, self.deviations
        third = 2.0 * R * R * norm + 2.0 * R * (slope + bend + 2.0 * R * norm)
        third += 2.0 * np.sqrt(absolute * size) * z3 + size * (2.0 * z1 * z2 + z2 * z2)
        return slope, bend, third

    def rest(self, a: Float, B: Float) -> float:
        """Y1: sup of a.m + <B, Sigma> beyond second order."""
        third = self._orders(B[None])[2] * (1.0 + 1e-6) + self._rounding(B[None])
        return self.mean_rest(a) + float(third[0])

    def smallest(
        self, a: Float, B: Float, offset: float, less: Loss | None = None, enough: float = np.inf
    ) -> FunctionalBound:
        """A lower bound of a.m + <B, Sigma> - offset - less over the domain, from Y1 alone.

        No precision is touched, and all that is of third order is lost: right for small boxes. Effort ends
        once `enough` is certain.
        """
        weights, values = self.model.folded(B), self.latents.covariance[self.model.places]
        base = float(a @ self.latents.mean) + float(weights @ values) - offset
        g = a @ self.mean_gradient + weights @ self.covariance_gradient
        H = np.tensordot(a, self.mean_hessian, 1) + np.tensordot(weights, self.covariance_hessian, 1)
        means, covariances = self._spans
        sizes = np.abs(a) @ (np.abs(self.latents.mean) + means) + abs(offset)
        sizes += np.abs(weights) @ (np.abs(values) + covariances)
        remainders = [Remainder(None, None, constant=self.rest(a, B))]
        if less is not None:
            g = g - less.gradient
            remainders.append(Remainder(2.0 * less.matrix, None, constant=less.constant))
        excess = gamma(4 * len(values) + 40) * float(sizes)
        target = enough, _ACCURACY
        bound = subtract(self.domain, base, g, [H], [np.zeros_like(g)], remainders, excess, target)
        return FunctionalBound(bound.value, bound.value, bound.point, bound.rounding, bound.loss)

    @cached_property
    def _spans(self) -> tuple[Float, Float]:
        """Suprema of the first two orders of every mean (C,) and covariance (P,), by absolute values."""
        pairs = (
            (self.mean_gradient, self.mean_hessian),
            (self.covariance_gradient, self.covariance_hessian),
        )
        means, covariances = (
            np.abs(first) @ self.reach + 0.5 * (np.abs(second) @ self.reach) @ self.reach
            for first, second in pairs
        )
        return means, covariances

    def covariance_rest(self, A: Float, gradient: Float, hessian: Float) -> float:
        """Y1: sup of A Sigma A^T beyond second order, in Frobenius norm, from its gradient and Hessian."""
        explained = A @ (np.diag(self.model.prior) - self.latents.covariance) @ A.T
        curve = 0.5 * np.einsum("i,abij,j->ab", self.reach, np.abs(hessian), self.reach)
        slopes = np.abs(gradient) @ self.reach
        norm, slope, bend = (float(np.linalg.norm(y)) for y in (explained, slopes, curve))
        scale, strongest = float(np.linalg.norm(A)), float(np.linalg.norm(A, 2)) * (1.0 + 1e-9)
        R, (d1, d2, d3) = self.radius, self.deviations
        y = float(np.sqrt(max(float(np.linalg.eigvalsh(explained)[-1]), 0.0) + self.hidden * scale**2))
        y += 1e-6 * float(np.sqrt(norm))
        third = 2.0 * R * R * norm + 2.0 * R * (slope + bend + 2.0 * R * norm)
        third += 2.0 * y * scale * d3 + strongest * (2.0 * d1 + d2) * scale * d2
        rounding = float(self.error_covariance.max()) * float((np.abs(A).sum(axis=1) ** 2).sum())
        return third + rounding

    def changes(self, mean: Float, covariance: Float) -> tuple[float, float]:
        """Y1: bounds, over the domain, of the sum of the changes of all means and covariances, and of
        2 (the largest change of a mean) + 4 (the largest of a covariance); from those given (C,), (C, C).
        """
        means, spans = self._spans
        means = means + np.abs(self.latents.mean - mean)
        means += [self.mean_rest(row) for row in np.eye(self.model.classes)]
        explained = np.diag(self.model.prior) - self.latents.covariance
        own = np.maximum(np.diagonal(explained), 0.0) + self.hidden
        rows, columns = self.model.places
        norm, size = np.abs(explained[rows, columns]), 0.5 * (own[rows] + own[columns])
        R, (z1, z2, z3) = self.radius, self.deviations
        third = 2.0 * R * R * norm + 2.0 * R * (spans + 2.0 * R * norm)
        third += 2.0 * np.sqrt(size) * z3 + 2.0 * z1 * z2 + z2 * z2
        shift = np.abs(self.latents.covariance - covariance)[rows, columns]
        covariances = (spans + third + shift) * (1.0 + 1e-6) + self.error_covariance
        total = float(means.sum()) + float(self.model.folded(np.ones_like(explained)) @ covariances)
        largest = 2.0 * float(means.max()) + 4.0 * float(covariances.max())
        return total * (1.0 + 1e-9), largest * (1.0 + 1e-9)

    @cached_property
    def deviations(self) -> tuple[float, float, float]:
        """sqrt(contraction) s tp(m, s), m = 1, 2, 3: |V kappa_{>=m}| for a unit combination of classes,
        V^T V = R+ + R-.
        """
        scale = np.sqrt(self.model.contraction * self.model.variance) * (1.0 + 1e-9)
        return tuple(float(scale * tail_norm_up(m, self.s)) for m in (1, 2, 3))  # type: ignore[return-value]


def expand_classes(model: ClassModel, slice_: Slice, domain: Domain, reference: Float) -> ClassExpansion:
    """Y1 at `reference` (d,), raw units."""
    v, k, relative = slice_.kernel(reference)
    n, d = v.shape
    columns = np.vstack([k, k * v.T])
    products, hessians = np.empty((len(model.pairs), n)), np.empty((len(model.pairs), d, d))
    for p, block in enumerate(model.blocks):  # symmetric; a thin factor from the left is twice as fast
        product = columns @ block
        products[p] = product[0]
        half = (k * (product[1:] + product[0] * v.T)) @ v
        hessians[p] = -(half + half.T)
    latents = latents_at(model, k, relative, slice_.tiny, products)
    hessians += 2.0 * (products @ k)[:, None, None] * np.eye(d)
    means = np.empty((model.classes, d, d))
    for c in range(model.classes):
        ak = model.weights[:, c] * k
        means[c] = v.T @ (ak[:, None] * v) - float(ak.sum()) * np.eye(d)
    reach = domain.reach
    s = domain.norm(np.ones(d))
    X = domain.absolute(v)
    grown = (k + slice_.tiny) * np.exp(X) * (1.0 + 2.0 * relative + 64 * UNIT)
    unit = relative + gamma(2 * n + 80)
    error_mean = np.abs(model.weights).T @ (grown * unit) * 1.02 * (1.0 + s * s)
    pair = np.sqrt((model.rows * (grown * unit) ** 2).sum(axis=1) * (model.rows * grown**2).sum(axis=1))
    return ClassExpansion(
        model=model,
        domain=domain,
        reference=reference,
        latents=latents,
        reach=reach,
        s=s,
        mean_gradient=(model.weights * k[:, None]).T @ v,
        mean_hessian=means,
        covariance_gradient=-2.0 * (products * k) @ v,
        covariance_hessian=hessians,
        error_mean=error_mean + 16 * UNIT * np.abs(latents.mean) + UNDERFLOW,
        error_covariance=2.1 * pair * (1.0 + s * s)
        + 4.0 * model.defect * float(grown @ grown)
        + 16 * UNIT * (float(model.prior.max()) + float(np.abs(latents.covariance).max()))
        + UNDERFLOW,
        hidden=model.hidden
        + 1.01 * (model.defect * float(grown @ grown) + model.classes * latents.covariance_error),
    )


#: For what is computed from the terms of a bound, all non-negative.
_OUTWARD = 1.0 + 1e-6


@dataclass(frozen=True, eq=False)
class Reaches:
    """Of one set around one reference; crude and cheap."""

    model: ClassModel
    latents: Latents  #: at the reference
    reach: Float  #: sup |d| (d,)
    slopes: Float  #: d k_i / d d_j at the reference (n, d)
    blur: Float  #: their error (n, d)
    amplitude: Float  #: at least the largest k_i (n,)
    first: float  #: sup |k_x - k_xh| in the RKHS
    second: float  #: the same of its part beyond first order; inf where the kernel is not smooth
    product_error: Float  #: of each of `latents.products` against any k_x - k_xh (P,)

    def least_mean(self, a: Float) -> float:
        """A lower bound of a.m."""
        here, size = self.latents, np.abs(a)
        b = self.model.weights @ a
        moved = float(self._along(b[None])[0]) + float(size.sum()) * here.mean_error
        rounding = float((np.abs(self.model.weights) @ size) @ self.amplitude)
        rounding += float(size @ np.abs(here.mean))
        return float(a @ here.mean) - moved * _OUTWARD - gamma(2 * len(a) + 8) * rounding

    def largest(self, B: Float) -> Float:
        """sup <B, Sigma> for each of several symmetric B (K, C, C): (K,)."""
        model, here = self.model, self.latents
        weights = model.folded(B)
        value = np.tensordot(B, here.covariance, 2)
        values = np.linalg.eigvalsh(B)
        plus, minus = np.maximum(values, 0.0).sum(axis=1), np.maximum(-values, 0.0).sum(axis=1)
        hidden = model.defect * len(model.centres) * model.variance
        square = plus * (model.contraction_negative + hidden) + minus * (model.contraction_positive + hidden)
        moved = 2.0 * self._along(weights @ here.products) + square * self.first**2
        rounding = np.abs(weights) @ (2.0 * self.product_error + here.covariance_error)
        return np.asarray(value + 1e-9 * np.abs(value) + (moved + rounding) * _OUTWARD + TINY)

    @np.errstate(all="ignore")  # 0 times inf is one of two bounds, and the other counts
    def _along(self, b: Float) -> Float:
        """sup |sum_i b_i (k_i(x) - k_i)| for each row of b (K, n): (K,)."""
        G, entry = self.model.unit_gram
        size = np.abs(b)
        total = size.sum(axis=1)
        unit = b / np.maximum(total, TINY)[:, None]
        squares = np.einsum("ki,ki->k", unit @ G, unit) + entry + gamma(2 * len(G) + 8)
        norm = total * np.sqrt(np.maximum(squares, 0.0) * self.model.variance) * _OUTWARD
        straight = np.abs(b @ self.slopes) @ self.reach + (size @ self.blur) @ self.reach
        return np.asarray(np.fmin(straight + norm * self.second, norm * self.first))


@np.errstate(all="ignore")  # overflow and NaN say nothing: what is compared with them is not proved
def reaches_of(
    model: ClassModel, slice_: RadialSlice, domain: Domain, start: Float, latents: Latents
) -> Reaches:
    """Over a set seen from `start` (d,), where the latents are `latents`."""
    first = float(np.sqrt(2.0 * away(slice_, domain) * model.variance)) * _OUTWARD
    k, relative = slice_.values(start)
    slopes, blur = _slopes(slice_, start)
    unit = (k + slice_.tiny) * (relative + gamma(len(k) + len(model.pairs) + 20))
    wrong = np.sqrt((model.rows * unit**2).sum(axis=1) * (model.rows * slice_.amplitude**2).sum(axis=1))
    return Reaches(
        model=model,
        latents=latents,
        reach=domain.reach,
        slopes=slopes,
        blur=blur,
        amplitude=slice_.amplitude,
        first=first if first < np.inf else np.inf,
        second=_beyond(slice_, domain),
        product_error=wrong * _OUTWARD + TINY,
    )


def _slopes(slice_: RadialSlice, x: Float) -> tuple[Float, Float]:
    """Derivatives of every k_i in scaled displacements at x (d,) and their errors, (n, d) each."""
    moved = difference(slice_.points, x)
    v = moved / slice_.lengthscale
    total, worst = np.zeros(v.shape), np.zeros(len(v))
    for term in slice_.terms:
        z = [group.distance(moved, v) for group in term]
        parts = [group.phi.derivatives(each, 1) for group, each in zip(term, z, strict=True)]
        relative = sum((slice_.relative(g, each) for g, each in zip(term, z, strict=True)), 16 * UNIT)
        for i, group in enumerate(term):
            others = np.prod([part[0] for j, part in enumerate(parts) if j != i], axis=0)
            # Of one sign for a centre and a feature, so that relative errors do not grow in the sum.
            total -= (parts[i][1] * others)[:, None] * v * group.rho
        worst = np.maximum(worst, relative)
    unit = worst + gamma(len(v) + 20) + 8 * UNIT * (1 + len(slice_.terms))
    return total, np.abs(total) * unit[:, None] + slice_.tiny * (1.0 + np.abs(v))


def _beyond(slice_: RadialSlice, domain: Domain) -> float:
    """K6: sup |g_2| for a sum of profiles; inf for products, and where phi''(0) is."""
    square = 0.0
    for term in slice_.terms:
        curves = [abs(float(group.phi.derivatives(np.zeros(1), 2)[2][0])) for group in term]
        if len(term) > 1 or not curves[0] < np.inf:
            return np.inf
        square += 0.75 * curves[0] * domain.norm(term[0].rho) ** 4
    return float(np.sqrt(square)) * _OUTWARD

"""What a box of inputs becomes in the space of means and covariances of the differences of latents.

z = (whitened differences of means, whitened differences of covariances) are affine functionals of means and
covariances, so that every direction k has a certified supremum of k.z over the box (Theorem 1). `Image` holds
what is certain about z on one box: a range of every coordinate, and half-spaces k.z <= sup (T3 of
docs/maths/multiclass.md). It knows no class and no probability: all questions about a box share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.local.forms import FunctionalBound
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.several.tangents.expansion import Latents, latents_on
from gpcert.bounds.several.tangents.functionals import View, views_from
from gpcert.bounds.several.tangents.tangent import whitening
from gpcert.rounding import UNIT, symmetric
from gpcert.validation import Float

#: Sampled points of the image: they only guess which half-spaces pay.
_SAMPLES = 64
#: Ranges of the cheapest majorants serve while they exceed what is sampled by less than this share.
_ROUGH = 0.3
#: W L = I is checked to this.
INVERSE = 1e-12


@dataclass(frozen=True, eq=False)
class Coordinates:
    """z (n,) of means and covariances of the N = C - 1 differences of latents, n = N + N (N + 1) / 2.

    z = 0 at (mean, V). Elsewhere they have mean `mean` + L z[:N] and covariance V + L E(z) L^T with
    E(z) = sum_m z[N + m] basis_m.
    """

    mean: Float  #: (N,)
    V: Float  #: (N, N)
    L: Float  #: (N, N), the inverse of the W that whitens V
    basis: Float  #: (n - N, N, N), orthonormal
    first: Float  #: (n, C): z_m = first_m . m + <second_m, Sigma> - offset_m
    second: Float  #: (n, C, C)
    offset: Float  #: (n,)
    error: Float  #: (n,): more than any rounding of z and of its coefficients

    @property
    def size(self) -> float:
        """At least the norm of L."""
        return float(np.linalg.norm(self.L)) * (1.0 + 1e-6)

    def changed(self, z: Float) -> Float:
        """E (m, N, N) of z (m, n)."""
        return np.asarray(np.tensordot(z[:, len(self.mean) :], self.basis, 1))

    def functional(self, k: Float) -> tuple[Float, Float, float]:
        """k.z = a.m + <B, Sigma> - offset."""
        B = np.tensordot(k, self.second, 1)
        return k @ self.first, symmetric(B), float(k @ self.offset)

    def rounding(self, k: Float) -> float:
        """By how much the computed coefficients of k.z may be off, anywhere."""
        return float(np.abs(k) @ self.error)


def coordinates_at(model: ClassModel, latents: Latents, amplitude: Float) -> Coordinates | None:
    """Whitened at the latents given; None where V is not safely positive definite.

    `amplitude` (centres,): the largest kernel values.
    """
    D = model.contrasts
    V = D @ latents.covariance @ D.T
    V = symmetric(V)
    W = whitening(V) if np.isfinite(V).all() else None
    if W is None:
        return None
    L = np.asarray(np.linalg.inv(W), dtype=np.float64)
    if not np.linalg.norm(W @ L - np.eye(len(W))) <= INVERSE:
        return None
    # All variances grow together away from the data, and little else changes: that direction is an axis.
    basis = _symmetric_basis(len(W))
    A = W @ D
    C = model.classes
    first = np.concatenate([A, np.zeros((len(basis), C))])
    second = np.concatenate([np.zeros((len(W), C, C)), [A.T @ S @ A for S in basis]])
    second = 0.5 * (second + second.transpose(0, 2, 1))
    offset = first @ latents.mean + np.tensordot(second, latents.covariance, 2)
    # `functional_error` counts hundreds of roundings of every term; forming k.z from these takes a few.
    error = np.array([model.functional_error(a, B, amplitude) for a, B in zip(first, second, strict=True)])
    error += 64.0 * UNIT * (np.abs(first) @ (np.abs(model.mean) + np.abs(latents.mean)) + np.abs(offset))
    return Coordinates(D @ latents.mean, V, L, basis, first, second, offset, error)


@dataclass(eq=False)
class Image:
    """lower <= z <= upper and normals_j . z <= bounds_j for the z of every point of the box."""

    model: ClassModel
    slice: Slice | RadialSlice
    shape: Shape
    box: tuple[Float, Float]  #: raw units
    coordinates: Coordinates
    views: list[View]  #: from the middle, by rising price
    lower: Float
    upper: Float
    gradients: Float  #: (n, d): of z in the middle, an estimate
    samples: Float  #: (m, n): z at some points of the box, estimates
    halfspaces: tuple[
        Float, Float
    ]  #: normals (J, n) and bounds (J,), in one, so that Ctrl-C cannot part them
    last: tuple[Float, Float] | None = None  #: where the last supremum seemed attained, raw; loss per feature

    @property
    def normals(self) -> Float:
        """(J, n)."""
        return self.halfspaces[0]

    @property
    def bounds(self) -> Float:
        """(J,)."""
        return self.halfspaces[1]

    def halfspace(self, k: Float, needed: float, reference: Float | None = None) -> float:
        """A certified supremum of k.z, by rising effort until it is at most `needed`; the image keeps it.

        `reference`: a point (d,) where it seems to be attained.
        """
        views = list(self.views)
        if reference is not None:
            domain = self.shape.domain(*self.box, reference, self.slice.lengthscale)
            if domain is not None:
                views += [view.moved(domain, reference) for view in self.views]
        best = np.inf
        for view in views:
            answer = self._supremum(view, k)
            best = min(best, -answer.latent)
            if best <= needed:
                break
        if np.isfinite(best):
            self.halfspaces = np.concatenate([self.normals, k[None]]), np.append(self.bounds, best)
        return best

    def _supremum(self, view: View, k: Float) -> FunctionalBound:
        """Minus the certified supremum of k.z."""
        a, B, offset = self.coordinates.functional(k)
        answer = view.smallest(-a, -B, -offset)
        point = np.clip(view.start + answer.point * self.slice.lengthscale, *self.box)
        self.last = point, answer.loss
        self.samples = np.concatenate([self.samples, self.z(point[None])])
        return answer._replace(latent=answer.latent - self.coordinates.rounding(k))

    def z(self, X: Float) -> Float:
        """z (m, n) at X (m, d): an estimate."""
        return _estimate(self.model, self.slice, self.coordinates, X)

    def probe(self, k: Float) -> bool:
        """Samples a point where k.z should be large; whether it is larger there than at all others."""
        point = self.shape.vertex(-k @ self.gradients, self.views[0].start)
        z = self.z(point[None])
        found = bool(float(z[0] @ k) > float((self.samples @ k).max()))
        self.samples = np.concatenate([self.samples, z])
        return found

    def slack(self, k: Float) -> float:
        """About by how much a certified supremum of k.z exceeds the true one."""
        excess = self.upper - self.lower - np.ptp(self.samples, axis=0)
        return 0.25 * float(np.abs(k) @ np.maximum(excess, 0.0))

    def tightened(self, lower: Float, upper: Float) -> tuple[Float, Float] | None:
        """A smaller cell that contains the image's part of the cell given; None: there is none."""
        K, sizes = self.normals, np.abs(self.normals)
        for _ in range(2):
            least = np.where(K > 0, K * lower, K * upper)
            slack = 1e-12 * (np.abs(least).sum(axis=1) + np.abs(self.bounds))
            room = self.bounds - least.sum(axis=1) + slack
            if (room < 0).any():
                return None
            with np.errstate(divide="ignore", over="ignore"):
                steps = np.where(sizes > 0, room[:, None] / sizes, np.inf) * (1.0 + 1e-12)
            nudge = 1e-14 * (np.abs(lower) + np.abs(upper))
            highest = np.where(K > 0, lower + steps + nudge, np.inf).min(axis=0, initial=np.inf)
            lowest = np.where(K < 0, upper - steps - nudge, -np.inf).max(axis=0, initial=-np.inf)
            lower, upper = np.maximum(lower, lowest), np.minimum(upper, highest)
            if (lower > upper).any():
                return None
        return lower, upper


def image_of(
    model: ClassModel, slice_: Slice | RadialSlice, shape: Shape, box: tuple[Float, Float]
) -> Image | None:
    """The image of a box, raw units, with a range for every coordinate; None where nothing is proved."""
    middle = np.clip(shape.middle(*box), *box)
    domain = shape.domain(*box, middle, slice_.lengthscale)
    latents = latents_on(model, slice_, middle)
    coordinates = coordinates_at(model, latents, slice_.amplitude)
    if domain is None or coordinates is None:
        return None
    gradients = _gradients(model, slice_, coordinates, middle)
    X = np.stack([middle, *(shape.vertex(-k @ gradients, middle) for k in _directions(gradients))])
    samples = _estimate(model, slice_, coordinates, X)
    sampled = samples.max(axis=0) - samples.min(axis=0)
    views = views_from(model, slice_, domain, middle)
    n = len(sampled)
    ends = np.zeros((2, n))
    for m in reversed(range(n)):  # the last coordinates are the roughest: they choose the views
        ends[:, m] = _range(views[0], coordinates, m)
        while len(views) > 1 and not ends[1, m] - ends[0, m] <= (1.0 + _ROUGH) * sampled[m]:
            views = views[1:]
            ends[:, m] = _range(views[0], coordinates, m)
    if not np.isfinite(ends).all():
        return None
    return Image(
        model=model,
        slice=slice_,
        shape=shape,
        box=box,
        coordinates=coordinates,
        views=views,
        lower=ends[0],
        upper=ends[1],
        gradients=gradients,
        samples=samples,
        halfspaces=(np.zeros((0, n)), np.zeros(0)),
    )


def _range(view: View, coordinates: Coordinates, m: int) -> tuple[float, float]:
    """Certified range of z_m."""
    k = np.eye(len(coordinates.offset))[m]
    a, B, offset = coordinates.functional(k)
    slack = coordinates.rounding(k)
    if a.any():
        low, high = (view.smallest(sign * a, sign * B, sign * offset).latent for sign in (1.0, -1.0))
        return low - slack, slack - high
    low, high = view.range(B, offset)
    return low - slack, high + slack


def _gradients(model: ClassModel, slice_: Slice | RadialSlice, coordinates: Coordinates, x: Float) -> Float:
    """Of z in raw units (n, d), at x (d,)."""
    latents = latents_on(model, slice_, x)
    slopes = coordinates.first @ model.weights.T  # (n, centres)
    for (c, e), product in zip(model.pairs, latents.products, strict=True):
        slopes -= np.outer(coordinates.second[:, c, e] * (2.0 if c == e else 4.0), product)
    return np.asarray(slice_.pull(x, slopes))


def _directions(gradients: Float) -> Float:
    """Directions (m, n) in which the image is sampled first: the axes, and random ones."""
    n = len(gradients)
    sizes = np.maximum(np.abs(gradients).sum(axis=1), 1e-300)
    random = np.random.default_rng(0).standard_normal((_SAMPLES, n)) / sizes
    return np.concatenate([np.eye(n), -np.eye(n), random])


def _estimate(model: ClassModel, slice_: Slice | RadialSlice, coordinates: Coordinates, X: Float) -> Float:
    """z (m, n) at X (m, d)."""
    k = np.stack([slice_.values(x)[0] for x in X])
    z = (model.mean + k @ model.weights) @ coordinates.first.T - coordinates.offset
    z += np.diagonal(coordinates.second, axis1=1, axis2=2) @ model.prior
    for (c, e), block in zip(model.pairs, model.blocks, strict=True):
        products = ((k @ block) * k).sum(axis=1)
        z -= np.outer(products, coordinates.second[:, c, e] * (1.0 if c == e else 2.0))
    return np.asarray(z)


def _symmetric_basis(N: int) -> Float:
    """An orthonormal basis of the symmetric (N, N) matrices, the direction of the identity first."""
    basis = [np.eye(N) / np.sqrt(N)]
    for a in range(1, N):
        diagonal = np.concatenate([np.ones(a), [-float(a)], np.zeros(N - a - 1)])
        basis.append(np.diag(diagonal) / np.linalg.norm(diagonal))
    for a in range(N):
        for b in range(a):
            unit = np.zeros((N, N))
            unit[a, b] = unit[b, a] = np.sqrt(0.5)
            basis.append(unit)
    return np.stack(basis)

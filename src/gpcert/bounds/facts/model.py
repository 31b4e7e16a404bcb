"""The model as the bounds see it: facts about the stored doubles, verified once per posterior.

Statements of `docs/maths/bounds.md`, section 2:

* F1  precision = positive - negative - diag(defect), both parts verified positive semidefinite (R4);
* F2  y^T |part| y <= sum_i weight_i y_i^2, `weight_i` rounded-up row sums of absolute values;
* F3  k^T part k <= contraction * s2 for every k = (k(x_i, x))_i: part <= contraction K^-1, verified;
* F4  positive + negative <= diag(`diagonal`), verified (used by other kernels than the Gaussian only).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.facts.definite import (
    Parts,
    block_contraction,
    definite_parts,
    inverse_contraction,
    verified_diagonal,
)
from gpcert.clock import standing
from gpcert.kernels import RBF, Group, Kernel, radial_terms
from gpcert.posterior import Posterior
from gpcert.rounding import LARGEST, TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float


def unit_gram(points: Float, lengthscale: Float) -> tuple[Float, float]:
    """exp(-|(x_i - x_j) / l|^2 / 2) for raw points (n, d), (n, n), and its largest absolute error."""
    d = len(lengthscale)
    centred = (points - points.mean(axis=0)) / lengthscale
    norms = np.einsum("ij,ij->i", centred, centred)
    half = centred @ centred.T
    half -= 0.5 * norms[:, None]
    half -= 0.5 * norms[None, :]
    np.minimum(half, 0.0, out=half)
    # Centring rounds a coordinate by at most 2u times the raw one: the second term, for far-away data.
    largest = float(norms.max(initial=0.0))
    moved = 4.0 * UNIT * float((np.abs(points) / lengthscale).max(initial=0.0)) * np.sqrt(d)
    exponent = 8.0 * UNIT * (d + 8) * largest + 4.0 * moved * (np.sqrt(largest) + moved)
    error = 2.0 * exponent + 32.0 * UNIT if exponent < 0.25 else 1.0
    return np.exp(half, out=half), float(error)


def kernel_gram(kernel: Kernel, points: Float) -> tuple[Float, float]:
    """K / k(x, x) for raw points (n, d), (n, n), and its largest absolute error, for any kernel.

    Distances are wrong by a factor 1 +- 200 (d + 4) u (kernels/distances.py), and z |phi'(z)| <= phi(0) -
    phi(z), because phi is convex and decreasing. Products of factors add their errors.
    """
    if isinstance(kernel, RBF):
        scales = np.array(np.broadcast_to(kernel.lengthscale, (points.shape[1],)), dtype=np.float64)
        return unit_gram(points, scales)
    K = kernel(points)
    K /= kernel.prior_variance
    factors = 1 + sum(name.endswith("variance") for name in kernel.parameter_names)  # one per kernel in it
    drop = 1.0 - float(K.min(initial=1.0)) + 1e-6
    return K, UNIT * factors * (300.0 * (points.shape[1] + 8) * drop + 64.0)


def is_moderate(kernel: Kernel, lengthscale: Float, centres: Float, *numbers: Float | float) -> bool:
    """Whether `numbers` and the centres (n, d), in units of `lengthscale` (d,), are at most LARGEST, and the
    variances of all parts of the kernel at least 1/LARGEST, too.
    """
    spread = np.abs(centres).max(initial=0.0) <= 2.0**900 and np.ptp(centres, axis=0) <= LARGEST * lengthscale
    theta = zip(kernel.parameter_names, np.exp(kernel.theta).tolist(), strict=True)
    variances = [value for name, value in theta if name.endswith("variance")]
    return bool(
        np.all(spread)
        and all(1.0 <= value * LARGEST <= LARGEST * LARGEST for value in (*variances, kernel.prior_variance))
        and all(np.abs(each).max(initial=0.0) <= LARGEST for each in numbers)
    )


_T = TypeVar("_T")
#: A precision whose product with K + N is this close to the identity needs neither shift nor factorisation.
_NEARLY = 1e-6


def kept(cache: dict[bytes, _T], key: bytes, most: int, make: Callable[[], _T]) -> _T:
    """What is kept under the key, or made now; the `most` latest are kept."""
    if key not in cache:
        while len(cache) >= most:
            cache.pop(next(iter(cache)))
        cache[key] = make()
    return cache[key]


@dataclass(frozen=True, eq=False)
class Model:
    """mu = mean + k^T weights and S = prior - k^T precision k with one kernel, and verified facts.

    n centres, d features. For a posterior `prior` is s2; another affine functional of several latents has
    its own prior, weights and precision.
    """

    centres: Float  #: (n, d), raw units
    terms: tuple[tuple[Group, ...], ...]  #: the kernel, a sum of products of radial factors
    lengthscale: Float  #: (d,), the smallest of all factors
    variance: float  #: s2 = k(x, x), to a few roundings for sums and products
    prior: float
    weights: Float  #: alpha (n,)
    mean: float
    parts: Parts  #: F1
    precision: Float  #: (n, n), as given
    magnitude: Float  #: positive + negative (n, n)
    row_weight: Float  #: (n,), F2 of magnitude and of precision
    contraction: float  #: F3 of magnitude; inf where it could not be verified
    unit_gram: tuple[Float, float]  #: K / s2 (n, n) and a bound of its entries' errors
    contraction_precision: float  #: F5 of the precision itself
    contraction_negative: float  #: F3 of the negative part
    moderate: bool  #: R7: whether expansions may be used; otherwise F3 is not known either
    grams: dict[bytes, tuple[Float, float]] = field(default_factory=dict, repr=False)  #: of `Slice.gram`
    site_precision: Float | None = None  #: (n,), a likely `diagonal`
    prior_error: float = 0.0  #: S is within this of what prior and precision say: of functionals (M3)

    @property
    def definite(self) -> bool:
        """No negative part."""
        return self.parts.negative is None

    @property
    def deepest(self) -> float:
        """F3: how far S may lie below 0 anywhere; inf where only a bound over a box can tell."""
        if not self.definite:
            return np.inf
        c = min(self.contraction, self.contraction_precision)
        return max(0.0, c * self.variance - self.prior) + 4 * UNIT * (abs(self.prior) + self.variance)

    @cached_property
    def lift(self) -> float:
        """`deepest` of any posterior, from the contraction of its precision (M2, one latent); inf: unknown.

        Other functionals of latents have rounded precisions.
        """
        if self.definite or not self.moderate or self.prior != self.variance:
            return self.deepest
        c = block_contraction(self.precision, *self.unit_gram, self.variance)
        return max(0.0, c * self.variance - self.prior) + 4 * UNIT * (abs(self.prior) + self.variance)

    def excess_variance(self, k: Float) -> float:
        """F1: |S - (prior - k^T (positive - negative) k)| is at most this for |k_i| <= k (n,)."""
        return sum_up(self.parts.defect * k * k) * (1.0 + 8 * UNIT)

    def largest_variance(self, k: Float) -> float:
        """F1-F3: an upper bound of S for |k_i| <= k (n,)."""
        most = self.prior + 4 * UNIT * abs(self.prior) + self.excess_variance(k)
        if self.parts.negative is None:
            return most
        gain = min(sum_up(self.row_weight * k * k), self.contraction_negative * self.variance)
        return (most + gain) * (1.0 + 4 * UNIT)

    def weighted(self, y: Float) -> float:
        """F2: an upper bound of |V y|, V^T V = magnitude, for |entries| <= y (n,)."""
        return sqrt_up(sum_up(self.row_weight * y * y))

    @cached_property
    def spread(self) -> Float:
        """Of the centres along each feature, in lengthscales (d,)."""
        return np.asarray(self.centres.std(axis=0) / self.lengthscale)

    @cached_property
    def mean_norm(self) -> float:
        """K6: an upper bound of the norm of sum_i alpha_i k(., x_i) in the RKHS."""
        gram, entry = self.unit_gram
        size = float(np.abs(self.weights).sum())
        error = (entry + gamma(2 * len(gram))) * size * size * 1.01
        square = max(float(self.weights @ (gram @ self.weights)), 0.0) + error
        return sqrt_up(square * self.variance) * (1.0 + 16 * UNIT)

    @cached_property
    def diagonal(self) -> Float:
        """F4: |V z|^2 <= sum_i diagonal_i z_i^2 for every z (n,); the smallest of those that verify."""
        found = [self.row_weight]
        sites = self.site_precision
        if sites is not None and (sites > 0).all():
            found += verified_diagonal(self.magnitude, sites)
        found += verified_diagonal(self.magnitude, np.diagonal(self.magnitude))
        return min(found, key=lambda diagonal: float(diagonal.sum()))


_models: WeakKeyDictionary[Posterior, Model] = WeakKeyDictionary()


def model_of(posterior: Posterior) -> Model:
    """The verified model of a posterior, computed once and kept as long as the posterior lives."""
    if posterior not in _models:
        with np.errstate(all="ignore"), standing():
            _models[posterior] = _verified(posterior)
    return _models[posterior]


def _verified(posterior: Posterior) -> Model:
    """Facts F1 to F3 and F5."""
    kernel = posterior.kernel
    assert isinstance(kernel, Kernel)
    centres, R = np.ascontiguousarray(posterior.centres), np.ascontiguousarray(posterior.precision)
    terms, variance, mean = (
        radial_terms(kernel, centres.shape[1]),
        kernel.prior_variance,
        float(posterior.mean),
    )
    lengthscale = np.min([group.lengthscale for term in terms for group in term], axis=0)
    sites = posterior.factors.get("site_precision")
    moderate = is_moderate(kernel, lengthscale, centres, posterior.weights, mean, variance, R)
    gram = kernel_gram(kernel, centres) if moderate else (np.zeros_like(R), np.inf)
    own = inverse_contraction(R, *gram, variance, sites) if moderate else np.inf
    if own <= 1.0 + _NEARLY:  # then R >= 0 as well (F5)
        parts, c = Parts(R, None, np.zeros(len(R))), own
    else:
        parts = definite_parts(R, lambda: kernel(centres))
        moderate = moderate and is_moderate(kernel, lengthscale, centres, parts.magnitude)
        c = block_contraction(parts.magnitude, *gram, variance) if moderate else np.inf
    rows = (
        np.abs(parts.positive) if parts.negative is None else np.abs(parts.positive) + np.abs(parts.negative)
    )
    row_weight = np.maximum(rows.sum(axis=1), np.abs(R).sum(axis=1))
    return Model(
        centres=centres,
        terms=terms,
        lengthscale=lengthscale,
        variance=variance,
        prior=variance,
        weights=posterior.weights,
        mean=mean,
        parts=parts,
        precision=R,
        magnitude=parts.magnitude,
        row_weight=row_weight * (1.0 + 4.0 * gamma(len(centres) + 2)) + TINY,
        contraction=c,
        unit_gram=gram,
        contraction_precision=own if moderate else np.inf,
        contraction_negative=_of_negative(parts.negative, gram, variance) if moderate else np.inf,
        moderate=moderate,
        site_precision=sites,
    )


def _of_negative(negative: Float | None, gram: tuple[Float, float], variance: float) -> float:
    """F3 of the negative part."""
    return 0.0 if negative is None else block_contraction(negative, *gram, variance, small=True)

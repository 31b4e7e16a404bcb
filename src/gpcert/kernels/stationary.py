"""The stationary kernels variance * phi(z): RBF, Matern 1/2, 3/2, 5/2, rational quadratic."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gpcert.kernels.base import Anchors, Distances, Gram, Index, Kernel, Scaled
from gpcert.validation import Float, freeze, positive, require

# 2 exp(-3/2), rounded up.
_STEEPEST_GAUSSIAN = 0.4463

# exp(-s) is 0 in float64 from s = 746 on; the cap keeps (1 + s) exp(-s) from becoming inf * 0, and the error
# bounds of a phi that is certainly 0 from growing with z.
_LARGEST_EXPONENT = 1e4

# _LADDER[p][m]: the m-th derivative of the Matern p + 1/2 is this multiple of the (p - m)-th ladder function.
_LADDER = ((1.0,), (1.0, -3.0), (1.0, -5.0 / 3.0, 25.0 / 3.0))
# d^m/dz^m exp(-s) = (-c)^m exp(-s) (sum_k coefficient_k s^-k) s^-m.
_IN_INVERSE_ROOT: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1.0, 1.0),
    3: (1.0, 3.0, 3.0),
    4: (1.0, 6.0, 15.0, 15.0),
}


class Profile(ABC):
    """phi on [0, inf), completely monotone: (-1)^m phi^(m) >= 0 for every m; and the facts bounds may use.

    `smoothness`: how many derivatives are finite at 0 (math.inf: all).
    """

    smoothness: float

    @property
    @abstractmethod
    def steepest(self) -> float:
        """A bound of phi' + 2 z phi'' over z > 0: the second derivative of the kernel along any unit line."""

    @abstractmethod
    def value(self, z: Float) -> Float:
        """phi(z), any shape, z >= 0 (inf allowed)."""

    @abstractmethod
    def exponent(self, z: Float) -> Float:
        """g(z) with z |phi^(m+1)(z)| <= (g + m + 1) |phi^(m)(z)|, same shape: how rounding of z moves phi.

        Cut at 1e4, where phi is below every double; inf where z = inf tells nothing about phi.
        """

    def derivative(self, z: Float, order: int) -> Float:
        """The derivative of phi of the given order (1 to 4) in z, same shape as z; +-inf where singular."""
        require(order in (1, 2, 3, 4), f"order must be 1, 2, 3 or 4, got {order!r}")
        with np.errstate(over="ignore"):  # close to a singularity the value is beyond the doubles: infinite
            return self._derivative(np.asarray(z, dtype=np.float64), order)

    @abstractmethod
    def _derivative(self, z: Float, order: int) -> Float: ...


@dataclass(frozen=True)
class Gaussian(Profile):
    """phi(z) = exp(-z)."""

    smoothness = math.inf

    @property
    def steepest(self) -> float:
        """(2 z - 1) exp(-z) is largest at z = 3/2."""
        return _STEEPEST_GAUSSIAN

    def exponent(self, z: Float) -> Float:
        return np.minimum(np.asarray(z, dtype=np.float64), _LARGEST_EXPONENT)

    def value(self, z: Float) -> Float:
        return np.asarray(np.exp(-np.asarray(z, dtype=np.float64)))

    def _derivative(self, z: Float, order: int) -> Float:
        return self.value(z) if order % 2 == 0 else -self.value(z)


@dataclass(frozen=True)
class HalfIntegerMatern(Profile):
    """Matern of smoothness nu = steps + 1/2: 1/2, 3/2, 5/2 for steps 0, 1, 2.

    With c = 2 nu and s = sqrt(2 c z): phi = exp(-s), (1 + s) exp(-s), (1 + s + s^2/3) exp(-s). Since
    d/dz = (c/s) d/ds, each derivative takes one step down this ladder and then runs through the
    derivatives of exp(-s).
    """

    steps: int

    def __post_init__(self) -> None:
        require(self.steps in (0, 1, 2), f"steps must be 0, 1 or 2, got {self.steps!r}")

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """Derivatives finite at 0: 0, 1, 2."""
        return float(self.steps)

    @property
    def steepest(self) -> float:
        """exp(-s) <= 1; 3 (s - 1) exp(-s) at s = 2; (5/3) (s^2 - s - 1) exp(-s) at s = 3."""
        return (1.0, 0.4061, 0.4150)[self.steps]

    def exponent(self, z: Float) -> Float:
        return self._root(np.asarray(z, dtype=np.float64))

    def value(self, z: Float) -> Float:
        s = self._root(np.asarray(z, dtype=np.float64))
        return self._ladder(s, self.steps)

    def _derivative(self, z: Float, order: int) -> Float:
        s = self._root(z)
        down = min(order, self.steps)
        factor = _LADDER[self.steps][down]
        if order == down:
            return np.asarray(factor * self._ladder(s, self.steps - down))
        return np.asarray(factor * _exponential_derivative(s, 2 * self.steps + 1, order - down))

    def _root(self, z: Float) -> Float:
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(np.sqrt(2 * (2 * self.steps + 1) * z), _LARGEST_EXPONENT))

    @staticmethod
    def _ladder(s: Float, step: int) -> Float:
        decay = np.exp(-s)
        if step == 0:
            return np.asarray(decay)
        return np.asarray(decay * ((1.0 + s) if step == 1 else (1.0 + s * (1.0 + s / 3.0))))


def _exponential_derivative(s: Float, c: int, order: int) -> Float:
    """d^order/dz^order of exp(-s), s = sqrt(2 c z): a polynomial in 1/s times exp(-s); infinite at s = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        t = 1.0 / s
        *rest, highest = _IN_INVERSE_ROOT[order]
        polynomial = np.full_like(t, highest)
        for coefficient in reversed(rest):
            polynomial = coefficient + t * polynomial
        result = float((-c) ** order) * np.exp(-s) * polynomial
        for _ in range(order):
            result = result * t
        return np.asarray(result)


@dataclass(frozen=True)
class RationalQuadraticProfile(Profile):
    """phi(z) = (1 + z/alpha)^-alpha."""

    alpha: float

    smoothness = math.inf

    @property
    def steepest(self) -> float:
        """A mixture of exp(-t z) over t of mean 1: at most the Gaussian's."""
        return _STEEPEST_GAUSSIAN

    def exponent(self, z: Float) -> Float:
        """alpha log(1 + z/alpha); phi falls so slowly that a z beyond the doubles says nothing about it."""
        z = np.asarray(z, dtype=np.float64)
        return np.where(np.isinf(z), np.inf, np.minimum(self.alpha * self._log(z), _LARGEST_EXPONENT))

    def value(self, z: Float) -> Float:
        """phi(z), same shape as z; by log1p, so that large alpha tends to exp(-z) without loss."""
        return np.asarray(np.exp(-self.alpha * self._log(np.asarray(z, dtype=np.float64))))

    def _log(self, z: Float) -> Float:
        """log(1 + z/alpha), also where z/alpha is beyond the doubles: there the 1 does not show."""
        with np.errstate(over="ignore"):
            u = z / self.alpha
            beyond = np.isinf(u)
            if not beyond.any():
                return np.asarray(np.log1p(u))
            return np.where(beyond, np.log(np.where(beyond, z, 1.0)) - math.log(self.alpha), np.log1p(u))

    def _derivative(self, z: Float, order: int) -> Float:
        # phi^(m) = (-1)^m phi * prod_{k<m} (alpha + k)/(alpha + z): no power that could overflow.
        result = self.value(z)
        for k in range(order):
            result = result * (-(self.alpha + k) / (self.alpha + z))
        return result

    def alpha_slope(self, z: Float) -> Float:
        """d phi / d log alpha, same shape as z."""
        return np.asarray(self.value(z) * (self.alpha * (z / (self.alpha + z) - self._log(z))))


SteepPairs = tuple[Index, Float, Float]


@dataclass(frozen=True, eq=False, repr=False)
class Stationary(Kernel):
    """variance * phi(z), z half the squared distance after division by the lengthscale.

    `lengthscale`: a number, or one per feature (d,); `variance`: a number. All > 0.
    """

    lengthscale: float | Float = 1.0
    variance: float = 1.0

    type_name: ClassVar[str]

    def __post_init__(self) -> None:
        lengthscale = positive("lengthscale", self.lengthscale)
        require(
            lengthscale.ndim == 0 or (lengthscale.ndim == 1 and lengthscale.size > 0),
            f"lengthscale must be a number or one per feature, got shape {lengthscale.shape}",
        )
        object.__setattr__(
            self, "lengthscale", freeze(lengthscale) if lengthscale.ndim else float(lengthscale)
        )
        for name in self._scalar_names:
            value = positive(name, getattr(self, name))
            require(value.ndim == 0, f"{name} must be a number, got shape {value.shape}")
            object.__setattr__(self, name, float(value))

    @property
    @abstractmethod
    def profile(self) -> Profile:
        """phi and its facts."""

    @property
    def _scalar_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in fields(self) if field.name != "lengthscale")

    @property
    def prior_variance(self) -> float:
        return self.variance

    @property
    def exact_variance(self) -> Fraction:
        return Fraction(self.variance)

    @property
    def n_features(self) -> int | None:
        """The number of lengthscales, None for a scalar."""
        return None if isinstance(self.lengthscale, float) else len(self.lengthscale)

    @property
    def theta(self) -> Float:
        """log lengthscale(s), log variance (and log alpha), (p,)."""
        scalars = [getattr(self, name) for name in self._scalar_names]
        return np.asarray(np.log(np.append(self.lengthscale, scalars)))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """lengthscale or lengthscale[0], ...; variance; alpha."""
        if self.n_features is None:
            return ("lengthscale", *self._scalar_names)
        return (*(f"lengthscale[{k}]" for k in range(self.n_features)), *self._scalar_names)

    def with_theta(self, theta: ArrayLike) -> Self:
        values = self._parameters(theta)
        count = self.n_features or 1
        lengthscale = values[0] if self.n_features is None else values[:count]
        return type(self)(lengthscale, *values[count:])

    def matrix(self, distances: Distances) -> Float:
        """variance * phi(z) (n, m)."""

        def value(z: Float) -> Float:
            k = self.profile.value(z)
            k *= self.variance
            return k

        return distances.assemble(self.lengthscale, value)

    def gram_of(self, distances: Distances) -> Gram:
        return StationaryGram(self, distances, self.matrix(distances))

    def input_gradient(self, X: ArrayLike, Z: ArrayLike | Anchors, B: Float) -> Float:
        """sum_j B_ij dk(X_i, Z_j)/dX_i (m, d), from dk/dx = variance phi'(z) (x - x')/l^2."""
        scaled = Scaled(self._distances(X, Z), self.lengthscale)
        gradient = np.zeros(scaled.a.shape)
        for rows, z in scaled.distances.row_blocks(self.lengthscale):
            self._add_slopes(scaled, rows, z, B[rows], gradient)
        return np.asarray(gradient / self.lengthscale)

    def weighted(self, X: Float, Z: Anchors, w: Float) -> tuple[Float, Float]:
        scaled = Scaled(self._distances(X, Z), self.lengthscale)
        values, gradient = np.zeros(len(X)), np.zeros(scaled.a.shape)
        for rows, z in scaled.distances.row_blocks(self.lengthscale):
            values[rows] = (self.profile.value(z) @ w) * self.variance
            self._add_slopes(scaled, rows, z, w, gradient)
        return values, np.asarray(gradient / self.lengthscale)

    def _add_slopes(self, scaled: Scaled, rows: slice, z: Float, B: Float, gradient: Float) -> None:
        S = self.slopes(z, B)
        for i, weight, difference in self.steep_pairs(scaled, rows, z, S):
            np.add.at(gradient[rows], i, weight[:, None] * difference)
        gradient[rows] += S.sum(axis=1)[:, None] * scaled.a[rows] - S @ scaled.b

    def slopes(self, z: Float, B: Float) -> Float:
        """S_ij = B_ij variance phi'(z_ij), same shape as z, 0 where z = 0; B (n, m), or (m,) for all rows."""
        S = self.profile.derivative(z, 1)
        S[z == 0.0] = 0.0
        S *= self.variance
        S *= B
        return S

    def steep_pairs(self, scaled: Scaled, rows: slice, z: Float, S: Float) -> Iterator[SteepPairs]:
        """Take near pairs out of S where phi' is unbounded at 0: (i, S_ij, (X_i - Z_j)/l) in pieces.

        There S would magnify the rounding of the matrix products that sum all other pairs.
        """
        if self.profile.smoothness >= 1:
            return
        for i, j, difference in scaled.differences(rows, slice(None), scaled.near(rows, z)):
            weight = S[i, j]
            S[i, j] = 0.0
            yield i, weight, difference

    def extra_contraction(self, z: Float, G: Float) -> list[float]:
        """sum_ij G_ij dk/dtheta for the parameters after lengthscale and variance; none by default."""
        return []

    def to_dict(self) -> dict[str, Any]:
        lengthscale = self.lengthscale
        exact = lengthscale.hex() if isinstance(lengthscale, float) else [float(l).hex() for l in lengthscale]
        scalars = {name: getattr(self, name).hex() for name in self._scalar_names}
        return {"type": self.type_name, "lengthscale": exact, **scalars}

    def __repr__(self) -> str:
        lengthscale = self.lengthscale if isinstance(self.lengthscale, float) else self.lengthscale.tolist()
        scalars = "".join(f", {name}={getattr(self, name)!r}" for name in self._scalar_names)
        return f"{type(self).__name__}(lengthscale={lengthscale!r}{scalars})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, eq=False)
class StationaryGram(Gram):
    """Gram matrix of a stationary kernel; gradients recompute distances block by block."""

    kernel: Stationary
    distances: Distances
    matrix: Float

    def contract(self, G: Float) -> Float:
        """sum_ij G_ij dK_ij/dtheta (p,): lengthscale(s), variance, alpha."""
        kernel = self.kernel
        by_variance = float(np.einsum("ij,ij->", G, self.matrix))
        extra = np.zeros(len(kernel.parameter_names) - (kernel.n_features or 1) - 1)
        by_lengthscale: float | Float = 0.0
        for rows, z in self.distances.row_blocks(kernel.lengthscale):
            extra += kernel.extra_contraction(z, G[rows])
            by_lengthscale = by_lengthscale + self._by_lengthscale(rows, z, G[rows])
        return np.concatenate([np.atleast_1d(by_lengthscale), [by_variance], extra])

    def _by_lengthscale(self, rows: slice, z: Float, G: Float) -> float | Float:
        """The rows' part of -sum_ij S_ij ((x_ik - x_jk)/l_k)^2, summed over k for a scalar lengthscale."""
        S = self.kernel.slopes(z, G)
        if self.kernel.n_features is None:
            return -2.0 * float(np.einsum("ij,ij->", S, z))
        total = np.zeros(self.kernel.n_features)
        for _, weight, difference in self.kernel.steep_pairs(self._scaled, rows, z, S):
            total += weight @ difference**2
        # sum_ij S_ij (a_i - a_j)^2 = sum_i r_i a_i^2 + sum_j c_j a_j^2 - 2 a^T S a: one matrix product.
        a = self._scaled.a
        total += S.sum(axis=1) @ a[rows] ** 2 + S.sum(axis=0) @ a**2
        total -= 2.0 * np.einsum("ik,ik->k", a[rows], S @ a)
        return -total

    @cached_property
    def _scaled(self) -> Scaled:
        return Scaled(self.distances, self.kernel.lengthscale)


@dataclass(frozen=True, eq=False, repr=False)
class RBF(Stationary):
    """variance * exp(-z), z half the squared distance in lengthscales: the squared-exponential kernel.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One number, or one for each feature, > 0, in the units of the features.
    variance : float
        k(x, x), > 0: the prior variance of the latent function.

    Examples
    --------
    >>> k = gc.RBF(lengthscale=[1.0, 2.0], variance=4.0)
    >>> k(np.zeros((1, 2)), np.zeros((1, 2)))
    array([[4.]])
    """

    type_name = "rbf"
    profile = Gaussian()


@dataclass(frozen=True, eq=False, repr=False)
class Matern12(Stationary):
    """variance * exp(-rho), rho the distance in lengthscales: the exponential kernel.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One number, or one for each feature, > 0, in the units of the features.
    variance : float
        k(x, x), > 0: the prior variance of the latent function.

    Examples
    --------
    >>> gc.Matern12(1.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[1.]])
    """

    type_name = "matern12"
    profile = HalfIntegerMatern(0)


@dataclass(frozen=True, eq=False, repr=False)
class Matern32(Stationary):
    """variance * (1 + s) exp(-s), s = sqrt(3) rho, rho the distance in lengthscales.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One number, or one for each feature, > 0, in the units of the features.
    variance : float
        k(x, x), > 0: the prior variance of the latent function.

    Examples
    --------
    >>> gc.Matern32(1.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[1.]])
    """

    type_name = "matern32"
    profile = HalfIntegerMatern(1)


@dataclass(frozen=True, eq=False, repr=False)
class Matern52(Stationary):
    """variance * (1 + s + s^2/3) exp(-s), s = sqrt(5) rho, rho the distance in lengthscales.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One number, or one for each feature, > 0, in the units of the features.
    variance : float
        k(x, x), > 0: the prior variance of the latent function.

    Examples
    --------
    >>> gc.Matern52(1.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[1.]])
    """

    type_name = "matern52"
    profile = HalfIntegerMatern(2)


@dataclass(frozen=True, eq=False, repr=False)
class RationalQuadratic(Stationary):
    """variance * (1 + z/alpha)^-alpha, z half the squared distance in lengthscales.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One number, or one for each feature, > 0, in the units of the features.
    variance : float
        k(x, x), > 0: the prior variance of the latent function.
    alpha : float
        The exponent, > 0.

    Examples
    --------
    >>> gc.RationalQuadratic(1.0, alpha=2.0)(np.zeros((1, 1)), np.zeros((1, 1)))
    array([[1.]])
    """

    alpha: float = 1.0

    type_name = "rational_quadratic"
    weighted = Kernel.weighted  # its matrix knows what lies beyond the doubles

    @property
    def profile(self) -> RationalQuadraticProfile:
        return RationalQuadraticProfile(self.alpha)

    def matrix(self, distances: Distances) -> Float:
        """variance * phi(z) (n, m); also where z is beyond the doubles: phi is then far from 0."""
        k = super().matrix(distances)
        largest = max(np.abs(points).max(initial=0.0) for points in (distances.X, distances.Z))
        if largest * 2.0**-500 < np.min(self.lengthscale):
            return k
        with np.errstate(over="ignore", divide="ignore"):
            far = np.log(distances.assemble(self.lengthscale * 2.0**500, lambda z: z)) + 1000.0 * np.log(2.0)
        beyond = np.isfinite(far) & (far > 709.0)
        return np.where(beyond, self.variance * np.exp(-self.alpha * (far - np.log(self.alpha))), k)

    def extra_contraction(self, z: Float, G: Float) -> list[float]:
        return [self.variance * float(np.einsum("ij,ij->", G, self.profile.alpha_slope(z)))]

"""Profiles: a stationary kernel as one function of half the squared scaled distance.

k(x, x') = variance * phi(z) with z = (1/2) sum_j ((x_j - x'_j) / l_j)^2 and phi(0) = 1.

Every profile here is completely monotone: (-1)^m phi^(m)(z) >= 0 for all z > 0 and all m. Bounds rest on
that fact and on the derivatives, so tests/kernels/test_kernel_facts.py sweeps both in ball arithmetic.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gpcert.validation import Float, require

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
    """phi on [0, inf) with its derivatives, and the facts bounds may use.

    `completely_monotone`: (-1)^m phi^(m) >= 0 for every m. `smoothness`: how many derivatives are finite
    at 0 (math.inf: all). `name`: for messages and tests.
    """

    name: str
    completely_monotone: bool
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

    name = "gaussian"
    completely_monotone = True
    smoothness = math.inf

    @property
    def steepest(self) -> float:
        """(2 z - 1) exp(-z) is largest at z = 3/2."""
        return _STEEPEST_GAUSSIAN

    def exponent(self, z: Float) -> Float:
        return np.minimum(np.asarray(z, dtype=np.float64), _LARGEST_EXPONENT)

    def value(self, z: Float) -> Float:
        """exp(-z), same shape as z."""
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

    completely_monotone = True

    def __post_init__(self) -> None:
        require(self.steps in (0, 1, 2), f"steps must be 0, 1 or 2, got {self.steps!r}")

    @property
    def name(self) -> str:  # type: ignore[override]
        """matern12, matern32 or matern52."""
        return f"matern{2 * self.steps + 1}2"

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

    name = "rational_quadratic"
    completely_monotone = True
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

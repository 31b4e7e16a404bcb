"""Stationary kernels s2 phi(z), phi(0) = 1, z half a squared distance: phi and |phi'| on arrays, and what a
row of any radius needs of them (docs/maths/batches.md, J14 and J15).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpcert.engine.backend import Array, Backend
from gpcert.engine.rounding import exp_up, sqrt_up, tail_squares
from gpcert.kernels import RBF, Kernel, Matern32, Matern52, RationalQuadratic

#: What a few operations on positive numbers round.
_MORE = 1.0 + 1e-12
#: Matern 3/2: where the tangent of x^(3/4) on [0, 1] touches; any point is sound.
_TOUCH = 0.2
#: Exponents of a rational quadratic for which its quantities are as exact as they need be.
_ALPHAS = 0.01, 1e6


class Ends(NamedTuple):
    """For r up to some R (N,), with G = phi'(0)/phi'(r): at least G(R), P = G phi at R, q/r, q = G (1 - phi),
    and numbers with G pi <= `constant` + `square` |d|^2, pi the power function.
    """

    grow: Array
    level: Array
    chord: Array
    constant: Array
    square: Array


class Thirds(NamedTuple):
    """J15, the same with G = phi''(0)/phi''(r) and a Hessian known: at least G(R), P(R), q/r, what a linear
    form grows by, G pi/|d|^2, and the square of r that a trace of 1 adds, per |d|^2.
    """

    grow: Array
    level: Array
    chord: Array
    linear: Array
    square: Array
    trace: Array


@dataclass(frozen=True)
class Profile:
    """`first`: |phi'(0)|. `exponent` (e <= 0 is -z): what a relative error of z moves phi by, at most."""

    first: float

    def both(self, xp: Any, e: Array) -> tuple[Array, Array]:
        """phi(z) and |phi'(z)| for e = -z."""
        raise NotImplementedError

    def exponent(self, xp: Any, e: Array) -> Array:
        """K1's g."""
        raise NotImplementedError

    def turned(self, error: Array, longest: Array) -> Array:
        """At least |phi'(z + error) - phi'(z)| |v| for |v|^2 = 2 z, |v| <= longest; all (N,)."""
        raise NotImplementedError

    def ends(self, backend: Backend, R: Array) -> Ends:
        """For sup r <= R (N,)."""
        raise NotImplementedError

    @property
    def second(self) -> float:
        """phi''(0), inf: there is none, and no `bent`, `thirds`."""
        return math.inf

    @property
    def bend(self) -> float:
        """K5: at least sup phi' + 2 z phi''."""
        raise NotImplementedError

    def curve(self, xp: Any, e: Array) -> Array:
        """phi''(z) for e = -z."""
        raise NotImplementedError

    def bent(self, error: Array) -> Array:
        """At least |phi''(z + error) - phi''(z)| |v|^2 for |v|^2 = 2 z; (N,)."""
        raise NotImplementedError

    def thirds(self, backend: Backend, R: Array) -> Thirds:
        """For sup r <= R (N,)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(Profile):
    """exp(-z): its rows have bounds of their own (`Sums`)."""

    def both(self, xp: Any, e: Array) -> tuple[Array, Array]:
        k = xp.exp(e)
        return k, k

    def exponent(self, xp: Any, e: Array) -> Array:
        return -e

    @property
    def second(self) -> float:
        return 1.0


@dataclass(frozen=True)
class _Matern32(Profile):
    """(1 + s) exp(-s), s = sqrt(6 z)."""

    def both(self, xp: Any, e: Array) -> tuple[Array, Array]:
        s = self.exponent(xp, e)
        decay = xp.exp(-s)
        return (1.0 + s) * decay, 3.0 * decay

    def exponent(self, xp: Any, e: Array) -> Array:
        return xp.sqrt(-6.0 * e)

    @property
    def bend(self) -> float:
        return 0.4061

    def curve(self, xp: Any, e: Array) -> Array:
        s = self.exponent(xp, e)
        return 9.0 * xp.exp(-s) / s

    def turned(self, error: Array, longest: Array) -> Array:
        return 13.0 * error

    def ends(self, backend: Backend, R: Array) -> Ends:
        S = sqrt_up(backend, 6.0 * R * _MORE)
        whole = sqrt_up(backend, tail_squares(backend, 3, 2.0 * S)) * _MORE
        chord = 6.0 * tail_squares(backend, 2, S) / (S * S) * _MORE
        touch = 0.75 * _TOUCH**-0.25 / (2.0 * R) * _MORE
        return Ends(
            exp_up(backend, S), (1.0 + S) * _MORE, chord, 0.25 * _TOUCH**0.75 * whole * _MORE, whole * touch
        )


@dataclass(frozen=True)
class _Matern52(Profile):
    """(1 + s + s^2/3) exp(-s), s = sqrt(10 z)."""

    def both(self, xp: Any, e: Array) -> tuple[Array, Array]:
        s = self.exponent(xp, e)
        decay = xp.exp(-s)
        return (1.0 + s * (1.0 + s / 3.0)) * decay, (5.0 / 3.0) * (1.0 + s) * decay

    def exponent(self, xp: Any, e: Array) -> Array:
        return xp.sqrt(-10.0 * e)

    def turned(self, error: Array, longest: Array) -> Array:
        return 9.0 * longest * error

    def ends(self, backend: Backend, R: Array) -> Ends:
        S = sqrt_up(backend, 10.0 * R * _MORE)
        square, one = S * S, 1.0 + S
        chord = 10.0 * (1.0 / 6.0 + tail_squares(backend, 3, S) / square) / one * _MORE
        last = (2.0 / 9.0 + tail_squares(backend, 5, 2.0 * S) / (square * square)) / (one * one)
        largest = backend.xp.maximum(last, last * 0.0 + 2.0 / 9.0) * _MORE
        level = 1.0 + square / (3.0 * one) * _MORE
        grow = exp_up(backend, S) / one * _MORE
        return Ends(grow, level * _MORE, chord, S * 0.0, 5.0 * sqrt_up(backend, largest) * _MORE)

    @property
    def second(self) -> float:
        return 25.0 / 3.0

    def curve(self, xp: Any, e: Array) -> Array:
        return (25.0 / 3.0) * xp.exp(-self.exponent(xp, e))

    def bent(self, error: Array) -> Array:
        return 14.0 * error

    def thirds(self, backend: Backend, R: Array) -> Thirds:
        S = sqrt_up(backend, 10.0 * R * _MORE)
        square = S * S
        chord = 10.0 * (1.0 / 6.0 + tail_squares(backend, 3, S) / square) * _MORE
        power = 5.0 * sqrt_up(backend, tail_squares(backend, 5, 2.0 * S)) / square * _MORE
        return Thirds(exp_up(backend, S), (1.0 + S + square / 3.0) * _MORE, chord, S, power, S * 0.0)


@dataclass(frozen=True)
class _RationalQuadratic(Profile):
    """(1 + z/alpha)^-alpha."""

    alpha: float

    def both(self, xp: Any, e: Array) -> tuple[Array, Array]:
        value = xp.exp(-self.exponent(xp, e))
        return value, value / (1.0 - e / self.alpha)

    def exponent(self, xp: Any, e: Array) -> Array:
        return self.alpha * xp.log1p(-e / self.alpha)

    def turned(self, error: Array, longest: Array) -> Array:
        return 1.1 * (1.0 + 1.0 / self.alpha) * longest * error

    def ends(self, backend: Backend, R: Array) -> Ends:
        xp, alpha = backend.xp, self.alpha
        T = R / alpha * _MORE
        log = xp.log1p(T) * _MORE
        grow = exp_up(backend, (alpha + 1.0) * log * _MORE)
        chord = (1.0 + T) * xp.expm1(alpha * log * _MORE) / R * _MORE
        bend = (
            (alpha + 1.0) * (2.0 * alpha + 1.0) * exp_up(backend, 2.0 * alpha * log * _MORE) - 1.0
        ) / alpha**2
        square = 0.5 * sqrt_up(backend, bend * (1.0 + 1e-9)) * _MORE
        return Ends(grow * _MORE, (1.0 + T) * _MORE, chord, T * 0.0, square)

    @property
    def second(self) -> float:
        return 1.0 + 1.0 / self.alpha

    def curve(self, xp: Any, e: Array) -> Array:
        return self.second * self.both(xp, e)[1] / (1.0 - e / self.alpha)

    def bent(self, error: Array) -> Array:
        return 2.2 * (1.0 + 1.0 / self.alpha) * error

    def thirds(self, backend: Backend, R: Array) -> Thirds:
        xp, alpha = backend.xp, self.alpha
        T = R / alpha * _MORE
        log = xp.log1p(T) * _MORE
        level = (1.0 + T) ** 2 * _MORE
        chord = level * xp.expm1(alpha * log * _MORE) / R * _MORE
        largest = (2.0 * alpha + 4.0) * (2.0 * alpha + 3.0) * (2.0 * alpha + 2.0)
        bend = largest * exp_up(backend, (2.0 * alpha + 1.0) * log * _MORE) - 24.0 - 12.0 * alpha
        power = 0.5 / alpha * sqrt_up(backend, T * bend / 6.0 * (1.0 + 1e-9)) * _MORE
        grow = exp_up(backend, (alpha + 2.0) * log * _MORE) * _MORE
        return Thirds(grow, level, chord, T, power, 0.5 * T / alpha * _MORE)


GAUSSIAN = Gaussian(1.0)


def profile_of(kernel: Kernel) -> Profile | None:
    """None: a kernel whose rows have no bounds."""
    if isinstance(kernel, RBF):
        return GAUSSIAN
    if isinstance(kernel, Matern32):
        return _Matern32(3.0)
    if isinstance(kernel, Matern52):
        return _Matern52(5.0 / 3.0)
    if isinstance(kernel, RationalQuadratic) and _ALPHAS[0] <= kernel.alpha <= _ALPHAS[1]:
        return _RationalQuadratic(1.0, float(kernel.alpha))
    return None

"""Kernels k = s2 phi(z) of half the squared scaled distance z; every phi is completely monotone (V13)."""

from __future__ import annotations

from typing import Any

from flint import arb

from gpcert_check.reading import fields, need, real

__all__ = ["Profile", "profile_of"]


def root(z: arb) -> arb:
    """The square root of a number >= 0 that is known to lie in the ball z."""
    need(z.is_finite(), "V13: a distance is not finite")
    low, high = z.lower(), z.upper()
    return (low.sqrt() if low > 0 else arb(0)).union(high.sqrt() if high > 0 else arb(0))


class Profile:
    """The Gaussian: phi = e^-z."""

    gaussian = True

    def value(self, z: arb) -> arb:
        """phi(z) for a number z >= 0 known to lie in the ball."""
        return (-z).exp()

    def slope(self, z: arb) -> arb:
        """phi'(z); not finite where it is infinite."""
        return -self.value(z)


class Matern(Profile):
    """Of smoothness steps + 1/2; with c = 2 steps + 1 and s = sqrt(2 c z): e^-s, (1 + s) e^-s, and
    (1 + s + s^2/3) e^-s. d/dz = (c/s) d/ds.
    """

    gaussian = False

    def __init__(self, steps: int) -> None:
        self.steps, self.c = steps, 2 * steps + 1

    def value(self, z: arb) -> arb:
        s = root(2 * self.c * z)
        return (-s).exp() * (1, 1 + s, 1 + s + s * s / 3)[self.steps]

    def slope(self, z: arb) -> arb:
        s = root(2 * self.c * z)
        return -(-s).exp() * (1 / s, arb(3), arb(5) / 3 * (1 + s))[self.steps]


class RationalQuadratic(Profile):
    """phi = (1 + z/a)^-a."""

    gaussian = False

    def __init__(self, a: float) -> None:
        need(a > 0, "the exponent of a rational quadratic kernel must be positive")
        self.a = arb(a)

    def _power(self, z: arb, more: int) -> arb:
        return (-(self.a + more) * (z / self.a).log1p()).exp()

    def value(self, z: arb) -> arb:
        return self._power(z, 0)

    def slope(self, z: arb) -> arb:
        return -self._power(z, 1)


_MATERN = {"matern12": 0, "matern32": 1, "matern52": 2}


def profile_of(kernel: Any) -> tuple[Profile, Any, Any]:
    """The profile that a model names, its lengthscales and its variance."""
    kind = kernel.get("type") if isinstance(kernel, dict) else None
    if kind == "rational_quadratic":
        _, scales, s2, alpha = fields(kernel, "type lengthscale variance alpha")
        return RationalQuadratic(real(alpha)), scales, s2
    need(kind == "rbf" or kind in _MATERN, f"this checker does not know the kernel {str(kind)[:40]}")
    _, scales, s2 = fields(kernel, "type lengthscale variance")
    return Profile() if kind == "rbf" else Matern(_MATERN[str(kind)]), scales, s2

"""Any kernel as a sum of products of radial factors: what the bounds expand.

Every kernel of this package is built from stationary ones by sums and products. `radial_terms` multiplies
that out and gathers the factors that share a metric (proportional lengthscales), so that

    k(x, x') = sum over terms of prod over groups of phi(z),   z = (1/2) sum_j ((x_j - x'_j) / l_j)^2,

l the lengthscales of the group. Sums and products of completely monotone functions of z, and z -> c z, are
completely monotone: each group's phi is one such function (docs/maths-kernels.md, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.compose import Product, Sum
from gpcert.kernels.profiles import Profile
from gpcert.kernels.stationary import Stationary
from gpcert.validation import Float

__all__ = ["Group", "Radial", "radial_terms"]

#: Lengthscales whose ratios agree to this relative accuracy count as proportional (K1).
_PROPORTIONAL = 2.0**-49
#: Beyond it every phi here is 0 in float64, which the callers' floor covers.
_LARGEST_EXPONENT = 1e4


@dataclass(frozen=True)
class Monomial:
    """weight * prod_f phi_f(ratio_f z)."""

    weight: float
    factors: tuple[tuple[Profile, float], ...]

    def derivatives(self, z: Float, order: int) -> list[Float]:
        """Value and derivatives in z up to `order`, by Leibniz; all terms of one sum have one sign."""
        total = [np.full_like(z, self.weight)] + [np.zeros_like(z) for _ in range(order)]
        for i, (profile, ratio) in enumerate(self.factors):
            scaled = z if ratio == 1.0 else ratio * z
            own = [profile.value(scaled)]
            own += [ratio**m * profile.derivative(scaled, m) for m in range(1, order + 1)]
            if i == 0:
                total = [self.weight * values for values in own]
                continue
            total = [
                sum((math.comb(m, j) * total[j] * own[m - j] for j in range(m + 1)), np.zeros_like(z))
                for m in range(order + 1)
            ]
        return total


@dataclass(frozen=True)
class Radial:
    """A completely monotone function phi of z: a sum of monomials."""

    monomials: tuple[Monomial, ...]

    def value(self, z: Float) -> Float:
        """phi(z), same shape."""
        return self.derivatives(z, 0)[0]

    def derivatives(self, z: Float, order: int) -> list[Float]:
        """phi, phi', ... up to `order` <= 4, each of the shape of z; infinite where singular."""
        with np.errstate(all="ignore"):  # 0 * inf next to a singularity is NaN: callers take it as unknown
            parts = [monomial.derivatives(z, order) for monomial in self.monomials]
            return [sum(column[1:], column[0]) for column in map(list, zip(*parts, strict=True))]

    def exponent(self, z: Float) -> Float:
        """g(z) with z |phi^(m+1)| <= (g + m + size) |phi^(m)|: how far rounding of z moves phi (K1)."""
        largest = np.zeros_like(z)
        for monomial in self.monomials:
            total = sum((profile.exponent(ratio * z) for profile, ratio in monomial.factors), 0.0)
            largest = np.maximum(largest, total)
        return np.minimum(largest, _LARGEST_EXPONENT)

    @property
    def size(self) -> int:
        """The number of factors of the longest monomial, plus the number of monomials."""
        return len(self.monomials) + max(len(monomial.factors) for monomial in self.monomials)

    @property
    def at_zero(self) -> float:
        """phi(0), to a few roundings."""
        return float(sum(monomial.weight for monomial in self.monomials))

    @property
    def steepest(self) -> float:
        """A bound of phi' + 2 z phi'' over z > 0 for one stationary kernel, inf for products (K5)."""
        if any(len(monomial.factors) != 1 for monomial in self.monomials):
            return math.inf
        parts = [
            monomial.weight * ratio * profile.steepest
            for monomial in self.monomials
            for profile, ratio in monomial.factors
        ]
        return float(sum(parts)) * (1.0 + 1e-12)


@dataclass(frozen=True, eq=False)
class Group:
    """One factor of a term: phi of the distance in the metric `lengthscale` (d,)."""

    lengthscale: Float
    phi: Radial


def radial_terms(kernel: Kernel, d: int) -> tuple[tuple[Group, ...], ...]:
    """The terms of a kernel on d features; each is a product of groups with different metrics."""
    whole: list[tuple[Float, list[Monomial]]] = []  # terms of one metric are gathered into one function
    mixed: list[tuple[Group, ...]] = []
    for factors in _multiplied_out(kernel):
        groups = _by_metric(factors, d)
        if len(groups) > 1:
            mixed.append(tuple(Group(scale, Radial((monomial,))) for scale, monomial in groups))
            continue
        scale, monomial = groups[0]
        for other, monomials in whole:
            ratio = _ratio(other, scale)
            if ratio is not None:
                monomials.append(_rescaled(monomial, ratio))
                break
        else:
            whole.append((scale, [monomial]))
    gathered = [(Group(scale, Radial(tuple(monomials))),) for scale, monomials in whole]
    return (*gathered, *mixed)


def _multiplied_out(kernel: Kernel) -> list[tuple[Stationary, ...]]:
    """The kernel as a list of products of stationary kernels."""
    if isinstance(kernel, Sum):
        return [product for part in kernel.parts for product in _multiplied_out(part)]
    if isinstance(kernel, Product):
        products: list[tuple[Stationary, ...]] = [()]
        for part in kernel.parts:
            products = [left + right for left in products for right in _multiplied_out(part)]
        return products
    assert isinstance(kernel, Stationary)
    return [(kernel,)]


def _by_metric(factors: tuple[Stationary, ...], d: int) -> list[tuple[Float, Monomial]]:
    """The factors of one product gathered by metric; the weight goes to the first."""
    weight = math.prod(factor.variance for factor in factors)
    found: list[tuple[Float, list[tuple[Profile, float]]]] = []
    for factor in factors:
        scale = np.array(np.broadcast_to(factor.lengthscale, (d,)), dtype=np.float64)
        for other, members in found:
            ratio = _ratio(other, scale)
            if ratio is not None:
                members.append((factor.profile, ratio))
                break
        else:
            found.append((scale, [(factor.profile, 1.0)]))
    return [
        (scale, Monomial(weight if i == 0 else 1.0, tuple(members)))
        for i, (scale, members) in enumerate(found)
    ]


def _ratio(one: Float, other: Float) -> float | None:
    """c with z in the metric `other` = c z in the metric `one`, to a few roundings; None: no such c."""
    ratios = one / other
    first = float(ratios[0])
    close = np.abs(ratios - first) <= _PROPORTIONAL * first
    square = first * first
    return square if close.all() and 1e-200 < square < 1e200 else None


def _rescaled(monomial: Monomial, ratio: float) -> Monomial:
    """phi(ratio z)."""
    return Monomial(monomial.weight, tuple((phi, c * ratio) for phi, c in monomial.factors))

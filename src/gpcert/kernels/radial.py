"""Any kernel as a sum of products of radial factors: what the bounds expand.

Every kernel of this package is built from stationary ones by sums and products. `radial_terms` multiplies
that out, adds up equal products, and gathers the factors that share a metric (proportional lengthscales), so
that

    k(x, x') = sum over terms of prod over groups of phi(z),   z = (1/2) sum_j ((x_j - x'_j) / l_j)^2,

l the lengthscales of the group. Sums and products of completely monotone functions of z, and z -> c z, are
completely monotone: each group's phi is one such function (docs/maths/kernels.md, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from gpcert.kernels.base import Kernel
from gpcert.kernels.compose import Product, Sum, rounded
from gpcert.kernels.profiles import Profile
from gpcert.kernels.stationary import Stationary
from gpcert.validation import Float, require

#: Lengthscales whose ratios agree to this relative accuracy count as proportional (K1).
_PROPORTIONAL = 2.0**-49
#: Squared ratios of lengthscales that are gathered: fourth powers of them stay far inside the doubles.
_WIDEST = 2.0**64
#: What a kernel may expand into; each piece costs some passes over the centres per box.
_MOST_PIECES = 256


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
        return largest

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


#: A product of factors, by their numbers in rising order.
Word = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Alphabet:
    """The different factors of a kernel on d features, numbered.

    Each is compared with the metrics themselves, never with another factor: deviations do not add up (K1).
    """

    d: int
    metrics: list[Float] = field(default_factory=list)
    letters: dict[tuple[int, Profile, float], int] = field(default_factory=dict)  #: (metric, phi, ratio)

    def number(self, kernel: Stationary) -> int:
        """The number of phi(ratio z), z in one of the metrics."""
        scale = np.array(np.broadcast_to(kernel.lengthscale, (self.d,)), dtype=np.float64)
        ratios = (_ratio(metric, scale) for metric in self.metrics)
        found = next(((i, ratio) for i, ratio in enumerate(ratios) if ratio is not None), None)
        if found is None:
            found = len(self.metrics), 1.0
            self.metrics.append(scale)
        return self.letters.setdefault((found[0], kernel.profile, found[1]), len(self.letters))


def radial_terms(kernel: Kernel, d: int) -> tuple[tuple[Group, ...], ...]:
    """The terms of a kernel on d features; each is a product of groups with different metrics."""
    alphabet = _Alphabet(d)
    words = _multiplied_out(kernel, alphabet)
    letters = list(alphabet.letters)
    whole: dict[int, list[Monomial]] = {}  # terms of one metric are gathered into one function
    mixed: list[tuple[Group, ...]] = []
    pieces = 0
    for word, weight in words.items():
        groups: dict[int, list[tuple[Profile, float]]] = {}
        for metric, profile, ratio in (letters[number] for number in word):
            groups.setdefault(metric, []).append((profile, ratio))
        pieces += len(word) + (len(groups) ** 2 if len(groups) > 1 else 0)
        _check_size(pieces)
        weights = [rounded(weight)] + [1.0] * (len(groups) - 1)
        monomials = [Monomial(w, tuple(group)) for w, group in zip(weights, groups.values(), strict=True)]
        if len(groups) == 1:
            whole.setdefault(next(iter(groups)), []).append(monomials[0])
            continue
        scales = [alphabet.metrics[metric] for metric in groups]
        mixed.append(tuple(Group(l, Radial((m,))) for l, m in zip(scales, monomials, strict=True)))
    gathered = [(Group(alphabet.metrics[metric], Radial(tuple(found))),) for metric, found in whole.items()]
    return (*gathered, *mixed)


def _multiplied_out(kernel: Kernel, alphabet: _Alphabet) -> dict[Word, Fraction]:
    """The kernel as a sum of products of factors, with exact weights; equal products are added up."""
    if isinstance(kernel, Stationary):
        return {(alphabet.number(kernel),): Fraction(kernel.variance)}
    assert isinstance(kernel, Sum | Product)
    total: dict[Word, Fraction] = {} if isinstance(kernel, Sum) else {(): Fraction(1)}
    for part in kernel.parts:
        own = _multiplied_out(part, alphabet)
        if isinstance(kernel, Sum):
            for word, weight in own.items():
                total[word] = total.get(word, Fraction(0)) + weight
            continue
        left, total, size = total, {}, 0
        for one, x in left.items():
            for other, y in own.items():
                word = tuple(sorted(one + other))
                size += 0 if word in total else len(word)
                _check_size(size)
                total[word] = total.get(word, Fraction(0)) + x * y
    return total


def _check_size(pieces: int) -> None:
    require(
        pieces <= _MOST_PIECES,
        f"kernel must multiply out into at most {_MOST_PIECES} factors (and pairs of factors with different "
        f"lengthscales) to be certified, got at least {pieces}",
    )


def _ratio(one: Float, other: Float) -> float | None:
    """c with z in the metric `other` = c z in the metric `one`, to 40 u (K1); None: no such c."""
    with np.errstate(over="ignore", under="ignore"):
        ratios = one / other
        first = float(ratios[0])
        close = np.abs(ratios - first) <= _PROPORTIONAL * first
    square = first * first
    return square if 1.0 / _WIDEST < square < _WIDEST and close.all() else None

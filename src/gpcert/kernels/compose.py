"""Kernels made of others: sums and products, read back from a description, and multiplied out for bounds.

`radial_terms` multiplies a kernel out into a sum of products of stationary ones, adds up equal products, and
gathers the factors that share a metric (proportional lengthscales), so that

    k(x, x') = sum over terms of prod over groups of phi(z),   z = (1/2) sum_j ((x_j - x'_j) / l_j)^2,

l the lengthscales of the group. Sums and products of completely monotone functions of z, and z -> c z, are
completely monotone: each group's phi is one such function (docs/maths/kernels.md, section 1).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gpcert.errors import InvalidInputError
from gpcert.kernels.base import Anchors, Distances, Gram, Kernel
from gpcert.kernels.stationary import Profile, Stationary
from gpcert.validation import Float, require


def rounded(exact: Fraction) -> float:
    """The nearest double; inf beyond all of them."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf


@dataclass(frozen=True, eq=False, repr=False)
class Composite(Kernel):
    """Several kernels of the same points; theta is the concatenation of theirs."""

    parts: tuple[Kernel, ...]

    type_name: ClassVar[str]
    part_name: ClassVar[str]

    def __post_init__(self) -> None:
        parts: list[Kernel] = []
        for part in tuple(self.parts):
            require(isinstance(part, Kernel), f"{self.part_name} must be kernels, got {part!r}")
            parts.extend(part.parts if isinstance(part, type(self)) else (part,))
        require(len(parts) >= 2, f"{self.part_name} must be at least 2 kernels, got {len(parts)}")
        sizes = sorted({part.n_features for part in parts if part.n_features is not None})
        require(len(sizes) <= 1, f"{self.part_name} must agree on the number of features, got {sizes}")
        object.__setattr__(self, "parts", tuple(parts))

    @property
    def n_features(self) -> int | None:
        """The number of features any part fixes, None if none does."""
        return next((part.n_features for part in self.parts if part.n_features is not None), None)

    @property
    def theta(self) -> Float:
        """The parts' theta, one after the other (p,)."""
        return np.concatenate([part.theta for part in self.parts])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parts' names, as in terms[0].variance (p,)."""
        return tuple(
            f"{self.part_name}[{i}].{name}"
            for i, part in enumerate(self.parts)
            for name in part.parameter_names
        )

    def with_theta(self, theta: ArrayLike) -> Self:
        self._parameters(theta)
        cuts = np.cumsum([len(part.parameter_names) for part in self.parts])[:-1]
        pieces = np.split(np.asarray(theta, dtype=np.float64), cuts)
        return type(self)(
            tuple(part.with_theta(piece) for part, piece in zip(self.parts, pieces, strict=True))
        )

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type_name, self.part_name: [part.to_dict() for part in self.parts]}

    @cached_property
    def prior_variance(self) -> float:
        """k(x, x) of the stored parameters, rounded once; 0 or inf where it is beyond the doubles."""
        return rounded(self.exact_variance)

    @abstractmethod
    def weights(self, matrices: list[Float], B: Float) -> Iterator[Float]:
        """For each part, the matrix (n, m) by which its derivatives enter sum_ij B_ij dk_ij."""


@dataclass(frozen=True, eq=False)
class CompositeGram(Gram):
    """Gram matrix of a sum or product from the Gram matrices of its parts."""

    kernel: Composite
    grams: tuple[Gram, ...]
    matrix: Float

    def contract(self, G: Float) -> Float:
        weights = self.kernel.weights([gram.matrix for gram in self.grams], G)
        return np.concatenate([gram.contract(W) for gram, W in zip(self.grams, weights, strict=True)])


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Composite):
    """k(x, x') = sum of the terms; `k + l` makes one.

    Parameters
    ----------
    parts : sequence of Kernel
        The terms, at least two.

    Examples
    --------
    >>> gc.RBF(1.0) + gc.Matern32(2.0)
    RBF(lengthscale=1.0, variance=1.0) + Matern32(lengthscale=2.0, variance=1.0)
    """

    type_name = "sum"
    part_name = "terms"

    @property
    def terms(self) -> tuple[Kernel, ...]:
        return self.parts

    @property
    def exact_variance(self) -> Fraction:
        return sum((part.exact_variance for part in self.parts), Fraction(0))

    def matrix(self, distances: Distances) -> Float:
        total = self.parts[0].matrix(distances)
        for part in self.parts[1:]:
            total += part.matrix(distances)
        return total

    def gram_of(self, distances: Distances) -> Gram:
        grams = tuple(part.gram_of(distances) for part in self.parts)
        total = grams[0].matrix.copy()
        for gram in grams[1:]:
            total += gram.matrix
        return CompositeGram(self, grams, total)

    def input_gradient(self, X: ArrayLike, Z: ArrayLike | Anchors, B: Float) -> Float:
        """sum_j B_ij dk(X_i, Z_j)/dX_i (m, d): the terms' sums."""
        return np.asarray(sum(part.input_gradient(X, Z, B) for part in self.parts))

    def weights(self, matrices: list[Float], B: Float) -> Iterator[Float]:
        return (B for _ in self.parts)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Product(Composite):
    """k(x, x') = product of the factors; `k * l` makes one.

    Parameters
    ----------
    parts : sequence of Kernel
        The factors, at least two.

    Examples
    --------
    >>> gc.RBF(1.0) * gc.Matern32(2.0)
    RBF(lengthscale=1.0, variance=1.0) * Matern32(lengthscale=2.0, variance=1.0)
    """

    type_name = "product"
    part_name = "factors"

    @property
    def factors(self) -> tuple[Kernel, ...]:
        return self.parts

    @property
    def exact_variance(self) -> Fraction:
        return math.prod((part.exact_variance for part in self.parts), start=Fraction(1))

    def matrix(self, distances: Distances) -> Float:
        total = self.parts[0].matrix(distances)
        for part in self.parts[1:]:
            total *= part.matrix(distances)
        return total

    def gram_of(self, distances: Distances) -> Gram:
        grams = tuple(part.gram_of(distances) for part in self.parts)
        total = grams[0].matrix.copy()
        for gram in grams[1:]:
            total *= gram.matrix
        return CompositeGram(self, grams, total)

    def input_gradient(self, X: ArrayLike, Z: ArrayLike | Anchors, B: Float) -> Float:
        """sum_j B_ij dk(X_i, Z_j)/dX_i (m, d), by the product rule."""
        distances = self._distances(X, Z)
        weights = self.weights([part.matrix(distances) for part in self.parts], B)
        gradients = [part.input_gradient(X, Z, W) for part, W in zip(self.parts, weights, strict=True)]
        return np.asarray(sum(gradients))

    def weights(self, matrices: list[Float], B: Float) -> Iterator[Float]:
        """B times the product of the other factors' matrices."""
        for own in range(len(matrices)):
            W = np.array(B, dtype=np.float64)
            for i, matrix in enumerate(matrices):
                if i != own:
                    W *= matrix
            yield W

    def __repr__(self) -> str:
        return " * ".join(f"({part!r})" if isinstance(part, Sum) else repr(part) for part in self.parts)


_COMPOSITE: dict[str, type[Composite]] = {kind.type_name: kind for kind in (Sum, Product)}
_DEEPEST = 50


def kernel_from_dict(description: object, depth: int = 0) -> Kernel:
    """The kernel that `Kernel.to_dict` described, bit for bit."""
    require(depth < _DEEPEST, f"kernel must be nested less than {_DEEPEST} deep, got more")
    if not isinstance(description, dict):
        raise InvalidInputError(f"kernel must be a mapping, got {type(description).__name__}")
    kind = description.get("type")
    for stationary in Stationary.__subclasses__():  # also those of a caller, once their module is imported
        if kind == stationary.type_name:
            return _stationary(stationary, description)
    if isinstance(kind, str) and kind in _COMPOSITE:
        composite = _COMPOSITE[kind]
        _check_keys(description, {"type", composite.part_name})
        parts = description[composite.part_name]
        if not isinstance(parts, list):
            raise InvalidInputError(f"{composite.part_name} must be a list, got {type(parts).__name__}")
        return composite(tuple(kernel_from_dict(part, depth + 1) for part in parts))
    raise InvalidInputError(f"kernel type must be known, got {str(kind)[:40]!r}")


def _stationary(kind: type[Stationary], description: dict[Any, Any]) -> Stationary:
    names = [field.name for field in fields(kind)]
    _check_keys(description, {"type", *names})
    lengthscale = description["lengthscale"]
    scales = (
        np.array([exact_float("lengthscale", item) for item in lengthscale])
        if isinstance(lengthscale, list)
        else exact_float("lengthscale", lengthscale)
    )
    return kind(scales, *(exact_float(name, description[name]) for name in names[1:]))


def exact_float(name: str, value: object) -> float:
    """The float a hexadecimal string stands for, bit for bit."""
    try:
        if isinstance(value, str):
            return float.fromhex(value)
    except (ValueError, OverflowError):
        pass
    raise InvalidInputError(f"{name} must be a hexadecimal float string, got {str(value)[:40]!r}")


def _check_keys(description: dict[Any, Any], expected: set[str]) -> None:
    if set(description) != expected:
        raise InvalidInputError(
            f"kernel must have the entries {sorted(expected)}, got {sorted(map(str, description))[:10]}"
        )


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

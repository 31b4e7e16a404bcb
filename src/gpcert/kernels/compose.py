"""Sums and products of kernels; nested ones of the same kind are flattened."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gpcert.kernels.base import Gram, Kernel
from gpcert.kernels.distances import Anchors, Distances
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
        """Sum of the terms' variances."""
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
        """Product of the factors' variances."""
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

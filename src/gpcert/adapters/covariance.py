"""Foreign kernel expressions: sums and products of stationary kernels, constants and white noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel, Product, Stationary, Sum
from gpcert.validation import Float


@dataclass(frozen=True)
class Covariance:
    """sum of `terms` + `constant` + `noise` [x is the same point as x']: what an expression amounts to."""

    terms: tuple[Kernel, ...] = ()
    constant: float = 0.0
    noise: float = 0.0

    @property
    def _smooth(self) -> float:
        """k(x, x) without the noise."""
        return self.constant + sum(term.prior_variance for term in self.terms)

    def __add__(self, other: Covariance) -> Covariance:
        return Covariance(self.terms + other.terms, self.constant + other.constant, self.noise + other.noise)

    def __mul__(self, other: Covariance) -> Covariance:
        crossed = [Product((a, b)) for a in self.terms for b in other.terms]
        mine = [rescaled(term, other.constant) for term in self.terms if other.constant]
        theirs = [rescaled(term, self.constant) for term in other.terms if self.constant]
        # Noise lives on the diagonal only: there a product is one of variances.
        total = (self._smooth + self.noise) * (other._smooth + other.noise)
        return Covariance(
            (*crossed, *mine, *theirs),
            self.constant * other.constant,
            max(0.0, total - self._smooth * other._smooth) if self.noise or other.noise else 0.0,
        )

    def kernel(self) -> Kernel:
        """The kernel without its noise; a constant term is refused, since no certified bound knows it."""
        if self.constant != 0.0:
            raise InvalidInputError(
                f"kernel must not add a constant (bias) term to others, got one of variance {self.constant:g}"
            )
        if not self.terms:
            raise InvalidInputError("kernel must have a stationary term such as RBF, got none")
        return self.terms[0] if len(self.terms) == 1 else Sum(self.terms)


def rescaled(kernel: Kernel, ratio: float) -> Kernel:
    """ratio * kernel, by its variances."""
    if isinstance(kernel, Sum):
        return Sum(tuple(rescaled(part, ratio) for part in kernel.parts))
    if isinstance(kernel, Product):
        return Product((rescaled(kernel.parts[0], ratio), *kernel.parts[1:]))
    assert isinstance(kernel, Stationary)
    return replace(kernel, variance=kernel.variance * ratio)


def stretched(kernel: Kernel, lengthscales: Callable[[Float], Float]) -> Kernel:
    """The kernel with other lengthscales, each (d,) from what it was."""
    if isinstance(kernel, Sum | Product):
        return type(kernel)(tuple(stretched(part, lengthscales) for part in kernel.parts))
    assert isinstance(kernel, Stationary)
    return replace(kernel, lengthscale=lengthscales(np.asarray(kernel.lengthscale)))

"""A link between floor and 1 - floor (V17): P = floor + (1 - 2 floor) P', P' that of another link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb

from gpcert_check.planes import Plane
from gpcert_check.reading import fields, need, real

__all__ = ["Floored"]


class Floored:
    """GPflow's Bernoulli: P >= floor + (1 - 2 floor) p where P' >= p."""

    spare = arb(0)

    def __init__(self, description: Any, link_of: Callable[[Any], Any]) -> None:
        _, link, floor = fields(description, "name link floor")
        self.inner, self.floor = link_of(link), arb(real(floor))
        need(0 < self.floor < 0.5, "the floor must lie between 0 and 1/2")
        need(self.inner.spare == 0, "a link with a floor must be symmetric")
        self.proof_fields = self.inner.proof_fields

    def expectation(self, mean: arb, variance: arb) -> arb:
        """P(1) at a latent mean and variance."""
        return self.lifted(self.inner.expectation(mean, variance))

    def lifted(self, p: arb) -> arb:
        """P where P' is p."""
        return self.floor + (1 - 2 * self.floor) * p

    def level(self, proof: dict[str, Any], latent: Any) -> FlooredLevel:
        """A level of the inner link, which stands for a higher probability."""
        level = self.inner.level(proof, latent)
        return FlooredLevel(level, self.lifted(level.probability))


class FlooredLevel:
    """Its planes are those of the inner level."""

    def __init__(self, inner: Any, probability: arb) -> None:
        self.inner, self.probability, self.hints = inner, probability, inner.hints
        self.uses_precision: Callable[..., bool] = inner.uses_precision
        self.plane: Callable[..., Plane] = inner.plane
        self.outright: Callable[..., arb] = inner.outright

"""Small two-class models with other kernels than the Gaussian; no gpcert."""

from __future__ import annotations

import math
from typing import Any

from making import Toy, hexed

KERNELS = ("matern12", "matern32", "matern52", "rational_quadratic")


def phi(kind: str, z: float, alpha: float) -> float:
    """By the formulas of the textbooks, in the distance r = sqrt(2 z)."""
    r = math.sqrt(2 * z)
    if kind == "matern12":
        return math.exp(-r)
    if kind == "matern32":
        return (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)
    if kind == "matern52":
        return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
    return (1 + r * r / (2 * alpha)) ** -alpha


class RadialToy(Toy):
    """A toy with another kernel."""

    def __init__(self, seed: int, kind: str, alpha: float = 1.7, **about: Any) -> None:
        self.kind, self.exponent = kind, alpha
        super().__init__(seed, **about)

    def kernel(self, a: list[float], b: list[float]) -> float:
        steps = [(x - y) / s for x, y, s in zip(a, b, self.scale, strict=True)]
        z = sum(d * d for d in steps) / 2
        return self.s2 * phi(self.kind, z, self.exponent)

    def description(self) -> dict[str, Any]:
        kernel = {"type": self.kind, "lengthscale": hexed(self.scale), "variance": self.s2.hex()}
        if self.kind == "rational_quadratic":
            kernel["alpha"] = self.exponent.hex()
        return super().description() | {"kernel": kernel}

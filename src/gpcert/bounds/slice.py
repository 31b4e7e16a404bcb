"""The posterior restricted to the features that move: what all boxes of one query share.

k_i(x) = amplitude_i exp(-|v_i|^2 / 2) with v_i = (centre_i - x) / lengthscale over the moving features only; the
features that stand still enter through `amplitude`. Distances come from differences of raw doubles, so data far
from the origin lose nothing (docs/maths.md, E1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpcert.bounds.model import Model
from gpcert.rounding import UNIT
from gpcert.validation import Float

__all__ = ["Slice", "make_slice"]


@dataclass(frozen=True, eq=False)
class Slice:
    """A model on its d moving features. `sign` = -1 bounds the other class: weights and mean change sign."""

    model: Model
    features: Float  #: indices of the moving features (d,)
    points: Float  #: centres on those features (n, d), raw units
    lengthscale: Float  #: (d,)
    amplitude: Float  #: (n,)
    still: Float  #: half squared distance on the features that stand still (n,)
    sign: float

    @property
    def weights(self) -> Float:
        """alpha of the class whose probability is bounded below (n,)."""
        return self.sign * self.model.weights

    @property
    def mean(self) -> float:
        """The prior mean of that class's latent."""
        return self.sign * self.model.mean

    def flipped(self) -> Slice:
        """The same slice for the other class, sharing every array (and the Gram matrix once it exists)."""
        other = replace(self, sign=-self.sign)
        if "gram" in self.__dict__:
            other.__dict__["gram"] = self.__dict__["gram"]
        return other

    @cached_property
    def gram(self) -> tuple[Float, float]:
        """exp(-|v_i - v_j|^2 / 2) on the moving features (n, n), and a bound on every entry's absolute error (E2)."""
        scaled = (self.points - self.points.mean(axis=0)) / self.lengthscale
        norms = np.einsum("ij,ij->i", scaled, scaled)
        half = scaled @ scaled.T
        half -= 0.5 * norms[:, None]
        half -= 0.5 * norms[None, :]
        np.minimum(half, 0.0, out=half)
        spread = float(np.abs(self.points).max()) / float(self.lengthscale.min())
        # Centring rounds each coordinate by at most u * spread, so distances move by the second term.
        exponent = 8.0 * UNIT * (len(self.lengthscale) + 8) * float(norms.max(initial=0.0))
        exponent += 8.0 * UNIT * spread * np.sqrt(len(self.lengthscale) * float(norms.max(initial=0.0)))
        error = 2.0 * exponent + 32.0 * UNIT if exponent < 0.25 else 1.0
        return np.exp(half, out=half), error

    def kernel(self, x: Float) -> tuple[Float, Float, Float]:
        """At x (d,), raw units: v (n, d), k (n,), and the relative error bound of k (n,) (E1)."""
        v = (self.points - x) / self.lengthscale
        z = 0.5 * np.einsum("ij,ij->i", v, v)
        k = self.amplitude * np.exp(-z)
        return v, k, UNIT * ((self.model.centres.shape[1] + 16) * (z + self.still) + 40.0)


def make_slice(model: Model, x: Float, features: Float, sign: float = 1.0) -> Slice:
    """The slice of `model` through x (D,) along `features`."""
    rest = np.ones(model.centres.shape[1], dtype=bool)
    rest[features] = False
    still = (model.centres[:, rest] - x[rest]) / model.lengthscale[rest]
    z = 0.5 * np.einsum("ij,ij->i", still, still)
    return Slice(
        model=model,
        features=features,
        points=np.ascontiguousarray(model.centres[:, features]),
        lengthscale=model.lengthscale[features],
        amplitude=model.variance * np.exp(-z),
        still=z,
        sign=sign,
    )

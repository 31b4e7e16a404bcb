"""The posterior restricted to the features that move: what all boxes of one query share.

k_i(x) = amplitude_i exp(-|v_i|^2 / 2) with v_i = (centre_i - x) / lengthscale over the moving features only;
the features that stand still enter through `amplitude`. Distances come from differences of raw doubles, so
data far from the origin lose nothing (docs/maths/bounds.md, E1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from gpcert.bounds.facts.model import Model, kept, unit_gram
from gpcert.bounds.geometry.domain import difference, nearest_and_farthest
from gpcert.bounds.local.enclosures import Interval, Restricted, latent_at
from gpcert.rounding import UNIT
from gpcert.validation import Float, Index

#: Above this many moving features tensors of third order cost more than the forms that flatten them.
CHEAP_DIMENSIONS = 24
#: Gram matrices kept per model: n^2 doubles each.
_GRAMS = 2
#: Points remembered per slice: n d doubles each.
_VISITS = 6
#: exp(-z) is below every double long before: error bounds need not grow beyond.
_LARGEST_EXPONENT = 1e4


class Visit(NamedTuple):
    """The covariances at one point: v (n, d), k (n,), their relative errors (n,), precision @ k (n,)."""

    v: Float
    k: Float
    relative: Float
    r: Float


@dataclass(frozen=True, eq=False)
class Slice(Restricted):
    """A model with the Gaussian kernel on its moving features."""

    features: Index  #: indices of the moving features (d,)
    amplitude: Float  #: (n,)
    still: Float  #: half squared distance on the features that stand still (n,)
    visited: dict[bytes, Visit] = field(default_factory=dict, repr=False)  #: the last points, both classes'

    def gram(self, metric: Float) -> tuple[Float, float]:
        """exp(-|L^-1 (v_i - v_j)|^2 / 2), L^2 = metric (d,), on the moving features (n, n), and a bound on
        every entry's absolute error (E2).

        It depends on features and metric only: queries on the same features share it through the model.
        """
        make = partial(unit_gram, self.points, self.lengthscale * np.sqrt(metric))
        return kept(self.model.grams, self.features.tobytes() + metric.tobytes(), _GRAMS, make)

    @property
    def spread(self) -> Float:
        """Of the centres, in lengthscales (d,); not too small where only the region has other values."""
        spread = self.model.spread[self.features]
        return np.maximum(spread, 0.1 * float(spread.max(initial=0.0)))

    @property
    def moderate(self) -> bool:
        """R7: whether expansions may be used."""
        return self.model.moderate

    @cached_property
    def largest_variance(self) -> float:
        """F1: S <= this everywhere on the slice, and 0 too."""
        most = self.amplitude * (1.0 + 1e-9) + self.tiny
        return max(self.model.largest_variance(most), 0.0)

    def visit(self, x: Float) -> Visit:
        """Everything about the point x (d,); the searches for minimum and maximum meet at several."""

        def make() -> Visit:
            v, k, relative = self.kernel(x)
            return Visit(v, k, relative, self.model.precision @ k)

        return kept(self.visited, x.tobytes(), _VISITS, make)

    def kernel(self, x: Float) -> tuple[Float, Float, Float]:
        """At x (d,), raw units: v (n, d), k (n,), and the relative error bound of k (n,) (E1)."""
        v = difference(self.points, x)
        v /= self.lengthscale
        z = 0.5 * np.einsum("ij,ij->i", v, v)
        return v, self.amplitude * np.exp(-z), self._relative(z)

    def _relative(self, z: Float) -> Float:
        """E1: the relative error of amplitude * exp(-z) (n,)."""
        exponent = np.minimum(z + self.still, _LARGEST_EXPONENT)
        return np.asarray(UNIT * ((self.model.centres.shape[1] + 16) * exponent + 40.0))

    def extremes(self, lower: Float, upper: Float) -> tuple[Float, Float]:
        """E4: (smallest, largest) k_i (n,) over a box of raw units."""
        far, near = (
            0.5 * np.einsum("ij,ij->i", v, v)
            for v in (u / self.lengthscale for u in nearest_and_farthest(self.points, lower, upper)[::-1])
        )
        small = self.amplitude * np.exp(-far) * (1.0 - 2.0 * self._relative(far)) - self.tiny
        large = self.amplitude * np.exp(-near) * (1.0 + 2.0 * self._relative(near)) + self.tiny
        return np.maximum(small, 0.0), large

    def latent(self, x: Float) -> tuple[Interval, Interval]:
        """E3: enclosures of mean and (unclipped) variance at x (d,)."""
        _, k, relative, r = self.visit(x)
        return latent_at(self, k, relative, r)

    def values(self, x: Float) -> tuple[Float, Float]:
        """k (n,) at x (d,) and its relative error (n,)."""
        return self.kernel(x)[1:]

    def pull(self, x: Float, c: Float) -> Float:
        """Gradients in raw units of c.k at x (d,), for c (m, n): (m, d), estimates."""
        v, k, _ = self.kernel(x)
        return np.asarray((c * k) @ v / self.lengthscale)


def make_slice(model: Model, x: Float, features: Index, sign: float = 1.0) -> Slice:
    """The slice of `model` through x (D,) along `features`."""
    rest = np.ones(model.centres.shape[1], dtype=bool)
    rest[features] = False
    still = difference(model.centres[:, rest], x[rest]) / model.lengthscale[rest]
    z = 0.5 * np.einsum("ij,ij->i", still, still)
    return Slice(
        model=model,
        features=features,
        points=np.ascontiguousarray(model.centres[:, features]) if rest.any() else model.centres,
        lengthscale=model.lengthscale[features],
        amplitude=model.variance * np.exp(-z),
        still=z,
        sign=sign,
    )

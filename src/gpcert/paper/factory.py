"""From a posterior and a region to the published bounds of a search, in place of ours."""

from __future__ import annotations

import math

from gpcert.bounds import BoundFactory, BoxBound, RbfBound, Shape
from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF
from gpcert.likelihoods import BinaryLikelihood, Probit
from gpcert.paper.bound import PaperBound
from gpcert.paper.latent_space import Partition, partition
from gpcert.posterior import Posterior
from gpcert.validation import Float, Mask

__all__ = ["PaperFactory"]

#: Intervals of the latent space: the paper's 2 / tolerance, within these limits.
_FEWEST, _MOST = 20, 20_000


class PaperFactory:
    """Published bounds of one posterior, on the slices of our own factory."""

    def __init__(self, post: Posterior, tolerance: float) -> None:
        likelihood = post.likelihood
        if not (isinstance(likelihood, BinaryLikelihood) and isinstance(post.kernel, RBF)):
            raise InvalidInputError(
                f"method 'paper' needs two classes and the RBF kernel, got {likelihood!r}, {post.kernel!r}"
            )
        self._bounds = BoundFactory(post)
        self._partition: Partition | None = None
        if not isinstance(likelihood, Probit):
            intervals = math.ceil(min(max(2.0 / tolerance, _FEWEST), _MOST))
            self._partition = partition(likelihood, intervals)

    def pair(self, label: int, shape: Shape, x: Float, moving: Mask) -> tuple[BoxBound, BoxBound]:
        """See `BoundFactory.pair`."""
        low, high = self._bounds.pair(label, shape, x, moving)
        if not (isinstance(low, RbfBound) and isinstance(high, RbfBound)):
            raise InvalidInputError("method 'paper' takes boxes and balls of norm >= 1, got norm 0")
        return PaperBound(low, self._partition), PaperBound(high, self._partition)

"""From a posterior and a region to the published bounds of a search, in place of ours."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.bounds.several.two_latents import TwoLatents
from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF
from gpcert.likelihoods import BinaryLikelihood, Logit, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.validation import Float, Mask
from gpcert_paper.method.bound import PaperBound
from gpcert_paper.method.latent_space import Partition, partition
from gpcert_paper.method.softmax import EntryModels, PaperSoftmaxBound

#: Intervals of the latent space: the paper's 2 / tolerance, within these limits.
_FEWEST, _MOST = 20, 20_000
#: Cells of the latent space of several classes, at most.
_CELLS = 30_000


class PaperFactory:
    """Published bounds of one posterior, on the slices of our own factory."""

    def __init__(self, post: Posterior, tolerance: float) -> None:
        likelihood = post.likelihood
        if not (isinstance(likelihood, BinaryLikelihood | Softmax) and isinstance(post.kernel, RBF)):
            raise InvalidInputError(
                f"method 'paper' needs two classes or softmax, and one RBF kernel, got {likelihood!r}, "
                f"{post.kernel!r}"
            )
        self._post, self._tolerance = post, tolerance
        self._bounds = BoundFactory(post)
        self._intervals = math.ceil(min(max(2.0 / tolerance, _FEWEST), _MOST))

    def __reduce__(self) -> tuple[type[PaperFactory], tuple[Posterior, float]]:
        """To another process without what it has gathered."""
        return PaperFactory, (self._post, self._tolerance)

    def pair(self, label: int, shape: Shape, x: Float, moving: Mask) -> tuple[BoxBound, BoxBound]:
        low, high = self._bounds.pair(label, shape, x, moving)
        if isinstance(low, SoftmaxBound) and isinstance(high, SoftmaxBound):
            intervals = min(self._intervals, int(_CELLS ** (1.0 / self._post.n_classes)))
            return (
                PaperSoftmaxBound(low, label, False, self._entries, intervals),
                PaperSoftmaxBound(high, label, True, self._entries, intervals),
            )
        return self._two_classes(low), self._two_classes(high)

    def _two_classes(self, bound: BoxBound) -> BoxBound:
        if isinstance(bound, TwoLatents):
            return replace(bound, base=self._two_classes(bound.base))
        if not isinstance(bound, RbfBound):
            raise InvalidInputError("method 'paper' takes boxes and balls of norm >= 1, got norm 0")
        return PaperBound(bound, self._partition)

    @cached_property
    def _partition(self) -> Partition | None:
        """None: the probit lemma needs none. Two classes of softmax are the logistic of a difference."""
        likelihood = self._post.likelihood
        if isinstance(likelihood, Probit):
            return None
        sigma = likelihood if isinstance(likelihood, BinaryLikelihood) else Logit()
        return partition(sigma, self._intervals)

    @cached_property
    def _entries(self) -> EntryModels:
        return EntryModels.of(self._post)

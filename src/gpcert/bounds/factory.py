"""From a posterior and a region to the bounds of a search: the choice by kernel, likelihood and norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.facts.model import Model, kept, model_of
from gpcert.bounds.geometry.ball import BallShape
from gpcert.bounds.geometry.domain import BoxShape, Shape
from gpcert.bounds.geometry.sparse import SparseShape
from gpcert.bounds.interface import BoxBound
from gpcert.bounds.levels.curves import LevelCurves, ProbitCurves
from gpcert.bounds.levels.registry import curves_of, is_smooth
from gpcert.bounds.local.gaussian.slice import Slice, make_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.level import LevelBound
from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF, Kernel
from gpcert.likelihoods import Logit, OneVsRest, Softmax
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Region
from gpcert.validation import Float, Mask

# What only some models need is imported where it is made: the first question of a process waits for it.
if TYPE_CHECKING:
    from gpcert.bounds.local.radial.slice import RadialSlice
    from gpcert.bounds.one.latent import LatentBound
    from gpcert.bounds.several.separate import SeparateBound
    from gpcert.bounds.several.softmax import SoftmaxBound

T = TypeVar("T")

#: What posteriors of several latents are made of, verified once for all queries.
_parts: WeakKeyDictionary[Posterior, tuple[Posterior, ...]] = WeakKeyDictionary()
_separate_models: WeakKeyDictionary[Posterior, tuple[Model, ...]] = WeakKeyDictionary()
#: Slices kept: queries through the same point, or with the same features, come one after another.
_SLICES = 4


def _once(cache: WeakKeyDictionary[Posterior, T], post: Posterior, make: Callable[[Posterior], T]) -> T:
    """What was made of a posterior before, or is now; kept as long as it lives."""
    if post not in cache:
        cache[post] = make(post)
    return cache[post]


def shape_of(region: Region, moving: Mask, capped: bool = True) -> Shape:
    """The region on its moving features (D,); `capped`: see `Shape`."""
    if isinstance(region, Ball) and region.norm < np.inf:
        if region.norm >= 1.0:
            return BallShape(region, moving, capped)
        return SparseShape(region, moving, capped=capped)
    inner = region.inner_box()
    return BoxShape(inner.lower[moving], inner.upper[moving], capped=capped)


def check_certifiable(post: Posterior) -> None:
    """A posterior of a classifier whose probabilities have bounds; another one is an error."""
    likelihood = post.likelihood
    if not isinstance(likelihood, Softmax):
        curves_of(likelihood.link if isinstance(likelihood, OneVsRest) else likelihood)
    elif post.precision.ndim == 4 and not isinstance(post.kernel, Kernel):
        rule = "post must have one kernel for a softmax with correlated latents"
        raise InvalidInputError(f"{rule}, got {post.kernel!r}")


def _difference(post: Posterior) -> Model:
    """f_1 - f_0 of two latents, whose logistic is the softmax."""
    model = class_model_of(post)
    sign = np.array([-1.0, 1.0])
    mean = float(model.mean[1] - model.mean[0])
    return replace(model.functional(sign, np.outer(sign, sign)), mean=mean)


class BoundFactory:
    """Bounds of one posterior; a batch of queries shares the factory, and through it slices and Grams."""

    def __init__(self, post: Posterior) -> None:
        self.post = post
        self._slices: dict[bytes, Slice | RadialSlice] = {}

    def __reduce__(self) -> tuple[type[BoundFactory], tuple[Posterior]]:
        """To another process without what it has gathered."""
        return BoundFactory, (self.post,)

    def pair(self, label: int, shape: Shape, x: Float, moving: Mask) -> tuple[BoxBound, BoxBound]:
        """Bounds of P(label) and of 1 - P(label) on the slice through x (D,) along the moving features."""
        if not isinstance(shape, SparseShape):
            return self._pair(label, shape, x, moving)
        from gpcert.bounds.sparse import SparseBound

        x = np.where(moving, shape.ball.x, x)

        def part(which: int) -> Callable[[SparseShape], BoxBound]:
            return lambda few: self._pair(label, few, x, few.moving)[which]

        low, high = self._pair(label, shape, x, moving)
        return SparseBound(shape, part(0), low), SparseBound(shape, part(1), high)

    def _pair(self, label: int, shape: Shape, x: Float, moving: Mask) -> tuple[BoxBound, BoxBound]:
        if isinstance(self.post.likelihood, OneVsRest):
            from gpcert.bounds.several.one_vs_rest import ClassShare, OneVsRestBound, OthersShare
            from gpcert.bounds.several.shares import JointShare

            classes = tuple(factory._pair(1, shape, x, moving) for factory in self._classes)
            low, high = ClassShare(label), OthersShare(label)
            first, second = (OneVsRestBound(classes, ratio, shape) for ratio in (low, high))
            return JointShare.of(first), JointShare.of(second)
        if isinstance(self.post.likelihood, Softmax):
            return self._softmax_pair(label, shape, x, moving)
        one, zero = self._levels(curves_of(self.post.likelihood), shape, x, moving)
        return (one, zero) if label == 1 else (zero, one)

    def latent(self, shape: Shape, x: Float, moving: Mask) -> tuple[LatentBound, ...]:
        """Bounds of mean, -mean, variance and -variance of a posterior of one latent, as in `pair`."""
        from gpcert.bounds.local.radial.slice import make_radial_slice
        from gpcert.bounds.one.latent import LatentBound

        up, down = self._levels(ProbitCurves(1.0), shape, x, moving)  # for local models: no curve is asked
        values = make_radial_slice(model_of(self.post), x, np.flatnonzero(moving))
        alone = replace(up, slice=replace(up.slice, sign=0.0))  # the variance without the mean
        means = (LatentBound(base, values, False, sign) for base, sign in ((up, 1.0), (down, -1.0)))
        return (*means, *(LatentBound(alone, values, True, sign) for sign in (1.0, -1.0)))

    def _levels(
        self, curves: LevelCurves, shape: Shape, x: Float, moving: Mask
    ) -> tuple[LevelBound, LevelBound]:
        """For the latent and for its negative."""
        slice_ = self._slice(x, moving)
        return _level_bound(curves, shape, slice_), _level_bound(curves.mirrored(), shape, slice_.flipped())

    def _softmax_pair(self, label: int, shape: Shape, x: Float, moving: Mask) -> tuple[BoxBound, BoxBound]:
        """As `pair`; of two latents with one kernel the difference is bounded as one."""
        own = np.eye(self.post.n_classes)[label]
        if self._apart:
            return self._separate(1.0 - own, shape, x, moving), self._separate(own, shape, x, moving)
        low = self._softmax(1.0 - own, shape, x, moving)
        high = low.weighing(own)
        if len(own) > 2:
            return low, high
        from gpcert.bounds.several.two_latents import TwoLatents

        both = self._make_slice(_difference(self.post), x, moving)
        one, other = (both.flipped(), both) if label == 0 else (both, both.flipped())
        first, second = (_level_bound(curves_of(Logit()), shape, each) for each in (one, other))
        return TwoLatents(first, low), TwoLatents(second, high)

    def _softmax(self, beta: Float, shape: Shape, x: Float, moving: Mask) -> SoftmaxBound:
        """The bound of 1 - sum_i beta_i p_i."""
        from gpcert.bounds.several.softmax import SoftmaxBound

        model = class_model_of(self.post)
        geometry = model.functional(np.zeros(model.classes), np.zeros((model.classes, model.classes)))
        return SoftmaxBound(shape, beta, model, self._make_slice(geometry, x, moving))

    @property
    def _apart(self) -> bool:
        """Whether latents are bounded one by one: independent ones, unless they share a Gaussian kernel."""
        return self.post.precision.ndim == 3 and not isinstance(self.post.kernel, RBF)

    def _separate(self, beta: Float, shape: Shape, x: Float, moving: Mask) -> SeparateBound:
        """The same for independent latents with other kernels, or a kernel each."""
        from gpcert.bounds.several.separate import SeparateBound
        from gpcert.bounds.several.tangents.separate import separate_latents

        return SeparateBound(shape, beta, separate_latents(self._models, x, np.flatnonzero(moving)))

    @cached_property
    def _models(self) -> tuple[Model, ...]:
        from gpcert.bounds.several.tangents.separate import separate_models

        return _once(_separate_models, self.post, separate_models)

    def margin(self, label: int, shape: Shape, x: Float, moving: Mask) -> BoxBound:
        """A bound of (1 + min over the other classes j of P(label) - P(j)) / 2, for several classes."""
        if isinstance(self.post.likelihood, OneVsRest):
            from gpcert.bounds.several.joint import JointLabel
            from gpcert.bounds.several.one_vs_rest import ClassMargin, OneVsRestBound

            classes = tuple(factory.pair(1, shape, x, moving) for factory in self._classes)
            return JointLabel.of(OneVsRestBound(classes, ClassMargin(label), shape))
        nothing = np.zeros(self.post.n_classes)
        if self._apart:
            from gpcert.bounds.several.separate import SeparateLabel

            return SeparateLabel(self._separate(nothing, shape, x, moving), label)
        from gpcert.bounds.several.labels import LabelBound

        return LabelBound(self._softmax(nothing, shape, x, moving), label)

    @cached_property
    def _classes(self) -> tuple[BoundFactory, ...]:
        """One factory per class of a one-vs-rest posterior."""
        parts = _once(_parts, self.post, Posterior.one_vs_rest)
        return tuple(map(BoundFactory, parts))

    def sign(self, label: int, shape: Shape, x: Float, moving: Mask) -> BoxBound:
        """A bound of P(label) that is sharp at 1/2, for a symmetric link: the mean alone decides."""
        base = self.pair(label, shape, x, moving)[0]
        if isinstance(base, LevelBound) and is_smooth(base.curves):
            from gpcert.bounds.one.sign import SignBound

            return SignBound(base)
        return base

    def _slice(self, x: Float, moving: Mask) -> Slice | RadialSlice:
        if not moving.any():  # one point: as quickly made as kept, and it must not drive out the others
            return self._make_slice(model_of(self.post), x, moving)
        key = moving.tobytes() + x[~moving].tobytes()
        return kept(self._slices, key, _SLICES, lambda: self._make_slice(model_of(self.post), x, moving))

    def _make_slice(self, model: Model, x: Float, moving: Mask) -> Slice | RadialSlice:
        if isinstance(self.post.kernel, RBF):
            return make_slice(model, x, np.flatnonzero(moving))
        from gpcert.bounds.local.radial.slice import make_radial_slice

        return make_radial_slice(model, x, np.flatnonzero(moving))


def _level_bound(curves: LevelCurves, shape: Shape, slice_: Slice | RadialSlice) -> LevelBound:
    if isinstance(slice_, Slice):
        return RbfBound(curves, shape, slice_)
    from gpcert.bounds.one.radial import RadialBound

    return RadialBound(curves, shape, slice_)

"""Bounds of softmax probabilities over a box: one tangent, one functional, one quadratic programme."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from gpcert.bounds.facts.classes import ClassModel
from gpcert.bounds.facts.model import kept
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.interface import Certified
from gpcert.bounds.local.forms import FunctionalBound, Loss
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS, Slice
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.several.cells.cells import Cells
from gpcert.bounds.several.cells.image import Image, image_of
from gpcert.bounds.several.tangents.anchor import Anchor, anchor_at
from gpcert.bounds.several.tangents.expansion import (
    ClassExpansion,
    Latents,
    Reaches,
    expand_classes,
    latents_on,
    reaches_of,
)
from gpcert.bounds.several.tangents.functionals import (
    Variances,
    View,
    most_clipped,
    probability_cost,
    variances_over,
    variances_seen,
    views_from,
)
from gpcert.bounds.several.tangents.ranges import largest_by_ranges
from gpcert.bounds.several.tangents.tangent import Whitened, largest, whitened
from gpcert.bounds.several.weighted import WeightedBound
from gpcert.rounding import UNIT, exp_up, up
from gpcert.validation import Float

#: Raising variances costs probability; beyond this it would settle nothing.
WORTH_RAISING = 0.05
_ROUGH = 1e-3  # accuracy of a local search
_TOO_LARGE = 2.0
#: Cells per step of the search: few, so that limits of time are kept.
_STEPS = 24
#: How far anchors retreat from the reference towards the middle, one attempt after the other.
_RETREATS = (0.6, 0.0)
#: Boxes whose images and cells are kept.
_KEPT = 4


@dataclass(frozen=True, eq=False)
class SoftmaxBound(WeightedBound):
    """Latents that share a kernel, correlated or not: one model of all of them."""

    model: ClassModel
    slice: Slice | RadialSlice  #: of any functional of the model: geometry only
    #: Of the last boxes; bounds of other quantities share all but the cells.
    expansions: dict[bytes, ClassExpansion] = field(default_factory=dict, repr=False)
    places: dict[bytes, Latents] = field(default_factory=dict, repr=False)
    anchors: dict[bytes, Anchor | None] = field(default_factory=dict, repr=False)
    seen: dict[bytes, Whitened | None] = field(default_factory=dict, repr=False)
    images: dict[bytes, Image | None] = field(default_factory=dict, repr=False)
    cells: dict[bytes, Cells] = field(default_factory=dict, repr=False)

    @property
    def correlated(self) -> bool:
        return len(self.model.pairs) > self.model.classes

    @property
    def lengthscale(self) -> Float:
        return self.slice.lengthscale

    @property
    def largest(self) -> float:
        return _TOO_LARGE if self.slice.moderate else 0.0

    def weighing(self, beta: Float) -> SoftmaxBound:
        """The same for another beta (C,); all but the cells is shared."""
        return replace(self, beta=beta, cells={})

    def latents_at(self, x: Float) -> tuple[Latents, float]:
        latents = self.latents(x)
        return latents, latents.mean_error + 0.1 * self.model.classes**2 * latents.covariance_error

    def latents(self, x: Float) -> Latents:
        """Of x (d,)."""
        return kept(self.places, x.tobytes(), _KEPT, partial(latents_on, self.model, self.slice, x))

    def shares(self, x: Float) -> Float:
        anchor = self._anchor(x)
        return np.full(len(self.beta), 1.0 / len(self.beta)) if anchor is None else anchor.p

    def objective(self, x: Float) -> tuple[float, Float]:
        latents = latents_on(self.model, self.slice, x)
        anchor = anchor_at(latents.mean, latents.clipped, self.correlated, _ROUGH)
        if anchor is None:
            return 1.0, np.zeros(len(x))
        first, second = self.beta @ anchor.first, np.tensordot(self.beta, anchor.second, 1)
        value = 1.0 - float(self.beta @ anchor.p)
        slope = self.model.weights @ first
        for (c, e), product in zip(self.model.pairs, latents.products, strict=True):
            slope -= second[c, e] * (2.0 if c == e else 4.0) * product
        return value, -self.slice.pull(x, slope[None])[0]

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: of Sigma as it is, else of Sigma raised; less what the predictor's differs."""
        widths = (upper - lower) / self.slice.lengthscale
        if not float(np.linalg.norm(widths)) < self.largest:
            return Certified(0.0, reference, int(np.argmax(widths)), False)
        if self._domain(lower, upper) is None:
            return Certified(1.0, reference, int(np.argmax(widths)), False)
        variances = partial(self.variances, lower, upper)
        loss = probability_cost(most_clipped(self.model, variances))
        aim = min(target + loss, 0.5 + 0.5 * target)
        by = self._by_cells if self.model.classes == 3 else self._by_tangents
        best = by(lower, upper, reference, aim)
        best = best._replace(value=max(0.0, best.value - loss))  # in this order: NaN is 0
        if best.value < target and best.pieces is None:
            raised = variances().raising
            if raised.any() and probability_cost(raised) <= WORTH_RAISING:
                other = self._raised(raised, lower, upper, reference, target)
                best = other if other.value > best.value else best
        return best

    def variances(self, lower: Float, upper: Float) -> Variances:
        """Of all classes over a box that meets the region."""
        if isinstance(self.slice, Slice):
            return variances_over(self.expansion(lower, upper))
        (view,) = self.views(lower, upper)
        return variances_seen(self.model, view, latents_on(self.model, self.slice, view.start))

    def views(self, lower: Float, upper: Float) -> list[View]:
        """Functionals over a box that meets the region, seen from its middle, by rising price."""
        domain = self._domain(lower, upper)
        assert domain is not None
        return views_from(self.model, self.slice, domain, 0.5 * lower + 0.5 * upper)

    def reaches(self, view: View, latents: Latents) -> Reaches:
        """Y2 over the set of a view, from whose reference the latents are `latents`."""
        assert isinstance(self.slice, RadialSlice)
        return reaches_of(self.model, self.slice, view.domain, view.start, latents)

    def _raised(self, by: Float, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """M4 with variances raised by `by` (C,), so that they vary little relative to themselves."""
        model = self.model.raised(by)
        moved = (model.prior - self.model.prior) * (1.0 + 4 * UNIT)
        # Correlated latents: the predictor's matrix may have to be made definite, too.
        loss = probability_cost(np.maximum(moved, 2.0 * self.model.lift) if self.correlated else moved)
        aim = min(target + loss, 0.5 + 0.5 * target)
        answer = replace(self, model=model, expansions={}, places={}, anchors={}, seen={})._by_tangents(
            lower, upper, reference, aim
        )
        return answer._replace(value=max(0.0, answer.value - loss))

    def _by_tangents(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """T2 or T6, any number of classes: with Sigma itself, 0 where that is not proved to be definite."""
        if isinstance(self.slice, Slice):
            return self._by_forms(lower, upper, reference, target)
        nothing = Certified(0.0, reference, int(np.argmax((upper - lower) / self.slice.lengthscale)), False)
        (view,) = self.views(lower, upper)
        anchor = self._anchor(np.clip(0.5 * (reference + view.start), lower, upper))
        found = None if anchor is None else largest_by_ranges(self.model, view, anchor, self.beta)
        if found is None:
            return nothing
        exponent, bound = found
        point = np.clip(view.start + bound.point * self.slice.lengthscale, lower, upper)
        return conclude(exponent, point, int(np.argmax(bound.loss)))

    def _by_forms(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """T2 and T7: the Gaussian kernel."""
        x = self.expansion(lower, upper)
        widths = (upper - lower) / self.slice.lengthscale
        best = Certified(0.0, reference, int(np.argmax(widths)), False)
        aim = math.log(max(1.0 - target, 1e-300)) - 1e-12
        sharper = self.views(lower, upper)[-1]

        def smallest(a: Float, B: Float, offset: float, less: Loss, enough: float) -> FunctionalBound:
            """Y1, and M3 where all that Y1 loses would make the difference."""
            bound = x.smallest(a, B, offset, less, enough)
            if bound.latent < enough <= bound.latent + x.rest(a, B):
                bound = max(bound, sharper.smallest(a, B, offset, less), key=lambda each: each.latent)
            return bound

        for retreat in _RETREATS:
            at = np.clip(reference + retreat * (x.reference - reference), lower, upper)
            seen = kept(self.seen, _key(lower, upper) + at.tobytes(), _KEPT, partial(self._seen, x, at))
            found = None if seen is None else largest(seen, self.beta, aim, smallest)
            if seen is None or found is None:
                continue
            exponent, bound = found
            point = np.clip(x.reference + bound.point * self.slice.lengthscale, lower, upper)
            trial = conclude(exponent, point, int(np.argmax(bound.loss)))
            if trial.value > best.value or best.value <= 0.0:
                best = trial
            if best.value >= target:
                break
        return best

    def _seen(self, x: ClassExpansion, at: Float) -> Whitened | None:
        """The box from the anchor at the latents of a point (d,)."""
        anchor = self._anchor(at)
        return None if anchor is None else whitened(x, anchor)

    def _anchor(self, x: Float) -> Anchor | None:
        """The anchor at the latents of x (d,)."""

        def make() -> Anchor | None:
            latents = self.latents(x)
            return anchor_at(latents.mean, latents.covariance, self.correlated)

        return kept(self.anchors, x.tobytes(), _KEPT, make)

    def expansion(self, lower: Float, upper: Float) -> ClassExpansion:
        """Y1 over a box that meets the region, seen from its middle, where the third order is smallest.

        The Gaussian kernel only.
        """

        def make() -> ClassExpansion:
            domain = self._domain(lower, upper)
            assert domain is not None
            assert isinstance(self.slice, Slice)
            return expand_classes(self.model, self.slice, domain, 0.5 * lower + 0.5 * upper)

        return kept(self.expansions, _key(lower, upper), _KEPT, make)

    def _domain(self, lower: Float, upper: Float) -> Domain | None:
        """The region's part of the box seen from its middle; None: there is none."""
        return self.shape.domain(lower, upper, 0.5 * lower + 0.5 * upper, self.slice.lengthscale)

    def _by_cells(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """T5, three classes: what one call does not finish, a later one for the same box goes on with."""
        nothing = Certified(0.0, reference, int(np.argmax((upper - lower) / self.slice.lengthscale)), False)
        key = _key(lower, upper)
        cells = self.cells.get(key)
        if cells is None:
            make = partial(image_of, self.model, self.slice, self.shape, (lower, upper))
            image = kept(self.images, key, _KEPT, make)
            if image is None:
                return nothing
            cells = kept(self.cells, key, _KEPT, partial(Cells, image, self.beta, reference))
        more = cells.refine(math.log(max(1.0 - target - 1e-14, 1e-300)), _STEPS)
        point, loss = cells.image.last or (reference, None)
        answer = conclude(cells.top, point, nothing.split if loss is None else int(np.argmax(loss)))
        again = more and len(lower) > CHEAP_DIMENSIONS
        return answer._replace(pieces=((lower, upper),)) if again else answer


def _key(lower: Float, upper: Float) -> bytes:
    """Names a box."""
    return lower.tobytes() + upper.tobytes()


def conclude(exponent: float, point: Float, split: int) -> Certified:
    """1 - e^exponent, rounded down."""
    probability = 1.0 - exp_up(up(exponent) + 1e-15 * abs(exponent)) if exponent < 0 else 0.0
    return Certified(max(0.0, probability - 1e-15), point, split, False)

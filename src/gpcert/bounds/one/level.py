"""Probability bounds from level curves and any kernel's local models (docs/maths/bounds.md, Theorem 2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from gpcert.bounds.geometry.domain import Boxes, Domain, Shape, divided
from gpcert.bounds.geometry.remnant import Remnant
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.levels.curves import Level, LevelCurves, Line
from gpcert.bounds.local.forms import RANGE_ACCURACY, FunctionalBound, LocalModel, Supported
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.planes import variances
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.rounding import UNIT, down
from gpcert.validation import Float

#: What is left is looked at whole, not halved, where its diagonal is at most this share of the box's.
_SHORT = 0.5


class Left:
    """[lower, upper] (d,), raw units: a part of the box asked about, on whose rest the target is met.

    `part`: whether bounds are of less than the box.
    """

    def __init__(self, lower: Float, upper: Float) -> None:
        self.lower, self.upper = lower, upper
        self._whole = lower, upper
        self.part = False

    @property
    def _shorter(self) -> bool:
        lower, upper = self._whole
        return not (np.array_equal(self.lower, lower) and np.array_equal(self.upper, upper))

    def share(self, lengthscale: Float) -> float:
        """Of the box's diagonal, in lengthscales, what that of the part has."""
        (lower, upper), length = self._whole, lengthscale
        whole = float(np.linalg.norm((upper - lower) / length))
        return float(np.linalg.norm((self.upper - self.lower) / length)) / whole if whole > 0.0 else 1.0

    def shorten(self, lower: Float, upper: Float) -> None:
        """To [lower, upper], which lies inside."""
        self.lower, self.upper, self.part = lower, upper, True

    def take(self, part: Domain, reference: Float, lengthscale: Float) -> None:
        """To a remnant that was seen from `reference` (d,); other sets change nothing."""
        if isinstance(part, Remnant):
            self.shorten(*part.shortened(reference, lengthscale, self.lower, self.upper))

    def proved(self, found: Certified, target: float) -> Certified:
        """Of the whole box what is proved of the part: elsewhere no more than the target is known."""
        return found._replace(value=min(found.value, target)) if self.part else found

    def divided(self, found: Certified, shape: Shape, lengthscale: Float, target: float) -> Certified:
        """With the boxes to look at next: what is left, or parts of it."""
        j, box = found.split, (self.lower, self.upper)
        if not self._shorter or not shape.capped:  # a proof file can tell how halves came about
            return found._replace(pieces=shape.parts(*self._whole, j), elsewhere=np.inf)
        pieces: Boxes | None = (box,)
        if not 0.0 < self.share(lengthscale) <= _SHORT:
            j = j if self.lower[j] < self.upper[j] else int(np.argmax((box[1] - box[0]) / lengthscale))
            pieces = shape.parts(*box, j) or divided(*box, j, (0.5 * box[0][j] + 0.5 * box[1][j],))
        return found if pieces is None else found._replace(pieces=pieces, elsewhere=target)


#: By rising price: how far the reference retreats, and the local model there.
Plan = list[tuple[float, Callable[[Domain, Float], LocalModel]]]
#: Whether higher orders are bounded as forms (dear) or by one norm (cheap), one after the other.
Prices = tuple[bool, ...]
What = TypeVar("What")

#: A plane that keeps this share of what it supports, where it should touch, fails by its bends alone.
_TOUCHES = 0.5
#: Size of a set, in lengthscales, from which on its variances are nearly any.
_SMALL = 0.5


@dataclass(frozen=True, eq=False)
class LevelBound(OneByOne):
    """Theorem 2: probability bounds from level curves, for any kernel that gives local models."""

    curves: LevelCurves
    shape: Shape
    slice: Slice | RadialSlice

    @property
    def mean(self) -> float:
        """The prior mean of the class bounded."""
        return self.slice.mean

    @property
    def lengthscale(self) -> Float:
        """Units of displacements (d,)."""
        return self.slice.lengthscale

    def at(self, x: Float) -> tuple[float, float]:
        """E3: mean and variance with their rounding, through the corner lemma."""
        return self.curves.bounds(*self.slice.latent(x))

    @abstractmethod
    def plan(self, size: float, d: int) -> Plan:
        """For a set of this size in lengthscales; empty where expansions say nothing."""

    @property
    def kinked(self) -> bool:
        """Whether planes bend at once, so that expansions are worth their price after them."""
        return False

    @abstractmethod
    def envelope(self, lower: Float, upper: Float) -> float:
        """A lower bound of P that holds for boxes of any size, and tends to P as the box shrinks."""

    @abstractmethod
    def planes(self, size: float, d: int, slack: Callable[[], float]) -> Sequence[tuple[float, Prices]]:
        """Retreats of the references of supporting planes, and at which prices each is bounded; `slack()`:
        by how much P exceeds its target where it seems smallest.
        """

    @abstractmethod
    def supports(
        self, domain: Domain, start: Float, level: Level | Line, prices: Prices
    ) -> Iterator[Supported]:
        """Bounds of the plane of a level, or of a line, at `start` (d,), by rising price, each with what it
        leaves of the set: outside, the plane is not negative. None where there is no plane.
        """

    @abstractmethod
    def away(self, domain: Domain) -> float:
        """At least 1 - k(x, xh) / s2 on the set seen from the reference xh."""

    def places(
        self,
        left: Left,
        reference: Float,
        plan: Callable[[float, int], Sequence[tuple[float, What]]],
    ) -> Iterator[tuple[Float, Domain, What] | None]:
        """References (d,) and the set seen from each, with what is planned; None: the box misses the region.

        At the predicted worst point the bound is exact there but pays for the whole width of the box on the
        far side; retreating towards the middle trades the one for the other. Any reference is sound.
        """
        middle = self.shape.middle(left.lower, left.upper)
        domain = self.shape.domain(left.lower, left.upper, middle, self.lengthscale)
        if domain is None:
            yield None
        if domain is None or not self.slice.moderate:
            return
        for retreat, what in plan(2.0 * domain.norm(np.ones(len(middle))), len(middle)):
            box = left.lower, left.upper
            start = self.shape.within(reference + retreat * (middle - reference), *box)
            domain = self.shape.domain(*box, start, self.lengthscale)
            if domain is None:
                yield None
                return
            yield start, domain, what

    def attempts(
        self, left: Left, reference: Float, plan: Callable[[float, int], Plan] | None = None
    ) -> Iterator[tuple[Float, LocalModel] | None]:
        """References (d,) and local models over the box, by rising price; None as for `places`."""
        for place in self.places(left, reference, plan or self.plan):
            yield None if place is None else (place[0], place[2](place[1], place[0]))

    def means(
        self, left: Left, reference: Float, enough: float, less: float = 0.0
    ) -> Iterator[tuple[Float, FunctionalBound] | None]:
        """References and lower bounds of the mean - less on what is left, up to `enough`; see `places`."""
        for attempt in self.attempts(left, reference):
            if attempt is None:
                yield None
                return
            yield attempt[0], attempt[1].only(0.0).lower_bound(1.0, 0.0, down(self.mean - less), enough)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: attempts of rising price until one certifies the target."""
        level, left = self.curves.level(target), Left(lower, upper)
        widest = int(np.argmax((upper - lower) / self.lengthscale))
        best = Certified(0.0, reference, widest, False)
        for attempt in self._trials(left, reference, level):
            if attempt is None:
                return left.proved(Certified(1.0, reference, widest, False), level.p)
            start, trial = attempt
            trial = trial._replace(point=np.clip(start + trial.point * self.lengthscale, lower, upper))
            if best.value <= 0.0 or trial.value > best.value:
                best = trial
            if best.value >= level.p:
                break
        if best.value < level.p:
            best = best._replace(value=max(best.value, self.envelope(lower, upper)))
            best = left.divided(best, self.shape, self.lengthscale, level.p)
        return best

    def _trials(self, left: Left, reference: Float, level: Level) -> Iterator[tuple[Float, Certified] | None]:
        """Planes first (G1 to G5), each on what others left (Q4); nearer ones where those do not touch the
        curve; expansions of S where there is no plane.
        """
        largest, touches, found = self.slice.largest_variance, False, False

        def slack() -> float:
            return max(self.at(reference)[0] - level.p, 0.0)

        for place in self.places(left, reference, partial(self.planes, slack=slack)):
            if place is None:
                yield None
                return
            start, domain, prices = place
            for bound, part, here in self.supports(domain, start, level, prices):
                found, touches = True, touches or here > _TOUCHES * self._above(level, start)
                left.take(part, start, self.lengthscale)
                yield start, left.proved(self._conclude(bound, level, (0.0, largest)), level.p)
        if found and not touches:
            yield from self._near(left, reference, level)
        if not found or self.kinked:
            for attempt in self.attempts(left, reference):
                if attempt is None:
                    yield None
                    return
                yield attempt[0], left.proved(self._certify(attempt[1], level), level.p)

    def _near(self, left: Left, reference: Float, level: Level) -> Iterator[tuple[Float, Certified] | None]:
        """Planes of what is above the curve where the set's variances may be (X8), and nearer to it."""
        for place in self.places(left, reference, lambda size, _: [(0.0, (True,))] if size < _SMALL else []):
            if place is None:
                yield None
                return
            start, domain, prices = place
            model, S = self.slice.model, self.slice.latent(start)[1]
            ends = variances(model, self.slice.prior, S, self.away(domain), self.slice.largest_variance)
            near = level.within(ends)
            for bound, part, _ in self.supports(domain, start, near, prices):
                left.take(part, start, self.lengthscale)
                yield start, left.proved(self._conclude(bound, near, ends), level.p)

    def _above(self, level: Level, x: Float) -> float:
        """About mu - m_p(S) at x (d,)."""
        mean, S = self.slice.latent(x)
        return 0.5 * sum(mean) - level.curve(max(0.5 * sum(S), 0.0))[1]

    def _certify(self, local: LocalModel, level: Level) -> Certified:
        """L2, L3: one tangent, or a chord on either side of the reference's variance."""
        smallest, largest = (
            sign * local.lower_bound(0.0, -sign, 0.0, accuracy=RANGE_ACCURACY).latent for sign in (1.0, -1.0)
        )
        deepest = max(0.0, -smallest)
        largest = max(min(largest, self.slice.largest_variance), 0.0)
        smallest = min(max(smallest, 0.0), largest)
        level, S = level.within((smallest, largest)), min(max(local.S, smallest), largest)
        if level.concave:
            lines = [level.tangent(S, largest)]
        else:
            lines = [level.chord(*ends) for ends in ((smallest, S), (S, largest))]
        # L5: the predictor clips S at 0; below, a rising line undercuts the curve by tau times the overshoot.
        bounds = [
            local.lower_bound(
                1.0, tau, down(kappa - max(tau, 0.0) * deepest * (1.0 + 8 * UNIT)) + self.mean, 0.0
            )
            for tau, kappa in lines
        ]
        return self._conclude(min(bounds, key=lambda each: each.latent), level, (smallest, largest))

    def _conclude(self, bound: FunctionalBound, level: Level, variances: tuple[float, float]) -> Certified:
        split = int(np.argmax(bound.loss))
        if bound.latent >= 0:
            probability = max(level.p, level.after_surplus(bound.latent, variances[1]))
            return Certified(probability, bound.point, split, False)
        probability = level.after_deficit(-bound.latent, variances[0]) if bound.latent > -np.inf else 0.0
        return Certified(probability, bound.point, split, bound.value + 2.0 * bound.rounding >= 0)

"""Probability bounds from level curves and any kernel's local models (docs/maths/bounds.md, Theorem 2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from gpcert.bounds.geometry.domain import Domain, Shape
from gpcert.bounds.interface import Certified, OneByOne
from gpcert.bounds.levels.curves import Level, LevelCurves, Line
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.protocol import RANGE_ACCURACY, FunctionalBound, LocalModel, Supported
from gpcert.bounds.local.radial.slice import RadialSlice
from gpcert.bounds.one.left import Left
from gpcert.rounding import UNIT, down
from gpcert.validation import Float

#: By rising price: how far the reference retreats, and the local model there.
Plan = list[tuple[float, Callable[[Domain, Float], LocalModel]]]
#: Whether higher orders are bounded as forms (dear) or by one norm (cheap), one after the other.
Prices = tuple[bool, ...]
What = TypeVar("What")

#: Most pieces of a convex level curve per box.
_PIECES = 24
#: A failing piece is halved while its gap exceeds this share of the deficit.
_WORTH = 0.1
#: A plane that keeps this share of what it supports, where it should touch, fails by its bends alone.
_TOUCHES = 0.5
#: Planes that leave more than this share of a box's diagonal do not get on.
_STALLED = 0.97


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

    def small(self, size: float, d: int, helped: Callable[[], bool]) -> Plan:
        """The plan where planes have failed: expanding S to second order beats them on small sets only.

        `helped()`: whether one of them lost little where it should touch, and they left less than all of it.
        """
        return self.plan(size, d) if size < 0.3 else []

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
        """Planes first (G1 to G5), each on what others left (Q4); then, if need be, expansions of S."""
        largest, planes = self.slice.largest_variance, list[tuple[Float, float]]()
        within = level.within(lambda: (0.0, largest))

        def slack() -> float:
            return max(self.at(reference)[0] - level.p, 0.0)

        def helped() -> bool:
            found = False
            for start, here in planes:  # no loop in `any`: an interrupt there would be lost
                found = found or here > _TOUCHES * self._above(level, start)
            return found and left.share(self.lengthscale) <= _STALLED

        for place in self.places(left, reference, partial(self.planes, slack=slack)):
            if place is None:
                yield None
                return
            start, domain, prices = place
            for bound, part, here in self.supports(domain, start, within, prices):
                planes.append((start, here))
                left.take(part, start, self.lengthscale)
                yield start, left.proved(self._conclude(bound, within, (0.0, largest)), level.p)
        plan = partial(self.small, helped=helped) if planes else self.plan
        for attempt in self.attempts(left, reference, plan):
            if attempt is None:
                yield None
                return
            yield attempt[0], left.proved(self._certify(attempt[1], level), level.p)

    def _above(self, level: Level, x: Float) -> float:
        """About mu - m_p(S) at x (d,)."""
        mean, S = self.slice.latent(x)
        return 0.5 * sum(mean) - level.curve(max(0.5 * sum(S), 0.0))[1]

    def _certify(self, local: LocalModel, level: Level) -> Certified:
        """L2, L3: one tangent, or chords on both sides of the reference's variance, halved on failure."""
        level = level.within(lambda: local.variances)
        if level.concave:
            return self._tangent(local, level)
        return self._conclude(self._chords(local, level, *local.variances), level, local.variances)

    def _tangent(self, local: LocalModel, level: Level) -> Certified:
        largest = local.largest_variance
        tau, kappa = level.tangent(local.S, largest)
        deepest = local.deepest
        known = deepest <= 1e-3 * largest
        if known:
            local = local.only(tau)
        else:  # not a posterior of this kernel: bound S from below on this box instead
            deepest = max(0.0, -local.lower_bound(0.0, -1.0, 0.0, accuracy=RANGE_ACCURACY).latent)
        # The predictor clips S at 0: below, the tangent undercuts the curve by tau times the overshoot (L5).
        loss = tau * deepest * (1.0 + 8 * UNIT) if tau > 0 else 0.0
        bound = local.lower_bound(1.0, tau, down(kappa - loss) + self.mean, 0.0)
        bound = bound._replace(rounding=bound.rounding + (loss if known else 0.0))
        return self._conclude(bound, level, (0.0, largest))

    def _chords(self, local: LocalModel, level: Level, smallest: float, largest: float) -> FunctionalBound:
        """L3: the worst of the pieces' bounds; failing pieces are halved while that can pay."""
        S = min(max(local.S, smallest), largest)
        pieces = [(a, b) for a, b in ((smallest, S), (S, largest)) if b > a] or [(smallest, largest)]
        worst: FunctionalBound | None = None
        used = 0
        while pieces:
            start, end = pieces.pop()
            used += 1
            bound = self._piece(local, level, start, end)
            if bound.value < 0 and used < _PIECES and _worth_refining(bound, level, start, end):
                middle = 0.5 * (start + end)
                pieces += [(start, middle), (middle, end)]
                continue
            if worst is None or not bound.latent >= worst.latent:
                worst = bound
            if not bound.value >= 0:
                # The pieces not looked at may be worse still: a deficit is certified by all of them.
                rest = [self._piece(local, level, a, b) for a, b in pieces]
                return min([worst, *rest], key=lambda each: each.latent)
        assert worst is not None
        return worst

    def _piece(self, local: LocalModel, level: Level, start: float, end: float) -> FunctionalBound:
        tau, kappa = level.chord(start, end)
        if tau > 0:  # never for probit and logit; L5, as for tangents
            deepest = local.deepest
            if not deepest <= 1e-3 * local.largest_variance:
                deepest = max(0.0, -local.lower_bound(0.0, -1.0, 0.0, accuracy=RANGE_ACCURACY).latent)
            kappa = down(kappa - tau * deepest * (1.0 + 8 * UNIT))
        return local.lower_bound(1.0, tau, kappa + self.mean, 0.0)

    def _conclude(self, bound: FunctionalBound, level: Level, variances: tuple[float, float]) -> Certified:
        split = int(np.argmax(bound.loss))
        if bound.latent >= 0:
            probability = max(level.p, level.after_surplus(bound.latent, variances[1]))
            return Certified(probability, bound.point, split, False)
        probability = level.after_deficit(-bound.latent, variances[0]) if bound.latent > -np.inf else 0.0
        return Certified(probability, bound.point, split, bound.value + 2.0 * bound.rounding >= 0)


def _worth_refining(bound: FunctionalBound, level: Level, start: float, end: float) -> bool:
    """Whether shorter chords may help: the chord's own gap is not small against the deficit.

    They help by more than the gap, because a chord rises above the curve outside its piece.
    """
    middle = 0.5 * (start + end)
    tau, kappa = level.chord(start, end)
    fine, offset = level.chord(middle, middle)
    gap = (offset - fine * middle) - (kappa - tau * middle)
    return gap > -_WORTH * bound.value

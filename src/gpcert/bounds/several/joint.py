"""Does a class of one-vs-rest stay the most probable one? Two classes compared at the same point.

Separate ranges of p_c and p_j lose how far their extremes lie apart, which is of first order in the box. With
the probit link p_c > p_j exactly where mu_c / A_c > mu_j / A_j, A = sqrt(c + S), and for every number t

    A_c (mu_c / A_c - mu_j / A_j) = (mu_c - t A_c) + (A_c / A_j) (t A_j - mu_j):

both brackets lie above supporting planes (G1, G2), and their sum is bounded as one (O4).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from gpcert.bounds.geometry.domain import Domain, Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.levels.curves import ProbitCurves, ProbitLevel
from gpcert.bounds.local.forms import Pieces, Subtracted, least
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.radial.plane import kernel_below
from gpcert.bounds.one.level import LevelBound
from gpcert.bounds.several.one_vs_rest import OneVsRestBound
from gpcert.bounds.several.sums import level_pieces
from gpcert.rounding import UNIT, down, exp_up, normal_cdf_down, sqrt_down, sqrt_up, up
from gpcert.validation import Float, Index, Mask

#: Stands for "P_c > P_j for every j": a margin above 0 of unknown size.
_WINS = up(0.5)
#: At least the density of the normal distribution.
_DENSITY = 0.39894229
#: Room above 0 for the rounding of a conclusion, relative to nothing: latents are of size one.
_CLEAR = 1e-9
#: Boxes that are remembered.
_KEPT = 256


@dataclass(frozen=True, eq=False)
class JointLabel(OneByOne):
    """A `BoxBound` of (1 + min_j (P_c - P_j)) / 2; a value of 1/2 and one ulp means "above 1/2"."""

    apart: OneVsRestBound  #: by separate ranges: at points, and where there are no planes
    #: The last boxes, each with the rivals (C - 1,) that lose on it: they need not be looked at on its parts.
    won: deque[tuple[Float, Float, Mask]] = field(default_factory=partial(deque, maxlen=_KEPT), repr=False)

    @classmethod
    def of(cls, apart: OneVsRestBound) -> BoxBound:
        """The joint bound where the link has one, else the other."""
        bounds = [bound for pair in apart.classes for bound in pair]
        probit = all(isinstance(b, LevelBound) and isinstance(b.curves, ProbitCurves) for b in bounds)
        return cls(apart) if probit else apart

    @property
    def shape(self) -> Shape:
        return self.apart.shape

    @cached_property
    def own(self) -> LevelBound:
        """Of p_c."""
        return _level_bound(self.apart.classes[self.apart.ratio.label][0])

    @cached_property
    def rivals(self) -> tuple[LevelBound, ...]:
        """Of 1 - p_j, for every other class."""
        c = self.apart.ratio.label
        return tuple(_level_bound(pair[1]) for j, pair in enumerate(self.apart.classes) if j != c)

    def at(self, x: Float) -> tuple[float, float]:
        return self.apart.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        """The smallest difference of mu / A: it has the sign of the margin."""
        value, slope = self.own.objective(x)
        other, fall = min((rival.objective(x) for rival in self.rivals), key=lambda pair: pair[0])
        return value + other, slope + fall  # a rival's is that of 1 - p_j: with the other sign

    @np.errstate(all="ignore")  # overflow and NaN end as 0, never as a bound
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: O4 for every rival, around references of rising price."""
        own, widest = self.own, int(np.argmax((upper - lower) / self.own.lengthscale))
        scores = np.array([rival.objective(reference)[0] for rival in self.rivals])  # of 1 - p_j
        t = 0.5 * (own.objective(reference)[0] - float(scores.min()))
        open_ = np.flatnonzero(~self._known(lower, upper))
        open_ = open_[np.argsort(scores[open_], kind="stable")]
        best: Certified | None = None
        for place in own.places(lower, upper, reference, partial(own.planes, slack=lambda: np.inf)):
            if place is None:
                return Certified(1.0, reference, widest, False)
            start, domain, prices = place
            for sharp in prices:
                found = _Box(self, lower, upper, start, domain, sharp, t).compare(open_)
                if found is None:
                    continue
                certified, open_ = found
                if best is None or certified.value > best.value:
                    best = certified
                if not len(open_):
                    return Certified(_WINS, reference, widest, False)
        if best is None:
            return self.apart.over(lower, upper, reference, target)
        self._remember(lower, upper, open_)
        return best

    def _known(self, lower: Float, upper: Float) -> Mask:
        """The rivals (C - 1,) that lose on a box around this one."""
        known = np.zeros(len(self.rivals), dtype=bool)
        for low, high, won in self.won:
            if (low <= lower).all() and (upper <= high).all():
                known |= won
        return known

    def _remember(self, lower: Float, upper: Float, open_: Index) -> None:
        """That all but these rivals lose on the box."""
        won = np.ones(len(self.rivals), dtype=bool)
        won[open_] = False
        if won.any():
            self.won.append((lower, upper, won))


def _level_bound(bound: BoxBound) -> LevelBound:
    assert isinstance(bound, LevelBound)
    return bound


@dataclass(frozen=True, eq=False)
class _Box:
    """O4 on one box, around one reference, for one number t; `domain` in units of the class itself."""

    label: JointLabel
    lower: Float
    upper: Float
    start: Float
    domain: Domain
    sharp: bool
    t: float

    def compare(self, rivals: Index) -> tuple[Certified, Index] | None:
        """What holds against these rivals, and which of them are not beaten; None where there is no plane."""
        own = self.label.own
        plane = self._plane(own, self.domain, self.t)
        if plane is None:
            return None
        rough, left = plane.rough(self.domain), []
        worst: Subtracted | None = None
        for j in rivals:
            bounds = self._against(plane, rough, self.label.rivals[j])
            if bounds is None:
                return None
            lost = [bound for bound in bounds if not bound.value > 0.0]
            left += [j] if lost else []
            worst = min(lost if worst is None else [worst, *lost], key=lambda each: each.value, default=None)
        if worst is None:
            return Certified(_WINS, self.start, 0, False), np.empty(0, dtype=np.intp)
        point = np.clip(self.start + worst.point * own.lengthscale, self.lower, self.upper)
        stuck = worst.value + 2.0 * worst.rounding >= 0
        value = self._value(plane, worst.value)
        return Certified(value, point, int(np.argmax(worst.loss)), stuck), np.array(left)

    def _plane(self, bound: LevelBound, domain: Domain, t: float) -> Pieces | None:
        """Pieces of a lower bound of mu - t A, for a Gaussian kernel of e^r times that."""
        return level_pieces(bound, domain, self.start, self._level(bound, t), self.sharp)

    def _level(self, bound: LevelBound, t: float) -> ProbitLevel:
        level = bound.curves.level(0.5)
        assert isinstance(level, ProbitLevel)
        return replace(level, t=t)

    def _against(self, plane: Pieces, rough: float, rival: LevelBound) -> list[Subtracted] | None:
        """Lower bounds of the sum of both brackets, at the ends of what A_c / A_j may be; none: positive.

        `rough`: a lower bound of the first.
        """
        own, start = self.label.own, self.start
        domain = self.label.shape.domain(self.lower, self.upper, start, rival.lengthscale)
        other = None if domain is None else self._plane(rival, domain, -self.t)
        if domain is None or other is None:
            return None
        factor = own.lengthscale / rival.lengthscale
        if not (factor == 1.0).all():
            other = other.measured_by(factor, self.domain.reach)
        positive = other.rough(self.domain) >= 0.0
        if positive and rough > 0.0:
            return []
        (low, high), (low_j, high_j) = _roots(own, self.domain, start), _roots(rival, domain, start)
        # Gaussian kernels: e^{r_c} f is bounded, so that the second bracket has the factor e^{r_c - r_j}.
        change = isinstance(own.slice, Slice) - isinstance(rival.slice, Slice) * factor * factor
        slack = 16 * UNIT * (1.0 + factor * factor)
        grow, shrink = (
            exp_up(0.5 * self.domain.norm(np.maximum(each + slack, 0.0)) ** 2 * (1.0 + 8 * UNIT))
            for each in (change, -change)
        )
        fewest, most = low / high_j / shrink * (1.0 - 16 * UNIT), high / low_j * grow * (1.0 + 16 * UNIT)
        if not (0.0 < fewest <= most < math.inf):
            return None
        ends = [fewest] if positive else [fewest, most]  # a second bracket >= 0 is smallest there
        return [least(self.domain, [plane, other.times(end)], (_CLEAR, 1e-6)) for end in ends]

    def _value(self, plane: Pieces, value: float) -> float:
        """A bound of the margin where A_c (z_c - z_j) >= value < 0 for every j.

        p_j - p_c <= density |value| / sqrt c, and where that is positive the sum of all p is at least 2 p_c.
        """
        level = self._level(self.label.own, self.t)
        unit = sqrt_down(level.c_low) * (1.0 - 8 * UNIT)
        alone = min(least(self.domain, [plane], (0.0, 1e-6)).value, 0.0)
        p = normal_cdf_down(down(self.t + alone / unit * (1.0 + 8 * UNIT)))
        gap = _DENSITY * -value / unit
        margin = 0.5 - 0.25 * gap / p * (1.0 + 16 * UNIT) if p > 0 else 0.0
        return max(0.0, down(margin))  # in this order: NaN is 0


def _roots(bound: LevelBound, domain: Domain, start: Float) -> tuple[float, float]:
    """Ends of A = sqrt(c + max(S, 0)) over the domain (O5)."""
    slice_, model = bound.slice, bound.slice.model
    level = bound.curves.level(0.5)
    assert isinstance(level, ProbitLevel)
    c_low, c_high = level.c_low, level.c_high
    (prior_low, prior), S = slice_.prior, slice_.latent(start)[1]
    lift = model.deepest + 2.0 * (prior - prior_low)
    share, metric = 1.0, np.ones(len(domain.low))
    if not isinstance(slice_, Slice):
        share, metric = kernel_below(slice_, domain)
    away = (1.0 - share + 0.5 * domain.norm(metric) ** 2) * (1.0 + 8 * UNIT)
    away = away if away < 1.0 else 1.0  # NaN: nothing is known
    change = 2.0 * (prior + lift) * away + model.excess_variance(
        np.full(len(model.weights), 1.01 * model.variance)
    )
    change = sqrt_up(change * (1.0 + 16 * UNIT))
    low = sqrt_down(c_low + max(S[0], 0.0)) * (1.0 - 8 * UNIT) - change - lift / sqrt_down(c_low)
    high = sqrt_up(c_high + max(S[1], 0.0) + lift) * (1.0 + 8 * UNIT) + change
    most = sqrt_up(c_high + max(slice_.largest_variance, 0.0)) * (1.0 + 8 * UNIT)
    return max(low, sqrt_down(c_low)), min(high, most)

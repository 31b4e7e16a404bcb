"""Does a class of one-vs-rest stay the most probable one? Two classes compared at the same point.

Separate ranges of p_c and p_j lose how far their extremes lie apart, which is of first order in the box. With
the probit link p_c > p_j exactly where z_c > z_j, z = mu / sqrt(c + S), and that is: no number t has
z_c <= t <= z_j. With A = sqrt(c + S) and any factors, not both 0, a point with such a t has

    share (mu_c - t A_c) + (1 - share) (t A_j - mu_j) <= 0:

so the numbers are cut into cells, and if for one share the left side is positive on the whole box for both
ends of a cell, then, being affine in t, it is so for all numbers between (O4). Both brackets lie above
supporting planes (G1, G2), and their sum is bounded as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from gpcert.bounds.geometry.domain import Shape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.levels.curves import ProbitCurves, ProbitLevel
from gpcert.bounds.local.forms import Subtracted
from gpcert.bounds.local.gaussian.slice import CHEAP_DIMENSIONS
from gpcert.bounds.one.level import Left, LevelBound
from gpcert.bounds.several.known import Known
from gpcert.bounds.several.one_vs_rest import OneVsRestBound
from gpcert.bounds.several.sums import Bracket, smallest_sum
from gpcert.rounding import UNIT, down, normal_cdf_bounds, sqrt_down, up
from gpcert.validation import Float, Index

#: Stands for "P_c > P_j for every j": a margin above 0 of unknown size.
_WINS = up(0.5)
#: Room above 0 for the rounding of a conclusion, relative to nothing: latents are of size one.
_CLEAR = 1e-9
#: Cells of one rival on one box, and programmes for one cell, each with one more point seen, at most; with
#: few features one of each: the box is rather split.
_CELLS, _TRIES = 8, 3
#: The narrowest cell, as a share of all the numbers in question.
_NARROWEST = 0.1
#: How far below a level that fails the next one is tried, compared with what its deficit says.
_BEYOND = 1.2
#: Factors that are tried on the points seen.
_FACTORS = np.linspace(0.0, 1.0, 33)


@dataclass(frozen=True, eq=False)
class JointLabel(OneByOne):
    """A `BoxBound` of (1 + min_j (P_c - P_j)) / 2; a value of 1/2 and one ulp means "above 1/2"."""

    apart: OneVsRestBound  #: by separate ranges: at points, and where there are no planes
    known: Known = field(default_factory=Known, repr=False)  #: the rivals (C - 1,) that lose

    @classmethod
    def of(cls, apart: OneVsRestBound) -> BoxBound:
        """The joint bound where the link has one, and expansions of all classes hold (R7), else the other."""
        bounds = [bound for pair in apart.classes for bound in pair]
        probit = all(isinstance(b, LevelBound) and isinstance(b.curves, ProbitCurves) for b in bounds)
        return cls(apart) if probit and all(_level_bound(b).slice.moderate for b in bounds) else apart

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
        """The smallest difference of z: it has the sign of the margin."""
        value, slope = self.own.objective(x)
        other, fall = min((rival.objective(x) for rival in self.rivals), key=lambda pair: pair[0])
        return value + other, slope + fall  # a rival's is that of 1 - p_j: with the other sign

    @np.errstate(all="ignore")  # overflow and NaN end as 0, never as a bound
    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: O4 for every rival, around references of rising price."""
        own, widest = self.own, int(np.argmax((upper - lower) / self.own.lengthscale))
        z = own.objective(reference)[0], np.array([-rival.objective(reference)[0] for rival in self.rivals])
        open_ = np.flatnonzero(~self.known.on(lower, upper, len(self.rivals)))
        if not len(open_):
            return Certified(_WINS, reference, widest, False)
        open_ = open_[np.argsort(-z[1][open_], kind="stable")]
        best: Certified | None = None
        for place in own.places(Left(lower, upper), reference, partial(own.planes, slack=lambda: np.inf)):
            if place is None:
                return Certified(1.0, reference, widest, False)
            start, _, prices = place
            found = _Box(self, (lower, upper), start, prices, [reference]).compare(open_, *z)
            if found is None:
                continue
            certified, open_ = found
            if best is None or certified.value > best.value:
                best = certified
            if not len(open_):
                return Certified(_WINS, reference, widest, False)
        if best is None:
            return self.apart.over(lower, upper, reference, target)
        won = np.ones(len(self.rivals), dtype=bool)
        won[open_] = False
        self.known.add(lower, upper, won)
        return best


def _level_bound(bound: BoxBound) -> LevelBound:
    assert isinstance(bound, LevelBound)
    return bound


@dataclass(frozen=True, eq=False)
class _Box:
    """O4 on one box, planes around one reference, by rising price."""

    label: JointLabel
    box: tuple[Float, Float]
    start: Float
    prices: tuple[bool, ...]
    seen: list[Float]  #: points (d,) of the box: they choose factors
    latents: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  #: there, of each class
    failed: list[Subtracted] = field(default_factory=list)  #: programmes, their points in raw units

    def compare(self, rivals: Index, own: float, others: Float) -> tuple[Certified, Index] | None:
        """What holds against these rivals, and which of them are not beaten; None where there is no plane.

        `own`, `others` (C - 1,): about z_c and z_j where the margin seems smallest.
        """
        least = self._exceeded(self.label.own, 0.5 * (own + float(others[rivals].max())))
        if least is None:
            return None
        open_, worst = [], (1.0, 0)
        for j in rivals:
            most = self._most(self.label.rivals[j], least, own, float(others[j]))
            if most is None:
                return None
            if not most <= least:
                open_.append(j)
                worst = min(worst, (_between(least, most), len(self.failed)))
        if not open_:
            return Certified(_WINS, self.start, 0, False), np.empty(0, dtype=np.intp)
        if not self.failed:
            return None
        failed = self.failed[worst[1] - 1]
        stuck = failed.value + 2.0 * failed.rounding >= 0
        return Certified(worst[0], failed.point, int(np.argmax(failed.loss)), stuck), np.array(open_)

    def _exceeded(self, bound: LevelBound, t: float) -> float | None:
        """A number that z of this latent exceeds on the box: t, or one below; None: there is no plane."""
        found = self._least(bound, t)
        if found is None or found.value > 0.0:
            return None if found is None else t
        lost = found.value / sqrt_down(_level(bound, t).c_low) * (1.0 + 8 * UNIT)
        known = down(t + lost - 4 * UNIT * (abs(t) + abs(lost)))
        likely = t + _BEYOND * found.value / self._latents(bound)[1, 0]
        again = self._least(bound, likely) if likely > known else None
        return likely if again is not None and again.value > 0.0 else known

    def _most(self, rival: LevelBound, least: float, own: float, other: float) -> float | None:
        """A number that z_j does not reach on the box where z_j >= z_c; `least`, which z_c exceeds, if the
        rival is beaten there. None: there is no plane.
        """
        below = self._exceeded(rival, -least if least > other else -0.5 * (own + other))
        if below is None or -below <= least:
            return None if below is None else least
        cells, narrowest = [(least, -below)], -_NARROWEST * (least + below)
        for _ in range(self._at_most(_CELLS) if own > other and narrowest < np.inf else 0):
            low, high = cells[-1]
            done, hope = self._excluded(rival, low, high)
            if done:
                cells.pop()
            elif hope and high - low > narrowest:
                middle = 0.5 * (low + high)
                cells[-1:] = [(low, middle), (middle, high)]
            else:
                break
            if not cells:
                return least
        return cells[-1][1]

    def _excluded(self, rival: LevelBound, low: float, high: float) -> tuple[bool, bool]:
        """Whether no point has z_c <= t <= z_j for a t of the cell (O4), with the factor that is best on the
        points seen; and whether smaller cells may do.
        """
        for _ in range(self._at_most(_TRIES)):
            sums = np.minimum(*(self._sums(rival, t) for t in (low, high)))
            share = float(_FACTORS[int(np.argmax(sums))])
            if not sums.max() > 0.0:
                break
            for t in (low, high):
                found = self._least(self.label.own, t, share, rival)
                if found is None or not found.value > 0.0:
                    break
            else:
                return True, True
            if found is None:
                return False, False
        return False, all(self._sums(rival, t).max() > 0.0 for t in (low, high))

    def _at_most(self, count: int) -> int:
        return count if len(self.start) > CHEAP_DIMENSIONS else 1

    def _sums(self, rival: LevelBound, t: float) -> Float:
        """About the least sum among the points seen, for every factor."""
        (mean, root), (other, root_j) = self._latents(self.label.own), self._latents(rival)  # of -f_j
        both = np.outer(mean - t * root, _FACTORS) + np.outer(other + t * root_j, 1.0 - _FACTORS)
        return np.asarray(both.min(axis=0))

    def _latents(self, bound: LevelBound) -> Float:
        """About mu and sqrt(c + S) (2, m) at the points seen, the first of them the reference."""
        found = self.latents.setdefault(id(bound), [])
        for x in self.seen[len(found) :]:
            mu, S = bound.slice.latent(x)
            root = math.sqrt(bound.curves.noise + max(0.5 * (S[0] + S[1]), 0.0))
            found.append((0.5 * (mu[0] + mu[1]), root))
        return np.array(found).T

    def _least(
        self, bound: LevelBound, t: float, share: float = 1.0, rival: LevelBound | None = None
    ) -> Subtracted | None:
        """A lower bound of share (mu - t A) over the box, with (1 - share) times (mu + t A) of the rival's
        latent, each times a positive function; None: not known. What fails is kept, with its point.
        """
        pairs = ((share, bound, t), (1.0 - share, rival, -t))
        brackets = [Bracket(w, each, _level(each, z)) for w, each, z in pairs if each is not None and w > 0.0]
        found: Subtracted | None = None
        for sharp in self.prices:
            found = smallest_sum(brackets, self.box, self.start, sharp, _CLEAR)
            if found is None or found.value > 0.0:
                return found
        if found is not None:
            point = np.clip(self.start + found.point * brackets[0].bound.lengthscale, *self.box)
            self.seen.append(point)
            self.failed.append(found._replace(point=point))
        return found


def _level(bound: LevelBound, t: float) -> ProbitLevel:
    """mu = t sqrt(c + S)."""
    level = bound.curves.level(0.5)
    assert isinstance(level, ProbitLevel)
    return replace(level, t=t)


def _between(low: float, high: float) -> float:
    """(1 + P_c - P_j) / 2 is at least this where low <= z_c <= z_j <= high (O4)."""
    small, large = normal_cdf_bounds(low)[0], normal_cdf_bounds(high)[1]
    return max(0.0, down(small / (small + large) * (1.0 - 8 * UNIT)))  # in this order: NaN is 0

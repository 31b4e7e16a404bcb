"""The certified bound of one box: a lower bound of the probability, a candidate point, where to split.

`BoxBound` is the one interface the search knows; other kernels, links and array libraries join here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from gpcert.bounds.expansion import Expansion, expand
from gpcert.bounds.functional import FunctionalBound, lower_bound
from gpcert.bounds.levels import Level, Link
from gpcert.bounds.majorants import CHEAP_DIMENSIONS, COLUMN_DIMENSIONS, Majorants, cheap, coarse, sharp
from gpcert.bounds.slice import Slice
from gpcert.rounding import UNIT, down, gamma, sqrt_up, sum_up
from gpcert.validation import Float

__all__ = ["BoxBound", "Certified", "RbfBound"]


class Certified(NamedTuple):
    """`probability` <= P on the whole box; `point` (d,), raw units, in the box; `split`: coordinate to halve.

    `at_rounding`: only rounding stands between the bound and its target, so splitting cannot help.
    """

    probability: float
    point: Float
    split: int
    at_rounding: bool


class BoxBound(Protocol):
    """What the search needs to know of a model: enclosures at points, lower bounds over boxes."""

    def at(self, x: Float) -> tuple[float, float]:
        """Enclosure of P at x (d,)."""

    def objective(self, x: Float) -> tuple[float, Float]:
        """An increasing function of P (estimated) and its gradient at x (d,): for local search only."""

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """A lower bound of P over a box, aiming at `target`; `reference` (d,) is where P seems smallest."""


#: Expansion, and the only tau that will be asked for (None: several), to majorants.
Builder = Callable[[Expansion, float | None], Majorants]

#: Diameter, in lengthscales, from which on e^{2r} makes the expansion useless: the envelope alone is used.
_TOO_LARGE = 4.0
#: Most pieces of a convex level curve per box.
_PIECES = 24
#: A failing piece is halved while its gap exceeds this share of the deficit.
_WORTH = 0.1
#: The range of S only decides where the pieces lie: it need not be sharp.
_RANGE_ACCURACY = 0.05


@dataclass(frozen=True, eq=False)
class RbfBound:
    """Theorem 2: probability bounds of a two-class posterior with the Gaussian kernel on one slice."""

    slice: Slice
    link: Link

    def at(self, x: Float) -> tuple[float, float]:
        """E3: mean and variance with their rounding, through the corner lemma."""
        model = self.slice.model
        _, k, relative = self.slice.kernel(x)
        unit = relative + gamma(len(k) + 20)
        mu = self.slice.mean + float(self.slice.weights @ k)
        bound = k + self.slice.floor
        error = sum_up(np.abs(self.slice.weights) * bound * unit) * 1.01
        error += 4 * UNIT * (abs(mu) + abs(self.slice.mean))
        # k^T R k = k^T shifted k - sum defect k^2 (F1), the last to a few roundings and the error of k.
        extra = float((model.defect * k) @ k)
        S = model.variance - float(k @ (model.shifted @ k)) + extra
        roots = np.sqrt(model.row_weight) * bound
        error_S = 2.02 * sqrt_up(sum_up((roots * unit) ** 2)) * sqrt_up(sum_up(roots * roots))
        error_S += 2.02 * sum_up(model.defect * bound * bound * unit) + 8 * UNIT * (model.variance + extra)
        return self.link.bounds((mu - error, mu + error), (S - error_S, S + error_S))

    def objective(self, x: Float) -> tuple[float, Float]:
        """mu / sqrt(c + S), in the link's spread, and its gradient in raw units."""
        model = self.slice.model
        v, k, _ = self.slice.kernel(x)
        r = model.shifted @ k
        mu = self.slice.mean + float(self.slice.weights @ k)
        c = self.link.spread + max(model.variance - float(k @ r), 0.0)
        root = math.sqrt(c)
        slope = (k * (self.slice.weights / root + (mu / (c * root)) * r)) @ v
        return mu / root, slope / self.slice.lengthscale

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`: attempts of rising price until one certifies the target."""
        level = self.link.level(target)
        middle = 0.5 * lower + 0.5 * upper
        widths = (upper - lower) / self.slice.lengthscale
        if not np.linalg.norm(widths) < _TOO_LARGE:
            return Certified(self._envelope(lower, upper), reference, int(np.argmax(widths)), False)
        best: Certified | None = None
        for build, retreat in self._attempts(widths):
            start = np.clip(reference + retreat * (middle - reference), lower, upper)
            trial = self._certify(expand(self.slice, lower, upper, start), build, level)
            trial = trial._replace(point=np.clip(start + trial.point * self.slice.lengthscale, lower, upper))
            if best is None or trial.probability > best.probability:
                best = trial
            if best.probability >= level.p or best.at_rounding:
                break
        assert best is not None
        if best.probability < level.p:
            best = best._replace(probability=max(best.probability, self._envelope(lower, upper)))
        return best

    def _attempts(self, widths: Float) -> list[tuple[Builder, float]]:
        """Majorants by rising price, each with how far the reference retreats from the predicted worst point.

        At the worst point itself the bound is exact there but pays for the whole width of the box on the far
        side; retreating towards the centre trades the one for the other. Any reference is sound.
        """
        size, d = float(np.linalg.norm(widths)), len(widths)
        if d <= COLUMN_DIMENSIONS:
            return [(cheap, 0.0 if size < 0.3 else 1.0)]
        if d <= CHEAP_DIMENSIONS:
            return [(cheap, 0.0), (sharp, 0.15 if size < 0.5 else 0.4)]
        retreats = (0.0, 0.2) if size < 0.35 else (0.1, 0.3) if size < 0.5 else (0.4, 0.3)
        sharps: list[tuple[Builder, float]] = [(sharp, retreat) for retreat in retreats]
        return [(coarse, 0.0), *sharps] if size < 0.4 else sharps

    def _certify(self, e: Expansion, build: Builder, level: Level) -> Certified:
        """L2, L3: one tangent, or chords on both sides of the reference's variance, halved on failure."""
        if level.concave:
            return self._tangent(e, build, level)
        m = build(e, None)
        variances = _variance_range(m)
        return self._conclude(self._chords(m, level, *variances), level, variances)

    def _tangent(self, e: Expansion, build: Builder, level: Level) -> Certified:
        model = self.slice.model
        largest = e.largest_variance
        tau, kappa = level.tangent(e.S, largest)
        overshoot = max(0.0, (model.contraction - 1.0) * model.variance) * (1.0 + 4 * UNIT)
        several = not overshoot <= 1e-3 * model.variance
        m = build(e, None if several else tau)
        if several:  # not a posterior of this kernel: bound S from below on this box instead
            overshoot = max(0.0, -lower_bound(m, 0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent)
        # The predictor clips S at 0: below, the tangent undercuts the curve by tau times the overshoot (L5).
        loss = tau * overshoot * (1.0 + 8 * UNIT) if tau > 0 else 0.0
        bound = lower_bound(m, 1.0, tau, down(kappa - loss) + self.slice.mean, 0.0)
        bound = bound._replace(rounding=bound.rounding + (0.0 if several else loss))
        return self._conclude(bound, level, (0.0, largest))

    def _chords(self, m: Majorants, level: Level, smallest: float, largest: float) -> FunctionalBound:
        """L3: the worst of the pieces' bounds; failing pieces are halved while that can pay."""
        S = min(max(m.expansion.S, smallest), largest)
        pieces = [(a, b) for a, b in ((smallest, S), (S, largest)) if b > a] or [(smallest, largest)]
        worst: FunctionalBound | None = None
        used = 0
        while pieces:
            start, end = pieces.pop()
            used += 1
            bound = self._piece(m, level, start, end)
            if bound.value < 0 and used < _PIECES and _worth_refining(bound, level, start, end):
                middle = 0.5 * (start + end)
                pieces += [(start, middle), (middle, end)]
                continue
            if worst is None or bound.latent < worst.latent:
                worst = bound
            if not bound.value >= 0:
                # The pieces not looked at may be worse still: a deficit is certified by all of them.
                rest = [self._piece(m, level, a, b) for a, b in pieces]
                return min([worst, *rest], key=lambda each: each.latent)
        assert worst is not None
        return worst

    def _piece(self, m: Majorants, level: Level, start: float, end: float) -> FunctionalBound:
        tau, kappa = level.chord(start, end)
        return lower_bound(m, 1.0, tau, kappa + self.slice.mean, 0.0)

    def _conclude(self, bound: FunctionalBound, level: Level, variances: tuple[float, float]) -> Certified:
        split = int(np.argmax(bound.loss))
        if bound.latent >= 0:
            probability = max(level.p, level.after_surplus(bound.latent, variances[1]))
            return Certified(probability, bound.point, split, False)
        probability = level.after_deficit(-bound.latent, variances[0]) if bound.latent > -np.inf else 0.0
        return Certified(probability, bound.point, split, bound.value + 2.0 * bound.rounding >= 0)

    def _envelope(self, lower: Float, upper: Float) -> float:
        """E4: each k_i between its extremes over the box, S anywhere: for boxes of many lengthscales."""
        model, slice_ = self.slice.model, self.slice
        left = (slice_.points - lower) / slice_.lengthscale
        right = (slice_.points - upper) / slice_.lengthscale
        farthest = np.maximum(np.abs(left), np.abs(right))
        nearest = np.where(left * right <= 0, 0.0, np.minimum(np.abs(left), np.abs(right)))
        unit = UNIT * (model.centres.shape[1] + 16)
        far = np.einsum("ij,ij->i", farthest, farthest) * 0.5
        near = np.einsum("ij,ij->i", nearest, nearest) * 0.5
        small = (
            slice_.amplitude * np.exp(-far) * (1.0 - unit * (far + slice_.still) - 64 * UNIT) - slice_.floor
        )
        large = (
            slice_.amplitude * np.exp(-near) * (1.0 + unit * (near + slice_.still) + 64 * UNIT) + slice_.floor
        )
        terms = np.where(slice_.weights > 0, slice_.weights * np.maximum(small, 0.0), slice_.weights * large)
        error = gamma(len(terms) + 8) * float(np.abs(terms).sum()) * 1.01
        mu = slice_.mean + float(terms.sum()) - error - 4 * UNIT * abs(slice_.mean)
        most = model.variance * (1.0 + 4 * UNIT) + model.excess_variance(large)
        return self.link.bounds((mu, mu), (0.0, most))[0]


def _worth_refining(bound: FunctionalBound, level: Level, start: float, end: float) -> bool:
    """Whether shorter chords may help: the chord's own gap is not small against the deficit.

    They help by more than the gap, because a chord rises above the curve outside its piece.
    """
    middle = 0.5 * (start + end)
    tau, kappa = level.chord(start, end)
    fine, offset = level.chord(middle, middle)
    gap = (offset - fine * middle) - (kappa - tau * middle)
    return gap > -_WORTH * bound.value


def _variance_range(m: Majorants) -> tuple[float, float]:
    """Bounds of S over the box by the same theorem with a = 0, tau = -1 and tau = 1; S is clipped at 0."""
    smallest = max(0.0, lower_bound(m, 0.0, -1.0, 0.0, accuracy=_RANGE_ACCURACY).latent)
    largest = -lower_bound(m, 0.0, 1.0, 0.0, accuracy=_RANGE_ACCURACY).latent
    largest = min(max(largest, 0.0), m.expansion.largest_variance)
    return min(smallest, largest), largest

"""The sign of the latent mean: for a symmetric link, P > 1/2 exactly where mu > 0, whatever the variance.

`SignBound` asks for nothing else, so that a decision at 1/2 needs no n x n product (docs/maths.md, D1). Where
its own expansion of the mean does not decide, the local models of the kernel's own bound do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpcert.bounds.geometry.domain import Domain, Shape, asked
from gpcert.bounds.interface import Certified
from gpcert.bounds.local.gaussian.majorants import CHEAP_DIMENSIONS
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.local.protocol import FunctionalBound
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.one.level import LevelBound
from gpcert.rounding import TINY, UNDERFLOW, UNIT, exp_up, gamma, sqrt_up, sum_up, symmetric, tail_norm_up
from gpcert.validation import Float

#: Size of a set, in lengthscales, up to which the plain expansion of the mean is worth trying.
_LARGEST = 1.0
#: A latent mean certified above this ends a trial: room for the rounding of the conclusion.
_CLEAR = 1e-9


@dataclass(frozen=True, eq=False)
class SignBound:
    """A `BoxBound` that is sharp at 1/2 alone: elsewhere its values are true but rough."""

    base: LevelBound

    @property
    def shape(self) -> Shape:
        return self.base.shape

    def at(self, x: Float) -> tuple[float, float]:
        return self.base.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        """The mean where it comes alone, else what the kernel's bound offers, of the same sign."""
        if not isinstance(self.base, RbfBound):
            return self.base.objective(x)
        slice_ = self.base.slice
        v, k, _ = slice_.kernel(x)
        ak = slice_.weights * k
        return slice_.mean + float(ak.sum()), (ak @ v) / slice_.lengthscale

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`; attempts end once the mean is certainly positive."""
        widest = int(np.argmax((upper - lower) / self.base.lengthscale))
        best: Certified | None = None
        for attempt in self._attempts(lower, upper, reference):
            if attempt is None:
                return Certified(1.0, reference, widest, False)
            start, bound, largest = attempt
            p = self.base.curves.bounds((bound.latent, bound.latent), (0.0, largest))[0]
            point = np.clip(start + bound.point * self.base.lengthscale, lower, upper)
            trial = Certified(p, point, int(np.argmax(bound.loss)), bound.value + 2.0 * bound.rounding >= 0)
            if best is None or trial.value > best.value:
                best = trial
            if bound.latent > 0:
                return best
        best = Certified(0.0, reference, widest, False) if best is None else best
        return best._replace(value=max(best.value, self.base.envelope(lower, upper)))

    def _attempts(
        self, lower: Float, upper: Float, reference: Float
    ) -> Iterator[tuple[Float, FunctionalBound, float] | None]:
        """References, lower bounds of the mean, and upper bounds of the variance, by rising price; None: the
        box misses the region.
        """
        base = self.base
        if isinstance(base, RbfBound):
            domain = base.shape.domain(lower, upper, reference, base.lengthscale)
            if domain is None:
                yield None
                return
            small = domain.norm(np.ones(len(lower))) < _LARGEST
            if len(lower) > CHEAP_DIMENSIONS and small and base.slice.moderate:
                bound = mean_lower_bound(base.slice, domain, reference, _CLEAR)
                yield reference, bound, _largest_variance(base.slice)
        for attempt in base.attempts(lower, upper, reference):
            if attempt is None:
                yield None
                return
            start, local = attempt
            yield start, local.only(0.0).lower_bound(1.0, 0.0, base.mean, _CLEAR), local.largest_variance


def _largest_variance(slice_: Slice) -> float:
    """F1: S <= this everywhere on the slice."""
    most = slice_.amplitude * (1.0 + 1e-9) + slice_.tiny
    return max(slice_.model.largest_variance(most), 0.0)


def mean_lower_bound(slice_: Slice, domain: Domain, reference: Float, enough: float) -> FunctionalBound:
    """D1: a lower bound of the latent mean, prior mean included, over the set seen from `reference` (d,)."""
    n, d = slice_.points.shape
    v, k, relative = slice_.kernel(reference)
    ak, mean = slice_.weights * k, slice_.mean
    reach, s = domain.reach, domain.norm(np.ones(d))
    radius = 0.5 * s * s * (1.0 + 4 * UNIT)
    grow = exp_up(radius)
    M0, g, H = float(ak.sum()), ak @ v, v.T @ (ak[:, None] * v)
    H = symmetric(H)
    X = domain.absolute(v)
    grown = (k + slice_.tiny) * np.exp(X) * (1.0 + 2.0 * relative + 64 * UNIT)
    error = sum_up(np.abs(slice_.weights) * grown * (relative + gamma(n + 60))) * 1.01
    tail = _third_order(slice_, s, (M0, g, H), float(np.max(relative)) + gamma(n + 60))
    # mean * e^r >= mean + slope * r: the tangent where convex, else the chord.
    slope = mean if mean >= 0 or radius <= 0 else mean * math.expm1(radius) / radius
    slope -= 64 * UNIT * abs(mean) * grow
    taken = 2.0 * tail / max(s * s, TINY) * (1.0 + 1e-12)
    size = float(reach @ np.abs(H) @ reach) + (abs(slope) + taken) * s * s + float(np.abs(g) @ reach)
    H[np.diag_indices(d)] += slope - taken
    excess = error * grow + gamma(60) * (size + (abs(M0) + abs(mean)) * grow) + UNDERFLOW
    base = M0 + mean
    bound = domain.minimise(g, H, asked(enough, enough * grow + excess - base))
    value = base + bound.value - excess - 4 * UNIT * (abs(base) + abs(bound.value) + excess)
    value = value if math.isfinite(value) else -np.inf
    latent = value if value <= 0 else value / grow * (1.0 - 4 * UNIT)
    loss = (domain.high - domain.low) ** 2 * (taken + np.maximum(-np.diagonal(H), 0.0))
    return FunctionalBound(value, latent, bound.point, excess, loss)


def _third_order(slice_: Slice, s: float, head: tuple[float, Float, Float], unit: float) -> float:
    """X5: |M_{>=3}| <= this on the set, from the RKHS norm of the slice less the orders known exactly."""
    _, entry = slice_.gram
    b = slice_.weights * slice_.amplitude
    size = float(np.abs(b).sum())
    relative = 2.0 * (entry + gamma(2 * len(b) + 40) + 4.0 * unit)
    constant, gradient, hessian = head
    known = constant * constant + float(gradient @ gradient) + 0.5 * float(np.vdot(hessian, hessian))
    slack = 2.0 * size * relative * (size + math.sqrt(known)) + gamma(len(gradient) ** 2 + 20) * known
    rest = sqrt_up(max(slice_.norm_squared - known, 0.0) + slack)
    return rest * tail_norm_up(3, s) * (1.0 + 1e-15)

"""The part of a set on one side of a hyperplane (docs/maths-regions.md, B9).

Where a bound over a set fails, it still says on which side of a hyperplane it may fail: on that part, which
is smaller, a new one may succeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.geometry.ball import BallDomain
from gpcert.bounds.geometry.box_quadratic import QuadraticBound
from gpcert.bounds.geometry.domain import BoxDomain, Domain
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up
from gpcert.validation import Float

#: Multipliers tried for a linear function, relative to the ratio of its size to the normal's; then two more
#: relative to the best of them. Any is sound.
_MULTIPLES, _FINER = (0.25, 0.5, 1.0, 2.0), (0.7, 1.4)


@dataclass(frozen=True, eq=False)
class CutDomain(Domain):
    """All d of `inner` with normal.d <= level, in the same box."""

    inner: BoxDomain | BallDomain
    normal: Float  #: (d,)
    level: float

    @property
    def _size(self) -> float:
        """At least sup |normal.d|."""
        return float(np.abs(self.normal) @ self.reach) * (1.0 + gamma(len(self.low) + 8)) + TINY

    def norm(self, metric: Float) -> float:
        """sum m d^2 = sum m (d - q)^2 + 2 (m q).d - sum m q^2, q about in the middle; or without the cut."""
        q, square = self.inner.rounded(metric)
        pull = 2.0 * metric * q
        total = square + float(self.support(pull[None])[0]) - 0.5 * float(pull @ q)
        size = square + float(np.abs(pull) @ (np.abs(q) + self.reach))
        total += gamma(2 * len(q) + 40) * size + TINY
        return float(np.fmin(self.inner.norm(metric), sqrt_up(max(total, 0.0))))

    def support(self, rows: Float) -> Float:
        """a.d <= (a - m normal).d + m level for every m >= 0."""
        unit = np.abs(rows) @ self.reach / self._size
        best, at = self.inner.support(rows), 0.0 * unit
        for factor in _MULTIPLES:
            value = self._less(rows, factor * unit)
            at, best = np.where(value < best, factor * unit, at), np.fmin(best, value)
        for factor in _FINER:
            best = np.fmin(best, self._less(rows, factor * at))
        return best

    def _less(self, rows: Float, m: Float) -> Float:
        size = np.abs(rows) @ self.reach + m * (self._size + abs(self.level))
        return self.inner.support(rows - m[:, None] * self.normal) + m * self.level + gamma(16) * size

    def absolute(self, rows: Float) -> Float:
        """Without the cut."""
        return self.inner.absolute(rows)

    def metric(self, spread: Float) -> Float:
        return self.inner.metric(spread)

    def largest(self, form: Float) -> float:
        return self.inner.largest(form)

    def minimise(self, g: Float, H: Float, enough: float = np.inf, accuracy: float = 1e-6) -> QuadraticBound:
        """Without the cut: where a quadratic is smallest hardly ever lies beyond it."""
        return self.inner.minimise(g, H, enough, accuracy)


class HalfSpace(NamedTuple):
    """All x with normal.(x - start) / lengthscale <= level; all but the last (d,)."""

    start: Float
    lengthscale: Float
    normal: Float
    level: float

    def share(self, domain: Domain) -> float:
        """About how much of the domain around `start` it takes, measured along its normal."""
        low, high = -domain.support(-self.normal[None]), domain.support(self.normal[None])
        return float((self.level - low[0]) / max(float(high[0] - low[0]), TINY))

    def shortened(self, domain: BoxDomain | BallDomain, lower: Float, upper: Float) -> tuple[Float, Float]:
        """A box of raw units that contains its part of the domain around `start`, in [lower, upper]."""
        cut, unit = CutDomain(domain.low, domain.high, domain, self.normal, self.level), np.eye(len(lower))
        low, high = -cut.support(-unit), cut.support(unit)
        slack = 8 * UNIT * (np.abs(self.start) + domain.reach * self.lengthscale) + TINY
        lower = np.fmax(lower, self.start + low * self.lengthscale - slack)
        return lower, np.maximum(lower, np.fmin(upper, self.start + high * self.lengthscale + slack))

    def seen_from(self, reference: Float, inner: BoxDomain | BallDomain) -> CutDomain:
        """Its part of a domain around another reference (d,)."""
        step = (reference - self.start) / self.lengthscale
        size = float(np.abs(self.normal) @ (np.abs(step) + inner.reach)) + abs(self.level)
        level = self.level - float(self.normal @ step) + gamma(2 * len(step) + 16) * size + TINY
        return CutDomain(inner.low, inner.high, inner, self.normal, level)

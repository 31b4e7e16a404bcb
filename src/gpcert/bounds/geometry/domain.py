"""The set over which one local bound holds, seen from its reference: what the bounds ask of its geometry.

A `Domain` is a set of scaled displacements d = (x - reference) / lengthscale. Every supremum that enters a
remainder, and the quadratic programme at the end, go through it, so that a ball joins by answering the same
four questions. A `Shape` is the region of a query: it cuts each box of the search to a `Domain`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from gpcert.bounds.geometry.box_quadratic import QuadraticBound, quadratic_lower_bound
from gpcert.clock import check
from gpcert.rounding import TINY, UNIT, gamma, sqrt_up, sum_up
from gpcert.validation import Float


def difference(points: Float, x: Float) -> Float:
    """points - x (n, d); NaN, not inf, beyond the doubles: lengthscales may be as large (E1)."""
    with np.errstate(over="ignore"):
        found = np.asarray(points - x)
    if not np.abs(x).max(initial=0.0) < 2.0**960:
        found[np.isinf(found)] = np.nan
    return found


def nearest_and_farthest(points: Float, lower: Float, upper: Float) -> tuple[Float, Float]:
    """The smallest and the largest |points - x| (n, d) over a box of raw units, each rounded once."""
    left, right = difference(points, lower), difference(points, upper)
    return np.maximum(np.maximum(-left, right), 0.0), np.maximum(np.abs(left), np.abs(right))


#: [lower, upper] (d,) each, raw units.
Boxes = tuple[tuple[Float, Float], ...]

#: Widths at the edge of underflow are enlarged to this: sound, and products of spans stay normal numbers.
NARROWEST = 1e-60


@dataclass(frozen=True, eq=False)
class Domain(ABC):
    """A set of displacements inside the box [low, high], which contains 0 but for a `Remnant`; all (d,)."""

    low: Float
    high: Float

    @property
    def reach(self) -> Float:
        """The largest |d_j| on the enclosing box (d,)."""
        return np.maximum(-self.low, self.high)

    @abstractmethod
    def norm(self, metric: Float) -> float:
        """At least sup sqrt(sum_j metric_j d_j^2), for metric (d,) >= 0."""

    @abstractmethod
    def support(self, rows: Float) -> Float:
        """At least sup rows_i . d, for rows (n, d): (n,)."""

    @abstractmethod
    def minimise(self, g: Float, H: Float, enough: float = np.inf, accuracy: float = 1e-6) -> QuadraticBound:
        """A certified lower bound of g.d + d^T H d / 2; effort ends once `enough` is certain.

        inf: nothing is asked; NaN: what is asked is beyond the range of doubles, so that nothing meets it.
        """

    @abstractmethod
    def absolute(self, rows: Float) -> Float:
        """At least sup sum_j |rows_ij| |d_j|, for rows (n, d): (n,); roundings of `rows` act over it (X4)."""

    def sides(self, rows: Float) -> tuple[Float, Float]:
        """At least sup rows_i . d and sup -rows_i . d, (n,) each."""
        return self.support(rows), self.support(-rows)

    def linear(self, rows: Float) -> Float:
        """At least sup |rows_i . d| (n,)."""
        return np.maximum(*self.sides(rows))

    def metric(self, spread: Float) -> Float:
        """A positive metric for X1, from the spread of the data (d,): any is sound.

        This power of the spread makes the flattened bounds small.
        """
        return np.maximum(spread**0.75, 1e-3 * float(spread.max()) + 1e-12)

    def rounded(self, metric: Float) -> tuple[Float, float]:
        """A point q (d,) about in the middle, and at least sup sum_j metric_j (d_j - q_j)^2."""
        middle = 0.5 * (self.low + self.high)
        half = np.maximum(self.high - middle, middle - self.low) * (1.0 + 4 * UNIT)
        return middle, sum_up(metric * half * half)

    def largest(self, form: Float) -> float:
        """An estimate of sup d^T form d: balances constants only."""
        w = self.reach
        y = w * np.sqrt(np.maximum(np.diagonal(form), 0.0))
        matrix = form * np.outer(w, w)
        size = float(np.linalg.norm(y))
        y = y / size if size > 0 else w / max(float(np.linalg.norm(w)), TINY)
        top = 0.0
        for _ in range(5):
            z = matrix @ y
            top = float(np.linalg.norm(z))
            if not top > 0:
                break
            y = z / top
        return max(top, 0.0) * len(w)


@dataclass(frozen=True, eq=False)
class BoxDomain(Domain):
    """The whole box."""

    def norm(self, metric: Float) -> float:
        """At the far corner."""
        reach = self.reach
        return sqrt_up(sum_up(metric * reach * reach))

    def support(self, rows: Float) -> Float:
        """At a corner per row."""
        sums = np.maximum(rows, 0.0) @ self.high + np.minimum(rows, 0.0) @ self.low
        return np.asarray(sums * (1.0 + 4.0 * gamma(2 * len(self.low) + 16)))

    def absolute(self, rows: Float) -> Float:
        """At the far corner."""
        return np.asarray(np.abs(rows) @ self.reach * (1.0 + 4.0 * gamma(2 * len(self.low) + 16)))

    def sides(self, rows: Float) -> tuple[Float, Float]:
        """The same twice: nearly as sharp as two supports, at half the price."""
        size = self.absolute(rows)
        return size, size

    def minimise(self, g: Float, H: Float, enough: float = np.inf, accuracy: float = 1e-6) -> QuadraticBound:
        """Q1, Q2."""
        check()
        return quadratic_lower_bound(g, H, self.low, self.high, enough, accuracy)


def asked(target: float, needed: float) -> float:
    """What to ask of `Domain.minimise` if a functional needs `needed` to reach its target (inf: it has none).

    Overflow on the way is not the same as having no target: it is NaN, which no bound reaches.
    """
    return needed if target == np.inf or np.isfinite(needed) else np.nan


def scaled_box(lower: Float, upper: Float, reference: Float, lengthscale: Float) -> tuple[Float, Float]:
    """[low, high] of the displacements of a box around a reference inside it, rounded outward."""
    low = (lower - reference) / lengthscale * (1.0 + 4 * UNIT)
    high = (upper - reference) / lengthscale * (1.0 + 4 * UNIT)
    return low, np.where(np.maximum(-low, high) < NARROWEST, NARROWEST, high)


def divided(lower: Float, upper: Float, j: int, cuts: Iterable[float]) -> Boxes | None:
    """The parts of a box between rising `cuts` of coordinate j; None where one would be empty."""
    ends = [lower[j], *cuts, upper[j]]
    if not all(first < second for first, second in pairwise(ends)):
        return None
    parts = [(lower.copy(), upper.copy()) for _ in ends[1:]]
    for (low, high), first, second in zip(parts, ends[:-1], ends[1:], strict=True):
        low[j], high[j] = first, second
    return tuple(parts)


class Shape(Protocol):
    """The region of a query on its moving features."""

    @property
    def is_box(self) -> bool:
        """Whether the region is a box: local searches may then move coordinates one by one."""

    @property
    def capped(self) -> bool:
        """Whether a box may give way to other parts than its halves: a proof file knows those alone."""

    def domain(self, lower: Float, upper: Float, reference: Float, lengthscale: Float) -> Domain | None:
        """The part of the region in the box [lower, upper] seen from `reference`, raw units; None: empty."""

    def middle(self, lower: Float, upper: Float) -> Float:
        """A point (d,) of the box, about in the middle of the region's part in it."""

    def within(self, point: Float, lower: Float, upper: Float) -> Float:
        """A point (d,) of the box near `point`, about in the region if the box meets it."""

    def parts(self, lower: Float, upper: Float, j: int) -> Boxes | None:
        """Boxes that cover the box, smaller on the region than halves along coordinate j; None: halves."""

    def project(self, point: Float) -> Float:
        """A point (d,) of the region near `point`, exactly inside."""

    def vertex(self, gradient: Float, point: Float) -> Float:
        """A point of the region where gradient . x is about smallest; `point` decides where that is free."""

    def neighbours(self, gradient: Float, point: Float) -> list[Float]:
        """Points of the region that gradients do not lead to, most promising first; often none."""


@dataclass(frozen=True, eq=False)
class BoxShape:
    """A box region; [lower, upper] (d,) is where witnesses may lie."""

    lower: Float
    upper: Float
    capped: bool = field(default=True, kw_only=True)

    @property
    def is_box(self) -> bool:
        return True

    def domain(self, lower: Float, upper: Float, reference: Float, lengthscale: Float) -> Domain | None:
        """The box as it is: the boxes of the search cover the region rounded outward."""
        return BoxDomain(*scaled_box(lower, upper, reference, lengthscale))

    def middle(self, lower: Float, upper: Float) -> Float:
        return 0.5 * lower + 0.5 * upper

    def within(self, point: Float, lower: Float, upper: Float) -> Float:
        return np.clip(point, lower, upper)

    def parts(self, lower: Float, upper: Float, j: int) -> Boxes | None:
        return None

    def project(self, point: Float) -> Float:
        return np.clip(point, self.lower, self.upper)

    def neighbours(self, gradient: Float, point: Float) -> list[Float]:
        return []

    def vertex(self, gradient: Float, point: Float) -> Float:
        return np.where(gradient > 0, self.lower, np.where(gradient < 0, self.upper, point))

"""Best-first branch and bound, anytime: the state after any call is a valid answer (docs/maths.md, 6).

`Minimiser` encloses the smallest value of a bound's quantity over a box; it is asked for a box and told what
was proved of it, by whoever drives it (`gpcert.search.run`). Every box ever created is either open (on the
frontier, with its own certified lower bound), or settled (its bound is folded into `settled`); together they
cover the region, so `lower = min(settled, smallest open bound)` is certified after every step. It never
decreases, and `upper`, the value at the best point found, never increases.
"""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np

from gpcert.bounds import BoxBound, Certified
from gpcert.search.local import descend
from gpcert.validation import Float

__all__ = ["Minimiser", "OpenBox", "Request"]

#: Boxes on the frontier; beyond it the most promising-to-be-harmless ones are settled at their present bound.
FRONTIER_LIMIT = 200_000
#: By so much a target lies above the goal: room for the rounding of a bound that just meets its target.
_ABOVE = 1e-9


class OpenBox(NamedTuple):
    """A box with its certified lower bound; the smallest bound is refined first.

    A tuple that compares by two numbers: heap operations then run without a single byte code of Python in
    between, so that Ctrl-C cannot leave a heap half ordered.
    """

    bound: float
    number: int
    lower: Float
    upper: Float
    reference: Float


class Request(NamedTuple):
    """What a search wants to know: the arguments of `BoxBound.over`, for the first box of its frontier."""

    lower: Float
    upper: Float
    reference: Float
    target: float


class Minimiser:
    """Encloses min P over the bound's region; the box [lower, upper] (d,) contains it.

    `goal`: a box whose bound exceeds it is settled, so that a decision costs no more than it must. `between`:
    what is known of the values beforehand.
    """

    def __init__(
        self,
        bound: BoxBound,
        lower: Float,
        upper: Float,
        goal: float = np.inf,
        between: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.bound = bound
        self._goal = goal
        self._box = lower, upper
        self._numbers = itertools.count()
        self._frontier: list[OpenBox] = []
        self._least, self._settled = between
        self._started = False
        # How well P is known at the witness: where no goal is set, finer targets than that are beyond reach.
        self._surely, self._blur = -np.inf, 0.0
        self._most = self.upper = between[1]
        self.witness: Float | None = None
        self.nodes = 0
        self.coarsened = False

    @property
    def lower(self) -> float:
        """The certified lower bound."""
        if not self._started:
            return self._least
        smallest = self._frontier[0].bound if self._frontier else self._most
        return min(self._settled, smallest, self.upper)

    @property
    def exhausted(self) -> bool:
        """Whether no open box is left, or none whose refinement could raise the lower bound."""
        return self._started and not (self._frontier and self._frontier[0].bound < self._settled)

    def start(self, enough: float = -np.inf, point: Float | None = None, negligible: float = 0.0) -> None:
        """Find a first point; the whole region becomes one open box with the trivial bound.

        A point where the bound's objective is below `enough`, or P below `negligible`, ends the local search;
        with a `point` (d,) of the region given there is none.
        """
        point = descend(self.bound, *self._box, enough, negligible) if point is None else point
        self.offer(point)
        if point.size:
            self._frontier = [OpenBox(self._least, next(self._numbers), *self._box, point)]
        else:  # nothing moves: the region is one point
            self._settled = max(self._least, self.bound.at(point)[0])
        self._started = True

    def ask(self, tolerance: float) -> Request | None:
        """The box with the smallest bound; None: it was settled as it is."""
        box = self._frontier[0]
        target = self._target(tolerance)
        if self._suffices(box.bound, tolerance) or target <= self._least:
            self._settle(box.bound)
            return None
        return Request(box.lower, box.upper, box.reference, target)

    def tell(self, request: Request, certified: Certified, tolerance: float) -> None:
        """What was proved of the box asked about: it is settled or split. Interrupted, nothing is lost."""
        box = self._frontier[0]
        self.nodes += 1
        probability = max(box.bound, certified.value)
        if probability < request.target:
            self.offer(self.bound.shape.project(certified.point))
        done = self._suffices(probability, tolerance)
        children = [] if done else self._children(box, certified, probability)
        resolved = probability >= self.upper - 8.0 * self._blur and not self._goal < self._surely
        stuck = not done and (certified.at_rounding or resolved or not children)
        if done or stuck:
            self._settle(probability)
            return
        # The parent stays first (its bound and number are the smallest) until its halves replace it.
        for child in children[1:]:
            heapq.heappush(self._frontier, child)
        heapq.heapreplace(self._frontier, children[0])
        self._coarsen()

    def _target(self, tolerance: float) -> float:
        """What the bound of a box has to reach.

        A goal below the best value may be proved without knowing any value (`LabelBound`): there the
        enclosure at the witness, however wide, is no reason to stop.
        """
        if self._goal < self.upper:
            return min(self.upper - 0.999 * tolerance, self._goal + _ABOVE)
        return self.upper - max(0.999 * tolerance, 4.0 * self._blur)

    def _suffices(self, bound: float, tolerance: float) -> bool:
        return bound >= self.upper - tolerance or bound > self._goal

    def _settle(self, bound: float) -> None:
        """Close the first box of the frontier; in this order, so that an interrupt between cannot lose it."""
        self._settled = min(self._settled, bound)
        heapq.heappop(self._frontier)

    def offer(self, point: Float) -> None:
        """Keep the point (d,) of the region if the upper end of its enclosure is smaller."""
        lower, upper = self.bound.at(point)
        if upper < self.upper or self.witness is None:
            # The witness first: an interrupt between the two leaves a larger bound, which it attains too.
            self.witness, self._surely, self._blur = point, lower, upper - lower
            self.upper = min(self.upper, upper)  # in this order: NaN changes nothing

    def _children(self, box: OpenBox, certified: Certified, bound: float) -> list[OpenBox]:
        """The pieces that the bound names, or two halves."""
        if certified.pieces is None:
            return self._split(box, certified.split, certified.point, bound)
        self._settled = min(self._settled, certified.elsewhere)
        return [
            OpenBox(bound, next(self._numbers), low, high, np.clip(certified.point, low, high))
            for low, high in certified.pieces
        ]

    def _split(self, box: OpenBox, coordinate: int, point: Float, bound: float) -> list[OpenBox]:
        """Two halves of the box, or none if its coordinates cannot be halved any more."""
        order = [coordinate, *np.argsort(box.lower - box.upper, kind="stable")]
        for j in order:
            middle = 0.5 * box.lower[j] + 0.5 * box.upper[j]
            if box.lower[j] < middle < box.upper[j]:
                break
        else:
            return []
        left_upper, right_lower = box.upper.copy(), box.lower.copy()
        left_upper[j] = right_lower[j] = middle
        return [
            OpenBox(bound, next(self._numbers), low, high, np.clip(point, low, high))
            for low, high in ((box.lower, left_upper), (right_lower, box.upper))
        ]

    def _coarsen(self) -> None:
        """Memory is bounded: past the limit the boxes with the largest bounds are settled as they are."""
        if len(self._frontier) <= FRONTIER_LIMIT:
            return
        self._frontier.sort()
        keep = FRONTIER_LIMIT // 2
        self._settled = min(self._settled, self._frontier[keep].bound)
        self._frontier = self._frontier[:keep]  # sorted lists are heaps
        self.coarsened = True

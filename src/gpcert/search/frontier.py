"""Best-first branch and bound, anytime: the state after any call is a valid answer (Theorem 2).

`Minimiser` encloses the smallest value of a bound's quantity over a box; it is asked for a box and told what
was proved of it, by whoever drives it (`gpcert.search.run`). Every box ever created is either open (on the
frontier, with its own certified lower bound), or settled (its bound is folded into `settled`); together they
cover the region, so `lower = min(settled, smallest open bound)` is certified after every step. It never
decreases, and `upper`, the value at the best point found, never increases.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import numpy as np

from gpcert.bounds.interface import BoxBound, BoxQuery, Certified
from gpcert.errors import contradicted
from gpcert.search.local import descend
from gpcert.search.recorder import OpenBox, Recorder, Why
from gpcert.validation import Float

#: Boxes on the frontier; beyond it the most promising-to-be-harmless ones are settled at their present bound.
FRONTIER_LIMIT = 200_000
#: By so much a target lies above the goal: room for the rounding of a bound that just meets its target.
_ABOVE = 1e-9
#: While a goal may still be proved, values count as equal to within this share of the tolerance: which side
#: of the goal they are on is the question, not their size.
_PURSUED = 1e-3


class Minimiser:
    """Encloses min P over the bound's region; the box [lower, upper] (d,) contains it.

    `goal`: a box whose bound exceeds it is settled, so that a decision costs no more than it must. `between`:
    what is known of the values beforehand. `recorder` hears what happens, as from the given `side`.
    """

    def __init__(
        self,
        bound: BoxBound,
        lower: Float,
        upper: Float,
        goal: float = np.inf,
        between: tuple[float, float] = (0.0, 1.0),
        recorder: Recorder | None = None,
        side: int = 0,
    ) -> None:
        self.bound = bound
        self._goal = goal
        self._box = lower, upper
        self._recorder, self._side = recorder, side
        self._numbers = itertools.count()
        self._frontier: list[OpenBox] = []
        self._asked: list[tuple[OpenBox, BoxQuery]] = []  # open as well: nothing has been told of them yet
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
        """The certified lower bound; given up where the value found contradicts it."""
        least = min(self._settled, self._smallest()) if self._started else self._least
        if least <= self.upper:
            return least
        contradicted()
        return self._least

    @property
    def exhausted(self) -> bool:
        """Whether no open box is left, or none whose refinement could raise the lower bound."""
        return self._started and not self._smallest() < self._settled

    def _smallest(self) -> float:
        """The smallest bound of an open box."""
        first = self._frontier[0].bound if self._frontier else self._most
        return min([first, *(box.bound for box, _ in self._asked)]) if self._asked else first

    def start(
        self,
        enough: float = -np.inf,
        point: Float | None = None,
        negligible: float = 0.0,
        worth: float = 0.0,
    ) -> None:
        """Find a first point; the whole region becomes one open box with the trivial bound.

        A point where the bound's objective is below `enough`, or P below `negligible`, ends the local search,
        and so do gains below `worth`; with a `point` (d,) of the region given there is none.
        """
        point = descend(self.bound, *self._box, enough, negligible, worth) if point is None else point
        self.offer(point)
        whole = OpenBox(self._least, next(self._numbers), *self._box, point)
        if self._recorder is not None:
            self._recorder.opened(self._side, whole, None)
        if point.size:
            self._frontier = [whole]
        else:  # nothing moves: the region is one point
            self._settle(whole, max(self._least, self.bound.at(point)[0]), Why.POINT)
        self._started = True

    def ask(self, tolerance: float, most: float = np.inf) -> list[BoxQuery]:
        """The boxes with the smallest bounds, as many as the bound likes, at most `most`; what needs none is
        settled.

        What was asked before and never told of, is open again.
        """
        while self._asked:
            heapq.heappush(self._frontier, self._asked[-1][0])
            self._asked.pop()
        target = self._target(tolerance)
        for _ in range(int(min(self.bound.batch, len(self._frontier), max(most, 1)))):
            box = self._frontier[0]
            if self._suffices(box.bound, tolerance):
                self._settle(box, box.bound, Why.ENOUGH)
            elif target <= self._least:
                self._settle(box, box.bound, Why.UNREACHABLE)
            else:
                self._asked.append((box, BoxQuery(box.lower, box.upper, box.reference, target)))
            heapq.heappop(self._frontier)
        return [query for _, query in self._asked]

    def tell(self, answers: Sequence[Certified], tolerance: float) -> None:
        """What was proved of the boxes asked about, in their order. Interrupted, nothing is lost."""
        for certified in answers:
            box, query = self._asked[0]
            self._take(box, query.target, certified, tolerance)
            self._asked.pop(0)  # last: an interrupt before leaves it open besides its parts
        self._coarsen()

    def _take(self, box: OpenBox, target: float, certified: Certified, tolerance: float) -> None:
        """Settle the box, or put its parts among the open ones."""
        self.nodes += 1
        bound = max(box.bound, certified.value)
        if self._suffices(bound, tolerance):
            return self._settle(box, bound, Why.ENOUGH)
        if bound < target:
            self.offer(self.bound.shape.project(certified.point))
            if self._suffices(bound, tolerance):
                return self._settle(box, bound, Why.ENOUGH)
        if certified.at_rounding:
            return self._settle(box, bound, Why.ROUNDING)
        if bound >= self.upper - 8.0 * self._blur and not self._goal < self._surely:
            return self._settle(box, bound, Why.RESOLVED)
        parts, elsewhere = self._parts(box, certified, bound)
        if not parts:
            return self._settle(box, bound, Why.INDIVISIBLE)
        self._settled = min(self._settled, elsewhere)
        for part in parts:
            if self._recorder is not None:
                self._recorder.opened(self._side, part, box.number)
            heapq.heappush(self._frontier, part)
        if self._recorder is not None:
            self._recorder.split(self._side, box, bound, elsewhere)
        return None

    def _target(self, tolerance: float) -> float:
        """What the bound of a box has to reach.

        A goal below the best value may be proved without knowing any value (`LabelBound`): there the
        enclosure at the witness, however wide, is no reason to stop.
        """
        if self._goal < self.upper:
            return min(self.upper - 0.999 * _PURSUED * tolerance, self._goal + _ABOVE)
        return self.upper - max(0.999 * tolerance, 4.0 * self._blur)

    def _suffices(self, bound: float, tolerance: float) -> bool:
        share = _PURSUED if self._goal < self.upper else 1.0
        return bound >= self.upper - share * tolerance or bound > self._goal

    def _settle(self, box: OpenBox, bound: float, why: Why) -> None:
        """Fold in a box that is about to leave the open ones; until it does, it counts twice."""
        self._settled = min(self._settled, bound)
        if self._recorder is not None:
            self._recorder.settled(self._side, box, bound, why)

    def offer(self, point: Float) -> None:
        """Keep the point (d,) of the region if the upper end of its enclosure is smaller."""
        lower, upper = self.bound.at(point)
        if upper < self.upper or self.witness is None:
            # The witness first: an interrupt between the two leaves a larger bound, which it attains too.
            self.witness, self._surely, self._blur = point, lower, upper - lower
            self.upper = min(self.upper, upper)  # in this order: NaN changes nothing
            if self._recorder is not None:
                self._recorder.attained(self._side, point, self.upper)

    def _parts(self, box: OpenBox, certified: Certified, bound: float) -> tuple[list[OpenBox], float]:
        """The pieces that the bound names, or two halves; and a bound of the rest of the box."""
        if certified.pieces is None:
            return self._split(box, certified.split, certified.point, bound), np.inf
        return [
            OpenBox(bound, next(self._numbers), low, high, np.clip(certified.point, low, high))
            for low, high in certified.pieces
        ], max(bound, certified.elsewhere)

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
        for box in self._frontier[keep:]:
            self._settle(box, box.bound, Why.MEMORY)
        self._frontier = self._frontier[:keep]  # sorted lists are heaps
        self.coarsened = True

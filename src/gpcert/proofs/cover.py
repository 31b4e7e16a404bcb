"""From the tree of a search to a cover by leaves that a checker can repeat (docs/maths/proof.md, V6).

The tree is cut where the search had proved what is claimed of a whole box. Where the simple form of a leaf
proves less than the search did, the box is split further, as the search did or else across its widest side;
where that does not pay, the leaf proves a lower level, and the claim is the lowest of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpcert.bounds.geometry.ball import BallDomain, BallShape
from gpcert.bounds.geometry.domain import BoxDomain, Domain, scaled_box
from gpcert.bounds.local.enclosures import mean_between
from gpcert.bounds.local.gaussian.slice import Slice
from gpcert.bounds.one.level import Left, LevelBound
from gpcert.clock import check
from gpcert.proofs.leaf import TENSOR, CheckedBall, Leaf, Outside, leaf_on
from gpcert.proofs.levels import Ends, Place, ProofLevel
from gpcert.proofs.record import Node
from gpcert.rounding import UNIT
from gpcert.validation import Float

#: Boxes of more features are not split further, nor are other references tried than the search's, but by a
#: patient export.
FEW = 16
#: Boxes of more features are dearer to halve than higher orders are to bound by themselves.
_MANY = 5
#: Retreats of the reference towards the middle of its box, tried in this order after the search's own.
_RETREATS = (0.0, 0.15, 0.4, 1.0)
#: Steps of the search for the level that a leaf can prove, the first one, and how finely it ends.
_STEPS, _STEP, _FINE = 14, 1e-10, 0.1
#: Below this level probabilities are beneath the doubles.
_LOWEST = -36.0
#: What lacks less, relative to the terms, lacks it by rounding: splitting does not help.
_ROUNDING = 1e-10
#: How far below the level that a mean clears, but for rounding, levels are tried; quadratures round more.
_BELOWS = (2e-16, 1e-15, 1e-14, 1e-12, 1e-9, 1e-6)
#: More than the rounding of kernels and their sums in S, relative to its terms; radii of balls have 30 bits:
#: this for each step, so many besides those of a sum over the centres.
_KERNELS, _RADII, _STEPS_MORE = 1e-13, 2.0**-28, 32
#: Leaves tried for one claim on boxes where none passes, at first and of a patient export.
TRIALS, MANY_TRIALS = 300, 10_000


class Envelope(NamedTuple):
    """A box on which every kernel is taken between its extremes (E4); None: nothing is proved of it. `ends`:
    of max(S, 0), where those count as well (V8').
    """

    level: ProofLevel | None
    ends: Ends | None = None

    def clears(self, mean: float) -> bool:
        assert self.level is not None
        found = None if self.ends is None else self.level.between(self.ends)
        return self.level.clears(mean) if found is None else mean >= found[0]

    @property
    def hints(self) -> dict[str, Any]:
        """What a checker is given."""
        assert self.level is not None
        found = None if self.ends is None else self.level.between(self.ends)
        return self.level.outright if found is None else found[1]


@dataclass(eq=False)
class BoxProver:
    """Of the probability that `bound` is about; `levels`: the level of a standard normal one."""

    bound: LevelBound
    levels: Callable[[float], ProofLevel]
    ball: tuple[Float, Float] | None  #: centre and half widths (d,) of a ball of norm inf
    left: int = TRIALS  #: leaves that may be tried; then a box is tried from one reference
    floor: ProofLevel | None = None  #: the lowest level that a box had to be content with
    patient: bool = False  #: whether boxes are split although that helps little

    def proof(self, node: Node, level: ProofLevel, anything: bool) -> Leaf | Envelope | None:
        """What proves the level on the box; `anything`: or the highest that can be proved."""
        mean = self._mean(node)
        if level.clears(mean):  # looked at first: that costs a tenth of one leaf, here and for a checker
            return Envelope(level)
        found = self._leaf(node, level)
        if found is not None and found[0].passes:
            return found[0]
        ends = self._ends(node)
        narrow = self._between(node, level, mean, ends)
        if narrow is not None and (isinstance(narrow, Envelope) or narrow[0].passes):
            return narrow if isinstance(narrow, Envelope) else narrow[0]
        if narrow is not None and (found is None or narrow[0].clear > found[0].clear):
            found = narrow
        clear = -math.inf if found is None else found[0].clear
        hopeless = (node.stuck(clear) and not self.patient) or clear > -_ROUNDING
        if not anything and not hopeless:
            return None
        outright = self._cleared(mean, level, ends)
        best = None if found is None else self._lowered(*found, outright.level)
        if best is not None and best.passes and (outright.level is None or outright.level.t <= best.level.t):
            return best
        return outright

    def outright(self, node: Node, level: ProofLevel) -> Envelope | None:
        """The level, or a higher one, by the mean alone: no expansion is needed."""
        mean = self._mean(node)
        best = self._cleared(mean, level) if level.clears(mean) else Envelope(None)
        return None if best.level is None or best.level.p < level.p else best

    def _mean(self, node: Node) -> float:
        """At most the mean anywhere in the box."""
        return mean_between(self.bound.slice, *self.bound.slice.extremes(node.lower, node.upper))[0]

    def _ends(self, node: Node) -> Ends:
        """V8': of max(S, 0) on the box, every kernel between its extremes; about as a checker finds them."""
        slice_, R, size = self.bound.slice, self.bound.slice.model.precision, self._size
        small, large = slice_.extremes(node.lower, node.upper)
        middle, half = 0.5 * (small + large), 0.5 * (large - small)
        r = R @ middle
        S, terms = slice_.model.variance - float(middle @ r), float(middle @ (size @ middle))
        spread = 2.0 * float(half @ np.abs(r)) + float(half @ (size @ half))
        rounded = 1.0 + _RADII * (len(R) + _STEPS_MORE)
        error = rounded * spread + 4.0 * UNIT * abs(S) + _KERNELS * terms
        return max(S - error, 0.0), max(S + error, 0.0)

    @cached_property
    def _size(self) -> Float:
        return np.abs(self.bound.slice.model.precision)

    def _between(
        self, node: Node, level: ProofLevel, mean: float, ends: Ends
    ) -> Envelope | tuple[Leaf, Place] | None:
        """The level by the mean alone, between these ends of max(S, 0)."""
        found = level.between(ends)
        if found is None or not np.isfinite(found[0]):
            return None
        if mean >= found[0]:
            return Envelope(level, ends)
        place = next(iter(self.places(node)), None)
        if place is None or isinstance(place.domain, Outside):
            return None
        return self._better(None, place._replace(ends=ends), level)

    def _cleared(self, mean: float, level: ProofLevel, ends: Ends | None = None) -> Envelope:
        """About the highest level that a lower bound of the mean proves outright."""
        best = Envelope(None)
        for known in (None, ends) if ends else (None,):
            t = level.cleared(mean, known) if np.isfinite(mean) else -np.inf
            if best.level is not None and not t > best.level.t:
                continue
            rooms = (room * (1.0 + abs(t)) for room in _BELOWS if t > _LOWEST)
            lower = (Envelope(self.levels(t - room), known) for room in rooms)
            best = next((each for each in lower if each.clears(mean)), best)
        return best

    def passing(self, node: Node, level: ProofLevel) -> Leaf | Envelope | None:
        """What proves the level on the box; None: nothing was found."""
        if level.clears(self._mean(node)):
            return Envelope(level)
        found = self._leaf(node, level)
        return found[0] if found is not None and found[0].passes else None

    def _leaf(self, node: Node, level: ProofLevel) -> tuple[Leaf, Place] | None:
        """The first leaf that passes, or the best; None where no expansion says anything."""
        best: tuple[Leaf, Place] | None = None
        before = self.left
        for place in self.places(node):
            best = self._better(best, place, level)
            if best is not None and (best[0].passes or self.left < 0):
                break
        if best is not None and best[1].sharp and _MANY < len(node.lower) <= TENSOR and not best[0].passes:
            best = self._better(best, best[1]._replace(sharp=2), level)
        if best is not None and best[0].passes:
            self.left = before
        return best

    def _better(
        self, best: tuple[Leaf, Place] | None, place: Place, level: ProofLevel
    ) -> tuple[Leaf, Place] | None:
        """With the leaf at a place, if that is better."""
        check()
        leaf = leaf_on(place, level)
        self.left -= 1
        return best if leaf is None or (best is not None and leaf.clear <= best[0].clear) else (leaf, place)

    def places(self, node: Node) -> Iterator[Place]:
        """The search's references and prices for planes, then others."""
        bound, seen = self.bound, set()
        plan = partial(_plan, partial(bound.planes, slack=lambda: math.inf), self.patient)
        places = bound.places(Left(node.lower, node.upper), node.reference, plan)
        for place in places:
            if place is None:
                yield self._outside(node)
                return
            reference, domain, sharp = place
            sharp = sharp and isinstance(bound.slice, Slice)  # other kernels have one price
            key = reference.tobytes(), sharp
            if key not in seen:
                seen.add(key)
                yield Place(bound.slice, self._exact(domain, reference), reference, sharp)

    def place(self, node: Node, reference: Float, sharp: int) -> Place | None:
        """Around this reference; None where the box misses the region."""
        bound = self.bound
        domain = bound.shape.domain(node.lower, node.upper, reference, bound.lengthscale)
        return (
            None if domain is None else Place(bound.slice, self._exact(domain, reference), reference, sharp)
        )

    def _exact(self, domain: Domain, reference: Float) -> Domain:
        """The set as a checker sees it: the ends of a ball of norm inf need not be doubles."""
        if isinstance(domain, BallDomain):
            return CheckedBall.of(domain)
        if self.ball is None:
            return domain
        (o, unit), l = self.ball, self.bound.lengthscale
        offset, half = (o - reference) / l, unit / l
        return BoxDomain(np.maximum(domain.low, offset - half), np.minimum(domain.high, offset + half))

    def _outside(self, node: Node) -> Place:
        """Of a box that misses the ball."""
        shape, middle = self.bound.shape, 0.5 * node.lower + 0.5 * node.upper
        assert isinstance(shape, BallShape)
        low, high = scaled_box(node.lower, node.upper, middle, self.bound.lengthscale)
        offset = (shape.centre - middle) / self.bound.lengthscale
        unit = shape.ball.radius * shape.scale / self.bound.lengthscale
        return Place(self.bound.slice, Outside(low, high, offset, unit, shape.ball.norm), middle, False)

    def _lowered(self, leaf: Leaf, place: Place, known: ProofLevel | None) -> Leaf:
        """A level that can be proved from the same reference: that of another box, or about the highest;
        where not even the known one is, the leaf as it is.
        """
        if known is not None and not ((least := leaf_on(place, known)) and least.passes):
            return leaf
        high, low, step = leaf, leaf, _STEP
        if self.floor is not None and self.floor.t < leaf.level.t:
            high = leaf_on(place, self.floor) or leaf
            if high.passes:
                return high
        for _ in range(_STEPS):
            if not low.passes:
                t, step = high.level.t - step, 16.0 * step
            else:  # regula falsi, a little lower
                share = min(max(high.clear / (high.clear - low.clear), 0.05), 0.95)
                t = high.level.t + share * (low.level.t - high.level.t) * 1.02
            check()
            found = leaf_on(place, self.levels(t)) if t > _LOWEST else None
            if found is None:
                break
            low, high = (found, high) if found.passes else (low, found)
            if low.passes and high.level.t - low.level.t < _FINE * (leaf.level.t - low.level.t):
                break
        if low.passes:
            self.floor = low.level
        return low


def _plan(
    planes: Callable[[float, int], Sequence[tuple[float, tuple[bool, ...]]]],
    patient: bool,
    size: float,
    d: int,
) -> list[tuple[float, bool]]:
    own = [(retreat, sharp) for retreat, prices in planes(size, d) for sharp in prices]
    cheap = [(own[0][0], False)] if own and d <= FEW else []
    more = _RETREATS if patient or d <= FEW else ()
    others = [(retreat, sharp) for retreat in more for sharp in (False, True)]
    return cheap + own + others


_Leaf = TypeVar("_Leaf")

#: Splits beyond those of the search, at first and of a patient export.
_SPLITS, _MANY_SPLITS = 64, 2048


class Cut(NamedTuple):
    """The box below `at` in coordinate `j` comes next, then the one above."""

    j: int
    at: float


class Cover(NamedTuple):
    """Nodes in preorder; every leaf proves at least the level t; -inf: one of them proves nothing."""

    nodes: list[Cut | Leaf | Envelope]
    t: float


def cover(prover: BoxProver, root: Node, level: ProofLevel) -> Cover:
    """The leaves that prove the level on the region, or as much as they can."""
    scale, patient = prover.bound.lengthscale, prover.patient

    def leaf(node: Node, anything: bool) -> Leaf | Envelope | None:
        return prover.proof(node, level, anything)

    nodes: list[Cut | Leaf | Envelope] = list(walk(root, level.p, scale, leaf, patient))
    return Cover(nodes, min(_proved(node) for node in nodes))


def walk(
    root: Node,
    enough: float,
    lengthscale: Float,
    leaf_of: Callable[[Node, bool], _Leaf | None],
    patient: bool,
) -> Iterator[Cut | _Leaf]:
    """Nodes in preorder; no recursion: trees may be deep.

    `leaf_of(node, anything)` makes a leaf where the search had proved `enough`; None: split it.
    """
    left, stack = _MANY_SPLITS if patient else _SPLITS, [root]
    while stack:
        check()
        node = stack.pop()
        halves = node.halves
        if not halves or node.bound >= enough:
            whole = len(node.lower) > FEW and not patient
            final = not halves and (left == 0 or whole or not _divisible(node, lengthscale))
            leaf = leaf_of(node, final)
            if leaf is not None:
                yield leaf
                continue
            left -= 0 if halves else 1
        split, parts = _split_of(node) if halves else _middle(node, lengthscale)
        yield split
        stack += parts[::-1]


def _proved(node: Cut | Leaf | Envelope) -> float:
    if isinstance(node, Cut):
        return np.inf
    failed = isinstance(node, Leaf) and not node.passes
    return -np.inf if node.level is None or failed else node.level.t


def _split_of(node: Node) -> tuple[Cut, list[Node]]:
    """The split that the search made: in one coordinate the upper end of one part is the other's lower."""
    first, second = node.parts
    j = int(np.flatnonzero(first.upper != node.upper)[0])
    return Cut(j, float(first.upper[j])), [first, second]


def _divisible(node: Node, lengthscale: Float) -> bool:
    """Whether there is a double strictly inside the widest side."""
    j = int(np.argmax((node.upper - node.lower) / lengthscale))
    return bool(node.lower[j] < 0.5 * node.lower[j] + 0.5 * node.upper[j] < node.upper[j])


def _middle(node: Node, lengthscale: Float) -> tuple[Cut, list[Node]]:
    """Two halves across the widest side."""
    j = int(np.argmax((node.upper - node.lower) / lengthscale))
    at = float(0.5 * node.lower[j] + 0.5 * node.upper[j])
    left, right = node.upper.copy(), node.lower.copy()
    left[j] = right[j] = at
    ends = (node.lower, left), (right, node.upper)
    return Cut(j, at), [
        Node(low, high, np.clip(node.reference, low, high), short=node.short, generation=node.generation + 1)
        for low, high in ends
    ]

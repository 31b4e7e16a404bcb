"""Bounds over balls of norm 0: supports that a target leaves open become the next boxes (Z4, Z5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gpcert.bounds.geometry.sparse import SparseShape
from gpcert.bounds.interface import BoxBound, Certified, OneByOne
from gpcert.bounds.one.level import LevelBound
from gpcert.validation import Float, Index, Mask

#: Up to this many supports are listed even if nothing is known of them.
_ALL = 40
#: With this share of the coordinates or less left, all their supports are bounded anew before any is listed.
_FEWER = 0.9


@dataclass(frozen=True, eq=False)
class SparseBound(OneByOne):
    """A `BoxBound` made of bounds on fewer features: those of a box that do not stand at the centre."""

    shape: SparseShape
    part: Callable[[SparseShape], BoxBound]  #: the bound on the moving features of a shape
    whole: BoxBound

    def at(self, x: Float) -> tuple[float, float]:
        return self.whole.at(x)

    def objective(self, x: Float) -> tuple[float, Float]:
        return self.whole.objective(x)

    def over(self, lower: Float, upper: Float, reference: Float, target: float) -> Certified:
        """See `BoxBound.over`; coordinates that stand at the centre are left out."""
        centre = self.shape.centre
        active = ~((lower == centre) & (upper == centre))
        if not active.any():
            return Certified(self.at(centre)[0], centre, 0, True)
        moving = self.shape.moving.copy()
        moving[moving] = active
        shape = SparseShape(self.shape.ball, moving, [], self.shape.capped)
        bound = self.part(shape)
        inner = bound.over(lower[active], upper[active], reference[active], target)
        point = centre.copy()
        point[active] = inner.point
        names = np.flatnonzero(active)
        result = Certified(inner.value, point, int(names[inner.split]), inner.at_rounding)
        if inner.value >= target:
            return result
        pieces, bottom = self._pieces(bound, shape, lower[active], upper[active], target)
        if pieces is None:
            boxes = tuple(_filled(box, lower, upper, active) for box in inner.pieces or ())
            # The box itself asks to go on with what `bound` has kept, but `bound` is made anew each time.
            if len(boxes) == 1 and _same(boxes[0], lower, upper):
                boxes = ()
            return result._replace(pieces=boxes or None, elsewhere=inner.elsewhere)
        if not pieces:  # each support was certified in one of the attempts
            return result._replace(value=max(result.value, bottom))
        boxes = tuple(_box(lower, upper, centre, names[~keep]) for keep in pieces)
        return result._replace(pieces=boxes, elsewhere=bottom, at_rounding=False)

    def _pieces(
        self, bound: BoxBound, shape: SparseShape, lower: Float, upper: Float, target: float
    ) -> tuple[list[Mask] | None, float]:
        """Masks (d,) of the coordinates that move in each next box, and a bound of P elsewhere."""
        forced, count = shape.count(lower, upper)
        open_ = ~forced
        if open_.sum() <= count:
            return None, 1.0
        answered = [domain.suspects for domain in shape.cut or () if domain.suspects.asked]
        elsewhere = 1.0
        supports: set[tuple[int, ...]] | None = None
        if isinstance(bound, LevelBound) and answered:
            elsewhere = min(target, bound.curves.level(target).p)
            for suspects in answered:
                open_ = open_ & suspects.coordinates
                if suspects.supports is not None:
                    known = suspects.supports
                    supports = known if supports is None else supports & known
        total = int(open_.sum())
        if supports is None and math.comb(total, min(count, total)) <= _ALL:
            supports = _choices(np.flatnonzero(open_), count)
        fewer = total < _FEWER * (~forced).sum()
        if supports is not None and (len(supports) <= _ALL or not fewer):
            pieces = []
            for support in sorted(supports):
                keep = forced.copy()
                keep[list(support)] = True
                pieces.append(keep)
            return pieces, elsewhere
        if fewer:
            return [open_ | forced], elsewhere
        return None, 1.0


def _choices(names: Index, count: int) -> set[tuple[int, ...]]:
    return set(combinations(names.tolist(), min(count, len(names))))


def _filled(box: tuple[Float, Float], lower: Float, upper: Float, active: Mask) -> tuple[Float, Float]:
    low, high = lower.copy(), upper.copy()
    low[active], high[active] = box
    return low, high


def _same(box: tuple[Float, Float], lower: Float, upper: Float) -> bool:
    return np.array_equal(box[0], lower) and np.array_equal(box[1], upper)


def _box(lower: Float, upper: Float, centre: Float, still: Index) -> tuple[Float, Float]:
    low, high = lower.copy(), upper.copy()
    low[still] = high[still] = centre[still]
    return low, high

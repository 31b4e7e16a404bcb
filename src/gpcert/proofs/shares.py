"""Ranges of a softmax: boxes small enough that an integral at the middle of each tells (V18).

What is proved is of first order in the boxes, so where a region is wide, or has many features, less is proved
than the search did.
"""

from __future__ import annotations

import heapq
import math
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.geometry.ball import BallDomain
from gpcert.clock import check
from gpcert.posterior import Posterior
from gpcert.proofs.anchors import near
from gpcert.proofs.cover import Split
from gpcert.proofs.document import reals, split_told
from gpcert.proofs.quadratic import CheckedBall
from gpcert.proofs.tree import Goal
from gpcert.proofs.two_classes import placed
from gpcert.regions import Ball, Region
from gpcert.validation import Float

#: Boxes of one claim at most.
_BOXES = 400
#: Terms of their integrals at most: some ten seconds of a checker.
_TERMS = 1e6
#: What probabilities of the predictor are right to: three latents, or independent ones, and others.
_RIGHT, _ROUGH = 1e-7, 3e-5


class _Box(NamedTuple):
    """At least `value` is proved there of P, or of 1 - P; `terms` are summed for that."""

    lower: Float
    upper: Float
    middle: Float | None  #: None: the region has no point there
    value: float
    terms: float


class Shares:
    """Proves bounds of P(label)."""

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        self._post, self._factory = post, factory
        self._slack = _RIGHT if post.n_classes == 3 or np.asarray(post.precision).ndim == 3 else _ROUGH

    def prove(self, goal: Goal, terms: float) -> tuple[float, Any, float]:
        """The bound that is proved, the goal's if possible, how, and what is left of the terms."""
        label, region, upper, value = goal[:4]
        all_terms, terms = terms, min(terms, _TERMS)
        _, moving = placed(self._factory.pair, label, region)
        box = region.box()
        cells = _Cells(self, region, moving, label, upper)
        if not moving.any():  # one point: the checker evaluates it
            value, cost = self.told_at(label, "<=" if upper else ">=", value, region.inner_box().lower)
            return (value if cost <= all_terms else float(upper)), None, all_terms - min(cost, all_terms)
        reach = 1.0 - value if upper else value
        tick, splits = count(), dict[int, tuple[Split, int, int]]()
        boxes = {0: cells.box(box.lower[moving], box.upper[moving])}
        heap = [(boxes[0].value, next(tick))]
        spent = boxes[0].terms
        while len(boxes) < _BOXES and heap[0][0] < reach:
            check()
            _, worst = heapq.heappop(heap)
            found = cells.halves(boxes[worst])
            spent += sum(each.terms for each in (found[1] if found else ()))
            if found is None or spent > terms:
                heapq.heappush(heap, (boxes[worst].value, worst))
                break
            children = next(tick), next(tick)
            splits[worst] = found[0], *children
            del boxes[worst]
            for number, each in zip(children, found[1], strict=True):
                boxes[number] = each
                heapq.heappush(heap, (each.value, number))
        least = heap[0][0]
        spent = sum(each.terms for each in boxes.values())
        if not (least > 0.0 and spent <= terms):
            return (1.0 if upper else 0.0), None, all_terms
        if least < reach:
            value = float(np.nextafter(1.0 - least, 2.0)) if upper else least
        return value, {"tree": list(_told(boxes, splits))}, all_terms - spent

    def told_at(self, label: int, sense: str, value: float, point: Float) -> tuple[float, float]:
        """P <= value, or >= value, at a point (D,), or a little less that a checker sees; and the terms that
        it needs; inf: it sees nothing.
        """
        here, sign = near(self._post, point, 0.0), 1.0 if sense == "<=" else -1.0
        if here is None:
            return value, math.inf
        for claimed in (value, value + sign * 3.0 * self._slack):
            gap = sign * (claimed - float(here.p[label])) - here.lost - self._slack
            cost = next((spent for error, spent in here.sums if gap > error), math.inf)
            if cost < math.inf:
                return min(max(claimed, 0.0), 1.0), cost
        return value, math.inf


class _Cells:
    """Boxes of one region, seen from their middles."""

    def __init__(self, shares: Shares, region: Region, moving: Any, label: int, upper: bool) -> None:
        self._post, self._slack = shares._post, shares._slack
        self._region, self._shape = region, shape_of(region, moving, capped=False)
        self._x, self._moving = region.inner_box().lower, moving
        self._label, self._upper = label, upper
        scale: Any = self._post.kernels[0].lengthscale  # type: ignore[attr-defined]
        self._scale = np.broadcast_to(scale, moving.shape)[moving]

    def box(self, lower: Float, upper: Float) -> _Box:
        """With what is proved there."""
        middle = 0.5 * lower + 0.5 * upper
        if self._misses(lower, upper):
            return _Box(lower, upper, None, math.inf, 0.0)
        domain = self._shape.domain(lower, upper, middle, self._scale)
        if isinstance(domain, BallDomain):
            domain = CheckedBall.of(domain)
        half = np.maximum(upper - middle, middle - lower) / self._scale
        square = float(half @ half) if domain is None else domain.norm(np.ones(len(middle))) ** 2
        x, far = self._x.copy(), np.zeros(len(self._x))
        x[self._moving], far[self._moving] = middle, half * (1.0 + 1e-9)
        around = near(self._post, x, square * (1.0 + 1e-9), far)
        if around is None:
            return _Box(lower, upper, middle, -math.inf, 0.0)
        p = float(around.p[self._label])
        sure = (1.0 - p if self._upper else p) - 0.5 * around.lost * (1.0 + 1e-9) - self._slack
        error, terms = next(((e, n) for e, n in around.sums if e < self._slack), (math.inf, 0))
        return _Box(lower, upper, middle, sure - error, terms)

    def _misses(self, lower: Float, upper: Float) -> bool:
        """Whether the region has no point in the box, not even that next to its centre."""
        ball = self._region
        if not isinstance(ball, Ball):
            return False
        scale = np.ones(len(ball.x)) if ball.scale is None else ball.scale
        x = ball.x[self._moving]
        step = np.abs(np.clip(x, lower, upper) - x) / scale[self._moving]
        return bool(np.linalg.norm(step, ball.norm) > ball.radius * (1.0 + 1e-9))

    def halves(self, box: _Box) -> tuple[Split, list[_Box]] | None:
        """Across the widest side; None where no double lies inside."""
        j = int(np.argmax((box.upper - box.lower) / self._scale))
        at = float(0.5 * box.lower[j] + 0.5 * box.upper[j])
        if not box.lower[j] < at < box.upper[j]:
            return None
        left, right = box.upper.copy(), box.lower.copy()
        left[j] = right[j] = at
        return Split(j, at), [self.box(box.lower, left), self.box(right, box.upper)]


def _told(boxes: dict[int, _Box], splits: dict[int, tuple[Split, int, int]]) -> Any:
    """Nodes in preorder."""
    stack = [0]
    while stack:
        number = stack.pop()
        if number in boxes:
            middle = boxes[number].middle
            yield {"outside": True} if middle is None else {"ref": reals(middle)}
        else:
            split, first, second = splits[number]
            yield split_told(split)
            stack += [second, first]

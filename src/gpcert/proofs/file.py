"""A proof file as it grows: regions, and claims about them, each with what a checker needs to repeat it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.clock import OutOfTime, now, remaining, until
from gpcert.likelihoods import OneVsRest, Softmax
from gpcert.posterior import Posterior
from gpcert.proofs.document import at, balance, document, everywhere, region_entry
from gpcert.proofs.one_vs_rest import SeveralClasses
from gpcert.proofs.record import Goal, Node, Subject, Tree
from gpcert.proofs.softmax import Labels
from gpcert.proofs.sparse import beyond, prove
from gpcert.proofs.two_classes import TwoClasses, placed
from gpcert.regions import Ball, Box, Region
from gpcert.validation import Float

#: Of the time that is left for a file, what one attempt at a claim may take.
_SHARE = 0.5
#: Of a label, of which nothing weaker can be claimed, what a patient attempt may take.
_LAST = 0.8
#: Where a radius itself is not proved, these shares of it are tried; then so often one between the largest
#: that is proved and the smallest that is not, unless they are as close as this.
_SHARES, _BETWEEN, _CLOSE = (0.995, 0.95, 0.8, 0.5, 0.2, 0.05, 0.01), 8, 0.002
#: How far weaker claims are that are tried where less is proved, the first that holds first of all: the
#: less, the coarser is their cover. Then, with patience, the number itself, or nearer and nearer ones.
_WEAKER, _NEARER = (0.004, 0.04, 0.2), (5e-4, 3e-5, 1e-6, 1e-9)


class ProofText:
    """Claims about one posterior, proved one by one.

    Labels are decided by P(label) against a threshold; of several classes by the margin against 0, the
    `threshold` of all methods then.
    """

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        self._post, self._factory = post, factory
        self._several = post.n_classes > 2
        kinds = {Softmax: Labels, OneVsRest: SeveralClasses}
        self._subject: Subject = kinds.get(type(post.likelihood), TwoClasses)(post, factory)
        self._regions: dict[str, int] = {}
        self._entries: list[Any] = []
        self.claims: list[Any] = []
        self.tried = self.cut = False  #: whether there was something to prove; whether time ended an attempt

    @staticmethod
    def sharing(others: int) -> AbstractContextManager[None]:
        """Inside, what is left of the time is shared with as many others."""
        return until(now() + remaining() / (others + 1))

    def text(self, model: str, row: str | None) -> str:
        """The whole file, for a model file with this SHA-256, about a row of this name."""
        features, classes = self._post.feature_names, self._post.classes
        names = {
            "row": row,
            "features": None if features is None else list(features),
            "classes": None if classes is None else [str(each) for each in classes.tolist()],
        }
        return document(model, names, self._subject.facts, self._entries, self.claims)

    def at_least(self, label: int, region: Region, value: float, start: Node | Float | None = None) -> float:
        """Claim P(label) >= value on the region, or as much as can be proved: that number."""
        return self._end(label, region, ">=", value, start)

    def at_most(self, label: int, region: Region, value: float, start: Node | Float | None = None) -> float:
        """Claim P(label) <= value on the region, or as little as can be proved: that number."""
        return self._end(label, region, "<=", value, start)

    def margin_at_least(self, label: int, region: Region, value: float, start: Node | None) -> float:
        """`at_least` of what decides the label."""
        return self._end(label, region, ">=", value, start, self._several)

    def above(self, label: int, region: Region, threshold: float, value: float, start: Node | None) -> float:
        """Claim that the label is decided by more than value >= threshold on the region, or by more than the
        threshold, or else nothing: -inf.
        """
        for level in dict.fromkeys((value, threshold)):
            flat = self._sharp(level)
            goal = Goal(label, region, False, level, start, flat, level == threshold)
            found, proof = self._within(goal) or (-np.inf, None)
            if found >= threshold:
                where = label, self._region(region)
                self.claims.append(everywhere(*where, ">", found, proof, self._quantity))
                return found
        return -np.inf

    def holds(self, label: int, region: Region, threshold: float, tree: Tree | None) -> bool:
        """Claim that the label holds on the region, if that can be proved."""
        start = None if tree is None else tree.roots.get(0)
        return self.above(label, region, threshold, threshold, start) >= threshold

    def largest(
        self,
        label: int,
        ball: Callable[[float], Region],
        radius: float,
        threshold: float,
        tree: Tree | None,
        fewer: Callable[[float], float],
    ) -> float:
        """Claim that the label holds on the ball of this radius, or of as large a one as can be proved: its
        radius; `fewer`: rounds what is tried.
        """
        if self.holds(label, ball(radius), threshold, tree):
            return radius
        flat, high, best = self._sharp(threshold), radius, (0.0, -np.inf, None)

        def tried(share: float, patient: bool) -> bool:
            nonlocal high, best
            each = fewer(share)
            if not best[0] < each < high:
                return False
            goal = Goal(label, ball(each), False, threshold, None, flat, True, patient)
            found = self._attempt(goal)
            if found is not None and found[0] >= threshold:
                best = each, *found
            else:
                high = each
            return best[0] > 0.0

        if any(tried(share * radius, patient=False) for share in _SHARES):
            for _ in range(_BETWEEN):
                if high - best[0] > _CLOSE * radius:
                    tried(0.5 * (best[0] + high), patient=True)
            where = label, self._region(ball(best[0]))
            self.claims.append(everywhere(*where, ">", best[1], best[2], self._quantity))
        return best[0]

    def point(self, label: int, region: Region, sense: str, value: float, point: Float) -> float:
        """Claim P(label) at a point of the region; the number that was claimed.

        Nothing is written of what holds of any probability: no precision tells 1 - e^-5000 from 1.
        """
        value = self._subject.seen_at(label, sense, value, point)
        least = self._subject.least
        value = max(value, least) if sense == "<=" else value if value > least else 0.0
        if value > 0.0 if sense == ">=" else value < 1.0:
            self._at(label, region, sense, value, point, "probability")
        return value

    def margin_at(self, label: int, region: Region, sense: str, value: float, point: Float) -> float:
        """Claim that what decides the label is at most (less than) a number at a point of the region; the
        number that was claimed, 1 if none: files say no more of a softmax there than who wins.
        """
        if not self._several:
            return self.point(label, region, sense, value, point)
        if not self._subject.loses_at(label, value, point):
            return 1.0
        self._at(label, region, sense, value, point, "margin")
        return value

    def _at(self, label: int, region: Region, sense: str, value: float, point: Float, quantity: str) -> None:
        self.claims.append(at(label, self._region(region), sense, value, point, quantity))

    def balance(
        self, label: int, terms: Sequence[tuple[int, str, Region]], lower: float, upper: float
    ) -> None:
        """Claim that a sum of extremes (sign, "max" or "min", region) lies between two numbers."""
        entry = [(sign, extreme, self._region(region)) for sign, extreme, region in terms]
        self.claims.append(balance(label, entry, lower, upper))

    def value(self, label: int, region: Region, point: Float) -> tuple[float, float]:
        """An enclosure of P(label) at a point (D,) of a region: no wider than a search of that has it."""
        still = np.zeros(len(point), dtype=bool)
        where = shape_of(Box(point, point), still), point, still
        here = self._factory.pair(label, *where)[0].at(np.empty(0))
        (bound, _), moving = placed(self._factory.pair, label, region)
        there = bound.at(point[moving])
        return max(here[0], there[0]), min(here[1], there[1])

    def _sharp(self, level: float) -> bool:
        """Whether a bound is sharp at a level of what decides the label (`Goal.flat`)."""
        return self._several or (level == 0.5 and self._subject.sharp)

    @property
    def _quantity(self) -> str:
        return "margin" if self._several else "probability"

    def _end(
        self,
        label: int,
        region: Region,
        sense: str,
        value: float,
        start: Node | Float | None,
        margin: bool = False,
    ) -> float:
        upper = sense == "<="
        trivial = 1.0 if upper else -1.0 if margin else 0.0
        if value == trivial:
            return value
        goal, sign = Goal(label, region, upper, value, start, margin), -1.0 if upper else 1.0
        found, proof = trivial, None

        def tried(less: float, *patience: bool) -> bool:
            """Whether a claim weaker by `less` is proved, or a better one."""
            nonlocal found, proof
            each = value - sign * less
            for patient in patience:
                if sign * found >= sign * each or sign * each <= sign * trivial:
                    break
                better = self._attempt(goal._replace(value=each, patient=patient))
                if better is not None and sign * better[0] > sign * found:
                    found, proof = better
            return sign * found >= sign * each

        line = _line(region)
        if not tried(0.0, *(False, True)[: 1 + line]):
            for less in _WEAKER:
                if tried(less, False, True):
                    break
            if line or not tried(0.0, True):
                for less in _NEARER:
                    if not tried(less, True):
                        break
        if found != trivial:
            quantity = self._quantity if margin else "probability"
            self.claims.append(everywhere(label, self._region(region), sense, found, proof, quantity))
        return found

    def _within(self, goal: Goal) -> tuple[float, Any] | None:
        """What is proved of a goal in shares of the time that is left, with patience where less than it is;
        None: there was not enough.
        """
        found = self._attempt(goal)
        if found is None or _reaches(goal, found[0]):
            return found
        longer = self._attempt(goal._replace(patient=True))
        better = longer is not None and (longer[0] < found[0] if goal.upper else longer[0] > found[0])
        return longer if better else found

    def _attempt(self, goal: Goal) -> tuple[float, Any] | None:
        """`_prove` in a share of the time that is left; None: that was not enough."""
        self.tried = True
        if beyond(goal.region) is not None:
            return (np.inf if goal.upper else -np.inf), None
        try:
            share = _LAST if goal.only and goal.patient else _SHARE
            with until(now() + share * remaining()):
                return self._prove(goal)
        except OutOfTime:
            self.cut = True
            return None

    def _prove(self, goal: Goal) -> tuple[float, Any]:
        """What is proved, and how: of a ball of norm 0 box by box."""
        if isinstance(goal.region, Ball) and goal.region.norm == 0:
            return prove(self._subject, self._post, goal, goal.region)
        return self._subject.prove(goal)

    def _region(self, region: Region) -> int:
        number = self._regions.setdefault(region.digest, len(self._entries))
        if number == len(self._entries):
            self._entries.append(region_entry(region))
        return number


def _line(region: Region) -> bool:
    """Whether one feature moves: boxes are halved quickly there, so patience costs little."""
    box = region.box()
    return int((box.lower < box.upper).sum()) == 1


def _reaches(goal: Goal, value: float) -> bool:
    return value <= goal.value if goal.upper else value >= goal.value

"""Classes of one-vs-rest compared at the same point (docs/maths/proof.md, V9')."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.several.one_vs_rest import OneVsRestBound
from gpcert.clock import check
from gpcert.proofs.boxes import BoxProver
from gpcert.proofs.classes import NOTHING, ClassAt, Total
from gpcert.proofs.document import class_told, programme_told, reals
from gpcert.proofs.leaf import CLEAR, expansion
from gpcert.proofs.levels import Level
from gpcert.proofs.links import AnyLevels, ProbitAt, variances
from gpcert.proofs.quadratic import Multipliers, Outside
from gpcert.proofs.tree import Node
from gpcert.regions import Region
from gpcert.validation import Float

#: Probabilities closer to 0 than this are bounded by 0.
_LEAST = 1e-12
#: References tried on a box, unless the first one lacks so much that no other will do: that of a wide box.
_PLACES, _HOPELESS = 6, -10.0


class Comparison(NamedTuple):
    """One inequality; two programmes where it is an order of two classes."""

    reference: Float
    total: int  #: of all classes
    classes: dict[int, ClassAt]
    programmes: tuple[Multipliers, ...]

    def told(self, region: Region) -> dict[str, Any]:
        """As a checker reads it."""
        order = len(self.programmes) == 2
        parts: list[Any] = [None] * self.total
        for c, one in self.classes.items():
            hints = one.expanded.plane.hints | ({} if order else one.level.growth(one.place)[1])
            parts[c] = class_told(one.level, hints, one.expanded.forms)
        told = [programme_told(each, region) for each in self.programmes]
        return {
            "ref": reals(self.reference),
            "classes": parts,
            "programmes": told if order else told[0],
        }


@dataclass(frozen=True, eq=False)
class JointProver:
    """Compares the classes of a one-vs-rest bound; `margin`: the label with each of the others."""

    bound: OneVsRestBound
    levels: list[AnyLevels]
    cube: tuple[Float, Float] | None
    margin: bool

    @property
    def label(self) -> int:
        """The class that the claim is about."""
        return self.bound.ratio.label

    def proof(self, node: Node, value: float) -> tuple[list[Comparison] | None, float]:
        """What proves P(label), or its margin, >= value (<= value of an upper bound) on the box, and about
        how much of that is proved by the best try, as a difference of probabilities.
        """
        rivals = [c for c in range(len(self.levels)) if c != self.label] if self.margin else [None]
        found, least = [], np.inf
        for rival in rivals:
            comparison, room = self._compared(node, value, rival)
            least = min(least, room)
            if comparison is None:
                return None, least
            found.append(comparison)
        return found, least

    def _compared(self, node: Node, value: float, rival: int | None) -> tuple[Comparison | None, float]:
        best = -np.inf
        for i, place in enumerate(self._prover(self.label, True).places(node)):
            check()
            if i == _PLACES or isinstance(place.domain, Outside) or (i and best < _HOPELESS):
                break
            for comparison, room in self._tried(node, place.reference, place.sharp, value, rival):
                best = max(best, room)
                if comparison is not None:
                    return comparison, room
        return None, best

    def _tried(
        self, node: Node, reference: Float, sharp: int, value: float, rival: int | None
    ) -> Iterator[tuple[Comparison | None, float]]:
        if rival is not None and value <= 0.0:
            yield self._ordered(node, reference, sharp, rival)
        yield self._summed(node, reference, sharp, value, rival)

    def _ordered(
        self, node: Node, reference: Float, sharp: int, rival: int
    ) -> tuple[Comparison | None, float]:
        """V9' (c): the label ahead of a rival."""
        pair = self._own(self.label, True), self._own(rival, False)
        t = 0.5 * (pair[0].objective(reference)[0] - pair[1].objective(reference)[0])
        signs = (self.label, True, t), (rival, False, -t)
        found = [self._at(node, reference, sharp, c, up, self.levels[c].at(z, False)) for c, up, z in signs]
        own, other = found
        if (
            own is None
            or other is None
            or not (isinstance(own.level, ProbitAt) and isinstance(other.level, ProbitAt))
        ):
            return None, -np.inf
        first, second = own.roots(own.level.noise), other.roots(other.level.noise)
        programmes = []
        for end in (first.least / second.most, first.most / second.least):
            total = Total(own, 0.0)
            total.add(own, 1.0, 0.0, NOTHING)
            total.add(other, end, 0.0, NOTHING)
            best = total.least()
            if best is None or best[1] < CLEAR:
                return None, -np.inf
            programmes.append(best[0])
        return Comparison(
            reference, len(self.levels), {self.label: own, rival: other}, tuple(programmes)
        ), 0.0

    def _summed(
        self, node: Node, reference: Float, sharp: int, value: float, rival: int | None
    ) -> tuple[Comparison | None, float]:
        """V9' (b): a sum of all classes."""
        w, p = self._weights(value, rival), np.empty(len(self.levels))
        classes: dict[int, ClassAt] = {}
        for c in np.flatnonzero(w).tolist():
            up = bool(w[c] > 0.0)
            bound = self._own(c, up)
            p[c] = bound.at(reference)[0]
            if not _LEAST < p[c] < 1.0:
                continue
            near, levels = variances(bound, node.lower, node.upper, reference), self.levels[c]
            level = levels.of(min(p[c], levels.most), False, False, near)
            one = self._at(node, reference, sharp, c, up, level)
            if one is None:
                return None, -np.inf
            classes[c] = one
        if not classes:
            return None, -np.inf
        first = classes[self.label if self.label in classes else min(classes)]
        total = Total(first, float(w[w < 0.0].sum()))
        for c, one in classes.items():
            amount, rate = abs(float(w[c])), one.rate
            total.constant += amount * one.level.p
            total.add(one, amount * rate.slope, amount, rate)
        best = total.least()
        if best is None:
            return None, -np.inf
        programme, clear = best
        together = max(float(np.where(w > 0.0, p, 1.0 - p)[w != 0.0].sum()), _LEAST)
        room = clear * total.size / together
        return (
            Comparison(reference, len(self.levels), classes, (programme,)) if clear >= CLEAR else None
        ), room

    def _weights(self, value: float, rival: int | None) -> Float:
        """The claim at a point is that the sum of these times the p_j is >= 0 (C,)."""
        w = np.full(len(self.levels), -value)
        w[self.label] += 1.0
        if rival is not None:
            w[rival] -= 1.0
        return -w if self.bound.ratio.sign < 0 else w

    def _at(self, node: Node, reference: Float, sharp: int, c: int, up: bool, level: Level) -> ClassAt | None:
        sure = not 0.0 < level.p < 1.0  # no double is near enough to such a level
        place = None if sure else self._prover(c, up).place(node, reference, sharp)
        found = None if place is None else expansion(place, level)
        return None if place is None or found is None else ClassAt(place, level, found)

    def _own(self, c: int, up: bool) -> RbfBound:
        bound = self.bound.classes[c][0 if up else 1]
        assert isinstance(bound, RbfBound)
        return bound

    def _prover(self, c: int, up: bool) -> BoxProver:
        return BoxProver(self._own(c, up), lambda t: self.levels[c].at(t, False), self.cube)

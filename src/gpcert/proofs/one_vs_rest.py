"""One-vs-rest: on every leaf each class's own p_j is bounded from the side that counts (V9)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.geometry.domain import Domain
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.several.joint import JointLabel
from gpcert.bounds.several.one_vs_rest import OneVsRestBound, smallest_point
from gpcert.bounds.several.shares import JointShare
from gpcert.clock import check
from gpcert.likelihoods import OneVsRest
from gpcert.posterior import Posterior
from gpcert.proofs.cover import MANY_TRIALS, TRIALS, BoxProver, Cut, Envelope, walk
from gpcert.proofs.document import class_entry, part_entry, programme_entry, real, reals, split_entry
from gpcert.proofs.facts import facts_of
from gpcert.proofs.five_erf import FiveErfAt
from gpcert.proofs.leaf import CLEAR, Leaf, LeafExpansion, Multipliers, Outside, expansion, multipliers
from gpcert.proofs.levels import LinkLevels, Place, ProofLevel, slope_at, variance_at
from gpcert.proofs.links import ProbitAt, levels_of, variances
from gpcert.proofs.record import Goal, Node, Subject
from gpcert.proofs.two_classes import complement_up, cube_of, placed, root_of
from gpcert.regions import Region
from gpcert.rounding import down
from gpcert.rounding import up as rounded_up
from gpcert.validation import Float

#: |sigma''| of the logistic is at most this; how E sigma' changes along a level's curve with the variance.
_STEEPEST = 1.0 / (6.0 * math.sqrt(3.0))
_CHANGE = 1.0 / 16.0 + 0.5 * _STEEPEST
#: |s''| and |s^(3)| of scikit-learn's formula are at most these.
_FIVE_ERF = 0.098, 0.126


class Rate(NamedTuple):
    """P >= level + slope f - (apart + spread |d|) |f| - curve f^2/2 on the cell."""

    slope: float
    apart: float
    spread: float
    curve: float


NOTHING = Rate(0.0, 0.0, 0.0, 0.0)


class RootRange(NamedTuple):
    """A = sqrt(c + max(S, 0)) at the reference; it lies in [least, most], and |A - here| <= change |d|."""

    here: float
    least: float
    most: float
    change: float


@dataclass(frozen=True, eq=False)
class ClassAt:
    """A plane of one class at a place: e^r f = value + f1.d + rho, |rho| <= d^T N d/2, |f| <= most; `least`:
    with the least that a checker may find of what rounding hides.
    """

    place: Place
    level: ProofLevel
    expanded: LeafExpansion
    least: bool = False

    @property
    def lengthscale(self) -> Float:
        return self.place.slice.lengthscale

    @cached_property
    def x(self) -> float:
        """sup |d|."""
        return self.expanded.plane.kernels.around.s

    @cached_property
    def rows(self) -> Float:
        """(d,): the orders from two on are at most half this form."""
        f2, H = self.expanded.plane.kernels.head[2], self.expanded.H
        return np.asarray(np.abs(f2).sum(axis=1) + np.abs(f2 - H).sum(axis=1) + self.expanded.rest)

    @cached_property
    def growth(self) -> float:
        """At least (e^r - 1)/r."""
        r = 0.5 * self.x * self.x
        return math.expm1(r) / r

    @cached_property
    def N(self) -> Float:
        plane = self.expanded.plane
        return self.rows + (abs(plane.kernels.constant) + plane.bend) * self.growth

    @cached_property
    def steep(self) -> float:
        return float(np.linalg.norm(self.expanded.plane.kernels.head[1]))

    @cached_property
    def along(self) -> float:
        """At least |f1.d|."""
        f1 = self.expanded.plane.kernels.head[1]
        return min(float(np.abs(f1) @ self.place.domain.reach), self.steep * self.x)

    @cached_property
    def value(self) -> float:
        kernels = self.expanded.plane.kernels
        return kernels.constant + kernels.still + kernels.head[0]

    @cached_property
    def most(self) -> float:
        return abs(self.value) + self.along + self.reach(self.N)

    @cached_property
    def known(self) -> ClassAt:
        """As a checker may find it, who knows the rest better."""
        return ClassAt(self.place, self.level, self.expanded.known, least=True)

    @cached_property
    def noise(self) -> float:
        """About how far rounding of S may move the plane."""
        return slope_at(self.place, self.expanded.plane) * self.level.noise_at(self.place)

    def reach(self, metric: Float) -> float:
        """sup d^T metric d/2."""
        return 0.5 * self.place.domain.norm(metric) ** 2

    def roots(self, c: float) -> RootRange:
        least, most, _ = self.level.variances(self.place)
        here = math.sqrt(c + max(variance_at(self.place), 0.0))
        change = self.level.change(self.place, self.least) / (here + math.sqrt(c + least))
        return RootRange(here, math.sqrt(c + least), math.sqrt(c + most), change)

    @cached_property
    def rate(self) -> Rate:
        level, slope = self.level, self.level.growth(self.place)[0]
        if isinstance(level, ProbitAt):
            roots = self.roots(level.noise)
            around = self.most / roots.least
            curve = _steepest(level.t - around, level.t + around) / roots.least**2
            return Rate(slope, 0.0, slope * roots.change / roots.least, curve)
        if isinstance(level, FiveErfAt):
            steep = level.psi(self.place).change(level.variances(self.place)[0])
            change = (_FIVE_ERF[0] * steep + 0.5 * _FIVE_ERF[1]) * level.change(self.place, self.least)
            return Rate(slope, 0.0, change, _FIVE_ERF[0])
        S, _, high = level.growth(self.place)[1]["rate"]
        change = level.change(self.place, self.least)
        convex = high + 0.5 * change * self.x + self.most <= 0.0
        return Rate(slope, 1e-14 * S, _CHANGE * change, 0.0 if convex else _STEEPEST)


def _steepest(low: float, high: float) -> float:
    """At least z density(z) everywhere in [low, high]; at least 0."""
    z = max(high if high <= 1.0 else low if low >= 1.0 else 1.0, 0.0)
    return z * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


class _Part(NamedTuple):
    """value + g.d + d^T H d/2."""

    value: float
    g: Float
    H: Float


class Total:
    """A sum of planes: e^r times it lies above constant e^r + value + g.d + d^T H d/2; units of `first`."""

    def __init__(self, first: ClassAt, constant: float) -> None:
        self._first, self.constant, self.size = first, constant, abs(constant)
        self._added: list[tuple[_Part, ClassAt, float, float, Rate]] = []

    def add(self, one: ClassAt, weight: float, paid: float, rate: Rate) -> None:
        """weight f, less `paid` times what the rate loses."""
        self.constant += weight * one.expanded.plane.kernels.constant
        self.size += weight * one.expanded.size
        self._added.append((self._part(one, weight, paid, rate), one, weight, paid, rate))

    def _part(self, one: ClassAt, weight: float, paid: float, rate: Rate) -> _Part:
        (kernels, bend, _, _), H, _, rest, _ = one.expanded
        M0, f1, _ = kernels.head
        ratio = self._first.lengthscale / one.lengthscale
        tilt = 1.0 / ratio**2 - 1.0
        far = one.reach(np.abs(tilt)) if tilt.any() else 0.0
        grow = math.expm1(far) / far if far > 0.0 else 1.0
        paid *= math.exp(far)
        still, v, x = kernels.still + M0, one.value, one.x
        wide = (grow - 1.0) * abs(still) + grow * (one.along + one.reach(one.rows))
        bent = rest + bend * math.exp(far) * one.growth
        square = rate.curve + (rate.spread / one.steep if one.steep > 0.0 else 0.0)
        rough = rate.spread * x + rate.curve * (abs(v) + one.along + 0.5 * one.reach(one.N))
        lost = rate.apart * one.most + rate.spread * x * abs(v) + 0.5 * rate.curve * v * v
        diagonal = weight * (still * tilt - np.abs(tilt) * wide - bent)
        diagonal -= paid * (rate.spread * one.steep + rough * one.N)
        form = weight * H - paid * square * np.outer(f1, f1) + np.diag(diagonal)
        g = ratio * f1 * (weight - paid * rate.curve * v)
        return _Part(weight * still - paid * lost, g, np.outer(ratio, ratio) * form)

    def least(self) -> tuple[Multipliers, float] | None:
        """Multipliers, and the bound that they give relative to the terms; None: nothing is known."""
        domain: Domain = self._first.place.domain
        parts = [part for part, *_ in self._added]
        base = sum((part.value for part in parts), self.constant)
        g, H = sum(part.g for part in parts), sum(part.H for part in parts)
        slope = min(self.constant, self.constant * self._first.growth)
        if not (np.isfinite([base, slope, self.size]).all() and np.isfinite(H).all() and self.size > 0.0):
            return None
        best = multipliers(
            domain, np.asarray(g), H + slope * np.eye(len(domain.low)), CLEAR * self.size - base
        )
        value = base + best.value
        if value > 0.0:
            value -= sum(self._drift(best.y, *each) + each[2] * each[1].noise for each in self._added)
        return (best, value / self.size) if best.finite else None

    def _drift(self, y: Float, part: _Part, one: ClassAt, weight: float, paid: float, rate: Rate) -> float:
        """What multipliers lose that fit a rest in which roundings are hidden: what a checker finds besides
        is not negative, but multipliers see its tangent at y.
        """
        known = self._part(one.known, weight, paid, NOTHING if rate is NOTHING else one.known.rate)
        H, domain = known.H - part.H, self._first.place.domain
        slope = known.g - part.g + H @ y
        gained = known.value - part.value - 0.5 * float(y @ H @ y)
        return max(0.0, -gained - float(np.minimum(slope * domain.low, slope * domain.high).sum()))


#: Probabilities closer to 0 than this are bounded by 0.
_LEAST = 1e-12
#: References tried on a box, unless the first one lacks so much that no other will do: that of a wide box.
_PLACES, _HOPELESS = 6, -10.0


class Inequality(NamedTuple):
    """One inequality; two programmes where it is an order of two classes."""

    reference: Float
    total: int  #: of all classes
    classes: dict[int, ClassAt]
    programmes: tuple[Multipliers, ...]

    def entry(self, region: Region) -> dict[str, Any]:
        order = len(self.programmes) == 2
        parts: list[Any] = [None] * self.total
        for c, one in self.classes.items():
            hints = one.expanded.plane.hints | ({} if order else one.level.growth(one.place)[1])
            parts[c] = class_entry(one.level, hints, one.expanded.forms)
        entry = [programme_entry(each, region) for each in self.programmes]
        return {
            "ref": reals(self.reference),
            "classes": parts,
            "programmes": entry if order else entry[0],
        }


@dataclass(frozen=True, eq=False)
class JointProver:
    """Compares the classes of a one-vs-rest bound; `margin`: the label with each of the others."""

    bound: OneVsRestBound
    levels: list[LinkLevels]
    cube: tuple[Float, Float] | None
    margin: bool

    @property
    def label(self) -> int:
        """The class that the claim is about."""
        return self.bound.ratio.label

    def proof(self, node: Node, value: float) -> tuple[list[Inequality] | None, float]:
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

    def _compared(self, node: Node, value: float, rival: int | None) -> tuple[Inequality | None, float]:
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
    ) -> Iterator[tuple[Inequality | None, float]]:
        if rival is not None and value <= 0.0:
            yield self._ordered(node, reference, sharp, rival)
        yield self._summed(node, reference, sharp, value, rival)

    def _ordered(
        self, node: Node, reference: Float, sharp: int, rival: int
    ) -> tuple[Inequality | None, float]:
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
        return Inequality(
            reference, len(self.levels), {self.label: own, rival: other}, tuple(programmes)
        ), 0.0

    def _summed(
        self, node: Node, reference: Float, sharp: int, value: float, rival: int | None
    ) -> tuple[Inequality | None, float]:
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
            Inequality(reference, len(self.levels), classes, (programme,)) if clear >= CLEAR else None
        ), room

    def _weights(self, value: float, rival: int | None) -> Float:
        """The claim at a point is that the sum of these times the p_j is >= 0 (C,)."""
        w = np.full(len(self.levels), -value)
        w[self.label] += 1.0
        if rival is not None:
            w[rival] -= 1.0
        return -w if self.bound.ratio.sign < 0 else w

    def _at(
        self, node: Node, reference: Float, sharp: int, c: int, up: bool, level: ProofLevel
    ) -> ClassAt | None:
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


#: Which share of the room between a box and what is claimed of it the classes may use up together.
_SHARE = 0.3


class _ClassLeaf(NamedTuple):
    """For each class what proves a bound of p_j; `value`: of the quantity that follows from them."""

    parts: list[Leaf | Envelope | None]
    rising: Float  #: whether p_j is bounded from below (C,)
    value: float


class _Joint(NamedTuple):
    """Comparisons of the classes that prove the claim with the number `own`; `value`: it, as the goal is."""

    comparisons: list[Inequality]
    own: float
    value: float


class SeveralClasses(Subject):
    """Proves claims about a one-vs-rest posterior."""

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        assert isinstance(post.likelihood, OneVsRest)
        link = post.likelihood.link
        facts = facts_of(post)
        self._factory, self.facts = factory, [fact.entry for fact in facts]
        pairs = zip(facts, post.kernels, strict=True)
        self._levels = [levels_of(link, fact, kernel.prior_variance) for fact, kernel in pairs]
        self.least = self._levels[0].least

    def prove(self, goal: Goal) -> tuple[float, Any]:
        """The bound of P(label), or of the margin where `flat`, that is proved, and how.

        Where less is of no use, the first leaf that proves less ends the work.
        """
        label, region, upper, value, start, flat, only, patient = goal
        make = self._factory.margin if flat else self._factory.pair
        made, moving = placed(make, label, region)
        bound = made if flat else made[int(upper)]
        bound = bound.apart if isinstance(bound, JointLabel | JointShare) else bound
        assert isinstance(bound, OneVsRestBound)
        root = root_of(bound, region, moving, start)
        if not root.lower.size:
            return value, None
        reach = _half_up(value) if flat else complement_up(value) if upper else value
        joint = JointProver(bound, self._levels, cube_of(region, moving), flat)
        covering = _ClassCover(bound, self._levels, reach, value, joint, patient)
        with np.errstate(all="ignore"):
            nodes: list[Cut | _ClassLeaf | _Joint] = []
            walked: Iterator[Cut | _ClassLeaf | _Joint]
            walked = walk(root, reach, covering.lengthscale, covering.leaf, patient)
            for node in walked:
                nodes.append(node)
                if only and not isinstance(node, Cut) and node.value < reach:
                    return -1.0, None
        least = min(node.value for node in nodes if not isinstance(node, Cut))
        if least < reach:
            value = down(2.0 * least - 1.0) if flat else complement_up(least) if upper else least
        return value, {"tree": [split_entry(n) if isinstance(n, Cut) else _entry(n, region) for n in nodes]}


class _ClassCover:
    """Leaves for a quantity that has to reach `goal`."""

    def __init__(
        self,
        bound: OneVsRestBound,
        levels: list[LinkLevels],
        goal: float,
        value: float,
        joint: JointProver,
        patient: bool,
    ) -> None:
        self._bound, self._levels, self._goal, self._value, self._joint = bound, levels, goal, value, joint
        self._left, self._patient = (MANY_TRIALS if patient else TRIALS) * len(levels), patient
        c = np.arange(len(levels))
        self._rising = (c == bound.ratio.label) == (bound.ratio.sign > 0)
        self._own = [pair[0 if up else 1] for pair, up in zip(bound.classes, self._rising, strict=True)]
        first = self._own[0]
        assert isinstance(first, RbfBound)
        self.lengthscale = first.lengthscale

    def leaf(self, node: Node, anything: bool) -> _ClassLeaf | _Joint | None:
        """The leaf of a box, or None if it proves too little."""
        found, room = self._joint.proof(node, self._value)
        if found is not None:
            return _Joint(found, self._value, np.inf)
        ends = np.array([own.at(node.reference) for own, _ in self._bound.classes])
        middle = 0.5 * (ends[:, 0] + ends[:, 1])
        room = max(0.0, self._bound.ratio.bounds(middle, middle)[0] - self._goal)
        slack = _SHARE * room * float(middle.sum()) / len(middle)
        low, high = np.zeros(len(middle)), np.ones(len(middle))
        parts: list[Leaf | Envelope | None] = []
        for j, up in enumerate(self._rising):
            part, p = self._part(j, node, slack)
            parts.append(part)
            if up:
                low[j] = p
            else:
                high[j] = complement_up(p)
        value = self._bound.ratio.bounds(low, high)[0]
        lacks = value - self._goal  # which is rounded outward
        final = anything or lacks >= 0.0 or (node.stuck(lacks) and not self._patient)
        return _ClassLeaf(parts, self._rising, value) if final else None

    def _part(self, j: int, node: Node, slack: float) -> tuple[Leaf | Envelope | None, float]:
        """What proves that p_j, or 1 - p_j, is at least a number about `slack` below the smallest found."""
        bound = self._own[j]
        assert isinstance(bound, RbfBound)
        start = smallest_point(bound, node.lower, node.upper, node.reference)
        target = bound.at(start)[0]
        target -= max(1e-3 * min(target, 1.0 - target), slack)
        if not 1e-12 < target < 1.0:
            return None, 0.0
        levels = self._levels[j]
        near = variances(bound, node.lower, node.upper, start)
        prover = BoxProver(bound, lambda t: levels.at(t, False, near), self._joint.cube, self._left)
        box = Node(node.lower, node.upper, start)
        level = levels.of(target, False, False, near)
        part = prover.outright(box, level) or prover.proof(box, level, True)
        self._left = prover.left
        if part is None or part.level is None or (isinstance(part, Leaf) and not part.passes):
            return None, 0.0
        return part, part.level.p


def _half_up(margin: float) -> float:
    """(1 + margin) / 2, rounded up."""
    return 0.5 if margin == 0.0 else rounded_up(0.5 + 0.5 * margin)


def _entry(leaf: _ClassLeaf | _Joint, region: Region) -> dict[str, Any]:
    if isinstance(leaf, _Joint):
        return {"joint": [each.entry(region) for each in leaf.comparisons], "value": real(leaf.own)}
    sides = ["lower" if up else "upper" for up in leaf.rising]
    entry = zip(sides, leaf.parts, strict=True)
    return {"classes": [None if part is None else {side: part_entry(part, region)} for side, part in entry]}

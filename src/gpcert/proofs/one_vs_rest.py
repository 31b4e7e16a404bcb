"""One-vs-rest: on every leaf each class's own p_j is bounded from the side that counts (V9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.bounds.several.joint import JointLabel
from gpcert.bounds.several.one_vs_rest import OneVsRestBound, smallest_point
from gpcert.bounds.several.shares import JointShare
from gpcert.likelihoods import OneVsRest
from gpcert.posterior import Posterior
from gpcert.proofs.boxes import MANY_TRIALS, TRIALS, BoxProver, Envelope
from gpcert.proofs.cover import Split, walk
from gpcert.proofs.document import part_told, real, split_told
from gpcert.proofs.facts import facts_of
from gpcert.proofs.joint import Comparison, JointProver
from gpcert.proofs.leaf import Leaf
from gpcert.proofs.links import AnyLevels, levels_of, variances
from gpcert.proofs.tree import Goal, Node
from gpcert.proofs.two_classes import complement_up, cube_of, placed, root_of
from gpcert.regions import Region
from gpcert.rounding import down
from gpcert.rounding import up as rounded_up
from gpcert.validation import Float

#: Which share of the room between a box and what is claimed of it the classes may use up together.
_SHARE = 0.3


class _Leaf(NamedTuple):
    """For each class what proves a bound of p_j; `value`: of the quantity that follows from them."""

    parts: list[Leaf | Envelope | None]
    rising: Float  #: whether p_j is bounded from below (C,)
    value: float


class _Joint(NamedTuple):
    """Comparisons of the classes that prove the claim with the number `own`; `value`: it, as the goal is."""

    comparisons: list[Comparison]
    own: float
    value: float


class SeveralClasses:
    """Proves claims about a one-vs-rest posterior."""

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        assert isinstance(post.likelihood, OneVsRest)
        link = post.likelihood.link
        facts = facts_of(post)
        self._factory, self.facts = factory, [fact.told for fact in facts]
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
        covering = _Covering(bound, self._levels, reach, value, joint, patient)
        with np.errstate(all="ignore"):
            nodes: list[Split | _Leaf | _Joint] = []
            walked: Iterator[Split | _Leaf | _Joint]
            walked = walk(root, reach, covering.lengthscale, covering.leaf, patient)
            for node in walked:
                nodes.append(node)
                if only and not isinstance(node, Split) and node.value < reach:
                    return -1.0, None
        least = min(node.value for node in nodes if not isinstance(node, Split))
        if least < reach:
            value = down(2.0 * least - 1.0) if flat else complement_up(least) if upper else least
        return value, {"tree": [split_told(n) if isinstance(n, Split) else _told(n, region) for n in nodes]}


class _Covering:
    """Leaves for a quantity that has to reach `goal`."""

    def __init__(
        self,
        bound: OneVsRestBound,
        levels: list[AnyLevels],
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

    def leaf(self, node: Node, anything: bool) -> _Leaf | _Joint | None:
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
        return _Leaf(parts, self._rising, value) if final else None

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


def _told(leaf: _Leaf | _Joint, region: Region) -> dict[str, Any]:
    if isinstance(leaf, _Joint):
        return {"joint": [each.told(region) for each in leaf.comparisons], "value": real(leaf.own)}
    sides = ["lower" if up else "upper" for up in leaf.rising]
    told = zip(sides, leaf.parts, strict=True)
    return {"classes": [None if part is None else {side: part_told(part, region)} for side, part in told]}

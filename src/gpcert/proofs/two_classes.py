"""Two classes: P(label) >= value by levels of the latent, P(label) <= value by the other class."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.interface import BoxBound
from gpcert.bounds.one.level import LevelBound
from gpcert.kernels import Kernel
from gpcert.likelihoods import BinaryLikelihood
from gpcert.posterior import Posterior
from gpcert.proofs.cover import MANY_TRIALS, TRIALS, BoxProver, cover
from gpcert.proofs.document import proof_entry
from gpcert.proofs.facts import facts_of
from gpcert.proofs.links import levels_of, variances
from gpcert.proofs.record import Goal, Node, Subject
from gpcert.regions import Ball, Region
from gpcert.validation import Float

#: Where all leaves share a level, covers are tried at so many, each what the one before could prove.
_ROUNDS = 3


class TwoClasses(Subject):
    """Proves claims about a posterior with one latent."""

    sharp = True

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        assert isinstance(post.likelihood, BinaryLikelihood)
        assert isinstance(post.kernel, Kernel)
        (fact,) = facts_of(post)
        self._factory, self.facts = factory, [fact.entry]
        self._levels = levels_of(post.likelihood, fact, post.kernel.prior_variance)
        self.least = self._levels.least

    def prove(self, goal: Goal) -> tuple[float, Any]:
        """The bound of P(label) that is proved, the goal's if possible, and how: less costs no more here."""
        label, region, upper, value, start, flat, _, patient = goal
        pair, moving = placed(self._factory.pair, label, region)
        bound = pair[int(upper)]
        assert isinstance(bound, LevelBound)
        root = root_of(bound, region, moving, start)
        if not root.lower.size:  # one point: the checker evaluates it
            return value, None
        levels = self._levels.other if (label == 1) == upper else self._levels
        if (1 - arb(value) if upper else arb(value)) <= levels.free:  # of any model with this link
            return value, None
        near = variances(bound, root.lower, root.upper, root.reference)
        level = levels.of(value, upper, flat, near)
        if level.p <= self.least:
            return 1.0 if upper else 0.0, None
        with np.errstate(all="ignore"):
            for _ in range(_ROUNDS):
                prover = BoxProver(
                    bound,
                    lambda t: levels.at(t, flat, near),
                    cube_of(region, moving),
                    MANY_TRIALS if patient else TRIALS,
                    patient=patient,
                )
                found = cover(prover, root, level)
                if found.t >= level.t:
                    return value, proof_entry(level, found.nodes, region)
                if found.t == -np.inf:
                    break
                level = levels.at(found.t, flat, near)
                value = complement_up(level.p) if upper else level.p
                if levels.mixed:
                    return value, proof_entry(level, found.nodes, region)
        return 1.0 if upper else 0.0, None


def placed(make: Any, label: int, region: Region) -> tuple[Any, Any]:
    """A bound of the factory on the moving features of a region, and which those are (D,)."""
    box = region.box()
    moving = box.lower < box.upper
    return make(label, shape_of(region, moving, capped=False), region.inner_box().lower, moving), moving


def cube_of(region: Region, moving: Any) -> tuple[Float, Float] | None:
    """Centre and half widths of a ball of norm inf on its moving features; None of other regions."""
    if not isinstance(region, Ball) or region.norm != np.inf:
        return None
    scale = np.ones(len(region.x)) if region.scale is None else region.scale
    return region.x[moving], (region.radius * scale)[moving]


def root_of(bound: BoxBound, region: Region, moving: Any, start: Node | Float | None) -> Node:
    """The whole region on its moving features: as a search began with it, or from a point (D,) of it."""
    if isinstance(start, Node):
        return start
    box = region.box()
    lower, upper = box.lower[moving], box.upper[moving]
    middle = bound.shape.middle(lower, upper) if start is None else start[moving]
    return Node(lower, upper, bound.shape.project(middle))


def complement_up(p: float) -> float:
    """1 - p, rounded up."""
    value = 1.0 - p
    return value if arb(1) - arb(p) <= arb(value) else float(np.nextafter(value, 2.0))

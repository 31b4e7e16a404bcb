"""Softmax: on every leaf the label beats each rival by means and shared covariances (V12), or by an integral
at a reference (V15).

With D = f_c - f_j and s_k = Cov(D, f_k - (f_c + f_j)/2) = k^T Q k, class c beats j where E D > 0 and
E D >= s_k for every other class k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.facts.model import Model
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.likelihoods import Logit, Softmax
from gpcert.posterior import Posterior
from gpcert.proofs.anchors import Near, near
from gpcert.proofs.boxes import MANY_TRIALS, TRIALS, BoxProver, Envelope
from gpcert.proofs.cover import Split, walk
from gpcert.proofs.document import part_told, reals, split_told
from gpcert.proofs.facts import Fact, facts_of
from gpcert.proofs.leaf import Leaf
from gpcert.proofs.levels import Ends, Level, Place, Plane
from gpcert.proofs.shares import Shares
from gpcert.proofs.tree import Goal, Node
from gpcert.proofs.two_classes import cube_of, placed, root_of
from gpcert.regions import Region
from gpcert.rounding import up
from gpcert.validation import Float

#: What decides at a point by more than this, relative to its terms, does so in balls.
_CLEAR = 1e-11
_Part = Leaf | Envelope
#: Terms of integrals of one file, of which the checker allows some more.
_TERMS = 9 * 10**8


@dataclass(frozen=True, eq=False)
class _Ahead(Level):
    """m_D - s_k > spare by a plane; by the mean alone whatever s_k ("crude"), or m_D > 0 ("mean")."""

    fact: Fact
    s2: float
    spare: float
    what: str
    t: float = 0.0

    @property
    def p(self) -> float:
        return 0.5

    @property
    def told(self) -> dict[str, Any]:
        return {}

    @property
    def height(self) -> float:
        return 0.0 if self.what == "mean" else self.fact.negative * self.s2 + self.spare

    def clears(self, mean: float) -> bool:
        return bool(mean > self.height * (1.0 + 1e-14))  # strictly: at 0 nobody wins

    def cleared(self, mean: float, ends: Ends | None = None) -> float:
        return 0.0

    def growth(self, place: Place) -> tuple[float, dict[str, Any]]:
        raise NotImplementedError("margins have no levels")

    def plane(self, place: Place) -> Plane:
        if self.what != "plane":
            return self.mean(place, self.height, {})
        return self.rising(place, (self.s2, -self.spare), 1.0, {})


class _Rival(NamedTuple):
    """Of one rival: the models with -Q for precision, one for each k, and what bounds them."""

    models: tuple[Model, ...]
    negative: float
    spare: float


class _Anchor(NamedTuple):
    """An integral there decides."""

    reference: Float


class _Leaf(NamedTuple):
    """What beats each rival; None: the label itself, or a rival that is not beaten."""

    parts: list[list[_Part] | _Anchor | None]
    proved: bool


class Labels:
    """Proves that a class is the most probable one, of a softmax with one Gaussian kernel."""

    least = 0.0

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        assert isinstance(post.likelihood, Softmax)
        self._post, self._factory = post, factory
        self.facts = [fact.told for fact in facts_of(post)]
        self._terms: float = _TERMS  # left for what is still to be claimed
        self._shares = Shares(post, factory)

    def prove(self, goal: Goal) -> tuple[float, Any]:
        """(0, how) if the margin of the label is proved to be positive, which is all that can be; else -1. Of
        P(label) the bound that is proved, and how.
        """
        label, region, upper, value, start, flat, _, patient = goal
        if not flat:
            *found, self._terms = self._shares.prove(goal, self._terms)
            return found[0], found[1]
        assert not upper  # the margin, from below
        if value != 0.0:
            return -1.0, None
        bound, moving = placed(self._factory.margin, label, region)
        root = root_of(bound, region, moving, start)
        x = region.inner_box().lower
        if not root.lower.size:
            return (0.0 if self.decided(label, 1, x) else -1.0), None
        with np.errstate(all="ignore"):
            covering = _Covering(self._post, label, region, moving, self._terms, patient)
            nodes: list[Split | _Leaf] = []
            for node in walk(root, up(0.5), covering.lengthscale, covering.leaf, patient):
                nodes.append(node)
                if isinstance(node, _Leaf) and not node.proved:
                    return -1.0, None
        self._terms = covering.terms
        return 0.0, {"tree": [split_told(n) if isinstance(n, Split) else _told(n, region) for n in nodes]}

    def told_at(self, label: int, sense: str, value: float, point: Float) -> float:
        """What a checker sees of P(label) <= (>=) a number at a point (D,): it, a little less, or nothing."""
        value, terms = self._shares.told_at(label, sense, value, point)
        if terms > self._terms:
            return 1.0 if sense == "<=" else 0.0
        self._terms -= terms
        return value

    def decided(self, label: int, sign: int, x: Float) -> bool:
        """Whether the label surely wins (sign 1) or loses at a point (D,)."""
        rivals = [j for j in range(self._post.n_classes) if j != label]
        still = np.zeros(len(x), dtype=int)[:0]
        with np.errstate(all="ignore"):
            unsure = [j for j in rivals if not _beats(_rival(self._post, label, j), sign, x, still)]
            if not unsure or (sign < 0 and len(unsure) < len(rivals)):
                return True
            here = near(self._post, x, 0.0)
        if here is None or here.most > self._terms:
            return False
        ahead = [here.cost(*((label, j) if sign > 0 else (j, label))) < math.inf for j in unsure]
        found = all(ahead) if sign > 0 else any(ahead)
        self._terms -= here.most if found else 0
        return found


def _beats(rival: _Rival, sign: int, x: Float, features: Any) -> bool:
    """Whether m_D exceeds 0 and every s_k at x (D,); sign -1: the same of -m_D and -s_k."""
    for model in rival.models:
        slice_ = make_slice(model, x, features)
        k = slice_.values(np.empty(0))[0]
        gap = sign * (slice_.mean + float(slice_.weights @ k))
        shared = max(-sign * float(k @ model.precision @ k) + rival.spare, 0.0)
        size = float(np.abs(slice_.weights) @ k) + abs(slice_.mean) + float(k @ np.abs(model.precision) @ k)
        if not gap - shared > _CLEAR * size:
            return False
    return True


@lru_cache(maxsize=64)
def _rival(post: Posterior, c: int, j: int) -> _Rival:
    """D = f_c - f_j."""
    whole, facts, s2 = class_model_of(post), facts_of(post), post.kernels[0].prior_variance
    C, R = post.n_classes, np.asarray(post.precision)
    base = replace(
        whole.functional(np.zeros(C), np.zeros((C, C))),
        weights=whole.weights[:, c] - whole.weights[:, j],
        mean=float(whole.mean[c] - whole.mean[j]),
    )
    if R.ndim == 3:
        shared = [0.5 * (R[c] - R[j])]
        lifts = facts[c].lift, facts[j].lift
        few = 0.5 * (1.0 + max(facts[c].negative + lifts[1] / s2, facts[j].negative + lifts[0] / s2))
        spare = 0.5 * max(lifts)
    else:
        others = [k for k in range(C) if k not in (c, j)]
        crossed = [0.5 * (R[c, k] + R[k, c] - R[j, k] - R[k, j]) for k in others]
        shared = [0.5 * (R[c, c] - R[j, j]) - each for each in crossed]
        few, spare = 0.5 * np.sqrt(3.0) * (1.0 + facts[0].negative), 0.0
    models = tuple(replace(base, precision=-Q) for Q in shared)
    return _Rival(models, few * (1.0 + 1e-12), spare * (1.0 + 1e-12))


class _Covering:
    """Leaves that show the label against every rival."""

    def __init__(
        self, post: Posterior, label: int, region: Region, moving: Any, terms: float, patient: bool
    ) -> None:
        self._rivals = {j: _rival(post, label, j) for j in range(post.n_classes) if j != label}
        self._count, self._cube, s2 = post.n_classes, cube_of(region, moving), post.kernels[0].prior_variance
        self._shape, self._x = shape_of(region, moving, capped=False), region.inner_box().lower
        self._moving, self._left, self.terms = moving, MANY_TRIALS if patient else TRIALS, terms
        self._post, self._label = post, label
        features = np.flatnonzero(moving)
        curves = curves_of(Logit())
        self._bounds = {
            j: [RbfBound(curves, self._shape, make_slice(model, self._x, features)) for model in rival.models]
            for j, rival in self._rivals.items()
        }
        self._levels = {
            (j, what): _Ahead(Fact(0.0, rival.negative, None), s2, rival.spare, what)
            for j, rival in self._rivals.items()
            for what in ("crude", "mean", "plane")
        }
        self.lengthscale = next(iter(self._bounds.values()))[0].lengthscale

    def leaf(self, node: Node, anything: bool) -> _Leaf | None:
        """What beats all rivals on the box; None: it should be split."""
        parts: list[list[_Part] | _Anchor | None] = [None] * self._count
        middle = 0.5 * node.lower + 0.5 * node.upper
        place, around = self._place(node, middle), None
        for j in sorted(self._rivals, key=lambda j: self._gap(j, node.reference)):
            # Of a box that misses the ball anything holds, whoever wins there.
            ordered = place is None or _beats(
                self._rivals[j], 1, self._point(node.reference), np.zeros(0, dtype=int)
            )
            parts[j] = self._parts(j, node) if ordered else None
            if parts[j] is not None:
                continue
            around = around or self._near(place, middle)
            if around is not None and (cost := around.cost(self._label, j)) <= self.terms:
                self.terms -= cost
                parts[j] = _Anchor(middle)
                continue
            here = None if around is None else around._replace(lost=0.0)
            integral = here is not None and here.cost(self._label, j) <= self.terms
            hopeless = self._left < 0 or not (ordered or integral)
            return _Leaf(parts, False) if anything or hopeless else None
        return _Leaf(parts, True)

    def _point(self, x: Float) -> Float:
        """(D,)"""
        whole = self._x.copy()
        whole[self._moving] = x
        return whole

    def _place(self, node: Node, middle: Float) -> Place | None:
        """The middle of the box, whatever the rival; None: the box misses the region."""
        j = next(iter(self._rivals))
        prover = BoxProver(self._bounds[j][0], lambda t: self._levels[j, "mean"], self._cube)
        return prover.place(node, middle, False)

    def _near(self, place: Place | None, middle: Float) -> Near | None:
        """Around it."""
        if place is None:
            return None
        square = place.domain.norm(np.ones(len(middle))) ** 2
        return near(self._post, self._point(middle), square * (1.0 + 1e-9))

    def _gap(self, j: int, x: Float) -> float:
        slice_ = self._bounds[j][0].slice
        return slice_.mean + float(slice_.weights @ slice_.values(x)[0])

    def _parts(self, j: int, node: Node) -> list[_Part] | None:
        """By the mean alone, or by m_D > 0 and a plane for each k."""
        bounds, crude = self._bounds[j], self._levels[j, "crude"]
        clear = self._gap(j, node.reference) > crude.height
        if clear and (alone := self._part(bounds[0], node, crude)) is not None:
            return [alone]
        found: list[_Part] = []
        for i, bound in enumerate([bounds[0], *bounds]):
            part = self._part(bound, node, self._levels[j, "plane" if i else "mean"])
            if part is None:
                return None
            found.append(part)
        return found

    def _part(self, bound: RbfBound, node: Node, level: Level) -> _Part | None:
        prover = BoxProver(bound, lambda t: level, self._cube, self._left)
        part = prover.passing(node, level)
        self._left = prover.left
        return part


def _told(leaf: _Leaf, region: Region) -> dict[str, Any]:
    return {"rivals": [_part_told(parts, region) for parts in leaf.parts]}


def _part_told(parts: list[_Part] | _Anchor | None, region: Region) -> Any:
    if isinstance(parts, _Anchor):
        return {"ref": reals(parts.reference)}
    return None if parts is None else [part_told(part, region) for part in parts]

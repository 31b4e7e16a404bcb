"""Softmax: on every leaf the label beats each rival by means and shared covariances (V12), or by an integral
at a reference (V15).

With D = f_c - f_j and s_k = Cov(D, f_k - (f_c + f_j)/2) = k^T Q k, class c beats j where E D > 0 and
E D >= s_k for every other class k.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.facts.model import Model
from gpcert.bounds.geometry.ball import BallDomain
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import RbfBound
from gpcert.clock import check
from gpcert.errors import InvalidInputError
from gpcert.kernels import Kernel
from gpcert.likelihoods import Logit, Softmax
from gpcert.posterior import Posterior
from gpcert.proofs.cover import MANY_TRIALS, TRIALS, BoxProver, Cut, Envelope, walk
from gpcert.proofs.document import part_entry, reals, split_entry
from gpcert.proofs.facts import Fact, facts_of
from gpcert.proofs.leaf import CheckedBall, Leaf
from gpcert.proofs.levels import Ends, Place, ProofLevel, ProofPlane
from gpcert.proofs.record import Goal, Node, Subject
from gpcert.proofs.two_classes import cube_of, placed, root_of
from gpcert.regions import Ball, Region
from gpcert.rounding import up
from gpcert.validation import Float

Pairs = npt.NDArray[np.int_]

#: The checker's: errors of about e^-x are tried, with sums of at most so many terms, in such a strip.
_EXPONENTS, _MOST_TERMS, _STRIP, _WIDEST = (8, 14, 22, 32), 1_000_000, 1.3, 1e4
#: What decides by more than this does so whatever the rounding here.
_CLEAR_SUM = 1e-6


class Near(NamedTuple):
    """Probabilities (C,) at a point; what a margin loses around it; for each sum that a checker may make,
    sharper and sharper ones, what it is off by, and the terms that it has spent then.
    """

    p: Float
    lost: float
    sums: tuple[tuple[float, int], ...]

    def cost(self, c: int, j: int) -> float:
        """Terms that a checker spends until it finds class c ahead of j, all around; inf: it does not."""
        gap = float(self.p[c] - self.p[j]) - self.lost - _CLEAR_SUM
        return next((terms for error, terms in self.sums if gap > 2.0 * error), math.inf)

    @property
    def most(self) -> int:
        """Terms that it spends, whomever it compares."""
        return self.sums[-1][1]


def near(post: Posterior, x: Float, square: float, far: Float | None = None) -> Near | None:
    """The latents where |d|^2 <= square and |d_j| <= far_j (D,) around x (D,); None where they have no
    probabilities.
    """
    try:
        p = post.probability(x[None])[0]
    except InvalidInputError:
        return None
    assert isinstance(post.kernel, Kernel)
    k, R, C = post.kernel(post.centres, x[None])[:, 0], np.asarray(post.precision), post.n_classes
    r = R @ k
    a, b = np.triu_indices(C, 1)
    s2 = post.kernels[0].prior_variance
    V = s2 * np.eye(C) - (np.diag(r @ k) if R.ndim == 3 else r @ k)
    slopes = _Slopes(post, x, k, square, far)
    here, least, most = _ends(post, V, r, a, b, slopes)
    whole = np.sqrt(_norms(post)[a, b] * s2)
    along = slopes.along(post.weights[:, a] - post.weights[:, b])
    apart = float(np.minimum(whole * math.sqrt(square), along + whole * square).max())
    lost = 0.5 * apart + 0.25 * (max(float((here - least).max()), 0.0) + max(float((most - here).max()), 0.0))
    beside = (C * post.n_centres) ** 2 // 20  # products, counted as a checker does
    return Near(p, lost, tuple(_sums(V, beside))) if np.isfinite(lost) else None


class _Slopes:
    """Gradients at x, on a set around it."""

    def __init__(self, post: Posterior, x: Float, k: Float, square: float, far: Float | None) -> None:
        lengthscale: Any = getattr(post.kernel, "lengthscale", 1.0)
        self.square, self._far = square, far
        self._slopes = k[:, None] * (post.centres - x) / lengthscale

    def along(self, weights: Float) -> Float:
        """At least |gradient . d| of sums of kernels with weights (n, m): (m,)."""
        if self._far is None:
            return np.full(weights.shape[1], np.inf)
        gradient = np.abs(self._slopes.T @ weights) * (self._far > 0.0)[:, None]
        steep = np.sqrt((gradient**2).sum(axis=0) * self.square)
        return np.asarray(np.minimum(self._far @ gradient, steep))


@lru_cache(maxsize=8)
def _norms(post: Posterior) -> Float:
    """Squared norms of the differences of mean functions (C, C)."""
    assert isinstance(post.kernel, Kernel)
    inner = post.weights.T @ post.kernel(post.centres) @ post.weights
    own = np.diagonal(inner)
    return np.maximum(own[:, None] + own[None, :] - 2.0 * inner, 0.0) + 1e-12 * float(np.abs(inner).max())


def _ends(
    post: Posterior, V: Float, r: Float, a: Pairs, b: Pairs, slopes: _Slopes
) -> tuple[Float, Float, Float]:
    """Variances of differences f_a - f_b at the point, and their ends around it; r = R k."""
    facts, s2 = facts_of(post), post.kernels[0].prior_variance
    own = np.diagonal(V)
    if np.asarray(post.precision).ndim == 3:
        lift, negative = np.array([fact.lift for fact in facts]), np.array([fact.negative for fact in facts])
        least, most = _moved(own, s2, lift, negative * s2, slopes, r.T)
        here = np.maximum(own, 0.0)
        return here[a] + here[b], least[a] + least[b], most[a] + most[b]
    here = own[a] + own[b] - 2.0 * V[a, b]
    both = (r[a, a] + r[b, b] - r[a, b] - r[b, a]).T
    return here, *_moved(here, 2.0 * s2, np.zeros(1), np.array(2.0 * s2 * facts[0].negative), slopes, both)


def _moved(
    here: Float, s2: float, lift: Float, negative: Float, slopes: _Slopes, r: Float
) -> tuple[Float, Float]:
    """V3', V15 (c): the ends of a variance on the set, by its gradient -2 r . dk or without."""
    square, wide = slopes.square, s2 + lift + negative
    root = 2.0 * np.sqrt(np.maximum(here + lift, 0.0) * wide)
    crude = root * math.sqrt(square) + wide * square
    change = np.minimum(crude, 2.0 * slopes.along(r) + (root + wide) * square)
    return np.maximum(here - change, 0.0), np.minimum(np.maximum(here + change, 0.0), s2 + negative)


def _sums(V: Float, spent: int) -> Iterator[tuple[float, int]]:
    """What each sum is off by, inf: a checker does not make it; and all terms spent up to it."""
    spreads = _spreads(V)
    for exponent in _EXPONENTS:
        terms, error = 1, 0.0
        for spread in spreads:
            strip = min(2.0 * _STRIP / max(spread, 1e-9), math.sqrt(2.0 * exponent))
            step = 6.283 * strip / (exponent + 0.5 * strip * strip)
            count = math.ceil(math.sqrt(2.0 * exponent) / step)
            terms *= 2 * count + 3
            error += 2.0 * math.exp(0.5 * strip * strip - 2.0 * math.pi * strip / step) / math.cos(_STRIP)
            error += math.erfc(count * step / math.sqrt(2.0))
        spent += min(terms, _MOST_TERMS)
        yield (1.5 * error if spreads and terms <= _MOST_TERMS else math.inf), spent


def _spreads(V: Float) -> list[float]:
    """How far apart the classes are along the axes of a factor; none: a checker makes no sum."""
    clipped = V.copy()
    np.fill_diagonal(clipped, np.maximum(np.diagonal(V), 0.0))
    contrasts = clipped[:-1, :-1] - clipped[-1:, :-1] - clipped[:-1, -1:] + clipped[-1, -1]
    shift = 1e-12 * float(np.trace(contrasts)) + 1e-100
    try:
        L = np.linalg.cholesky(contrasts + shift * np.eye(len(contrasts)))
    except np.linalg.LinAlgError:
        return []
    spreads = np.maximum(L.max(axis=0), 0.0) - np.minimum(L.min(axis=0), 0.0)
    return spreads.tolist() if spreads.max() < _WIDEST else []


#: Boxes of one claim at most.
_BOXES = 400
#: Terms of their integrals at most: some ten seconds of a checker.
_MOST_POINTS = 1e6
#: What probabilities of the predictor are right to: three latents, or independent ones, and others.
_RIGHT, _ROUGH = 1e-7, 3e-5


class _ShareBox(NamedTuple):
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
        all_terms, terms = terms, min(terms, _MOST_POINTS)
        _, moving = placed(self._factory.pair, label, region)
        box = region.box()
        cells = _ShareCells(self, region, moving, label, upper)
        if not moving.any():  # one point: the checker evaluates it
            value, cost = self.seen_at(label, "<=" if upper else ">=", value, region.inner_box().lower)
            return (value if cost <= all_terms else float(upper)), None, all_terms - min(cost, all_terms)
        reach = 1.0 - value if upper else value
        tick, splits = count(), dict[int, tuple[Cut, int, int]]()
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
        return value, {"tree": list(_share_entry(boxes, splits))}, all_terms - spent

    def seen_at(self, label: int, sense: str, value: float, point: Float) -> tuple[float, float]:
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


class _ShareCells:
    """Boxes of one region, seen from their middles."""

    def __init__(self, shares: Shares, region: Region, moving: Any, label: int, upper: bool) -> None:
        self._post, self._slack = shares._post, shares._slack
        self._region, self._shape = region, shape_of(region, moving, capped=False)
        self._x, self._moving = region.inner_box().lower, moving
        self._label, self._upper = label, upper
        scale: Any = self._post.kernels[0].lengthscale  # type: ignore[attr-defined]
        self._scale = np.broadcast_to(scale, moving.shape)[moving]

    def box(self, lower: Float, upper: Float) -> _ShareBox:
        middle = 0.5 * lower + 0.5 * upper
        if self._misses(lower, upper):
            return _ShareBox(lower, upper, None, math.inf, 0.0)
        domain = self._shape.domain(lower, upper, middle, self._scale)
        if isinstance(domain, BallDomain):
            domain = CheckedBall.of(domain)
        half = np.maximum(upper - middle, middle - lower) / self._scale
        square = float(half @ half) if domain is None else domain.norm(np.ones(len(middle))) ** 2
        x, far = self._x.copy(), np.zeros(len(self._x))
        x[self._moving], far[self._moving] = middle, half * (1.0 + 1e-9)
        around = near(self._post, x, square * (1.0 + 1e-9), far)
        if around is None:
            return _ShareBox(lower, upper, middle, -math.inf, 0.0)
        p = float(around.p[self._label])
        sure = (1.0 - p if self._upper else p) - 0.5 * around.lost * (1.0 + 1e-9) - self._slack
        error, terms = next(((e, n) for e, n in around.sums if e < self._slack), (math.inf, 0))
        return _ShareBox(lower, upper, middle, sure - error, terms)

    def _misses(self, lower: Float, upper: Float) -> bool:
        """Whether the region has no point in the box, not even that next to its centre."""
        ball = self._region
        if not isinstance(ball, Ball):
            return False
        scale = np.ones(len(ball.x)) if ball.scale is None else ball.scale
        x = ball.x[self._moving]
        step = np.abs(np.clip(x, lower, upper) - x) / scale[self._moving]
        return bool(np.linalg.norm(step, ball.norm) > ball.radius * (1.0 + 1e-9))

    def halves(self, box: _ShareBox) -> tuple[Cut, list[_ShareBox]] | None:
        """Across the widest side; None where no double lies inside."""
        j = int(np.argmax((box.upper - box.lower) / self._scale))
        at = float(0.5 * box.lower[j] + 0.5 * box.upper[j])
        if not box.lower[j] < at < box.upper[j]:
            return None
        left, right = box.upper.copy(), box.lower.copy()
        left[j] = right[j] = at
        return Cut(j, at), [self.box(box.lower, left), self.box(right, box.upper)]


def _share_entry(boxes: dict[int, _ShareBox], splits: dict[int, tuple[Cut, int, int]]) -> Any:
    stack = [0]
    while stack:
        number = stack.pop()
        if number in boxes:
            middle = boxes[number].middle
            yield {"outside": True} if middle is None else {"ref": reals(middle)}
        else:
            split, first, second = splits[number]
            yield split_entry(split)
            stack += [second, first]


#: What decides at a point by more than this, relative to its terms, does so in balls.
_CLEAR = 1e-11
_Part = Leaf | Envelope
#: Terms of integrals of one file, of which the checker allows some more.
_TERMS = 9 * 10**8


@dataclass(frozen=True, eq=False)
class _Ahead(ProofLevel):
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
    def entry(self) -> dict[str, Any]:
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

    def plane(self, place: Place) -> ProofPlane:
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


class _LabelLeaf(NamedTuple):
    """What beats each rival; None: the label itself, or a rival that is not beaten."""

    parts: list[list[_Part] | _Anchor | None]
    proved: bool


class Labels(Subject):
    """Proves that a class is the most probable one, of a softmax with one Gaussian kernel."""

    def __init__(self, post: Posterior, factory: BoundFactory) -> None:
        assert isinstance(post.likelihood, Softmax)
        self._post, self._factory = post, factory
        self.facts = [fact.entry for fact in facts_of(post)]
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
            covering = _LabelCover(self._post, label, region, moving, self._terms, patient)
            nodes: list[Cut | _LabelLeaf] = []
            for node in walk(root, up(0.5), covering.lengthscale, covering.leaf, patient):
                nodes.append(node)
                if isinstance(node, _LabelLeaf) and not node.proved:
                    return -1.0, None
        self._terms = covering.terms
        return 0.0, {"tree": [split_entry(n) if isinstance(n, Cut) else _entry(n, region) for n in nodes]}

    def seen_at(self, label: int, sense: str, value: float, point: Float) -> float:
        value, terms = self._shares.seen_at(label, sense, value, point)
        if terms > self._terms:
            return 1.0 if sense == "<=" else 0.0
        self._terms -= terms
        return value

    def loses_at(self, label: int, value: float, point: Float) -> bool:
        """Files say no more of a softmax than who wins."""
        return value == 0.0 and self.decided(label, -1, point)

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


class _LabelCover:
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

    def leaf(self, node: Node, anything: bool) -> _LabelLeaf | None:
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
            return _LabelLeaf(parts, False) if anything or hopeless else None
        return _LabelLeaf(parts, True)

    def _point(self, x: Float) -> Float:
        whole = self._x.copy()
        whole[self._moving] = x
        return whole

    def _place(self, node: Node, middle: Float) -> Place | None:
        """The middle of the box, whatever the rival; None: the box misses the region."""
        j = next(iter(self._rivals))
        prover = BoxProver(self._bounds[j][0], lambda t: self._levels[j, "mean"], self._cube)
        return prover.place(node, middle, False)

    def _near(self, place: Place | None, middle: Float) -> Near | None:
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

    def _part(self, bound: RbfBound, node: Node, level: ProofLevel) -> _Part | None:
        prover = BoxProver(bound, lambda t: level, self._cube, self._left)
        part = prover.passing(node, level)
        self._left = prover.left
        return part


def _entry(leaf: _LabelLeaf, region: Region) -> dict[str, Any]:
    return {"rivals": [_part_entry(parts, region) for parts in leaf.parts]}


def _part_entry(parts: list[_Part] | _Anchor | None, region: Region) -> Any:
    if isinstance(parts, _Anchor):
        return {"ref": reals(parts.reference)}
    return None if parts is None else [part_entry(part, region) for part in parts]

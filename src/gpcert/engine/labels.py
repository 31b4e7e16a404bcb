"""Does a class stay the most probable one on each row? Softmax with one kernel, by Theorem 4 and no integral
(docs/maths/batches.md, J16).

For every rival j and every other class k, E(f_c - f_j) and E(f_c - f_j) - s_k must be positive: a sum of
kernels, and a quadratic form in them, which lies above its tangent up to a multiple of 1 - phi(r).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.facts.classes import ClassModel, class_model_of
from gpcert.engine.apart import LOSES, WINS, knows_apart
from gpcert.engine.backend import Array, Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts, once, within_reach
from gpcert.engine.planes import Plane
from gpcert.engine.profiles import profile_of
from gpcert.engine.root import Settled, chunked, lowest, sums_of, values_of
from gpcert.engine.rows import Around, Rows
from gpcert.engine.values import Points, amplitudes, points
from gpcert.kernels import Kernel
from gpcert.likelihoods import Softmax
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT, gamma

#: At least the trace of the positive, and of the negative part of s_k as a functional: sqrt(3)/2.
_TRACE = 0.8661
#: Doubles that the blocks of a model may take.
_LARGEST = 2.0**25
#: Factorisations per row.
_TRIES = 2


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """The classes of a model, and the blocks of its precision, on a backend."""

    backend: Backend
    model: ClassModel

    @cached_property
    def weights(self) -> Array:
        """(n, C)."""
        return self.backend.array(np.ascontiguousarray(self.model.weights))

    @cached_property
    def mean(self) -> Array:
        """(C,)."""
        return self.backend.array(self.model.mean)

    @cached_property
    def blocks(self) -> Array:
        """(R_ce + R_ce^T) / 2 of the pairs (P, n, n)."""
        return self.backend.array(self.model.blocks)

    @cached_property
    def rows(self) -> Array:
        """F2 of the pairs (n, P)."""
        return self.backend.array(np.ascontiguousarray(self.model.rows.T))

    @cached_property
    def place(self) -> Array:
        """Where a pair of classes is among the blocks (C, C)."""
        found = np.zeros((self.model.classes, self.model.classes), dtype=np.int64)
        for at, (c, e) in enumerate(self.model.pairs):
            found[c, e] = found[e, c] = at
        return self.backend.indices(found)

    @property
    def correlated(self) -> bool:
        """Whether there are blocks of two classes."""
        return len(self.model.pairs) > self.model.classes


@dataclass(frozen=True, eq=False)
class _Gap:
    """The smallest difference of means between a row's label and another class; as `Objective`."""

    facts: Facts
    weights: Array  #: (n, C), float32
    mean: Array  #: (C,)
    labels: Array  #: (B,)
    standing: Array | None

    def __call__(self, x: Array, rows: Array, sign: Array) -> tuple[Array, Array]:
        facts, xp, s2 = self.facts, self.facts.backend.xp, self.facts.model.variance
        Z, half = facts.backend.single(facts.Z), facts.backend.single(facts.half)
        e = x @ Z.T - half - 0.5 * xp.sum(x * x, axis=1)[:, None]
        if self.standing is not None:
            e = e + self.standing[rows]
        k, steep = facts.profile.both(xp, xp.clip(e, None, 0.0))
        means = (s2 * k) @ self.weights + self.mean
        here, own = facts.backend.arange(len(x)), self.labels[rows]
        gaps = means[here, own][:, None] - means
        gaps[here, own] = gaps[here, own] * 0.0 + float("inf")
        rival = xp.argmin(gaps, axis=1)
        pull = steep * (s2 * (self.weights.T[own] - self.weights.T[rival]))
        return gaps[here, rival], pull @ Z - xp.sum(pull, axis=1)[:, None] * x


@once
def knows_labels(post: Posterior) -> bool:
    """Whether the engine has bounds for the labels of the model: one-vs-rest (J19), or softmax, one kernel
    that it knows, blocks that fit, and numbers far from the ends of the doubles (J1).
    """
    if knows_apart(post):
        return True
    if not (isinstance(post.likelihood, Softmax) and post.n_classes > 2 and isinstance(post.kernel, Kernel)):
        return False
    if profile_of(post.kernel) is None or post.precision.size > _LARGEST:
        return False
    model = class_model_of(post)
    known = np.isfinite(model.contraction) and np.isfinite(model.lift) and model.moderate
    return bool(known and within_reach(model.variance, model.mean, model.weights, model.blocks, model.rows))


_classes: WeakKeyDictionary[Facts, ClassFacts] = WeakKeyDictionary()


def classes_of(post: Posterior, facts: Facts) -> ClassFacts:
    """The classes on the features of the facts, kept as long as these."""
    if facts not in _classes:
        _classes[facts] = ClassFacts(facts.backend, class_model_of(post))
    return _classes[facts]


def kept_labels(facts: Facts, classes: ClassFacts, rows: Rows | Around) -> Settled:
    """Per row, whose `sign` is its label: lower > 1/2 where no other class overtakes it, of (1 + margin) / 2;
    the witness is where one comes nearest, upper < 1/2 where it is proved to overtake it there.
    """
    more = (len(classes.model.pairs) + 8.0) * len(classes.model.centres)
    return chunked(facts, rows, 1, lambda few: _kept(facts, classes, few), more)


def _kept(facts: Facts, classes: ClassFacts, rows: Rows) -> tuple[Array, ...]:
    backend, xp = facts.backend, facts.backend.xp
    around, labels = amplitudes(facts, rows.standing), backend.indices(rows.sign)
    standing = None if isinstance(around.value, float) else backend.single(around.exponent)
    mean = backend.single(classes.mean)
    witness = lowest(_Gap(facts, backend.single(classes.weights), mean, labels, standing), rows)
    middle = 0.5 * rows.lower + 0.5 * rows.upper if rows.centre is None else rows.centre
    middle = xp.minimum(xp.maximum(middle, rows.lower), rows.upper)
    alive = Labelled(classes, rows, points(facts, middle, around), middle, labels).kept()
    one = xp.zeros_like(rows.sign) + 1.0
    upper, left = one + 0.0, xp.nonzero(~alive)[0]
    if len(left):
        lost = _lost(classes, rows.take(left), points(facts, witness[left], around.take(left)), witness[left])
        upper[left] = xp.where(lost, one[left] * LOSES, one[left])
    return xp.where(alive, one * WINS, one * 0.0), upper, witness, one


def _lost(classes: ClassFacts, rows: Rows, at: Points, witness: Array) -> Array:
    """J22: where another class certainly beats the row's label at the witness (N,): that with the largest
    mean.
    """
    backend, xp = classes.backend, classes.backend.xp
    own, here = backend.indices(rows.sign), backend.arange(len(witness))
    means = at.k @ classes.weights + classes.mean
    means[here, own] = means[here, own] * 0.0 - float("inf")
    where = Rows(witness, witness, witness, witness, rows.standing, rows.sign)
    return Labelled(classes, where, at, witness, xp.argmax(means, axis=1)).beats(own)


@dataclass(frozen=True, eq=False)
class Labelled:
    """A batch of rows seen from their middles, with the labels (N,) that are to be kept."""

    classes: ClassFacts
    rows: Rows
    at: Points
    start: Array
    labels: Array

    def take(self, rows: Array) -> Labelled:
        """Some of them."""
        few = Labelled(
            self.classes, self.rows.take(rows), self.at.take(rows), self.start[rows], self.labels[rows]
        )
        few.__dict__["turned"] = self.turned[rows]
        return few

    @cached_property
    def turned(self) -> Array:
        """R_ce k of all pairs (N, P, n)."""
        xp = self.classes.backend.xp
        return xp.stack([self.at.k @ block for block in self.classes.blocks], axis=1)

    def kept(self) -> Array:
        """Of which rows the label is proved to win everywhere (N,)."""
        backend, C = self.classes.backend, self.classes.model.classes
        xp = backend.xp
        alive = self.labels >= 0
        # Rivals and others by their distance from the label, modulo C; first the means, which cost least.
        others = range(1, C) if self.classes.correlated else range(1, 3)
        asked: list[tuple[int, int | None]] = [(first, None) for first in range(1, C)]
        for first in range(1, C):
            near = [second for second in others if second != first]
            asked += [(first, second) for second in (near if self.classes.correlated else near[:1])]
        for first, second in asked:
            left = xp.nonzero(alive)[0]
            if not len(left):
                break
            few = self.take(left)
            j = (few.labels + first) % C
            alive[left] = few.positive(j, None if second is None else (few.labels + second) % C)
        return alive

    def positive(self, j: Array, k: Array | None) -> Array:
        """Whether E(f_c - f_j), less s_k and what clipping may add to it, is certainly positive (N,)."""
        where = boxes(self.at.facts, self.rows, self.start)
        return values_of(sums_of(self.at, where, self.plane(j, k)), _TRIES, False) > 0.0

    def beats(self, j: Array) -> Array:
        """Where the label is certainly more probable than class j (N,): for rows that are points."""
        C, where = self.classes.model.classes, boxes(self.at.facts, self.rows, self.start)
        sure = sums_of(self.at, where, self.plane(j, None)).order_two() > 0.0
        for step in range(1, C):
            k = (self.labels + step) % C
            sure = sure & ((k == j) | (sums_of(self.at, where, self.plane(j, k)).order_two() > 0.0))
        return sure

    def plane(self, j: Array, k: Array | None) -> Plane:
        """J16: a sum of kernels below that functional; k None: the difference of the means alone."""
        classes, model, xp = self.classes, self.classes.model, self.classes.backend.xp
        W, A, mean, own = classes.weights.T, self.at.amplitudes, classes.mean, self.labels
        gap, sizes = mean[own] - mean[j], A.sum(xp.abs(W[own]) + xp.abs(W[j]))
        lost = 16 * UNIT * (xp.abs(mean[own]) + xp.abs(mean[j]))
        zero, more = gap * 0.0, 1.0 + 1e-9
        if k is None:
            return Plane(W[own] - W[j], zero, gap, lost, zero, sizes * more, gamma(16) * sizes)
        r, form, parts, wrong, blur = self._explained(j, k)
        sizes = sizes + 2.0 * parts
        defect = 2.0 * _TRACE * model.defect * A.sum_squares(xp.zeros_like(r) + 1.0)
        lost = lost + 0.5 * model.lift + defect + blur + 16 * UNIT * xp.abs(form)
        bend = zero + _TRACE * (model.contraction_positive + model.contraction_negative) * model.variance
        blurred = 2.0 * wrong + gamma(16) * sizes
        return Plane(
            W[own] - W[j] + 2.0 * r, zero, gap - form, lost * 1.01, bend * more, sizes * more, blurred
        )

    def _explained(self, j: Array, k: Array) -> tuple[Array, ...]:
        """Q k (N, n) for s_k = -k^T Q k, k^T Q k, at least the sum of |Q's parts k| over the slice, and what
        rounding does to k(x)^T (Q k) anywhere on it and to k^T Q k (N,).
        """
        classes, at, xp = self.classes, self.at, self.classes.backend.xp
        here, own = classes.backend.arange(len(self.labels)), self.labels
        r, parts, wrong, blur = xp.zeros_like(at.k), 0.0, 0.0, 0.0
        relative = 1.02 * (at.unit + gamma(at.k.shape[1] + 72))
        for c, e, share in ((own, k, 1.0), (j, k, -1.0), (own, own, -0.5), (j, j, 0.5)):
            if abs(share) == 1.0 and not classes.correlated:
                continue
            pair = classes.place[c, e]
            turned, rows = self.turned[here, pair], classes.rows.T[pair]
            near = xp.sqrt(xp.sum(at.k * at.k * rows, axis=1))
            r = r + share * turned
            parts = parts + abs(share) * at.amplitudes.sum(xp.abs(turned))
            wrong = wrong + abs(share) * relative * near * xp.sqrt(at.amplitudes.sum_squares(rows))
            blur = blur + 2.0 * abs(share) * relative * near * near
        return r, xp.sum(at.k * r, axis=1), parts, wrong, blur

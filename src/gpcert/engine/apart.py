"""Does a class of one-vs-rest stay the most probable one on each row? Two-class bounds of every class, from
below for the label and from above for its rivals (docs/maths/batches.md, J19).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Array
from gpcert.engine.facts import Facts, facts_of, knows
from gpcert.engine.lines import probabilities
from gpcert.engine.root import Settled, chunked, lowest, smallest
from gpcert.engine.rows import Around, Rows
from gpcert.engine.search import Objective, objective
from gpcert.engine.values import amplitudes, points
from gpcert.likelihoods import OneVsRest
from gpcert.posterior import Posterior
from gpcert.rounding import down, up
from gpcert.validation import Float, Index, Mask

#: Stand for "the label wins by more than nothing", and loses: (1 + margin) / 2.
WINS, LOSES = up(0.5), down(0.5)
#: How sharp the bounds of probabilities are, first and for what that leaves.
_TOLERANCES = (0.1, 0.01)
#: Doubles that the facts of all classes may take.
_LARGEST = 2.0**27

_parts: WeakKeyDictionary[Posterior, tuple[Posterior, ...]] = WeakKeyDictionary()


def parts_of(post: Posterior) -> tuple[Posterior, ...]:
    """The two-class posteriors of one-vs-rest, kept as long as it: their facts are found once."""
    if post not in _parts:
        _parts[post] = post.one_vs_rest()
    return _parts[post]


def knows_apart(post: Posterior) -> bool:
    """Whether the engine has bounds for every class of a one-vs-rest model, and memory for all of them."""
    n, d = post.n_centres, post.n_features
    if not isinstance(post.likelihood, OneVsRest) or post.n_classes * n * (2.0 * n + d * d) > _LARGEST:
        return False
    return all(knows(part) for part in parts_of(post))


def kept_apart(parts: tuple[Posterior, ...], facts: Facts, rows: Rows | Around) -> Settled:
    """As `kept_labels`; `facts`: of the first class."""
    labels, C = rows.sign.astype(np.intp), len(parts)
    least, most = np.zeros(len(rows)), np.full((len(rows), C), np.inf)
    most[np.arange(len(rows)), labels] = -np.inf
    upper, witness = np.ones(len(rows)), np.zeros((len(rows), len(facts.features)))

    def bounded(c: int, which: Index, sign: float, tolerance: float) -> Settled:
        own = facts_of(parts[c], facts.features, facts.backend, facts.round)
        some = _some(rows, which, np.full(len(which), sign))
        return smallest(own, curves_of(parts[c].likelihood), some, tolerance)

    for turn, tolerance in enumerate(_TOLERANCES):
        alive = np.asarray(~_beats(least, most).all(axis=1) & (upper == 1.0))
        for c in range(C):
            which = np.flatnonzero(alive & (labels == c))
            if len(which):
                found = bounded(c, which, 1.0, tolerance)
                least[which] = np.maximum(least[which], found.lower)
                witness[which] = witness[which] if turn else found.witness
        for c in range(C):
            which = np.flatnonzero(alive & ~_beats(least, most)[:, c])
            if len(which):
                above = np.nextafter(1.0 - bounded(c, which, -1.0, tolerance).lower, 2.0)
                most[which, c] = np.minimum(most[which, c], above)
                alive[which] &= _beats(least, most)[which, c]
        left = np.flatnonzero(~_beats(least, most).all(axis=1))
        if not turn and len(left):  # counterexamples, before more is tried
            found = _overtaken(parts, facts, _some(rows, left, rows.sign[left]))
            upper[left], witness[left] = found.upper, found.witness
    kept = _beats(least, most).all(axis=1)
    return Settled(np.where(kept, WINS, 0.0), upper, witness, np.ones(len(rows)))


@dataclass(frozen=True, eq=False)
class _Lead:
    """How far the label leads its best rival, in standardised means; as `Objective`, in units of the first
    class.
    """

    aims: tuple[Objective, ...]
    labels: Array  #: (B,)

    @property
    def facts(self) -> Facts:
        return self.aims[0].facts

    def __call__(self, x: Array, rows: Array, sign: Array) -> tuple[Array, Array]:
        first, backend = self.facts, self.facts.backend
        xp, here, own = backend.xp, backend.arange(len(x)), self.labels[rows]
        values, slopes = [], []
        for aim in self.aims:  # each class has units of its own
            ratio = first.lengths / aim.facts.lengths
            shift = (first.origin - aim.facts.origin)[first.features]
            shift = backend.single(backend.array(shift) / aim.facts.lengths)
            value, slope = aim(x * backend.single(ratio) + shift, rows, sign * 0.0 + 1.0)
            values.append(value)
            slopes.append(slope * backend.single(ratio))
        z, steep = xp.stack(values, axis=1), xp.stack(slopes, axis=1)
        others = z + 0.0
        others[here, own] = others[here, own] * 0.0 - float("inf")
        rival = xp.argmax(others, axis=1)
        return z[here, own] - z[here, rival], steep[here, own] - steep[here, rival]


def _overtaken(parts: tuple[Posterior, ...], facts: Facts, rows: Rows | Around) -> Settled:
    """J22: points where a rival comes nearest to a row's label, its `sign`, and upper < 1/2 where it is more
    probable there.
    """
    backend, xp = facts.backend, facts.backend.xp
    classes = [facts_of(part, facts.features, backend, facts.round) for part in parts]
    curves = [curves_of(part.likelihood) for part in parts]

    def answer(few: Rows) -> tuple[Array, ...]:
        around = [amplitudes(each, few.standing) for each in classes]
        seen = list(zip(classes, around, curves, strict=True))
        labels, here = backend.indices(few.sign), backend.arange(len(few))
        witness = lowest(_Lead(tuple(objective(f, a, c.noise) for f, a, c in seen), labels), few)
        at = [points(each, witness, near) for each, near, _ in seen]
        ends = [probabilities(backend, c, x.mean(), x.variance) for c, x in zip(curves, at, strict=True)]
        low, high = (xp.stack([end[side] for end in ends], axis=1) for side in (0, 1))
        one = xp.zeros_like(few.sign) + 1.0
        lost = xp.max(low, axis=1) > high[here, labels]
        return one * 0.0, xp.where(lost, one * LOSES, one), witness, one

    return chunked(facts, rows, 1, answer, 8.0 * len(parts) * len(parts[0].weights))


def _beats(least: Float, most: Float) -> Mask:
    """Of which classes (N, C) the label is certainly more probable, or which it is."""
    return np.asarray(least[:, None] > most)


def _some(rows: Rows | Around, which: Index, side: Float) -> Rows | Around:
    """Some of the rows, with these for `sign`."""
    if isinstance(rows, Around):
        return replace(rows, x=rows.x[which], radius=rows.radius[which], sign=side)
    return replace(rows.take(which), sign=side)

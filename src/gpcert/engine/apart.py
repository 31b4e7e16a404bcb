"""Does a class of one-vs-rest stay the most probable one on each row? Two-class bounds of every class, from
below for the label and from above for its rivals (docs/maths-batches.md, J19).
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from gpcert.bounds import curves_of
from gpcert.engine.facts import Facts, facts_of, knows
from gpcert.engine.root import Settled, smallest
from gpcert.engine.rows import Around, Rows
from gpcert.likelihoods import OneVsRest
from gpcert.posterior import Posterior
from gpcert.rounding import up
from gpcert.validation import Float, Index, Mask

__all__ = ["WINS", "kept_apart", "knows_apart", "parts_of"]

#: Stands for "the label wins by more than nothing": (1 + margin) / 2.
WINS = up(0.5)
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
    """As `kept_labels`; `facts`: of the first class. The witness is where the label's own probability is
    smallest.
    """
    labels, C = rows.sign.astype(np.intp), len(parts)
    least, most = np.zeros(len(rows)), np.full((len(rows), C), np.inf)
    most[np.arange(len(rows)), labels] = -np.inf
    witness = np.empty((len(rows), len(facts.features)))

    def bounded(c: int, which: Index, sign: float, tolerance: float) -> Settled:
        own = facts_of(parts[c], facts.features, facts.backend, facts.round)
        return smallest(own, curves_of(parts[c].likelihood), _some(rows, which, sign), tolerance)

    for tolerance in _TOLERANCES:
        alive = np.asarray(~_beats(least, most).all(axis=1))
        for c in range(C):
            which = np.flatnonzero(alive & (labels == c))
            if len(which):
                found = bounded(c, which, 1.0, tolerance)
                least[which], witness[which] = np.maximum(least[which], found.lower), found.witness
        for c in range(C):
            which = np.flatnonzero(alive & ~_beats(least, most)[:, c])
            if len(which):
                above = np.nextafter(1.0 - bounded(c, which, -1.0, tolerance).lower, 2.0)
                most[which, c] = np.minimum(most[which, c], above)
                alive[which] &= _beats(least, most)[which, c]
    kept = _beats(least, most).all(axis=1)
    return Settled(np.where(kept, WINS, 0.0), np.ones(len(rows)), witness, np.ones(len(rows)))


def _beats(least: Float, most: Float) -> Mask:
    """Of which classes (N, C) the label is certainly more probable, or which it is."""
    return np.asarray(least[:, None] > most)


def _some(rows: Rows | Around, which: Index, sign: float) -> Rows | Around:
    """Some of the rows, for a class (1) or its rest (-1)."""
    side = np.full(len(which), sign)
    if isinstance(rows, Around):
        return replace(rows, x=rows.x[which], radius=rows.radius[which], sign=side)
    return replace(rows.take(which), sign=side)

"""Later passes for what one plane leaves: order three as a form, and with few features halves of boxes, each
bounded as a row of its own (docs/maths/batches.md, J10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.engine.backend import Array
from gpcert.engine.facts import FEW, Facts
from gpcert.engine.rows import Rows, consistent
from gpcert.engine.values import amplitudes, points

#: Bounds of rows: (lower, upper, witness, nodes). From given points (N, d) if there are any, and no sharper
#: than some numbers above the minimum (N,) ask: those of a larger box. Last: with order three as a form of so
#: many centres, if not 0.
Answer = Callable[[Rows, Array | None, Array | None, int], tuple[Array, ...]]
#: Of which rows a lower end is enough for an upper one.
Enough = Callable[[Array, Array], Array]

#: n n d up to which the products of J11 cost less than the search also on a CPU; of a mean, which fails at
#: little else, with the centres that carry all but a share of its weights, if these are but a share of all:
#: the search has n n products as well.
_CHEAP, _LIGHT, _FEWER = 4e6, 1e-3, 0.65


def passes(
    facts: Facts, rows: Rows, noise: float | None, answer: Answer, enough: Enough, splits: int
) -> tuple[Array, ...]:
    """What `answer` finds, again for what is left; a box is split at most so many times. `noise`: as for
    `Objective`.
    """
    xp = facts.backend.xp
    found = answer(rows, None, None, 0)
    left = xp.nonzero(~enough(found[0], found[1]))[0]
    if not (rows.is_box and facts.has_planes and len(left)):
        return found
    centres = _centres(facts, noise)
    if centres:
        sharp = answer(rows.take(left), found[2][left], None, centres)
        _join(xp, found, left, sharp[:3])
    elif len(facts.features) <= FEW and splits:
        known = tuple(column[left] for column in found)
        _join(xp, found, left, _in_halves(facts, rows.take(left), known, answer, enough, splits))
    return found


def _centres(facts: Facts, noise: float | None) -> int:
    """Of how many centres order three as a form is worth its n x n products: of all on a GPU or with little
    data, else, where the mean alone is asked about, of those with the weight; 0: of none.
    """
    n, d = len(facts.model.weights), len(facts.features)
    if d <= FEW:
        return 0
    if facts.backend.forms or n * n * d <= _CHEAP:
        return n
    sizes = np.sort(np.abs(facts.model.weights))[::-1]
    heavy = int(np.searchsorted(np.cumsum(sizes), (1.0 - _LIGHT) * float(sizes.sum()))) + 1
    return heavy if noise is None and heavy <= _FEWER * n else 0


def _join(xp: Any, found: tuple[Array, ...], rows: Array, more: tuple[Array, ...]) -> None:
    """What else is known of some rows: the better ends count, and boxes are added up."""
    lower, upper, witness, nodes = found
    lower[rows] = xp.maximum(lower[rows], more[0])
    better = more[1] < upper[rows]
    witness[rows] = xp.where(better[:, None], more[2], witness[rows])
    upper[rows] = xp.where(better, more[1], upper[rows])
    lower[rows] = consistent(xp, lower[rows], upper[rows])
    if len(more) > 3:
        nodes[rows] = nodes[rows] + more[3]


def _in_halves(
    facts: Facts, rows: Rows, known: tuple[Array, ...], answer: Answer, enough: Enough, splits: int
) -> tuple[Array, ...]:
    """J10: of the two halves of each box the lower minimum; one that alone is left is halved again."""
    backend, xp, count = facts.backend, facts.backend.xp, len(rows)
    halves = halved(facts, rows, known[2])
    least = backend.concat([known[1], known[1]])
    found = answer(halves, None, least, 0)
    least = xp.minimum(least, found[1])
    done = xp.reshape(enough(found[0], least), (2, count))
    left = xp.nonzero(xp.reshape(xp.stack([~done[0] & done[1], done[0] & ~done[1]]), (2 * count,)))[0]
    if splits > 1 and len(left):
        few = found[0][left], least[left], found[2][left], found[3][left]
        _join(xp, found, left, _in_halves(facts, halves.take(left), few, answer, enough, splits - 1))
    lower, upper, nodes = (xp.reshape(found[i], (2, count)) for i in (0, 1, 3))
    witness = xp.where((upper[0] <= upper[1])[:, None], found[2][:count], found[2][count:])
    return xp.minimum(lower[0], lower[1]), xp.minimum(upper[0], upper[1]), witness, nodes[0] + nodes[1]


def halved(facts: Facts, rows: Rows, witness: Array) -> Rows:
    """The lower halves of the boxes, then the upper ones: two boxes that cover each, cut inside the region
    across the feature of which most would be lost.
    """
    backend, xp = facts.backend, facts.backend.xp
    feature = xp.argmax(_losses(facts, rows, witness), axis=1)
    cut = feature[:, None] == backend.arange(rows.lower.shape[1])[None, :]
    middle = xp.minimum(xp.maximum(0.5 * rows.lower + 0.5 * rows.upper, rows.inner_lower), rows.inner_upper)
    below, above = xp.where(cut, middle, rows.upper), xp.where(cut, middle, rows.lower)
    inner_below, inner_above = (
        xp.where(cut, middle, rows.inner_upper),
        xp.where(cut, middle, rows.inner_lower),
    )
    twice = rows.each(lambda column: backend.concat([column, column]))
    return replace(
        twice,
        lower=backend.concat([rows.lower, above]),
        upper=backend.concat([below, rows.upper]),
        inner_lower=backend.concat([rows.inner_lower, inner_above]),
        inner_upper=backend.concat([inner_below, rows.inner_upper]),
    )


def _losses(facts: Facts, rows: Rows, witness: Array) -> Array:
    """About what a plane loses of the variance along each feature (N, d): only to choose by."""
    backend, xp = facts.backend, facts.backend.xp
    at = points(facts, witness, amplitudes(facts, rows.standing))
    _, Z, _, _, V, signs = facts.sketch
    k, y = backend.single(facts.sketch.seen(at.k)), backend.single(at.y)
    base = k @ V.T
    turns = [(k * Z[:, j]) @ V.T - y[:, j : j + 1] * base for j in range(Z.shape[1])]
    bends = xp.stack([xp.abs((turn * turn) @ signs) for turn in turns], axis=1)
    width = backend.single((rows.upper - rows.lower) / facts.lengths)
    return bends * width * width

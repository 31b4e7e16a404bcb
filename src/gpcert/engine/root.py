"""The root pass: a witness, its enclosure and one certified bound for every row, in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpcert.bounds.levels.curves import LevelCurves
from gpcert.clock import check
from gpcert.engine.backend import Array
from gpcert.engine.balls import placed
from gpcert.engine.boxes import Boxes, boxes
from gpcert.engine.facts import FEW, Facts
from gpcert.engine.later import passes
from gpcert.engine.lines import after_deficit, after_surplus, lines, probabilities
from gpcert.engine.planes import Plane, mean_plane, plane
from gpcert.engine.profiles import Gaussian
from gpcert.engine.quadratic import MATRICES
from gpcert.engine.radial import RadialSums
from gpcert.engine.rows import Around, Rows, consistent
from gpcert.engine.search import Guide, descend, in_balls, objective
from gpcert.engine.shells import bounded
from gpcert.engine.sums import Sums, seen_by_few
from gpcert.engine.values import Amplitudes, Points, amplitudes, points
from gpcert.validation import Float

#: References, and Cholesky factorisations of each: of the first two, and of one with order three as a form.
_TRIES, _SHARP = ((0, 2), (1, 4)), ((2, 2),)
#: Rows of a chunk, also with many centres: matrices of all centres are read once for each.
_CHUNK = 256


class Settled(NamedTuple):
    """Per row: lower <= min P <= upper, `witness` (N, d), a point of the region where `upper` holds, and how
    many boxes were bounded (0 or 1). Of two sides: those of P for all rows, then those of 1 - P.
    """

    lower: Float
    upper: Float
    witness: Float
    nodes: Float


def smallest(
    facts: Facts,
    curves: LevelCurves,
    rows: Rows | Around,
    tolerance: float,
    target: float | None = None,
    sides: int = 1,
    splits: int = 0,
) -> Settled:
    """The minimum of P over each box, as well as planes can tell; `target`: what the bound has to reach,
    else the tolerance below the witness's value. `sides=2`: also that of 1 - P. A box that is left is split
    at most so many times.
    """

    def answer(few: Rows, witness: Array | None, above: Array | None, sharp: int) -> tuple[Array, ...]:
        return _smallest(facts, curves, few, tolerance, target, witness, above, sharp)

    def enough(lower: Array, upper: Array) -> Array:
        if target is None:
            return lower >= upper - tolerance
        return (lower >= target) | (upper <= target)

    return chunked(facts, rows, sides, lambda few: passes(facts, few, curves.noise, answer, enough, splits))


def verdicts(facts: Facts, curves: LevelCurves, rows: Rows | Around, splits: int = 0) -> Settled:
    """The same for a symmetric link, sharp at 1/2 alone: the sign of the mean (D1)."""

    def answer(few: Rows, witness: Array | None, above: Array | None, sharp: int) -> tuple[Array, ...]:
        return _signs(facts, curves, few, witness, sharp)

    def enough(lower: Array, upper: Array) -> Array:
        return (lower > 0.5) | (upper < 0.5)

    return chunked(facts, rows, 1, lambda few: passes(facts, few, None, answer, enough, splits))


def attained(facts: Facts, curves: LevelCurves, rows: Rows | Around, noise: float | None) -> Settled:
    """The witnesses alone, with what P is at most there: counterexamples, and nothing from below. `noise`: as
    for the search (None: it looks at the mean).
    """

    def answer(few: Rows) -> tuple[Array, ...]:
        around = amplitudes(facts, few.standing)
        witness = _witnesses(facts, few, around, noise)
        at, mean = _at(facts, few, witness, around)
        upper = probabilities(facts.backend, curves, mean, at.variance)[1]
        return upper * 0.0, upper, witness, upper * 0.0

    return chunked(facts, rows, 1, answer)


def chunked(
    facts: Facts,
    rows: Rows | Around,
    sides: int,
    answer: Callable[[Rows], tuple[Array, ...]],
    doubles: float = 0.0,
) -> Settled:
    """In parts that fit into the memory, with so many more `doubles` a row; the other sides are made where
    the arrays are.
    """
    d, n, backend = len(facts.features), len(facts.model.weights), facts.backend
    parts = -(-len(rows) // max(backend.rows(8.0 * n + 64.0 * d + doubles, _CHUNK) // sides, 1))
    step = -(-len(rows) // max(parts, 1))  # as many in the last part as in the others
    shape = sides, len(rows)
    found = Settled(np.empty(shape), np.empty(shape), np.empty((*shape, d)), np.empty(shape))
    with np.errstate(all="ignore"):
        for start in range(0, len(rows), step):
            check()
            part = slice(start, start + step)
            few = rows.on(backend, part)
            columns = answer(few.both_sides(backend) if sides == 2 else few)
            for whole, column in zip(found, columns, strict=True):
                for side in range(sides):  # each is one piece of memory, which a device writes to directly
                    backend.store(column[side * len(few) : (side + 1) * len(few)], whole[side, part])
    return Settled(*(column.reshape(-1, *column.shape[2:]) for column in found))


def _witnesses(facts: Facts, rows: Rows, around: Amplitudes, noise: float | None) -> Array:
    return lowest(objective(facts, around, noise), rows)


def lowest(aim: Guide, rows: Rows) -> Array:
    """Raw points (N, d) of the regions where it seems smallest."""
    facts, xp = aim.facts, aim.facts.backend.xp
    if rows.axes is not None:
        ends = (rows.inner_lower - rows.centre) / rows.axes, (rows.inner_upper - rows.centre) / rows.axes
        units = in_balls(aim, facts.scaled(rows.centre), rows.axes / facts.lengths, *ends, rows.sign)
        return placed(xp, units, rows.centre, rows.axes, rows.inner_lower, rows.inner_upper)
    share = descend(aim, facts.scaled(rows.inner_lower), facts.scaled(rows.inner_upper), rows.sign)
    return inside(xp, rows, share)


def inside(xp: Any, rows: Rows, share: Array) -> Array:
    """Points (N, d) of boxes, raw units, for shares of them: exactly the ends for 0 and 1."""
    found = rows.inner_lower + share * (rows.inner_upper - rows.inner_lower)
    found = xp.where(share == 1.0, rows.inner_upper, xp.where(share == share, found, rows.inner_lower))
    return xp.minimum(xp.maximum(found, rows.inner_lower), rows.inner_upper)


def _at(facts: Facts, rows: Rows, witness: Array, around: Amplitudes) -> tuple[Points, tuple[Array, Array]]:
    """The points, and the mean of each row's class there."""
    at = points(facts, witness, around)
    low, high = at.mean()
    xp = facts.backend.xp
    return at, (xp.where(rows.sign > 0, low, -high), xp.where(rows.sign > 0, high, -low))


def _retreats(facts: Facts, size: Array, attempt: int) -> Array:
    """How far each reference retreats from the witness to the middle (N,); any is sound."""
    xp, zero = facts.backend.xp, size * 0.0
    if len(facts.features) <= FEW:
        small, large = ((0.0, 0.3), (0.15, 0.1))[attempt]
        return xp.where(size < 0.3, zero + small, zero + large)
    edges, (small, middle, large) = (
        ((0.33, 0.4), (0.33, 0.45), (0.33, 0.45))[attempt],
        ((0.0, 0.15, 0.27), (0.2, 0.3, 0.2), (0.1, 0.2, 0.2))[attempt],
    )
    return xp.where(size < edges[0], zero + small, xp.where(size < edges[1], zero + middle, zero + large))


def _references(
    facts: Facts, rows: Rows, witness: Array, around: Amplitudes, attempt: int, known: Points | None
) -> tuple[Array, Points]:
    """References (N, d), raw units, and what is known there."""
    xp = facts.backend.xp
    width = (rows.upper - rows.lower) / facts.lengths
    middle = 0.5 * rows.lower + 0.5 * rows.upper if rows.centre is None else rows.centre
    size = xp.sqrt(xp.sum(width * width, axis=1)) if rows.centre is None else xp.max(width, axis=1)
    retreat = _retreats(facts, size, attempt)[:, None]
    if known is not None and not bool(xp.any(retreat > 0)):
        return witness, known
    start = xp.minimum(xp.maximum(witness + retreat * (middle - witness), rows.lower), rows.upper)
    return start, points(facts, start, around)


def _smallest(
    facts: Facts,
    curves: LevelCurves,
    rows: Rows,
    tolerance: float,
    target: float | None,
    witness: Array | None = None,
    above: Array | None = None,
    sharp: int = 0,
) -> tuple[Array, ...]:
    backend, xp = facts.backend, facts.backend.xp
    around = amplitudes(facts, rows.standing)
    witness = _witnesses(facts, rows, around, curves.noise) if witness is None else witness
    at, mean = _at(facts, rows, witness, around)
    upper = probabilities(backend, curves, mean, at.variance)[1]
    least = upper if above is None else xp.minimum(upper, above)
    wanted = least - 0.999 * tolerance if target is None else upper * 0.0 + target
    enough = least - tolerance if target is None else wanted
    ask = (wanted > 0.0) & (wanted < upper) if facts.has_planes else upper < 0.0
    lower, nodes, todo = upper * 0.0, ask * 1.0, xp.nonzero(ask)[0]
    for attempt, tries in _SHARP if sharp else _TRIES:
        if not len(todo):
            break
        few, known = rows.take(todo), at.take(todo) if attempt == 0 else None
        start, here = _references(facts, few, witness[todo], around.take(todo), attempt, known)
        found = _planes(facts, curves, few, start, here, wanted[todo], tolerance, tries, sharp)
        lower[todo] = xp.maximum(lower[todo], found)
        todo = todo[~(lower[todo] >= enough[todo])]
    return consistent(xp, lower, upper), upper, witness, nodes


def _planes(
    facts: Facts,
    curves: LevelCurves,
    rows: Rows,
    start: Array,
    at: Points,
    goals: Array,
    tolerance: float,
    tries: int,
    sharp: int,
) -> Array:
    """Certified P (N,) by one plane per row: order two first, the Hessian where that does not suffice."""
    backend, xp = facts.backend, facts.backend.xp
    low, high = at.variance
    largest = at.amplitudes.largest_variance + low * 0.0
    line = lines(backend, curves, goals, 0.5 * (low + high), largest, tolerance)
    sums = sums_of(at, boxes(facts, rows, start), plane(at, rows.sign, line))
    values = values_of(sums, tries, sharp)
    lost = after_deficit(backend, curves, line, xp.where(values < 0, -values, values * 0.0))
    gained = after_surplus(backend, curves, line, sums.latent(values), largest)
    return _certain(xp, xp.where(values >= 0, gained, lost))


def _certain(xp: Any, bound: Array) -> Array:
    """0 for NaN."""
    return xp.where(bound > 0.0, bound, xp.zeros_like(bound))


def sums_of(at: Points, where: Boxes, plane: Plane, all_centres: bool = False) -> Sums | RadialSums:
    """By the kernel; `all_centres`: also where fewer stand for them."""
    if not isinstance(at.facts.profile, Gaussian):
        return RadialSums(at, where, plane)
    sums = Sums(at, where, plane)
    return sums if all_centres else seen_by_few(sums)


def values_of(sums: Sums | RadialSums, tries: int, sharp: int) -> Array:
    """Lower bounds of e^r f (N,), for other kernels of G f; NaN where nothing is known."""
    backend, xp = sums.at.facts.backend, sums.at.facts.backend.xp
    values = sums.order_two()
    if isinstance(sums, RadialSums) and sums.at.facts.profile.second == math.inf:
        return values
    left = xp.nonzero(~(values >= 0))[0]
    n, d = sums.plane.b.shape[1], sums.boxes.low.shape[1]
    # A form needs its products of centres, and these no longer when shells are bounded, three at once there.
    matrices = MATRICES[bool(sharp)] * d**2 * (3.0 if sharp and backend.forms else 1.0)
    step = backend.rows(max(matrices, 2.5 * sharp**2 + 3.0 * sharp * d) + bool(sharp) * 40.0 * n)
    for start in range(0, len(left), step):
        check()
        some = left[start : start + step]
        few = sums.take(some) if len(some) < len(values) else sums
        more = bounded(few, tries, sharp) if sharp and isinstance(few, Sums) else few.order_three(tries)
        values[some] = xp.where(more > values[some], more, values[some])
    return values


def _signs(
    facts: Facts, curves: LevelCurves, rows: Rows, witness: Array | None = None, sharp: int = 0
) -> tuple[Array, ...]:
    backend, xp = facts.backend, facts.backend.xp
    around = amplitudes(facts, rows.standing)
    witness = _witnesses(facts, rows, around, None) if witness is None else witness
    at, mean = _at(facts, rows, witness, around)
    upper = probabilities(backend, curves, mean, at.variance)[1]
    ask = ~(mean[1] < 0)
    lower, nodes, todo = upper * 0.0, ask * 1.0, xp.nonzero(ask)[0]
    for attempt, tries in _SHARP if sharp else _TRIES:
        if not len(todo):
            break
        few, known = rows.take(todo), at.take(todo) if attempt == 0 else None
        start, here = _references(facts, few, witness[todo], around.take(todo), attempt, known)
        sums = sums_of(here, boxes(facts, few, start), mean_plane(here, few.sign), bool(sharp))
        means = sums.latent(values_of(sums, tries, sharp))
        largest = here.amplitudes.largest_variance + means * 0.0
        found = probabilities(backend, curves, (means, means), (largest * 0.0, largest))[0]
        lower[todo] = xp.maximum(lower[todo], _certain(xp, found))
        todo = todo[~(lower[todo] > 0.5)]
    return consistent(xp, lower, upper), upper, witness, nodes

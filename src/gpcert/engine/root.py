"""The root pass: a witness, its enclosure and one certified bound for every row, in chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.bounds.levels.curves import LevelCurves
from gpcert.clock import check
from gpcert.engine.backend import Array, to_numpy
from gpcert.engine.facts import FEW, Facts
from gpcert.engine.lines import after_deficit, after_surplus, lines, probabilities
from gpcert.engine.planes import mean_plane, plane
from gpcert.engine.search import Objective, descend
from gpcert.engine.sums import Sums, boxes
from gpcert.engine.values import Amplitudes, Points, amplitudes, points
from gpcert.validation import Float, Index

__all__ = ["Rows", "Settled", "smallest", "verdicts"]

#: Cholesky factorisations per row, of the first and of the second reference.
_TRIES = (2, 4)


@dataclass(frozen=True, eq=False)
class Rows:
    """One box per row, raw doubles: [lower, upper] (N, d) around the moving features, [inner_lower,
    inner_upper] inside the region; x (N, D) has the standing features; sign (N,) = 1 for P(1), -1 for P(0).
    """

    lower: Float
    upper: Float
    inner_lower: Float
    inner_upper: Float
    x: Float
    sign: Float

    def __len__(self) -> int:
        return len(self.sign)

    def take(self, rows: Index | slice) -> Rows:
        """Some of them."""
        few = (self.lower, self.upper, self.inner_lower, self.inner_upper, self.x, self.sign)
        return Rows(*(each[rows] for each in few))


class Settled(NamedTuple):
    """Per row: lower <= min P <= upper, `witness` (N, d), a point of the region where `upper` holds, and
    how many bounds were tried (0 or 1 box).
    """

    lower: Float
    upper: Float
    witness: Float
    nodes: Float


def smallest(
    facts: Facts, curves: LevelCurves, rows: Rows, tolerance: float, target: float | None = None
) -> Settled:
    """The minimum of P over each box, as well as one plane can tell; `target`: what the bound has to
    reach, else the tolerance below the witness's value.
    """
    return _chunked(facts, rows, lambda few: _smallest(facts, curves, few, tolerance, target))


def verdicts(facts: Facts, curves: LevelCurves, rows: Rows) -> Settled:
    """The same for a symmetric link, sharp at 1/2 alone: the sign of the mean (D1)."""
    return _chunked(facts, rows, lambda few: _signs(facts, curves, few))


def _chunked(facts: Facts, rows: Rows, answer: Callable[[Rows], Settled]) -> Settled:
    d, n = len(facts.features), len(facts.model.weights)
    step = max(16, int(facts.backend.bytes / (8.0 * (8 * n + 5 * d * d + 64 * d))))
    found = []
    with np.errstate(all="ignore"):
        for start in range(0, len(rows), step):
            check()
            found.append(answer(rows.take(slice(start, start + step))))
    return Settled(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _witnesses(facts: Facts, rows: Rows, around: Amplitudes, noise: float | None) -> Float:
    """Raw points (N, d) of the regions."""
    backend, moving = facts.backend, facts.features
    origin, length = facts.origin[moving], facts.model.lengthscale[moving]
    low, high = (backend.array((end - origin) / length) for end in (rows.inner_lower, rows.inner_upper))
    scaled = None
    if not isinstance(around.value, float):
        scaled = backend.single(backend.xp.log(around.value / facts.model.variance + 1e-37))
    share = to_numpy(backend, descend(Objective(facts, noise, scaled), low, high, backend.array(rows.sign)))
    inside = rows.inner_lower + share * (rows.inner_upper - rows.inner_lower)
    inside = np.where(share == 1.0, rows.inner_upper, inside)
    return np.asarray(
        np.clip(np.where(np.isfinite(inside), inside, rows.inner_lower), rows.inner_lower, rows.inner_upper)
    )


def _at(facts: Facts, rows: Rows, witness: Float, around: Amplitudes) -> tuple[Points, tuple[Array, Array]]:
    """The points, and the mean of each row's class there."""
    at = points(facts, witness, around)
    low, high = at.mean()
    xp, sign = facts.backend.xp, facts.backend.array(rows.sign)
    return at, (xp.where(sign > 0, low, -high), xp.where(sign > 0, high, -low))


def retreats(facts: Facts, size: Float) -> tuple[Float, Float]:
    """How far each reference retreats from the witness to the middle, first and then; any is sound."""
    if len(facts.features) <= FEW:
        return np.where(size < 0.3, 0.0, 0.3), np.where(size < 0.3, 0.15, 0.1)
    first = np.where(size < 0.33, 0.0, np.where(size < 0.4, 0.15, 0.27))
    return first, np.where(size < 0.33, 0.2, np.where(size < 0.45, 0.3, 0.2))


def _smallest(
    facts: Facts, curves: LevelCurves, rows: Rows, tolerance: float, target: float | None
) -> Settled:
    backend = facts.backend
    around = amplitudes(facts, rows.x)
    witness = _witnesses(facts, rows, around, curves.noise)
    at, mean = _at(facts, rows, witness, around)
    upper = to_numpy(backend, probabilities(backend, curves, mean, at.variance)[1])
    wanted = upper - 0.999 * tolerance if target is None else np.full(len(rows), target)
    lower, nodes = np.zeros(len(rows)), np.zeros(len(rows))
    todo = (
        np.flatnonzero((wanted > 0.0) & (wanted < upper)) if facts.has_planes else np.empty(0, dtype=np.intp)
    )
    nodes[todo] = 1
    for attempt, tries in enumerate(_TRIES):
        if not len(todo):
            break
        few = rows.take(todo)
        known = at.take(backend.indices(todo)) if attempt == 0 else None
        start, here = _references(
            facts, few, witness[todo], around.take(backend.indices(todo)), attempt, known
        )
        goals = backend.array(wanted[todo])
        found = _planes(facts, curves, few, start, here, goals, tolerance, tries)
        lower[todo] = np.maximum(lower[todo], found)
        todo = todo[
            ~(lower[todo] >= np.minimum(wanted[todo], upper[todo] - tolerance if target is None else np.inf))
        ]
    return Settled(np.minimum(lower, upper), upper, witness, nodes)


def _references(
    facts: Facts, rows: Rows, witness: Float, around: Amplitudes, attempt: int, known: Points | None
) -> tuple[Float, Points]:
    """References (N, d), raw units, and what is known there."""
    length = facts.model.lengthscale[facts.features]
    size = np.linalg.norm((rows.upper - rows.lower) / length, axis=1)
    retreat = retreats(facts, size)[attempt][:, None]
    if known is not None and not retreat.any():
        return witness, known
    middle = 0.5 * rows.lower + 0.5 * rows.upper
    start = np.clip(witness + retreat * (middle - witness), rows.lower, rows.upper)
    return start, points(facts, start, around)


def _planes(
    facts: Facts,
    curves: LevelCurves,
    rows: Rows,
    start: Float,
    at: Points,
    goals: Array,
    tolerance: float,
    tries: int,
) -> Float:
    """Certified P (N,) by one plane per row: order two first, the Hessian where that does not suffice."""
    backend = facts.backend
    xp = backend.xp
    low, high = at.variance
    largest = at.amplitudes.largest_variance + low * 0.0
    line = lines(backend, curves, goals, 0.5 * (low + high), largest, tolerance)
    sign = backend.array(rows.sign)
    sums = Sums(at, boxes(facts, rows.lower, rows.upper, start), plane(at, sign, line))
    values = _values(sums, tries)
    deficit = xp.where(values < 0, -values, values * 0.0)
    lost = after_deficit(backend, curves, line, deficit)
    gained = after_surplus(backend, curves, line, sums.latent(values), largest)
    found = xp.where(values >= 0, gained, lost)
    return np.nan_to_num(to_numpy(backend, found), nan=0.0, neginf=0.0)


def _values(sums: Sums, tries: int) -> Array:
    """Lower bounds of e^r f (N,); NaN where nothing is known."""
    xp = sums.at.facts.backend.xp
    values = sums.order_two()
    left = xp.nonzero(~(values >= 0))[0]
    if len(left):
        few = sums.take(left) if len(left) < len(values) else sums
        more = few.order_three(tries)
        values[left] = xp.where(more > values[left], more, values[left])
    return values


def _signs(facts: Facts, curves: LevelCurves, rows: Rows) -> Settled:
    backend = facts.backend
    around = amplitudes(facts, rows.x)
    witness = _witnesses(facts, rows, around, None)
    at, mean = _at(facts, rows, witness, around)
    upper = to_numpy(backend, probabilities(backend, curves, mean, at.variance)[1])
    lower, nodes = np.zeros(len(rows)), np.zeros(len(rows))
    todo = np.flatnonzero(~(to_numpy(backend, mean[1]) < 0))
    nodes[todo] = 1
    for attempt, tries in enumerate(_TRIES):
        if not len(todo):
            break
        few, index = rows.take(todo), backend.indices(todo)
        known = at.take(index) if attempt == 0 else None
        start, here = _references(facts, few, witness[todo], around.take(index), attempt, known)
        sums = Sums(
            here, boxes(facts, few.lower, few.upper, start), mean_plane(here, backend.array(few.sign))
        )
        values = sums.latent(_values(sums, tries))
        largest = here.amplitudes.largest_variance + values * 0.0
        bound = probabilities(backend, curves, (values, values), (largest * 0.0, largest))[0]
        found = np.nan_to_num(to_numpy(backend, bound), nan=0.0)
        lower[todo] = np.maximum(lower[todo], found)
        todo = todo[~(lower[todo] > 0.5)]
    return Settled(np.minimum(lower, upper), upper, witness, nodes)


def both_sides(rows: Rows) -> Rows:
    """Each row for its class, then each for the other one."""
    other = Rows(rows.lower, rows.upper, rows.inner_lower, rows.inner_upper, rows.x, -rows.sign)
    pairs = (
        np.concatenate((getattr(rows, name), getattr(other, name)))
        for name in ("lower", "upper", "inner_lower", "inner_upper", "x", "sign")
    )
    return Rows(*pairs)

"""Projected gradient descent from several starts, all regions at once; the nearest counterexamples found.

First whole steps to the linear minimiser of the set (where all features are monotone this ends at the
optimum after two or three), then projected gradient steps of Barzilai and Borwein's length, kept only where
they improve. Starts lie beside the centre: features without data have exactly zero gradient there. Last, the
best point of each region tries single features at their other end: local optima of such problems are many,
and differ by a few features.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpcert.attacks.objectives import AttackObjective
from gpcert.attacks.sets import Sets
from gpcert.validation import Float, Index

_LINEAR_STEPS = 6
_FLIPS = 24


def pgd(
    objective: AttackObjective,
    sets: Sets,
    labels: Index,
    *,
    starts: int = 3,
    steps: int = 40,
    flips: int = 3,
    enough: float = -np.inf,
    rng: int = 0,
    first: Float | None = None,
) -> tuple[Float, Float]:
    """The best points (m, d) found, in floating point, and their objective (m,).

    A set is done once its objective is below `enough`. `first` (m, d): the first start.
    """
    m = len(sets)
    random = np.random.default_rng(rng)
    best = np.full(m, np.inf)
    points = sets.centre.copy()
    for start in range(starts):
        open_ = np.flatnonzero(~(best < enough))
        if not len(open_):
            break
        part = sets.rows(open_)
        if first is not None and start == 0:
            u = part.offsets(first[open_])
        else:
            u = _start(part, start - (first is not None), random)
        X, values = _Walk(objective, part, labels[open_], u, enough).descend(steps)
        better = values < best[open_]
        best[open_[better]] = values[better]
        points[open_[better]] = X[better]
    for _ in range(flips):
        open_ = np.flatnonzero(~(best < enough))
        part = sets.rows(open_)
        flipped, improved = _flip(objective, part, labels[open_], part.offsets(points[open_]), best[open_])
        open_, part, u = open_[improved], part.rows(improved), flipped[improved]
        if not len(open_):
            break
        points[open_], best[open_] = _Walk(objective, part, labels[open_], u, enough).descend(steps)
    return points, best


def _flip(
    objective: AttackObjective, sets: Sets, labels: Index, u: Float, value: Float
) -> tuple[Float, Index]:
    """Offsets (m, d) with the best single feature at its other end, and the rows (k,) where it is better."""
    m, d = u.shape
    low, high = sets.low, sets.high
    other = np.where(u - low < high - u, high, low)
    _, slope = objective(sets.points(u), labels)
    # What the first order says a flip costs: the cheapest are tried.
    cost = np.where(high > low, np.abs(slope * sets.unit * (other - u)), np.inf)
    count = min(_FLIPS, d)
    chosen = np.argpartition(cost, count - 1, axis=1)[:, :count]
    rows = np.repeat(np.arange(m), count)
    trial = u[rows]
    trial[np.arange(len(rows)), chosen.ravel()] = other[rows, chosen.ravel()]
    many = sets.rows(rows)
    trial = many.project(trial)
    values = objective(many.points(trial), labels[rows], slopes=False)[0]
    values = np.where(np.isnan(values), np.inf, values).reshape(m, count)
    best = values.argmin(axis=1)
    improved = np.flatnonzero(values.min(axis=1, initial=np.inf) < value - 1e-9 * (1.0 + np.abs(value)))
    return trial.reshape(m, count, d)[np.arange(m), best], improved


def _start(sets: Sets, number: int, random: np.random.Generator) -> Float:
    """Offsets (m, d): beside the centre first, towards the longer side; then random points."""
    low, high = sets.low, sets.high
    share = random.random(sets.centre.shape)
    if number == 0:
        side = np.where(high + low > 0, high, np.where(high + low < 0, low, np.where(share < 0.5, low, high)))
        return sets.project(0.02 * side)
    return sets.project(low + share * (high - low))


class _Walk:
    """The state of m descents: offsets, values, gradients in offsets."""

    def __init__(
        self, objective: AttackObjective, sets: Sets, labels: Index, u: Float, enough: float
    ) -> None:
        self._objective, self._sets, self._labels, self._enough = objective, sets, labels, enough
        self.u = u
        self.value, self.slope = self._at(np.arange(len(u)), u)
        self._vertex = np.zeros(len(u), dtype=bool)  # the linear minimiser repeated itself: a local optimum

    def descend(self, steps: int) -> tuple[Float, Float]:
        """Points (m, d) and values (m,) after whole steps, then gradient steps."""
        self._linear_steps()
        self._gradient_steps(steps)
        return self._sets.points(self.u), self.value

    def _at(self, rows: Index, u: Float) -> tuple[Float, Float]:
        sets = self._sets.rows(rows)
        value, gradient = self._objective(sets.points(u), self._labels[rows])
        return np.where(np.isnan(value), np.inf, value), np.nan_to_num(gradient) * sets.unit

    def _linear_steps(self) -> None:
        """Whole steps to the minimiser of the linearisation, as long as they improve."""
        rows = np.flatnonzero(~(self.value < self._enough))
        for _ in range(_LINEAR_STEPS):
            target = self._sets.rows(rows).linear(self.slope[rows])
            still = (target == self.u[rows]).all(axis=1)
            self._vertex[rows[still]] = True
            rows, target = rows[~still], target[~still]
            if not len(rows):
                return
            value, slope = self._at(rows, target)
            better = value < self.value[rows]
            rows = rows[better]
            self.u[rows], self.value[rows], self.slope[rows] = target[better], value[better], slope[better]
            rows = rows[~(self.value[rows] < self._enough)]

    def _gradient_steps(self, steps: int) -> None:
        """Projected gradient steps; a failed one is shortened, a walk ends when progress does."""
        length = np.full(len(self.u), np.nan)
        patience = np.full(len(self.u), 3)
        for _ in range(steps):
            done = self._vertex | (self.value < self._enough) | (patience <= 0)
            rows = np.flatnonzero(~done)
            if not len(rows):
                return
            sets, u, slope = self._sets.rows(rows), self.u[rows], self.slope[rows]
            fresh = np.isnan(length[rows])
            size = np.maximum(np.abs(slope).max(axis=1), 1e-300)
            step = np.where(fresh, 0.5 / size, length[rows])
            target = sets.project(u - step[:, None] * slope)
            value, target_slope = self._at(rows, target)
            better = value < self.value[rows]
            moved = target - u
            bend = np.einsum("ij,ij->i", moved, target_slope - slope)
            square = np.einsum("ij,ij->i", moved, moved)
            spectral = np.where(bend > 0, square / np.maximum(bend, 1e-300), 4.0 * step)
            length[rows] = np.where(better, np.clip(spectral, 1e-10 / size, 1e10 / size), 0.25 * step)
            small = self.value[rows] - value < 1e-7 * (1.0 + np.abs(value))
            patience[rows] = np.where(better & ~small, 3, patience[rows] - 1)
            patience[rows[square == 0]] = 0
            kept = rows[better]
            self.u[kept], self.value[kept] = target[better], value[better]
            self.slope[kept] = target_slope[better]


#: Rows and their radii (k,) to the balls around the points of these rows.
Radii = Callable[[Index, Float], Sets]

_ROUNDS = 20
_CUTS = 16


def nearest_counterexamples(
    objective: AttackObjective,
    level: float,
    balls: Radii,
    labels: Index,
    largest: Float,
    rtol: float,
    known: Float | None = None,
) -> tuple[Float, Float]:
    """Radii (m,) and points (m, d) where the objective is below `level`; inf where none was found.

    `largest` (m,): the radii first attacked; or, `known` (m, d), counterexamples there. A ball smaller by the
    factor 1 - rtol resisted the last attack.
    """
    rows = np.arange(len(labels))
    sets = balls(rows, largest)
    if known is None:
        points, values = pgd(objective, sets, labels, enough=level)
    else:
        points, values = known.copy(), objective(known, labels, slopes=False)[0]
    radius = np.where(values < level, largest, np.inf)
    resisted = np.zeros(len(labels))
    rows = fresh = rows[values < level]
    for _ in range(_ROUNDS):
        if len(fresh):
            around = balls(fresh, radius[fresh])
            points[fresh], radius[fresh] = _shorten(objective, level, around, labels[fresh], points[fresh])
        if sets.norm == 0:  # whole numbers: halve what is left
            next_ = np.floor(0.5 * (resisted + radius))
            rows = rows[radius[rows] - resisted[rows] > 1]
        else:
            next_ = (1.0 - rtol) * radius
            rows = rows[(radius[rows] > 0) & (next_[rows] > resisted[rows])]
        if not len(rows):
            break
        found, values = pgd(
            objective,
            balls(rows, next_[rows]),
            labels[rows],
            starts=2,
            steps=15,
            flips=0,
            first=points[rows],
        )
        fresh = rows[values < level]
        points[fresh], radius[fresh] = found[values < level], next_[fresh]
        failed = rows[~(values < level)]
        resisted[failed] = next_[failed]
    return radius, points


def _shorten(
    objective: AttackObjective, level: float, sets: Sets, labels: Index, points: Float
) -> tuple[Float, Float]:
    """The counterexamples nearest to the centre on each segment (m, d), and their radii (m,)."""
    m = len(sets)
    if sets.norm == 0:
        moved = points != sets.centre
        return points, moved.sum(axis=1).astype(np.float64)
    small, large = np.zeros(m), np.ones(m)
    for _ in range(2):
        share = small + (large - small) * np.arange(1, _CUTS)[:, None] / _CUTS  # (cuts, m)
        rows = np.tile(np.arange(m), _CUTS - 1)
        trial = sets.centre[rows] + share.reshape(-1, 1) * (points - sets.centre)[rows]
        trial = np.clip(trial, sets.lower[rows], sets.upper[rows])
        below = (objective(trial, labels[rows], slopes=False)[0] < level).reshape(_CUTS - 1, m)
        first = np.where(below.any(axis=0), below.argmax(axis=0), _CUTS - 1)
        step = (large - small) / _CUTS
        small, large = small + first * step, np.where(first < _CUTS - 1, small + (first + 1) * step, large)
    nearer = np.clip(sets.centre + large[:, None] * (points - sets.centre), sets.lower, sets.upper)
    keep = objective(nearer, labels, slopes=False)[0] < level
    nearer = np.where(keep[:, None], nearer, points)
    return nearer, sets.lengths(nearer)

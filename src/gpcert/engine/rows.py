"""What is asked of a batch: one box per row, as columns that move to the backend chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gpcert.engine.backend import Array, Backend
from gpcert.errors import contradicted
from gpcert.regions import hulls
from gpcert.validation import Float, Index


@dataclass(frozen=True, eq=False)
class Rows:
    """One box per row, raw doubles: [lower, upper] (N, d) around the moving features, [inner_lower,
    inner_upper] inside the region; standing (N, D - d): the others; sign (N,) = 1 for P(1), -1 for P(0).

    Hulls of numpy; a chunk of them moves to the backend, and is the same there. Balls of norm 2 have a
    `centre` and half `axes` (N, d) besides: the row is the part of the ball in its box.
    """

    lower: Array
    upper: Array
    inner_lower: Array
    inner_upper: Array
    standing: Array
    sign: Array
    centre: Array | None = None
    axes: Array | None = None

    def __len__(self) -> int:
        return len(self.sign)

    @property
    def is_box(self) -> bool:
        """Whether every point between the inner ends is one of the region."""
        return self.axes is None

    def each(self, change: Callable[[Array], Array]) -> Rows:
        """The same for every column; for one that is two, once."""
        columns = [getattr(self, field.name) for field in fields(self)]
        changed = {id(column): change(column) for column in columns if column is not None}
        return Rows(*(changed.get(id(column)) for column in columns))

    def on(self, backend: Backend, part: slice) -> Rows:
        """Some of them, on the backend."""
        return self.each(lambda column: backend.array(column[part]))

    def both_sides(self, backend: Backend) -> Rows:
        """Each row for its class, then each for the other one."""
        both = self.each(lambda column: backend.concat([column, column]))
        return replace(both, sign=backend.concat([self.sign, -self.sign]))

    def take(self, rows: Array) -> Rows:
        """Some of them."""
        return self.each(lambda column: column[rows])

    def still(self, at: Index | int) -> Float:
        """The standing features of some rows, or of one."""
        return np.asarray(self.standing[at])


@dataclass(frozen=True, eq=False)
class Around:
    """Rows that are balls of norm inf, or 2 (`round`), around x (N, D), radius (N,), one domain (d,) for all;
    `sign` as there, `features` (d,) move, the `rest` (D - d,) does not. The ends of their boxes are made
    where they are needed, and features parted on the backend: the columns are as they were given.
    """

    x: Float
    radius: Float
    domain: tuple[Float, Float] | None
    sign: Float
    features: Index
    rest: Index
    round: bool = False

    def __len__(self) -> int:
        return len(self.sign)

    def on(self, backend: Backend, part: slice) -> Rows:
        """Some of them, on the backend."""
        whole, radius, sign = (backend.array(each[part]) for each in (self.x, self.radius, self.sign))
        x, standing = (
            whole if len(j) == whole.shape[1] else whole[:, backend.indices(j)]
            for j in (self.features, self.rest)
        )
        domain = (
            None if self.domain is None else (backend.array(self.domain[0]), backend.array(self.domain[1]))
        )
        ball = (x, radius[:, None] + x * 0.0) if self.round else ()
        return Rows(*hulls(x, radius[:, None], domain, backend.xp), standing, sign, *ball)

    def still(self, at: Index | int) -> Float:
        """The standing features of some rows, or of one."""
        return np.asarray(self.x[at][..., self.rest])


def consistent(xp: Any, lower: Array, upper: Array) -> Array:
    """The lower ends (N,); 0 for one that a value found contradicts: neither is proved then."""
    kept = lower <= upper
    if bool(xp.any(lower > upper)):
        contradicted()
    return xp.where(kept, lower, xp.zeros_like(lower))

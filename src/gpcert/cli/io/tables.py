"""Data files as tables: named columns of numbers, labels as strings, every error with its place.

A source is a CSV file with a header line, an npz file with the arrays `X`, and if wanted `y`,
`feature_names`, `image_shape`, or `dataset:NAME`, one of the shipped data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpcert.classes import Label, position
from gpcert.errors import InvalidInputError
from gpcert.validation import Float, meant


@dataclass(frozen=True)
class Columns:
    """Which columns to read: `features` in this order, or all but the others; the labels; the names of rows.

    `optional_target`: the labels' column may be missing; there are no labels then.
    """

    features: tuple[str, ...] | None = None
    dropped: tuple[str, ...] = ()
    target: str | None = None
    optional_target: bool = False
    id: str | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Points X (n, d) with their feature names, labels (n,) if known, names of rows if asked for.

    `rows`: (n,) positions in the source, from 0; `place(row, column)`: where to look in the file.
    """

    source: str
    sha256: str
    X: Float
    names: tuple[str, ...]
    labels: tuple[str, ...] | None
    ids: tuple[str, ...] | None
    rows: Sequence[int]
    place: Callable[[int, str], str]
    target: str | None = None
    domain: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None

    def named(self, i: int) -> str:
        """What its i-th row is called: by its id, or its position in the source."""
        return str(self.rows[i]) if self.ids is None else self.ids[i]

    def checked_labels(self, classes: Sequence[Label]) -> tuple[str, ...]:
        """The classes of the rows by their names: each label must be one."""
        if self.labels is None:
            raise InvalidInputError(f"{self.source} must have labels; name their column with --target")
        names: dict[str, str] = {}
        for row, label in zip(self.rows, self.labels, strict=True):
            if label not in names:
                names[label] = str(classes[position(classes, label, self.place(row, self.target or "y"))])
        return tuple(names[label] for label in self.labels)


def take_rows(table: Table, wanted: Sequence[int]) -> Table:
    """The rows at these positions in the source, in this order."""
    at = {row: k for k, row in enumerate(table.rows)}
    for row in wanted:
        if row not in at:
            raise outside(table.source, len(table.rows), row)
    order = [at[row] for row in wanted]
    return replace(
        table,
        X=np.ascontiguousarray(table.X[order]),
        labels=None if table.labels is None else tuple(table.labels[k] for k in order),
        ids=None if table.ids is None else tuple(table.ids[k] for k in order),
        rows=tuple(wanted),
    )


def outside(source: str, n: int, row: int) -> InvalidInputError:
    """The sentence for a row that is not there."""
    return InvalidInputError(f"--rows must be in 0..{n - 1} for {source}, got {row}")


def missing_column(source: str, name: str, present: Sequence[str]) -> InvalidInputError:
    """The sentence for a column that is not there, with those that are."""
    shown = ", ".join(map(repr, present[:12])) + (", ..." if len(present) > 12 else "")
    told = f"{source} must have a column {name!r}, got {shown or 'none'}{meant(name, present)}"
    return InvalidInputError(told)

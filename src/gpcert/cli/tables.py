"""Data files as tables: named columns of numbers, labels as strings, every error with its place.

A source is a CSV file with a header line, an npz file with the arrays `X`, and if wanted `y`,
`feature_names`, `image_shape`, or `dataset:NAME`, one of the shipped data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import Float

__all__ = ["Columns", "Table", "missing_column", "take_rows"]


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

    `rows`: (n,) positions in the source, from 0; `place(i, column)`: where to look in the file for row i.
    """

    source: str
    sha256: str
    X: Float
    names: tuple[str, ...]
    labels: tuple[str, ...] | None
    ids: tuple[str, ...] | None
    rows: tuple[int, ...]
    place: Callable[[int, str], str]
    target: str | None = None
    domain: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None

    def checked_labels(self, classes: Sequence[str]) -> tuple[str, ...]:
        """The labels, each of which must be one of the classes."""
        if self.labels is None:
            raise InvalidInputError(f"{self.source} must have labels; name their column with --target")
        for row, label in zip(self.rows, self.labels, strict=True):
            if label not in classes:
                known = ", ".join(classes)
                raise InvalidInputError(
                    f"{self.place(row, self.target or 'y')} must be one of the model's classes {known}, "
                    f"got {label!r}"
                )
        return self.labels


def take_rows(table: Table, wanted: Sequence[int] | None) -> Table:
    """The rows at these positions, in this order; None: all."""
    if wanted is None:
        return table
    for i in wanted:
        if not 0 <= i < len(table.X):
            raise InvalidInputError(f"--rows must be in 0..{len(table.X) - 1} for {table.source}, got {i}")
    return Table(
        source=table.source,
        sha256=table.sha256,
        X=np.ascontiguousarray(table.X[list(wanted)]),
        names=table.names,
        labels=None if table.labels is None else tuple(table.labels[i] for i in wanted),
        ids=None if table.ids is None else tuple(table.ids[i] for i in wanted),
        rows=tuple(wanted),
        place=table.place,
        target=table.target,
        domain=table.domain,
        image_shape=table.image_shape,
    )


def missing_column(source: str, name: str, present: Sequence[str]) -> InvalidInputError:
    """The sentence for a column that is not there, with those that are."""
    shown = ", ".join(map(repr, present[:12])) + (", ..." if len(present) > 12 else "")
    return InvalidInputError(f"{source} must have a column {name!r}, got {shown or 'none'}")

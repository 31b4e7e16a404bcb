"""Data files as tables: named columns of numbers, labels as strings, every error with its place.

A source is a CSV, Parquet or Excel file with named columns, an npz file with the arrays `X`, and if wanted
`y`, `feature_names`, `image_shape`, or `dataset:NAME`, one of the shipped data sets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpcert.classes import Label, position
from gpcert.errors import InvalidInputError
from gpcert.validation import Float, composed, meant, require


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns to read: `features` in this order, or all but the others; the labels; the names of rows.

    `optional_target`: the labels' column may be missing; there are no labels then.
    """

    features: tuple[str, ...] | None = None
    dropped: tuple[str, ...] = ()
    target: str | None = None
    optional_target: bool = False
    id: str | None = None
    droppable: bool = False  #: whether the command has --drop

    def __post_init__(self) -> None:
        for name in ("features", "dropped", "target", "id"):
            given = getattr(self, name)
            made = tuple(map(composed, given)) if isinstance(given, tuple) else composed(given)
            object.__setattr__(self, name, made)


@dataclass(frozen=True)
class Reading:
    """How the text of a CSV is meant, and what becomes of rows with empty cells: None, or "skip"."""

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    missing: str | None = None

    @property
    def between(self) -> str:
        """The character between cells."""
        return self.delimiter or (";" if self.decimal == "," else ",")


@dataclass(frozen=True, eq=False)
class DataTable:
    """Points X (n, d) with their feature names, labels (n,) if known, names of rows if asked for.

    `rows`: (n,) positions in the source, from 0; `lines`: (n,) of a text, from 1.
    """

    source: str
    sha256: str
    X: Float
    names: tuple[str, ...]
    labels: tuple[str, ...] | None
    ids: tuple[str, ...] | None
    rows: Sequence[int]
    lines: Sequence[int] | None = None
    target: str | None = None
    domain: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None
    skipped: int = 0  #: rows that were skipped

    def named(self, i: int) -> str:
        """What its i-th row is called: by its id, or its position in the source."""
        return str(self.rows[i]) if self.ids is None else self.ids[i]

    def place(self, i: int, column: str) -> str:
        """Where to look in the source for the i-th row."""
        return place_of(self.source, self.rows[i], None if self.lines is None else self.lines[i], column)

    def checked_labels(self, classes: Sequence[Label]) -> tuple[str, ...]:
        """The classes of the rows by their names: each label must be one."""
        if self.labels is None:
            raise InvalidInputError(f"{self.source} must have labels; name their column with --target")
        names: dict[str, str] = {}
        for i, label in enumerate(self.labels):
            if label not in names:
                names[label] = str(classes[position(classes, label, self.place(i, self.target or "y"))])
        return tuple(names[label] for label in self.labels)

    def take(self, wanted: Sequence[int] | None) -> DataTable:
        """The rows at these positions in the source, in this order; None: all."""
        if wanted is None:
            return self
        at = {row: k for k, row in enumerate(self.rows)}
        for row in wanted:
            if row not in at:
                raise outside(self.source, len(self.rows), row)
        order = [at[row] for row in wanted]
        some: dict[str, Any] = {
            name: None if (known := getattr(self, name)) is None else tuple(known[k] for k in order)
            for name in ("labels", "ids", "rows", "lines")
        }
        return replace(self, X=np.ascontiguousarray(self.X[order]), **some)


def place_of(source: Any, row: int, line: int | None, column: str) -> str:
    """Where a cell is, in words."""
    where = "" if line is None else f" (line {line})"
    return f"{source}, row {row}{where}, column {column!r}"


@contextmanager
def hashed(path: Path) -> Iterator[tuple[IO[bytes], str]]:
    """The open file and the SHA-256 of its bytes, which must not change meanwhile."""
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        digest = file_digest(file, "sha256").hexdigest()
        file.seek(0)
        yield file, digest
        after = os.fstat(file.fileno())
    same = (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    require(same, f"{path} must stay as it is while it is read, got a change")


def outside(source: str, n: int, row: int) -> InvalidInputError:
    """The sentence for a row that is not there."""
    return InvalidInputError(f"--rows must be in 0..{n - 1} for {source}, got {row}")


def missing_column(source: str, name: str, present: Sequence[str]) -> InvalidInputError:
    """The sentence for a column that is not there, with those that are."""
    shown = ", ".join(map(repr, present[:12])) + (", ..." if len(present) > 12 else "")
    message = f"{source} must have a column {name!r}, got {shown or 'none'}{meant(name, present)}"
    return InvalidInputError(message)

"""Data files as tables: named columns of numbers, labels as strings, every error with its place.

A source is a CSV, Parquet or Excel file with named columns, an npz file with the arrays `X`, and if wanted
`y`, `feature_names`, `image_shape`, or `dataset:NAME`, one of the shipped data sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpcert.classes import Label, position
from gpcert.errors import InvalidInputError
from gpcert.validation import Float, composed, meant, require


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
        """What stands between cells."""
        return self.delimiter or (";" if self.decimal == "," else ",")


class Bad(NamedTuple):
    """A cell that is no number: the rule and what was found; the same of a column, in few words."""

    told: str
    kind: str
    helps: str = ""  # an option, and what it does


_MISSING = ("", "na", "n/a", "nan", "null")  # what programs write for nothing
SKIP = "--missing skip leaves out rows with empty cells"


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing, in one of the ways that programs write it."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


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
    skipped: int = 0  #: rows that were left out

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


def check_header(path: Path, header: Sequence[str], delimiter: str | None = None) -> None:
    """Distinct names, no numbers; `delimiter`: of a CSV."""
    require(any(header), f"{path} must have a header line with column names, got an empty file")
    distinct = len(set(header)) == len(header)
    twice = None if distinct else next(name for name in header if header.count(name) > 1)
    require(twice is None, f"{path} must have distinct column names, got {twice!r} twice")
    require(
        not all(_is_number(name) for name in header),
        f"{path} must have a header line with column names, got numbers: {', '.join(header[:3])}",
    )
    other = next((c for c in ";\t|," if c in header[0] and c != delimiter), None)
    require(
        len(header) > 1 or other is None or delimiter is None,
        f"{path} must have columns separated by {delimiter!r}, got one column with {other!r} in its name; "
        f"see --delimiter",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def picker(at: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes the cells at these places."""
    if len(at) == 1:
        return lambda cells: (cells[at[0]],)
    return itemgetter(*at)


def outside(source: str, n: int, row: int) -> InvalidInputError:
    """The sentence for a row that is not there."""
    return InvalidInputError(f"--rows must be in 0..{n - 1} for {source}, got {row}")


def missing_column(source: str, name: str, present: Sequence[str]) -> InvalidInputError:
    """The sentence for a column that is not there, with those that are."""
    shown = ", ".join(map(repr, present[:12])) + (", ..." if len(present) > 12 else "")
    told = f"{source} must have a column {name!r}, got {shown or 'none'}{meant(name, present)}"
    return InvalidInputError(told)

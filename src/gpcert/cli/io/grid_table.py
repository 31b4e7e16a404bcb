"""Tables from files with named columns: CSV, Parquet, Excel; what is wrong with columns is told at once."""

from __future__ import annotations

import csv
import io
import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpcert.cli.io.csv_table import CsvGrid
from gpcert.cli.io.tables import Bad, Columns, Reading, Table, is_missing, missing_column, outside, take_rows
from gpcert.cli.io.typed_table import ParquetGrid, XlsxGrid
from gpcert.errors import InvalidInputError
from gpcert.formats import library
from gpcert.validation import require

_TOLD = 12  # columns in a sentence
#: Other programs' tables, which are no text.
_OTHERS = (".xls", ".xlsb", ".ods", ".pkl", ".feather", ".h5", ".mat", ".json", ".safetensors")


class Grid(Protocol):
    """A header, and rows of cells: texts of a CSV, values of other files."""

    header: list[str]

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        """(line number, 0 where a file has none; the cells at these places) of each row."""

    def numbers(self, cells: Sequence[Any]) -> list[float] | None:
        """The numbers in the cells; None: one of them may be none."""

    def number(self, cell: Any) -> float | Bad:
        """One cell."""

    def digest(self) -> str:
        """The SHA-256 of the file."""


def read_grid(
    path: Path, columns: Columns, reading: Reading | None = None, wanted: Sequence[int] | None = None
) -> Table:
    """The table in a file, or its rows wanted; rows count from 0 below the header, lines from 1."""
    reading = reading or Reading()
    kind = _kind(path)
    with path.open("rb", buffering=0) as file:
        grid = kind(path, file, reading)
        target, ids, features = _choose(path, columns, grid.header)
        kept = _Kept(path, grid, features, (target, ids), reading.missing == "skip")
        seen = kept.take(wanted)
        digest = grid.digest()
    if kept.bad:
        raise InvalidInputError(kept.sentence(columns))
    if wanted is not None and len(kept.rows) + kept.skipped < len(wanted):
        raise outside(str(path), seen, next(i for i in wanted if i >= seen))
    if not kept.rows:
        ((most, count),) = kept.empty.most_common(1)
        told = f"got {kept.skipped} with some, {count} of them in {grid.header[most]!r}"
        raise InvalidInputError(f"{path} must have a row without empty cells, {told}")
    rows = range(seen) if len(kept.rows) == seen else kept.rows
    found = Table(
        source=str(path),
        sha256=digest,
        X=np.frombuffer(kept.values, dtype=np.float64).reshape(len(kept.lines), len(features)),
        names=features,
        labels=None if target is None else tuple(kept.texts[0]),
        ids=None if ids is None else tuple(kept.texts[1]),
        rows=rows,
        place=_Places(path, rows, kept.lines),
        target=target,
        skipped=kept.skipped,
    )
    if wanted is None:
        return found
    there = set(kept.rows)
    return take_rows(found, [row for row in wanted if row in there])


def _kind(path: Path) -> Callable[[Path, io.FileIO, Reading], Grid]:
    suffix = path.suffix.lower()
    told = f"{path} must be a CSV, npz, .xlsx or .parquet file, got one that ends in {suffix}"
    require(suffix not in _OTHERS, told)
    library(suffix)
    return {".xlsx": XlsxGrid, ".parquet": ParquetGrid}.get(suffix, CsvGrid)


def _choose(
    path: Path, columns: Columns, header: list[str]
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Names of the columns of labels, of the rows' names, and of the features."""
    target, ids = columns.target, columns.id
    present = set(header)
    if target is not None and target not in present and columns.optional_target:
        target = None
    for name in (*(columns.features or ()), *columns.dropped, *(n for n in (target, ids) if n is not None)):
        if name not in present:
            raise missing_column(str(path), name, header)
    aside = {target, ids, *columns.dropped}
    features = columns.features or tuple(name for name in header if name not in aside)
    require(bool(features), f"{path} must have at least one feature column, got none")
    return target, ids, features


class _Kept:
    """What is kept of the rows: numbers of the features, texts of labels and names, line numbers."""

    def __init__(
        self, path: Path, grid: Grid, features: Sequence[str], texts: Sequence[str | None], skip: bool
    ) -> None:
        self._path, self._grid, self._features, self._skip = path, grid, features, skip
        at = {name: j for j, name in enumerate(grid.header)}
        named = [(k, name) for k, name in enumerate(texts) if name is not None]
        self._at = [at[name] for name in (*features, *(name for _, name in named))]
        self._texts = [(k, len(features) + i, name) for i, (k, name) in enumerate(named)]
        self.values, self.lines = array("d"), array("q")
        self.rows: list[int] = []
        self.texts: list[list[str]] = [[] for _ in texts]
        self.skipped = 0
        self.empty: Counter[int] = Counter()  # of the rows left out, by column
        self.bad: dict[str, tuple[str, Bad, int]] = {}  # by column: the first place, what is wrong, how many

    def take(self, wanted: Sequence[int] | None) -> int:
        """Read up to the last row that is wanted, None: all; the number of rows seen."""
        chosen, last = (None, math.inf) if wanted is None else (set(wanted), max(wanted))
        seen = 0
        for line, cells in self._grid.rows(self._at):
            if chosen is None or seen in chosen:
                self._keep(seen, line, cells)
            seen += 1
            if seen > last:
                break
        require(seen > 0, f"{self._path} must have at least one row below its header, got none")
        return seen

    def _keep(self, row: int, line: int, cells: Sequence[Any]) -> None:
        if self._skip and any(map(is_missing, cells)):
            self.empty.update(j for j, cell in zip(self._at, cells, strict=True) if is_missing(cell))
            self.skipped += 1
            return
        picked = cells[: len(self._features)]
        values = self._grid.numbers(picked)
        self.values.extend(self._one_by_one(row, line, picked) if values is None else values)
        self.lines.append(line)
        self.rows.append(row)
        for k, j, name in self._texts:
            text = "" if cells[j] is None else str(cells[j]).strip()
            if not text:
                place = _place(self._path, row, line, name)
                raise InvalidInputError(f"{place} must be a label, got an empty cell")
            self.texts[k].append(sys.intern(text))  # equal labels are one string

    def _one_by_one(self, row: int, line: int, cells: Sequence[Any]) -> list[float]:
        values = []
        for name, cell in zip(self._features, cells, strict=True):
            found = self._grid.number(cell)
            if isinstance(found, Bad):
                place, first, count = self.bad.get(name, (_place(self._path, row, line, name), found, 0))
                self.bad[name] = place, first, count + 1
            else:
                values.append(found)
        return values

    def sentence(self, columns: Columns) -> str:
        """All that is wrong with columns, and what helps."""
        if len(self.bad) == 1:
            ((place, first, count),) = self.bad.values()
            told = f"{place} {first.told}" + (f", and {count - 1} more in this column" if count > 1 else "")
        else:
            parts = [f"{name!r} ({bad.kind}, {n} in all)" for name, (_, bad, n) in self.bad.items()]
            more = f" and {len(parts) - _TOLD} more" if len(parts) > _TOLD else ""
            listed = ", ".join(parts[:_TOLD])
            told = f"{self._path} must have numbers in its feature columns, got others in {listed}{more}"
        helps = []
        if columns.droppable and columns.features is None and len(self.bad) < len(self._features):
            text = io.StringIO()
            csv.writer(text, lineterminator="").writerow(self.bad)
            helps.append(f"--drop {text.getvalue()!r} leaves {'it' if len(self.bad) == 1 else 'them'} out")
        helps += dict.fromkeys(bad.helps for _, bad, _ in self.bad.values())
        return "; ".join(filter(None, [told, *helps]))


def _place(path: Path, row: int, line: int, column: str) -> str:
    where = f" (line {line})" if line else ""
    return f"{path}, row {row}{where}, column {column!r}"


class _Places:
    """Where a cell is, in words; a class because it travels to other processes."""

    def __init__(self, path: Path, rows: Sequence[int], lines: Sequence[int]) -> None:
        self._path, self._rows, self._lines = path, rows, lines

    def __call__(self, row: int, column: str) -> str:
        return _place(self._path, row, self._lines[self._rows.index(row)], column)

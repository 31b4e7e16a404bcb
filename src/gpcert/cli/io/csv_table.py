"""CSV files: one header line with distinct names, then one row per point; read line by line, and once.

Of what is not asked for, and of what comes after the last row that is, only the hash is made.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.cli.io.tables import Columns, Table, missing_column, outside, take_rows
from gpcert.errors import InvalidInputError
from gpcert.validation import require

_BLOCK = 1 << 18  # bytes read at once


def read_csv(
    path: Path, columns: Columns, delimiter: str = ",", wanted: Sequence[int] | None = None
) -> Table:
    """The table in a CSV file, or its rows wanted; rows count from 0 below the header, lines from 1."""
    with path.open("rb", buffering=0) as file:
        source = _Hashed(file)
        grid = _Grid(path, source, delimiter)
        target, ids, features = _choose(path, columns, grid.header)
        kept = _Kept(grid, features, (target, ids))
        seen = kept.take(wanted)
        digest = source.digest()
    if wanted is not None and len(kept.rows) < len(wanted):
        raise outside(str(path), seen, next(i for i in wanted if i >= seen))
    found = Table(
        source=str(path),
        sha256=digest,
        X=np.frombuffer(kept.values, dtype=np.float64).reshape(len(kept.lines), len(features)),
        names=features,
        labels=None if target is None else tuple(kept.texts[0]),
        ids=None if ids is None else tuple(kept.texts[1]),
        rows=range(seen) if wanted is None else kept.rows,
        place=_Places(path, range(seen) if wanted is None else kept.rows, kept.lines),
        target=target,
    )
    return found if wanted is None else take_rows(found, wanted)


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


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: io.FileIO) -> None:
        self._file, self._hash, self._count = file, hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def readinto(self, buffer: Any, /) -> int:
        got = self._file.readinto(buffer)
        self._hash.update(memoryview(buffer)[:got])
        self._count += got
        return got

    def digest(self) -> str:
        """The hash of the whole file: of what is left, too."""
        buffer = bytearray(_BLOCK)
        while self.readinto(buffer):
            pass
        return self._hash.hexdigest()


class _Grid:
    """Header and rows; each row has as many cells as the header."""

    def __init__(self, path: Path, source: _Hashed, delimiter: str) -> None:
        self.path, self._bytes = path, io.BufferedReader(source, _BLOCK)
        text = io.TextIOWrapper(self._bytes, "utf-8-sig", newline="")
        self._reader = csv.reader(text, delimiter=delimiter, strict=True)
        self.header = [name.strip() for name in next(self._cells(), [])]
        _check_header(path, self.header, delimiter)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of each row."""
        n = len(self.header)
        for row, cells in enumerate(filter(None, self._cells())):
            line = self._reader.line_num
            if len(cells) != n:
                raise InvalidInputError(
                    f"{self.path}, row {row} (line {line}) must have {n} cells, as the header has, "
                    f"got {len(cells)}"
                )
            yield line, cells

    def _cells(self) -> Iterator[list[str]]:
        try:
            yield from self._reader
        except UnicodeDecodeError as error:
            byte = self._bytes.tell() - len(error.object) + error.start
            raise InvalidInputError(f"{self.path} must be UTF-8 text, got byte {byte} that is not") from None
        except csv.Error as error:
            raise InvalidInputError(f"{self.path}, line {self._reader.line_num}: not CSV ({error})") from None


class _Kept:
    """What is kept of the rows: numbers of the features, texts of labels and names, line numbers."""

    def __init__(self, grid: _Grid, features: Sequence[str], texts: Sequence[str | None]) -> None:
        self._grid, self._features = grid, features
        at = {name: j for j, name in enumerate(grid.header)}
        self._pick: Callable[[list[str]], Sequence[str]] = _picker([at[name] for name in features])
        self._texts = [(k, at[name], name) for k, name in enumerate(texts) if name is not None]
        self.values, self.lines = array("d"), array("q")
        self.rows: list[int] = []
        self.texts: list[list[str]] = [[] for _ in texts]

    def take(self, wanted: Sequence[int] | None) -> int:
        """Read up to the last row that is wanted, None: all; the number of rows seen."""
        chosen, last = (None, math.inf) if wanted is None else (set(wanted), max(wanted))
        seen = 0
        for line, cells in self._grid.rows():
            if chosen is None or seen in chosen:
                self._keep(seen, line, cells)
                if chosen is not None:
                    self.rows.append(seen)
            seen += 1
            if seen > last:
                break
        require(seen > 0, f"{self._grid.path} must have at least one row below its header, got none")
        return seen

    def _keep(self, row: int, line: int, cells: list[str]) -> None:
        picked = self._pick(cells)
        try:
            values = list(map(float, picked))
        except ValueError:
            values = [math.nan]
        # The sum of finite numbers may be infinite: then they are looked at one by one.
        if not math.isfinite(sum(values)) or "_" in "".join(picked):
            values = self._numbers(row, line, picked)
        self.values.extend(values)
        self.lines.append(line)
        for k, j, name in self._texts:
            text = cells[j].strip()
            if not text:
                place = _place(self._grid.path, row, line, name)
                raise InvalidInputError(f"{place} must be a label, got an empty cell")
            self.texts[k].append(sys.intern(text))  # equal labels are one string

    def _numbers(self, row: int, line: int, cells: Sequence[str]) -> list[float]:
        values = []
        for name, cell in zip(self._features, map(str.strip, cells), strict=True):
            place = _place(self._grid.path, row, line, name)
            if not _is_number(cell):
                told = repr(cell) if cell else "an empty cell"
                raise InvalidInputError(f"{place} must be a number, got {told}")
            values.append(float(cell))
            require(math.isfinite(values[-1]), f"{place} must be finite, got {cell}")
        return values


def _picker(at: list[int]) -> Callable[[list[str]], Sequence[str]]:
    if len(at) == 1:
        return lambda cells: (cells[at[0]],)
    return itemgetter(*at)


def _check_header(path: Path, header: list[str], delimiter: str) -> None:
    require(bool(header), f"{path} must have a header line with column names, got an empty file")
    distinct = len(set(header)) == len(header)
    twice = None if distinct else next(name for name in header if header.count(name) > 1)
    require(twice is None, f"{path} must have distinct column names, got {twice!r} twice")
    require(
        not all(_is_number(name) for name in header),
        f"{path} must have a header line with column names, got numbers: {', '.join(header[:3])}",
    )
    other = next((c for c in ";\t|" if c in header[0] and c != delimiter), None)
    require(
        len(header) > 1 or other is None,
        f"{path} must have columns separated by {delimiter!r}, got one column with {other!r} in its name; "
        f"see --delimiter",
    )


def _place(path: Path, row: int, line: int, column: str) -> str:
    return f"{path}, row {row} (line {line}), column {column!r}"


class _Places:
    """Where a cell is, in words; a class because it travels to other processes."""

    def __init__(self, path: Path, rows: Sequence[int], lines: Sequence[int]) -> None:
        self._path, self._rows, self._lines = path, rows, lines

    def __call__(self, row: int, column: str) -> str:
        return _place(self._path, row, self._lines[self._rows.index(row)], column)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's own spelling of numbers, not that of a file

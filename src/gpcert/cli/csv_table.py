"""CSV files: one header line with distinct names, then one row per point."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpcert.cli.tables import Columns, Table, missing_column
from gpcert.errors import InvalidInputError
from gpcert.validation import require

__all__ = ["read_csv", "read_grid"]


def read_csv(path: Path, columns: Columns, delimiter: str = ",") -> Table:
    """The table in a CSV file; rows are counted from 0 below the header, lines from 1."""
    content, header, lines = read_grid(path, delimiter)
    place = _Places(path, tuple(number for number, _ in lines))
    target, ids = columns.target, columns.id
    if target is not None and target not in header and columns.optional_target:
        target = None
    for name in (*(columns.features or ()), *columns.dropped, *(n for n in (target, ids) if n is not None)):
        if name not in header:
            raise missing_column(str(path), name, header)
    aside = {target, ids, *columns.dropped}
    features = columns.features or tuple(name for name in header if name not in aside)
    require(bool(features), f"{path} must have at least one feature column, got none")
    at = [header.index(name) for name in features]
    X = np.array([_numbers([cells[j] for j in at], features, place, i) for i, (_, cells) in enumerate(lines)])
    return Table(
        source=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        X=X,
        names=features,
        labels=None if target is None else _texts(lines, header, target, place),
        ids=None if ids is None else _texts(lines, header, ids, place),
        rows=tuple(range(len(lines))),
        place=place,
        target=target,
    )


def read_grid(path: Path, delimiter: str) -> tuple[bytes, list[str], list[tuple[int, list[str]]]]:
    """The bytes of the file, its header, and (line number, cells) of each row, as many as the header has."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header = [name.strip() for name in next(reader, [])]
        lines = [(reader.line_num, cells) for cells in reader if cells]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} must be UTF-8 text, got byte {error.start} that is not") from None
    except csv.Error as error:
        raise InvalidInputError(f"{path}, line {reader.line_num}: not CSV ({error})") from None
    _check_header(path, header, delimiter)
    for i, (number, cells) in enumerate(lines):
        require(
            len(cells) == len(header),
            f"{path}, row {i} (line {number}) must have {len(header)} cells, as the header has, "
            f"got {len(cells)}",
        )
    require(bool(lines), f"{path} must have at least one row below its header, got none")
    return content, header, lines


def _check_header(path: Path, header: list[str], delimiter: str) -> None:
    require(bool(header), f"{path} must have a header line with column names, got an empty file")
    twice = next((name for name in header if header.count(name) > 1), None)
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


class _Places:
    """Where a cell is, in words; a class because it travels to other processes."""

    def __init__(self, path: Path, lines: tuple[int, ...]) -> None:
        self._path = path
        self._lines = lines

    def __call__(self, row: int, column: str) -> str:
        return f"{self._path}, row {row} (line {self._lines[row]}), column {column!r}"


def _numbers(cells: Sequence[str], features: Sequence[str], place: _Places, row: int) -> list[float]:
    values = []
    for name, cell in zip(features, map(str.strip, cells), strict=True):
        if not _is_number(cell):
            told = repr(cell) if cell else "an empty cell"
            raise InvalidInputError(f"{place(row, name)} must be a number, got {told}")
        value = float(cell)
        require(math.isfinite(value), f"{place(row, name)} must be finite, got {cell}")
        values.append(value)
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's own spelling of numbers, not that of a file


def _texts(
    lines: list[tuple[int, list[str]]], header: list[str], name: str, place: _Places
) -> tuple[str, ...]:
    at = header.index(name)
    texts = tuple(cells[at].strip() for _, cells in lines)
    for i, text in enumerate(texts):
        require(bool(text), f"{place(i, name)} must be a label, got an empty cell")
    return texts

"""Parquet and Excel files as rows of values."""

from __future__ import annotations

import datetime
import hashlib
import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

from gpcert.cli.io.tables import SKIP, Bad, Reading, check_header, is_missing, picker
from gpcert.errors import InvalidInputError
from gpcert.formats import library
from gpcert.validation import composed, require

_FACTOR, _FREELY = 200, 1 << 26  # a workbook may unpack to so many times its size, and to so many bytes


class _Typed:
    """A file whose cells have types; all of it is in memory."""

    header: list[str]

    def __init__(self, path: Path, file: io.FileIO, reading: Reading) -> None:
        self.path, self._content = path, file.readall()
        try:
            self._open()
        except Exception as error:  # of a parser at a stranger's file: it may be any
            if isinstance(error, InvalidInputError):
                raise
            told = f"{path} must be a {path.suffix.lower()} file, got one that cannot be read"
            raise InvalidInputError(f"{told}: {str(error)[:80]}") from None
        check_header(path, self.header)

    def _open(self) -> None:
        raise NotImplementedError

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        """(line, cells) of each row."""
        raise NotImplementedError

    def numbers(self, cells: Sequence[Any]) -> list[float] | None:
        """The numbers in the cells; None: one of them may be none."""
        values = [cell for cell in cells if type(cell) is float and math.isfinite(cell)]
        return values if len(values) == len(cells) else None

    def number(self, cell: Any) -> float | Bad:
        """A double as it is, a whole number or truth value if a double holds it exactly."""
        if cell is None or cell == "":
            return Bad("must be a number, got an empty cell", "empty cells", SKIP)
        if isinstance(cell, datetime.date | datetime.time | datetime.timedelta):
            return Bad(f"must be a number, got the date or time {cell}", "dates")
        if not isinstance(cell, int | float | Decimal):
            return Bad(f"must be a number, got {str(cell)[:40]!r}", f"texts like {str(cell)[:40]!r}")
        try:
            value = float(cell)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            return Bad(f"must be finite, got {cell}", f"values like {cell}", SKIP * is_missing(cell))
        if isinstance(cell, int) and int(value) != cell:
            rule = "must be a whole number that a double holds exactly"
            return Bad(f"{rule}, got {cell}", f"whole numbers like {cell}")
        return value

    def digest(self) -> str:
        """The SHA-256 of the file."""
        return hashlib.sha256(self._content).hexdigest()


class ParquetGrid(_Typed):
    """Columns of a Parquet file; pyarrow reads it."""

    def _open(self) -> None:
        parquet = import_module("pyarrow.parquet")
        self._file = parquet.ParquetFile(library(".parquet").BufferReader(self._content))
        self._names = self._file.schema_arrow.names
        self.header = [composed(name) for name in self._names]

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        names = [self._names[j] for j in at]
        for batch in self._file.iter_batches(columns=list(dict.fromkeys(names))):
            columns = batch.to_pydict()
            for cells in zip(*(columns[name] for name in names), strict=True):
                yield 0, cells


class XlsxGrid(_Typed):
    """The only sheet with cells of an Excel workbook; openpyxl reads it: values, never formulas."""

    def _open(self) -> None:
        packed = zipfile.ZipFile(io.BytesIO(self._content))
        size = sum(part.file_size for part in packed.infolist())
        most = max(_FREELY, _FACTOR * len(self._content))
        require(size <= most, f"{self.path} must unpack to at most {most} bytes, got {size}")
        book = library(".xlsx").load_workbook(io.BytesIO(self._content), read_only=True, data_only=True)
        sheets = []
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what a file says of its size may be wrong
            head = next((cells for cells in sheet.iter_rows(values_only=True) if _filled(cells)), None)
            if head is not None:
                sheets.append((sheet, head))
        told = ", ".join(repr(sheet.title) for sheet, _ in sheets[:8]) or "none"
        require(len(sheets) == 1, f"{self.path} must have one sheet with cells, got {told}")
        self._sheet, head = sheets[0]
        self.header = ["" if name is None else composed(str(name).strip()) for name in head[: _filled(head)]]
        require(all(self.header), f"{self.path} must have a name above every column, got {self.header[:8]}")

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int, Sequence[Any]]]:
        n, pick, header = len(self.header), picker(at), True
        for line, cells in enumerate(self._sheet.iter_rows(values_only=True), 1):
            width = _filled(cells)
            if not width:
                continue
            told = f"{self.path}, line {line} must have {n} cells, as the header has, got {width}"
            require(width <= n, told)
            if not header:
                yield line, pick((*cells[:width], *(None,) * (n - width)))
            header = False


def _filled(cells: Sequence[Any]) -> int:
    """How many cells there are up to the last that holds something."""
    return next((j for j in range(len(cells), 0, -1) if cells[j - 1] not in (None, "")), 0)

"""Tables from files with named columns: CSV (compressed, too), Parquet, Excel.

All that is wrong with columns is one sentence. A CSV is read line by line, up to the last row that is wanted.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import math
import sys
import zipfile
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from gpcert.cli.io.tables import (
    ColumnChoice,
    DataTable,
    Reading,
    hashed,
    missing_column,
    outside,
    place_of,
)
from gpcert.errors import InvalidInputError
from gpcert.formats import library
from gpcert.validation import composed, require

_TOLD = 12  # columns in a sentence
#: Other programs' tables, which are no text.
_OTHERS = (".xls", ".xlsb", ".ods", ".pkl", ".feather", ".h5", ".mat", ".json", ".safetensors")
_MISSING = ("", "na", "n/a", "nan", "null")  # what programs write for nothing
_SKIP = "--missing skip leaves out rows with empty cells"
_FACTOR, _FREELY = 200, 1 << 26  # a workbook may unpack to this multiple of its size, or to this many bytes


class Bad(NamedTuple):
    """A cell that is no number: the rule and what was found; the same of a column, in few words."""

    message: str
    kind: str
    helps: str = ""  # an option, and what it does


def read_cells(
    path: Path, choice: ColumnChoice, reading: Reading | None = None, wanted: Sequence[int] | None = None
) -> DataTable:
    """The table in a file, or its rows wanted; rows count from 0 below the header, lines from 1."""
    reading = reading or Reading()
    suffix = path.suffix.lower()
    message = f"{path} must be a CSV, npz, .xlsx or .parquet file, got one that ends in {suffix}"
    require(suffix not in _OTHERS, message)
    library(suffix)
    kinds: dict[str, type[_Cells]] = {".xlsx": _Excel, ".parquet": _Parquet}
    with hashed(path) as (file, digest):
        cells = kinds.get(suffix, _Csv)(path, file, reading)
        target, ids, features = _choose(path, choice, cells.header)
        kept = _Rows(path, cells, features, (target, ids), reading.missing == "skip")
        seen = kept.take(wanted)
    if kept.bad:
        raise InvalidInputError(kept.sentence(choice))
    if wanted is not None and len(kept.rows) + kept.skipped < len(wanted):
        raise outside(str(path), seen, next(i for i in wanted if i >= seen))
    if not kept.rows:
        ((most, count),) = kept.empty.most_common(1)
        message = f"got {kept.skipped} with some, {count} of them in {cells.header[most]!r}"
        raise InvalidInputError(f"{path} must have a row without empty cells, {message}")
    found = DataTable(
        source=str(path),
        sha256=digest,
        X=np.frombuffer(kept.values, dtype=np.float64).reshape(len(kept.rows), len(features)),
        names=features,
        labels=None if target is None else tuple(kept.texts[0]),
        ids=None if ids is None else tuple(kept.texts[1]),
        rows=range(seen) if len(kept.rows) == seen else kept.rows,
        lines=kept.lines if isinstance(cells, _Csv | _Excel) else None,
        target=target,
        skipped=kept.skipped,
    )
    there = set(kept.rows)
    return found.take(None if wanted is None else [row for row in wanted if row in there])


def _choose(
    path: Path, choice: ColumnChoice, header: list[str]
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """Names of the columns of labels, of the rows' names, and of the features."""
    target, ids = choice.target, choice.id
    present = set(header)
    if target is not None and target not in present and choice.optional_target:
        target = None
    for name in (*(choice.features or ()), *choice.dropped, *(n for n in (target, ids) if n is not None)):
        if name not in present:
            raise missing_column(str(path), name, header)
    aside = {target, ids, *choice.dropped}
    features = choice.features or tuple(name for name in header if name not in aside)
    require(bool(features), f"{path} must have at least one feature column, got none")
    return target, ids, features


class _Rows:
    """What is kept of the rows: numbers of the features, texts of labels and names, line numbers."""

    def __init__(
        self, path: Path, cells: _Cells, features: Sequence[str], texts: Sequence[str | None], skip: bool
    ) -> None:
        self._path, self._cells, self._features, self._skip = path, cells, features, skip
        at = {name: j for j, name in enumerate(cells.header)}
        named = [(k, name) for k, name in enumerate(texts) if name is not None]
        self._at = [at[name] for name in (*features, *(name for _, name in named))]
        self._texts = [(k, len(features) + i, name) for i, (k, name) in enumerate(named)]
        self.values, self.lines = array("d"), array("q")
        self.rows: list[int] = []
        self.texts: list[list[str]] = [[] for _ in texts]
        self.skipped = 0
        self.empty: Counter[int] = Counter()  # of the skipped rows, by column
        self.bad: dict[str, tuple[str, Bad, int]] = {}  # by column: the first place, what is wrong, how many

    def take(self, wanted: Sequence[int] | None) -> int:
        """Read up to the last row that is wanted, None: all; the number of rows seen."""
        chosen, last = (None, math.inf) if wanted is None else (set(wanted), max(wanted))
        seen = 0
        for line, cells in self._cells.rows(self._at):
            if chosen is None or seen in chosen:
                self._keep(seen, line, cells)
            seen += 1
            if seen > last:
                break
        require(seen > 0, f"{self._path} must have at least one row below its header, got none")
        return seen

    def _keep(self, row: int, line: int | None, cells: Sequence[Any]) -> None:
        if self._skip and any(map(_is_missing, cells)):
            self.empty.update(j for j, cell in zip(self._at, cells, strict=True) if _is_missing(cell))
            self.skipped += 1
            return
        picked = cells[: len(self._features)]
        values = self._cells.numbers(picked)
        self.values.extend(self._one_by_one(row, line, picked) if values is None else values)
        self.lines.append(line or 0)
        self.rows.append(row)
        for k, j, name in self._texts:
            text = "" if cells[j] is None else str(cells[j]).strip()
            if not text:
                place = place_of(self._path, row, line, name)
                raise InvalidInputError(f"{place} must be a label, got an empty cell")
            self.texts[k].append(sys.intern(text))  # equal labels are one string

    def _one_by_one(self, row: int, line: int | None, cells: Sequence[Any]) -> list[float]:
        values = []
        for name, cell in zip(self._features, cells, strict=True):
            found = self._cells.number(cell)
            if isinstance(found, Bad):
                place, first, count = self.bad.get(name, (place_of(self._path, row, line, name), found, 0))
                self.bad[name] = place, first, count + 1
            else:
                values.append(found)
        return values

    def sentence(self, choice: ColumnChoice) -> str:
        """All that is wrong with columns, and what helps."""
        if len(self.bad) == 1:
            ((place, first, count),) = self.bad.values()
            message = f"{place} {first.message}" + (
                f", and {count - 1} more in this column" if count > 1 else ""
            )
        else:
            parts = [f"{name!r} ({bad.kind}, {n} in all)" for name, (_, bad, n) in self.bad.items()]
            more = f" and {len(parts) - _TOLD} more" if len(parts) > _TOLD else ""
            listed = ", ".join(parts[:_TOLD])
            message = f"{self._path} must have numbers in its feature columns, got others in {listed}{more}"
        helps = []
        if choice.droppable and choice.features is None and len(self.bad) < len(self._features):
            text = io.StringIO()
            csv.writer(text, lineterminator="").writerow(self.bad)
            helps.append(f"--drop {text.getvalue()!r} leaves {'it' if len(self.bad) == 1 else 'them'} out")
        helps += dict.fromkeys(bad.helps for _, bad, _ in self.bad.values())
        return "; ".join(filter(None, [message, *helps]))


class _Cells(ABC):
    """A header, and rows of cells: values of a Parquet or Excel file, of which all is in memory."""

    header: list[str]

    def __init__(self, path: Path, file: IO[bytes], reading: Reading) -> None:
        self.path = path
        try:
            self._open(file.read())
        except InvalidInputError:
            raise
        except Exception as error:  # of a parser at a stranger's file: it may be any
            message = f"{path} must be a {path.suffix.lower()} file, got one that cannot be read"
            raise InvalidInputError(f"{message}: {str(error)[:80]}") from None
        self._check_header()

    def _open(self, content: bytes) -> None:
        raise NotImplementedError

    @abstractmethod
    def rows(self, at: Sequence[int]) -> Iterator[tuple[int | None, Sequence[Any]]]:
        """(line number, None where a file has none; the cells at these places) of each row."""

    def numbers(self, cells: Sequence[Any]) -> list[float] | None:
        """The numbers in the cells; None: one of them may be none."""
        values = [cell for cell in cells if type(cell) is float and math.isfinite(cell)]
        return values if len(values) == len(cells) else None

    def number(self, cell: Any) -> float | Bad:
        """A double as it is, a whole number or truth value if a double holds it exactly."""
        if cell is None or cell == "":
            return Bad("must be a number, got an empty cell", "empty cells", _SKIP)
        if isinstance(cell, datetime.date | datetime.time | datetime.timedelta):
            return Bad(f"must be a number, got the date or time {cell}", "dates")
        if not isinstance(cell, int | float | Decimal):
            return Bad(f"must be a number, got {str(cell)[:40]!r}", f"texts like {str(cell)[:40]!r}")
        try:
            value = float(cell)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            return Bad(f"must be finite, got {cell}", f"values like {cell}", _SKIP * _is_missing(cell))
        if isinstance(cell, int) and int(value) != cell:
            rule = "must be a whole number that a double holds exactly"
            return Bad(f"{rule}, got {cell}", f"whole numbers like {cell}")
        return value

    def _check_header(self, delimiter: str | None = None) -> None:
        """Distinct names, no numbers; `delimiter`: of a CSV."""
        path, header = self.path, self.header
        require(any(header), f"{path} must have a header line with column names, got an empty file")
        ((twice, count),) = Counter(header).most_common(1)
        require(count == 1, f"{path} must have distinct column names, got {twice!r} twice")
        require(
            not all(map(_is_number, header)),
            f"{path} must have a header line with column names, got numbers: {', '.join(header[:3])}",
        )
        other = next((c for c in ";\t|," if c in header[0] and c != delimiter), None)
        require(
            len(header) > 1 or other is None or delimiter is None,
            f"{path} must have columns separated by {delimiter!r}, got one column with {other!r} in its "
            f"name; see --delimiter",
        )


class _Parquet(_Cells):
    """Columns of a Parquet file; pyarrow reads it."""

    def _open(self, content: bytes) -> None:
        parquet = import_module("pyarrow.parquet")
        self._file = parquet.ParquetFile(library(".parquet").BufferReader(content))
        self._names = self._file.schema_arrow.names
        self.header = [composed(name) for name in self._names]

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int | None, Sequence[Any]]]:
        names = [self._names[j] for j in at]
        for batch in self._file.iter_batches(columns=list(dict.fromkeys(names))):
            columns = batch.to_pydict()
            for cells in zip(*(columns[name] for name in names), strict=True):
                yield None, cells


class _Excel(_Cells):
    """The only sheet with cells of an Excel workbook; openpyxl reads it: values, never formulas."""

    def _open(self, content: bytes) -> None:
        packed = zipfile.ZipFile(io.BytesIO(content))
        size = sum(part.file_size for part in packed.infolist())
        most = max(_FREELY, _FACTOR * len(content))
        require(size <= most, f"{self.path} must unpack to at most {most} bytes, got {size}")
        book = library(".xlsx").load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = []
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # what a file says of its size may be wrong
            head = next((cells for cells in sheet.iter_rows(values_only=True) if _filled(cells)), None)
            if head is not None:
                sheets.append((sheet, head))
        message = ", ".join(repr(sheet.title) for sheet, _ in sheets[:8]) or "none"
        require(len(sheets) == 1, f"{self.path} must have one sheet with cells, got {message}")
        self._sheet, head = sheets[0]
        self.header = ["" if name is None else composed(str(name).strip()) for name in head[: _filled(head)]]
        require(all(self.header), f"{self.path} must have a name above every column, got {self.header[:8]}")

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int | None, Sequence[Any]]]:
        n, pick, header = len(self.header), _picker(at), True
        for line, cells in enumerate(self._sheet.iter_rows(values_only=True), 1):
            width = _filled(cells)
            if not width:
                continue
            message = f"{self.path}, line {line} must have {n} cells, as the header has, got {width}"
            require(width <= n, message)
            if not header:
                yield line, pick((*cells[:width], *(None,) * (n - width)))
            header = False


class _Csv(_Cells):
    """Texts of a CSV, of which no more is read than is asked for."""

    def __init__(self, path: Path, file: IO[bytes], reading: Reading) -> None:
        self.path, self._decimal, self._encoding = path, reading.decimal, reading.encoding
        self._bytes: Any = file
        if path.suffix.lower() == ".gz":
            self._bytes = io.BufferedReader(gzip.GzipFile(fileobj=file))
        self._utf8 = self._encoding.lower().replace("_", "-") in ("utf-8", "utf8")
        # A mark at the beginning, which spreadsheets write, is no letter of the first name.
        text = io.TextIOWrapper(self._bytes, "utf-8-sig" if self._utf8 else self._encoding, newline="")
        self._reader = csv.reader(text, delimiter=reading.between, strict=True)
        self.header = [composed(name.strip()) for name in next(self._lines(), [])]
        self._check_header(reading.between)

    def rows(self, at: Sequence[int]) -> Iterator[tuple[int | None, Sequence[Any]]]:
        n, pick = len(self.header), _picker(at)
        for row, cells in enumerate(filter(None, self._lines())):
            line = self._reader.line_num
            if len(cells) != n:
                raise InvalidInputError(
                    f"{self.path}, row {row} (line {line}) must have {n} cells, as the header has, "
                    f"got {len(cells)}"
                )
            yield line, pick(cells)

    def numbers(self, cells: Sequence[str]) -> list[float] | None:
        """The numbers in the cells; None: one of them may be none."""
        if self._decimal == ",":
            if "." in "".join(cells):
                return None
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            values = list(map(float, cells))
        except ValueError:
            return None
        # The sum of finite numbers may be infinite: then they are looked at one by one.
        return values if math.isfinite(sum(values)) and "_" not in "".join(cells) else None

    def number(self, cell: str) -> float | Bad:
        """One cell."""
        cell = cell.strip()
        if not cell:
            return Bad("must be a number, got an empty cell", "empty cells", _SKIP)
        found = self.numbers([cell])
        if found is not None:
            return found[0]
        try:
            number = math.isfinite(float(cell))
        except ValueError:
            number = True
        if number:
            return Bad(f"must be a number, got {cell!r}", f"texts like {cell!r}", self._hint(cell))
        return Bad(f"must be finite, got {cell}", f"values like {cell}", _SKIP * _is_missing(cell))

    def _hint(self, cell: str) -> str:
        if _is_missing(cell):
            return _SKIP
        other = "." if self._decimal == "," else ","
        decimal = cell.replace(other, "", 1).lstrip("+-").isdigit()
        return f"--decimal {other!r} reads such numbers" if decimal else ""

    def _lines(self) -> Iterator[list[str]]:
        try:
            yield from self._reader
        except UnicodeDecodeError as error:
            byte = self._bytes.tell() - len(error.object) + error.start
            name = "UTF-8" if self._utf8 else self._encoding
            message = f"{self.path} must be {name} text, got byte {byte} that is not; see --encoding"
            raise InvalidInputError(message) from None
        except UnicodeError as error:  # UTF-16 without its mark
            raise InvalidInputError(f"{self.path} must be {self._encoding} text, got: {error}") from None
        except csv.Error as error:
            raise InvalidInputError(f"{self.path}, line {self._reader.line_num}: not CSV ({error})") from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInputError(f"{self.path} must be a gzip file, got: {error}") from None


def _is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing, in one of the ways that programs write it."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _MISSING)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _picker(at: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes the cells at these places."""
    if len(at) == 1:
        return lambda cells: (cells[at[0]],)
    return itemgetter(*at)


def _filled(cells: Sequence[Any]) -> int:
    """How many cells there are up to the last that holds something."""
    return next((j for j in range(len(cells), 0, -1) if cells[j - 1] not in (None, "")), 0)

"""What the name of a file says: the one place that reads extensions, and writes tables by them."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from gpcert.extras import extra
from gpcert.files import write_whole
from gpcert.html import visible
from gpcert.validation import as_path, require

#: The extensions of tables, and the library that each needs.
TABLES = {".csv": None, ".parquet": "pyarrow", ".xlsx": "openpyxl"}
_EXACT = 2**53  # spreadsheets have doubles only
_LINES = 2**20  # of one sheet
#: What a spreadsheet takes for the beginning of a formula; wide forms as well, which it may narrow.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def extension(what: str, path: str | os.PathLike[str], *known: str) -> str:
    """The extension in small letters, which must be one of those known, and can be written here."""
    place = as_path(what, path)
    found = place.suffix.lower()
    *head, last = known
    rule = f"{', '.join(head)} or {last}" if head else last
    require(found in known, f"{what} must end in {rule}, got {place.name or str(path)!r}")
    library(found)
    return found


def library(suffix: str) -> Any:
    """The library for tables of this extension; None: there is no need for one."""
    name = TABLES.get(suffix)
    return None if name is None else extra(name, f"a {suffix} file")


def check_lines(path: Path, lines: int) -> None:
    """A sheet holds a limited number of lines."""
    fits = path.suffix.lower() != ".xlsx" or lines < _LINES
    require(
        fits, f"a .xlsx file must hold fewer than {_LINES} lines, got {lines}: .csv and .parquet hold all"
    )


def write_table(path: Path, table: Mapping[str, Sequence[Any]]) -> None:
    """Columns into a CSV, Parquet or Excel file, whole or not at all; numbers exactly, no text a formula."""
    writers: dict[str, Callable[[Mapping[str, Sequence[Any]]], str | bytes]]
    writers = {".csv": _csv, ".parquet": _parquet, ".xlsx": _xlsx}
    write_whole(path, writers[extension("path", path, *TABLES)](table))


def _csv(table: Mapping[str, Sequence[Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # lines end as in RFC 4180: with "\n" a lone "\r" in a text would not be quoted
    for line in _lines(table):
        writer.writerow([_cell(value) if isinstance(value, str) else value for value in line])
    return text.getvalue()


def _lines(table: Mapping[str, Sequence[Any]]) -> Iterable[tuple[Any, ...]]:
    return chain([tuple(table)], zip(*table.values(), strict=True))


def _cell(text: str) -> str:
    """A text as it is read, no formula and without what would turn a line round."""
    return f"'{visible(text)}" if _is_formula(text) else visible(text)


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet could run it; a number is none."""
    if not text.lstrip(" ").startswith(_FORMULA):
        return False
    with suppress(ValueError):
        float(text)
        return False
    return True


def _parquet(table: Mapping[str, Sequence[Any]]) -> bytes:
    arrow, parquet = library(".parquet"), import_module("pyarrow.parquet")
    sink = io.BytesIO()
    parquet.write_table(arrow.table({name: _stored(arrow, each) for name, each in table.items()}), sink)
    return sink.getvalue()


def _stored(arrow: Any, values: Sequence[Any]) -> Any:
    """A column of one type; of names that have none (tuples, intervals, numbers and words), as texts."""
    if not any(isinstance(value, tuple) for value in values):
        with suppress(arrow.lib.ArrowException, TypeError):
            return arrow.array(list(values))
    return arrow.array([str(value) for value in values])


def _xlsx(table: Mapping[str, Sequence[Any]]) -> bytes:
    book = library(".xlsx").Workbook(write_only=True)
    sheet = book.create_sheet("gpcert")
    cells = import_module("openpyxl.cell.cell")
    for line in _lines(table):
        made = [cells.WriteOnlyCell(sheet) for _ in line]
        for cell, value in zip(made, line, strict=True):
            if value is None:
                continue
            number = _is_number(value)
            cell.value = repr(float(value)) if number else visible(str(value))
            cell.data_type = (
                "n" if number else "s"
            )  # openpyxl would round a number to 16 digits, and run "=1"
        sheet.append(made)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def _is_number(value: Any) -> bool:
    """Whether a spreadsheet has it: a double."""
    if isinstance(value, Integral):
        return not isinstance(value, bool) and abs(int(value)) <= _EXACT
    return isinstance(value, Real) and math.isfinite(value)

"""Tables as files: numbers come back bit for bit, texts of strangers as texts, the extension decides."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpcert as gc
from gpcert.formats import check_lines, extension, write_table

FORMULAS = [
    "a\r=1",
    "=cmd|'/c calc'!A0",
    "+1+1",
    "-1-cmd",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1",
    "＝1",
    "=1\x00\x1f",
    "#N/A",
]
PLAIN = ["-1.5", "+2", "-inf", "Ann", "", "a=b", "née", "2024-01-01", "a\u202eb"]


def test_no_text_is_a_formula(tmp_path: Path) -> None:
    table = {"id": FORMULAS + PLAIN, "=1+1": [-1.0] * len(FORMULAS + PLAIN)}
    for name in ("t.csv", "t.xlsx", "t.parquet"):
        write_table(tmp_path / name, table)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert head == ["id", "'=1+1"]
    codes = {"\r": "\\r", "\x00": "\\x00", "\x1f": "\\x1f", "\u202e": "\\u202e"}
    shown = [
        "".join(codes.get(c, c) for c in text) for text in FORMULAS + PLAIN
    ]  # nothing turns a line round
    ends = len(FORMULAS) - 1
    quoted = [f"'{text}" for text in shown[1:ends]]
    assert [cell for cell, _ in lines] == [shown[0], *quoted, *shown[ends:]]
    assert {number for _, number in lines} == {"-1.0"}  # a number, not a text
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    cells = [cell for (cell,) in sheet.iter_rows(max_col=1)]
    assert not {cell.data_type for row in sheet.iter_rows() for cell in row} & {"f", "e"}
    assert [cell.value or "" for cell in cells[1:]] == shown
    assert pd.read_parquet(tmp_path / "t.parquet")["id"].tolist() == FORMULAS + PLAIN


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(-(2**70), 2**70))
def test_numbers_are_exact(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], whole: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.xlsx"
    write_table(path, {"x": [np.float64(x) for x in numbers], "n": [whole] * len(numbers)})
    lines = list(openpyxl.load_workbook(path).active.iter_rows(min_row=2, values_only=True))
    assert [float(x).hex() for x, _ in lines] == [x.hex() if x else (0.0).hex() for x in numbers]
    assert {int(n) for _, n in lines} == {whole}  # as text where a spreadsheet would round it


def test_what_cannot_be_in_a_sheet(tmp_path: Path) -> None:
    write_table(tmp_path / "t.xlsx", {"x": [float("inf"), float("nan"), (1, "a"), True, None]})
    lines = openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows(min_row=2, values_only=True)
    assert [value for (value,) in lines][:4] == ["inf", "nan", "(1, 'a')", "True"]
    check_lines(Path("t.csv"), 2**30)
    with pytest.raises(gc.InvalidInputError, match="must hold fewer than 1048576 lines, got 1048576"):
        check_lines(Path("t.XLSX"), 2**20)


def test_the_extension_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert extension("path", "a/b.JSON", ".json") == ".json"
    for name in ("a.jsn", "a", ".json", "-", "a.json.gz"):
        with pytest.raises(gc.InvalidInputError, match=r"^--output must end in .json or .csv, got "):
            extension("--output", name, ".json", ".csv")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(gc.InvalidInputError, match=r"a .xlsx file needs openpyxl, got none: pip install 'gp"):
        extension("path", "a.xlsx", ".xlsx")

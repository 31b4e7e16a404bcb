"""Tables as other programs write them: compressed, in Excel and Parquet, with commas, other letters, gaps."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpcert as gc
from gpcert.cli import main
from gpcert.cli.io.cells import read_cells
from gpcert.cli.io.tables import ColumnChoice, Reading
from gpcert.errors import InvalidInputError

COLUMNS = ColumnChoice(features=("b", "a"), target="y", id="who")
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def frame(n: int = 9) -> pd.DataFrame:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, n)) * 10.0 ** random.integers(-300, 300, (2, n))
    labels = ["ny"[i % 2] for i in range(n)]
    return pd.DataFrame({"who": [f"né {i}" for i in range(n)], "a": a, "c": "text", "b": b, "y": labels})


def excel(path: Path, table: pd.DataFrame) -> None:
    """Doubles with all their digits, which openpyxl does not write by itself."""
    book = openpyxl.Workbook()
    book.active.append(list(table.columns))
    for line, values in enumerate(table.itertuples(index=False), 2):
        for j, value in enumerate(values, 1):
            if not (isinstance(value, float) and np.isnan(value)) and value is not None:
                cell = book.active.cell(line, j, repr(value) if isinstance(value, float) else value)
                cell.data_type = "n" if isinstance(value, float) else cell.data_type
    book.save(path)


def every(folder: Path, table: pd.DataFrame) -> dict[Path, Reading]:
    """The same table in every way."""
    folder.mkdir(exist_ok=True)
    ways = {"t.csv": {}, "t.csv.GZ": {"compression": "gzip"}, "latin.txt": {"encoding": "latin-1"}}
    ways |= {"utf16.csv": {"encoding": "utf-16"}, "semi.csv": {"sep": ";", "decimal": ","}}
    for name, options in ways.items():
        table.to_csv(folder / name, index=False, **options)
    excel(folder / "t.XLSX", table)
    table.to_parquet(folder / "t.parquet")
    others = {"latin.txt": Reading(encoding="latin-1"), "utf16.csv": Reading(encoding="utf-16")}
    others |= {"semi.csv": Reading(decimal=",")}
    return {path: others.get(path.name, Reading()) for path in sorted(folder.iterdir())}


def test_one_table_in_every_format(tmp_path: Path) -> None:
    """Bit for bit what pandas holds."""
    table = frame()
    for path, reading in every(tmp_path / "t", table).items():
        for wanted in (None, [8, 0, 3]):
            found = read_cells(path, COLUMNS, reading, wanted)
            rows = list(range(9)) if wanted is None else wanted
            assert found.X.tolist() == table[["b", "a"]].to_numpy()[rows].tolist(), path
            assert found.labels == tuple(table["y"][rows]), path
            assert found.ids == tuple(table["who"][rows]), path
            assert list(found.rows) == rows
        with pytest.raises(InvalidInputError, match=r"--rows must be in 0\.\.8 for .*, got 9"):
            read_cells(path, COLUMNS, reading, [0, 9])


@given(x=FINITE, decimal=st.sampled_from([".", ","]))
def test_a_decimal_is_its_nearest_double(
    x: float, decimal: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "decimal.csv"
    path.write_text(f"a;b\n {repr(x).replace('.', decimal)} ;1\n", encoding="utf-8")
    reading = Reading(delimiter=";", decimal=decimal)
    assert read_cells(path, ColumnChoice(features=("a",)), reading).X.tolist() == [[x]]


def test_columns_with_types_are_exact_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"f": np.array([0.1, 3.0], np.float32), "i": [2**53, -(2**60)], "t": [True, False]}
    pd.DataFrame(columns).to_parquet(path)
    exact = [[float(np.float32(0.1)), 2.0**53, 1.0], [3.0, -(2.0**60), 0.0]]
    assert read_cells(path, ColumnChoice()).X.tolist() == exact
    for column, told in (
        (
            {"i": [1, 2**53 + 1]},
            "row 1, column 'i' must be a whole number that a double holds exactly, got 90071",
        ),
        (
            {"d": pd.to_datetime(["2024-01-01"])},
            "row 0, column 'd' must be a number, got the date or time 2024-01",
        ),
        ({"x": ["1.5"]}, "row 0, column 'x' must be a number, got '1.5'"),
        ({"x": [1.0, np.inf]}, "row 1, column 'x' must be finite, got inf"),
        ({"x": [[1.0]]}, "column 'x' must be a number"),
    ):
        pd.DataFrame(column).to_parquet(path)
        with pytest.raises(InvalidInputError, match=told):
            read_cells(path, ColumnChoice())


def test_rows_with_gaps_are_left_out_only_when_asked(tmp_path: Path) -> None:
    table = frame()
    table.loc[[1, 4], "a"] = np.nan
    table.loc[6, "y"] = None
    table.loc[2, "c"] = None  # a column that is not read
    kept = [0, 2, 3, 5, 7, 8]
    for path, reading in every(tmp_path / "t", table).items():
        with pytest.raises(InvalidInputError, match=r"row 6.*'y' must be a label, got an empty cell"):
            read_cells(path, COLUMNS, reading)
        skip = Reading(**vars(reading) | {"missing": "skip"})
        found = read_cells(path, COLUMNS, skip)
        assert (list(found.rows), found.skipped) == (kept, 3), path
        assert found.X.tolist() == table[["b", "a"]].to_numpy()[kept].tolist()
        assert found.ids == tuple(f"né {i}" for i in kept)
        assert found.place(5, "a").startswith(f"{path}, row 8")
        some = read_cells(path, COLUMNS, skip, [7, 4, 0])
        assert (list(some.rows), some.skipped, some.ids) == ([7, 0], 1, ("né 7", "né 0"))
        with pytest.raises(
            InvalidInputError, match="a row without empty cells, got 2 with some, 2 of them in 'a'"
        ):
            read_cells(path, COLUMNS, skip, [4, 1])
    for cell in ("NA", "NaN", "null", " ", "n/a"):
        (tmp_path / "cell.csv").write_text(f"a,b\n{cell},1\n2,3\n")
        assert read_cells(tmp_path / "cell.csv", ColumnChoice(), Reading(missing="skip")).X.tolist() == [
            [2.0, 3.0]
        ]
        with pytest.raises(InvalidInputError, match="--missing skip leaves out"):
            read_cells(tmp_path / "cell.csv", ColumnChoice())


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "t.csv", "--target", "y", "--max-evals", "0", "--quiet", "-o", "m.safetensors")


def test_all_bad_columns_are_told_at_once(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [["a", 'sex, "or"', "k", "when", "gap", "y"]]
    lines += [[i / 9, "mf"[i % 2], 1, "2024-01-01", "" if i == 4 else i, "ny"[i % 2]] for i in range(9)]
    with Path("t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    assert main([*FIT]) == 2
    told = capsys.readouterr().err
    assert told == (
        "gpcert: t.csv must have numbers in its feature columns, got others in 'sex, \"or\"' "
        "(texts like 'm', 9 in all), 'when' (texts like '2024-01-01', 9 in all), 'gap' "
        "(empty cells, 1 in all); "
        '--drop \'"sex, ""or""",when,gap\' leaves them out; --missing skip leaves out rows with empty cells\n'
    )
    assert main([*FIT, "--drop", '"sex, ""or""",when', "--missing", "skip"]) == 0  # what the sentence says
    seen = capsys.readouterr()
    assert "t.csv: 1 of 9 rows have empty cells and are left out" in seen.err
    assert "columns that are constant tell nothing, and --drop leaves them out: 'k'" in seen.err
    assert "trained on 8 rows, 3 features" in seen.out
    ask = ["range", "m.safetensors", "t.csv", "--radius", "0.1", "--quiet", "--jobs", "1"]
    assert main(ask) == 2
    assert (
        "row 4 (line 6), column 'gap' must be a number, got an empty cell; --missing"
        in capsys.readouterr().err
    )
    assert main([*ask, "--missing", "skip", "-o", "a.csv"]) == 0
    assert "1 of 9 rows have empty cells" in capsys.readouterr().err
    assert pd.read_csv("a.csv")["row"].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]  # rows keep their positions


@pytest.mark.parametrize(
    ("name", "content", "options", "told"),
    [
        ("t.csv", b"a,y\n\xe9,n\n", (), "t.csv must be UTF-8 text, got byte 4 that is not; see --encoding"),
        ("t.csv", b"a,y\n1,n\n", ("--encoding", "utf-16"), "t.csv must be utf-16 text, got"),
        (
            "t.csv",
            b"a,y\n1,n\n",
            ("--encoding", "rot13"),
            "--encoding: must be an encoding like latin-1, got",
        ),
        ("t.csv", b"a\ty\n1\tn\n", (), r"got one column with '\t' in its name; see --delimiter"),
        (
            "t.csv",
            b'a,b,y\n"1,5",2,n\n',
            (),
            "must be a number, got '1,5'; --drop 'a' leaves it out; --decimal ','",
        ),
        (
            "t.csv",
            b"a;y\n1.5;n\n",
            ("--decimal", ","),
            "must be a number, got '1.5'; --decimal '.' reads such",
        ),
        ("t.csv", b"a;y\n1.234,5;n\n", ("--decimal", ","), "must be a number, got '1.234,5'"),
        (
            "t.csv",
            b"a,y\n",
            ("--decimal", ",", "--delimiter", ","),
            "--decimal must be another character than",
        ),
        ("t.csv.gz", b"no", (), "t.csv.gz must be a gzip file, got"),
        ("t.csv.gz", gzip.compress(b"a,y\n1,n\n", mtime=0)[:-9], (), "t.csv.gz must be a gzip file, got"),
        ("t.xlsx", b"PK no", (), "t.xlsx must be a .xlsx file, got one that cannot be read"),
        ("t.parquet", b"PAR1 no", (), "t.parquet must be a .parquet file, got one that cannot be read"),
        ("t.ods", b"PK", (), "t.ods must be a CSV, npz, .xlsx or .parquet file, got one that ends in .ods"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    inside: Path,
    name: str,
    content: bytes,
    options: tuple[str, ...],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path(name).write_bytes(content)
    try:
        status = main([FIT[0], name, *FIT[2:], *options])
    except SystemExit as ended:
        status = int(str(ended.code))
    seen = capsys.readouterr().err
    assert (status, seen.count("\n")) == (2, 1)
    assert told in seen


def test_workbooks_that_are_no_table(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for cells in ((), ("a", "b", "y"), (), (1, None, "n"), ("=1+1", 2.5, "n")):
        book.active.append(cells)
    book.create_sheet("notes")
    book.save("t.xlsx")
    with pytest.raises(InvalidInputError) as told:  # a formula that nobody has worked out is an empty cell
        read_cells(Path("t.xlsx"), ColumnChoice(target="y"))
    assert "'b' (empty cells, 1 in all), 'a' (empty cells, 1 in all)" in str(told.value)
    book.active.append((1, 2, "y", 4))
    book.save("t.xlsx")
    with pytest.raises(
        InvalidInputError, match=r"t.xlsx, line 6 must have 3 cells, as the header has, got 4"
    ):
        read_cells(Path("t.xlsx"), ColumnChoice(target="y"))
    book["notes"].append(["hello"])
    book.save("t.xlsx")
    with pytest.raises(
        InvalidInputError, match=r"t.xlsx must have one sheet with cells, got 'Sheet', 'notes'"
    ):
        read_cells(Path("t.xlsx"), ColumnChoice(target="y"))
    monkeypatch.setattr("gpcert.cli.io.cells._FREELY", 100)
    monkeypatch.setattr("gpcert.cli.io.cells._FACTOR", 1)
    with pytest.raises(InvalidInputError, match=r"t.xlsx must unpack to at most"):
        read_cells(Path("t.xlsx"), ColumnChoice(target="y"))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        InvalidInputError, match=r"a .xlsx file needs openpyxl, got none: pip install 'gpcert\[tab"
    ):
        read_cells(Path("t.xlsx"), ColumnChoice(target="y"))


def test_radii_come_from_any_of_them(inside: Path) -> None:
    table = pd.DataFrame({"a": np.linspace(0, 1, 8), "r": np.linspace(0.0, 0.1, 8), "y": ["n", "y"] * 4})
    table.to_csv("t.csv", index=False)
    table.loc[2, "a"] = np.nan
    table.to_parquet("t.parquet")
    assert main([*FIT, "--drop", "r"]) == 0
    ask = ["range", "m.safetensors", "t.parquet", "--radius-column", "r", "--missing", "skip", "-o", "a.json"]
    assert main(ask) == 0
    kept = [0, 1, 3, 4, 5, 6, 7]
    assert [answer.region.radius for answer in gc.load_answers("a.json")] == table["r"][kept].tolist()

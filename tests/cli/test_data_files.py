"""Data files: what is read is what another reader reads, once, and no more of it than is asked for."""

from __future__ import annotations

import csv
import hashlib
import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.cli.io import sources
from gpcert.cli.io.cells import read_cells
from gpcert.cli.io.sources import read_npz
from gpcert.cli.io.tables import ColumnChoice, DataTable
from gpcert.errors import InvalidInputError

COLUMNS = ColumnChoice(features=("b", "a"), target="y", id="who")


def peak(action: Callable[[], Any]) -> int:
    """The most bytes that Python and numpy held during the action."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def write_csv(path: Path, n: int, ending: str = "\r\n", after: str = "") -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, 2))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=ending)
        writer.writerow(["who", "a", "other", "b", "y"])
        for i, (a, b) in enumerate(X.tolist()):
            writer.writerow([f"né {i}", repr(a), 'quoted "text",\nof two lines', f" {b!r} ", "yx"[i % 2]])
        file.write(after)
    return X


def expected(table: DataTable, X: np.ndarray, rows: list[int], digest: str) -> None:
    np.testing.assert_array_equal(table.X, X[rows][:, ::-1])
    assert table.ids == tuple(f"né {i}" for i in rows)
    assert table.labels == tuple("yx"[i % 2] for i in rows)
    assert list(table.rows) == rows
    assert table.sha256 == digest
    # Two lines for each row above, and the header; quoted lines count as they do in an editor.
    assert [table.place(k, "a") for k in range(len(rows))] == [
        f"{table.source}, row {i} (line {2 * i + 3}), column 'a'" for i in rows
    ]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_rows_of_a_csv_in_any_order(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "t.csv"
    X = write_csv(path, 50, ending)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # the mark that spreadsheets write
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for wanted in (None, [0, 1, 2], [7], [49, 0, 20, 3]):
        expected(read_cells(path, COLUMNS, wanted=wanted), X, wanted or list(range(50)), digest)


def test_what_comes_after_the_last_row_asked_for_is_only_hashed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    X = write_csv(path, 5, after="no,such,row\n" * 3000)
    with path.open("ab") as file:
        file.write(b"\xff")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    expected(read_cells(path, COLUMNS, wanted=[4, 2]), X, [4, 2], digest)
    with pytest.raises(InvalidInputError, match=r"row 5 \(line 12\) must have 5 cells"):
        read_cells(path, COLUMNS)


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", 5)
    np.savez(tmp_path / "t.npz", X=np.zeros((5, 2)))
    for table in (
        lambda rows: read_cells(tmp_path / "t.csv", COLUMNS, wanted=rows),
        lambda rows: read_npz(tmp_path / "t.npz", ColumnChoice(), rows),
    ):
        with pytest.raises(InvalidInputError, match=r"--rows must be in 0\.\.4 for .*, got 5"):
            table([0, 5])


@given(before=st.integers(0, 300_000), bad=st.binary(min_size=1, max_size=3))
def test_the_byte_that_is_no_text_is_counted_from_the_beginning(
    before: int, bad: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    content = b"a,y\n" + b"1.5,n\n" * (before // 6) + b"1," + bad + b"\n"
    path.write_bytes(content)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        with pytest.raises(InvalidInputError, match=f"got byte {error.start} that is not"):
            read_cells(path, ColumnChoice(target="y"))


def test_memory_for_a_csv_is_that_of_its_numbers(tmp_path: Path) -> None:
    """All rows: little more than the array; three rows: a few blocks, however long the file is."""
    path = tmp_path / "t.csv"
    row = ",".join(["-0.123456"] * 20)
    header = ",".join(f"f{j}" for j in range(20))
    n = 20_000
    path.write_text(f"{header}\n" + f"{row}\n" * n, encoding="utf-8")
    whole = n * 20 * 8
    assert path.stat().st_size > 4_000_000
    # An array that grows is moved now and then: for a moment it may be there twice.
    assert peak(lambda: read_cells(path, ColumnChoice())) < 2.5 * whole
    assert peak(lambda: read_cells(path, ColumnChoice(), wanted=[0, 1, 2])) < 0.5 * whole


def save(path: Path, compress: bool, **arrays: np.ndarray) -> Path:
    (np.savez_compressed if compress else np.savez)(path, **arrays)
    return path


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_an_npz_are_those_of_numpy(tmp_path: Path, compress: bool, dtype: Any, order: Any) -> None:
    X = np.asarray(np.random.default_rng(0).normal(size=(60, 3)) * 5, dtype=dtype, order=order)
    y = np.array([f"class {i % 3}" for i in range(60)])
    path = save(tmp_path / "t.npz", compress, X=X, y=y, feature_names=np.array(["u", "v", "w"]))
    for wanted in (None, [59, 0, 7], [5], list(range(60))):
        rows = list(range(60)) if wanted is None else wanted
        table = read_npz(path, ColumnChoice(features=("w", "u")), wanted)
        np.testing.assert_array_equal(table.X, X.astype(np.float64)[rows][:, [2, 0]])
        assert table.labels == tuple(y[rows])
        assert list(table.rows) == rows
        assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def forged(path: Path, **members: tuple[str, int]) -> Path:
    """An npz whose members have these headers and so many zeros, which compress a thousandfold."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, zeros) in members.items():
            header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode()
            head = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(head)
                for _ in range(zeros >> 20):
                    member.write(bytes(1 << 20))
                member.write(bytes(zeros % (1 << 20)))
    return path


@pytest.mark.parametrize(
    ("shape", "zeros", "told"),
    [
        (
            "(1000000000000, 4)",
            64,
            r"64 bytes of 'X', of which shape \(10{12}, 4\) has 32",
        ),
        ("(1000000000000, 0)", 0, r"must hold points with features, got shape \(10{12}, 0\)"),
        ("(-4, -4)", 128, "must"),
        ("(2, 2, 2)", 64, "must be two-dimensional"),
        ("(2,)", 16, "must be two-dimensional"),
        ("()", 8, "must be two-dimensional"),
    ],
)
def test_headers_that_promise_what_is_not_there(tmp_path: Path, shape: str, zeros: int, told: str) -> None:
    path = forged(tmp_path / "t.npz", X=(shape, zeros))
    for wanted in (None, [0]):

        def refused(rows: list[int] | None = wanted) -> None:
            with pytest.raises(InvalidInputError, match=told):
                read_npz(path, ColumnChoice(), rows)

        assert peak(refused) < 4 << 20


@given(at=st.integers(0, 58), text=st.text(st.sampled_from("{}()[]'\",:<|fOULV09 \n\0-e"), max_size=4))
def test_a_header_is_never_run_and_never_a_traceback(
    at: int, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
    header = (good[:at] + text + good[at + 1 :] + "\n").encode()
    path = tmp_path_factory.getbasetemp() / "header.npz"
    with zipfile.ZipFile(path, "w") as archive:
        head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        archive.writestr("X.npy", head + bytes(32))
    try:
        found = read_npz(path, ColumnChoice())
    except InvalidInputError as error:
        told = str(error)
    else:
        assert found.X.size > 0
        return
    assert str(path) in told


def test_a_bomb_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_FREELY", 1 << 22)
    path = forged(tmp_path / "t.npz", X=("(2097152, 4)", 1 << 26))
    assert path.stat().st_size < 1 << 18

    def refused() -> None:
        with pytest.raises(InvalidInputError, match="X must need at most 4194304 bytes of memory"):
            read_npz(path, ColumnChoice())

    assert peak(refused) < 4 << 20


def test_damage_in_an_npz_is_one_sentence(tmp_path: Path) -> None:
    path = save(tmp_path / "t.npz", True, X=np.random.default_rng(0).normal(size=(50, 4)), y=np.arange(50))
    content = path.read_bytes()
    told = []
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        for wanted in (None, [0]):
            try:
                read_npz(path, ColumnChoice(), wanted)
            except InvalidInputError as error:
                told.append(str(error))
    assert len(told) > len(content)
    assert all(str(path) in sentence for sentence in told)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        np.save(buffer, np.zeros((2, 2)))
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("X.npy", buffer.getvalue())
        with pytest.raises(InvalidInputError, match="a way to compress that numpy does not write"):
            read_npz(path, ColumnChoice())


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "t.npz", False, X=np.zeros((5, 2)))
    array = sources._array

    def slow(*arguments: Any) -> Any:
        with path.open("ab") as file:
            file.write(b"more")
        return array(*arguments)

    monkeypatch.setattr(sources, "_array", slow)
    with pytest.raises(InvalidInputError, match="must stay as it is while it is read"):
        read_npz(path, ColumnChoice())

"""Bad input to the command line: one line that names the place, exit status 2, and no file left."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.files import write_whole
from gpcert.records.results_file import read_results
from helpers.cli_files import NAMES, patients, points, write_table

ROW = [*map(repr, points(1, 1)[0][0].tolist()), "ill"]
HEADER = [*NAMES, "state"]
RANGE = ("range", "model.safetensors", "data.csv", "--radius", "0.1")
FIT = ("fit", "data.csv", "--target", "state", "-o", "new.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("errors")
    train = patients(made, "train.csv", 30, 0)
    arguments = ["fit", str(train), "--target", "state", "--drop", "who", "--max-evals", "0"]
    assert main([*arguments, "-o", str(made / "model.safetensors")]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    write_table(Path("data.csv"), [ROW, ROW], HEADER)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error."""
    before = set(Path().iterdir())
    capsys.readouterr()
    try:
        status = main(arguments)
    except SystemExit as ended:  # argparse's own way
        status = int(str(ended.code))
    told = capsys.readouterr()
    assert status == 2
    assert told.out == ""
    assert told.err.startswith("gpcert")
    assert told.err.count("\n") == 1
    assert set(Path().iterdir()) == before  # nothing half written
    return told.err


def with_cell(column: int, value: str) -> None:
    row = list(ROW)
    row[column] = value
    write_table(Path("data.csv"), [ROW, row], HEADER)


def test_missing_column(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(Path("data.csv"), [ROW[1:]], HEADER[1:])
    assert "data.csv must have a column 'age', got 'weight, kg'" in refused(capsys, *RANGE)
    assert "data.csv must have a column 'sex'" in refused(capsys, *FIT, "--columns", "sex")
    write_table(Path("data.csv"), [ROW], HEADER)
    assert "data.csv must have a column 'sex'" in refused(capsys, *RANGE, "--target", "sex")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("old", "must be a number, got 'old'"),
        ("", "must be a number, got an empty cell"),
        ("nan", "must be finite, got nan"),
        ("1e999", "must be finite, got 1e999"),
        ("1_000", "must be a number, got '1_000'"),
        ("3,5", "must be a number, got '3,5'"),
    ],
)
def test_a_cell_that_is_no_finite_number(cell: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with_cell(0, cell)
    for command in (RANGE, FIT):
        assert f"data.csv, row 1 (line 3), column 'age' {told}" in refused(capsys, *command)


def test_unknown_class(capsys: pytest.CaptureFixture[str]) -> None:
    with_cell(3, "dead")
    place = "data.csv, row 1 (line 3), column 'state' must be one of 'ill', 'well', got 'dead'"
    assert place in refused(capsys, *RANGE)
    write_table(Path("data.csv"), [ROW], HEADER)
    assert "--label must be one of 'ill', 'well', got 'dead'" in refused(capsys, *RANGE, "--label", "dead")


def test_labels_that_cannot_be_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert "must have at least two classes" in refused(capsys, *FIT)
    with_cell(3, "")
    assert "row 1 (line 3), column 'state' must be a label" in refused(capsys, *FIT)
    X, _ = points(200, 3)
    rows = [[*map(repr, x.tolist()), f"patient {i}"] for i, x in enumerate(X)]
    write_table(Path("data.csv"), rows, HEADER)
    assert "column 'state' must hold classes, got 200 different values" in refused(capsys, *FIT)
    assert "--target must name the column" in refused(capsys, "fit", "data.csv", "-o", "new.safetensors")
    assert "must not hold the column of the labels" in refused(capsys, *FIT, "--columns", "age,state")
    both = refused(capsys, *FIT, "--columns", "age,bmi", "--drop", "bmi")
    assert "--drop must not name what --columns keeps, got 'bmi'" in both
    assert "--columns: must be distinct, got 'age,age'" in refused(capsys, *FIT, "--columns", "age,age")


def test_wrong_number_of_features(capsys: pytest.CaptureFixture[str]) -> None:
    post = gc.load("model.safetensors")
    nameless = gc.Posterior(post.centres, post.weights, post.precision, kernel=post.kernel)
    gc.save(nameless, "nameless.safetensors")
    told = refused(capsys, "range", "nameless.safetensors", "data.csv", "--target", "age", "--radius", "1")
    assert "column 'state' must be a number" in told
    write_table(Path("data.csv"), [ROW[:2]], HEADER[:2])
    told = refused(capsys, "range", "nameless.safetensors", "data.csv", "--radius", "1")
    assert "data.csv must have 3 features, as the model has, got 2" in told
    np.savez("few.npz", X=np.zeros((4, 2)))
    told = refused(capsys, "range", "model.safetensors", "few.npz", "--radius", "1")
    assert "few.npz: X must have 3 features, got 2" in told


def test_shape_of_a_csv(capsys: pytest.CaptureFixture[str]) -> None:
    for text, told in (
        ("", "must have a header line"),
        ("1,2,3\n4,5,6\n", "must have a header line with column names, got numbers: 1, 2, 3"),
        ("age,age\n1,2\n", "must have distinct column names, got 'age' twice"),
        ("age;state\n1;ill\n", "must have columns separated by ',', got one column with ';' in its name"),
        ("age,state\n1\n", "row 0 (line 2) must have 2 cells, as the header has, got 1"),
        ("age,state\n", "must have at least one row"),
        ('age,state\n"1,ill\n', "not CSV"),
    ):
        Path("data.csv").write_text(text, encoding="utf-8")
        assert told in refused(capsys, *FIT)
    Path("data.csv").write_bytes(b"age,state\n1,\xff\n")
    assert "must be UTF-8 text, got byte 12" in refused(capsys, *FIT)


def test_npz_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("range", "model.safetensors", "bad.npz", "--radius", "1")
    Path("bad.npz").write_bytes(b"PK\x03\x04 not really")
    assert "bad.npz must be an npz file of plain arrays" in refused(capsys, *command)
    np.savez("bad.npz", X=np.array([{"a": 1}], dtype=object))
    assert "bad.npz must be an npz file of plain arrays" in refused(capsys, *command)  # never unpickled
    np.savez("bad.npz", data=np.zeros((2, 3)))
    assert "bad.npz must have an array 'X', got data" in refused(capsys, *command)
    np.savez("bad.npz", X=np.full((2, 3), np.nan))
    assert "bad.npz: X must be finite, got nan at index (0, 0)" in refused(capsys, *command)
    np.savez("bad.npz", X=np.zeros((2, 3)), y=np.zeros(3))
    assert "bad.npz: y must have shape (2,), got (3,)" in refused(capsys, *command)


def test_model_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("foreign.safetensors").write_bytes(b"\x80\x04pickle")
    for name, told in (
        ("foreign.safetensors", "foreign.safetensors is not a valid gpcert model"),
        ("data.csv", "data.csv is not a valid gpcert model"),
        ("none.safetensors", "none.safetensors must be a model file, got no such file"),
    ):
        assert told in refused(capsys, "range", name, "data.csv", "--radius", "1")
    post = gc.load("model.safetensors")
    mean_only = gc.Posterior(post.centres, post.weights, post.precision, kernel=post.kernel, likelihood=None)
    gc.save(mean_only, "regression.safetensors")
    told = refused(capsys, "range", "regression.safetensors", "data.csv", "--radius", "1")
    assert "must be a classifier, got a regression model" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--radius", "-1"), "row 0: radius must be >= 0, got -1.0"),
        (("--radius", "nan"), "argument --radius: must be finite, got nan"),
        (("--radius", "x"), "argument --radius: invalid number value: 'x'"),
        ((), "--radius or --radius-column must be given"),
        (("--radius", "1", "--norm", "0.5"), "norm must be 0, >= 1 or inf, got 0.5"),
        (("--radius", "1", "--norm", "two"), "--norm: must be inf, a number >= 1, or 0, got 'two'"),
        (("--radius", "1", "--features", "height"), "--features must name features of the model"),
        (("--radius", "1", "--domain", "0-1"), "--domain must be data or like 0:1 or NAME=0:1, got '0-1'"),
        (("--radius", "1", "--domain", "height=0:1"), "--domain must name features of the model"),
        (("--radius", "1", "--domain", "age=200:300"), "row 0: x must lie in domain"),
        (("--radius", "1", "--scale", "age=0"), "--scale must be std or NAME=UNIT with a unit > 0"),
        (("--radius", "1", "--rows", "2"), "--rows must be in 0..1 for data.csv, got 2"),
        (("--radius", "1", "--rows", "a"), "--rows: must be a whole number >= 0, got 'a'"),
        (("--radius", "1", "--tolerance", "0"), "tolerance must be > 0, got 0.0"),
        (("--radius", "1", "--jobs", "-2"), "--jobs"),
        (("--radius", "1", "--radius-column", "age"), "exclude each other"),
        (("--radius-column", "dose"), "must have a column 'dose'"),
        (("--radius", "1", "--image-shape", "2x2"), "--image-shape must have 3 pixels, got 2x2"),
        (("--radius", "1", "--delimiter", "ab"), "--delimiter: must be one character"),
        (("--radius", "1", "--frobnicate"), "unrecognized arguments: --frobnicate"),
        (("--radius", "1", "-o", "nowhere/x.json"), "--output must be in a folder that exists"),
        (("--radius", "1", "-o", "."), "--output must be a file"),
    ],
)
def test_options(options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, "range", "model.safetensors", "data.csv", *options)


def test_radii_given_twice_and_thresholds(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("certify", "model.safetensors", "data.csv", "--radius", "1")
    assert "--radius must be given with distinct values" in refused(capsys, *command, "--radius", "1")
    assert "threshold must be" in refused(capsys, *command, "--threshold", "2")
    assert "invalid choice: 'fast'" in refused(capsys, "attack", *command[1:], "--method", "fast")


def test_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("range", "model.safetensors", "data.csv", "--boxes", "boxes.csv")
    for header, rows, told in (
        (["age"], [[1]], "must have columns FEATURE.lower and FEATURE.upper, got 'age'"),
        (["age.lower"], [[1]], "must have a column 'age.upper'"),
        (["age.lower", "age.upper"], [[2, 1]], "row 0 (line 2), column 'age.lower' must be <= 1.0"),
        (["age.lower", "age.upper"], [[1, 2]] * 3, "must have 1 row or 2"),
    ):
        write_table(Path("boxes.csv"), rows, header)
        assert told in refused(capsys, *command)
    write_table(Path("boxes.csv"), [[1, 2]], ["age.lower", "age.upper"])
    told = refused(capsys, "certify", *command[1:])
    assert "boxes.csv must have boxes that hold their rows, got one without row 0" in told
    assert "--boxes and --radius exclude each other" in refused(capsys, *command, "--radius", "1")
    for option in ("--norm=2", "--features=age", "--domain=0:1", "--scale=std", "--radius-column=age"):
        told = f"--boxes and {option.partition('=')[0]} exclude each other"
        assert told in refused(capsys, *command, option)


def test_verbs_and_files_that_do_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert "invalid choice: 'frobnicate'" in refused(capsys, "frobnicate")
    assert "required: VERB" in refused(capsys)
    assert "none.csv: No such file" in refused(
        capsys, "range", "model.safetensors", "none.csv", "--radius", "1"
    )
    assert "must be one of synthetic2d" in refused(capsys, "fit", "dataset:none", "-o", "new.safetensors")
    assert "--output must be in a folder that exists" in refused(capsys, *FIT[:-1], "nowhere/m.safetensors")


def test_results_files_of_strangers(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    good = '{"format": "gpcert results", "format_version": 2'
    for text, told in (
        ("", "must be a results file of gpcert"),
        ("[]", "got other JSON"),
        ('{"format": "gpcert answers"}', r"got answers of a store, of which gc.report\(gc.load_answers"),
        ("[" * 100_000, "must be a results file of gpcert"),
        (good.replace("2", "3") + "}", "must have results format 2, got 3"),
        (good + "}", "'verb' is missing or of the wrong kind"),
    ):
        write_whole(path, text)
        with pytest.raises(gc.InvalidInputError, match=told):
            read_results(path)


def test_no_input_is_written_over(tmp_path, monkeypatch, capsys):
    """An output that is an input, by name or through a link, or that is no ordinary file."""
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("a,y\n0,n\n1,y\n0.2,n\n0.9,y\n", encoding="utf-8")
    Path("link.csv").symlink_to("d.csv")
    os.mkfifo("pipe")
    before = Path("d.csv").read_bytes()
    for output, rule in (
        ("d.csv", "--output must be a file of its own, got d.csv, which the command uses elsewhere"),
        ("link.csv", "--output must be a file of its own, got link.csv, which the command uses elsewhere"),
        ("pipe", "--output must be an ordinary file, got pipe"),
    ):
        assert main(["fit", "d.csv", "--target", "y", "-o", output]) == 2
        assert rule in capsys.readouterr().err
    assert Path("d.csv").read_bytes() == before
    assert main(["fit", "d.csv", "--target", "y", "--max-evals", "0", "-o", "m.safetensors"]) == 0
    model = Path("m.safetensors").read_bytes()
    for output in ("m.safetensors", "d.csv"):
        assert main(["range", "m.safetensors", "d.csv", "--radius", "0.1", "-o", output]) == 2
    assert Path("m.safetensors").read_bytes() == model

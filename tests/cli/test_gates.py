"""Gates: what is proved decides about the exit status, told on the terminal, in JUnit XML and by pytest."""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.cli.gates import Gate, add_gate
from gpcert.records.results_file import read_results
from gpcert.records.rows import Row
from helpers.cli_files import patients

ENDS = ("lower", "upper")
COMMON = ["certify", "model.safetensors", "test.csv", "--scale", "std", "--quiet", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("gates")
    train, _ = patients(made, "train.csv", 60, 0), patients(made, "test.csv", 12, 1)
    model = str(made / "model.safetensors")
    fit = [
        "fit",
        str(train),
        "--target",
        "state",
        "--drop",
        "who",
        "--max-evals",
        "5",
        "--quiet",
        "-o",
        model,
    ]
    assert main(fit) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def shares(radius: float) -> dict[str | None, Fraction]:
    """Right and proved safe, of all rows and of each class, from the answers themselves."""
    assert main([*COMMON, "--radius", str(radius), "-o", "answers.json"]) == 0
    document, rows = read_results(Path("answers.json"))
    classes = document["model"]["classes"]
    held = [(r.label, r.answer.status == "safe" and r.answer.label == r.label) for r in rows]
    found: dict[str | None, Fraction] = {None: Fraction(sum(ok for _, ok in held), len(held))}
    for name in classes:
        own = [ok for label, ok in held if label == name]
        found[name] = Fraction(sum(own), len(own))
    return found


def test_met_and_not_met(capsys: pytest.CaptureFixture[str]) -> None:
    for name, share in shares(0.1).items():
        only = [] if name is None else ["--class", name]
        asked = [*COMMON, "--radius", "0.1", *only, "--require"]
        assert 0 < share < 1 or name is not None
        assert main([*asked, str(float(share) - 1e-9) if share else "0"]) == 0
        assert "required" in capsys.readouterr().out
        if share < 1:
            assert main([*asked, str(float(share) + 1e-9)]) == 3
            assert "NOT met" in capsys.readouterr().err


def test_a_share_is_the_decimal_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """The double of 0.9 is above nine tenths: 9 of 10 rows would not meet it."""
    parser = argparse.ArgumentParser()
    add_gate(parser)
    assert Fraction(0.9) > parser.parse_args(["--require", "0.9"]).require == Fraction(9, 10)
    share = shares(0.1)[None]
    exactly = f"{share.numerator}/{share.denominator}"
    assert main([*COMMON, "--radius", "0.1", "--require", exactly]) == 0
    capsys.readouterr()


def test_every_radius_has_to_hold_unless_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--radius", "0.01", "--radius", "3"]
    assert main([*COMMON, *both, "--require", "0.5"]) == 3
    assert main([*COMMON, *both, "--require", "0.5", "--at", "0.01"]) == 0
    assert main([*COMMON, *both, "--require", "0.5", "--json"]) == 3
    assert capsys.readouterr().out.rstrip().endswith("}")


def test_what_is_not_decided_is_not_proved(capsys: pytest.CaptureFixture[str]) -> None:
    """No time to search: every row has an answer, and no gate is met by it."""
    asked = [*COMMON, "--radius", "0.1", "--max-seconds", "1e-9", "-o", "open.json"]
    assert main(asked) == 0
    _, rows = read_results(Path("open.json"))
    safe = sum(r.answer.status == "safe" for r in rows)
    left = sum(r.answer.status == "unknown" for r in rows)
    assert left > 0
    assert main([*asked, "--require", str((safe + 0.5) / len(rows))]) == 3
    assert "NOT met" in capsys.readouterr().err


def test_another_threshold_and_a_share_close_to_all_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    main([*COMMON, "--radius", "0.1", "--threshold", "0.25", "--require", "0.9999999"])
    told = "".join(capsys.readouterr())
    assert "required 0.9999999 right and proved safe with a probability above 0.25 at radius 0.1" in told


def test_junit(capsys: pytest.CaptureFixture[str]) -> None:
    radii = ["--radius", "0.01", "--radius", "3"]
    asked = [*COMMON, *radii, "--id", "who", "--require", "0.5", "--junit", "gate.xml"]
    assert main(asked) == 3
    suite = ET.parse("gate.xml").getroot().find("testsuite")
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    assert suite.get("tests") == str(len(cases)) == "26"  # twelve rows and a gate, twice
    assert cases["gpcert.gate", "all rows at 0.01"].find("*") is None
    assert "NOT met" in cases["gpcert.gate", "all rows at 3"].find("failure").get("message")
    # Red where the gate is not met, and only there: a share of 0.5 lets some rows be lost.
    kept = [i for i in range(12) if cases["gpcert.certify", f"row p{i} at 0.01"].find("*") is None]
    assert len(kept) == shares(0.01)[None] * 12
    assert int(suite.get("skipped")) == 12 - len(kept)
    lost = [cases["gpcert.certify", f"row p{i} at 3"].find("failure") for i in range(12)]
    assert int(suite.get("failures")) == 1 + sum(each is not None for each in lost)
    assert {each.get("message").partition(" in ")[0] for each in lost} <= {
        "unsafe: margin",
        "unknown: margin",
    }
    capsys.readouterr()


def test_boxes_pass_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["age", '"weight, kg"', "<b>dose</b>"]
    head = ",".join(
        f'{name[:-1]}.{end}"' if name[0] == '"' else f"{name}.{end}" for name in names for end in ENDS
    )
    Path("boxes.csv").write_text(f"{head}\n-1000,1000,-1,1,-1e5,1e5\n")
    asked = ["certify", "model.safetensors", "test.csv", "--boxes", "boxes.csv", "--quiet", "--jobs", "1"]
    assert main([*asked, "--require", "0.5", "--junit", "gate.xml"]) == 3
    assert "at its own region, got 0 of 12" in capsys.readouterr().err
    assert main([*asked, "--require", "0.5", "--at", "1"]) == 2
    assert "--at must be one of the radii asked about, of which there are none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--require", "1.5"], "must be a share from 0 to 1, got '1.5'"),
        (["--require", "a"], "must be a share from 0 to 1, got 'a'"),
        (["--at", "0.1"], "--at must be given with --require"),
        (["--class", "ill"], "--class must be given with --require"),
        (["--require", "0.5", "--at", "0.2"], "--at must be one of the radii asked about, 0.1, got 0.2"),
        (
            ["--require", "0.5", "--class", "dead"],
            "--class must be one of 'ill', 'well', got 'dead'",
        ),
        (["--require", "0.5", "--junit", "test.csv"], "--junit must be a file of its own, got test.csv"),
    ],
)
def test_what_cannot_be_is_told_before(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main([*COMMON, "--radius", "0.1", *options])
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    assert told in capsys.readouterr().err


def test_without_labels_there_is_no_gate(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("test.csv").read_text().splitlines()
    Path("bare.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    asked = ["certify", "model.safetensors", "bare.csv", "--radius", "0.1", "--require", "0.5"]
    assert main(asked) == 2
    assert "--require needs true labels" in capsys.readouterr().err


def test_hostile_classes_stay_text_in_xml(tmp_path: Path) -> None:
    hostile = "<script>\x00&\"'"
    row = Row(0, hostile, hostile, None, None, None, 0.1, None)
    gate = Gate(Fraction(1), hostile, {0.1: [row]}, tmp_path / "gate.xml", 0.5)
    assert gate.judge([], 1.0, quiet=True) == 3
    cases = ET.parse(tmp_path / "gate.xml").getroot().findall("testsuite/testcase")
    shown = "<script>\\x00&\"' at 0.1"
    assert [case.get("name") for case in cases] == [f"row {shown}", shown]
    assert cases[0].find("failure").get("message") == "no answer"


def test_assert_certified() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.3 * random.normal(size=40) > 0, "b", "a")
    clf = gc.GPClassifier(max_evals=0).fit(X[:20], y[:20])
    found = gc.evaluate(clf, X[20:], y[20:], [0.2])
    count = round(float(found.certified[0]) * 20)
    assert 0 < count < 20
    assert gc.testing.assert_certified(clf, X[20:], y[20:], 0.2, count / 20).certified[0] == count / 20
    with pytest.raises(AssertionError, match=rf"For {count} of 20 rows .* Required: 1. Not proved: rows \d"):
        gc.testing.assert_certified(clf, X[20:], y[20:], 0.2, 1.0)
    table = pd.DataFrame(X[20:], columns=["age", "dose"], index=[f"patient {i}" for i in range(20)])
    named = gc.GPClassifier(max_evals=0).fit(table, y[20:])
    with pytest.raises(AssertionError, match=r"standard deviations(.|\n)*patient \d+ \((.|\n)*  age +\d"):
        gc.testing.assert_certified(named, table, y[20:], 2.0, 1.0, scale="std")
    own = y[20:] == "b"
    part = gc.testing.assert_certified(clf, X[20:], y[20:], 0.2, 0.0, label="b")
    assert len(part.truth) == own.sum()
    with pytest.raises(gc.InvalidInputError, match="label must be one of 'a', 'b', got 'c'"):
        gc.testing.assert_certified(clf, X, y, 0.2, label="c")
    for wrong in ("0.9", None, 1.5, float("nan"), [0.9]):
        with pytest.raises(gc.InvalidInputError, match=r"at_least must be in \[0, 1\], got"):
            gc.testing.assert_certified(clf, X, y, 0.2, wrong)
    with pytest.raises(gc.InvalidInputError, match=r"at_least must be in \[0, 1\], got 2"):
        gc.testing.assert_certified(clf, X, y, 0.2, 2)
    with pytest.raises(gc.InvalidInputError, match=r"at_least must be in \[0, 1\], got nan"):
        gc.testing.assert_certified(clf, X, y, 0.2, float("nan"))


@pytest.mark.parametrize(("rows", "labels"), [(40, 20), (20, 40), (0, 0)])
def test_rows_without_a_class_are_not_left_out(rows: int, labels: int) -> None:
    """The first 20 of 40 rows may be certified, and say nothing about the others."""
    X = np.linspace(-3.0, 3.0, 40)[:, None]
    y = np.where(X[:, 0] > 0, "b", "a")
    clf = gc.GPClassifier(max_evals=0).fit(X, y)
    with pytest.raises(gc.InvalidInputError, match="y must h"):
        gc.testing.assert_certified(clf, X[:rows], y[:labels], 0.0, 0.1)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--store", "kept.db", "-o", "kept.db"], "--output"),
        (["--store", "kept.db", "-o", "link.db"], "--output"),
        (["--store", "new.db", "-o", "./new.db"], "--output"),
        (["--store", "new.db", "-o", "new.db-wal"], "--output"),
        (["--store", "kept.db", "--require", "0", "--junit", "kept.db"], "--junit"),
        (["-o", "both.json", "--require", "0", "--junit", "../gates/both.json"], "--junit"),
        (["--proof", "proofs.json", "-o", "proofs.json"], "--output"),
    ],
)
def test_no_two_outputs_are_one_file(
    folder: Path, options: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told before the work, whether the file is there or not; nothing is made or changed."""
    if not Path("kept.db").exists():
        assert main([*COMMON, "--rows", "0:2", "--radius", "0.1", "--store", "kept.db"]) == 0
        Path("link.db").symlink_to("kept.db")
    options = [text.replace("../gates", f"../{folder.name}") for text in options]
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert main([*COMMON, "--rows", "0:2", "--radius", "0.1", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name} must be a file of its own, got {options[-1].removeprefix('./')}, which" in line
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before

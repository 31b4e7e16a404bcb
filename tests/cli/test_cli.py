"""The verbs `fit` and `range` from files to files: answers, processes, interruption, completion."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main, show
from gpcert.cli.main import VERBS
from gpcert.numbers import radius_at_least
from gpcert.records.results_file import read_results
from gpcert.records.rows import Row
from gpcert.schema import encoded
from helpers.cli_files import NAMES, OFFSET, UNIT, Running, patients, points, write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cli")
    train = patients(made, "train.csv", 60, 0)
    patients(made, "test.csv", 12, 1)
    arguments = ["fit", str(train), "--target", "state", "--drop", "who", "--max-evals", "15"]
    assert main([*arguments, "-o", str(made / "model.safetensors"), "--quiet"]) == 0
    return made


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def answers(*arguments: str) -> list[dict[str, Any]]:
    output = Path("answers.json")
    assert main([*arguments, "-o", str(output), "--quiet"]) == 0
    return [entries(row) for row in read_results(output)[1]]


def entries(row: Row) -> dict[str, Any]:
    """What is known of a row, by name."""
    told, a = encoded(row), row.answer
    told |= {name: value for name, value in encoded(a).items() if name not in ("x", "label", "probability")}
    for name in ("min", "max", "margin"):
        if name in told:
            told[name] = [told[name]["lower"], told[name]["upper"]]
    return told | {"class": a.label, "found": a}


def test_fit_in_the_units_of_the_file_is_the_model_of_standardised_columns(inside: Path) -> None:
    post = gc.load("model.safetensors")
    assert post.feature_names == tuple(NAMES)
    assert list(post.classes) == ["ill", "well"]
    assert post.training["label_column"] == "state"
    assert post.target == "exact expectation of the likelihood"
    X, y = points(60, 0)
    spread = X.std(axis=0)
    np.testing.assert_array_equal(post.centres, X)
    kernel = gc.RBF(np.asarray(post.kernel.lengthscale) / spread, post.kernel.variance)
    same = gc.GPClassifier(kernel=kernel, max_evals=0).fit(X / spread, y)
    new, _ = points(40, 5)
    np.testing.assert_allclose(post.probability(new), same.predict_proba(new / spread), atol=1e-8)
    assert len(set(np.round(np.asarray(kernel.lengthscale), 9))) == 1


def test_fit_tells_accuracies(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fit", "train.csv", "--target", "state", "--columns", 'age,"weight, kg"', "--max-evals", "5"]
    assert main([*arguments, "--ard", "--test", "test.csv", "-o", "two.safetensors"]) == 0
    told = capsys.readouterr()
    assert "trained on 60 rows, 2 features, classes ill, well" in told.out
    assert "of 12 rows" in told.out
    assert told.err == ""  # no progress line where standard error is no terminal
    assert gc.load("two.safetensors").feature_names == ("age", "weight, kg")
    assert main([*arguments, "--json", "-o", "two.safetensors"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["classes"], told["test"]) == (60, ["ill", "well"], None)
    assert 0.5 < told["training_accuracy"] <= 1.0


def test_range_takes_several_radii_and_influences_one(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["model.safetensors", "test.csv", "--rows", "0:2", "--radius", "0", "--radius", "0.25"]
    assert main(["range", *asked, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert [(a["row"], a["radius"]) for a in answers] == [(0, 0.0), (0, 0.25), (1, 0.0), (1, 0.25)]
    assert main(["range", *asked]) == 0
    assert "radius" in capsys.readouterr().out
    assert main(["explain", *asked]) == 2
    assert "--radius must be given once" in capsys.readouterr().err


def test_a_constant_column_that_stays_needs_no_deviation(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, labels = points(30, 0)
    write_table(
        inside / "flat.csv",
        [[*map(repr, x.tolist()), 7.0, y] for x, y in zip(X, labels, strict=True)],
        [*NAMES, "flat", "state"],
    )
    assert main(["fit", "flat.csv", "--target", "state", "--max-evals", "0", "-o", "flat.safetensors"]) == 0
    asked = ["range", "flat.safetensors", "flat.csv", "--rows", "0", "--radius", "0.1", "--scale", "std"]
    assert main(asked) == 2
    assert "in training, got 'flat', constant" in capsys.readouterr().err
    assert main([*asked, "--features", NAMES[0]]) == 0
    assert main([*asked, "--scale", "flat=2"]) == 0


def test_ranges_are_those_of_the_library(inside: Path) -> None:
    post = gc.load("model.safetensors")
    X, _ = points(12, 1)
    got = answers(
        "range", "model.safetensors", "test.csv", "--radius", "0.3", "--scale", "std", "--id", "who"
    )
    scale = post.centres.std(axis=0)
    assert [a["row"] for a in got] == list(range(12))
    for a, x in zip(got, X, strict=True):
        ball = gc.Ball(x, 0.3, scale=scale)
        r = gc.probability_range(post, ball, label=post.classes[1])
        assert a["x"] == x.tolist()
        assert a["id"] == f"p{a['row']}"
        assert a["status"] == "converged"
        # Two true enclosures of the same number meet.
        assert max(a["min"][0], r.min.lower) <= min(a["min"][1], r.min.upper)
        assert max(a["max"][0], r.max.lower) <= min(a["max"][1], r.max.upper)
        assert ball.contains(a["argmin"])
        assert ball.contains(a["argmax"])


def test_label_is_a_class_value_and_its_range_the_complement(inside: Path) -> None:
    common = ("range", "model.safetensors", "test.csv", "--rows", "0:4", "--radius", "0.2", "--scale", "std")
    for well, ill in zip(answers(*common), answers(*common, "--label", "ill"), strict=True):
        assert ill["class"] == "ill"
        assert max(1 - ill["max"][1], well["min"][0]) <= min(1 - ill["max"][0], well["min"][1]) + 1e-15


def test_processes_answer_like_one_process(inside: Path) -> None:
    common = ("range", "model.safetensors", "test.csv", "--radius", "0.3", "--scale", "std", "--rows", "0:5")
    keys = ("row", "min", "max", "argmin", "argmax", "status", "nodes")
    one, two = answers(*common, "--jobs", "1"), answers(*common, "--jobs", "2")
    assert [[a[k] for k in keys] for a in one] == [[a[k] for k in keys] for a in two]


def test_region_options_give_the_regions_they_name(inside: Path) -> None:
    post, (X, _) = gc.load("model.safetensors"), points(12, 1)
    low, high = float(X[3, 0] - 0.5), float(X[3, 0] + 1.0)
    (a,) = answers(
        *("range", "model.safetensors", "test.csv", "--rows", "3", "--radius", "2"),
        *("--features", "age,<b>dose</b>", "--scale", "age=1", "--scale", "<b>dose</b>=1000"),
        *("--domain", f"age={low!r}:{high!r}"),
    )
    ends = np.full(3, -np.inf), np.full(3, np.inf)
    ends[0][0], ends[1][0] = low, high
    ball = gc.Ball(X[3], 2.0, features=[0, 2], scale=[1.0, 1.0, 1000.0], domain=ends)
    r = gc.probability_range(post, ball)
    assert ball.contains(a["argmin"])
    assert (a["min"], a["max"]) == ([r.min.lower, r.min.upper], [r.max.lower, r.max.upper])


def test_a_radius_for_each_row(inside: Path) -> None:
    X, _ = points(3, 1)
    rows = [[*map(repr, x.tolist()), r] for x, r in zip(X, (0.0, 1.0, 2.5), strict=True)]
    write_table(Path("radii.csv"), rows, [*NAMES, "error"])
    got = answers("range", "model.safetensors", "radii.csv", "--radius-column", "error", "--features", "age")
    assert [a["radius"] for a in got] == [0.0, 1.0, 2.5]
    assert [a["max"][1] - a["min"][0] for a in got] == sorted(a["max"][1] - a["min"][0] for a in got)


def test_boxes_one_for_all_rows_one_for_each_or_without_rows(inside: Path) -> None:
    post, (X, _) = gc.load("model.safetensors"), points(2, 1)
    one = write_table(Path("one.csv"), [[45, 55]], ["age.lower", "age.upper"])
    got = answers("range", "model.safetensors", "test.csv", "--rows", "0:2", "--boxes", str(one))
    for a, x in zip(got, X, strict=True):
        assert a["region"]["lower"] == [45.0, *x[1:]]
        assert a["region"]["upper"] == [55.0, *x[1:]]
    each = write_table(Path("each.csv"), [[45, 55], [40, 41]], ["age.lower", "age.upper"])
    got = answers("range", "model.safetensors", "test.csv", "--rows", "0:2", "--boxes", str(each))
    assert [a["region"]["lower"][0] for a in got] == [45.0, 40.0]
    header = [f"{name}.{end}" for name in NAMES for end in ("lower", "upper")]
    ends = np.stack([OFFSET - 0.1 * UNIT, OFFSET + 0.1 * UNIT], axis=1).ravel()
    alone = write_table(Path("alone.csv"), [list(map(repr, ends.tolist()))], header)
    (a,) = answers("range", "model.safetensors", "--boxes", str(alone))
    p = post.probability(OFFSET[None])[0, 1]
    assert a["min"][0] <= p <= a["max"][1]
    # Verdicts of the same boxes: about the label of the row, or of the middle where there are no rows.
    (verdict,) = answers("certify", "model.safetensors", "--boxes", str(alone))
    (expected,) = gc.certify(post, [gc.Box(*ends.reshape(3, 2).T)])
    margin = [expected.margin.lower, expected.margin.upper]
    assert (verdict["status"], verdict["margin"]) == (expected.status, margin)
    wide = write_table(Path("wide.csv"), [[0, 100]], ["age.lower", "age.upper"])
    verdicts = answers("certify", "model.safetensors", "test.csv", "--rows", "0:2", "--boxes", str(wide))
    assert [a["region"]["lower"][1:] for a in verdicts] == X[:, 1:].tolist()
    assert main(["certify", "model.safetensors", "--boxes", str(alone), "--store", "boxes.db"]) == 0
    assert main(["store", "list", "boxes.db"]) == 0


def test_verdicts_are_proved_or_come_with_a_counterexample(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    post, (X, y) = gc.load("model.safetensors"), points(12, 1)
    scale = post.centres.std(axis=0)
    common = ("model.safetensors", "test.csv", "--radius", "0.1", "--radius", "0.6", "--scale", "std")
    got = answers("certify", *common)
    told = capsys.readouterr().out
    attacked = answers("attack", *common)
    assert [(a["row"], a["radius"]) for a in got] == [(i, r) for i in range(12) for r in (0.1, 0.6)]
    assert {a["status"] for a in got} >= {"safe", "unsafe"}
    random = np.random.default_rng(0)
    for a, b in zip(got, attacked, strict=True):
        ball = gc.Ball(X[a["row"]], a["radius"], scale=scale)
        label = list(post.classes).index(a["predicted"])
        assert a["label"] == y[a["row"]]
        if a["status"] == "safe":
            Z = ball.x + a["radius"] * scale * random.uniform(-1, 1, size=(200, 3))
            assert (post.probability(Z)[:, label] > 0.5).all()
            assert not b["success"]
            assert a["counterexample"] is None
        if a["status"] == "unsafe":
            assert ball.contains(a["counterexample"])
            assert post.probability([a["counterexample"]])[0, label] < 0.5
        assert ball.contains(b["found"].x)
        assert post.probability([b["found"].x])[0, label] == pytest.approx(b["found"].probability)
    safe = sum(a["status"] == "safe" for a in got if a["radius"] == 0.6)
    right = sum(a["status"] == "safe" and a["label"] == a["predicted"] for a in got if a["radius"] == 0.6)
    assert f"radius 0.6: {safe} safe, " in told
    assert f"right and safe: {100 * right / 12:.1f} %" in told


def test_attacks_of_many_rows_are_those_of_the_library(inside: Path) -> None:
    """Rows are attacked 32 at once, each from its own point; here two blocks and the rest of a third."""
    patients(inside, "many.csv", 70, 2)
    post, (X, _) = gc.load("model.safetensors"), points(70, 2)
    got = answers("attack", "model.safetensors", "many.csv", "--radius", "0.3", "--scale", "std")
    assert [a["row"] for a in got] == list(range(70))
    regions = [gc.Ball(x, 0.3, scale=post.centres.std(axis=0)) for x in X]
    blocks = [gc.attack(post, regions[i : i + 32]) for i in range(0, 70, 32)]
    expected = [each for block in blocks for each in block]
    assert [a["found"].x.tolist() for a in got] == [each.x.tolist() for each in expected]
    assert [a["success"] for a in got] == [each.success for each in expected]


def test_one_name_for_one_thing(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the table, the JSON file and Python call `status` and `ended` is the same."""
    command = ["certify", "model.safetensors", "test.csv", "--radius", "0.3", "--scale", "std"]
    assert main([*command, "-o", "named.json"]) == 0
    head, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    found = [row.answer for row in read_results(Path("named.json"))[1]]
    assert head[-4:] == ["status", "margin", "in", "ended"]
    for line, answer, told in zip(
        lines[:10], found, json.loads(Path("named.json").read_text())["answers"], strict=False
    ):
        assert line[-4] == answer.status == told["answer"]["status"]
        assert line[-1] == answer.ended == told["answer"]["ended"]


def test_a_standard_deviation_is_called_so_whichever_columns_move(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = gc.load("model.safetensors").feature_names[0]
    command = ["certify", "model.safetensors", "test.csv", "--radius", "0.3", "--scale", "std"]
    for more in ([], ["--features", first]):
        assert main([*command, *more]) == 0
        assert "off by up to 0.3 standard deviations" in capsys.readouterr().out


def test_radii_bracket_the_truth(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    post, (X, _) = gc.load("model.safetensors"), points(12, 1)
    scale = post.centres.std(axis=0)
    got = answers(
        "radius", "model.safetensors", "test.csv", "--rows", "0:4", "--scale", "std", "--rtol", "0.01"
    )
    middle = sorted(a["safe"] for a in got)[1]
    assert f"median radius in [{radius_at_least(middle)}, " in capsys.readouterr().out
    for a in got:
        x, label = X[a["row"]], list(post.classes).index(a["predicted"])
        if a["safe"] > 0:
            Z = x + a["safe"] * scale * np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
            assert (post.probability(Z)[:, label] > 0.5).all()
        if a["counterexample"] is not None:
            assert a["safe"] < a["unsafe"]
            assert gc.Ball(x, a["unsafe"], scale=scale).contains(a["counterexample"])
            assert post.probability([a["counterexample"]])[0, label] < 0.5


@pytest.mark.filterwarnings("ignore::gpcert.errors.UnitsWarning")
def test_influences_are_those_of_the_library(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    post, (X, _) = gc.load("model.safetensors"), points(12, 1)
    common = ("explain", "model.safetensors", "test.csv", "--rows", "0:3")
    for a in answers(*common, "--radius", "2", "--features", "age,<b>dose</b>", "--label", "ill"):
        e = gc.explain(post, X[a["row"]], 2.0, label="ill", features=[0, 2])
        assert a["lower"] == e.lower.tolist()
        assert a["upper"] == e.upper.tolist()
        assert a["value"][0][1] == 0.0
    capsys.readouterr()
    got = answers(*common, "--radius", "0.3", "--scale", "std")
    told = capsys.readouterr().out
    scale = post.centres.std(axis=0)
    for a in got:
        same = gc.explain(post, X[a["row"]], 0.3, scale="std")
        assert (a["lower"], a["upper"]) == (same.lower.tolist(), same.upper.tolist())
        assert str(a["found"].claims()) == str(same.claims())
        for j in range(3):
            e = gc.explain(post, X[a["row"]], 0.3 * scale[j], features=[j])
            assert same.value[0, j] == pytest.approx(e.value[0, j], abs=1e-9)
    strongest = NAMES[int(np.argmax(np.abs(np.mean([a["value"][0] for a in got], axis=0))))]
    assert told.splitlines()[1].startswith(strongest)


def test_several_classes(inside: Path) -> None:
    X, _ = points(60, 0)
    Z = (X - OFFSET) / UNIT
    labels = np.array(["low", "middle", "high"])[np.digitize(Z[:, 0], [-0.4, 0.4])]
    rows = [[*map(repr, x.tolist()), str(y)] for x, y in zip(X, labels, strict=True)]
    write_table(Path("three.csv"), rows, [*NAMES, "y"])
    for likelihood in ("probit", "softmax"):
        fit = ["fit", "three.csv", "--target", "y", "--max-evals", "4", "--likelihood", likelihood, "--quiet"]
        assert main([*fit, "-o", "three.safetensors"]) == 0
        post = gc.load("three.safetensors")
        ball = ("--rows", "0:3", "--radius", "0.05", "--scale", "std", "--max-seconds", "3")
        for a in answers("certify", "three.safetensors", "three.csv", *ball):
            p = post.probability([a["x"]])[0]
            assert a["predicted"] == post.classes[p.argmax()]
            assert a["label"] == labels[a["row"]]
            assert a["margin"][0] <= np.sort(p)[-1] - np.sort(p)[-2] + 1e-9
    (a,) = answers("range", "three.safetensors", "three.csv", *ball[2:], "--rows", "0", "--label", "middle")
    c = list(post.classes).index("middle")
    assert a["class"] == "middle"
    assert a["min"][0] <= post.probability([a["x"]])[0, c] + 1e-9


def test_npz_and_shipped_data(inside: Path) -> None:
    X, y = points(12, 1)
    np.savez("test.npz", X=X, y=y)
    common = ("--rows", "0:2", "--radius", "0.1", "--scale", "std")
    from_npz = answers("range", "model.safetensors", "test.npz", *common)
    from_csv = answers("range", "model.safetensors", "test.csv", *common)
    assert [a["min"] for a in from_npz] == [a["min"] for a in from_csv]
    assert [a["label"] for a in from_npz] == y[:2]
    fit = ["fit", "dataset:synthetic2d", "--max-evals", "0", "--lengthscale", "1.5", "--variance", "50"]
    assert main([*fit, "-o", "plane.safetensors", "--quiet"]) == 0
    (a,) = answers("range", "plane.safetensors", "dataset:synthetic2d", "--rows", "7", "--radius", "0.1")
    assert a["x"] == gc.datasets.load("synthetic2d").X_test[7].tolist()
    assert a["label"] in ("0", "1")


def test_table_for_people_and_json_for_machines(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["range", "model.safetensors", "test.csv", "--rows", "0:2", "--radius", "0.1", "--scale", "std"]
    assert main(common) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:3] == ["row", "P(well)", "at"]
    assert table[3].startswith(
        "For each of 2 rows the probability of “well” is proved to stay in an interval"
    )
    assert [table[4].split(), len(table)] == [["Units:"], 10]
    assert main([*common, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] is True
    assert told["settings"]["tolerance"] == 0.02
    assert told["model"]["classes"] == ["ill", "well"]
    assert told["model"]["sha256"]
    assert told["versions"]["gpcert"] == gc.__version__
    for answer, line in zip(told["answers"], table[1:], strict=False):
        lower, upper = map(float, re.search(r"\[([\d.]+), ([\d.]+)\]", line).groups())
        assert lower <= answer["answer"]["min"]["lower"]
        assert answer["answer"]["max"]["upper"] <= upper


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, _ = points(1, 1)
    write_table(Path("evil.csv"), [["\x1b[2J", *map(repr, X[0].tolist())]], ["who", *NAMES])
    assert main(["range", "model.safetensors", "evil.csv", "--id", "who", "--radius", "0"]) == 0
    assert main(["range", "model.safetensors", "evil.csv", "--target", "\x1b[2J", "--radius", "0"]) == 2
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err


def test_a_signal_prints_and_saves_what_is_known(folder: Path) -> None:
    """In one process; one easy row, then two of many lengthscales that no machine finishes to 1e-9."""
    X, _ = points(3, 1)
    rows = [[*map(repr, x.tolist()), r] for x, r in zip(X, (0.0, 9.0, 9.0), strict=True)]
    write_table(folder / "hard.csv", rows, [*NAMES, "error"])
    run = Running(
        folder,
        *("range", "model.safetensors", "hard.csv", "--jobs", "1"),
        *("--radius-column", "error", "--scale", "std", "--tolerance", "1e-9", "-o", "partial.json"),
    )
    run.until(r"range: .*1/3 .*width (1|0\.\d*[1-9])")
    run.to_group(signal.SIGINT)
    status, out, _ = run.end()
    assert status == 130
    assert "stopped early" in out
    saved, known = read_results(folder / "partial.json")
    assert (saved["complete"], saved["asked"]) == (False, 3)
    easy, begun = map(entries, known)
    assert easy["status"] in ("converged", "numerical limit")
    assert begun["status"] == "interrupted"
    assert 0.0 <= begun["min"][0] <= begun["min"][1] <= begun["max"][1] <= 1.0


def test_a_line_on_a_terminal_tells_gap_and_time_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for shown, quiet in ((True, False), (True, True), (False, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=shown: shown)
        bar = show.line("range", 10, quiet)
        for done in (1, 5):
            bar.draw(done, "width 0.25")
            time.sleep(0.11)
        bar.draw(6, "width 0.25")
        bar.close()
        drawn = capsys.readouterr().err
        if shown and not quiet:
            assert re.search(r"range:.* 5/10 \[\d+:\d+<.*, width 0.25\]", drawn)  # however busy the machine
            assert drawn.endswith("\r")
        else:
            assert drawn == ""


def test_durations() -> None:
    assert [show.duration(s) for s in (3.2, 125, 4200)] == ["3 s", "2 min 5 s", "1 h 10 min"]


def complete(script: Path, words: str) -> list[str]:
    """What bash offers for the last word."""
    text = (
        f"source {script}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_gpcert; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", text], cwd=script.parent, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_completion(tmp_path: Path) -> None:
    """By shtab, as docs/cli.md has it."""
    for shell in ("bash", "zsh"):
        command = [sys.executable, "-m", "shtab", "--shell", shell, "gpcert.cli.main.make_parser"]
        script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "matern12" in script
        (tmp_path / shell).write_text(script, encoding="utf-8")
    bash = tmp_path / "bash"
    assert complete(bash, "gpcert ra") == ["range", "radius"]
    assert complete(bash, "gpcert fit --kernel mat") == ["matern12", "matern32", "matern52"]
    assert complete(bash, "gpcert range --max-n") == ["--max-nodes"]
    assert complete(bash, "gpcert campaign st") == ["status"]
    (tmp_path / "model.safetensors").touch()
    assert complete(bash, "gpcert range mod") == ["model.safetensors"]
    assert complete(bash, "gpcert range model.safetensors --proof mod") == ["model.safetensors"]


@pytest.mark.parametrize("verb", [*VERBS, "reproduce"])
def test_help_shows_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert f"gpcert {verb}" in capsys.readouterr().out.split("examples:")[1]

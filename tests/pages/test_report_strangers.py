"""Results files of strangers: every entry of a real document mutated; one line and status 2, or a page."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_report import Outline

from gpcert.cli import main
from helpers.cli_files import patients
from helpers.report_files import about, results, write

VERBS = {
    "range": ("--radius", "0.1", "--scale", "std"),
    "certify": ("--radius", "0.1", "--radius", "0.6", "--scale", "std"),
    "radius": ("--scale", "std", "--rtol", "0.1"),
    "attack": ("--radius", "0.1", "--scale", "std"),
    "explain": ("--radius", "0.1", "--scale", "std"),
}
#: Stands in the text of a document for something that `json.dumps` does not write.
RAW = "-raw-"
TOKENS = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5000, '"\\ud800"', "[" * 99999]
VALUES = [None, True, 0, -1, 7, 0.5, -0.5, 1.5, 5e-324, -1e-300, 1e300, 1.7e308, -1.7e308]
VALUES += ["", "text", [], [0.9, 0.1], [None], ["a", "a"], {}, {"a": [1]}, [[[0.1]]]]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every verb saves about two rows."""
    folder = tmp_path_factory.mktemp("strangers")
    data, model = str(patients(folder, "data.csv", 40, 0)), str(folder / "model.safetensors")
    fit = ["fit", data, "--target", "state", "--drop", "who", "--max-evals", "3", "--quiet", "-o", model]
    assert main(fit) == 0
    made = {}
    for verb, options in VERBS.items():
        path = folder / f"{verb}.json"
        asked = ["--rows", "0:2", "--id", "who", "--jobs", "1", "--quiet", *options, "-o", str(path)]
        assert main([verb, model, data, *asked]) == 0
        made[verb] = json.loads(path.read_text(encoding="utf-8"))
    return made


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all entries; of lists, and of the texts of a record, only to the first."""
    if before:
        yield before
    if isinstance(value, dict):
        keys = list(value)[:1] if before and before[-1] in ("versions", "training") else list(value)
    else:
        keys = [0] if isinstance(value, list) and value else []
    for key in keys:
        yield from places(value[key], (*before, key))


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        document = document[key]
    return document


def mutants(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(what was done, the text of the document after it)."""
    whole = document["verb"] == "certify"  # of the others, the answers: the rest has the same entries
    for place in (place for place in places(document) if whole or place[0] == "answers"):
        for value in [*VALUES, RAW, *turned(at(document, place))]:
            changed = copy.deepcopy(document)
            at(changed, place[:-1])[place[-1]] = value
            text = json.dumps(changed)
            for token in TOKENS if value == RAW else [str(value)]:
                yield f"{place} = {token[:30]}", text.replace(f'"{RAW}"', token)
        changed = copy.deepcopy(document)
        del at(changed, place[:-1])[place[-1]]
        yield f"{place} gone", json.dumps(changed)
    text = json.dumps(document)
    for name in ("verb", "row", "radius", "answers"):
        yield f"{name} twice", text.replace(f'"{name}":', f'"{name}": 0, "{name}":')


def turned(value: Any) -> list[Any]:
    """The same with another sign, turned round, nested, too long."""
    if isinstance(value, list):
        return [value[::-1], [value], value * 2, value[:-1]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [-value, 1.0 - value, [value], str(value)]
    return [[value]]


def outcome(path: Path, capsys: pytest.CaptureFixture[str], *first: Path) -> tuple[int, str]:
    """The exit status, and the one line on standard error, which names the path, or the text of the page."""
    page = path.with_suffix(".html")
    page.unlink(missing_ok=True)
    status = main(["report", *map(str, first), str(path), "-o", str(page)])
    told = capsys.readouterr().err
    if status == 2:
        assert told.startswith("gpcert: ")
        assert told.count("\n") == 1
        assert len(told) < 600
        assert path.name in told
        assert not page.exists()
        return status, told
    assert (status, told) == (0, "")
    seen = Outline(page.read_text(encoding="utf-8"))
    assert not seen.open
    return status, seen.text


@pytest.mark.parametrize("verb", VERBS)
def test_every_entry_may_be_anything(
    verb: str,
    documents: dict[str, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "file.json"
    counts = {0: 0, 2: 0}
    for what, text in mutants(documents[verb]):
        path.write_text(text, encoding="utf-8")
        try:
            counts[outcome(path, capsys)[0]] += 1
        except BaseException as error:
            raise AssertionError(what) from error
    assert min(counts.values()) > 10


RANGE = {
    "radius": 0.1,
    "class": "8",
    "min": [0.2, 0.3],
    "max": [0.6, 0.7],
    "seconds": 1.0,
    "status": "converged",
}
CERTIFY = {"radius": 0.1, "verdict": "safe", "margin": [0.1, 0.2], "counterexample": None}
UNSAFE = {"verdict": "unsafe", "margin": [-0.2, -0.1], "counterexample": [0.0] * 4}
RADIUS = {"safe": 0.1, "unsafe": 0.2, "counterexample": [0.0] * 4}
ATTACK = {
    "radius": 0.1,
    "method": "pgd",
    "success": False,
    "attacked_probability": 0.6,
    "attacked": [0.0] * 4,
}
EXPLAIN = {"class": "8", "radius": 0.1, "value": [0.0] * 4, "lower": [-0.1] * 4, "upper": [0.1] * 4}


@pytest.mark.parametrize(
    ("verb", "entries", "told"),
    [
        ("range", RANGE | {"min": [0.9, 0.9], "max": [0.1, 0.1]}, "min must not lie above max"),
        ("range", RANGE | {"min": [0.3, 0.2]}, "min.lower must be <= upper, got 0.3 and 0.2"),
        ("range", RANGE | {"max": [0.6, 1.1]}, "max must be lower and upper end in [0, 1]"),
        ("range", RANGE | {"seconds": -1}, "seconds must be >= 0, got -1"),
        ("range", RANGE | {"radius": -0.1}, "radius must be >= 0, got -0.1"),
        ("certify", CERTIFY | {"margin": [-0.1, 0.2]}, "margin must have the sign of its verdict safe"),
        ("certify", CERTIFY | UNSAFE | {"margin": [-0.1, 0.2]}, "sign of its verdict unsafe"),
        ("certify", CERTIFY | UNSAFE | {"counterexample": None}, "counterexample must be given"),
        ("certify", CERTIFY | {"verdict": None}, "status must be one of safe, unsafe, unknown, got nothing"),
        ("certify", CERTIFY | {"id": 7}, "id must be a text"),
        ("certify", CERTIFY | {"label": "9"}, "label must be one of 3, 8, got '9'"),
        ("certify", CERTIFY | {"x": [0.0] * 3}, "x must have length 4, got 3"),
        ("certify", CERTIFY | {"probability": [0.9, 0.9]}, "probability must have the sum 1, got 1.8"),
        ("certify", CERTIFY | {"predicted": "3", "probability": [0.2, 0.8]}, "class of the largest"),
        ("radius", RADIUS | {"safe": -1.0}, "safe must be >= 0, got -1.0"),
        ("radius", RADIUS | {"safe": 0.3}, "safe must be < unsafe, got 0.3 and 0.2"),
        ("radius", RADIUS | {"safe": 5e-324, "unsafe": 5e-324}, "safe must be < unsafe"),
        ("radius", RADIUS | {"unsafe": None}, "counterexample must be given"),
        ("attack", ATTACK | {"attacked_probability": 2.0}, "probability must be in [0, 1], got 2.0"),
        ("explain", EXPLAIN | {"lower": [0.1] * 4}, "value must lie between lower and upper"),
        ("explain", EXPLAIN | {"upper": [3.0] * 4}, "upper must be in [-2, 2], got 3.0"),
        ("explain", EXPLAIN | {"upper": None}, "upper must be lists, got [None]"),
    ],
)
def test_numbers_that_cannot_be(
    verb: str, entries: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "file.json", results(verb, [{**about(0), **entries}]))
    status, line = outcome(path, capsys)
    assert status == 2
    assert f"{path}: answer 0 (row 0): " in line
    assert told in line


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (("certify", CERTIFY), ("certify", CERTIFY | UNSAFE), "contradicts safe, told before"),
        (("radius", RADIUS), ("certify", CERTIFY | UNSAFE), "safe up to 0.1 contradicts unsafe at 0.1"),
        (("certify", CERTIFY | {"radius": 0.3}), ("radius", RADIUS), "contradicts unsafe at 0.2"),
        (("certify", CERTIFY), ("attack", ATTACK | {"success": True}), "contradicts an attack at 0.1"),
        (("certify", CERTIFY), ("radius", RADIUS | {"x": [0.0] * 4}), "x must be the same in all answers"),
        (("certify", CERTIFY), ("radius", RADIUS | {"label": "other"}), "label must be the same"),
    ],
)
def test_answers_that_contradict_each_other(
    one: tuple[str, dict[str, Any]],
    other: tuple[str, dict[str, Any]],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = []
    for k, (verb, entries) in enumerate((one, other)):
        base = about(0)
        if entries.get("label") == "other":
            entries = entries | {"label": "3" if base["label"] == "8" else "8"}
        paths.append(write(tmp_path / f"{k}.json", results(verb, [{**base, **entries}])))
    status, line = outcome(paths[1], capsys, paths[0])
    assert status == 2
    assert told in line


def test_what_one_file_decides_another_does_not_leave_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = CERTIFY | {"verdict": "unknown", "margin": [-0.1, 0.1]}
    paths = [
        write(tmp_path / f"{k}.json", results("certify", [{**about(0), **entries}]))
        for k, entries in enumerate((CERTIFY, unknown))
    ]
    for first, second in (paths, paths[::-1]):
        status, text = outcome(first, capsys, second)
        assert status == 0
        assert "the class cannot change" in text
        assert "0.1: not decided" not in text


@pytest.mark.parametrize("radius", [5e-324, 1e-310, 1e-300, 1e300, 8e307])
def test_tiny_and_huge_radii(radius: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb, entries in (
        ("radius", RADIUS | {"safe": radius, "unsafe": 2 * radius if radius < 1e307 else 8.5e307}),
        ("certify", CERTIFY | {"radius": radius}),
        ("range", RANGE | {"radius": radius, "argmin": [-radius] * 4}),
        ("explain", EXPLAIN | {"radius": radius}),
    ):
        x = [0.0, radius, -radius, radius]
        path = write(tmp_path / "file.json", results(verb, [{**about(0), "x": x, **entries}]))
        assert outcome(path, capsys)[0] == 0


def test_names_that_no_encoding_has_are_shown_by_their_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file's name may hold any bytes, and so may what `gpcert` writes about it."""
    made = results("certify", [{**about(0), **CERTIFY}], command="gpcert certify \udcff.csv")
    path = write(tmp_path / os.fsdecode(b"r\xff.json"), made)
    page = tmp_path / "page.html"
    assert main(["report", str(path), "--title", "\udcfe", "-o", str(page)]) == 0
    capsys.readouterr()
    text = page.read_text(encoding="utf-8")
    assert "gpcert certify \\udcff.csv" in text
    assert "<title>\\udcfe</title>" in text
    assert main(["report", str(path), "-o", str(tmp_path / os.fsdecode(b"\xff.html"))]) == 0
    assert "report written" in capsys.readouterr().out


def test_only_what_can_be_counted_is_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = results("certify", [{**about(0), **CERTIFY}])
    for changes, told in (
        ({"asked": 0}, "asked must be at least 1"),
        ({"asked": 2}, "complete must be false where 1 of 2 are answered"),
        ({"seconds": -1.0}, "seconds must be >= 0"),
        ({"answers": [{**about(0), **CERTIFY, "row": -1}]}, "answer 0 must be an object with a row >= 0"),
    ):
        status, line = outcome(write(tmp_path / "file.json", good | changes), capsys)
        assert status == 2
        assert told in line


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("settings", "norm"), -3, "settings.norm must be 0, >= 1 or inf, got -3"),
        (("answers", 0, "answer", "region", "norm"), -3.0, "norm must be 0, >= 1 or inf, got -3.0"),
        (
            ("answers", 0, "answer", "about", "model"),
            "0" * 64,
            "answer.model must be the digest of the model",
        ),
        (("answers", 0, "answer", "schema"), 2, "answer.schema must be 1, got 2"),
        (("answers", 0, "probability"), [0.9, 0.9], "probability must have the sum 1, got 1.8"),
        (("answers", 0, "radius"), 0.2, "radius must be that of the region, 0.1, got 0.2"),
        (("answers", 0, "answer", "margin", "lower"), 0.9, "answer.margin.lower must be <= upper, got 0.9"),
    ],
)
def test_documents_that_no_command_wrote(
    place: tuple[Any, ...],
    value: Any,
    told: str,
    documents: dict[str, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = copy.deepcopy(documents["certify"])
    at(changed, place[:-1])[place[-1]] = value
    path = tmp_path / "file.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    status, line = outcome(path, capsys)
    assert status == 2
    assert told in line

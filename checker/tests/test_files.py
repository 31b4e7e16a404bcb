"""The command: sentences, exit status, and files that want to do harm."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bases import bases
from gpcert_check import Checker, Reject
from gpcert_check.balls import read_region
from gpcert_check.command import main
from gpcert_check.reading import real
from gpcert_check.words import Names
from making import Toy, at, ball


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.fixture
def base():
    return bases()[1]


def test_what_is_proved_is_said(base, tmp_path: Path, capsys) -> None:
    proof = write(tmp_path / "p.json", json.dumps(base.file))
    assert main([str(base.prover.path), proof, proof]) == 0
    said = capsys.readouterr().out
    value = float.fromhex(base.file["claims"][0]["value"])
    assert said.count("PROVED for the model " + base.prover.sha) == 2
    region = '{"kind": "box", "lower": [-0.8, -0.8], "upper": [0.8, 0.8]}, in which 2 of 2 features move: '
    region += "'x0' from about -0.8 to about 0.8, 'x1' from about -0.8 to about 0.8"
    assert f">= {value!r} everywhere in the region {region}" in said
    assert f"probability of {base.prover.checker.names.of(1)} >=" in said
    assert "at the point (" in said


def test_sentences_hide_nothing_of_a_region(base, tmp_path: Path) -> None:
    """A ball whose features stand still is a point, whatever its radius; long regions say how many move."""
    still = ball([0.25, 0.5], 2.0, "2", [])
    file = base.file | {"regions": [still], "claims": [at(1, ">=", 0.0, [0.25, 0.5])]}
    said = base.prover.checker.check(write(tmp_path / "p", json.dumps(file)))
    assert '"features": []' in said[1]
    assert said[1].endswith("in which 0 of 2 features move")
    long = ball([0.0] * 9, 0.5, "inf", [3, 4])
    digest = hashlib.sha256(json.dumps(long, sort_keys=True).encode()).hexdigest()
    told = Names(None, None, 9).region(long, read_region(long, 9))
    assert digest in told
    assert '"radius": 0.5' in told
    assert told.endswith("in which 2 of 9 features move: 'x3' from -0.5 to 0.5, 'x4' from -0.5 to 0.5")


def test_a_balance_says_of_which_regions(tmp_path: Path) -> None:
    base = next(each for each in bases() if each.name == "lines")
    said = base.prover.checker.check(write(tmp_path / "p", json.dumps(base.file)))
    sentence = next(each for each in said if "lies between" in each)
    assert sentence.count("max over the region") == 2
    assert sentence.count("- min over the region") == 1


def test_classes_have_their_labels(base) -> None:
    assert base.prover.checker.names.of(1) in ("class 1", "class 1 ('1')")
    for labels, told in (
        (["benign", "malignant"], "class 1 ('malignant')"),
        ([(0.0).hex(), (1.5).hex()], "class 1 ('1.5')"),
        ([0, 1], "class 1 ('1')"),
        (["0x", "0x1.zp"], "class 1 ('0x1.zp')"),
        ("no list", "class 1"),
        ([], "class 1"),
    ):
        assert Names(None, {"dtype": "str", "labels": labels}, 2).of(1) == told


def test_one_refused_file_makes_the_exit_status_one(base, tmp_path: Path, capsys) -> None:
    good = write(tmp_path / "p.json", json.dumps(base.file))
    bad = write(tmp_path / "q.json", json.dumps(base.file | {"model": "f" * 64}))
    assert main([str(base.prover.path), bad, good]) == 1
    said = capsys.readouterr().out
    assert f"{bad}: REJECTED: the proof is about another model" in said
    assert f"{good}: PROVED" in said
    assert main([str(base.prover.path), good, str(tmp_path / "none")]) == 1
    assert main([str(tmp_path / "none"), good]) == 1
    assert main([str(base.prover.path)]) == 2


def test_the_command_line(base, tmp_path: Path) -> None:
    good = write(tmp_path / "p.json", json.dumps(base.file))
    command = [sys.executable, "-m", "gpcert_check", str(base.prover.path), good]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "PROVED" in done.stdout
    helped = subprocess.run([*command[:3], "--help"], capture_output=True, text=True, check=False)
    assert (helped.returncode, helped.stderr) == (0, "")
    for word in ("MODEL", "PROOF", "--expect-model", "--json", "exit status"):
        assert word in helped.stdout


def test_a_reader_who_goes_away_ends_it_quietly(base, tmp_path: Path) -> None:
    good = write(tmp_path / "p.json", json.dumps(base.file))
    command = [sys.executable, "-m", "gpcert_check", str(base.prover.path), *[good] * 20]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
        run.wait()


def test_folders_are_searched_and_the_last_line_counts(base, tmp_path: Path, capsys) -> None:
    inside = tmp_path / "proofs" / "more"
    inside.mkdir(parents=True)
    for place in (inside / "b.json", inside.parent / "a.json"):
        write(place, json.dumps(base.file))
    write(inside / "notes.txt", "no proof")
    model, claims = str(base.prover.path), len(base.file["claims"])
    assert main([model, str(inside.parent)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said if ": PROVED" in line] == [
        str(inside.parent / "a.json"), str(inside / "b.json")
    ]  # fmt: skip
    total = f"2 of 2 files proved, with {2 * claims} claims, for the model {base.prover.sha}"
    assert said[-1] == total
    (tmp_path / "empty").mkdir()
    write(inside / "c.json", "{}")
    assert main([model, str(tmp_path / "empty"), str(inside)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("empty: REJECTED: the folder holds no .json file")
    assert said[-1].startswith(f"1 of 3 files proved, with {claims} claims")


def test_only_the_expected_model_is_asked_about(base, tmp_path: Path, capsys) -> None:
    good, model = write(tmp_path / "p.json", json.dumps(base.file)), str(base.prover.path)
    for expected in (base.prover.sha, base.prover.sha.upper(), model):
        assert main([model, good, "--expect-model", expected]) == 0
    capsys.readouterr()
    other = write(tmp_path / "other", base.prover.path.read_bytes() + b" ")
    for expected in ("0" * 64, other):
        assert main([model, good, "--expect-model", expected]) == 1
        (line,) = capsys.readouterr().out.splitlines()
        assert f"REJECTED: its SHA-256 is {base.prover.sha}, expected " in line
    for expected in (str(tmp_path / "none"), base.prover.sha[:12]):
        assert main([model, good, "--expect-model", expected]) == 2
        assert "--expect-model must be a SHA-256 or a file" in capsys.readouterr().err


def test_json_says_the_same_as_data(base, tmp_path: Path, capsys) -> None:
    good = write(tmp_path / "p.json", json.dumps(base.file | {"about": {"row": "patient \u202e 7"}}))
    bad = write(tmp_path / "q.json", "[]")
    assert main(["--json", str(base.prover.path), good, bad]) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    told = json.loads(out)
    assert told["model"] == {"path": str(base.prover.path), "sha256": base.prover.sha, "reason": None}
    assert (told["proved"], told["refused"]) == (1, 1)
    first, second = told["files"]
    assert (first["path"], first["proved"], first["row"]) == (good, True, "patient \u202e 7")
    assert [each["value"] for each in first["claims"] if "value" in each] == [
        float.fromhex(each["value"]) for each in base.file["claims"] if "value" in each
    ]
    assert len(first["sentences"]) == len(first["claims"]) + 1
    assert first["regions"][0]["kind"] == base.file["regions"][0]["kind"]
    assert second == {"path": bad, "proved": False, "reason": second["reason"]}
    assert main(["--json", str(tmp_path / "none"), good]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["reason"] == "no such regular file"
    assert told["files"] == []


def test_a_file_names_its_row_and_no_names_but_the_model_s(base, tmp_path: Path, capsys) -> None:
    toy, row = Toy(1), "Z\u00fcrich, 7'\u202e\x1b[2J\n PROVED"
    names = {"feature_names": ["age \u202e", "bmi"], "classes": {"dtype": "str", "labels": ["no", "yes"]}}
    toy.write(tmp_path / "m", toy.description() | names)
    checker = Checker(str(tmp_path / "m"))
    region = {"kind": "box", "lower": [(0.5).hex(), (0.1).hex()], "upper": [(0.75).hex(), (0.1).hex()]}
    file = {"format": "gpcert-proof-1", "model": checker.model.sha256, "facts": [None], "regions": [region]}
    file |= {"claims": [at(1, ">=", 0.0, [0.5, 0.1])]}
    about = {"row": row, "features": names["feature_names"], "classes": ["no", "yes"]}
    path = write(tmp_path / "p.json", json.dumps(file | {"about": about}))
    assert main([str(tmp_path / "m"), path]) == 0
    said = capsys.readouterr().out
    assert 'for the row that the file calls "Zürich, 7\'\\u202e\\x1b[2J\\n PROVED":' in said
    assert "class 1 ('yes') >=" in said
    assert "in which 1 of 2 features move: 'age \\u202e' from 0.5 to 0.75" in said
    assert all(line.isprintable() for line in said.splitlines())
    for wrong in (
        {"features": ["bmi", "age"]},
        {"classes": ["yes", "no"]},
        {"row": 7},
        {"row": "x" * 201},
        {"row": None},
        {"unit": "mm"},
        [],
        None,
    ):
        write(tmp_path / "p.json", json.dumps(file | {"about": wrong}))
        assert main([str(tmp_path / "m"), path]) == 1
        assert len(capsys.readouterr().out.splitlines()) == 2


def test_it_needs_neither_gpcert_nor_numpy() -> None:
    code = "import sys, gpcert_check.command; sys.exit(any(m in sys.modules for m in ('gpcert', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "text", ["0x1.4p-1074", "0x1.8p+0", "0x1.0000000000000p+1024", "1.5", "0X1.8000000000000P+0"]
)
def test_a_number_is_the_double_it_is_written_as(text: str) -> None:
    assert real((1.5).hex()) == 1.5
    with pytest.raises(Reject, match="double"):
        real(text)


def test_a_field_that_stands_twice_is_refused_in_a_file_that_is_right_otherwise(base, tmp_path: Path) -> None:
    text = json.dumps(base.file)
    base.prover.checker.check(write(tmp_path / "p", text))
    with pytest.raises(Reject, match="twice"):
        base.prover.checker.check(write(tmp_path / "p", '{"model": "' + base.prover.sha + '", ' + text[1:]))


def test_the_walk_of_the_documentation(base, tmp_path: Path, capsys) -> None:
    """docs/proof.md: one digit of the claim, then of its level, then of the model."""
    first = base.file["claims"][0]
    raised = first | {"value": (float.fromhex(first["value"]) + 0.05).hex()}
    further = raised | {"proof": first["proof"] | {"t": (float.fromhex(first["proof"]["t"]) + 0.2).hex()}}
    said = []
    for claim in (raised, further):
        path = write(tmp_path / "p.json", json.dumps(base.file | {"claims": [claim]}))
        assert main([str(base.prover.path), path]) == 1
        said.append(capsys.readouterr().out)
    blob = bytearray(base.prover.path.read_bytes())
    blob[-1] ^= 1
    model = write(tmp_path / "m", bytes(blob))
    assert main([model, write(tmp_path / "p.json", json.dumps(base.file))]) == 1
    said.append(capsys.readouterr().out)
    assert "REJECTED: V4: the level lies below the claim\n" in said[0]
    assert (
        "REJECTED: the inequality of a leaf fails\n" in said[1]
        or "REJECTED: V5: H + diag(D) is not" in said[1]
    )
    assert "REJECTED: the proof is about another model\n" in said[2]


DEEP = 100_000
HOSTILE = {
    "empty": "",
    "not JSON": "proof",
    "not UTF-8": b"\xff\xfe{}",
    "a list": "[]",
    "a number": "7",
    "deep lists": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "never closed": "[" * DEEP,
    "a field twice": '{"format": "gpcert-proof-1", "format": "gpcert-proof-1"}',
    "NaN": '{"format": NaN}',
    "Infinity": '{"format": -Infinity}',
    "a decimal number": '{"format": 0.1}',
    "an exponent": '{"format": 1e5}',
    "a long integer": '{"format": 1' + "0" * 5_000 + "}",
    "an integer of eleven digits": '{"format": 10000000000}',
    "a million commas": "[" + "0," * 2_100_000 + "0]",
    "a million objects": "[" + "{}," * 1_100_000 + "{}]",
    "truncated": '{"format": "gpcert-pro',
    "a null byte": '{"format": "\x00"}',
    "a lonely surrogate": '{"format": "\\ud800"}',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_one_sentence(kind: str, base, tmp_path: Path, capsys) -> None:
    path = write(tmp_path / "p.json", HOSTILE[kind])
    with pytest.raises(Reject):
        base.prover.checker.check(path)
    assert main([str(base.prover.path), path]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert said[1].startswith("0 of 1 files proved")
    assert len(said[0]) < len(path) + 400


def test_sizes_are_limited_before_anything_is_read(base, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with open(path, "wb") as file:
        file.truncate(2**40)  # a sparse file
    with pytest.raises(Reject, match="larger than"):
        base.prover.checker.check(str(path))
    with pytest.raises(Reject, match="larger than"):
        Checker(str(path))
    for odd in (tmp_path, "/dev/zero"):
        with pytest.raises(Reject, match="no such regular file"):
            base.prover.checker.check(str(odd))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Reject, match="no such regular file"):
        base.prover.checker.check(str(tmp_path / "pipe"))


def test_a_tree_that_never_ends_is_short(base, tmp_path: Path) -> None:
    """Splits are listed, not counted: a tree of 10^9 nodes would need a file of that size."""
    proof = base.file["claims"][0]["proof"]
    endless = proof | {"tree": [{"split": 0, "at": (0.0).hex()}] * 210_000}
    file = base.file | {"claims": [base.file["claims"][0] | {"proof": endless}]}
    with pytest.raises(Reject, match="at most 200000 nodes"):
        base.prover.checker.check(write(tmp_path / "p", json.dumps(file)))


def test_claims_are_counted_before_any_is_checked(base, tmp_path: Path) -> None:
    file = base.file | {"claims": [at(1, ">=", 0.0, [0.0, 0.0])] * 50_001}
    with pytest.raises(Reject, match="at most 50000"):
        base.prover.checker.check(write(tmp_path / "p", json.dumps(file)))


def model_bytes(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape: object, first: object = 0, last: object = 8, dtype: str = "F64") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


META = {"__metadata__": {"gpcert": json.dumps(Toy(1, 1, 1).description())}}
ONES = {name: tensor(shape) for name, shape in (("centres", [1, 1]), ("weights", [1]), ("precision", [1, 1]))}
DOUBLE = struct.pack("<d", 0.5)
MODELS = {
    "empty": b"",
    "seven bytes": b"1234567",
    "a header longer than the file": struct.pack("<Q", 2**63) + b"{}",
    "a header that is no object": model_bytes([]),
    "no metadata": model_bytes({}),
    "no description": model_bytes({"__metadata__": {}}),
    "a description that is no text": model_bytes({"__metadata__": {"gpcert": 1}}),
    "a description that is no JSON": model_bytes({"__metadata__": {"gpcert": "{"}}),
    "a deep description": model_bytes({"__metadata__": {"gpcert": "[" * DEEP}}),
    "a field twice": model_bytes(b'{"a": 1, "a": 1}'),
    "no tensors": model_bytes(META),
    "an unknown tensor": model_bytes(META | ONES | {"more": tensor([1])}, DOUBLE),
    "a shape beyond the file": model_bytes(
        META | ONES | {"centres": tensor([10**7, 10**7], 0, 8 * 10**14)}, DOUBLE
    ),
    "a shape that is no list": model_bytes(META | ONES | {"centres": tensor(1)}, DOUBLE),
    "a negative shape": model_bytes(META | ONES | {"centres": tensor([-1, -1])}, DOUBLE),
    "true for 1": model_bytes(META | ONES | {"centres": tensor([True, 1])}, DOUBLE),
    "no centres": model_bytes(META | ONES | {"centres": tensor([0, 1], 0, 0)}, DOUBLE),
    "a negative offset": model_bytes(META | ONES | {"weights": tensor([1], -8, 0)}, DOUBLE),
    "an offset beyond the file": model_bytes(META | ONES | {"weights": tensor([1], 8, 16)}, DOUBLE),
    "an offset that is no integer": model_bytes(META | ONES | {"weights": tensor([1], "0", 8)}, DOUBLE),
    "three offsets": model_bytes(
        META | ONES | {"weights": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8, 8]}}, DOUBLE
    ),
    "float32": model_bytes(META | ONES | {"weights": tensor([2], 0, 8, "F32")}, DOUBLE),
    "two weights": model_bytes(META | ONES | {"weights": tensor([2], 0, 16)}, DOUBLE * 2),
    "a precision of another shape": model_bytes(
        META | ONES | {"precision": tensor([2, 1], 0, 16)}, DOUBLE * 2
    ),
    "not finite": model_bytes(META | ONES, struct.pack("<d", float("nan"))),
    "infinite": model_bytes(META | ONES, struct.pack("<d", float("inf"))),
    "a witness of another length": model_bytes(
        META | ONES | {"factors.site_precision": tensor([2], 0, 16)}, DOUBLE * 2
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_hostile_model_is_one_sentence(kind: str, base, tmp_path: Path, capsys) -> None:
    path = write(tmp_path / "m", MODELS[kind])
    with pytest.raises(Reject):
        Checker(path)
    assert main([path, write(tmp_path / "p", json.dumps(base.file))]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


DESCRIPTIONS = {
    "another format": {"format": 2},
    "another kernel": {"kernel": {"type": "cosine", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}},
    "a kernel with more": {
        "kernel": {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex(), "power": 1}
    },
    "a kernel that is none": {"kernel": None},
    "too many kernels": {
        "kernel": [{"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}] * 2
    },
    "variance 0": {"kernel": {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (0.0).hex()}},
    "lengthscales of another dimension": {
        "kernel": {"type": "rbf", "lengthscale": [(1.0).hex()] * 3, "variance": (1.0).hex()}
    },
    "a mean that is a number": {"mean": 0.5},
    "no likelihood": {"likelihood": None},
    "another likelihood": {"likelihood": {"name": "cauchy"}},
    "a likelihood with more": {"likelihood": {"name": "probit", "scale": (1.0).hex(), "floor": (0.1).hex()}},
    "scale 0": {"likelihood": {"name": "probit", "scale": (0.0).hex()}},
    "one-vs-rest of one": {"likelihood": {"name": "one_vs_rest", "link": {"name": "logit"}}},
    "a further entry": {"more": 1},
}


@pytest.mark.parametrize("kind", DESCRIPTIONS)
def test_a_model_that_is_not_understood_is_refused(kind: str, tmp_path: Path) -> None:
    toy = Toy(1)
    toy.write(tmp_path / "m")
    assert Checker(str(tmp_path / "m")).model.n == toy.n
    toy.write(tmp_path / "m", toy.description() | DESCRIPTIONS[kind])
    with pytest.raises(Reject):
        Checker(str(tmp_path / "m"))

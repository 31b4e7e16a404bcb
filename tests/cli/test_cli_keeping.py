"""No answer is lost: signals, killed processes, full disks, folders that go away while the work is done."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir, suppress
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from gpcert.cli import main
from gpcert.records.results_file import read_results
from gpcert.running.workers import BEGUN
from helpers.cli_files import NAMES, Running, patients, points, write_table

RANGE = ("range", "model.safetensors", "test.csv", "--radius", "0.1", "--scale", "std")
#: One easy row, then rows of many lengthscales that no machine finishes to 1e-9.
ENDLESS = (
    *("range", "model.safetensors", "hard.csv", "--radius-column", "error", "--scale", "std"),
    *("--tolerance", "1e-9"),
)
BUSY = r"range: .*1/4 .*width (1|0\.\d*[1-9])"  # workers are at the hard rows
TRAIN = ("fit", "train.csv", "--target", "state", "--drop", "who")
FIT = ("fit", "dataset:mnist38", "--max-evals", "500", "--inference", "ep", "-o")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keeping")
    patients(made, "train.csv", 60, 0)
    patients(made, "test.csv", 12, 1)
    X, _ = points(4, 1)
    rows = [[*map(repr, x.tolist()), r] for x, r in zip(X, (0.0, 9.0, 9.0, 9.0), strict=True)]
    write_table(made / "hard.csv", rows, [*NAMES, "error"])
    with chdir(made):
        assert main([*TRAIN, "--max-evals", "15", "-o", "model.safetensors", "--quiet"]) == 0
        Path("complete").mkdir()
        assert main([*RANGE, "--jobs", "1", "-o", "complete/run.json"]) == 0
    return made


@pytest.fixture
def old(folder: Path) -> Path:
    """A complete file of an earlier run, and no other results."""
    for path in folder.glob("*.json"):
        path.unlink()
    return Path(shutil.copy(folder / "complete/run.json", folder / "old.json"))


def saved(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.json"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_never_replaces_a_file(folder: Path, old: Path, number: int) -> None:
    """The signal goes to the whole group: the workers tell what they know even so."""
    name = "old.partial.json"
    if number == signal.SIGHUP:  # a third run: what the second knew stays, too
        name = "old.partial-2.json"
        (folder / "old.partial.json").write_text("of the second run")
    before = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    run = Running(folder, *ENDLESS, "--jobs", "2", "-o", "old.json")
    run.until(BUSY)
    run.to_group(number)
    status, out, told = run.end()
    assert status == 128 + number
    assert f"gpcert: old.json stays as it was; this incomplete run is in {name}" in told
    assert "memory" not in told
    assert "Traceback" not in told
    assert out.endswith(f"saved: {name}\n")
    known, rows = read_results(folder / name)
    assert known["complete"] is False
    ended = {row.row: row.answer.status for row in rows}
    assert ended.pop(0) != "interrupted"
    assert set(ended.values()) == {"interrupted"}  # those under way, with their bounds
    assert {path.name: path.read_bytes() for path in folder.glob("*.json") if path.name != name} == before
    assert not list(run.temporary.iterdir())


def test_an_empty_file_has_nothing_to_lose(folder: Path, old: Path) -> None:
    (folder / "new.json").touch()  # as `mktemp` leaves it
    run = Running(folder, *ENDLESS, "--jobs", "1", "-o", "new.json")
    run.until(BUSY)
    run.to_group(signal.SIGTERM)
    assert run.end()[0] == 143
    assert saved(folder) == ["new.json", "old.json"]
    assert len(read_results(folder / "new.json")[1]) == 2


def test_a_complete_run_replaces_an_incomplete_file(folder: Path, old: Path) -> None:
    old.write_text(old.read_text().replace('"complete": true', '"complete": false'))
    with chdir(folder):
        assert main([*RANGE, "--jobs", "1", "-o", "old.json"]) == 0
    assert read_results(old)[0]["complete"] is True
    assert saved(folder) == ["old.json"]


def test_a_killed_worker_costs_nothing_but_time(folder: Path, old: Path) -> None:
    run = Running(folder, *ENDLESS, "--max-seconds", "4", "--jobs", "2", "-o", "new.json", "--quiet")
    while not any(map(at_a_hard_row, run.temporary.glob("gpcert-*"))):
        assert run.process.poll() is None
        time.sleep(0.02)
    os.kill(run.workers()[0], signal.SIGKILL)
    status, _, told = run.end()
    assert status == 0
    assert "gpcert: a worker ran out of memory or was killed: its work was repeated" in told
    ended = {r.row: r.answer.status for r in read_results(folder / "new.json")[1]}
    assert ended.pop(0) != "time limit"
    assert set(ended) == {1, 2, 3}
    assert set(ended.values()) <= {"time limit", "numerical limit"}  # what a fast machine comes to


def test_workers_killed_again_and_again_cost_only_their_rows(folder: Path, old: Path) -> None:
    before = old.read_bytes()
    run = Running(folder, *ENDLESS, "--jobs", "2", "-o", "old.json", "--quiet")
    kill_whoever_begins(run)
    status, _, told = run.end()
    assert status == 1
    assert "gpcert: a worker ran out of memory or was killed: 3 of 4 are not answered" in told
    assert [a.row for a in read_results(folder / "old.partial.json")[1]] == [0]
    assert old.read_bytes() == before


def test_nothing_known_nothing_saved(folder: Path, old: Path) -> None:
    run = Running(folder, *ENDLESS, "--rows", "1:3", "--jobs", "2", "-o", "new.json", "--quiet")
    kill_whoever_begins(run)
    status, out, told = run.end()
    assert status == 1
    assert "gpcert: no row was answered: nothing is saved in new.json" in told
    assert out.startswith("0 of 2 answered")
    assert saved(folder) == ["old.json"]


def at_a_hard_row(board: Path) -> bool:
    """Whether a worker is at a piece, has reported, and its bounds are wide."""
    with suppress(OSError, ValueError):
        rows = np.fromfile(board).reshape(-1, 7)[:-1]
        return bool(((rows[:, 0] == BEGUN) & (rows[:, 3] - rows[:, 2] > 1e-6)).any())
    return False


def kill_whoever_begins(run: Running) -> None:
    """All workers, as soon as one is at a hard row."""
    while run.process.poll() is None:
        for board in filter(at_a_hard_row, run.temporary.glob("gpcert-*")):
            for worker in run.workers():
                os.kill(worker, signal.SIGKILL)
            while board.exists():
                time.sleep(0.02)
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_parent_leaves_nothing(folder: Path, number: int) -> None:
    """`end` waits for the last process of the session."""
    run = Running(folder, *ENDLESS, "--jobs", "2")
    run.until(BUSY)
    assert len(run.workers()) == 2
    run.process.send_signal(number)
    assert run.end()[0] in (-number, 128 + number)
    assert not list(run.temporary.iterdir())


def test_a_run_that_ignores_hangups_goes_on(folder: Path) -> None:
    run = Running(folder, *ENDLESS, "--jobs", "2", ignored=(signal.SIGHUP,))
    run.until(BUSY)
    run.to_group(signal.SIGHUP)
    run.to_group(signal.SIGTERM)
    status, _, told = run.end()
    assert status == 143
    assert told.count("stopping;") == 1


def test_the_second_signal_ends_at_once_the_third_does_nothing(folder: Path, old: Path) -> None:
    run = Running(folder, *ENDLESS, "--jobs", "2", "-o", "new.json")
    run.until(BUSY)
    for _ in range(9):
        run.to_group(signal.SIGINT)
    status, out, _ = run.end()
    assert status == 130
    assert out.endswith("saved: new.json\n")
    assert read_results(folder / "new.json")[1][0].row == 0


def limited(
    folder: Path, *arguments: str, size: int = 1000, **options: object
) -> subprocess.CompletedProcess:
    """A limit on file sizes stands for a disk that is full: the kernel refuses the write in the middle."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-m", "gpcert", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, cwd=folder, text=True, preexec_fn=limit, **options)


def test_on_a_full_disk_every_answer_is_printed(folder: Path, old: Path) -> None:
    before = old.read_bytes()
    done = limited(folder, *RANGE, "-o", "old.json")
    assert done.returncode == 1
    reason = "gpcert: old.json could not be written (File too large); every answer is on standard output\n"
    assert done.stderr == reason
    assert [a["answer"]["min"] for a in json.loads(done.stdout)["answers"]] == [
        a["answer"]["min"] for a in json.loads(before)["answers"]
    ]
    assert old.read_bytes() == before
    assert saved(folder) == ["old.json"]
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_a_model_that_cannot_be_saved_leaves_its_kernel(folder: Path) -> None:
    done = limited(folder, *TRAIN, "--max-evals", "3", "-o", "new.safetensors")
    assert done.returncode == 1
    assert done.stderr.startswith("gpcert: new.safetensors could not be written (")
    assert "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "kernel: RBF(lengthscale=" in done.stdout
    assert "saved" not in done.stdout
    assert not (folder / "new.safetensors").exists()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_folder_that_went_away_costs_no_answer(folder: Path, old: Path, terminal: bool) -> None:
    """A log gets the whole document as well; a terminal is not flooded with it."""
    (folder / "gone").mkdir()
    run = Running(folder, *ENDLESS, "--jobs", "1", "-o", "gone/new.json", terminal=terminal)
    run.until(BUSY)
    shutil.rmtree(folder / "gone")
    run.to_group(signal.SIGTERM)
    status, out, told = run.end()
    assert status == 1
    (place,) = run.temporary.glob("gpcert-rescued-*/new.json")
    assert place.parent.stat().st_mode & 0o077 == 0  # patients' data, in a folder that all can read
    assert (
        f"gone/new.json could not be written (No such file or directory); saved in its place: {place}" in told
    )
    if terminal:
        assert f"saved: {place}\r\n" in told
        assert '"answers"' not in told
    else:
        assert json.loads(out) == read_results(place)[0]
    assert [a.row for a in read_results(place)[1]] == [0, 1]


def test_nor_a_model(folder: Path) -> None:
    (folder / "gone").mkdir()
    run = Running(folder, *FIT, "gone/new.safetensors")
    run.until("log marginal likelihood")
    shutil.rmtree(folder / "gone")
    run.to_group(signal.SIGTERM)
    status, out, _ = run.end()
    assert status == 1
    (place,) = run.temporary.glob("gpcert-rescued-*/new.safetensors")
    assert f"saved: {place}\n" in out
    assert gc.load(place).n_centres == 1000


def test_interrupted_training_never_replaces_a_model(folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "m.safetensors")
    run = Running(folder, *FIT, "m.safetensors", "--json")
    run.until("log marginal likelihood")
    run.to_group(signal.SIGHUP)
    status, out, told = run.end()
    assert status == 129
    assert json.loads(out)["model"] == "m.partial.safetensors"
    assert "m.safetensors stays as it was; this incomplete run is in m.partial.safetensors" in told
    assert (folder / "m.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert gc.load(folder / "m.partial.safetensors").n_centres == 1000


def test_standard_output_that_fails_costs_no_answer(folder: Path, old: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    full_device = os.open("/dev/full", os.O_WRONLY)
    full = {"stdout": full_device, "env": environment, "size": 1 << 30}
    done = limited(folder, *RANGE, "-o", "new.json", **full)
    assert done.returncode == 1
    assert done.stderr == "gpcert: standard output could not be written (No space left on device)\n"
    assert len(read_results(folder / "new.json")[1]) == 12
    for option in ((), ("--json",)):
        done = limited(folder, *RANGE, *option, **full)
        assert done.returncode == 1
        (place,) = tmp_path.glob("*/range.json")
        reason = "standard output could not be written (No space left on device)"
        assert done.stderr == f"gpcert: {reason}; saved in its place: {place}\n"
        assert len(read_results(place)[1]) == 12
        shutil.rmtree(place.parent)
    done = limited(folder, *TRAIN, "--max-evals", "0", "-o", "n.safetensors", **full)
    os.close(full_device)
    assert done.returncode == 1
    assert done.stderr == "gpcert: standard output could not be written (No space left on device)\n"


def test_a_reader_that_has_gone_costs_no_file(folder: Path, old: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = limited(folder, *RANGE, "--json", "-o", "new.json", stdout=theirs, size=1 << 30)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(read_results(folder / "new.json")[1]) == 12


def test_a_letter_that_cannot_be_printed_costs_no_answer(folder: Path) -> None:
    X, _ = points(2, 1)
    rows = [[f"Jürgen {i}", *map(repr, x.tolist())] for i, x in enumerate(X)]
    write_table(folder / "named.csv", rows, ["who", *NAMES])
    asked = ("range", "model.safetensors", "named.csv", "--id", "who", "--radius", "0", "--scale", "std")
    done = limited(folder, *asked, env=os.environ | {"PYTHONIOENCODING": "ascii"}, size=1 << 30)
    assert (done.returncode, done.stderr) == (0, "")
    assert "J\\xfcrgen 1" in done.stdout


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("x" * 300 + ".json", "--output must be a file that can be written, got xxx"),
        ("x" * 240 + ".json", "(File name too long)"),
        ("/proc/new.json", "--output must be a file that can be written, got /proc/new.json (No such file"),
        ("circle.json", "--output must be a file that can be written, got circle"),
        ("page.docx", "--output must end in .{end}"),
        ("new", "--output must end in .{end}"),
        ("-", "--output must end in .{end}"),
        ("nowhere/new.json", "--output must be in a folder that exists, got nowhere/new.json"),
        ("test.csv/new.json", "--output must be in a folder that exists, got test.csv/new.json"),
        (".", "--output must be a file, got the folder ."),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(
    folder: Path, old: Path, output: str, told: str, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(folder)
    for end in ("json", "html", "safetensors"):
        circle = folder / f"circle.{end}"
        circle.unlink(missing_ok=True)
        circle.symlink_to(circle)
    before = set(folder.iterdir())
    verbs = ((RANGE, "json"), (("certify", *RANGE[1:]), "json"), (TRAIN, "safetensors"))
    for verb, end in (*verbs, (("report", "old.json"), "html")):
        capsys.readouterr()
        assert main([*verb, "-o", output.replace(".json", f".{end}")]) == 2
        seen = capsys.readouterr()
        assert seen.out == ""
        assert told.format(end=end).replace(".json", f".{end}") in seen.err
        assert seen.err.count("\n") == 1
    assert set(folder.iterdir()) == before


def test_a_page_that_cannot_be_saved(folder: Path, old: Path) -> None:
    (folder / "page.html").write_text("before")
    done = limited(folder, "report", "old.json", "-o", "page.html")
    assert done.returncode == 1
    assert done.stderr == "gpcert: page.html could not be written (File too large)\n"
    assert done.stdout == ""
    assert (folder / "page.html").read_text() == "before"

"""Streams that are closed, readers that are slow, runs interrupted together: what is known is kept."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import pytest

from gpcert.cli import main
from gpcert.cli.keeping import keep
from gpcert.files import write_whole
from gpcert.numbers import at_most
from gpcert.pages.charts import _histogram
from helpers.cli_files import patients

COMMAND = f"{sys.executable} -m gpcert certify model.safetensors test.csv --radius 0.1 --scale std --jobs 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    patients(made, "train.csv", 30, 0)
    patients(made, "test.csv", 400, 1)
    fit = ("fit", "train.csv", "--target", "state", "--drop", "who", "--max-evals", "0", "--quiet")
    with chdir(made):
        assert main([*fit, "-o", "model.safetensors"]) == 0
    return made


def run(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)


def test_answers_for_a_closed_standard_output_are_rescued(folder: Path, tmp_path: Path) -> None:
    done = run(folder, f"{COMMAND} --rows 0:3 >&-", TMPDIR=str(tmp_path))
    assert done.returncode == 1
    (rescued,) = tmp_path.glob("gpcert-rescued-*/certify.json")
    assert str(rescued) in done.stderr
    assert len(json.loads(rescued.read_text(encoding="utf-8"))["answers"]) == 3


def test_a_closed_standard_error_costs_nothing(folder: Path) -> None:
    done = run(folder, f"{COMMAND} --rows 0:3 --json -o closed.json 2>&-")
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads((folder / "closed.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("signals", [1, 2])
def test_signals_while_a_slow_reader_takes_the_answers(folder: Path, signals: int) -> None:
    """They change nothing any more: the work is done, and is told to the end."""
    env = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    command = [*COMMAND.split(), "--json"]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=-1, stderr=-1, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"{"  # the work is done: more than a pipe holds waits to be read
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
        out, told = process.communicate()
    assert process.returncode == 0
    assert told == b""
    assert len(json.loads(b"{" + out)["answers"]) == 400


def test_two_interrupted_runs_never_take_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text("complete", encoding="utf-8")
    inner = []

    def write(place: Path) -> None:
        if not inner:  # the other run comes between the choice of a name and the writing
            inner.append(None)
            inner[0] = keep(path, lambda other: write_whole(other, "second"), complete=False)
        write_whole(place, "first")

    kept = keep(path, write, complete=False)
    assert [p.read_text(encoding="utf-8") for p in (kept.place, inner[0].place)] == ["first", "second"]
    assert path.read_text(encoding="utf-8") == "complete"


def test_the_median_of_upper_bounds_is_an_upper_bound() -> None:
    page = str(_histogram([0.1, 0.9], "delta", "Delta", at_most, "rows", upper=True))
    assert "median 0.900" in page.replace("0.901", "0.900")

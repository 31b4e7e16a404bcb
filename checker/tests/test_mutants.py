"""Deliberate mistakes in the checker, each caught by its tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import MUTANTS

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "gpcert_check"
#: Asked one after the other until one fails, that of the module itself first.
TESTS = (
    "regions",
    "claims",
    "sharper",
    "five_erf",
    "statements",
    "clipped",
    "joint",
    "softmax",
    "anchors",
    "shares",
    "radial",
    "few",
    "bounds",
    "tampering",
    "files",
)


def test_every_mistake_is_in_the_checker_as_it_stands() -> None:
    """The list keeps up with the code: each passage occurs exactly once."""
    assert len(MUTANTS) >= 30
    for module, right, wrong in MUTANTS:
        text = (PACKAGE / f"{module}.py").read_text()
        assert text.count(right) == 1, (module, right)
        assert right != wrong


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[2][:40]}")
def test_a_mistake_is_caught(mutant: tuple[str, str, str], tmp_path: Path) -> None:
    module, right, wrong = mutant
    shutil.copytree(PACKAGE, tmp_path / "gpcert_check")
    path = tmp_path / "gpcert_check" / f"{module}.py"
    path.write_text(path.read_text().replace(right, wrong))
    compile(path.read_text(), str(path), "exec")
    tests = [str(HERE / f"test_{name}.py") for name in sorted(TESTS, key=lambda name: name != module)]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not full", *tests]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[
        -2_000:
    ]  # a test failed; 2 or more would be an error of another kind

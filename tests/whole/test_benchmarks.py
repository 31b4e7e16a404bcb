"""Benchmarks are not run by tests, but each finds what it imports and says what it measures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from helpers.documents import ROOT

PATHS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "run")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_benchmark_imports_and_has_a_title(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(path.parent))
    names = runpy.run_path(str(path), run_name="imported")
    assert names["TITLE"]
    assert callable(names["measure"])

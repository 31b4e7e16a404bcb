"""The tutorials that need a library of this environment: `make test-adapters`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.documents import ELSEWHERE, ROOT, run_blocks

HERE = [name for name in ELSEWHERE if find_spec(name.removesuffix(".md"))]


def test_there_is_a_tutorial_for_this_environment() -> None:
    assert HERE


@pytest.mark.parametrize("name", HERE)
def test_the_blocks_run_and_print_what_is_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(ROOT / "docs" / "tutorials" / name)

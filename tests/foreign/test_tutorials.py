"""The tutorials that need a library of this environment: `make test-adapters`."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from helpers.documents import PAGES, ROOT, assert_current

HERE = [name for name in PAGES["ELSEWHERE"] if find_spec(name)]


def test_there_is_a_tutorial_for_this_environment() -> None:
    assert HERE


@pytest.mark.parametrize("name", HERE)
def test_the_blocks_run_and_print_what_is_shown(name: str) -> None:
    assert_current(ROOT / "docs" / "tutorials" / f"{name}.md")

"""The tutorial that needs GPflow: task `adapters` of environments.toml."""

from __future__ import annotations

from helpers.documents import ROOT, assert_current


def test_the_blocks_run_and_print_what_is_shown() -> None:
    assert_current(ROOT / "docs" / "tutorials" / "gpflow.md")

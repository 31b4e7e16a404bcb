"""Every test begins as a file does: with no work spent."""

from __future__ import annotations

import pytest

from gpcert_check.work import Work


@pytest.fixture(autouse=True)
def _anew() -> None:
    Work.spent = 0

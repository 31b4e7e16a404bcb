"""The notebook that needs GPyTorch: `make test-full`."""

from __future__ import annotations

from helpers.documents import ROOT
from helpers.notebooks import check


def test_the_notebook_shows_what_is_stored() -> None:
    check(ROOT / "examples" / "gpytorch.ipynb")

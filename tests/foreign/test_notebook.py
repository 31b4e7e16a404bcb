"""The notebook that needs GPyTorch: `make test-torch`, which `make test-full` runs."""

from __future__ import annotations

from helpers.documents import ROOT
from helpers.notebooks import check


def test_the_notebook_shows_what_is_stored() -> None:
    check(ROOT / "examples" / "gpytorch.ipynb")

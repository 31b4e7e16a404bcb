"""The notebooks of examples/: they run, show what is stored, and are pages of the site."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.documents import ROOT, identify
from helpers.notebooks import NOTEBOOKS, check, code

SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.stem != "gpytorch"], ids=identify)
def test_a_notebook_shows_what_is_stored(path: Path) -> None:
    check(path)


def test_there_is_one_for_each_kind_of_user() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"table", "images", "pipeline", "gpytorch", "compare"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=identify)
def test_a_notebook_is_whole_small_and_on_the_site(path: Path) -> None:
    """Every cell was run, in order, without an error; there is a picture; links lead to documents."""
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert len(text) < 120_000
    assert f"notebooks/{path.stem}.md" in SITE
    cells = code(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert all(output["output_type"] != "error" and output.get("name") != "stderr" for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    words = "".join("".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown")
    for link in re.findall(r"\]\(\.\./([^)#]+)", words):
        assert (ROOT / link).exists(), link

"""Notebooks as stored and as they run now: what they show is compared, pictures included."""

from __future__ import annotations

import base64
import io
import json
import re
import runpy
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread

from helpers.documents import ROOT, assert_shown

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
executed = runpy.run_path(str(ROOT / "scripts" / "notebooks.py"))["executed"]


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def check(path: Path) -> None:
    """Run it: every cell shows what is stored, to the last digit or so."""
    now, stored = executed(path), json.loads(path.read_text(encoding="utf-8"))
    for ran, kept in zip(code(now), code(stored), strict=True):
        for new, old in zip(_outputs(ran), _outputs(kept), strict=True):
            _same(_data(new), _data(old))


def _outputs(cell: Any) -> list[Any]:
    """What is printed may come in several parts, on a busy machine more than on a quiet one."""
    found: list[Any] = []
    for output in cell["outputs"]:
        if found and output["output_type"] == "stream" and found[-1].get("name") == output["name"]:
            found[-1] = {**found[-1], "text": [*found[-1]["text"], *output["text"]]}
        else:
            found.append(output)
    return found


def _data(output: Any) -> dict[str, str]:
    data = output.get("data", {"text/plain": output.get("text", "")})
    return {kind: "".join(text) for kind, text in data.items()}


def _same(new: dict[str, str], old: dict[str, str]) -> None:
    assert new.keys() == old.keys()
    if "image/png" in new:
        drawn, kept = (imread(io.BytesIO(base64.b64decode(data["image/png"]))) for data in (new, old))
        assert drawn.shape == kept.shape
        # Fonts and rounding differ by machine: nearly all pixels, not each bit.
        assert np.mean(np.abs(drawn - kept) > 0.1) < 0.05
    elif "text/html" in new:  # a plain repr also tells seconds
        assert_shown(*(_visible(data["text/html"]) for data in (new, old)))
    else:
        assert_shown(new["text/plain"], old["text/plain"])


def _visible(markup: str) -> str:
    return unescape(re.sub(r"\s*<[^>]*>\s*", " ", re.sub(r"<style.*?</style>", "", markup, flags=re.DOTALL)))

"""Notebooks as stored and as they run now: what they show is compared, pictures included."""

from __future__ import annotations

import base64
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread

from helpers.documents import PAGES, ROOT, assert_same

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def check(path: Path) -> None:
    """Run now, every cell shows what is stored: else `python scripts/environments.py pages`."""
    now, stored = PAGES["notebook"](path), json.loads(path.read_text(encoding="utf-8"))
    for ran, kept in zip(code(now), code(stored), strict=True):
        for new, old in zip(ran["outputs"], kept["outputs"], strict=True):
            _same(_data(new), _data(old))


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
    elif "text/html" in new:
        assert_same(*(_visible(data["text/html"]) for data in (new, old)))
    else:
        assert_same(new["text/plain"], old["text/plain"])


def _visible(markup: str) -> str:
    return unescape(re.sub(r"\s*<[^>]*>\s*", " ", re.sub(r"<style.*?</style>", "", markup, flags=re.DOTALL)))

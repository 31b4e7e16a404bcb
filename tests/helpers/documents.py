"""Documents that run: their blocks, their sessions, and what they show as output."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The command that writes outputs into pages, as names: `python scripts/environments.py pages`.
PAGES = runpy.run_path(str(ROOT / "scripts" / "pages.py"))
BLOCK, COMMAND = PAGES["BLOCK"], PAGES["COMMAND"]


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


def assert_same(printed: str, shown: str) -> None:
    """The same text, but for times and digests."""
    assert PAGES["settled"](printed) == PAGES["settled"](shown)


def assert_current(path: Path) -> None:
    """Run now, a document shows what it shows already: else `python scripts/environments.py pages`."""
    assert_same(PAGES["document"](path), path.read_text(encoding="utf-8"))

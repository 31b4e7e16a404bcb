"""A hook of mkdocs: every statement of the mathematics has an anchor, and `maths/index.md` lists them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "maths"
#: Where a statement begins: `**X8 (range of the variance).**`
STATEMENT = re.compile(
    r"^\*\*(?P<label>(?:Theorem (?:\d|K)|Lemma K|[A-Z]\d{1,2}'?)) \((?P<says>[^*]*)\)\.\*\*",
    flags=re.MULTILINE,
)
PLACE = "<!-- every statement -->"


def anchor(label: str) -> str:
    """The label as part of an address."""
    return label.replace(" ", "-").replace("'", "-prime")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Anchors on the pages of statements, the table on the page that leads to them."""
    if not page.file.src_uri.startswith("maths/"):
        return markdown
    if PLACE in markdown:
        return markdown.replace(PLACE, table())
    return STATEMENT.sub(lambda found: f"{found[0]}{{ #{anchor(found['label'])} }}", markdown)


def table() -> str:
    """A row for each statement, page by page in the order of the text."""
    rows = ["| statement | says | page |", "|---|---|---|"]
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.search(r"^# (.*?)(?::.*)?$", text, flags=re.MULTILINE)
        assert title
        for found in STATEMENT.finditer(text):
            link = f"[{found['label']}]({path.name}#{anchor(found['label'])})"
            rows.append(f"| {link} | {found['says'].replace('|', chr(92) + '|')} | {title[1]} |")
    return "\n".join(rows)

"""Formulas of the documents: typeset by the KaTeX that is shipped with the site, without a network."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from helpers.chromium import Page

DOCS = Path(__file__).resolve().parents[2] / "docs"
KATEX = DOCS / "assets" / "katex"
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", flags=re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>(?:[^$\n]|\n(?!\n))+)\$", flags=re.DOTALL)


def formulas(path: Path) -> list[str]:
    """As pymdownx.arithmatex hands them to the page."""
    found = FORMULA.finditer(CODE.sub(" ", path.read_text(encoding="utf-8")))
    return [f"\\[{m['display']}\\]" if m["display"] else f"\\({m['inline']}\\)" for m in found]


def test_all_that_formulas_need_is_shipped() -> None:
    style = (KATEX / "katex.min.css").read_text(encoding="utf-8")
    needed = set(re.findall(r"url\(([^)]*)\)", style))
    assert len(needed) == 20
    assert needed == {f"fonts/{path.name}" for path in (KATEX / "fonts").iterdir()}
    assert "MIT License" in (KATEX / "LICENSE").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in KATEX.rglob("*") if path.is_file()) < 1_000_000
    for path in (*KATEX.glob("*.min.*"), DOCS / "assets" / "formulas.js"):
        hosts = set(re.findall(r"(?:https?:)?//([\w-]+(?:\.[\w-]+)+)", path.read_text(encoding="utf-8")))
        assert hosts <= {"www.w3.org"}, path.name  # the names of SVG and MathML, never asked for
        named = path.relative_to(DOCS).as_posix()
        assert f"  - {named}\n" in (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_mathematics_has_formulas() -> None:
    assert len(formulas(DOCS / "maths" / "bounds.md")) > 500
    assert formulas(DOCS / "start.md") == []  # the dollar of a session is none


@pytest.mark.full
def test_every_formula_is_typeset(tmp_path: Path) -> None:
    pages = {path: found for path in sorted(DOCS.rglob("*.md")) if (found := formulas(path))}
    assert DOCS / "maths" / "bounds.md" in pages
    scripts = [KATEX / "katex.min.js", DOCS / "assets" / "formulas.js"]
    head = "".join(f'<script src="{path.as_uri()}"></script>' for path in scripts)
    style = f'<link rel="stylesheet" href="{(KATEX / "katex.min.css").as_uri()}">'
    # What cannot be parsed, and commands that are not known, which KaTeX shows in red.
    bad = """document.querySelectorAll('.katex-error, [mathcolor="#cc0000"]')"""
    wrong = f"[...{bad}].map((e) => e.outerHTML)"
    with Page(tmp_path / "profile") as page:
        for path, found in [*pages.items(), (None, [r"\(x^2\)", r"\(\unheard{x}\)", r"\(\frac{\)"])]:
            body = "".join(f'<p class="arithmatex">{html.escape(text)}</p>' for text in found)
            file = tmp_path / "page.html"
            file.write_text(f"<!doctype html><meta charset=utf-8>{style}{head}{body}", encoding="utf-8")
            page.open(file)
            if path is None:  # false ones are found
                assert len(page.evaluate(wrong)) == 2
                continue
            assert page.evaluate(wrong) == [], path.name
            assert page.evaluate("document.querySelectorAll('.katex').length") == len(found)
        assert page.problems == []

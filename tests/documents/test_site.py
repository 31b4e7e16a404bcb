"""The site as a reader without a network opens it: from a file, with a search that finds, in both schemes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.chromium import Page
from helpers.documents import ROOT

FIND = """new Promise((resolve) => {
  const field = document.querySelector('.md-search__input');
  field.focus(); field.value = '%s'; field.dispatchEvent(new Event('keyup', {bubbles: true}));
  let tries = 100;
  const look = () => {
    const found = document.querySelectorAll(".md-search-result__link");
    const links = [...found].map((a) => a.getAttribute("href"));
    if (links.length || !--tries) resolve(links); else setTimeout(look, 100);
  };
  look();
})"""
#: Code that is neither shown whole nor can be scrolled to.
CUT = """[...document.querySelectorAll('pre > code')].filter(
  (e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'visible').length"""
#: Examples, or anything else, as Markdown's nested quotes.
QUOTED = "document.querySelectorAll('.md-content blockquote').length"
BROKEN = "[...document.images].filter((e) => !e.complete || e.naturalWidth === 0).length"
SCHEME = "document.body.getAttribute('data-md-color-scheme')"


@pytest.mark.full
def test_the_site_opened_from_a_file_finds_and_asks_nobody(tmp_path: Path) -> None:
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, env=quiet, check=True)
    for dark in (False, True):
        with Page(tmp_path / f"profile{dark}", dark=dark) as page:
            page.open(tmp_path / "site" / "start.html")
            assert page.evaluate(SCHEME) == ("slate" if dark else "default")
            assert "api/questions.html" in page.evaluate(FIND % "certified_radius")[0]
            for word in ("Excel", "categorical", "missing values", "Windows", "regression"):
                page.open(tmp_path / "site" / "start.html")
                assert any("limits.html" in link for link in page.evaluate(FIND % word)[:4]), word
            assert page.evaluate("document.querySelectorAll('.md-code__button, .md-clipboard').length") > 5
            assert page.evaluate("document.querySelectorAll('.md-footer__link').length") == 2
            assert page.evaluate(CUT) == 0
            page.open(tmp_path / "site" / "notebooks" / "images.html")
            assert page.evaluate("document.querySelectorAll('.notebook-output img').length") > 10
            assert page.evaluate(BROKEN) == page.evaluate(CUT) == 0
            for reference in (tmp_path / "site" / "api").glob("*.html"):
                page.open(reference)
                assert page.evaluate(CUT) == page.evaluate(QUOTED) == 0, reference.name
            assert page.problems == []

"""The report in headless Chromium: no errors, sorting, filters, details, hostile names, 2,000 points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpcert.pages.page import report
from helpers.chromium import Page
from helpers.report_files import HOSTILE, edited, every_verb

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Fails, never skips, where there is no browser."""
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def shown(page: Page, folder: Path, n: int, side: int = 2) -> None:
    path = folder / "report.html"
    path.write_text(report(every_verb(folder, n, side)), encoding="utf-8")
    page.open(path)


def column(page: Page, k: int) -> list[str]:
    script = "[...document.querySelectorAll('#points tbody tr:not(.detail)')]"
    return page.evaluate(f"{script}.map((row) => row.cells[{k}].dataset.v)")


def heading(page: Page, name: str) -> int:
    names = page.evaluate(
        "[...document.querySelectorAll('#points thead th button')].map((b) => b.textContent)"
    )
    return names.index(name)


def press(page: Page, k: int) -> None:
    page.evaluate(f"document.querySelectorAll('#points thead th button')[{k}].click()")


def set_filter(page: Page, k: int, value: str) -> None:
    page.evaluate(
        f"{{ const box = document.querySelector('#points tr.filters').cells[{k}].firstChild;"
        f"box.value = {value!r};"
        "box.dispatchEvent(new Event(box.tagName === 'SELECT' ? 'change' : 'input')); }"
    )


def test_loads_without_errors_and_asks_nobody(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, 30)
    assert page.problems == []
    assert page.evaluate("document.querySelector('#count').textContent") == "30 of 30 points"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_sorting(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, 30)
    k = heading(page, "safe radius")
    before = list(map(float, column(page, k)))
    press(page, k)
    assert list(map(float, column(page, k))) == sorted(before) != before
    press(page, k)
    assert list(map(float, column(page, k))) == sorted(before, reverse=True)
    press(page, 0)
    assert column(page, 0) == [str(i) for i in range(30)]  # 2 before 10
    assert page.problems == []


def test_filters(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, 30)
    verdict, radius = heading(page, "verdict, r = 0.1"), heading(page, "safe radius")
    every = list(zip(column(page, verdict), map(float, column(page, radius)), strict=True))
    set_filter(page, verdict, "=unsafe")
    assert len(column(page, 0)) == sum(v == "unsafe" for v, _ in every)
    assert set(column(page, verdict)) == {"unsafe"}
    set_filter(page, radius, "> 0.05")
    assert len(column(page, 0)) == sum(v == "unsafe" and r > 0.05 for v, r in every)
    set_filter(page, verdict, "")
    set_filter(page, radius, "")
    assert len(column(page, 0)) == 30
    page.evaluate(
        "{ const box = document.querySelector('#search'); box.value = 'no such text';"
        "box.dispatchEvent(new Event('input')); }"
    )
    assert column(page, 0) == []
    assert page.evaluate("document.querySelector('#count').textContent") == "0 of 30 points"


def test_details_open_and_close(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, 3)
    click = "document.querySelector('#points tbody button').click()"
    page.evaluate(click)
    assert page.evaluate("document.querySelectorAll('#points tr.detail img').length") >= 2
    assert page.evaluate("[...document.querySelectorAll('tr.detail img')].every((i) => i.naturalWidth === 2)")
    page.evaluate(click)
    assert page.evaluate("document.querySelectorAll('#points tr.detail').length") == 0
    assert page.problems == []


def test_hostile_names_do_not_execute(page: Page, tmp_path: Path) -> None:
    names = [HOSTILE + str(j) for j in range(4)]
    paths = every_verb(tmp_path, 2, features=names, classes=names[:2])
    for path in paths:
        edited(path, id=HOSTILE, method=HOSTILE)
        edited(path, data={"file": HOSTILE, "sha256": "1"}, versions={HOSTILE: HOSTILE})
    (tmp_path / "r.html").write_text(report(paths, title="title"), encoding="utf-8")
    page.open(tmp_path / "r.html")
    page.evaluate("document.querySelectorAll('#points tbody button').forEach((b) => b.click())")
    assert page.evaluate("document.title") == "title"
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.problems == []


def test_two_thousand_images_do_not_freeze_the_page(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, 2000, side=14)
    assert page.evaluate("document.querySelector('#count').textContent").startswith("2000 of 2000")
    press(page, heading(page, "safe radius"))
    assert len(column(page, 0)) == 200  # the rest at a click
    page.evaluate("document.querySelector('#more').click()")
    assert len(column(page, 0)) == 400
    assert page.problems == []


def test_dark_and_light_differ_in_the_colour_of_the_page(tmp_path: Path) -> None:
    colours = []
    for dark in (False, True):
        with Page(tmp_path / f"profile{dark}", dark) as page:
            shown(page, tmp_path, 2)
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]

"""The report in headless Chromium: sorting, filters, slider, comparison, print, CSV, phones, no scripts."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gpcert.numbers import percent
from gpcert.pages.groups import grouped
from gpcert.pages.page import report
from gpcert.records.results_file import read_results
from helpers.chromium import Page
from helpers.report_files import HOSTILE, about, edited, every_verb, made_of, other_model, results, write

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Fails, never skips, where there is no browser."""
    with Page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def shown(page: Page, folder: Path, paths: list[Path], **more: Any) -> None:
    path = folder / "report.html"
    path.write_text(report(paths, **more), encoding="utf-8")
    page.open(path)


def column(page: Page, k: int, table: int = 0) -> list[str]:
    rows = f"document.querySelectorAll('.data')[{table}].querySelectorAll('tbody tr:not(.detail)')"
    return page.evaluate(f"[...{rows}].map((row) => row.cells[{k}].textContent)")


def heading(page: Page, name: str) -> int:
    names = page.evaluate("[...document.querySelectorAll('.data thead button')].map((b) => b.textContent)")
    return names.index(name)


def press(page: Page, k: int) -> None:
    page.evaluate(f"document.querySelectorAll('.data thead button')[{k}].click()")


def enter(page: Page, box: str, value: str) -> None:
    page.evaluate(
        f"{{ const box = {box}; box.value = {json.dumps(value)};"
        "box.dispatchEvent(new Event(box.tagName === 'SELECT' ? 'change' : 'input')); }"
    )


def set_filter(page: Page, k: int, value: str) -> None:
    enter(page, f"document.querySelector('.data tr.filters').cells[{k}].firstChild", value)


def text(page: Page, selector: str) -> str:
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def test_loads_without_errors_and_asks_nobody(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 30))
    assert page.problems == []
    assert text(page, ".count") == "30 of 30 images"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("[...document.querySelectorAll('a')].every((a) => document.querySelector(a.hash))")


def test_sorting(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 30))
    k = heading(page, "safe up to")
    before = list(map(float, column(page, k)))
    press(page, k)
    assert list(map(float, column(page, k))) == sorted(before) != before
    press(page, k)
    assert list(map(float, column(page, k))) == sorted(before, reverse=True)
    press(page, 0)
    assert column(page, 0) == [str(i) for i in range(30)]  # 2 before 10
    assert page.problems == []


def test_filters_and_a_value_on_the_screen_is_found(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 30))
    verdict, radius = heading(page, "verdict at 0.1"), heading(page, "safe up to")
    every = list(zip(column(page, verdict), column(page, radius), strict=True))
    set_filter(page, verdict, "=can change")
    assert set(column(page, verdict)) == {"can change"}
    set_filter(page, radius, "> 0.05")
    assert len(column(page, 0)) == sum(v == "can change" and float(r) > 0.05 for v, r in every)
    set_filter(page, verdict, "")
    for _, seen in every[:5]:
        set_filter(page, radius, seen)
        assert seen in column(page, radius)
    set_filter(page, radius, "")
    assert len(column(page, 0)) == 30
    enter(page, "document.querySelector('.search')", "no such text")
    assert column(page, 0) == []
    assert text(page, ".count") == "0 of 30 images"


@pytest.mark.parametrize(
    ("typed", "told"), [("> 0,7", "> 0.7"), (">> 1", "for example"), ("1.2.3", "for example")]
)
def test_filters_tell_when_they_do_not_understand(typed: str, told: str, page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 5))
    k = heading(page, "probability")
    set_filter(page, k, typed)
    said = text(page, ".trouble")
    assert "not understood" in said
    assert typed in said
    assert told in said
    assert page.evaluate("document.querySelectorAll('input[aria-invalid=true]').length") == 1
    assert len(column(page, 0)) == 5  # it filters nothing, and says so
    set_filter(page, k, "> 0.7")
    assert text(page, ".trouble") == ""
    assert page.evaluate("document.querySelectorAll('input[aria-invalid=true]').length") == 0


def test_details_open_and_close(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 3))
    click = "document.querySelector('.data tbody button').click()"
    page.evaluate(click)
    assert page.evaluate("document.querySelectorAll('tr.detail img').length") >= 2
    assert page.evaluate("[...document.querySelectorAll('tr.detail img')].every((i) => i.naturalWidth === 2)")
    page.evaluate(click)
    assert page.evaluate("document.querySelectorAll('tr.detail').length") == 0
    assert page.problems == []


def test_the_slider_counts_what_is_proved_at_every_radius(page: Page, tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 39)
    points = grouped([(path, *read_results(path)) for path in paths])[0].points
    shown(page, tmp_path, paths)
    stops = json.loads(page.evaluate("document.querySelector('.slide').dataset.rows"))["stops"]
    assert {0.05, 0.1} <= set(stops)
    assert len(stops) > 20
    for k in range(0, len(stops), 7):
        enter(page, "document.querySelector('.range input')", str(k))
        safe = [p.found[0] >= stops[k] for p in points]
        right = sum(s and p.label == p.predicted for s, p in zip(safe, points, strict=True))
        lost = sum(p.found[1] <= stops[k] for p in points)
        said = text(page, ".readout")
        share = percent(Fraction(sum(safe), 39))
        assert f"{sum(safe)} of 39 images proved safe ({share}), {lost} can change" in said
        assert f"right and proved safe: {right} of 39 ({percent(Fraction(right, 39))})" in said
        assert page.evaluate("document.querySelectorAll('.mark.safe').length") == sum(safe)
        assert page.evaluate("document.querySelectorAll('.mark.unsafe').length") == lost
    page.evaluate("document.querySelector('.mark').dispatchEvent(new Event('click'))")
    assert len(column(page, 0)) == 1
    assert page.evaluate("document.querySelectorAll('tr.detail').length") == 1
    assert text(page, "button.more") == "show all images"
    page.evaluate("document.querySelector('button.more').click()")
    assert len(column(page, 0)) == 39
    assert page.problems == []


def test_curves_tell_their_values(page: Page, tmp_path: Path) -> None:
    shown(page, tmp_path, every_verb(tmp_path, 10))
    page.evaluate(
        "{ const plot = document.querySelector('[data-told]'), box = plot.getBoundingClientRect();"
        "plot.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + box.width / 2 })); }"
    )
    assert "certified accuracy" in text(page, ".tip")


def test_two_features_are_a_map(page: Page, tmp_path: Path) -> None:
    rows = [
        {**about(i, 2), "radius": 0.1, "verdict": "safe", "margin": [0.1, 0.2], "counterexample": None}
        for i in range(6)
    ]
    shown(page, tmp_path, [write(tmp_path / "c.json", results("certify", rows, features=["age", HOSTILE]))])
    assert page.evaluate("document.querySelectorAll('svg path.mark').length") == 6
    assert "age" in page.evaluate("document.querySelector('svg:has(.mark)').textContent")
    assert page.problems == []


def test_models_are_compared_row_by_row(page: Page, tmp_path: Path) -> None:
    first = every_verb(tmp_path, 12)[1]
    known = {a["row"]: a["verdict"] for a in made_of(first)["answers"] if a["radius"] == 0.1}
    turned = [row for row, verdict in known.items() if verdict == "unsafe"][:2]
    better = {"verdict": "safe", "margin": [0.01, 0.02], "counterexample": None}
    second = other_model(first, **{str(row): better for row in turned})
    shown(page, tmp_path, [first, second])
    assert page.problems == []
    assert sorted(map(int, column(page, 0))) == turned
    assert "2 of 2 images that differ" in text(page, ".count")
    links = page.evaluate("[...document.querySelectorAll('#comparison tbody a')].map((a) => a.hash)")
    assert len(set(links)) == 2
    assert page.evaluate(f"{json.dumps(links)}.every((hash) => document.querySelector(hash))")
    assert page.evaluate("document.querySelectorAll('#comparison .curve').length") == 2
    shown(page, tmp_path, [first, first], separate=True)
    assert "No image changes its prediction or its verdict" in text(page, "#comparison")
    assert "p = 1.000" in text(page, "#comparison")


def test_a_campaign_has_an_index(page: Page, tmp_path: Path) -> None:
    """Seven models, two norms, two radii: 28 lines that sort, filter and lead to their parts."""
    paths = []
    for k, norm in product(range(7), ("inf", 2)):
        told = made_of(every_verb(tmp_path, 5 + k)[1])
        told["model"] |= {"file": f"models/{k}.safetensors", "sha256": str(k)}
        told["settings"]["norm"] = norm
        paths.append(write(tmp_path / f"{k}-{norm}.json", told))
    shown(page, tmp_path, paths)
    assert page.problems == []
    assert text(page, ".count") == "28 of 28 lines"
    set_filter(page, heading(page, "region"), "=norm 2 (Euclidean)")
    press(page, heading(page, "certified accuracy"))
    values = [Fraction(cell.split()[0]) for cell in column(page, heading(page, "certified accuracy"))]
    assert len(values) == 14
    assert values == sorted(values)
    set_filter(page, 0, "3.safetensors, norm 2 (Euclidean)")
    assert column(page, 0) == ["3.safetensors, norm 2 (Euclidean)"] * 2
    link = page.evaluate("document.querySelector('.data tbody a').hash")
    assert text(page, f"{link} h2").endswith("3.safetensors, norm 2 (Euclidean)")
    titles = page.evaluate(
        "[...document.querySelectorAll('#comparison figure h3')].map((h) => h.textContent)"
    )
    assert sorted(titles) == ["Together: norm 2 (Euclidean)", "Together: norm inf (each by itself)"]
    assert page.evaluate("document.querySelectorAll('#comparison .plots .curve').length") == 14


def test_csv_is_the_table_as_it_is_shown(page: Page, tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 8)
    edited(paths[0], id='=HYPERLINK("x")')
    shown(page, tmp_path, paths)
    press(page, heading(page, "safe up to"))
    set_filter(page, heading(page, "true"), "=8")
    saved = page.evaluate(
        "new Promise((done) => { const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.text().then(done); return make(blob); };"
        "document.querySelector('.csv').click(); })"
    )
    head, *rows = csv.reader(io.StringIO(saved.removeprefix("\ufeff")))
    assert head[:3] == ["image", "true", "predicted"]
    for k in range(1, len(head)):
        assert [row[k] for row in rows] == column(page, k)
    set_filter(page, heading(page, "true"), "")
    assert not [row for row in rows if row[0].startswith("=")]
    assert page.problems == []


def test_print_keeps_legends_and_colours(tmp_path: Path) -> None:
    with Page(tmp_path / "profile", dark=True) as page:
        shown(page, tmp_path, every_verb(tmp_path, 30))
        pdf = b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
        assert pdf.startswith(b"%PDF")
        assert 3 <= pdf.count(b"/Type /Page\n") <= 30
        page.call("Emulation.setEmulatedMedia", media="print")
        style = "getComputedStyle(document.querySelector({}))"
        assert page.evaluate(f"{style.format(repr('body'))}.color") == "rgb(28, 33, 40)"
        assert page.evaluate(f"{style.format(repr('.key'))}.printColorAdjust") == "exact"
        assert page.evaluate(f"{style.format(repr('figure'))}.breakInside") == "avoid"
        assert page.evaluate(f"{style.format(repr('.data thead .paper'))}.display") == "inline"
        for hidden in (".csv", ".search", ".filters", ".range", "nav", ".click", ".data thead button"):
            assert page.evaluate(f"{style.format(repr(hidden))}.display") == "none"
        for kept in ("figcaption", ".claim", ".tile", ".legend", "thead", ".readout"):
            assert page.evaluate(f"{style.format(repr(kept))}.display") != "none"
        assert page.problems == []


def test_a_phone_reaches_the_last_column(page: Page, tmp_path: Path) -> None:
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **phone)
    shown(page, tmp_path, every_verb(tmp_path, 6))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    last = page.evaluate("[...document.querySelectorAll('.data thead button')].at(-1).textContent")
    assert page.evaluate("document.querySelector('.hint').hidden") is False
    assert last in text(page, ".hint")
    page.evaluate("document.querySelector('.data > .scroll').scrollLeft = 1e6")
    cell = "[...document.querySelectorAll('.data thead button')].at(-1).getBoundingClientRect()"
    assert page.evaluate(f"{cell}.right") <= 390
    page.evaluate("document.querySelector('.data tbody button').click()")
    inside = page.evaluate("document.querySelector('.detail > td > div').getBoundingClientRect().toJSON()")
    assert 0 <= inside["left"] < inside["right"] <= 390  # details are read without scrolling
    page.call("Emulation.clearDeviceMetricsOverride")


def test_without_scripts_every_number_is_there(tmp_path: Path) -> None:
    with Page(tmp_path / "profile") as page:
        paths = every_verb(tmp_path, 4)
        shown(page, tmp_path, paths)
        page.evaluate("document.querySelectorAll('.data tbody button').forEach((b) => b.click())")
        cells = "[...document.querySelectorAll('.data tbody td, .data tbody th')]"
        seen = page.evaluate(f"{cells}.filter((c) => !c.querySelector('td')).map((c) => c.innerText)")
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(tmp_path / "report.html")
        page.call("DOM.enable")
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        rows = page.call("DOM.querySelectorAll", nodeId=root, selector=".data tbody > tr")["nodeIds"]
        assert len(rows) >= 4
        whole = re.sub("<[^>]*>", "", page.call("DOM.getOuterHTML", nodeId=root)["outerHTML"])
        for cell in seen:
            for word in cell.split():
                assert word.replace("&", "&amp;") in whole
        assert page.problems == []


def test_hostile_names_do_not_execute(page: Page, tmp_path: Path) -> None:
    names = [HOSTILE + str(j) for j in range(4)]
    paths = every_verb(tmp_path, 3, features=names, classes=names[:2], unit=HOSTILE)
    for path in paths:
        edited(path, id=HOSTILE, method=HOSTILE)
        edited(path, data={"file": HOSTILE, "sha256": "1"}, versions={HOSTILE: HOSTILE})
    second = other_model(paths[1])
    edited(second, model={**json.loads(second.read_text())["model"], "file": HOSTILE}, created=HOSTILE)
    shown(page, tmp_path, [*paths, second], title="title")
    page.evaluate("document.querySelectorAll('.data tbody button').forEach((b) => b.click())")
    page.evaluate("document.querySelectorAll('.mark')[1].dispatchEvent(new Event('click'))")
    for k in range(3):
        press(page, k)
    enter(page, "document.querySelector('.search')", HOSTILE)
    enter(page, "document.querySelector('.data tr.filters').cells[0].firstChild", HOSTILE)
    page.evaluate("document.querySelectorAll('.csv').forEach((b) => b.click())")
    assert page.evaluate("document.title") == "title"
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.problems == []


def test_many_rows_are_drawn_on_demand(page: Page, tmp_path: Path) -> None:
    margin = {"verdict": "safe", "margin": [0.1, 0.2], "counterexample": None}
    rows = [{**about(i, 2), "radius": 0.1, **margin} for i in range(5000)]
    shown(page, tmp_path, [write(tmp_path / "c.json", results("certify", rows, features=["a", "b"]))])
    assert text(page, ".count") == "5000 of 5000 rows, the first 200 shown"
    assert page.evaluate("document.querySelectorAll('*').length") < 3000
    press(page, heading(page, "probability"))
    values = list(map(float, column(page, heading(page, "probability"))))
    assert len(values) == 200
    assert values == sorted(values)
    page.evaluate("document.querySelector('button.more').click()")
    assert len(column(page, 0)) == 400
    assert page.problems == []


def test_dark_and_light_differ_in_the_colour_of_the_page(tmp_path: Path) -> None:
    colours = []
    for dark in (False, True):
        with Page(tmp_path / f"profile{dark}", dark) as page:
            shown(page, tmp_path, every_verb(tmp_path, 2))
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]

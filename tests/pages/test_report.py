"""The report: what it says follows from the answers, all text is escaped, one file that needs nothing."""

from __future__ import annotations

import base64
import io
import re
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

import gpcert as gc
from gpcert.cli import main
from gpcert.html import Html, join, table, tag
from gpcert.numbers import at_least, at_most, radius_at_least, radius_at_most
from gpcert.pages.charts import Plot, ticks
from gpcert.pages.groups import grouped
from gpcert.pages.page import report
from gpcert.pages.points import ProvedShares, clean_accuracy, median_radius, radii_asked
from gpcert.pictures import grey_image, heat_image
from gpcert.records.results_file import read_results
from helpers.report_files import HOSTILE, about, edited, every_verb, results, write


class Outline(HTMLParser):
    """What a browser would see: elements with attributes, and text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in {"meta", "img", "br", "input"}:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        self.text += text

    def count(self, name: str) -> int:
        return sum(found == name for found, _ in self.elements)


@given(st.floats(-1.0, 1e6, allow_nan=False))
def test_printed_bounds_still_hold(value: float) -> None:
    assert Fraction(at_least(value)) <= Fraction(value) <= Fraction(at_most(value))
    if value >= 0:
        low, high = Fraction(radius_at_least(value)), Fraction(radius_at_most(value))
        assert low <= Fraction(value) <= high
        assert high - low <= Fraction(value) / 500


def test_only_made_markup_is_taken_as_it_is() -> None:
    assert tag("b", "a<b") == "<b>a&lt;b</b>"
    assert tag("p", tag("b", "x"), " & ", Html("<i></i>")) == "<p><b>x</b> &amp; <i></i></p>"
    assert tag("img", src='"a', data_x="1") == '<img src="&quot;a" data-x="1">'
    assert "script" not in [name for name, _ in Outline(join([table([HOSTILE], [[HOSTILE]])])).elements]


def share(which: list[bool]) -> Fraction:
    return Fraction(sum(map(bool, which)), len(which))


def test_shares_are_counts_of_what_is_proved(tmp_path: Path) -> None:
    points = grouped([(path, *read_results(path)) for path in every_verb(tmp_path, 40)])[0].points
    assert radii_asked(points) == [0.02, 0.05, 0.1]
    shares = ProvedShares(points)
    for radius in (0.0, 0.03, 0.05, 0.1, 0.5):
        at = shares.at(radius)
        assert at.safe == share([p.found[0] >= radius for p in points])
        assert at.certified == share([p.found[0] >= radius and p.label == p.predicted for p in points])
        assert at.certified <= at.certified_most <= clean_accuracy(points)
        assert at.safe + at.unsafe <= 1.0
    assert shares.at(0.1).attacked == share([p.correct and not p.attacks[0.1].success for p in points])
    assert shares.at(0.05).attacked is None
    half = median_radius(points)
    assert np.mean([p.found[0] >= half for p in points]) >= 0.5


def test_a_range_of_two_classes_is_a_verdict(tmp_path: Path) -> None:
    """Safe where P(predicted) stays above one half, unsafe where a point is below, else unknown."""
    rows = []
    for row, (low, high, predicted) in enumerate(
        [
            ([0.6, 0.62], [0.9, 0.92], "8"),  # P(8) > 1/2: safe
            ([0.1, 0.12], [0.4, 0.42], "3"),  # P(3) > 1/2: safe
            ([0.1, 0.12], [0.9, 0.92], "8"),  # a point with P(8) <= 0.12
            ([0.1, 0.12], [0.9, 0.92], "3"),  # a point with P(8) >= 0.9
            ([0.49, 0.51], [0.9, 0.92], "8"),
            ([0.1, 0.12], [0.49, 0.51], "3"),
        ]
    ):
        ends = {"min": low, "max": high, "argmin": [0.0] * 4, "argmax": [1.0] * 4}
        more = {"radius": 0.1, "class": "8", "status": "converged", "seconds": 0.0}
        estimated = [0.7, 0.3] if predicted == "3" else [0.3, 0.7]
        rows.append({**about(row), "predicted": predicted, "probability": estimated, **ends, **more})
    path = write(tmp_path / "range.json", results("range", rows))
    points = grouped([(path, *read_results(path))])[0].points
    found = [p.verdicts[0.1] for p in points]
    assert [v.status for v in found] == ["safe", "safe", "unsafe", "unsafe", "unknown", "unknown"]
    assert found[2].counterexample[0] == 0.0  # where P(8) is smallest
    assert found[3].counterexample[0] == 1.0  # where it is largest


def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    seen = Outline(report(every_verb(tmp_path, 5)))
    assert not seen.open
    assert seen.count("script") == 1
    assert not {"link", "iframe", "object"} & {name for name, _ in seen.elements}
    for name, attributes in seen.elements:
        assert (attributes.get("src") or "data:image/png").startswith("data:image/png")
        assert name != "img" or attributes["alt"]
        assert not [key for key in attributes if key.startswith("on")]
    assert seen.text.count("Details of all images") == 1
    assert seen.count("svg") >= 4
    text = report(every_verb(tmp_path, 5, tolerance=0.02))
    for told in (
        "certified accuracy",
        "accuracy under attack",
        "median certified radius",
        "tolerance",
        "numpy",
    ):
        assert told in text
    anchors = {attributes["id"] for _, attributes in seen.elements if "id" in attributes}
    links = [attributes["href"] for name, attributes in seen.elements if name == "a"]
    assert len(links) >= 8
    assert {link.removeprefix("#") for link in links} <= anchors


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = [HOSTILE + str(j) for j in range(4)]
    paths = every_verb(tmp_path, 3, features=names, classes=[HOSTILE, HOSTILE + "8"], note=HOSTILE)
    for path in paths:
        edited(path, id=HOSTILE, method=HOSTILE)
        edited(path, data={"file": HOSTILE, "sha256": "1"}, versions={HOSTILE: HOSTILE})
    document = report(paths, title=HOSTILE)
    seen = Outline(document)
    assert not seen.open
    assert seen.count("script") == 1
    assert seen.count("img") == 0
    assert document.count("<script") == 1
    assert HOSTILE in seen.text


def test_the_policy_allows_this_script_only(tmp_path: Path) -> None:
    document = report(every_verb(tmp_path, 1))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', document).group(1)
    assert policy.startswith("default-src &#x27;none&#x27;")
    assert "unsafe-inline&#x27;; script-src &#x27;sha256-" in policy


@pytest.mark.parametrize(
    ("verb", "changes", "told"),
    [
        ("range", {"min": [0.1]}, "min must be an object"),
        ("range", {"min": ["a", "b"]}, "min.lower must be a number, got 'a'"),
        ("range", {"class": 7}, "label must be one of .3., .8., got 7"),
        ("range", {"x": "no"}, "x must be a list"),
        ("certify", {"verdict": "fine"}, "status must be one of safe, unsafe, unknown, got 'fine'"),
        ("certify", {"radius": None}, "radius must be a number"),
        ("radius", {"safe": "1"}, "safe must be a number"),
        ("attack", {"success": 1}, "success must be true or false"),
        ("explain", {"value": None}, "value must be lists"),
        ("explain", {"verb": "fit"}, "kind must be one of .*, got 'fit'"),
        ("explain", {"verb": "__init__"}, "kind must be one of"),
        ("radius", {"answers": [1]}, "answer 0 must be an object with a row"),
        ("radius", {"model": {"features": 3}}, "model.features must be a list of distinct names, got 3"),
        ("radius", {"model": {"classes": [1, 2]}}, "model.classes must be a list of distinct names"),
        ("radius", {"answers": [], "asked": 0}, "must hold at least one answer"),
    ],
)
def test_answers_of_strangers(tmp_path: Path, verb: str, changes: dict[str, object], told: str) -> None:
    every_verb(tmp_path, 2)
    path = edited(tmp_path / f"{verb}.json", **changes)
    with pytest.raises(gc.InvalidInputError, match=told) as error:
        report([path])
    assert str(path) in str(error.value)


def test_files_about_different_data_have_no_page(tmp_path: Path) -> None:
    first, second, *_ = every_verb(tmp_path, 2)
    with pytest.raises(gc.InvalidInputError, match="must be about the same data"):
        report([first, edited(second, data={"sha256": "9"})])
    every_verb(tmp_path, 2)
    names = {"sha256": "0", "features": ["a", "b", "c", "d"], "classes": ["3", "8"]}
    with pytest.raises(gc.InvalidInputError, match="must be about the same features"):
        report([first, edited(second, model=names)])


def test_one_point_without_labels_and_boxes(tmp_path: Path) -> None:
    ends = {"min": [0.2, 0.21], "max": [0.6, 0.61], "argmin": None, "argmax": None}
    answer = {"row": 0, "class": "8", **ends, "status": "time limit", "nodes": 1, "seconds": 1.0}
    box = {"lower": [0.0] * 4, "upper": [1.0] * 4}
    seen = Outline(report([write(tmp_path / "r.json", results("range", [{**answer, **box}]))]))
    assert not seen.open
    assert "box: the probability of 8 is proved to stay in [0.200, 0.610]" in seen.text
    assert "time limit" in seen.text


def pixels(image: str) -> np.ndarray:
    source = re.search(r"base64,([^\"]+)", image).group(1)
    return imread(io.BytesIO(base64.b64decode(source)), format="png")


def test_pictures_are_the_values() -> None:
    values = np.array([[0.0, 0.25, 1.0], [0.5, 0.75, 2.0]])
    np.testing.assert_allclose(pixels(grey_image(values, 0.0, 1.0, "")), np.minimum(values, 1.0), atol=0.003)
    change = np.array([[-0.2, 0.0, 0.1]])
    map_ = pixels(heat_image(change, 0.2, ""))
    np.testing.assert_allclose(map_[0, :, 3], [1.0, 0.0, 0.5], atol=0.01)
    assert map_[0, 0, 2] > map_[0, 0, 0]  # down is blue
    assert map_[0, 2, 0] > map_[0, 2, 2]  # up is orange


@given(st.floats(-10, 10), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert 1 <= len(found) <= 12
    assert all(low - 1e-6 * span <= t <= low + span * (1 + 1e-6) for t in found)


def test_steps_hold_their_value_up_to_the_end() -> None:
    plot = Plot(2.0, 1.0, ("r", "share"))
    plot.steps([1.0, 2.0], [1.0, 0.5], "good")
    ((x0, y0), (x1, y1), (x2, y2), (_, y3)) = (
        tuple(map(float, pair.split(",")))
        for pair in re.search(r'points="([^"]*)"', plot.html("")).group(1).split()
    )
    assert y0 == y1 < y2 == y3  # downwards on the screen
    assert x0 < x1 == x2


@pytest.mark.parametrize("bad", ["missing.json", "folder"])
def test_report_errors_are_one_line(tmp_path: Path, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    assert main(["report", str(tmp_path / bad), "-o", str(tmp_path / "r.html")]) == 2
    told = capsys.readouterr().err
    assert told.startswith("gpcert: ")
    assert bad in told
    assert told.count("\n") == 1


def test_demo_ends_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert main(["demo", "--output", str(folder), "--rows", "0:3"]) == 0
    told = capsys.readouterr().out
    assert told.rstrip().endswith(f"open in a browser: {folder / 'index.html'}")
    assert float(re.search(r"accuracy on .*test part ([\d.]+) %", told).group(1)) >= 96.0
    seen = Outline((folder / "index.html").read_text(encoding="utf-8"))
    assert not seen.open
    assert len(re.findall(r"proved safe up to .*?within|no counterexample found", seen.text)) >= 3
    for told in ("RBF", "Probit", "laplace", "OMP_NUM_THREADS", "python-flint"):
        assert told in seen.text


def test_demo_in_a_bad_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["demo", "--output", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1

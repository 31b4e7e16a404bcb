"""The demo page and the verb that writes it."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpcert.cli import main
from gpcert.errors import GpcertError
from gpcert.kernels import RBF
from gpcert.regions import Ball, Box
from gpcert.report import figures
from gpcert.report.asked import Asked, Verdict, ask, at_least, at_most, between
from gpcert.report.certified_images import image_card, verdict_counts
from gpcert.report.html import Html, join, page, table, tag
from gpcert.report.study import Study, study
from gpcert.results import Enclosure, ProbabilityRange, Status

HOSTILE = "<script>alert('x')</script>\"&"


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
        if name not in {"meta", "img", "br"}:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_data(self, text: str) -> None:
        self.text += text


def test_texts_and_attributes_are_escaped() -> None:
    document = page(
        HOSTILE, [(HOSTILE, join([tag("p", HOSTILE, title=HOSTILE), table([HOSTILE], [[HOSTILE]])]))]
    )
    seen = Outline(document)
    assert not seen.open
    assert "script" not in [name for name, _ in seen.elements]
    assert seen.text.count(HOSTILE) == 6  # title, two headings, paragraph, two cells
    assert ("p", {"title": HOSTILE}) in seen.elements


def test_only_made_markup_is_taken_as_it_is() -> None:
    assert tag("b", "a<b") == "<b>a&lt;b</b>"
    assert tag("p", tag("b", "x"), " & ", Html("<i></i>")) == "<p><b>x</b> &amp; <i></i></p>"
    assert tag("img", src="a", data_x="1") == '<img src="a" data-x="1">'


def test_labels_of_a_plot_are_text_and_its_ink_is_the_colour_of_the_page() -> None:
    axes = (np.linspace(0, 1, 5), np.linspace(0, 1, 4))
    p = np.linspace(0, 1, 20).reshape(4, 5)
    points = {HOSTILE: np.array([[0.2, 0.3]]), "$b$": np.array([[0.5, 0.5]])}
    seen = Outline(figures.plane(axes, p, points, (HOSTILE, "$x_2$"), "P"))
    assert not seen.open
    assert "script" not in [name for name, _ in seen.elements]
    assert seen.text.count(HOSTILE) == 2
    assert "$b$" in seen.text
    assert "$x_2$" in seen.text
    assert any("currentColor" in (attributes.get("style") or "") for _, attributes in seen.elements)


def test_boxes_are_drawn_with_their_text_also_without_attaining_points() -> None:
    axes, p = (np.linspace(0, 1, 5), np.linspace(0, 1, 4)), np.linspace(0, 1, 20).reshape(4, 5)
    low, high = np.array([0.2, 0.2]), np.array([0.6, 0.5])
    boxes = [figures.PlaneBox(low, high, low, high, HOSTILE), figures.PlaneBox(low, high, None, None, "B")]
    drawn = [figures.plane(axes, p, {}, ("x", "y"), "P", boxes[:k]) for k in range(3)]
    seen = [Outline(picture) for picture in drawn]
    assert HOSTILE in seen[1].text
    assert "B" in seen[2].text.split()
    paths = [[name for name, _ in one.elements].count("path") for one in seen]
    assert paths[2] - paths[1] < paths[1] - paths[0]  # no triangles in the second


def test_differences_are_transparent_where_nothing_moved() -> None:
    from matplotlib.image import imread

    picture = figures.difference_image(np.array([[-1.0, 0.0, 1.0, 3.0]]), "moved")
    (source,) = (attributes["src"] for name, attributes in Outline(picture).elements if name == "img")
    assert source is not None
    pixels = imread(io.BytesIO(base64.b64decode(source.partition(",")[2])))
    np.testing.assert_array_equal(pixels[0, :, 3], [1.0, 0.0, 1.0, 1.0])
    assert pixels[0, 0, 2] > pixels[0, 0, 0]  # blue: darker
    assert pixels[0, 2, 0] > pixels[0, 2, 2]  # orange: brighter


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_printed_bounds_are_rounded_outward(p: float, q: float) -> None:
    low, high = min(p, q), max(p, q)
    printed = between(Enclosure(low, high)).strip("[]").split(", ")
    assert printed == [at_least(low), at_most(high)]
    assert Fraction(low) - Fraction("0.001") < Fraction(printed[0]) <= Fraction(low)
    assert Fraction(high) <= Fraction(printed[1]) < Fraction(high) + Fraction("0.001")


@pytest.fixture(scope="module")
def plane_study() -> Study:
    return study("synthetic2d", RBF(1.0, 10.0), max_evals=0)


def asked(ends: tuple[float, float, float, float]) -> Asked:
    """An answer with these ends of the enclosures of min and max, about four pixels."""
    x = np.full(4, 0.5)
    least, greatest = Enclosure(*ends[:2]), Enclosure(*ends[2:])
    found = ProbabilityRange(least, greatest, x - 0.1, x + 0.1, Status.TIME, 1, 0.25, 1, 0.02, "auto")
    return Asked(Ball(x, 0.1), found, "8", 0.7)


@pytest.mark.parametrize(
    ("ends", "verdict", "told"),
    [
        (
            (0.5004, 0.6, 0.8, 0.9),
            Verdict.SAFE,
            "cannot change: P(8) is above 1/2 on the whole region, at least 0.500.",
        ),
        ((0.5, 0.6, 0.8, 0.9), Verdict.UNDECIDED, "Undecided: the minimum lies in [0.500, 0.600]"),
        ((0.0, 0.5, 0.8, 0.9), Verdict.UNDECIDED, "Undecided: the minimum lies in [0.000, 0.500]"),
        (
            (0.0, 0.4991, 0.8, 0.9),
            Verdict.UNSAFE,
            "can change: the image “lowest” has P(8) below 1/2, at most 0.500.",
        ),
    ],
)
def test_a_verdict_says_what_the_enclosures_prove(
    ends: tuple[float, float, float, float], verdict: Verdict, told: str, plane_study: Study
) -> None:
    one = asked(ends)
    assert one.verdict is verdict
    pictured = replace(
        plane_study, data=replace(plane_study.data, image_shape=(2, 2), X_test=np.full((1, 4), 0.5))
    )
    seen = Outline(image_card(pictured, 0, {0.1: one}))
    assert not seen.open
    assert told in seen.text
    assert "time limit, 1 node, 250 ms" in seen.text
    assert [name for name, _ in seen.elements].count("img") == 5
    unfound = replace(one, range=replace(one.range, argmin=None, argmax=None))
    bare = Outline(image_card(pictured, 0, {0.1: unfound}))
    assert [name for name, _ in bare.elements].count("img") == 1
    counts = Outline(verdict_counts([{0.1: one}, {0.1: one}])).text
    assert f"r = 0.1{''.join('2' if v is verdict else '0' for v in Verdict)}250 ms" in counts


def test_what_is_asked_holds_at_points_of_the_region(plane_study: Study) -> None:
    box = Box([-0.5, -0.6], [0.5, 0.3])
    one = ask(plane_study, box, label=1)
    assert one.name == "1"
    points = np.random.default_rng(0).uniform(box.lower, box.upper, size=(500, 2))
    p = plane_study.classifier.predict_proba(points)[:, 1]
    assert one.range.lower <= p.min()
    assert p.max() <= one.range.upper
    assert one.range.lower <= one.at_centre <= one.range.upper
    assert one.range.argmin is not None
    assert box.contains(one.range.argmin)


def test_missing_matplotlib_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(GpcertError, match="pip install"):
        figures.require_matplotlib()
    assert main(["demo", "--output", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "demo").exists()


def test_confusion_counts_every_test_point_once(plane_study: Study) -> None:
    counts = plane_study.confusion()
    assert counts.sum() == 200
    assert counts.trace() == round(200 * plane_study.accuracy)
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(plane_study.data.y_test))


def test_bad_output_folder_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["demo", "--output", str(tmp_path / "file")]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("gpcert: ")
    assert captured.err.count("\n") == 1


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    assert main(["demo", "--output", str(folder)]) == 0
    return folder / "index.html"


def test_page_is_whole_and_needs_nothing_else(written: Path) -> None:
    assert [p.name for p in written.parent.iterdir()] == ["index.html"]
    seen = Outline(written.read_text(encoding="utf-8"))
    assert not seen.open
    names = [name for name, _ in seen.elements]
    assert not {"script", "link", "iframe"} & set(names)
    for name, attributes in seen.elements:
        assert (attributes.get("src") or "data:image/png").startswith("data:image/png")
        if name == "img":
            assert attributes["alt"]
    assert names.count("img") == 32 + 8 * (1 + 2 * 4)  # galleries; originals, and four pictures per radius
    assert names.count("svg") == 2 + 16  # planes and bars


def test_page_tells_settings_and_versions(written: Path) -> None:
    text = Outline(written.read_text(encoding="utf-8")).text
    for told in (
        "laplace",
        "probit",
        "max_evals",
        "random_state",
        "lengthscale",
        "Python",
        "numpy",
        "OMP_NUM_THREADS",
    ):
        assert told in text


def test_ranges_on_the_page_hold_the_probability_of_the_image(written: Path) -> None:
    text = Outline(written.read_text(encoding="utf-8")).text
    cards = re.findall(
        r"Test image \d+: true.*?≈ ([\d.]+)(.*?)(?=Test image|Certified ranges of boxes)", text
    )
    assert len(cards) == 8
    for p, rest in cards:
        ranges = re.findall(r"r = [\d.]+: P\(\d\) in \[([\d.]+), ([\d.]+)\](?:The label c|Undecided)", rest)
        assert len(ranges) == 2
        (low, high), (lower, higher) = (map(float, ends) for ends in ranges)
        assert lower <= low <= float(p) + 5e-4
        assert float(p) - 5e-4 <= high <= higher + 5e-3  # nested regions, each to the page's tolerance


def test_accuracies_on_the_page_are_at_least_those_required(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    required = {"mnist38": 96.0, "synthetic2d": 98.0, "spam": 88.0}
    for name, least in required.items():
        (row,) = re.findall(rf"<tr><th>{name}</th>(.*?)</tr>", text)
        assert float(re.findall(r"([\d.]+) %", row)[0]) >= least


def test_a_study_knows_its_start(plane_study: Study) -> None:
    assert plane_study.start == RBF(1.0, 10.0) == plane_study.classifier.posterior_.kernel

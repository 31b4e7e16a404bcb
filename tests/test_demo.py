"""The demo page and the verb that writes it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from gpcert.cli import main
from gpcert.errors import GpcertError
from gpcert.kernels import RBF
from gpcert.report import figures
from gpcert.report.html import Html, join, page, table, tag
from gpcert.report.study import Study, study

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


def test_missing_matplotlib_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(GpcertError, match="pip install"):
        figures.require_matplotlib()
    assert main(["demo", "--output", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "demo").exists()


def test_confusion_counts_every_test_point_once() -> None:
    done = study("synthetic2d", RBF(1.0, 10.0), max_evals=0)
    counts = done.confusion()
    assert counts.sum() == 200
    assert counts.trace() == round(200 * done.accuracy)
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(done.data.y_test))


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
    assert names.count("img") == 32
    assert names.count("svg") == 1


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


def test_accuracies_on_the_page_are_at_least_those_required(written: Path) -> None:
    text = written.read_text(encoding="utf-8")
    required = {"mnist38": 96.0, "synthetic2d": 98.0, "spam": 88.0}
    for name, least in required.items():
        (row,) = re.findall(rf"<tr><th>{name}</th>(.*?)</tr>", text)
        assert float(re.findall(r"([\d.]+) %", row)[0]) >= least


def test_a_study_knows_its_start() -> None:
    kernel = RBF(1.0, 10.0)
    done = study("synthetic2d", kernel, max_evals=0)
    assert isinstance(done, Study)
    assert done.start == kernel == done.classifier.posterior_.kernel

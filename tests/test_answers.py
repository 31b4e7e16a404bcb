"""Batches as sequences, tables, files and pages."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import pickle
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

import gpcert as gc
from gpcert.cli import main
from gpcert.errors import InvalidInputError
from gpcert.numbers import Lower, Upper
from helpers.exact import small_model

random = np.random.default_rng(4)
X = pd.DataFrame(
    random.normal(size=(20, 2)), columns=["age", "<b>dose</b>"], index=[f"p{i}" for i in range(20)]
)
Y = np.where(X["age"] > 0, "ill", "well")
CLF = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(X, Y)
PNG = re.compile(r'src="data:image/png;base64,([^"]+)"')


@pytest.fixture(scope="module")
def verdicts() -> gc.Answers[gc.Verdict]:
    return gc.certify_table(CLF, X.assign(state=Y)[:6], "state", radii=[0.05, 0.4])


def test_a_batch_is_a_sequence(verdicts: gc.Answers[gc.Verdict]) -> None:
    listed = list(verdicts)
    assert verdicts == listed
    assert listed == verdicts
    assert verdicts[2:4] == listed[2:4]
    assert verdicts[2:4].ids == ("p1", "p1")
    assert verdicts[np.arange(12) % 2 == 0] == listed[::2]
    safe = verdicts.filter(lambda v: v.status == "safe")
    assert safe == [v for v in listed if v.status == "safe"]
    both = verdicts[:2] + verdicts[2:]
    assert (both, both.ids, both.truth, both.post) == (listed, verdicts.ids, verdicts.truth, verdicts.post)
    assert next(reversed(verdicts)) is listed[-1]
    assert gc.certify(CLF, []) == []


def test_a_status_is_a_text_wherever_texts_go() -> None:
    """That a comparison with another text is refused does not get in the way of what compares by hash."""
    known = list(gc.VerdictStatus)
    texts = ["safe", "unsafe", "unknown"]
    assert known == texts
    assert sorted(known) == sorted(texts)
    assert set(known) == set(texts)
    assert {"safe": 1, "else": 2}[known[0]] == {known[0]: 1, "else": 2}["safe"] == 1
    assert pickle.loads(pickle.dumps(known))[0] is known[0]
    assert json.loads(json.dumps({known[0]: known})) == {"safe": texts}
    assert (np.array(known, dtype=object) == "safe").tolist() == [True, False, False]
    assert (np.array(known) == "safe").tolist() == [True, False, False]
    for column in (pd.Series(known, dtype=object), pd.Series(known), pl.Series(known)):
        assert (column == "safe").to_list() == [True, False, False]
    assert pd.Series(known, dtype=object).isin(["safe", "else"]).tolist() == [True, False, False]
    assert known[0] != gc.Status.CONVERGED
    assert known[0] != 1


def test_the_numbers_come_back_as_tables(verdicts: gc.Answers[gc.Verdict], tmp_path: Path) -> None:
    frame, other = verdicts.to_pandas(), verdicts.to_polars()
    assert list(frame.index) == list(verdicts.ids) == other["id"].to_list()
    for name, told in (
        ("margin_lower", [v.margin.lower for v in verdicts]),
        ("radius", [v.region.radius for v in verdicts]),
        ("status", [v.status for v in verdicts]),
        ("label", [v.label for v in verdicts]),
        ("true", [each for each in Y[:6] for _ in range(2)]),
    ):
        assert frame[name].tolist() == other[name].to_list() == told
    for suffix in ("csv", "parquet"):
        verdicts.save(tmp_path / f"a.{suffix}")
    assert pl.read_parquet(tmp_path / "a.parquet").equals(other)
    with open(tmp_path / "a.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["margin_upper"]) for line in lines] == [v.margin.upper for v in verdicts]
    ranges = gc.probability_range(CLF, gc.balls(X[:2], 0.1), "ill").to_pandas()
    assert ranges["max_upper"].le(1.0).all()


def test_files_and_pages_are_those_of_the_command_line(
    verdicts: gc.Answers[gc.Verdict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verdicts.save("a.json")
    assert gc.load_answers("a.json") == list(verdicts)
    assert main(["report", "a.json", "--title", "Ward", "-o", "command.html"]) == 0
    gc.report(verdicts, "python.html", title="Ward")
    pages = [Path(name).read_text(encoding="utf-8") for name in ("command.html", "python.html")]
    for page in pages:
        assert "p3" in page
        assert "<b>dose" not in page
    shared = [page[page.index("<h2>In short") : page.index("<h2>Settings")] for page in pages]
    assert shared[0] == shared[1]
    radii = gc.certified_radius(CLF, X[:6], max_radius=0.4)
    gc.report([verdicts, radii], "both.html")
    assert "median certified radius" in Path("both.html").read_text(encoding="utf-8")
    latents = gc.latent_range(CLF, gc.balls(X[:2], 0.1))
    latents.save("latents.json")
    assert gc.load_answers("latents.json") == list(latents)


def test_rows_may_share_a_name(tmp_path: Path) -> None:
    """An index that repeats, as tables put together have it: known after the work, so it is no error."""
    table = pd.concat([X[:4], X[4:8]]).set_axis([0, 1, 2, 3, 0, 1, 2, 0])
    answers = gc.certify_table(CLF, table.assign(state=Y[:8]), target="state", radii=[0.01, 0.1])
    answers.save(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    names = [answer.get("id", str(answer["row"])) for answer in document["answers"]]
    assert names[::2] == names[1::2] == ["0", "1", "2", "3", "0 (2)", "1 (2)", "2 (2)", "0 (3)"]
    radii = gc.certified_radius(CLF, table, max_radius=0.1)
    gc.report([answers, radii], tmp_path / "page.html")
    other = gc.GPClassifier(gc.RBF(2.0), max_evals=0).fit(X, Y)
    gc.report([answers, gc.certify_table(other, table, radii=[0.01, 0.1])], tmp_path / "models.html")
    assert "0 (3)" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_command_line_writes_tables_by_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    gc.save(CLF.posterior_, "model.safetensors")
    X[:3].to_csv("rows.csv", index=False)
    command = ["certify", "model.safetensors", "rows.csv", "--radius", "0.1", "-o"]
    for name in ("out.csv", "out.parquet", "out.json", "out.XLSX"):
        assert main([*command, name]) == 0
    expected = [a.margin.lower for a in gc.load_answers("out.json")]
    with open("out.csv", encoding="utf-8") as file:
        assert [float(line["margin_lower"]) for line in csv.DictReader(file)] == expected
    assert pl.read_parquet("out.parquet")["margin_lower"].to_list() == expected
    assert pd.read_excel("out.XLSX")["margin_lower"].tolist() == expected  # bit for bit
    assert main(["explain", *command[1:], "explained.csv"]) == 0
    assert pd.read_csv("explained.csv")["feature"].tolist() == ["age", "<b>dose</b>"] * 3
    capsys.readouterr()


@given(
    st.floats(-1e6, 1e6), st.sampled_from([".0f", ".3f", "8.2f", ".2e", ".4g", ".1%", "f", "e", ".3", "%"])
)
def test_format_strings_round_proved_bounds_outward(value: float, spec: str) -> None:
    """What is printed is a decimal: compared as a rational number with the double itself."""

    def exact(text: str) -> Fraction:
        return Fraction(text.strip("% ")) / (100 if text.endswith("%") else 1)

    assert exact(format(Lower(value), spec)) <= Fraction(value) <= exact(format(Upper(value), spec))


def test_bounds_are_shown_as_doubles_are() -> None:
    assert (
        f"{Lower(0.1)} {Lower(0.1):8} {Upper(0.25):f} {Lower(0.5):e}" == "0.1      0.1 0.250000 5.000000e-1"
    )
    assert f"{gc.Enclosure(-math.inf, math.inf):.2f}" == "[-inf, inf]"
    assert str(gc.Enclosure(0.0, math.inf)) == "[0.000, inf]"


def test_what_is_shown_is_small_and_escaped(verdicts: gc.Answers[gc.Verdict]) -> None:
    d = 900
    wide = gc.GPClassifier(gc.RBF(30.0), max_evals=0).fit(random.normal(size=(9, d)), [0, 1, 2] * 3)
    ball = gc.Ball(np.zeros(d), 0.01)
    row = wide.posterior_.centres[0]
    things = [
        *(ball, ball.box(), wide, wide.posterior_, verdicts, verdicts[0]),
        gc.probability_range(wide, ball, 1, max_nodes=1),
        gc.latent_range(wide, ball, label=1, max_nodes=1),
        gc.certify(wide, [ball] * 30, max_nodes=1),
        gc.attack(wide, ball, starts=1),
        gc.robustness(CLF, gc.Ball(X.iloc[0], 0.1)),
        gc.certified_radius(CLF, X.iloc[0]),
        gc.evaluate(CLF, X, Y, np.linspace(0.0, 0.1, 30)),
        gc.explain(CLF, X, 0.1),
        gc.GPClassifier(),
    ]
    assert row.shape == (d,)
    for thing in things:
        for text in (repr(thing), str(thing)):
            assert text.count("\n") < 15
            assert len(text) < 5000
        html = thing._repr_html_()
        assert 0 < len(html) < 60_000
        assert "<b>dose" not in html
    bar = things[6]._repr_html_()
    assert ">0<" in bar
    assert ">1/2<" in bar
    assert ">1<" in bar


def test_where_features_are_an_image_it_is_shown(tmp_path: Path) -> None:
    """The picture decodes to the pixels; a counterexample stands beside it; other features show none."""
    random = np.random.default_rng(3)
    images = random.random((20, 64)).round(2)
    labels = images[:, :32].mean(axis=1) > images[:, 32:].mean(axis=1)
    clf = gc.GPClassifier(gc.RBF(2.0), max_evals=0).fit(images, labels)
    ball = gc.Ball(images[0], 0.9, domain=(0.0, 1.0))
    verdicts = gc.certify(clf, [ball], max_nodes=1)
    found = gc.attack(clf, ball, starts=1)
    assert verdicts[0].counterexample is not None
    shown: list[tuple[Any, list[np.ndarray]]] = [
        (ball, [images[0]]),
        (verdicts[0], [images[0], verdicts[0].counterexample]),
        (verdicts, [images[0], verdicts[0].counterexample]),
        (found, [images[0], found.x]),
        (gc.probability_range(clf, ball, max_nodes=1), [images[0]]),
    ]
    for thing, points in shown:
        pictures = [imread(io.BytesIO(base64.b64decode(text))) for text in PNG.findall(thing._repr_html_())]
        grey = [each for each in pictures if each.ndim == 2]
        for point in points:
            wanted = point.reshape(8, 8)
            assert any(np.abs(each - wanted).max() < 0.003 for each in grey)
    assert len(PNG.findall(gc.explain(clf, images[:2], 0.1)._repr_html_())) == 2
    negative, named = images[0] - 1.0, dict(zip([f"c{j}" for j in range(64)], images[0], strict=True))
    for no in (gc.Ball(negative, 0.1), gc.Ball(named, 0.1), gc.Ball(images[0, :49], 0.1)):
        assert "<img" not in no._repr_html_()
    page = tmp_path / "page.html"
    gc.report(verdicts, page)
    assert "data:image/png" in page.read_text(encoding="utf-8")


def test_a_summary_says_of_each_region_what_is_true_of_it() -> None:
    """Batches may mix features, units, norms and models: one sentence for each, never one for all."""
    post = small_model(n=30, d=3)
    x = post.centres[0]
    some = [gc.Ball(x, 0.1), gc.Ball(x, 0.1, features=[0]), gc.Ball(x, 0.1, norm=2)]
    scaled = [gc.Ball(x, 0.1, scale=[1.0, 2.0, 3.0]), gc.Ball(x, 0.1, domain=(-9.0, 9.0))]
    told = gc.certify(post, some + scaled).sentences()
    assert len(told) == 5
    for words in ("all 3 features are off by up to 0.1 each", "“x0” is off", "Euclidean", "times the scale"):
        assert sum(words in sentence for sentence in told) >= 1, words
    units = [[1.0, 1.0, 1.0 + k] for k in range(12)]
    rows = [gc.Ball(y, 0.1, scale=unit) for y, unit in zip(post.centres, units, strict=False)]
    (many,) = gc.certify(post, rows).sentences()
    assert "of 12 rows" in many
    assert "while the row is anywhere in its region" in many
    one_row = gc.certify(post, [gc.Ball(x, 0.1, scale=unit) for unit in units]).sentences()
    assert len(one_row) == 12  # one row is never told as twelve
    other = small_model(n=20, d=3)
    assert len((gc.certify(post, some[:1] * 2) + gc.certify(other, some[:1] * 2)).sentences()) == 2


def test_sums_of_batches_keep_what_belongs_together() -> None:
    points, labels = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    models = (gc.GPClassifier(gc.RBF(size), max_evals=0).fit(points, labels) for size in (1.0, 2.0))
    table = {"x": [0.5, 2.5], "t": ["a", "b"]}
    one, two = (gc.certify_table(model, table, target="t", radii=[0.1]) for model in models)
    assert (one + one[:0]).truth == one.truth
    assert sum([one, one]).truth == one.truth * 2  # type: ignore[operator, attr-defined]
    mixed = one + two
    assert mixed.truth == ("a", "b", "a", "b")
    assert mixed.columns()["true"] == list(mixed.truth)
    for wrong in (None, [[0, 1]], np.array(1), np.bool_(True)):
        with pytest.raises(InvalidInputError, match="answers are picked by a position, a slice"):
            one[wrong]


def test_regions_show_themselves_in_few_lines() -> None:
    told = repr(gc.balls(X, 0.1)).splitlines()
    assert len(told) == 7
    assert told[0] == "Regions (20)"
    assert told[1].startswith("p0: Ball(x=[")
    assert told[-1] == "... 15 more"


@pytest.mark.parametrize(
    "ids",
    [
        [("a", 1), ("b", 2)],
        ["a", 2],
        [pd.Interval(0, 1), pd.Interval(1, 2)],
        list(pd.period_range("2026", periods=2)),
    ],
)
def test_any_names_of_rows_go_into_a_parquet_file(ids: list[Any], tmp_path: Path) -> None:
    answers = gc.certify(CLF, gc.balls(X[:2], 0.1))
    gc.Answers(answers, ids, CLF.posterior_).save(tmp_path / "a.parquet")
    assert pd.read_parquet(tmp_path / "a.parquet")["id"].tolist() == [str(each) for each in ids]

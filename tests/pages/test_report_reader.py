"""What somebody who never heard of certification reads: nothing on the page says more than was proved."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_report import Outline
from test_report_claims import SAFE, UNSAFE, certify, tables

import gpcert as gc
from gpcert.errors import InvalidInputError
from gpcert.numbers import percent
from gpcert.pages.compare import Pair, chance, overview
from gpcert.pages.groups import grouped
from gpcert.pages.page import report
from gpcert.pages.points import shown_radius
from gpcert.records.results_file import read_results
from helpers.report_files import about, edited, every_verb, other_model, results, write


def groups_of(*paths: Path, separate: bool = False) -> list[Any]:
    return grouped([(path, *read_results(path)) for path in paths], separate)


def told(*paths: Path) -> str:
    """The text of a page without its settings and its list of words."""
    text = report(list(paths)).partition("<main>")[2].partition('<section id="settings-and-versions"')[0]
    return Outline(text).text


def test_an_attack_alone_proves_nothing_and_says_so(tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 9)
    text = told(paths[3])
    for claimed in ("tried or not", "proved safe", "not decided", "certified accuracy"):
        assert claimed not in text
    assert "Where an attack finds nothing it proves nothing" in text
    stood = sum(p.correct and not p.attacks[0.1].success for p in groups_of(paths[3])[0].points)
    assert (
        f"{percent(Fraction(stood, 9))}accuracy under attack at radius 0.1{stood} of 9 right and not changed"
        in text
    )


@pytest.mark.parametrize("threshold", [0.25, 0.75])
def test_another_threshold_says_nothing_about_classes(threshold: float, tmp_path: Path) -> None:
    """Above 0.25 the class may change all the same; below 0.75 it need not."""
    path = certify(tmp_path / "c.json", [SAFE, UNSAFE, SAFE], threshold=threshold)
    text = told(path)
    for wrong in (
        "class cannot change",
        "class can change",
        "another class",
        "certainly right",
        "made wrong",
    ):
        assert wrong not in text
    assert f"stays above {threshold}" in text
    assert f"can fall to {threshold}" in text
    said, _ = overview(groups_of(path, other_model(path)))
    assert f"these are right and proved to stay above {threshold}: 2 with m" in said


@pytest.mark.parametrize("threshold", [0.2, 0.9])
def test_the_words_are_explained_for_the_threshold(threshold: float, tmp_path: Path) -> None:
    """Above 0.2 another class may be the largest; that a probability falls to 0.9 makes nothing wrong."""
    path = certify(tmp_path / "c.json", [SAFE, UNSAFE], threshold=threshold)
    text = report([path])
    shown = unescape(re.sub("<script.*?</script>", "", text, flags=re.DOTALL))
    for wrong in (
        "gets the same class",
        "gets another class",
        "at least this share stays right",
        "accuracy (or recall) under the worst change",
        "(one half)",
        "worst case at most",
    ):
        assert wrong not in shown
    words = Outline(text).text.rpartition("What the words mean")[2]
    assert f"the probability of the predicted class is above {threshold}" in words
    assert f"above the threshold, {threshold}" in words
    plain = certify(tmp_path / "d.json", [SAFE, UNSAFE])
    assert "gets the same class" in report([plain])
    assert "above the threshold of the result" in report([path, other_model(plain)])


def test_images_are_called_images(tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 6)
    text = told(*paths)
    assert "6 images" in text
    assert not re.search(r"\brows?\b", text)


def test_batches_of_images_say_so_in_their_summary_as_on_the_page(tmp_path: Path) -> None:
    Z = np.random.default_rng(0).uniform(size=(6, 64))
    clf = gc.GPClassifier(max_evals=0).fit(Z, list("ababab"))
    answers = gc.certify(clf, gc.balls(Z, 1e-3))
    answers.report(tmp_path / "page.html")
    claim = answers.summary().splitlines()[-1]
    assert "of 6 images" in claim
    assert "all 64 pixels" in claim
    assert claim in Outline((tmp_path / "page.html").read_text(encoding="utf-8")).text


def test_radii_are_looked_at_where_half_of_the_rows_hold(tmp_path: Path) -> None:
    path = every_verb(tmp_path, 21)[2]
    (group,) = groups_of(path)
    radius = shown_radius(group.points)
    safe = sorted(p.safe for p in group.points)
    assert safe[10] / 1.1 < radius <= safe[10]
    text = Outline(report([path])).text
    count = sum(r >= radius for r in safe)
    assert f"Radius {radius}: {count} of 21 images proved safe" in text
    assert "certified recall" in text


def test_each_row_has_its_influences_in_order(tmp_path: Path) -> None:
    lower, upper = [0.1, -0.5, 0.0, -0.2], [0.2, -0.4, 0.0, 0.3]
    answer = {
        **about(0),
        "radius": 0.1,
        "class": "8",
        "lower": lower,
        "upper": upper,
        "value": [0.15, -0.45, 0, 0],
    }
    text = report([write(tmp_path / "e.json", results("explain", [answer]))])
    own = text.partition('<figure class="own">')[2].partition("</figure>")[0]
    bars = re.findall(r"<title>(.*?): \[(.*?), (.*?)\]</title>", own)
    assert [name for name, *_ in bars] == ["b", "a", "d", "c"]
    for name, low, high in bars:
        j = "abcd".index(name)
        assert Fraction(low) <= Fraction(lower[j])
        assert Fraction(high) >= Fraction(upper[j])


def test_influences_may_be_as_small_as_doubles_are(tmp_path: Path) -> None:
    tiny = [5e-324, 0.0, 0.0, 0.0]
    rows = [
        {
            **about(i),
            "radius": 0.1,
            "class": "8",
            "lower": [0.0] * 4,
            "upper": tiny if i else [0.0] * 4,
            "value": [0.0] * 4,
        }
        for i in range(2)
    ]
    text = report([write(tmp_path / "e.json", results("explain", rows))])
    assert "[0.000, 0.001]" in text
    assert "nan" not in re.sub("<style.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL)


def test_shares_that_are_compared_are_of_the_same_rows(tmp_path: Path) -> None:
    first = certify(tmp_path / "a.json", [SAFE, SAFE, UNSAFE, UNSAFE])
    second = other_model(certify(tmp_path / "b.json", [SAFE, SAFE]))
    text = report([first, second])
    index = tables(text)[0]
    assert [row[1] for row in index[1:]] == ["2", "2"]
    assert [row[4] for row in index[1:]] == ["100.0 %", "100.0 %"]
    assert "Compared are the 2 rows that are in all of them." in text
    third = other_model(certify(tmp_path / "c.json", [SAFE] * 4))
    later = read_results(third)[1][2:]
    document = read_results(third)[0] | {"asked": 2}
    some = [(first, *read_results(first)), (third, document, later)]
    assert "The difference may be chance" in overview(grouped(some))[0]
    none = [(first, read_results(first)[0], read_results(first)[1][:2]), (third, document, later)]
    text = Outline(_page(none)).text
    assert "2 results, and no row is in all of them: each has a claim of its own" in text
    for name in ("m", "other"):
        assert f"{name}: For 2 of 2 rows (100.0 %" in text
    assert "McNemar's exact test" not in text.partition("What the words mean")[0]
    assert tables(_page(none))[0][1][1] == "2"


def _searched(path: Path, found: list[tuple[float, float]]) -> Path:
    """Rows that are all right, with what is proved and refuted."""
    witness = [[0.0] * 4 if math.isfinite(unsafe) else None for _, unsafe in found]
    rows = [
        {**about(i), "label": "8", "predicted": "8", "probability": [0.1, 0.9], "safe": safe}
        | {"unsafe": unsafe if z else None, "counterexample": z}
        for i, ((safe, unsafe), z) in enumerate(zip(found, witness, strict=True))
    ]
    return write(path, results("radius", rows))


def test_a_radius_that_nobody_asked_about_is_not_lost(tmp_path: Path) -> None:
    """Searched up to 0.2 only, or coarsely: nothing says that these rows change at 0.63."""
    whole = _searched(tmp_path / "a.json", [(0.63, 0.64)] * 10)
    limited = other_model(_searched(tmp_path / "b.json", [(0.2, math.inf)] * 10))
    coarse = other_model(_searched(tmp_path / "c.json", [(0.1, 0.9)] * 9 + [(0.05, 0.06)]))
    for path, radius, told in ((limited, 0.2, (10, 0, 0, 0)), (coarse, 0.1, (9, 1, 0, 0))):
        pair = Pair(*groups_of(whole, path))
        assert pair.split(0.63) == (0, int(path == coarse), 0, 0)
        assert pair.split(radius) == told
        said, _ = overview([pair.first, pair.second])
        assert f"off by up to {radius} each" in said
        assert "in favour of" not in said
    assert "over the 1 row that both decide" in chance(pair, 0.63)


def _page(some: list[Any]) -> str:
    from gpcert.pages.page import report_on

    return report_on(some)


def test_rows_that_only_share_their_numbers_are_not_compared(tmp_path: Path) -> None:
    first = certify(tmp_path / "a.json", [SAFE, SAFE])
    for change in ({"x": [0.5] * 4}, {"label": "3"}):
        second = edited(other_model(first), **change)
        with pytest.raises(
            InvalidInputError, match="must be about the same rows, got two different rows '0'"
        ):
            report([first, second])
    Z, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]
    models = [gc.GPClassifier(gc.RBF(s), max_evals=0).fit(Z, y) for s in (1.0, 2.0)]
    batches = [gc.certify(m, gc.balls(X, 0.1)) for m, X in zip(models, ([[0.5]], [[2.5]]), strict=True)]
    with pytest.raises(InvalidInputError, match="must be about the same rows"):
        gc.report(batches, tmp_path / "page.html")


def test_labels_that_only_one_knows_do_not_count(tmp_path: Path) -> None:
    """Row 0 is predicted wrongly: where not all labels are known, only what is proved is counted."""
    first = certify(tmp_path / "a.json", [SAFE, UNSAFE], "38")
    second = other_model(first, **{"0": {"label": None}, "1": {"label": None}})
    pair = Pair(*groups_of(first, second))
    assert pair.held == "proved safe"
    assert pair.split(0.1) == (1, 0, 0, 1)
    both = Pair(*groups_of(first, first, separate=True))
    assert both.held == "right and proved safe"
    assert both.split(0.1) == (0, 0, 0, 2)


def test_training_again_keeps_the_question(tmp_path: Path) -> None:
    """One standard deviation is another number then; the regions of two norms are never compared."""
    first = certify(tmp_path / "a.json", [SAFE, UNSAFE], scale=[1.0] * 4, unit="standard deviations")
    again = other_model(
        certify(tmp_path / "b.json", [SAFE, SAFE], scale=[2.0] * 4, unit="standard deviations")
    )
    assert len(tables(report([first, again]))[1]) == 2
    other = certify(tmp_path / "c.json", [SAFE, SAFE], norm=2)
    text = report([first, other])
    assert "The questions differ in the norm and the unit of the radius: figures" in text
    assert "McNemar's exact test" not in text.partition('id="what-the-words-mean"')[0]


def test_questions_that_differ_are_told_and_not_tested(tmp_path: Path) -> None:
    """All of two features are not all of four; another threshold is another question about one region."""
    first = certify(tmp_path / "a.json", [SAFE, UNSAFE])
    high = other_model(certify(tmp_path / "b.json", [SAFE, SAFE], threshold=0.9))
    fewer = [about(i, 2) | {"label": "8", "predicted": "8", "probability": [0.1, 0.9]} for i in range(2)]
    two = results("certify", [row | SAFE for row in fewer], features=["a", "b"])
    small = other_model(write(tmp_path / "c.json", two))
    for path, what in ((high, "the threshold"), (small, "the features that move")):
        text = Outline(report([first, path])).text
        assert f"The questions differ in {what}: figures" in text
        assert "McNemar's exact test" not in text.partition("What the words mean")[2]


def test_costs_are_of_the_rows_compared(tmp_path: Path) -> None:
    first = certify(tmp_path / "a.json", [SAFE, SAFE, UNSAFE])
    second = other_model(certify(tmp_path / "b.json", [SAFE, SAFE]))
    head, *lines = tables(report([first, second]))[0]
    cells = [dict(zip(head, line, strict=True)) for line in lines]
    assert [(c["rows"], c["seconds"], c["boxes searched"]) for c in cells] == [
        ("2", "", "2"),
        ("2", "1.0", "2"),
    ]


def test_two_target_columns_are_not_pooled(tmp_path: Path) -> None:
    paths = [certify(tmp_path / f"{name}.json", [SAFE, SAFE]) for name in ("one", "two")]
    for path in paths:
        edited(path, data={**read_results(path)[0]["data"], "target": path.stem})
    with pytest.raises(InvalidInputError, match=r"must have the same target column, got \['one', 'two'\]"):
        report(paths)


def test_two_files_of_radii_are_compared_at_a_radius_of_theirs(tmp_path: Path) -> None:
    first = every_verb(tmp_path, 12)[2]
    pair = Pair(*groups_of(first, other_model(first)))
    radius = shown_radius(pair.first.points)
    safe = sum(bool(p.correct) and p.safe >= radius for p in pair.first.points)
    assert pair.split(radius) == (safe, 0, 0, 12 - safe)
    assert f"off by up to {radius} each" in Outline(report([first, other_model(first)])).text


def test_attacks_are_compared_as_what_they_left(tmp_path: Path) -> None:
    first = every_verb(tmp_path, 9)[3]
    second = other_model(first, **{str(row): {"success": True} for row in range(9)})
    text = report([first, second])
    index = tables(text)[0]
    stood = sum(p.correct and not p.attacks[0.1].success for p in groups_of(first)[0].points)
    column = index[0].index("accuracy under attack")
    assert [row[column] for row in index[1:]] == [percent(Fraction(stood, 9)), "0.0 %"]
    assert "proved safe" not in index[0]
    assert "tried or not" not in text.partition('id="what-the-words-mean"')[0]


def test_folders_stay_private_and_runs_that_stopped_are_counted(tmp_path: Path) -> None:
    path = certify(tmp_path / "a.json", [SAFE, SAFE])
    edited(
        path,
        asked=5,
        complete=False,
        model={**read_results(path)[0]["model"], "file": "/home/me/m.safetensors"},
    )
    text = Outline(report([path])).text
    top = text.partition("In short")[0]
    assert "Model m.safetensors" in top
    assert "/home/me" not in top
    assert "2 of 5 questions answered" in top
    assert "For 2 of 2 rows answered (" in text
    assert "3 of 5 questions have no answer: they are in none of these shares" in text
    assert "2rowswith answers" in text
    assert "rows answered" not in Outline(report([certify(tmp_path / "b.json", [SAFE, SAFE])])).text

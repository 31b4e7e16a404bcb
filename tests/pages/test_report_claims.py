"""What the page claims follows from the answers: sentence, classes, comparison, curves, counterexamples."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_report import Outline

import gpcert as gc
from gpcert.cli import main
from gpcert.numbers import percent
from gpcert.pages.compare import mcnemar
from gpcert.pages.groups import grouped
from gpcert.pages.page import report
from gpcert.pages.points import ProvedShares
from gpcert.records.results_file import read_results
from helpers.cli_files import NAMES, UNIT, patients, write_table
from helpers.cli_files import points as patient_points
from helpers.exact import small_model
from helpers.report_files import about, edited, every_verb, made_of, other_model, results, write
from helpers.steps import ASKED, LABELS, MANY, NEAR, SOFT, drawn

SAFE = {"radius": 0.1, "verdict": "safe", "margin": [0.1, 0.2], "counterexample": None}
UNSAFE = {"radius": 0.1, "verdict": "unsafe", "margin": [-0.2, -0.1], "counterexample": [0.0] * 4}


def certify(path: Path, verdicts: list[dict[str, Any]], labels: str = "88888888", **more: Any) -> Path:
    """Rows all predicted as 8, with these true labels."""
    rows = [
        {**about(i), "label": label, "predicted": "8", "probability": [0.1, 0.9], **verdict}
        for i, (verdict, label) in enumerate(zip(verdicts, labels, strict=False))
    ]
    return write(path, results("certify", rows, **more))


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table of a page."""
    found = re.findall(r"<table>.*?</table>", text.partition("<script")[0], re.DOTALL)
    rows = [re.findall(r"<tr>(.*?)</tr>", each, re.DOTALL) for each in found]
    cell = r"<t[hd][^>]*>(.*?)</t[hd]>"
    return [[re.findall(cell, row, re.DOTALL) for row in each] for each in rows]


def test_page_terminal_and_summary_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = str(patients(tmp_path, "data.csv", 40, 0)), str(tmp_path / "model.safetensors")
    fit = ["fit", data, "--target", "state", "--drop", "who", "--max-evals", "3", "--quiet", "-o", model]
    assert main(fit) == 0
    capsys.readouterr()
    asked = ["--rows", "0:8", "--radius", "0.1", "--scale", "std", "--jobs", "1", "--quiet"]
    assert main(["certify", model, data, *asked, "-o", str(tmp_path / "c.json")]) == 0
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("For ")]
    _, rows = read_results(tmp_path / "c.json")
    right = sum(r.answer.status == "safe" and r.label == r.predicted for r in rows)
    assert said.startswith(f"For {right} of 8 rows (")
    assert "all 3 features are off by up to 0.1 standard deviations each" in said
    assert said in Outline(report([tmp_path / "c.json"])).text
    answers = gc.Answers(
        [r.answer for r in rows],
        post=gc.load(model),
        truth=[r.label for r in rows],
    )
    assert answers.summary().splitlines()[1] == said


def test_classes_apart(tmp_path: Path) -> None:
    path = certify(tmp_path / "c.json", [SAFE, SAFE, UNSAFE, SAFE, UNSAFE], "88833")
    text = report([path])
    recall, matrix = next(
        (a, b) for a, b in zip(tables(text), tables(text)[1:], strict=False) if a[0][:1] == ["true class"]
    )
    assert recall[1:] == [
        ["3", "2", "0.0 %", "0.0 %", "0.0 %", "0", "0", "2", "0"],
        ["8", "3", "100.0 %", "66.7 %", "66.7 %", "2", "1", "0", "0"],
    ]
    assert matrix[1:] == [["3", "0", "2 (1 proved safe)"], ["8", "0", "3 (2 proved safe)"]]
    assert "For 2 of 5 rows (40.0 %" in text


def test_which_class_is_positive_is_not_guessed(tmp_path: Path) -> None:
    """The second of two need not be the one that is looked for: ill comes before well."""
    text = report([certify(tmp_path / "c.json", [SAFE, UNSAFE], "83")])
    assert "(sensitivity)" not in text
    assert "The recall of the positive class is the sensitivity, that of the other the specificity." in text


def test_radii_of_a_comparison_have_their_unit(tmp_path: Path) -> None:
    """Without it, 0.1 of a standard deviation reads as 0.1 of whatever the columns are in."""
    known = {"training": {"centres": "training data"}}
    post, page = small_model(n=12, **known), tmp_path / "page.html"
    other = gc.Posterior(
        post.centres,
        2 * post.weights,
        post.precision,
        kernel=post.kernel,
        likelihood=post.likelihood,
        **known,
    )
    scale = post.centres.std(axis=0)
    for ask in (
        lambda model: gc.certify(model, gc.balls(post.centres, 0.1, scale=scale)),
        lambda model: gc.certified_radius(model, post.centres, scale=scale, max_radius=2.0, rtol=0.1),
    ):
        gc.report([ask(post), ask(other)], page)
        text = page.read_text(encoding="utf-8")
        unit = "standard deviations"
        index = next(t for t in tables(text) if t[0][:1] == ["result"])
        told = [name for name in ("radius", "median certified radius") if name in index[0]]
        assert told
        for name in told:
            assert all(row[index[0].index(name)].endswith(unit) for row in index[1:])
        assert any(t[0][0] == f"radius (in {unit})" and "held by both" in t[0] for t in tables(text))
        assert "verdict at radius 0.1." not in text


def test_a_histogram_says_whose_radii_it_counts(tmp_path: Path) -> None:
    """A label that holds in the whole domain has no finite radius: its row is not among the bars."""
    X = [[x, y] for y in (0.0, 9.0) for x in (0.0, 1.0, 2.0, 3.0)]
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit(X, list("aabbaaaa"))
    rows, page = [[0.5, 0.0], [2.5, 0.0], [1.5, 9.0]], tmp_path / "page.html"
    found = gc.certified_radius(clf, rows, features=[0], domain=(0.0, 9.0), max_radius=float("inf"))
    assert [r.safe < float("inf") for r in found] == [True, True, False]
    for batch, told in ((found[:2], "Certified radii<"), (found, "Certified radii, 2 of 3 rows")):
        batch.report(page)
        assert told in page.read_text(encoding="utf-8")
        counts = re.search(
            r"(\d+) of (\d+) rows proved safe .*?, (\d+) can change, (\d+) not decided", page.read_text()
        )
        assert counts is not None
        assert int(counts[1]) + int(counts[3]) + int(counts[4]) == int(counts[2]) == len(batch)
    (said,) = found[2:].sentences()
    assert said.startswith(
        "1 row keeps the predicted class, proved, while “x0” is off by any amount, staying"
    )
    assert said.endswith("(all radii were searched).")
    found[2:].report(page)
    assert "proved safe up to" in page.read_text(encoding="utf-8")


def test_a_radius_of_nothing_is_no_radius(tmp_path: Path) -> None:
    """Above a threshold that a row itself does not meet, it is not safe "up to 0"."""
    page = tmp_path / "page.html"
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit([[0.0], [1.0], [2.0], [3.0]], list("aabb"))
    gc.certified_radius(clf, [[0.5], [2.5]], threshold=0.95).report(page)
    text = Outline(page.read_text(encoding="utf-8")).text
    assert text.count("no radius is proved safe; probability at most 0.95 within 0") == 2
    assert "less than half of the rows have one" in text
    assert "proved safe up to 0" not in text
    assert "safe up to it" not in text


@pytest.mark.parametrize(("one", "two"), [(0, 0), (1, 0), (3, 1), (2, 2), (0, 6), (5, 4)])
def test_mcnemar_counts_coins(one: int, two: int) -> None:
    n = one + two
    as_uneven = [abs(2 * sum(coins) - n) >= abs(one - two) for coins in product((0, 1), repeat=n)]
    assert mcnemar(one, two) == pytest.approx(sum(as_uneven) / 2**n)


def test_models_compared(tmp_path: Path) -> None:
    first = certify(tmp_path / "a.json", [SAFE, SAFE, UNSAFE, UNSAFE, SAFE], "88883")
    second = other_model(first, **{"1": UNSAFE, "2": SAFE, "3": SAFE})
    text = Outline(report([first, second])).text
    head = ("radius", "held by both", "only by m", "only by other", "by neither", "McNemar's test")
    assert "".join((*head, "0.1", "1", "1", "2", "1", "p = 1.000")) in text
    assert f"p = {1:.3f}" in text  # 1 against 2: no coin is fairer
    assert (
        "While all 4 features are off by up to 0.1 each, in any combination, of 5 rows these are right"
        in text
    )
    assert "2 with m (40.0 %), 3 with other (60.0 %). The difference may be chance" in text
    assert "1. m" in text
    assert "2. other" in text
    groups = grouped([(path, *read_results(path)) for path in (first, first)], separate=True)
    assert [group.name for group in groups] == ["a.json", "a.json (2)"]
    other = other_model(
        certify(tmp_path / "b.json", [SAFE] * 5, "88883", scale=[1.0, 2.0, 1.0, 1.0], unit="inches")
    )
    edited(first, settings={"norm": "inf", "scale": [1.0] * 4, "unit": "inches"})
    assert "The scales differ from model to model" in Outline(report([first, other])).text


def test_curves_end_where_nothing_was_asked(tmp_path: Path) -> None:
    path = certify(tmp_path / "c.json", [SAFE] * 4)
    (group,) = grouped([(path, *read_results(path))])
    assert ProvedShares(group.points).ends() == [0.1]
    text = report([path])
    for points in re.findall(r'<polyline points="([^"]*)" class="curve good"', text):
        heights = {pair.split(",")[1] for pair in points.split()}
        assert heights == {"12.0"}  # 100 % up to the end of the frame: it never falls
    # A row that is lost is lost at larger radii, too: only the others say how far was asked.
    lost = {**UNSAFE, "radius": 0.05}
    path = certify(tmp_path / "d.json", [SAFE, {**SAFE, "radius": 0.2}, lost])
    (group,) = grouped([(path, *read_results(path))])
    assert ProvedShares(group.points).ends() == [0.05, 0.1]


def test_curves_say_no_more_than_was_proved_at_any_radius(tmp_path: Path) -> None:
    """Between two radii asked, certified is that of the larger, the most that can be that of the smaller."""
    often = gc.evaluate(SOFT, NEAR, LABELS, MANY)
    table = {"a": NEAR[:, 0], "b": NEAR[:, 1], "level": LABELS}
    gc.certify_table(SOFT, table, target="level", radii=ASKED).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    safe = np.array([(often.safe >= radius).mean() for radius in MANY])
    unsafe = np.array([(often.unsafe <= radius).mean() for radius in MANY])
    for title, look, bound, sign in (
        ("certified accuracy against", "good", often.attacked, -1),
        ("certified accuracy against", "soft", often.certified, 1),
        ("share of rows", "good", 1 - unsafe, -1),
        ("share of rows", "bad", safe, 1),
    ):
        (picture,) = re.findall(rf'aria-label="{title}.*?</svg>', text)
        (points,) = re.findall(rf'<polyline points="([^"]*)" class="curve {look}"', picture)
        pixels = np.array([pair.split(",") for pair in points.split()], dtype=float)
        (told,) = re.findall('data-told="([^"]*)"', picture)
        (left, right, _, last, _), top, bottom = json.loads(unescape(told))["ends"], 12.0, 226.0
        curve = (pixels - [left, bottom]) / [right - left, top - bottom] * [last, 1.0]
        assert last in ASKED[2:]
        for radius, limit in zip(MANY, bound, strict=True):
            if np.abs(ASKED - radius).min() > 1e-3:  # a tenth of a pixel is 4e-4
                found = drawn(curve, radius)
                assert (found is None) == (radius > last)
                assert all(sign * (value - limit) >= -1e-3 for value in found or ())


def test_many_radii_are_thinned_to_the_safe_side(tmp_path: Path) -> None:
    rows = [{**about(i), "safe": (i + 1) / 1000, "unsafe": None} for i in range(200)]
    (group,) = grouped([(p, *read_results(p)) for p in [write(tmp_path / "r.json", results("radius", rows))]])
    shares = ProvedShares(group.points)
    every, some = shares.ends(10**6), shares.ends(20)
    assert len(some) == 20 < len(every)
    assert some[-1] == every[-1]
    for radius in every:  # drawn: the value at the next end that was kept
        drawn = shares.at(next(end for end in some if end >= radius)).safe
        assert drawn <= shares.at(radius).safe


def test_counterexamples_by_change_in_units_of_the_scale(tmp_path: Path) -> None:
    x = [10.0, 20.0, 30.0, 40.0]
    other = [11.0, 20.2, 30.0, 39.0]
    scale = [100.0, 0.1, 1.0, 2.0]
    path = certify(tmp_path / "c.json", [{**UNSAFE, "x": x, "counterexample": other}], scale=scale)
    text = report([path])
    (table,) = [t for t in tables(text) if t[0][:2] == ["feature", "value"]]
    assert [row[0] for row in table[1:]] == ["b", "d", "a", "c"]  # 2, -0.5, 0.01, 0 units
    assert table[1][1:] == ["20", "20.2", "+0.2", "+2"]
    assert table[2][1:] == ["40", "39", "-1", "-0.5"]
    assert table[4][1:] == ["30", "30", "0", "0"]
    assert "at radius 0.1, the largest changes first" in text


def test_the_same_number_in_tile_caption_card_and_table(tmp_path: Path) -> None:
    """A verdict may know more than the search for the radius: all places say the same."""
    safe = 0.0955399
    radius = [{**about(0), "safe": safe, "unsafe": 0.3, "counterexample": [0.0] * 4}]
    text = report([write(tmp_path / "r.json", results("radius", radius))])
    assert text.count("0.09553") >= 4
    assert "0.09554" not in text
    assert re.search("<b>0.09553</b><span><a [^>]*>median certified radius</a></span>", text)
    assert "median 0.09553, smallest 0.09553, largest 0.09553" in text


def test_no_negative_zero_and_no_endless_settings(tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 3, scale=[0.1234567890123456, 2.0, 3.0, 4.0], tolerance=0.0200000000000001)
    explain = tmp_path / "explain.json"
    told = made_of(explain)
    for answer in told["answers"]:
        answer |= {"value": [0.0] * 4, "lower": [-1e-9] * 4, "upper": [-0.0] * 4}
    write(explain, told)
    text = report(paths)
    assert "-0.000" not in text.replace("-0.0001", "")
    summaries = re.findall(r"<summary><code>(.*?)</code></summary>", text)
    assert "[0.12346, 2.0, 3.0, 4.0]" in summaries
    assert not [s for s in summaries if re.search(r"\d\.\d{9}", s)]
    assert "0.1234567890123456" in text  # on demand


def test_another_threshold_is_said(tmp_path: Path) -> None:
    path = certify(tmp_path / "c.json", [SAFE, UNSAFE], threshold=0.7)
    assert "is right and has a probability proved to stay above 0.7 while" in report([path])
    second = certify(tmp_path / "d.json", [SAFE, UNSAFE])
    with pytest.raises(gc.InvalidInputError, match="threshold must be the same in all verdicts"):
        report([path, second])


def test_a_label_that_is_proved_is_the_predicted_one(tmp_path: Path) -> None:
    path = certify(tmp_path / "c.json", [{**SAFE, "class": "3"}])
    with pytest.raises(gc.InvalidInputError, match="label must be the predicted one, '8'"):
        report([path])


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0.0 %"), (1, "0.1 %"), (1999, "99.9 %"), (2000, "100.0 %"), (1000, "50.0 %")]
)
def test_counted_shares_reach_the_ends_only_there(count: int, told: str) -> None:
    assert percent(Fraction(count, 2000)) == told


def test_words_are_explained_in_the_page(tmp_path: Path) -> None:
    text = report([certify(tmp_path / "c.json", [SAFE])])
    assert 'href="#what-the-words-mean"' in text
    assert 'id="what-the-words-mean"' in text
    for word in ("certified accuracy", "margin", "radius", "sensitivity"):
        assert re.search(f"<dt[^>]*>[^<]*{word}", text)


def test_curves_end_at_what_the_table_says(tmp_path: Path) -> None:
    """The largest radius is one that was asked about: what can change there is drawn there."""
    path = certify(tmp_path / "c.json", [SAFE, UNSAFE, UNSAFE, SAFE], "8888")
    text = report([path])
    told = [json.loads(unescape(each))["curves"] for each in re.findall(r'data-told="([^"]*)"', text)]
    said = {curve["name"]: (curve["xs"], curve["told"]) for each in told for curve in each}
    assert said["can change"] == ([0.1], ["0.0 %", "50.0 %"])
    assert said["at most"] == ([0.1], ["100.0 %", "50.0 %"])
    drawn = re.findall(r'<polyline points="([^"]*)" class="curve (?:bad|soft)"', text)
    for points in drawn:
        *_, before, after = (tuple(map(float, pair.split(","))) for pair in points.split())
        start = float(points.split()[0].split(",")[1])
        assert before == after
        assert before[1] > start  # downwards on the screen
    assert len(drawn) == 2


def test_the_largest_radius_is_the_one_to_remember(tmp_path: Path) -> None:
    verdicts = [v | {"radius": r} for r, v in ((0.1, SAFE), (0.3, UNSAFE))]
    rows = [{**about(0), "label": "8", "predicted": "8", "probability": [0.1, 0.9], **v} for v in verdicts]
    attack = {"method": "pgd", "attacked_probability": 0.4, "attacked": [0.0] * 4}
    tried = [{**row, **attack, "success": row["verdict"] == "unsafe"} for row in rows]
    paths = [
        write(tmp_path / f"{verb}.json", results(verb, some))
        for verb, some in (("certify", rows), ("attack", tried))
    ]
    text = Outline(report(paths)).text
    assert "0.0 %certified accuracy at radius 0.3" in text
    assert "0.0 %accuracy under attack at radius 0.3" in text


def test_rows_with_a_radius_of_their_own_keep_their_verdicts(tmp_path: Path) -> None:
    verdicts = [SAFE, SAFE | {"radius": 0.3}, UNSAFE | {"radius": 0.2}, SAFE]
    text = report([certify(tmp_path / "c.json", verdicts, "8883")])
    said = Outline(text).text
    assert "For 2 of 4 rows (50.0 %" in said.partition("It does not say")[0]
    assert "off by up to the radius of its row each" in said
    assert "50.0 %certified accuracy, each row at its own radius2 of 4 right and proved safe" in said
    head, *lines = next(t for t in tables(text) if "radius asked" in t[0])
    at = head.index("radius asked")
    told = [line[at : at + 2] for line in lines]
    names = {"safe": "proved safe", "unsafe": "can change"}
    assert told == [[str(v["radius"]), names[v["verdict"]]] for v in verdicts]


def test_radii_have_their_unit_wherever_they_stand(tmp_path: Path) -> None:
    path = certify(tmp_path / "c.json", [SAFE, UNSAFE], scale=[1.0] * 4, unit="standard deviations")
    text = report([path])
    said = Outline(text).text
    assert "certified accuracy at radius 0.1 standard deviations" in said
    assert "Radius 0.1 standard deviations: 1 of 2 rows proved safe" in said
    assert text.count(">radius (in standard deviations)</text>") == 2
    assert "radius (in standard deviations)" in tables(text)[0][0][0]


def test_ranges_say_at_which_radius_and_of_how_many_rows(tmp_path: Path) -> None:
    paths = every_verb(tmp_path, 6)
    some = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(some | {"answers": some["answers"][:4], "asked": 4}))
    said = Outline(report(paths)).text
    assert "P(8) at radius 0.02, at least" in said
    assert "How far the probability moves (delta), 4 of 6 images" in said


def test_verdicts_over_boxes_have_a_page(tmp_path: Path) -> None:
    data, model = str(patients(tmp_path, "data.csv", 40, 0)), str(tmp_path / "model.safetensors")
    fit = ["fit", data, "--target", "state", "--drop", "who", "--max-evals", "3", "--quiet", "-o", model]
    assert main(fit) == 0
    X, found = patient_points(40, 0)[0][:4], {}
    head = [f"{name}.{end}" for name in NAMES for end in ("lower", "upper")]
    for name, widths in {"near": [0.01] * 4, "far": [0.01, 5.0, 0.01, 5.0]}.items():
        ends = [np.stack([x - by * UNIT, x + by * UNIT], axis=1) for x, by in zip(X, widths, strict=True)]
        write_table(tmp_path / f"{name}.csv", [list(map(repr, e.ravel().tolist())) for e in ends], head)
        path = tmp_path / f"{name}.json"
        asked = ["--rows", "0:4", "--id", "who", "--boxes", str(tmp_path / f"{name}.csv"), "--jobs", "1"]
        assert main(["certify", model, data, *asked, "--quiet", "-o", str(path)]) == 0
        statuses = [str(row.answer.status) for row in read_results(path)[1]]
        called = [
            {"safe": "proved safe", "unsafe": "can change", "unknown": "not decided"}[s] for s in statuses
        ]
        text = report([path])
        (shown,) = [t for t in tables(text) if "verdict over the box" in t[0]]
        assert [row[-1] for row in shown[1:]] == called
        right = sum(
            r.label == r.predicted and s == "safe"
            for r, s in zip(read_results(path)[1], statuses, strict=True)
        )
        assert f"{right} of 4 right and proved safe" in text
        assert "each row over its own box" in text
        found[name] = path, statuses, text
    assert found["far"][1][1::2] == ["unsafe"] * 2
    assert found["far"][2].count("A counterexample (predicted ") == 2
    assert " in the box, the largest changes first" in found["far"][2]
    # Two boxes of a row: no figure is about both, both are among the details.
    both = report([found["near"][0], found["far"][0]])
    assert "its own box" not in both
    assert "verdict over the last box" in both
    assert Outline(both).text.count("box: ") == 6  # two rows have the same box in both
    # The same box may not be safe here and unsafe there, nor get a radius that it has not.
    told = json.loads(found["far"][0].read_text(encoding="utf-8"))
    safe = json.loads(found["near"][0].read_text(encoding="utf-8"))["answers"][0]["answer"]
    told["answers"][1]["answer"] |= {
        k: safe[k] for k in ("status", "margin", "counterexample", "probability", "argmin")
    }
    other = tmp_path / "other.json"
    other.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(gc.InvalidInputError, match=r"answer 1 \(row 1\): safe over a box contradicts unsafe"):
        report([found["far"][0], other])
    told["answers"][1]["radius"] = 0.5
    other.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(gc.InvalidInputError, match=r"radius must be that of the region, None, got 0.5"):
        report([other])

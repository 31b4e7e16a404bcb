"""Bounds that people see are rounded to the side on which they hold, counted shares to the nearest."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_report import Outline

import gpcert as gc
from gpcert.cli.verbs.certify import _summary as certify_summary
from gpcert.cli.verbs.explain import _Mean
from gpcert.numbers import (
    at_least,
    at_most,
    exact_mean,
    exactly,
    percent,
    percent_at_least,
    percent_at_most,
    radius_at_least,
    radius_at_most,
)
from gpcert.pages.groups import grouped
from gpcert.pages.page import report
from gpcert.pages.points import delta
from gpcert.records.results_file import read_results
from gpcert.records.rows import Row
from helpers.report_files import about, results, write

COUNTS = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
UNIT = st.floats(0.0, 1.0)


def share(text: str) -> Fraction:
    return Fraction(re.fullmatch(r"(?:[\d,]+ \()?([\d.]+) %\)?", text).group(1)) / 100


@given(COUNTS)
def test_shares(counted: tuple[int, int]) -> None:
    truth = Fraction(*counted)
    low, high = share(percent_at_least(truth)), share(percent_at_most(truth))
    assert low <= truth <= high
    assert high - low <= Fraction(1, 1000)
    near = share(percent(truth))
    assert low <= near <= high
    assert abs(near - truth) <= Fraction(1, 2000) or near in (Fraction(1, 1000), Fraction(999, 1000))
    assert (near == 0, near == 1) == (truth == 0, truth == 1)


@given(st.floats(min_value=5e-324, max_value=8e307))
def test_radii_of_every_size(radius: float) -> None:
    low, high = Fraction(radius_at_least(radius)), Fraction(radius_at_most(radius))
    assert low <= Fraction(radius) <= high
    assert high - low <= Fraction(radius) / 500
    assert len(radius_at_most(radius)) <= 13
    assert float(exactly(radius)) == radius


@given(st.lists(st.floats(-2.0, 2.0), min_size=1, max_size=20))
def test_means(values: list[float]) -> None:
    truth = sum(map(Fraction, values)) / len(values)
    assert exact_mean(values) == truth
    assert Fraction(at_least(exact_mean(values))) <= truth <= Fraction(at_most(exact_mean(values)))


@pytest.mark.parametrize(("right", "n"), [(2, 3), (1, 3), (1999, 2000), (1, 2000), (5, 6)])
def test_shares_on_the_terminal(right: int, n: int) -> None:
    found = [SimpleNamespace(status="safe" if k < right else "unknown") for k in range(n)]
    answers = [Row(k, None, "a", "a", None, None, 0.1, a) for k, a in enumerate(found)]
    assert certify_summary(answers).endswith(f": {percent(Fraction(right, n))}")


@given(st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=5))
def test_mean_influences_on_the_terminal(pairs: list[tuple[float, float]]) -> None:
    ends = [sorted(pair) for pair in pairs]
    found = [(np.array([[a]]), np.array([[b]]), (gc.Ball([0.0], 0.1),), 0, None, None) for a, b in ends]
    answers = [Row(0, None, None, None, None, None, 0.1, gc.Explanation.of(*each)) for each in found]
    line = _Mean(SimpleNamespace(features=("f",), classes=("c",)), 0)(answers)
    low, high = re.search(r"\[([\d.-]+), ([\d.-]+)\]", line.splitlines()[1]).groups()
    assert Fraction(low) <= sum(Fraction(a) for a, _ in ends) / len(ends)
    assert Fraction(high) >= sum(Fraction(b) for _, b in ends) / len(ends)


def row(i: int, **entries: Any) -> dict[str, Any]:
    return {**about(i), "label": "8", "predicted": "8", "probability": [0.1, 0.9], **entries}


def table_of(text: str, heading: str) -> list[str]:
    """The cells of the column with this heading in the table by radius."""
    head, body = re.search(r"<thead>(.*?)</thead><tbody>(.*?)</tbody>", text, re.DOTALL).groups()
    names = [re.sub("<[^>]*>", "", name) for name in re.findall(r"<th>(.*?)</th>", head)]
    rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", line) for line in body.split("</tr>")[:-1]]
    return [cells[names.index(heading)] for cells in rows]


@pytest.mark.parametrize("n", [3, 7, 301])
def test_shares_on_the_page(n: int, tmp_path: Path) -> None:
    """2/3, 6/7 and 300/301 are no round percentages."""
    safe = n - 1
    margin = {"safe": [0.1, 0.2], "unsafe": [-0.2, -0.1]}
    other = {"safe": None, "unsafe": [0.0] * 4}
    verdicts = ["safe" if i < safe else "unsafe" for i in range(n)]
    certify = [
        row(i, radius=0.1, verdict=v, margin=margin[v], counterexample=other[v])
        for i, v in enumerate(verdicts)
    ]
    attack = [
        row(i, radius=0.1, method="pgd", success=i >= safe, attacked_probability=0.5, attacked=[0.0] * 4)
        for i in range(n)
    ]
    paths = [
        write(tmp_path / f"{verb}.json", results(verb, rows))
        for verb, rows in (("certify", certify), ("attack", attack))
    ]
    text = report(paths)
    truth = percent(Fraction(safe, n))
    same = "proved safe", "certified accuracy", "worst case at most", "accuracy under attack"
    assert [table_of(text, heading) for heading in same] == [[f"{safe} ({truth})"]] * len(same)
    assert table_of(text, "can change") == [f"1 ({percent(Fraction(1, n))})"]
    assert table_of(text, "not decided") == ["0 (0.0 %)"]
    assert f"{truth}, 95 % Wilson interval" in text
    near = re.escape(truth.removesuffix(" %")[:-1])  # no other tenth of the same share
    assert set(re.findall(rf"{near}\d %", text)) == {truth}
    for what in ("certified accuracy", "accuracy under attack"):
        tile = rf"<b>{re.escape(truth)}</b><span><a [^>]*>{what}</a> at radius 0.1</span><small>"
        assert re.search(f"{tile}{safe:,} of {n:,}", text)


@given(low=UNIT, high=UNIT)
def test_what_a_range_implies_is_exact(
    low: float, high: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """1 - P rounds; the margin of the other class, and delta, are told as if it did not."""
    low, high = sorted((low, high))
    answer = row(0, radius=0.1, min=[low, low], max=[high, high], seconds=0.0)
    answer["class"] = "3"
    path = write(tmp_path_factory.getbasetemp() / "implied.json", results("range", [answer]))
    (point,) = grouped([(path, *read_results(path))])[0].points
    verdict = point.verdicts[0.1]
    truth = 1 - Fraction(high) - Fraction(1, 2)
    assert verdict.status == ("safe" if truth > 0 else "unsafe" if truth < 0 else "unknown")
    assert verdict.margin == (truth, truth)
    assert delta(point.ranges[0]) == Fraction(high) - Fraction(low)
    text = Outline(report([path])).text
    said = re.search(r"margin (at least|at most|in) \[?(-?[\d.]+)", text)
    if said.group(1) == "at most":
        assert Fraction(said.group(2)) >= truth
    else:
        assert Fraction(said.group(2)) <= truth
    largest = re.search(r"median [\d.]+, smallest [\d.]+, largest ([\d.]+)", text).group(1)
    assert Fraction(largest) >= Fraction(high) - Fraction(low)


def test_captions_of_radii_and_the_radius_that_was_asked(tmp_path: Path) -> None:
    safe = [0.123456789, 0.2000000001, 0.99999]
    rows = [row(i, safe=s, unsafe=None) for i, s in enumerate(safe)]
    text = Outline(report([write(tmp_path / "radius.json", results("radius", rows))])).text
    shown = re.search(r"median ([\d.]+), smallest ([\d.]+), largest ([\d.]+)", text).groups()
    for told, truth in zip(shown, (safe[1], safe[0], safe[2]), strict=True):
        assert Fraction(truth) * Fraction(999, 1000) < Fraction(told) <= Fraction(truth)
    asked = 0.12345678901
    certify = row(0, radius=asked, verdict="safe", margin=[0.0, 0.1], counterexample=None)
    text = Outline(report([write(tmp_path / "certify.json", results("certify", [certify]))])).text
    assert f"at radius {asked}" in text
    assert f"radius {asked}: the class cannot change" in text

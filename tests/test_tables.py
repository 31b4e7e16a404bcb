"""Tables by name: the same set, the same numbers, whatever the order and the container."""

from __future__ import annotations

import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.cli import main
from gpcert.errors import InvalidInputError
from gpcert.tables import NamedNumbers, ends, matrix, positions, read, units

NAMES = ("age", "bmi", "dose", "pulse")


def model(d: int = 4) -> gc.GPClassifier:
    random = np.random.default_rng(1)
    X = random.normal(size=(25, d))
    table = pd.DataFrame(X, columns=list(NAMES[:d]))
    return gc.GPClassifier(gc.RBF(np.arange(1.0, d + 1)), max_evals=0).fit(table, (X[:, 0] > 0).astype(int))


@given(st.permutations(range(4)), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 2.0, np.inf]))
@settings(max_examples=15, deadline=None)
def test_a_ball_by_name_is_the_ball_by_position(order: list[int], seed: int, norm: float) -> None:
    """Membership is decided in rational arithmetic: both descriptions hold the same points."""
    random = np.random.default_rng(seed)
    x, scale = random.normal(size=4), random.uniform(0.5, 2.0, 4)
    low, high = x - random.uniform(0.0, 1.0, 4), x + random.uniform(0.0, 1.0, 4)
    direct = gc.Ball(x, 0.7, norm, [1, 3], (low, high), scale)
    row = pd.Series({NAMES[j]: x[j] for j in order})
    named = gc.Ball(
        row,
        0.7,
        norm,
        ["bmi", "pulse"],
        {name: (low[j], high[j]) for j, name in enumerate(NAMES)},
        {name: scale[j] for j, name in enumerate(NAMES)},
    )
    assert named.ordered(NAMES) == direct
    for z in x + random.normal(size=(20, 4)) * [0.0, 0.6, 0.0, 0.6]:
        assert named.contains(z[order]) == direct.contains(z)
    assert gc.Ball.from_dict(named.to_dict()).names == tuple(NAMES[j] for j in order)


def test_a_question_about_named_rows_is_that_about_the_model_s_order() -> None:
    clf = model()
    x = np.array([0.3, -0.2, 0.1, 0.4])
    mixed = ["pulse", "age", "dose", "bmi"]
    row = {name: x[NAMES.index(name)] for name in mixed}
    expected = gc.probability_range(clf.posterior_, gc.Ball(x, 0.2, 2, [0, 3]))
    found = gc.probability_range(clf, gc.Ball(row, 0.2, 2, ["pulse", "age"]))
    assert (found.min, found.max, found.region) == (expected.min, expected.max, expected.region)
    box = gc.Box(row, {name: value + 1 for name, value in row.items()})
    assert gc.probability_range(clf, box).region == gc.Box(x, x + 1)
    table = pd.DataFrame([row])
    assert gc.evaluate(clf, table, [1], [0.1]).balls[0].x.tolist() == x.tolist()
    assert gc.explain(clf, table, 0.1).balls[0].x.tolist() == x.tolist()
    assert gc.certified_radius(clf, row).ball.x.tolist() == x.tolist()
    assert gc.certify(clf, row, gc.Ball(x, 0.1)).region == gc.Ball(x, 0.1)


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_kind_of_table_is_read(form: Any) -> None:
    columns = {"bmi": [1.0, 2.0], "age": [3, 4], "smokes": [True, False]}
    table = read("X", form(columns))
    assert table.names == ("bmi", "age", "smokes")
    np.testing.assert_array_equal(table.values, [[1.0, 3.0, 1.0], [2.0, 4.0, 0.0]])
    np.testing.assert_array_equal(
        matrix("X", form(columns), ("age", "bmi", "smokes"), 3), [[3.0, 1.0, 1.0], [4.0, 2.0, 0.0]]
    )


def test_rows_of_dicts_and_structured_arrays_are_tables() -> None:
    expected = NamedNumbers(np.array([[1.0, 2.0], [3.0, 4.0]]), ("a", "b"))
    structured = np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("a", float), ("b", np.float32)])
    for value in ([{"a": 1, "b": 2}, {"b": 4, "a": 3}], structured):
        found = read("X", value)
        assert found.names == expected.names
        np.testing.assert_array_equal(found.values, expected.values)


def test_features_scale_and_domain_by_position_mask_or_name() -> None:
    assert positions(["dose", "age"], NAMES, 4) == positions([2, 0], None, 4) == (0, 2)
    assert positions([True, False, True, False], NAMES, 4) == positions(np.array([0, 2]), NAMES, 4) == (0, 2)
    np.testing.assert_array_equal(units({"bmi": 3.0}, NAMES, 4, (1,)), [1.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(units(pd.Series({"bmi": 3.0}), NAMES, 4, (1,)), [1.0, 3.0, 1.0, 1.0])
    low, high = ends({"age": (0, 120)}, NAMES, 4) or ((), ())
    np.testing.assert_array_equal([low, high], [[0.0, *[-np.inf] * 3], [120.0, *[np.inf] * 3]])
    low, high = ends((pd.Series({"age": 0.0}), 9.0), NAMES, 4) or ((), ())
    assert (low[0], high) == (0.0, 9.0)


def test_std_means_the_training_data_in_every_question() -> None:
    clf = model()
    rows = pd.DataFrame(np.random.default_rng(2).normal(size=(6, 4)) * [1, 2, 3, 4], columns=NAMES)
    y, trained = clf.predict(rows), pytest.approx(clf.posterior_.centres.std(axis=0))
    turned = rows[[*reversed(NAMES)]]
    training = pd.DataFrame(clf.posterior_.centres, columns=NAMES).assign(target="not a feature")
    for of in (clf, clf.posterior_, training):
        assert gc.balls(turned, 0.1, scale="std", of=of)[0].ordered(NAMES).scale == trained
        assert gc.balls(turned.to_numpy()[:, ::-1], 0.1, scale="std", of=clf)[0].scale == trained
    for ball in (
        gc.certified_radius(clf, rows.iloc[0], scale="std").ball,
        gc.certify_table(clf, rows, radii=[0.01], scale="std")[0].region,
        gc.evaluate(clf, rows, y, [0.01], scale="std").balls[0],
        gc.testing.assert_certified(clf, rows, y, 0.0, 0.0, scale="std").balls[0],
    ):
        assert ball.scale == trained
    right = float(gc.evaluate(clf, rows, y, [0.3], scale="std", tolerance=1e-3).certified[0])
    assert gc.certified_score(0.3, scale="std")(clf, rows, y) == right


def clinic() -> tuple[dict[str, np.ndarray], np.ndarray]:
    random = np.random.default_rng(4)
    table = {
        "sex_female": random.integers(0, 2, 40).astype(float),
        "children": random.integers(0, 5, 40).astype(float),
        "bmi": random.uniform(18.0, 40.0, 40),
        "change": random.normal(size=40),
    }
    return table, (table["change"] > 0).astype(int)


def test_limits_by_the_training_data_leave_out_what_never_was() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table, y = clinic()
    scaled = make_pipeline(StandardScaler(), gc.GPClassifier(max_evals=0))
    for fitted in (gc.GPClassifier(max_evals=0).fit(table, y), scaled.fit(pd.DataFrame(table), y)):
        columns = gc.posterior_of(fitted).training_columns
        assert columns is not None  # a scaler that was taken back rounds: 2.9999999999999996 is whole
        assert columns.whole.tolist() == [True, True, False, False]
        ball = gc.balls(table, 5.0, domain="data", of=fitted)[0]
        assert ball.domain[0].tolist() == [0.0, 0.0, 0.0, -np.inf]
        assert ball.domain[1].tolist() == [1.0, np.inf, np.inf, np.inf]
        with pytest.warns(gc.ImpossibleInputsWarning, match=r"'children'\): features= lets columns"):
            found = gc.certified_radius(fitted, pd.DataFrame(table)[:1], domain="data")[0]
        np.testing.assert_array_equal(found.ball.domain, ball.domain)


def test_regions_with_inputs_unlike_any_in_training_are_told() -> None:
    table, y = clinic()
    clf, row = gc.GPClassifier(max_evals=0).fit(table, y), {name: v[:1] for name, v in table.items()}
    row["children"] = np.array([1.0])
    told = (
        "the regions hold values unlike any in training (0 or 1 in training: 'sex_female'; whole and never "
        "negative in training: 'children'): domain='data' keeps to their ends, features= lets columns "
        "stand still"
    )
    for ask in (
        lambda: gc.certify(clf, gc.balls(row, 2.0)),
        lambda: gc.certify(clf, [gc.balls(row, 2.0)[0], gc.balls(row, 0.1, 2)[0]]),
        lambda: gc.probability_range(clf, gc.Box(*({n: v[0] + r for n, v in row.items()} for r in (-2, 2)))),
        lambda: gc.certify_table(clf, row, radii=[0.1, 2.0]),
        lambda: gc.evaluate(clf, pd.DataFrame(row), [0], [2.0]),
        lambda: gc.explain(clf, row, 2.0),
        lambda: gc.robustness(clf, gc.balls(row, 2.0)),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ask()
        assert [(str(each.message), each.filename) for each in found] == [(told, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.certify(clf, gc.balls(row, 2.0, features=["bmi", "change"]))
        several = gc.balls({name: v[:6] for name, v in table.items()}, 2.0, features=["bmi", "change"])
        step = np.array([0.0, 0.0, 2.0, 2.0])  # what differs from row to row does not move in any region
        gc.certify(clf, several)
        gc.certify(clf, [gc.Box(ball.x - step, ball.x + step) for ball in several])
        gc.certify(clf, gc.balls(row, 0.0))
        gc.certify(clf, gc.balls(row | {"sex_female": [0.5], "children": [1.5]}, 0.4))  # asked as they are
        gc.certify(
            clf, gc.balls(np.column_stack(list(row.values())), 0.1, domain=(-9.0, 50.0))
        )  # one unit: pixels
        unnamed = gc.GPClassifier(max_evals=0).fit(np.column_stack(list(table.values())), y)
        gc.certify(unnamed, gc.balls(np.array([[1.0, 1.0, 20.0, 0.0]]), 2.0))


def test_balls_keep_the_index_take_radii_from_a_column_and_ids() -> None:
    clf = model(2)
    table = pd.DataFrame(
        {"bmi": [1.0, 2.0], "age": [3.0, 4.0], "r": [0.1, 0.2], "who": ["p", "q"]}, index=[7, 9]
    )
    regions = gc.balls(table, "r", id="who")
    assert [ball.radius for ball in regions] == [0.1, 0.2]
    assert (regions.ids, regions[1:].ids) == (("p", "q"), ("q",))
    assert gc.balls(table[["bmi", "age"]], [0.1, 0.3]).ids == (7, 9)
    answers = gc.certify(clf, regions)
    assert answers.ids == ("p", "q")
    assert answers[0].region.x.tolist() == [3.0, 1.0]


def test_classes_by_value_and_labels_that_print_the_same() -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(20, 2))
    digits = np.where(X[:, 0] > 0, "8", "3")
    post = gc.GPClassifier(max_evals=0).fit(X, digits).posterior_
    ball = gc.Ball(X[0], 0.1)
    expected = gc.probability_range(post, ball).min
    assert (
        gc.probability_range(post, ball, label="8").min
        == gc.probability_range(post, ball, label=8).min
        == expected
    )
    for truth in (
        digits,
        digits.astype(int),
        digits.astype(float),
        pd.Series(digits),
        pl.Series(digits.astype(int)),
    ):
        assert gc.evaluate(post, X, truth, [0.01]).clean > 0.9
    numbers = gc.GPClassifier(max_evals=0).fit(X, digits.astype(int)).posterior_
    assert gc.probability_range(numbers, ball, label="8").label == 8
    assert gc.attack(post, [ball, ball], label=["3", 8])[1].label == "8"


def test_entries_of_a_series_are_distinct() -> None:
    twice = pd.Series([0.1, 0.2, 99.0, 0.3], index=list("abbc"))
    with pytest.raises(InvalidInputError, match="x must have distinct entries, got 'b' twice"):
        gc.Ball(twice, 0.01)
    with pytest.raises(InvalidInputError, match="distinct entries, got 'a' twice"):
        gc.Ball({"a": 1.0, "b": 2.0}, 0.1, scale=pd.Series([1.0, 2.0], index=["a", "a"]))


def test_membership_goes_by_name() -> None:
    point = {"a": 1.0, "b": 2.0, "c": 3.0}
    for region in (gc.Ball(point, 0.1), gc.Box(point, point)):
        assert region.contains(pd.Series(point)[["c", "b", "a"]])
        assert region.contains(dict(reversed(point.items())))
        assert region.contains([1.0, 2.0, 3.0])
        with pytest.raises(InvalidInputError, match="got none named 'a'"):
            region.contains(pd.Series(point).rename({"a": "q"}))
    assert gc.Ball(point, 0.1).radius_of({"c": 3.5, "a": 1.0, "b": 2.0}) == 0.5


@pytest.mark.parametrize(("fitted", "asked"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
def test_a_name_is_the_same_however_it_was_typed(fitted: str, asked: str, tmp_path: Path) -> None:
    """é as one letter or as two marks: to the eye, and to a model, one column."""

    def table(form: str) -> pd.DataFrame:
        names = [unicodedata.normalize(form, name) for name in ("été", "b", "numéro", "classé")]
        columns = ([0.0, 1.0, 2.0, 3.0], [3.0, 1.0, 0.0, 2.0], ["i", "j", "k", "l"], ["n", "n", "y", "y"])
        return pd.DataFrame(dict(zip(names, columns, strict=True)))

    seen = table(fitted)
    clf = gc.GPClassifier(max_evals=0).fit(seen.iloc[:, [1, 0]], seen.iloc[:, 3])
    other = table(asked)
    été, _, numéro, classé = other.columns
    expected = gc.certify(clf, gc.Ball([3.0, 0.0], 0.1, features=[1])).margin
    assert expected == gc.certify(clf, gc.Ball(other.iloc[0, :2], 0.1, features=[été])).margin
    own = {"radii": [0.1], "features": [été], "target": classé, "id": numéro}
    answers = gc.certify_table(clf, other, **own)
    assert (answers[0].margin, answers.ids, answers.truth) == (
        expected,
        ("i", "j", "k", "l"),
        ("n", "n", "y", "y"),
    )
    drawn = gc.balls(other[[été, numéro, "b"]], 0.1, id=numéro, features=[été])
    assert [a.margin for a in gc.certify(clf, drawn)] == [a.margin for a in answers]
    other.iloc[:, [1, 0]].to_csv(tmp_path / "t.csv", index=False)
    gc.save(clf.posterior_, tmp_path / "m.safetensors")
    command = ["certify", str(tmp_path / "m.safetensors"), str(tmp_path / "t.csv"), "--radius", "0.1"]
    assert main([*command, "--features", été, "-o", str(tmp_path / "a.json")]) == 0
    assert [a.status for a in gc.load_answers(tmp_path / "a.json")] == [a.status for a in answers]


def test_whole_numbers_are_not_rounded_silently() -> None:
    ids = [1, 2**53 + 1]
    for value in (pd.DataFrame({"a": [0.5, 1.0], "n": ids}), pl.DataFrame({"n": ids}), {"n": np.array(ids)}):
        with pytest.raises(
            InvalidInputError, match=r"column 'n' of X must be whole numbers that doubles hold ex"
        ):
            read("X", value)
    exact = [2**53, -(2**60), 2**63]
    assert read("X", pd.DataFrame({"n": np.array(exact[:2])})).values[:, 0].tolist() == exact[:2]
    assert read("X", np.array(exact, dtype=object)).values.tolist() == exact


def test_two_columns_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = [unicodedata.normalize(form, "été") for form in ("NFC", "NFD")]
    table = pd.DataFrame([[0.0, 1.0, "n"], [2.0, 3.0, "y"]], columns=[*two, "y"])
    with pytest.raises(gc.InvalidInputError, match="X must have distinct columns, got 'été' twice"):
        gc.GPClassifier(max_evals=0).fit(table[two], table["y"])
    for name in ("t.csv", "t.parquet", "t.xlsx"):
        path = tmp_path / name
        {"t.csv": table.to_csv, "t.xlsx": table.to_excel}.get(name, table.to_parquet)(path, index=False)
        assert main(["fit", str(path), "--target", "y", "-o", str(tmp_path / "m.safetensors")]) == 2
        assert f"{path} must have distinct column names, got 'été' twice" in capsys.readouterr().err

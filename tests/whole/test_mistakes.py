"""Typical mistakes, each with the exact sentence it gets: no raw error, no silent answer."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpcert as gc
from gpcert.cli import main
from helpers import mistakes_questions, mistakes_tables, mistakes_traps
from helpers.mistakes_tables import P, T, Tensor, X, Y, clf, post, x

MISTAKES = mistakes_tables.MISTAKES + mistakes_traps.MISTAKES + mistakes_questions.MISTAKES


def test_there_are_enough_of_them() -> None:
    assert len(MISTAKES) + len(COMMANDS) >= 120


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_a_mistake_gets_its_sentence(number: int) -> None:
    sentence, mistake = MISTAKES[number]
    with pytest.raises(gc.GpcertError) as caught:
        mistake()
    assert str(caught.value) == sentence


def test_the_same_numbers_in_other_clothes_are_read() -> None:
    """Order, library and kind of container do not matter where names say which column is which."""
    expected = post.probability(X)
    mixed = T[["dose", "age", "bmi"]]
    polars = P.select("bmi", "dose", "age")
    tables = (T, mixed, mixed.convert_dtypes(dtype_backend="pyarrow"), mixed.astype("Float64"), polars)
    others = mixed.to_dict("list"), mixed.to_dict("records"), mixed.to_records(index=False), polars.to_arrow()
    arrays = X.astype(">f8"), np.ma.array(X), T.set_axis([0, 1, 2], axis=1)
    for same in tables + others + arrays:
        np.testing.assert_array_equal(post.probability(same), expected)
    single = X.astype(np.float32)
    for same in (Tensor(X), single, pd.DataFrame(single)):
        np.testing.assert_array_equal(post.probability(same), post.probability(single.astype(np.float64)))


def test_a_missing_value_of_pandas_is_told_of() -> None:
    """Versions of pandas hand it over as NaN or as NA."""
    missing = T[:3].assign(age=pd.array([1.0, None, 1.0], "Float64"))
    with pytest.raises(
        gc.InvalidInputError, match=r"^column 'age' of X must be .*, got (nan|<NA>) at index 1$"
    ):
        post.probability(missing)


def test_what_is_given_by_name_is_read_by_name() -> None:
    """An index in another order than the model's features, or than the table's rows, changes nothing."""
    back = T.std()[::-1]
    assert gc.Ball(x, 0.1, scale=back).scale.tolist() == T.std().tolist()
    assert gc.Ball(x, 0.1, features=pd.Series({"dose": True, "bmi": False, "age": False})).features == (2,)
    assert gc.Ball(x, 0.1, domain=(T.min()[::-1], T.max())).domain[0].tolist() == T.min().tolist()
    for low, high, domain in (
        ([-9] * 3, [np.inf] * 3, (-9, None)),
        ([-np.inf] * 3, [9] * 3, [None, 9]),
        ([-9, -np.inf, -np.inf], [np.inf, np.inf, 9], {"age": (-9, None), "dose": [None, 9]}),
        ([-9, -np.inf, -9], [np.inf] * 3, ([-9, None, -9], None)),
    ):
        assert [end.tolist() for end in gc.Ball(x, 0.1, domain=domain).domain] == [low, high]
    assert gc.Ball(x, 0.1, "inf") == gc.Ball(x, 0.1)
    one = gc.evaluate(clf, T[:3], Y[:3], 0.1, "inf", domain=(None, 9))
    assert one.certified == gc.evaluate(clf, T[:3], Y[:3], [0.1]).certified
    for rows in (T[:2].to_dict("records"), T[:2].to_records(index=False), P[:2], P[:2].to_arrow()):
        verdicts = gc.certify_table(clf, rows, radii=[0.1])
        assert [v.region.x.tolist() for v in verdicts] == X[:2].tolist()
    turned = T[["dose", "age", "bmi"]]
    row = next(turned.itertuples(index=False))
    for same in (row, turned.to_records(index=False)[0], turned.iloc[0]):
        assert post.probability([same]).tolist() == post.probability(X[:1]).tolist()
        assert gc.certify(post, region=gc.Ball(same, 0.1)).key == gc.certify(post, gc.Ball(x, 0.1)).key
        assert gc.balls([same, row], 0.1)[0].ordered(post.feature_names).x.tolist() == X[0].tolist()
    mixed = [T.iloc[0], turned.iloc[1]]
    assert [each.x.tolist() for each in gc.balls(mixed, 0.1)] == X[:2].tolist()
    made = np.ones(30), np.eye(30)
    for names in (None, ["age", "bmi", "dose"]):
        for table in (T, T[["dose", "age", "bmi"]]):
            own = gc.Posterior(table, *made, kernel=gc.RBF(1.0), feature_names=names)
            assert own.centres.tolist() == T[list(own.feature_names)].to_numpy().tolist()
    turned = P[["dose", "age", "bmi"]]
    assert gc.testing.assert_certified(clf, turned, Y, 0.1, 0).clean == gc.evaluate(clf, X, Y, 0.1).clean
    labels = pd.Series(Y[:3], index=list("abc"))
    rows = T[:3].set_axis(labels.index)
    assert gc.evaluate(clf, rows, labels, [0.1]).clean == gc.evaluate(clf, X[:3], Y[:3], [0.1]).clean
    assert [ball.radius for ball in gc.balls(rows, pd.Series([1.0, 2.0, 3.0], index=labels.index))] == [
        1,
        2,
        3,
    ]
    sure = gc.GPClassifier(max_evals=0).fit(T, Y == "ill")
    assert gc.probability_range(sure, gc.Ball(x, 0.1), label=True).label is True


def test_one_radius_for_columns_of_different_units_is_warned_about() -> None:
    wide = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(T * [1.0, 1000.0, 1.0], Y)
    row = T.iloc[0] * [1.0, 1000.0, 1.0]
    for ask in (
        lambda: gc.certify(wide, gc.Ball(row, 0.1)),
        lambda: gc.certified_radius(wide, row),
        lambda: gc.evaluate(wide, row.to_frame().T, Y[:1], [0.1]),
    ):
        with pytest.warns(gc.UnitsWarning, match="'bmi' by .*: scale='std' counts in standard deviations"):
            ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.certify(wide, gc.Ball(row, 0.1, scale={"age": 1.0, "bmi": 1000.0, "dose": 1.0}))
        gc.certify(wide, gc.Ball(row, 0.1, features=["age", "dose"]))


COMMANDS = {
    "certfy model.safetensors rows.csv": "invalid choice: 'certfy'",
    "certify model.safetensors rows.csv --raduis 1": "--raduis 1 (did you mean '--radius'?)",
    "certify rows.csv model.safetensors --radius 1": "MODEL must stand before DATA, got rows.csv and then",
    "certify model.safetensors rows.csv --radius 1 --features Age": "got 'Age' (did you mean 'age'?)",
    "certify model.safetensors rows.csv --radius 1 --scale agee=1": "got 'agee' (did you mean 'age'?)",
    "certify model.safetensors upper.csv --radius 1": "must have a column 'age', got 'Age', 'bmi', 'dose'",
    "range model.safetensors rows.csv --radius 1 --label il": "got 'il' (did you mean 'ill'?)",
    "attack model.safetensors rows.csv --radius 1 --method pdg": "(did you mean 'pgd'?)",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistaken_command_gets_its_line(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    gc.save(post, "model.safetensors")
    T[:2].to_csv("rows.csv", index=False)
    T[:2].rename(columns={"age": "Age"}).to_csv("upper.csv", index=False)
    try:
        status = main(command.split())
    except SystemExit as ended:
        status = ended.code  # type: ignore[assignment]
    told = capsys.readouterr().err
    assert status == 2
    assert COMMANDS[command] in told
    assert told.count("\n") == 1

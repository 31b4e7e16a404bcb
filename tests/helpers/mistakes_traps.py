"""Mistakes that would be answered about other rows or columns than meant, each with its sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import gpcert as gc
from helpers.mistakes_tables import Mistakes, P, T, X, Y, clf, post, x

FIVE = T[:5].set_axis(list("vwxyz"))
LABELS = pd.Series(Y[:5], index=FIVE.index)
BACK = LABELS[::-1]
regions = gc.balls(FIVE, 0.1)
answers = gc.certify(clf, regions)
TEXTS = "that are all named by texts, or 0, 1, ... in order, got"
HINT = "to_numpy() counts by position"
ORDER = f"in its order, got 'z' for 'v' at position 0: {HINT}"


def columns(names: Any) -> pd.DataFrame:
    return FIVE.set_axis(names, axis=1)


def age(values: Any) -> Any:
    """The table with another column `age`, of the library that the values are of."""
    if isinstance(values, pl.Series):
        return P[:5].with_columns(age=values)
    if isinstance(values, pa.Array):
        return pa.table({"age": values, "bmi": X[:5, 1], "dose": X[:5, 2]})
    return T[:5].assign(age=values)


TWICE = pd.concat([FIVE, FIVE["age"]], axis=1)
MISTAKES: Mistakes = [
    # Columns.
    (f"X must have columns {TEXTS} 2", lambda: post.probability(columns([2, 1, 0]))),
    (
        f"X must have columns {TEXTS} ('a', 1)",
        lambda: post.probability(columns([("a", 1), ("a", 2), ("b", 1)])),
    ),
    (f"X must have columns {TEXTS} 1990", lambda: gc.GPClassifier().fit(columns([1990, 1991, 1992]), LABELS)),
    (f"x must have entries {TEXTS} 3", lambda: gc.Ball(T["age"][3:6], 0.1)),
    ("table must have distinct columns, got 'age' twice", lambda: gc.certify_table(clf, TWICE)),
    ("X must have distinct columns, got 'age' twice", lambda: gc.balls(TWICE, "age")),
    (
        "X must have distinct columns, got 'age' twice",
        lambda: post.probability(pa.table([X[:, 0]] * 3, ["age", "age", "bmi"])),
    ),
    ("table must be in memory, got a LazyFrame: call its collect()", lambda: gc.certify_table(clf, P.lazy())),
    ("X must be in memory, got a LazyFrame: call its collect()", lambda: gc.balls(P.lazy(), 0.1, id="age")),
    ("target must be the name of a column, got Series", lambda: gc.certify_table(clf, FIVE, target=LABELS)),
    ("target must be no feature of the model, got 'age'", lambda: gc.certify_table(clf, FIVE, target="age")),
    ("id must be no feature of the model, got 'age'", lambda: gc.certify_table(clf, FIVE, id="age")),
    (
        "each label of target must be one of 'ill', 'well', got nan",
        lambda: gc.certify_table(clf, FIVE.assign(t=[*Y[:4], np.nan]), target="t"),
    ),
    # Rows: an index in another order than the table's.
    (f"y must have the index of X {ORDER}", lambda: gc.GPClassifier().fit(FIVE, BACK)),
    (f"y must have the index of X {ORDER}", lambda: clf.score(FIVE, BACK)),
    (f"y must have the index of X {ORDER}", lambda: gc.evaluate(clf, FIVE, BACK, [0.1])),
    (f"radius must have the index of X {ORDER}", lambda: gc.balls(FIVE, pd.Series(0.1, index=BACK.index))),
    (f"label must have the index of the regions {ORDER}", lambda: gc.attack(clf, regions, label=BACK)),
    (f"x must have the index of the regions {ORDER}", lambda: gc.certify(clf, FIVE[::-1], regions)),
    (f"positions must have the index of the answers {ORDER}", lambda: answers[BACK == "ill"]),
    (
        f"y must have the index of X in its order, got none for 'y' at position 3: {HINT}",
        lambda: gc.evaluate(clf, FIVE, LABELS[:3], [0.1]),
    ),
    ("y must hold one label per point, 5, got shape (3,)", lambda: clf.score(FIVE, Y[:3])),
    (
        "answers are picked by a position, a slice, positions or a mask of length 5, got 'v'",
        lambda: answers["v"],
    ),
    (
        "answers are picked by a position, a slice, positions or a mask of length 5, got [True, False]",
        lambda: answers[[True, False]],
    ),
    # Values that are not numbers, or none that are known.
    (
        "column 'age' of X must be finite, got nan at index 1",
        lambda: post.probability(age(pl.Series([1.0, None, 1.0, 1.0, 1.0]))),
    ),
    (
        "column 'age' of X must be finite, got nan at index 1",
        lambda: post.probability(age(pa.array([1.0, None, 1.0, 1.0, 1.0]))),
    ),
    (
        "column 'age' of X must be numbers, got None at index 1",
        lambda: post.probability(age(pl.Series([True, None, True, True, True]))),
    ),
    (
        "column 'age' of X must be numbers, got 'a' at index 0",
        lambda: post.probability(age(pd.Categorical(list("abcde")))),
    ),
    (
        "column 'age' of X must be numbers, got 'a' at index 0",
        lambda: post.probability(age(pa.array(list("abcde")).dictionary_encode())),
    ),
    (
        "column 'age' of X must be numbers, got dates or times",
        lambda: post.probability(age(pd.date_range("2020", periods=5))),
    ),
    (
        "column 'age' of X must be numbers, got dates or times",
        lambda: post.probability(age(pl.Series([0, 1, 2, 3, 4]).cast(pl.Date))),
    ),
    (
        "column 'age' of X must be numbers, got shape (5, 1)",
        lambda: post.probability(age(pl.Series([{"a": 1.0}] * 5))),
    ),
    (
        "X must be numbers, got dates or times",
        lambda: gc.GPClassifier().fit(np.array([["2020"], ["2021"]], "M8[Y]"), [0, 1]),
    ),
    (
        "X must be finite, got a masked entry at index (0, 0)",
        lambda: gc.GPClassifier().fit(np.ma.masked_equal(X, X[0, 0]), Y),
    ),
    # Rows of which some have names, and options that look like others.
    (
        "X must have rows that all have names for their entries, or none, got 1 of 2",
        lambda: gc.balls([T.iloc[0], X[1].tolist()], 0.1),
    ),
    (
        "region must have the model's columns and no others, got 'Index' as well",
        lambda: gc.certify(post, gc.Ball(next(T.itertuples()), 0.1)),
    ),
    (
        "domain must be (low, high), in lists or arrays where the features differ, or pairs by name, "
        "got [(0, 1), (0, 5)]",
        lambda: gc.Ball([0.5, 1.0], 0.1, domain=[(0, 1), (0, 5)]),
    ),
    (
        "domain must be (low, high), got array([[-9, -9, -9], [ 9, 9, 9]])",
        lambda: gc.Ball(x, 0.1, domain=np.array([[-9] * 3, [9] * 3])),
    ),
    ("names must be a sequence of names, got 'ab'", lambda: gc.Box([0.0, 0.0], [1.0, 1.0], names="ab")),
    ("names must have length 2, got 1", lambda: gc.Ball([0.0, 0.0], 0.1, names=["a"])),
    ("names must be distinct, got ('a', 'a')", lambda: gc.Ball([0.0, 0.0], 0.1, names=["a", "a"])),
    ("radius must be a number, got True", lambda: gc.balls(FIVE, True)),
    ("scale must be a number, got True", lambda: gc.explain(clf, FIVE, 0.1, scale=True)),
    # Options by name, and as columns.
    (
        "radius must be finite, got nan at index 1",
        lambda: gc.balls(FIVE.assign(r=[1.0, np.nan, 1.0, 1.0, 1.0]), "r"),
    ),
    ("radius must be >= 0, got -1.0", lambda: gc.balls(FIVE.assign(r=-1.0), "r")),
    ("radius must be numbers, got '1' at index 0", lambda: gc.balls(FIVE.assign(r="1"), "r")),
    ("scale must name features of the model, got 'v'", lambda: gc.balls(FIVE, 0.1, scale=FIVE)),
    (
        "features must be True or False by name, or names, got other values by name",
        lambda: gc.Ball(x, 0.1, features={"age": 1.0}),
    ),
]

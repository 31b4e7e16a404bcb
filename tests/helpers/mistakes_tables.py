"""Mistakes about tables, estimators and regions, each with its sentence; and what they are made with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import gpcert as gc

random = np.random.default_rng(0)
X = random.normal(size=(30, 3))
Y = np.where(X[:, 0] > 0, "ill", "well")
T = pd.DataFrame(X, columns=["age", "bmi", "dose"])
P = pl.DataFrame({name: T[name].to_numpy() for name in T})
clf = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(T, Y)
post = clf.posterior_
plain = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(X, Y).posterior_
three = gc.GPClassifier(gc.RBF(1.0), max_evals=0).fit(T, np.arange(30) % 3 + 1).posterior_
regr = gc.Posterior(X, np.ones(30), np.eye(30), kernel=gc.RBF(), likelihood=None)
x = T.iloc[0]
UNKNOWN = gc.Posterior(X, X[:, 0], np.eye(len(X)), kernel=gc.RBF())
INDUCING = gc.Posterior(X, X[:, 0], np.eye(len(X)), kernel=gc.RBF(), training={"centres": "inducing points"})
ball = gc.Ball(x, 0.1)


class Tensor:
    """What torch calls a tensor with gradients: numpy must not be asked to read it as it is."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, dtype=np.float32)

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def is_complex(self) -> bool:
        return False

    def double(self) -> Any:
        return self.values.astype(np.float64)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


Mistakes = list[tuple[str, Callable[[], Any]]]
NAMES = "The feature names should match those that were passed during fit.\n"
MISTAKES: Mistakes = [
    (
        "X must have the model's columns, got none named 'age' (did you mean 'Age'?)",
        lambda: post.probability(T.rename(columns={"age": "Age"})),
    ),
    ("X must have the model's columns, got none named 'dose'", lambda: post.probability(T[["age", "bmi"]])),
    (
        "X must have the model's columns and no others, got 'state' as well",
        lambda: post.probability(T.assign(state=1.0)),
    ),
    (
        "column 'dose' of X must be numbers, got 'high' at index 0",
        lambda: post.probability(T.assign(dose="high")),
    ),
    (
        "column 'dose' of X must be numbers, got None at index 0",
        lambda: post.probability(T.assign(dose=[None] * 30)),
    ),
    (
        "column 'dose' of X must be finite, got nan at index 0",
        lambda: post.probability(T.assign(dose=np.nan)),
    ),
    (
        "X must have distinct columns, got 'age' twice",
        lambda: post.probability(pd.concat([T, T[["age"]]], axis=1)),
    ),
    (
        "X must have columns that are all named by texts, or 0, 1, ... in order, got 0",
        lambda: post.probability(T.rename(columns={"age": 0})),
    ),
    ("X must be in memory, got a LazyFrame: call its collect()", lambda: post.probability(P.lazy())),
    (
        "column 'dose' of X must be numbers, got 'a' at index 0",
        lambda: post.probability(P.with_columns(pl.lit("a").alias("dose"))),
    ),
    ("X must have the model's columns, got none named 'bmi'", lambda: post.probability(P.drop("bmi"))),
    (
        "X must have the model's columns, got none named 'bmi' (did you mean 'BMI'?)",
        lambda: post.probability(P.rename({"bmi": "BMI"})),
    ),
    (
        "X must have the model's columns, got none named 'dose'",
        lambda: post.probability({"age": [1.0], "bmi": [2.0]}),
    ),
    (
        "X must have columns of one length, got [1, 2]",
        lambda: post.probability({"age": [1.0], "bmi": [2.0], "dose": [1.0, 2.0]}),
    ),
    (
        "X must have the model's columns, got none named 'dose'",
        lambda: post.probability([{"age": 1.0, "bmi": 2.0}]),
    ),
    (
        "X must be two-dimensional (points, features), got shape (3,)",
        lambda: post.probability({"age": 1.0, "bmi": 2.0, "dose": 3.0}),
    ),
    (
        "column 'dose' of X must be numbers, got dates or times",
        lambda: post.probability(T.assign(dose=pd.Timestamp("2020-01-01"))),
    ),
    ("X must be two-dimensional (points, features), got shape (3,)", lambda: post.probability(x)),
    ("X must be two-dimensional (points, features), got shape (3,)", lambda: post.probability(X[0])),
    ("X must have 3 features, got 2", lambda: post.probability(X[:, :2])),
    ("X must have 3 features, got 30", lambda: post.probability(X.T)),
    ("X must be numbers, got '0.1257302210933933' at index (0, 0)", lambda: post.probability(X.astype(str))),
    ("X must be real, got complex numbers", lambda: post.probability(X + 1j)),
    (
        "X must be finite, got a masked entry at index (0, 1)",
        lambda: post.probability(np.ma.masked_less(X, 0)),
    ),
    ("X must be numbers, got [[1.0, 2.0], [1.0]]", lambda: post.probability([[1.0, 2.0], [1.0]])),
    ("X must be numbers, got 'patients.csv'", lambda: post.probability("patients.csv")),
    ("X must be numbers, got None", lambda: post.probability(None)),
    ("X must be finite, got nan at index (0, 1)", lambda: post.probability(Tensor([[1.0, np.nan, 2.0]]))),
    ("X must have 3 features, got 2", lambda: post.probability(Tensor(X[:, :2]))),
    ("X must have the model's columns, got none named 'age'", lambda: post.latent(T[["bmi"]])),
    (
        "X must have the model's columns, got none named 'dose' (did you mean 'does'?)",
        lambda: post.predict(T.rename(columns={"dose": "does"})),
    ),
    (
        NAMES + "Feature names must be in the same order as they were in fit.\n",
        lambda: clf.predict(T[["dose", "age", "bmi"]]),
    ),
    (
        NAMES + "Feature names unseen at fit time:\n- Age\n"
        "Feature names seen at fit time, yet now missing:\n- age\n",
        lambda: clf.predict(T.rename(columns={"age": "Age"})),
    ),
    (
        "X has 2 features, but GPClassifier is expecting 3 features as input",
        lambda: gc.GPClassifier(max_evals=0).fit(X, Y).predict(X[:, :2]),
    ),
    ("GPClassifier must be fitted first, got a call before fit", lambda: gc.GPClassifier().predict(T)),
    ("y must have length 30, as X has points, got 5", lambda: gc.GPClassifier().fit(T, Y[:5])),
    ("y must hold at least 2 classes, got 1 class: ['ill']", lambda: gc.GPClassifier().fit(T, ["ill"] * 30)),
    (
        "column 'dose' of X must be finite, got nan at index 0",
        lambda: gc.GPClassifier().fit(T.assign(dose=np.nan), Y),
    ),
    (
        "column 'dose' of X must be numbers, got 'high' at index 0",
        lambda: gc.GPClassifier().fit(T.assign(dose="high"), Y),
    ),
    (
        "y must hold class labels, got 0.1257302210933933. Unknown label type: continuous",
        lambda: gc.GPClassifier().fit(T, X[:, 0]),
    ),
    ("kernel must be one of gpcert, got 'rbf'", lambda: gc.GPClassifier(kernel="rbf").fit(T, Y)),
    (
        "likelihood must be 'probit', 'logit', 'softmax', Probit(scale), Logit() or Softmax(), got 'sigmoid'",
        lambda: gc.GPClassifier(likelihood="sigmoid").fit(T, Y),
    ),
    ("inference must be one of laplace, ep, got 'vi'", lambda: gc.GPClassifier(inference="vi").fit(T, Y)),
    ("max_evals must be an integer >= 0, got -1", lambda: gc.GPClassifier(max_evals=-1).fit(T, Y)),
    (
        "kernel must have one lengthscale or 3, as X has features, got 2",
        lambda: gc.GPClassifier(gc.RBF([1.0, 2.0])).fit(T, Y),
    ),
    (
        "parameter must be one of kernel, likelihood, inference, max_evals, random_state, bounds, "
        "n_restarts, progress, got 'kernl' (did you mean 'kernel'?)",
        lambda: gc.GPClassifier().set_params(kernl=gc.RBF()),
    ),
    ("x must be one-dimensional, got shape (30, 3)", lambda: gc.Ball(T, 0.1)),
    ("x must be one-dimensional, got shape (1, 3)", lambda: gc.Ball(T.iloc[[0]], 0.1)),
    ("radius must be >= 0, got -0.1", lambda: gc.Ball(x, -0.1)),
    ("radius must be numbers, got '0.1'", lambda: gc.Ball(x, "0.1")),
    ("radius must be one number, got shape (2,)", lambda: gc.Ball(x, [0.1, 0.2])),
    ("radius must be finite, got nan", lambda: gc.Ball(x, math.nan)),
    ("norm must be 0, >= 1 or inf, got 'l2'", lambda: gc.Ball(x, 0.1, norm="l2")),
    ("norm must be 0, >= 1 or inf, got 0.5", lambda: gc.Ball(x, 0.1, norm=0.5)),
    ("norm must be 0, >= 1 or inf, got nan", lambda: gc.balls(T, 0.1, norm=math.nan)),
    ("norm must be a number, got True", lambda: gc.Ball(x, 0.1, norm=True)),
    ("radius must be a number, got True", lambda: gc.Ball(x, True)),
    ("domain must not be NaN, got nan", lambda: gc.Ball(x, 0.1, domain=(math.nan, None))),
    ("domain must be numbers, got 'none'", lambda: gc.Ball(x, 0.1, domain=(-9, "none"))),
    ("domain must be given with norm=0, got None", lambda: gc.Ball(x, 1, norm=0)),
    ("radius must be an integer with norm=0, got 1.5", lambda: gc.Ball(x, 1.5, norm=0, domain=(-9, 9))),
    (
        "features must name features of the model, got 'Age' (did you mean 'age'?)",
        lambda: gc.Ball(x, 0.1, features=["Age"]),
    ),
    ("features must be a sequence of indices or names, got 'age'", lambda: gc.Ball(x, 0.1, features="age")),
    ("features must be indices in 0..2, got 3", lambda: gc.Ball(x, 0.1, features=[3])),
    ("features must be distinct, got [0, 0]", lambda: gc.Ball(x, 0.1, features=[0, 0])),
    ("features must be a mask of length 3, got 2", lambda: gc.Ball(x, 0.1, features=[True, False])),
    (
        "features must be by position where features have no names, got 'age'",
        lambda: gc.Ball(X[0], 0.1, features=["age"]),
    ),
    (
        "scale must name features of the model, got 'agee' (did you mean 'age'?)",
        lambda: gc.Ball(x, 0.1, scale={"agee": 1.0}),
    ),
    ("scale must be > 0, got -1.0", lambda: gc.Ball(x, 0.1, scale=dict.fromkeys(T, -1.0))),
    ("scale must be one number or 3, got shape (2,)", lambda: gc.Ball(x, 0.1, scale=[1.0, 2.0])),
    ("scale='std' needs a model, got one point: see balls", lambda: gc.Ball(x, 0.1, scale="std")),
    ("scale must be numbers or 'std', got 'sd' (did you mean 'std'?)", lambda: gc.Ball(x, 0.1, scale="sd")),
    ("scale must be numbers, got 'years' at index 0", lambda: gc.Ball(x, 0.1, scale={"age": "years"})),
    (
        "domain must name features of the model, got 'agee' (did you mean 'age'?)",
        lambda: gc.Ball(x, 0.1, domain={"agee": (0, 1)}),
    ),
    ("domain must be (low, high) for 'age', got shape ()", lambda: gc.Ball(x, 0.1, domain={"age": 5})),
    (
        "x must lie in domain, got 0.1257302210933933 outside [5.0, 6.0] at feature 0",
        lambda: gc.Ball(x, 0.1, domain=(5, 6)),
    ),
    ("domain must have low <= high, got 1.0 > 0.0", lambda: gc.Ball(x, 0.1, domain=(1, 0))),
    (
        "scale must have a unit for every feature that moves, got none for 'bmi', 'dose'",
        lambda: gc.Ball(x, 0.1, scale={"age": 1.0}),
    ),
    (
        "scale must have a unit for every feature that moves, got none for 'dose'",
        lambda: gc.balls(T, 0.1, features=["age", "dose"], scale={"age": 1.0}),
    ),
    ("domain='data' needs a model, got one point: see balls", lambda: gc.Ball(x, 0.1, domain="data")),
    (
        "domain must be (low, high) or 'data', got 'date' (did you mean 'data'?)",
        lambda: gc.balls(T, 0.1, domain="date"),
    ),
    ("domain must be (low, high), got 0.5", lambda: gc.Ball(x, 0.1, domain=0.5)),
    ("domain must be (low, high), got 3 values", lambda: gc.Ball(x, 0.1, domain=(0, 1, 2))),
    (
        "lower must be <= upper, got 0.1257302210933933 > -0.8742697789066067 at feature 0",
        lambda: gc.Box(x, T.iloc[0] - 1),
    ),
    ("upper must have length 2, got 1", lambda: gc.Box([0.0, 0.0], [1.0])),
    (
        "upper must have the other end's columns, got none named 'age'",
        lambda: gc.Box({"age": 0.0}, {"bmi": 1.0}),
    ),
    ("lower must have at least one feature, got none", lambda: gc.Box([], [])),
    ("radius must have length 30, got 2", lambda: gc.balls(T, [0.1, 0.2])),
    ("radius must name a column of the table, got 'raduis'", lambda: gc.balls(T, "raduis")),
    ("id must name a column of the table, got 'who'", lambda: gc.balls(T, "age", id="who")),
    ("X must be two-dimensional (points, features), got shape (3,)", lambda: gc.balls(x, 0.1)),
    (
        "scale='std' needs columns that vary in training, got 'dose', constant",
        lambda: gc.balls(T, 0.1, scale="std", of=T.assign(dose=1.0)),
    ),
    (
        "scale='std' needs of=, the model whose training data it means, got none",
        lambda: gc.balls(T, 0.1, scale="std"),
    ),
    (
        "scale='std' needs a model that holds its training data, got inducing points",
        lambda: gc.balls(T, 0.1, scale="std", of=INDUCING),
    ),
    (
        "domain='data' needs a model that holds its training data, got centres that may be any points",
        lambda: gc.certified_radius(UNKNOWN, x.to_numpy(), domain="data"),
    ),
    ("of must have 3 features, as X has, got 2", lambda: gc.balls(T, 0.1, scale="std", of=np.eye(2))),
    (
        "of must name a column of the table, got 'dose'",
        lambda: gc.balls(T, 0.1, scale="std", of=T[["age", "bmi"]]),
    ),
]

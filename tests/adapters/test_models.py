"""Any model, one call: pipelines, searches, conversion once, and again after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, RobustScaler, StandardScaler

import gpcert as gc
from gpcert.errors import InvalidInputError

random = np.random.default_rng(5)
X = pd.DataFrame(random.normal(size=(40, 3)) * [1.0, 50.0, 0.1], columns=["a", "b", "c"])
Y = np.where(X["a"] + X["b"] / 50 > 0, "yes", "no")
CLASSIFIERS = {
    "ours": lambda: gc.GPClassifier(gc.RBF(1.0) + gc.Matern32([1.0, 2.0, 3.0]), max_evals=0),
    "theirs": lambda: GaussianProcessClassifier(RBF([1.0, 2.0, 3.0]), optimizer=None),
}


def by_columns() -> ColumnTransformer:
    parts = [
        ("last", make_pipeline(SimpleImputer(), RobustScaler()), ["c"]),
        ("first", MinMaxScaler(), ["a"]),
    ]
    return ColumnTransformer(parts, remainder="passthrough")


@pytest.mark.parametrize("who", CLASSIFIERS)
@pytest.mark.parametrize("steps", [StandardScaler, SimpleImputer, by_columns], ids=lambda s: s.__name__)
def test_a_pipeline_is_certified_in_the_units_of_its_input(steps: Any, who: str) -> None:
    """The folded posterior predicts what the pipeline predicts, at points it was not checked at."""
    pipeline = make_pipeline(steps(), StandardScaler(), CLASSIFIERS[who]()).fit(X, Y)
    post = gc.posterior_of(pipeline)
    points = pd.DataFrame(random.normal(size=(50, 3)) * [2.0, 80.0, 0.2], columns=["a", "b", "c"])
    np.testing.assert_allclose(post.probability(points), pipeline.predict_proba(points), atol=1e-8)
    assert post.feature_names == ("a", "b", "c")
    mixed = X[["c", "a", "b"]].iloc[0]
    verdict = gc.certify(pipeline, gc.Ball(mixed, 0.01, scale=X.std()))
    assert verdict.region.x.tolist() == X.iloc[0].tolist()
    assert verdict.label == pipeline.predict(X[:1])[0]


def test_a_model_is_converted_once_and_again_after_it_was_trained() -> None:
    pipeline = make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None)).fit(X, Y)
    first = gc.posterior_of(pipeline)
    assert gc.posterior_of(pipeline) is first
    pipeline.fit(X[:30] * 2.0, Y[:30])
    second = gc.posterior_of(pipeline)
    assert second.n_centres == 30
    np.testing.assert_allclose(second.probability(X), pipeline.predict_proba(X), atol=1e-8)


def test_a_fitted_part_that_was_changed_by_hand_is_seen() -> None:
    pipeline = make_pipeline(StandardScaler(), gc.GPClassifier(max_evals=0)).fit(X, Y)
    first = gc.posterior_of(pipeline)
    pipeline[0].mean_ += 1.0
    second = gc.posterior_of(pipeline)
    assert second is not first
    np.testing.assert_allclose(second.probability(X), pipeline.predict_proba(X), atol=1e-8)


def test_a_model_with_a_function_of_its_own_keeps_its_posterior_while_it_is_the_same() -> None:
    """A lambda has no digest: the model is converted each time, but what is known of it is not lost."""
    quiet = gc.GPClassifier(max_evals=1, progress=lambda *_: None)
    pipeline = make_pipeline(StandardScaler(), quiet).fit(X, Y)
    first = gc.posterior_of(pipeline)
    assert gc.posterior_of(pipeline) is first
    assert gc.posterior_of(pipeline.fit(X[:20], Y[:20])).n_centres == 20
    strange = make_pipeline(FunctionTransformer(lambda Z: Z), GaussianProcessClassifier(optimizer=None))
    with pytest.raises(gc.InvalidInputError, match="got FunctionTransformer"):
        gc.posterior_of(strange.fit(X, Y))


def test_a_search_that_is_fitted_again_is_converted_again() -> None:
    inner = make_pipeline(StandardScaler(), GaussianProcessClassifier(optimizer=None))
    search = GridSearchCV(inner, {"gaussianprocessclassifier__kernel": [RBF(0.1), RBF(2.0)]}, cv=2).fit(X, Y)
    first = gc.posterior_of(search)
    assert gc.posterior_of(search) is first
    search.fit(X[:20], Y[:20])
    assert gc.posterior_of(search).n_centres == 20
    np.testing.assert_allclose(gc.posterior_of(search).probability(X), search.predict_proba(X), atol=1e-8)


def test_a_search_answers_for_its_best_and_a_classifier_for_itself() -> None:
    search = GridSearchCV(gc.GPClassifier(max_evals=0), {"kernel": [gc.RBF(0.01), gc.RBF(30.0)]}, cv=2).fit(
        X, Y
    )
    assert gc.posterior_of(search) is search.best_estimator_.posterior_
    clf = gc.GPClassifier(max_evals=0).fit(X, Y)
    assert gc.posterior_of(clf) is clf.posterior_
    clf.fit(X[:20], Y[:20])
    assert gc.posterior_of(clf).n_centres == 20


def test_an_imputer_keeps_rows_that_miss_nothing() -> None:
    missing = X.copy()
    missing.iloc[3, 1] = np.nan
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), gc.GPClassifier(max_evals=0)).fit(missing, Y)
    post = gc.posterior_of(pipeline)
    np.testing.assert_allclose(post.probability(X), pipeline.predict_proba(X), atol=1e-9)
    with pytest.raises(gc.InvalidInputError, match="column 'b' of X must be finite, got nan at index 3"):
        post.probability(missing)


@pytest.mark.parametrize("idle", ["passthrough", None])
@pytest.mark.parametrize("nested", [False, True])
def test_a_pipeline_that_begins_with_nothing_knows_its_columns(idle: Any, nested: bool) -> None:
    """A grid may choose "passthrough": columns are still taken by name."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    first = Pipeline([("nothing", "passthrough"), ("scaler", StandardScaler())]) if nested else idle
    pipe = Pipeline([("first", first), ("gp", gc.GPClassifier(max_evals=0))]).fit(table, table["a"] > 0)
    post = gc.posterior_of(pipe)
    assert post.feature_names == ("a", "b")
    some = gc.balls(table[:4], 0.01)
    turned = gc.balls(table[["b", "a"]][:4], 0.01)
    assert [a.region.to_dict() for a in gc.certify(pipe, some)] == [
        a.region.to_dict() for a in gc.certify(pipe, turned)
    ]
    with pytest.raises(InvalidInputError, match="columns"):
        gc.certify(pipe, gc.balls(table.rename(columns={"a": "z"}), 0.01))

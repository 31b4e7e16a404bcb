"""GPClassifier: scikit-learn's contract, its laws, its records, and one clear error for everything else."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpcert as gc

INFERENCES = ["laplace", "ep"]


def blobs(n: int = 40, classes: int = 2, seed: int = 0, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = random.normal(size=(n, d))
    X[:, 0] += 2.0 * y
    return X, y


def in_process(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("inference", INFERENCES)
def test_check_estimator_passes_completely(inference: str) -> None:
    """In a process of its own, since one of the checks wants a variable set before scipy is imported."""
    code = f"""
import warnings
from sklearn.utils.estimator_checks import check_estimator
import gpcert as gc
# We follow the protocol without inheriting from BaseEstimator, which is a warning, not a failure.
warnings.filterwarnings("default", message=".*does not inherit from")
warnings.filterwarnings("default", category=FutureWarning)
results = check_estimator(gc.GPClassifier(inference={inference!r}, max_evals=10), on_fail=None, on_skip=None)
print(len(results), [(r["check_name"], r["status"], str(r["exception"])) for r in results
                     if r["status"] != "passed"])
"""
    count, failures = in_process(code, SCIPY_ARRAY_API="1").split(" ", 1)
    assert int(count) > 40
    assert failures.strip() == "[]"


def test_scikit_learn_is_not_imported() -> None:
    code = """
import sys, numpy as np, gpcert as gc
X = np.arange(8.0)[:, None]
model = gc.GPClassifier()
try:
    model.predict(X)
except gc.NotFittedError:
    print("not fitted")
model.fit(X, np.arange(8) > 3).predict(X)
print([name for name in sys.modules if name.startswith(("sklearn", "pandas"))])
"""
    assert in_process(code).split("\n") == ["not fitted", "[]", ""]


def test_not_fitted_is_an_error_of_both_families() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(gc.NotFittedError, match="must be fitted first") as caught:
        gc.GPClassifier().predict([[0.0]])
    assert isinstance(caught.value, NotFittedError)


def test_parameters_round_trip() -> None:
    model = gc.GPClassifier(
        gc.Matern32(2.0), "logit", "ep", 7, 3, bounds={"variance": (0.1, 10)}, n_restarts=1
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(max_evals=9).max_evals == 9
    assert model.max_evals == 7
    assert eval(
        repr(model), {"GPClassifier": gc.GPClassifier, **vars(gc), "Matern32": gc.Matern32}
    ).get_params() == (model.get_params())
    assert repr(gc.GPClassifier()) == "GPClassifier()"
    with pytest.raises(gc.InvalidInputError, match="got 'kernle'"):
        model.set_params(kernle=None)


def test_pipeline_grid_search_and_pickle() -> None:
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), gc.GPClassifier(max_evals=3))
    assert is_classifier(pipeline[-1])
    search = GridSearchCV(
        pipeline, {"gpclassifier__kernel": [gc.RBF(1e-6), gc.RBF(1.0)], "gpclassifier__max_evals": [0]}, cv=3
    ).fit(X, y)
    assert search.best_params_["gpclassifier__kernel"] == gc.RBF(1.0)
    assert cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc").mean() > 0.8
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))


def test_data_frame_names_are_kept_and_checked() -> None:
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = gc.GPClassifier(max_evals=0).fit(frame, pd.Series(np.where(y, "cat", "dog")))
    assert model.posterior_.feature_names == ("width", "height")
    assert list(model.feature_names_in_) == ["width", "height"]
    np.testing.assert_array_equal(model.posterior_.classes, ["cat", "dog"])
    with pytest.raises(gc.InvalidInputError, match="same order"):
        model.predict(frame[["height", "width"]])
    with pytest.raises(gc.InvalidInputError, match="unseen at fit time:\n- depth\n"):
        model.predict(frame.rename(columns={"height": "depth"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict(frame)


@pytest.mark.parametrize("inference", INFERENCES)
def test_labels_are_only_names(inference: str) -> None:
    X, y = blobs()
    reference = gc.GPClassifier(inference=inference, max_evals=5).fit(X, y)
    for names in (["a", "b"], [False, True], [-1, 1], [2.0, 7.0]):
        labels = np.array(names)[y]
        model = gc.GPClassifier(inference=inference, max_evals=5).fit(X, labels)
        np.testing.assert_array_equal(model.predict_proba(X), reference.predict_proba(X))
        assert set(model.predict(X)) <= set(names)
        assert model.score(X, labels) == reference.score(X, y)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_swapping_the_classes_mirrors_the_probability(inference: str, link: str) -> None:
    X, y = blobs()
    model = gc.GPClassifier(likelihood=link, inference=inference, max_evals=5).fit(X, y)
    mirrored = clone(model).fit(X, 1 - y)
    assert mirrored.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, rel=1e-9)
    np.testing.assert_allclose(mirrored.predict_proba(X)[:, ::-1], model.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("inference", INFERENCES)
def test_sample_order_is_irrelevant(inference: str, classes: int) -> None:
    X, y = blobs(60, classes)
    X[5] = X[8]  # duplicated points, with different labels for three classes
    order = np.random.default_rng(1).permutation(60)
    model = gc.GPClassifier(inference=inference, max_evals=25).fit(X, y)
    shuffled = clone(model).fit(X[order], y[order])
    assert shuffled.kernel_ == model.kernel_  # to the last bit: the search has seen the same numbers
    assert shuffled.log_marginal_likelihood_ == model.log_marginal_likelihood_
    np.testing.assert_array_equal(shuffled.posterior_.weights, model.posterior_.weights[order])
    np.testing.assert_allclose(shuffled.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12)


def test_posterior_is_that_of_the_training_points() -> None:
    X, y = blobs()
    model = gc.GPClassifier(gc.RBF(1.5, 3.0), max_evals=0).fit(X, y)
    post = model.posterior_
    np.testing.assert_array_equal(post.centres, X)
    assert post.kernel == gc.RBF(1.5, 3.0) == model.kernel_
    W = post.factors["site_precision"]
    R = np.linalg.inv(post.kernel(X) + np.diag(1 / W))
    np.testing.assert_allclose(post.precision, R, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), post.predict(X))


@pytest.mark.parametrize("max_evals", [0, 1, 10, 40])
def test_budget_and_records(max_evals: int) -> None:
    X, y = blobs()
    calls: list[int] = []
    model = gc.GPClassifier(
        gc.RBF(0.3, 0.5), max_evals=max_evals, progress=lambda count, value, theta: calls.append(count)
    ).fit(X, y)
    assert len(calls) == model.n_evals_ == len(model.trace_) <= max_evals
    if max_evals == 0:
        assert model.kernel_ == gc.RBF(0.3, 0.5)
    else:
        assert model.log_marginal_likelihood_ == pytest.approx(max(model.trace_), rel=1e-10)
    training = model.posterior_.training
    assert json.loads(json.dumps(dict(training))) == dict(training)
    assert training["n_evals"] == model.n_evals_
    assert training["log_marginal_likelihood"] == model.log_marginal_likelihood_
    assert training["inference"] == "laplace"


def test_bounds_restarts_and_random_state() -> None:
    X, y = blobs()
    bounds = {"lengthscale": (0.5, 0.6), "variance": (1.0, 1.0)}
    model = gc.GPClassifier(gc.RBF(0.55, 1.0), bounds=bounds).fit(X, y)
    assert 0.5 <= model.kernel_.lengthscale <= 0.6
    assert model.kernel_.variance == pytest.approx(1.0)
    runs = [
        gc.GPClassifier(max_evals=30, n_restarts=3, random_state=seed).fit(X, y).trace_ for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]
    for state in (np.random.default_rng(0), np.random.RandomState(0), None):
        model = gc.GPClassifier(max_evals=10, n_restarts=3, random_state=state).fit(X, y)
        kept = model.posterior_.training["random_state"]
        assert gc.GPClassifier(max_evals=10, n_restarts=3, random_state=kept).fit(X, y).trace_ == model.trace_
    assert all(len(run) <= 30 for run in runs)


def test_probit_scale_is_honoured() -> None:
    X, y = blobs()
    scaled = gc.GPClassifier(gc.RBF(1.0, 1.0), gc.Probit(scale=2.0), max_evals=0).fit(X, y)
    plain = gc.GPClassifier(gc.RBF(1.0, 4.0), "probit", max_evals=0).fit(X, y)
    np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-9)
    assert scaled.posterior_.likelihood == gc.Probit(scale=2.0)


@pytest.mark.parametrize("inference", INFERENCES)
def test_several_classes_are_one_against_the_rest(inference: str) -> None:
    X, y = blobs(60, 3)
    model = gc.GPClassifier(inference=inference, max_evals=10).fit(X, y)
    post = model.posterior_
    assert post.weights.shape == (60, 3)
    assert post.precision.shape == (3, 60, 60)
    assert post.factors["site_precision"].shape == (3, 60)
    assert post.likelihood == gc.OneVsRest(gc.Probit())
    assert len(model.kernel_) == len(model.trace_) == 3
    assert model.n_evals_ <= 10
    binary = [gc.GPClassifier(inference=inference, max_evals=10).fit(X, y == c) for c in range(3)]
    p = np.stack([part.predict_proba(X)[:, 1] for part in binary], axis=1)
    np.testing.assert_allclose(model.predict_proba(X), p / p.sum(axis=1, keepdims=True), rtol=0, atol=1e-9)
    total = sum(part.log_marginal_likelihood_ for part in binary)
    assert model.log_marginal_likelihood_ == pytest.approx(total, rel=1e-12)


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [1.0]], [1, 1], "at least 2 classes, got 1 class"),
        ([[0.0], [NAN]], [0, 1], r"X must be finite, got NaN at index \(1, 0\)"),
        ([[0.0], [INF]], [0, 1], "X must be finite, got infinity"),
        ([[0.0], [1j]], [0, 1], "X must be real"),
        ([["a"], ["b"]], [0, 1], "X must be numbers"),
        ([[0.0], [1.0, 2.0]], [0, 1], "X must be numbers"),
        ([[0.0], [1.0]], [[0], [1, 2]], "y must be one-dimensional, got rows"),
        ([0.0, 1.0], [0, 1], r"X must be two-dimensional .* got shape \(2,\)"),
        (np.zeros((2, 2, 2)), [0, 1], r"got shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), [], r"0 sample\(s\)"),
        (np.zeros((2, 0)), [0, 1], r"0 feature\(s\)"),
        ([[0.0], [1.0]], [0, 1, 1], "y must have length 2, as X has points, got 3"),
        ([[0.0], [1.0]], [[0, 1], [1, 0]], "y must be one-dimensional"),
        ([[0.0], [1.0]], [0.5, 1.0], "Unknown label type: continuous"),
        ([[0.0], [1.0]], [0, NAN], "y must be finite"),
        ([[0.0], [1.0]], np.array(["a", 1], dtype=object), "all numbers or all strings"),
        ([[0.0], [1.0]], np.array([b"a", b"b"]), "y must be numbers or strings"),
        ([[0.0], [1.0]], None, "requires y"),
    ],
)
def test_bad_data_is_one_clear_error(X: object, y: object, message: str) -> None:
    with pytest.raises(gc.InvalidInputError, match=message):
        gc.GPClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, "kernel must be one of gpcert, got 'rbf'"),
        ({"kernel": gc.RBF([1.0, 1.0, 1.0])}, "one lengthscale or 2, as X has features, got 3"),
        ({"likelihood": "softmax", "inference": "ep"}, "'laplace' for the softmax"),
        ({"likelihood": "cauchy"}, "likelihood must be 'probit', 'logit'.* got 'cauchy'"),
        ({"likelihood": gc.OneVsRest(gc.Probit())}, "likelihood must be"),
        ({"inference": "vi"}, "inference must be one of laplace, ep, got 'vi'"),
        ({"max_evals": -1}, "max_evals must be an integer >= 0, got -1"),
        ({"max_evals": 2.5}, "max_evals must be an integer"),
        ({"n_restarts": None}, "n_restarts must be an integer"),
        ({"random_state": "x"}, "random_state must be a whole number"),
        ({"bounds": {"period": (1, 2)}}, "bounds must name parameters"),
    ],
)
def test_bad_parameters_are_one_clear_error(parameters: dict[str, object], message: str) -> None:
    X, y = blobs()
    with pytest.raises(gc.InvalidInputError, match=message):
        gc.GPClassifier(**parameters).fit(X, y)


def test_wrong_number_of_features_at_prediction() -> None:
    X, y = blobs()
    with pytest.raises(gc.InvalidInputError, match="X has 3 features, but GPClassifier is expecting 2"):
        gc.GPClassifier(max_evals=0).fit(X, y).predict(np.zeros((1, 3)))


@settings(max_examples=25, deadline=None)
@given(
    inference=st.sampled_from(INFERENCES),
    link=st.sampled_from(["probit", "logit"]),
    shape=st.sampled_from(
        ["duplicated", "constant", "unbalanced", "two points", "separable", "contradicting"]
    ),
    exponent=st.sampled_from([-6, 0, 6]),
    variance=st.sampled_from([1e-8, 1.0, 1e8]),
    ard=st.booleans(),
)
def test_hard_data_and_extreme_kernels_train(
    inference: str, link: str, shape: str, exponent: int, variance: float, ard: bool
) -> None:
    X, y = blobs(30)
    if shape == "duplicated":
        X[15:] = X[:15]
    elif shape == "constant":
        X[:, 1] = 3.0
    elif shape == "unbalanced":
        y = (np.arange(30) == 7).astype(int)
    elif shape == "two points":
        X, y = X[:2], y[:2]
    elif shape == "separable":
        X[:, 0] += 1e3 * y
    else:
        X[1::2] = X[::2]  # every point once with each label
    lengthscale = 10.0**exponent * (np.ones(2) if ard else 1.0)
    model = gc.GPClassifier(gc.RBF(lengthscale, variance), link, inference, max_evals=8).fit(X, y)
    p = model.predict_proba(np.vstack([X, X + 0.1, 1e3 * X]))
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.log_marginal_likelihood_ < 0
    assert model.kernel_.variance <= 1e8 * (1 + 1e-9)


def test_one_against_five_hundred() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(501, 3))
    y = np.zeros(501, dtype=int)
    y[250], X[250] = 1, 5.0
    for inference in INFERENCES:
        model = gc.GPClassifier(inference=inference, max_evals=10).fit(X, y)
        assert model.converged_
        p = model.predict_proba(X)[:, 1]
        assert p.argmax() == 250
        assert np.delete(p, 250).max() < 0.5


@pytest.mark.parametrize(("name", "least"), [("synthetic2d", 0.98), ("spam", 0.88), ("mnist38", 0.96)])
def test_accuracy_on_the_shipped_data(name: str, least: float) -> None:
    data = gc.datasets.load(name)
    start = gc.RBF(np.sqrt(data.X_train.shape[1]) * data.X_train.std(), 1.0)
    model = gc.GPClassifier(start, max_evals=10).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) >= least

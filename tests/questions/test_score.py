"""`certified_score`: certified accuracy as scikit-learn's searches take it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

import gpcert as gc
from gpcert.errors import InvalidInputError

DATA = gc.datasets.load("synthetic2d")
X, Y = DATA.X_train[:48], DATA.y_train[:48]


def test_the_score_is_the_certified_accuracy():
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit(X, Y)
    table = gc.evaluate(clf.posterior_, X, Y, [0.05, 0.2])
    scores = [gc.certified_score(radius)(clf, X, Y) for radius in (0.05, 0.2)]
    assert scores == table.certified.tolist()
    assert scores[0] >= scores[1]
    # Points that the roots leave, another threshold, and fewer points than a batch is made for.
    some = gc.certified_score(0.7, max_nodes=3)(clf, X, Y), gc.certified_score(0.05, threshold=0.7)(clf, X, Y)
    whole = gc.evaluate(clf, X, Y, [0.7], max_nodes=3), gc.evaluate(clf, X, Y, [0.05], threshold=0.7)
    assert some == tuple(float(each.certified[0]) for each in whole)
    assert gc.certified_score(0.05)(clf, X[:3], Y[:3]) == gc.evaluate(clf, X[:3], Y[:3], [0.05]).certified[0]


def test_searches_and_validations_take_it_and_it_travels():
    score = pickle.loads(pickle.dumps(gc.certified_score(0.05, domain=(-10.0, 10.0))))
    kernels = [gc.RBF(1.0, 4.0), gc.RBF(1e-3, 4.0)]
    search = GridSearchCV(gc.GPClassifier(max_evals=0), {"kernel": kernels}, scoring=score, cv=2).fit(X, Y)
    assert search.best_params_["kernel"].lengthscale == 1.0
    values = cross_val_score(gc.GPClassifier(kernels[0], max_evals=0), X, Y, cv=2, scoring=score)
    assert np.isfinite(values).all()
    assert search.best_score_ == values.mean()


def test_the_first_ctrl_c_ends_it(monkeypatch):
    """At the roots or in a search: a score of the points asked before would be a wrong one."""
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit(X, Y)

    def interrupted(*_args, **_kwargs):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)

    places = ("gpcert.questions.rooted", "decisions", len(X)), ("gpcert.questions.evaluate", "decide", 3)
    for module, name, few in places:
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[module], name, interrupted)
            for options in ({}, {"threshold": 0.7}):
                with pytest.raises(KeyboardInterrupt):
                    gc.certified_score(0.05, **options)(clf, X[:few], Y[:few])


def test_a_worker_that_dies_of_a_point_is_an_error(monkeypatch):
    """Not Ctrl-C, which would end a whole search over models; and no score of the other points."""
    clf = gc.GPClassifier(gc.RBF(1.0, 4.0), max_evals=0).fit(X, Y)
    monkeypatch.setattr(sys.modules["gpcert.questions.evaluate"], "_BLOCKS", (24, 24))
    monkeypatch.setattr(sys.modules["gpcert.questions.evaluate"], "_block", hungry)
    told = r"an answer for every point, but .* 24 of 48 are not answered"
    with joblib.parallel_config(backend="threading", n_jobs=2), pytest.raises(gc.GpcertError, match=told):
        gc.certified_score(0.05, n_jobs=None)(clf, X, Y)  # threads start quickly


def hungry(task, index, report):
    from gpcert.questions.evaluate import point_of

    if index[0]:
        raise MemoryError
    return [point_of(task, i, None) for i in index]


@pytest.mark.parametrize("radius", [-1.0, np.nan, np.inf, "0.1", [0.1, 0.2], True, None])
def test_a_radius_that_is_none_is_refused_at_once(radius):
    """scikit-learn turns errors of a scorer into NaN."""
    with pytest.raises(InvalidInputError, match="radius must be a number >= 0"):
        gc.certified_score(radius)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": 0.5},
        {"norm": 0},
        {"threshold": 2.0},
        {"tolerance": 0.0},
        {"max_seconds": np.nan},
        {"max_nodes": -1},
        {"n_jobs": 0},
        {"device": "tpu"},
    ],
)
def test_options_that_no_model_can_have_are_refused_at_once(options):
    """scikit-learn turns errors of a scorer into NaN."""
    with pytest.raises(InvalidInputError, match="must be"):
        gc.certified_score(0.1, **options)

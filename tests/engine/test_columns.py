"""Regions and answers of large batches are columns; objects are made where somebody looks: the same ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.levels.registry import curves_of
from gpcert.engine.backend import Backend
from gpcert.engine.facts import facts_of
from gpcert.engine.signs import surely_lost
from gpcert.errors import InvalidInputError
from gpcert.questions import rooted
from gpcert.questions.decision import labelled
from gpcert.regions import hulls, hulls_of
from gpcert.running import Lot
from helpers.batches import contradictions
from helpers.exact import small_model
from judge.truth import Truth

KINDS = [
    {},
    {"features": [0, 2]},
    {"domain": (-2.0, [np.inf, 2.0, 9.0])},
    {"domain": (-9.0, 9.0), "features": [1]},
    {"scale": [0.1, 1.0, 3.0]},
    {"norm": 2.0},
    {"norm": 0, "domain": (-2.0, 2.0)},
]


def centres(m: int = 30) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1.0, 1.0, (m, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_balls_are_made_on_demand_and_are_those_made_one_by_one(kind):
    X, radius = centres(), np.arange(30) % 3 * (1.0 if kind.get("norm") == 0 else 0.1)
    many = gc.balls(X, radius, **kind)
    assert not many._made  # none yet
    assert many[-1] is many[29]
    alone = [gc.Ball(x, r, **kind) for x, r in zip(X, radius, strict=True)]
    assert [each.to_dict() for each in many] == [each.to_dict() for each in alone]
    assert [each.to_dict() for each in many[3:9:2]] == [each.to_dict() for each in alone[3:9:2]]
    assert len(many[:4] + alone[:2]) == 6
    with pytest.raises(IndexError):
        many[30]
    X[:] = 7.0  # what was asked about stays what it was
    assert many[5].x.tolist() == alone[5].x.tolist()
    with pytest.raises(ValueError, match="read-only"):
        many[5].x[0] = 1.0


def test_rows_that_are_no_centre_get_their_sentence():
    X = centres()
    with pytest.raises(InvalidInputError, match=r"x must lie in domain, got .* at feature 1"):
        gc.balls(np.where(np.arange(30)[:, None] == [99, 20, 99], 5.0, X), 0.1, domain=(-2.0, 2.0))
    with pytest.raises(InvalidInputError, match="radius must be >= 0, got -1"):
        gc.balls(X, np.where(np.arange(30) == 4, -1.0, 0.1))
    with pytest.raises(InvalidInputError, match=r"radius must be an integer with norm=0, got 0\.5"):
        gc.balls(X, np.where(np.arange(30) == 4, 0.5, 1.0), norm=0, domain=(-2.0, 2.0))
    assert len(gc.balls(np.empty((0, 3)), 0.1)) == 0


def test_no_balls_get_no_answers():
    none = gc.balls(centres(), 0.1)[:0]
    for ask in (gc.probability_range, gc.certify, gc.attack, gc.latent_range, gc.robustness):
        assert list(ask(small_model(n=20, d=3), none)) == []


def test_names_in_another_order_move_the_columns():
    X = centres()
    clf = gc.GPClassifier(max_evals=0).fit(
        {name: X[:, j] for j, name in enumerate("abc")}, (X[:, 0] > 0).astype(int)
    )
    turned = gc.balls({name: X[:, "abc".index(name)] for name in "cab"}, 0.05, features=["b"])
    found = gc.probability_range(clf, turned, n_jobs=1)
    straight = gc.probability_range(clf, gc.balls(X, 0.05, features=[1]), n_jobs=1)
    assert [each.region.to_dict() for each in found] == [each.region.to_dict() for each in straight]
    assert [(each.min, each.max) for each in found] == [(each.min, each.max) for each in straight]
    with pytest.raises(InvalidInputError, match="region must have the model's columns, got none named 'c'"):
        gc.certify(clf, gc.balls({"a": X[:, 0], "b": X[:, 1], "d": X[:, 2]}, 0.05))
    with pytest.raises(InvalidInputError, match="region must have 3 features, got 2"):
        gc.certify(clf, gc.balls(X[:, :2], 0.05))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_objects_get_answers_that_do_not_contradict_each_other(kind):
    post = small_model(n=30, d=3)
    many = gc.balls(centres(), np.arange(30) % 5 * (1.0 if kind.get("norm") == 0 else 0.05), **kind)
    for ask in (gc.probability_range, gc.certify):
        columns = ask(post, many, n_jobs=1, max_nodes=6)
        objects = ask(post, list(many), n_jobs=1, max_nodes=6)
        assert contradictions(columns, objects) == []
        for answer, region in zip(columns, many, strict=True):
            assert answer.region.to_dict() == region.to_dict()
            assert answer.argmin is None or region.contains(answer.argmin)


def test_ends_of_columns_are_the_boxes_of_the_balls():
    many = gc.balls(centres(), np.linspace(0.0, 0.3, 30), domain=(-1.0, 1.0))
    columns = hulls(many.batch.x, many.batch.radius[:, None], many.batch.kind.domain)
    for one, two in zip(columns, hulls_of(list(many)), strict=True):
        assert one.tolist() == two.tolist()


def test_answers_of_a_batch_are_made_where_somebody_looks():
    post = small_model(n=30, d=3)
    found = gc.probability_range(post, gc.balls(centres(), 0.02), n_jobs=1)
    assert sum(isinstance(each, Lot) for each in found._answers) > 20
    assert found[3] is found[3]
    assert found[-1] is found[29]
    again = pickle.loads(pickle.dumps(found))
    assert [each.to_dict() for each in again] == [each.to_dict() for each in found]
    assert [each.to_dict() for each in found[4:7]] == [each.to_dict() for each in list(found)[4:7]]


def test_clear_labels_are_those_of_the_predictor():
    for likelihood in ("probit", "logit"):
        post = small_model(n=30, d=3, likelihood=likelihood)
        X = 3.0 * centres(200)
        clear = rooted.classes(post, X, "cpu")
        p = post.probability(X)
        assert (clear >= 0).mean() > 0.9
        assert (clear[clear >= 0] == p.argmax(axis=1)[clear >= 0]).all()
        labels, ties = labelled(post, X)
        assert labels.tolist() == p.argmax(axis=1).tolist()
        assert not ties.any()
    flat = gc.Posterior(post.centres, np.zeros(len(post.centres)), post.precision, kernel=post.kernel)
    assert (rooted.classes(flat, X, "cpu") == -1).all()  # the mean is 0: a tie everywhere
    assert labelled(flat, X)[1].all()


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_a_class_that_is_surely_lost_is_not_the_label(likelihood):
    """J9 by P alone, next to 1/2: points found by halving between both classes, judged in balls."""
    rng, clear = np.random.default_rng(5), 0
    for scale in (1.0, 1e4, 1e8):  # with large weights the predictor's own rounding counts
        post = small_model(n=30, d=3, likelihood=likelihood)
        post = gc.Posterior(
            post.centres, scale * post.weights, post.precision, kernel=post.kernel, likelihood=likelihood
        )
        facts = facts_of(post, np.arange(3), Backend())
        truth, most = Truth(post), surely_lost(facts, curves_of(post.likelihood))
        assert 0.5 - 1e-4 * scale < most < 0.5
        for _ in range(40):
            X = 3.0 * rng.uniform(-1.0, 1.0, (2, 3))
            for _ in range(rng.integers(4, 50)):
                middle = X.mean(axis=0)
                X[int(post.latent(middle[None])[0][0] > 0)] = middle
            for x in X:
                for label in range(2):
                    if truth.at_most(x, label, most):
                        labels, ties = labelled(post, x[None])
                        clear += 1
                        assert (labels[0], ties[0]) == (1 - label, False)
    assert clear > 100

"""LIME beside our explanations: units, agreement, and a clear sentence without the package.

The package itself is not a dependency of the tests: a stand-in with its interface fits the local linear model
by least squares, so that what is tested is ours: units, labels, and the comparison.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gpcert as gc
from gpcert.results import About
from gpcert.settings import Settings
from helpers.exact import small_model


class Explainer:
    """The part of `LimeTabularExplainer` that is used: a linear fit in standardised features."""

    def __init__(self, X, **options):
        assert options["discretize_continuous"] is False
        self.scaler = SimpleNamespace(scale_=X.std(axis=0))

    def explain_instance(self, x, predict, labels, num_features, num_samples):
        rng = np.random.default_rng(0)
        Z = rng.normal(size=(num_samples, len(x))) * 1e-5
        p = predict(x + Z * self.scaler.scale_)[:, labels[0]]
        weights = np.linalg.lstsq(np.column_stack([Z, np.ones(len(Z))]), p, rcond=None)[0][:-1]
        chosen = np.argsort(-np.abs(weights))[:num_features]
        return SimpleNamespace(as_map=lambda: {labels[0]: [(int(j), float(weights[j])) for j in chosen]})


@pytest.fixture
def lime(monkeypatch):
    tabular = ModuleType("lime.lime_tabular")
    tabular.LimeTabularExplainer = Explainer
    monkeypatch.setitem(sys.modules, "lime", ModuleType("lime"))
    monkeypatch.setitem(sys.modules, "lime.lime_tabular", tabular)


def test_small_radii_point_where_a_local_linear_model_points(lime):
    post, rng = small_model(d=4), np.random.default_rng(0)
    X, train = rng.normal(size=(5, 4)), rng.normal(size=(50, 4)) * [1.0, 10.0, 0.1, 3.0]
    c = gc.compare_with_lime(post, X, 0.01, train, samples=200)
    gradient = post.probability_gradient(X)[:, 1]
    assert np.allclose(c.weights, gradient, rtol=0.02, atol=1e-3)  # per unit of the feature
    assert (c.cosine > 0.99).all()
    assert (c.agreement > 0.7).all()
    assert c.explanation.value.shape == c.weights.shape


def test_the_agreement_counts_certain_signs_only(lime):
    lower, upper = np.array([[0.1, -0.3, -0.1]]), np.array([[0.2, -0.2, 0.1]])
    e = gc.Explanation.of(lower, upper, (gc.Ball(np.zeros(3), 0.1),), 1, None, About("", "", Settings()))
    assert gc.LimeComparison.of(e, np.array([[1.0, -1.0, 5.0]])).agreement.tolist() == [1.0]
    assert gc.LimeComparison.of(e, np.array([[1.0, 1.0, 5.0]])).agreement.tolist() == [0.5]
    nothing = gc.LimeComparison.of(e, np.zeros((1, 3)))
    assert np.isnan(nothing.cosine).all()


def test_without_the_package_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "lime", None)
    monkeypatch.setitem(sys.modules, "lime.lime_tabular", None)
    with pytest.raises(gc.GpcertError, match="LIME needs the package lime"):
        gc.compare_with_lime(small_model(), [[0.0, 0.0]], 0.1, [[0.0, 1.0], [1.0, 0.0]])

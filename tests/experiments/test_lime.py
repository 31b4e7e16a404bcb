"""LIME's weights in the units of the features.

The package is not a dependency of the tests: a stand-in with its interface fits the local linear model by
least squares.
"""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np

from gpcert_paper.reproduce.lime import lime_weights
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


def test_weights_are_per_unit_of_each_feature(monkeypatch):
    tabular = ModuleType("lime.lime_tabular")
    tabular.LimeTabularExplainer = Explainer
    monkeypatch.setitem(sys.modules, "lime", ModuleType("lime"))
    monkeypatch.setitem(sys.modules, "lime.lime_tabular", tabular)
    post, rng = small_model(d=4), np.random.default_rng(0)
    X, train = rng.normal(size=(5, 4)), rng.normal(size=(50, 4)) * [1.0, 10.0, 0.1, 3.0]
    weights = lime_weights(post, train, X, 1, 200, 4)
    assert np.allclose(weights, post.probability_gradient(X)[:, 1], rtol=0.02, atol=1e-3)
    kept = lime_weights(post, train, X, 1, 200, 2)
    assert ((kept != 0).sum(axis=1) == 2).all()

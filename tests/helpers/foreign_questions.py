"""Every question asked of a model of another library as it is, and after it was changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import gpcert as gc

Predict = Callable[[np.ndarray], np.ndarray]


def ask_everything(model: Any, predict: Predict, X: np.ndarray) -> None:
    """The model stands where a posterior may; what is said is about its own predictions."""
    ball, p = gc.Ball(X[0], 0.1), predict(X[:4])
    post = gc.posterior_of(model)
    assert gc.posterior_of(model) is post
    classes = post.classes.tolist()
    found = gc.probability_range(model, ball, label=classes[1], n_jobs=1)
    assert found.lower <= p[0, 1] <= found.upper
    assert gc.robustness(model, ball).upper >= found.max.lower - found.min.upper
    mean, variance = post.latent(X[:1])
    latent = gc.latent_range(model, ball)
    assert latent.mean.min.lower <= mean[0] <= latent.mean.max.upper
    assert latent.variance.min.lower <= variance[0] <= latent.variance.max.upper
    verdict, hit = gc.certify(model, ball), gc.attack(model, ball)
    assert verdict.label == hit.label == classes[p[0].argmax()]
    assert not (hit.success and verdict.status is gc.VerdictStatus.SAFE)
    assert gc.certified_radius(model, X[0], max_radius=0.1, rtol=0.1).safe <= 0.1
    assert gc.explain(model, X[:1], 0.1).value.shape == (1, 2)
    truth = p.argmax(axis=1)
    assert gc.evaluate(model, X[:4], post.classes[truth], [0.0], n_jobs=1).clean == 1.0
    table = {"a": X[:4, 0], "b": X[:4, 1], "truth": post.classes[truth]}
    verdicts = gc.certify_table(model, table, target="truth", radii=[0.1], n_jobs=1)
    assert [v.label for v in verdicts] == post.classes[truth].tolist()


def see_changes(
    model: Any, predict: Predict, X: np.ndarray, changes: Mapping[str, Callable[[], object]]
) -> None:
    """After each change in place the posterior is another one, and predicts as the model does now."""
    for name, change in changes.items():
        before = gc.posterior_of(model)
        change()
        after = gc.posterior_of(model)
        assert after is not before, name
        np.testing.assert_allclose(after.probability(X), predict(X), rtol=0, atol=1e-7, err_msg=name)
        assert gc.posterior_of(model) is after, name

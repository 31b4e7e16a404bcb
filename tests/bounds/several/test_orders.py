"""Y1 by absolute values, and the expansion behind it: sums of kernels in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import _ROUGHLY
from gpcert.likelihoods.integrals.correlated import TARGET
from gpcert.questions.decision import refutes
from helpers.several import Setting, random_model


def test_probabilities_at_points_are_sharp_where_rough_ones_do_not_settle_the_sign():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, 2))
    y = (X @ rng.standard_normal((2, 5))).argmax(axis=1)
    y[:10] = np.arange(10) % 5
    post = gc.GPClassifier(gc.RBF(1.0, 5.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    moving, p = np.ones(2, dtype=bool), post.probability(post.centres)
    label = int(p[0].argmax())
    other = post.centres[int(np.flatnonzero(p.argmax(axis=1) != label)[0])]
    bound = BoundFactory(post).margin(label, shape_of(gc.Ball(post.centres[0], 5.0), moving), other, moving)

    def margin(t: float) -> float:
        q = post.probability((post.centres[0] + t * (other - post.centres[0]))[None])[0]
        return float(0.5 + 0.5 * (q[label] - np.delete(q, label).max()))

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if margin(middle) > 0.5 else (low, middle)
    sharp = 0
    for t in [*np.linspace(0.0, 1.0, 5), *(low + np.array([-3e-4, -3e-5, 0.0, 3e-5, 3e-4]))]:
        x = post.centres[0] + t * (other - post.centres[0])
        (lower, upper), rough = bound.at(x), bound._at(x, _ROUGHLY)
        assert lower <= margin(t) + 1e-5
        assert upper >= margin(t) - 1e-5
        if rough[0] <= 0.5 <= rough[1]:
            sharp += 1
            assert (lower, upper) == bound._at(x, TARGET)
            assert upper - lower < 0.5 * (rough[1] - rough[0])
    assert sharp


@pytest.mark.parametrize("kind", ["correlated", "independent", "probit"])
def test_the_probability_of_a_counterexample_is_the_predictors(kind):
    post = random_model(Setting(kind, 4, 12, 2, 0.1, 5))
    x = post.centres[0]
    answer = gc.certify(post, x, gc.Ball(x, 4.0), max_nodes=20)
    assert answer.status == "unsafe"
    z = answer.counterexample
    assert answer.probability == float(post.probability(z[None])[0, answer.column])
    assert refutes(post, BoundFactory(post), z, answer.label, 0.5)

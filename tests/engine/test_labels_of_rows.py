"""Labels of several classes in a batch (docs/maths/batches.md, J16), in ball arithmetic and against single
answers.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.questions import rooted
from gpcert.settings import Settings
from helpers.oracle import BITS, bits
from judge import Truth


def test_most_of_an_easy_batch_is_settled_at_the_root_and_other_models_are_left_alone():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((15, 3)) + 4.0 * np.eye(3)[c] for c in range(3)])
    y = np.repeat([0, 1, 2], 15)
    post = gc.GPClassifier(gc.RBF(2.0, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    labels = post.probability(X).argmax(axis=1)
    (found,) = rooted.decisions(post, gc.balls(X, 0.05), labels, 0.5, Settings(0.02), "cpu")
    assert (found.lower[0] > 0.5).mean() > 0.8
    assert (found.upper == 1.0).all()
    rest = gc.GPClassifier(gc.Matern12(2.0, 4.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    assert list(rooted.decisions(rest, gc.balls(X, 0.05), labels, 0.5, Settings(0.02), "cpu")) == []
    assert list(rooted.ranges(post, gc.balls(X, 0.05), np.ones(len(X)), Settings(0.02), "cpu")) == []


def test_unsafe_labels_of_a_batch_need_no_search():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((15, 3)) + 4.0 * np.eye(3)[c] for c in range(3)])
    y = np.repeat([0, 1, 2], 15)
    clf = gc.GPClassifier(gc.RBF(2.0, 4.0), max_evals=0, likelihood="softmax").fit(X, y)
    post = clf.posterior_
    labels = post.probability(X).argmax(axis=1)
    (wrong,) = rooted.decisions(post, gc.balls(X, 0.05), (labels + 1) % 3, 0.5, Settings(0.02), "cpu")
    assert (wrong.upper < 0.5).mean() > 0.9
    found = list(gc.certify(post, X, gc.balls(X, 6.0), n_jobs=1))
    assert {str(each.status) for each in found} == {"unsafe"}
    points = np.stack([each.counterexample for each in found])
    assert (post.probability(points).argmax(axis=1) != labels).all()
    assert (np.abs(points - X) <= 6.0).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_rival_with_the_larger_mean_need_not_be_more_probable(share):
    """J22: class 0 has the largest mean, class 1 the largest variance, and the larger probability: only the
    functionals with s_k tell. Latents alone, and correlated ones.
    """
    variance, n = 6.0, 4
    known = 0.95 / variance * np.diag([1.0, 0.0, 1.0, 1.0])
    known[0, 2] = known[2, 0] = -share / variance
    blocks = known[:, :, None, None] if share else np.diagonal(known)[:, None, None]
    weights, mean = np.zeros((1, n)), [0.05, 0.0, -0.5, -0.5]
    kernel = gc.RBF(1.0, variance)
    post = gc.Posterior([[0.0]], weights, blocks, kernel=kernel, likelihood="softmax", mean=mean)
    labels, regions = np.ones(16, dtype=np.intp), gc.balls(np.zeros((16, 1)), 1e-3)
    (found,) = rooted.decisions(post, regions, labels, 0.5, Settings(0.02), "cpu")
    with bits(BITS):
        assert Truth(post).margin(np.zeros(1), 1) > 0
    assert (found.upper == 1.0).all()
    (rest,) = rooted.decisions(post, regions, 2 * labels, 0.5, Settings(0.02), "cpu")
    assert (rest.upper < 0.5).all()  # and where the variances are alike, it does

"""Softmax over indefinite precisions, the rule for variational models: true, and they converge (M1 to M4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.facts.classes import class_model_of
from helpers.oracle import examples
from helpers.several import Setting, falsehoods, random_box

KINDS = ["correlated", "independent"]


@dataclass(frozen=True)
class Variational(Setting):
    """q(u) = N(m, S), S whitened of norm about `spread`: beyond 1 the precision is indefinite."""

    spread: float = 1.0
    jitter: float = 1e-6


def variational(setting: Variational, excess: float = 0.0) -> gc.Posterior:
    """With `excess`, precisions exceed K^-1 by that share, and variances fall below 0."""
    rng = np.random.default_rng(setting.seed)
    n, C = setting.n, setting.classes
    X = rng.standard_normal((n, setting.d))
    kernel = gc.RBF(10.0 ** rng.uniform(-0.2, 0.5), 10.0 ** rng.uniform(-0.5, 1.0))
    inverse = np.linalg.inv(np.linalg.cholesky(kernel(X) + setting.jitter * np.eye(n)))

    def precision(size: int) -> np.ndarray:
        A = rng.standard_normal((size, size)) * np.sqrt(setting.spread / size)
        half = np.kron(np.eye(size // n), inverse)
        R = half.T @ ((1.0 + excess) * np.eye(size) - A @ A.T) @ half
        return 0.5 * (R + R.T)

    if setting.kind == "correlated":
        R = precision(C * n).reshape(C, n, C, n).transpose(0, 2, 1, 3)
    else:
        R = np.stack([precision(n) for _ in range(C)])
    weights = inverse.T @ rng.standard_normal((n, C))
    return gc.Posterior(X, weights, R, kernel=kernel, likelihood="softmax", mean=rng.standard_normal(C))


def cases(**fixed):
    choices = {
        "kind": KINDS,
        "classes": [2, 3, 4, 6],
        "n": [3, 10],
        "d": [1, 3],
        "width": [1e-6, 0.1, 0.3, 3.0],
        "spread": [1e-3, 0.3, 1.0, 4.0],
        "jitter": [1e-2, 1e-4, 1e-6],
        **fixed,
    }
    return st.builds(
        Variational, seed=st.integers(0, 10**6), **{name: st.sampled_from(v) for name, v in choices.items()}
    )


@given(setting=cases(kind=["independent"], spread=[1e-3, 0.1, 1.0]), excess=st.sampled_from([1e-6, 0.1, 2.0]))
@settings(max_examples=examples(24))
def test_ranges_contain_the_truth_where_variances_are_clipped(setting, excess):
    post = variational(setting, excess)
    box = random_box(setting, post)
    answer = gc.probability_range(post, box, 0, tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_what_was_unknown_converges(kind, classes):
    spread = 2.0 if classes < 4 or kind == "independent" else 1.2
    setting = Variational(kind, classes, 12, 2, 0.1, 3, spread=spread)
    post = variational(setting)
    model = class_model_of(post)
    assert model.negative is not None
    assert model.contraction_negative > 0.1
    answer = gc.probability_range(post, gc.Ball(post.centres[0], 0.05), 0, max_nodes=60)
    assert answer.status == "converged"


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_vanishing_variances_converge(classes):
    """Relative to themselves they vary too much for a tangent: raised, they do not."""
    post = variational(Variational("independent", classes, 40, 2, 0.1, 0, spread=1e-4, jitter=1e-4))
    variances = np.diagonal(post.latent(post.centres)[1], axis1=1, axis2=2)
    assert variances.max() < 2e-3 * post.kernel.variance
    answer = gc.probability_range(post, gc.Ball(post.centres[0], 0.05), 0, max_nodes=100)
    assert answer.status == "converged"


def test_a_clipped_variance_costs_in_proportion():
    """Class 0 has a variance of about -e at the centre, where the others have almost none."""
    for e, widest in ((1e-4, 0.01), (0.1, 0.03)):
        R = np.full((3, 1, 1), 1.0 - 1e-9)
        R[0] += e
        post = gc.Posterior([[0.0]], [[0.5, 0.0, -0.5]], R, kernel=gc.RBF(), likelihood="softmax")
        assert 0.99 * e < class_model_of(post).lift < 1.01 * e + 1e-6
        answer = gc.probability_range(post, gc.Box([-0.02], [0.02]), 0, tolerance=1e-3, max_nodes=30)
        p = post.probability(np.linspace(-0.02, 0.02, 81)[:, None])[:, 0]
        assert answer.lower <= p.min() <= p.max() <= answer.upper
        assert answer.min.width < widest
        assert answer.max.width < widest

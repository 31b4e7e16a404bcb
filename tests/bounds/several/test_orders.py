"""Y1 by absolute values, and the expansion behind it: sums of kernels in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import _ROUGHLY
from gpcert.bounds.several.tangents.expansion import ClassExpansion, expand_classes
from gpcert.likelihoods.integrals.correlated import TARGET
from gpcert.questions.decision import refutes
from helpers.several import Setting, random_model


def expanded(post: gc.Posterior, lower: np.ndarray, upper: np.ndarray) -> ClassExpansion:
    moving = np.ones(len(lower), dtype=bool)
    shape, middle = shape_of(gc.Box(lower, upper), moving), 0.5 * lower + 0.5 * upper
    bound = BoundFactory(post).pair(0, shape, middle, moving)[0]
    domain = shape.domain(lower, upper, middle, bound.slice.lengthscale)
    return expand_classes(bound.model, bound.slice, domain, middle)


def line(weights: np.ndarray) -> gc.Posterior:
    """Three classes, one feature: R is 0, the means are sums of four kernels."""
    X, nothing = np.array([[-1.5], [-0.5], [0.5], [1.5]]), np.zeros((3, 3, 4, 4))
    return gc.Posterior(X, weights, nothing, kernel=gc.RBF(1.0, 2.0), likelihood="softmax")


def exact_mean(post: gc.Posterior, a: np.ndarray, x: float) -> arb:
    total = arb(0)
    for z, w in zip(post.centres[:, 0].tolist(), post.weights.tolist(), strict=True):
        k = 2 * (-((arb(x) - arb(z)) ** 2) / 2).exp()
        total += k * sum((arb(float(s)) * arb(v) for s, v in zip(a, w, strict=True)), arb(0))
    return total


def test_least_means_lie_below_and_need_all_their_terms():
    a, without = np.array([1.0, -1.0, 0.0]), {"near": 0, "rest": 0}
    odd = np.array([-1.0, 3.0 * np.exp(-1.0), -3.0 * np.exp(-1.0), 1.0])  # of third order at 0
    others = np.random.default_rng(0).standard_normal((20, 4))
    for weights in [odd, *others]:
        post = line(np.column_stack([weights, np.zeros((4, 2))]))
        x = expanded(post, np.array([-0.6]), np.array([0.6]))
        near, rest = x._mean_orders(a)
        value = float(a @ x.latents.mean)
        means = [exact_mean(post, a, float(t)) for t in np.linspace(-0.6, 0.6, 13)]
        assert all(bool(m >= arb(x.least_mean(a))) for m in means)
        without["near"] += any(bool(m < arb(value - rest)) for m in means)
        without["rest"] += any(bool(m < arb(value - near)) for m in means)
    assert min(without.values()) > 0


@pytest.mark.parametrize("kind", ["correlated", "independent"])
def test_reaches_of_several_functionals_are_those_of_each(kind):
    post = random_model(Setting(kind, 5, 10, 3, 0.1, 2))
    x = expanded(post, post.centres[0] - 0.2, post.centres[0] + 0.1)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((7, 5, 5))
    B = B + B.transpose(0, 2, 1) if kind == "correlated" else B * np.eye(5)
    np.testing.assert_allclose(x.covariance_reaches(B), [x.covariance_reach(each) for each in B], rtol=1e-12)
    assert x.covariance_reaches(np.empty((0, 5, 5))).shape == (0,)


@pytest.mark.parametrize("kind", ["correlated", "independent"])
def test_derivatives_of_covariances(kind):
    """Term by term from the kernels' own derivatives."""
    post = random_model(Setting(kind, 4, 9, 3, 0.1, 4))
    x = expanded(post, post.centres[1] - 0.3, post.centres[1] + 0.3)
    v = (post.centres - x.reference) / x.model.lengthscale
    k = post.kernel(x.reference[None], post.centres)[0]
    first = k[:, None] * v
    second = k[:, None, None] * (v[:, :, None] * v[:, None, :] - np.eye(3))
    for (c, e), g, H in zip(x.model.pairs, x.covariance_gradient, x.covariance_hessian, strict=True):
        R = post.precision[c] if kind == "independent" else post.precision[c, e]
        np.testing.assert_allclose(g, -(first.T @ R @ k + first.T @ R.T @ k), atol=1e-11)
        across = np.einsum("ijl,i->jl", second, (R + R.T) @ k) + first.T @ (R + R.T) @ first
        np.testing.assert_allclose(H, -across, atol=1e-11)


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

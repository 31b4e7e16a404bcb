"""Laplace's method with softmax against a slow reference: full Cn x Cn matrices, Newton without structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.errors import InvalidInputError
from gpcert.inference.laplace import fit_laplace, fit_softmax
from gpcert.inference.train import TrainingSettings, marginal_likelihood, train
from gpcert.likelihoods import Logit, Softmax


def slow_reference(K, y, C):
    """(weights (n, C), R (Cn, Cn), log marginal likelihood) by plain Newton steps; eqs. 3.34 to 3.44."""
    n = len(y)
    big = np.kron(np.eye(C), K)
    target = (np.arange(C)[:, None] == y).astype(float).ravel()
    f = np.zeros(C * n)

    def likelihood(f):
        F = f.reshape(C, n)
        e = np.exp(F - F.max(axis=0))
        p = e / e.sum(axis=0)
        W = np.diag(p.ravel())
        for i in range(n):
            rows = np.arange(C) * n + i
            W[np.ix_(rows, rows)] -= np.outer(p[:, i], p[:, i])
        value = target @ f - (F.max(axis=0) + np.log(e.sum(axis=0))).sum()
        return value, p.ravel(), W

    for _ in range(200):
        _, p, W = likelihood(f)
        new = big @ np.linalg.solve(np.eye(C * n) + W @ big, W @ f + target - p)
        step = np.abs(new - f).max()
        f = f + min(1.0, 2.0 / step if step > 0 else 1.0) * (new - f)
        if step < 1e-13 * (1 + np.abs(f).max()):
            break
    value, p, W = likelihood(f)
    R = np.linalg.solve(np.eye(C * n) + W @ big, W)
    a = target - p
    log_det = np.linalg.slogdet(np.eye(C * n) + W @ big)[1]
    return a.reshape(C, n).T, R, value - 0.5 * a @ big @ a - 0.5 * log_det


def problem(seed, n, C, d=2, lengthscale=0.8, variance=4.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = rng.permutation(np.arange(n) % C).astype(float)
    X[:, 0] += y
    return X, y, gc.RBF(lengthscale=lengthscale, variance=variance)


@given(
    seed=st.integers(0, 10**6),
    C=st.integers(2, 6),
    variance=st.sampled_from([1e-3, 0.5, 4.0, 60.0]),
    lengthscale=st.sampled_from([0.1, 0.8, 5.0]),
)
@settings(max_examples=25)
def test_parity_with_the_full_matrices(seed, C, variance, lengthscale):
    X, y, kernel = problem(seed, 4 * C, C, lengthscale=lengthscale, variance=variance)
    K = kernel(X, X)
    fast = fit_softmax(K, y, Softmax())
    weights, R, log_z = slow_reference(K, y, C)
    assert fast.converged
    blocks = fast.precision().transpose(0, 2, 1, 3).reshape(R.shape)
    np.testing.assert_allclose(fast.weights, weights, rtol=0, atol=1e-8)
    np.testing.assert_allclose(blocks, R, rtol=0, atol=1e-8)
    assert abs(fast.log_marginal_likelihood - log_z) < 1e-8 * (1 + abs(log_z))


def test_warm_start_finds_the_same_mode():
    X, y, kernel = problem(3, 24, 4)
    K = kernel(X, X)
    near = gc.RBF(lengthscale=0.9, variance=3.0)(X, X)
    cold = fit_softmax(K, y, Softmax())
    warm = fit_softmax(K, y, Softmax(), fit_softmax(near, y, Softmax()).sites)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-9)


@pytest.mark.parametrize("kernel", [gc.RBF([0.7, 1.3], 5.0), gc.Matern52(1.1, 2.0) + gc.RBF(0.3, 0.5)])
def test_gradient_against_finite_differences(kernel):
    X, y, _ = problem(7, 30, 3)
    evaluate = marginal_likelihood(X, y, kernel, Softmax(), fit_softmax)
    gradient = evaluate(kernel).gradient
    h = 1e-5
    for j in range(len(kernel.theta)):
        step = h * np.eye(len(kernel.theta))[j]
        up, down = (evaluate(kernel.with_theta(kernel.theta + s * step)).value for s in (1, -1))
        assert abs(gradient[j] - (up - down) / (2 * h)) < 1e-6 * (1 + np.abs(gradient).max())


def test_two_classes_are_the_logistic_of_the_difference():
    """f_1 - f_0 of two latents with kernel k is one latent with kernel 2k under the logistic."""
    X, y, kernel = problem(11, 20, 2)
    K = kernel(X, X)
    two = fit_softmax(K, y, Softmax())
    one = fit_laplace(2.0 * K, 2.0 * y - 1.0, Logit())
    np.testing.assert_allclose(two.weights[:, 1], one.weights, atol=1e-9)
    np.testing.assert_allclose(two.weights.sum(axis=1), 0.0, atol=1e-9)
    R = two.precision()
    difference = R[1, 1] + R[0, 0] - R[0, 1] - R[1, 0]
    np.testing.assert_allclose(difference, 4.0 * one.precision(), atol=1e-9)
    assert abs(two.log_marginal_likelihood - one.log_marginal_likelihood) < 1e-9


def test_permuting_classes_permutes_the_posterior():
    X, y, kernel = problem(5, 24, 4)
    order = np.array([2, 0, 3, 1])
    mine = fit_softmax(kernel(X, X), y, Softmax())
    theirs = fit_softmax(kernel(X, X), order[y.astype(int)].astype(float), Softmax())
    np.testing.assert_allclose(theirs.weights[:, order], mine.weights, atol=1e-10)
    np.testing.assert_allclose(theirs.precision()[np.ix_(order, order)], mine.precision(), atol=1e-10)


def test_order_of_points_does_not_matter():
    X, y, kernel = problem(9, 30, 3)
    shuffle = np.random.default_rng(0).permutation(len(y))
    draws = np.random.default_rng(0)
    mine = train(X, y, kernel, Softmax(), TrainingSettings(max_evals=6), draws)
    theirs = train(X[shuffle], y[shuffle], kernel, Softmax(), TrainingSettings(max_evals=6), draws)
    assert mine.kernel == theirs.kernel
    np.testing.assert_array_equal(mine.precision[..., shuffle[:, None], shuffle], theirs.precision)


@pytest.mark.parametrize("variance", [1e-4, 3e6])
@pytest.mark.parametrize("lengthscale", [1e-3, 1e3])
def test_extreme_kernels_and_duplicated_points(variance, lengthscale):
    X, y, kernel = problem(2, 20, 4, lengthscale=lengthscale, variance=variance)
    X = np.concatenate([X, X])
    y = np.concatenate([y, y])
    fit = fit_softmax(kernel(X, X), y, Softmax())
    assert np.isfinite(fit.log_marginal_likelihood)
    assert np.isfinite(fit.precision()).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classifier(classes):
    X, y, kernel = problem(1, 40, classes)
    names = np.array(["a", "b", "c", "d", "e"])[y.astype(int)]
    clf = gc.GPClassifier(kernel, likelihood="softmax", max_evals=5).fit(X, names)
    post = clf.posterior_
    assert post.weights.shape == (40, classes)
    assert post.precision.shape == (classes, classes, 40, 40)
    assert clf.kernel_ == post.kernel
    assert clf.n_evals_ <= 5
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-8)
    assert clf.score(X, names) > 1.5 / classes


@pytest.mark.parametrize("likelihood", ["softmax", "logit"])
def test_a_class_of_one_point_is_refused(likelihood):
    with pytest.raises(InvalidInputError, match=r"at least 2 points of every class.*3 classes, 5 points"):
        gc.GPClassifier(likelihood=likelihood).fit(np.arange(5.0)[:, None], [0, 0, 1, 1, 2])


def test_accuracy_on_mnist358():
    data = gc.datasets.load("mnist358")
    kernel = gc.RBF(lengthscale=5.5, variance=159.0)  # of the largest marginal likelihood (benchmarks/)
    clf = gc.GPClassifier(kernel, likelihood="softmax", max_evals=0).fit(data.X_train, data.y_train)
    assert clf.score(data.X_test, data.y_test) >= 0.9


@pytest.mark.full
def test_accuracy_on_digits():
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))  # the file is ordered by writer
    X, y = digits.data[order] / 16.0, digits.target[order]
    clf = gc.GPClassifier(gc.RBF(4.0, 100.0), likelihood="softmax", max_evals=4).fit(X[:600], y[:600])
    assert clf.score(X[600:900], y[600:900]) >= 0.96

"""The posterior: its formulas against slow loops, its gradients against finite differences, its rules."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert import posterior as posterior_module
from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF, Matern32, Matern52, RationalQuadratic
from gpcert.likelihoods import Logit, OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior

KERNELS = (RBF([1.0, 2.0, 0.7], 2.0), Matern52(1.5, 0.8) + RBF(3.0), RationalQuadratic(1.2) * Matern32(2.0))


def inverse(S):
    R = np.linalg.inv(S)
    return 0.5 * (R + R.T)


def two_class(likelihood="probit", kernel=KERNELS[0], n=12, seed=0, **rest):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    W = rng.uniform(0.2, 2.0, n)
    precision = inverse(kernel(X) + np.diag(1 / W))
    return Posterior(X, rng.normal(size=n), precision, kernel=kernel, likelihood=likelihood, mean=0.3, **rest)


def several(likelihood, correlated, C=3, n=10, seed=1, kernel=KERNELS, mean=(0.1, -0.4, 0.8)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    kernels = kernel if isinstance(kernel, tuple) else (kernel,) * C
    blocks = [k(X) for k in kernels]
    if correlated:
        S = np.zeros((C * n, C * n))
        for c in range(C):
            S[c * n : (c + 1) * n, c * n : (c + 1) * n] = blocks[c]
        noise = rng.normal(size=(C * n, C * n))
        R = inverse(S + np.eye(C * n) + 0.1 * noise @ noise.T)
        precision = R.reshape(C, n, C, n).transpose(0, 2, 1, 3)
    else:
        precision = np.stack([inverse(K + np.eye(n)) for K in blocks])
    weights = rng.normal(size=(n, C))
    return Posterior(X, weights, precision, kernel=kernel, likelihood=likelihood, mean=mean)


MODELS = {
    "probit": two_class,
    "probit of scale 2, sum kernel": lambda: two_class(Probit(2.0), KERNELS[1]),
    "logit, product kernel": lambda: two_class("logit", KERNELS[2]),
    "regression": lambda: two_class(None),
    "softmax, correlated": lambda: several("softmax", True),
    "softmax, correlated, one kernel": lambda: several(Softmax(), True, kernel=KERNELS[1], mean=0.5),
    "softmax, independent": lambda: several("softmax", False),
    "one-vs-rest probit": lambda: several(OneVsRest(Probit()), False),
    "one-vs-rest logit, one kernel": lambda: several(OneVsRest(Logit()), False, kernel=KERNELS[0]),
    "regression of several outputs": lambda: several(None, True),
}
EACH = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
CLASSIFIERS = {name: make for name, make in MODELS.items() if "regression" not in name}
EACH_CLASSIFIER = pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)


def points(m=5, seed=3):
    return np.random.default_rng(seed).normal(size=(m, 3))


def reference_latent(post, x):
    """Mean and covariance of the latents at one point, entry by entry."""
    C = post.n_latents
    means = np.broadcast_to(post.mean, C)
    weights = post.weights.reshape(post.n_centres, C)
    k = [kernel(x[None], post.centres)[0] for kernel in post.kernels]
    mean = np.array(
        [means[c] + sum(k[c][i] * weights[i, c] for i in range(post.n_centres)) for c in range(C)]
    )
    covariance = np.zeros((C, C))
    for c in range(C):
        for e in range(C):
            if post.precision.ndim == 4:
                covariance[c, e] -= k[c] @ post.precision[c, e] @ k[e]
            elif c == e:
                R = post.precision[c] if post.precision.ndim == 3 else post.precision
                covariance[c, e] -= k[c] @ R @ k[c]
        covariance[c, c] += post.kernels[c].prior_variance
    return mean, covariance


def shapes(post, m):
    return ((m,), (m,)) if post.weights.ndim == 1 else ((m, post.n_latents), (m, *(post.n_latents,) * 2))


@EACH
def test_latent_is_the_formula(make):
    post, X = make(), points()
    mean, var = post.latent(X)
    assert (mean.shape, var.shape) == shapes(post, 5)
    for i, x in enumerate(X):
        expected_mean, expected_covariance = reference_latent(post, x)
        np.testing.assert_allclose(np.atleast_1d(mean[i]), expected_mean, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(np.atleast_2d(var[i]), expected_covariance, rtol=1e-12, atol=1e-13)


@EACH
def test_chunks_do_not_change_the_answers(make, monkeypatch):
    post, X = make(), points(23)
    questions = [post.latent, post.latent_gradient]
    whole = [answer for question in questions for answer in question(X)]
    monkeypatch.setattr(posterior_module, "_CHUNK", 1)
    pieces = [answer for question in questions for answer in question(X)]
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


@EACH
def test_no_points_are_answered_with_no_rows(make):
    post = make()
    mean, var = post.latent(np.empty((0, 3)))
    assert (mean.shape, var.shape) == shapes(post, 0)
    if post.likelihood is not None:
        assert post.probability(np.empty((0, 3))).shape == (0, post.n_classes)
        assert post.probability_gradient(np.empty((0, 3))).shape == (0, post.n_classes, 3)
        assert post.predict(np.empty((0, 3))).shape == (0,)


def finite_differences(function, X, step=1e-5):
    """d function(X)/dX with the features as last axis."""
    steps = step * np.eye(X.shape[1])
    return np.stack([(function(X + e) - function(X - e)) / (2 * step) for e in steps], axis=-1)


@EACH
def test_latent_gradient_is_the_derivative(make):
    post, X = make(), points()
    dmean, dvar = post.latent_gradient(X)
    np.testing.assert_allclose(dmean, finite_differences(lambda Z: post.latent(Z)[0], X), atol=1e-7)
    np.testing.assert_allclose(dvar, finite_differences(lambda Z: post.latent(Z)[1], X), atol=1e-7)


@EACH_CLASSIFIER
def test_probability_gradient_is_the_derivative(make):
    post, X = make(), points()
    gradient = post.probability_gradient(X)
    assert gradient.shape == (5, post.n_classes, 3)
    np.testing.assert_allclose(gradient, finite_differences(post.probability, X), atol=1e-7)


@EACH_CLASSIFIER
def test_probabilities_are_expectations_of_the_likelihood(make):
    post, X = make(), points(40)
    p = post.probability(X)
    assert p.shape == (40, post.n_classes)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
    assert np.array_equal(post.predict(X), post.classes[p.argmax(axis=1)])
    # Monte Carlo with its own formulas: within 5 standard errors.
    mean, var = post.latent(X[:3])
    for i in range(3):
        samples = np.random.default_rng(i).multivariate_normal(
            np.atleast_1d(mean[i]), np.atleast_2d(var[i]), size=20_000
        )
        expected = sampled_probability(post.likelihood, samples)
        np.testing.assert_allclose(p[i], expected, atol=5 * 0.5 / math.sqrt(20_000))


def sampled_probability(likelihood, f):
    if isinstance(likelihood, Softmax):
        e = np.exp(f - f.max(axis=1, keepdims=True))
        return (e / e.sum(axis=1, keepdims=True)).mean(axis=0)
    if isinstance(likelihood, OneVsRest):
        p = np.array([likelihood.link.value(f[:, c]).mean() for c in range(f.shape[1])])
        return p / p.sum()
    p = likelihood.value(f[:, 0]).mean()
    return np.array([1 - p, p])


def test_positive_latent_speaks_for_the_second_class():
    post = Posterior([[0.0]], [3.0], [[0.0]], kernel=RBF(), classes=["no", "yes"])
    assert post.probability([[0.0]])[0, 1] > 0.9
    assert post.predict([[0.0]]).tolist() == ["yes"]


@pytest.mark.parametrize("correlated", [None, False, True])
def test_negative_variance_is_rounded_up_to_zero_and_is_flat(correlated):
    n, C = 2, 3
    X = np.array([[0.0], [1.0]])
    R = 1.5 * inverse(RBF()(X))
    if correlated is None:
        post = Posterior(X, np.ones(n), R, kernel=RBF())
        assert np.array_equal(post.latent(X)[1], [0.0, 0.0])
        assert np.array_equal(post.latent_gradient(X)[1], np.zeros((2, 1)))
        return
    blocks = np.einsum("ce,ij->ceij", np.eye(C), R) if correlated else np.stack([R] * C)
    post = Posterior(X, np.ones((n, C)), blocks, kernel=RBF(), likelihood=None)
    assert np.array_equal(post.latent(X)[1], np.zeros((2, C, C)))
    assert np.array_equal(post.latent_gradient(X)[1], np.zeros((2, C, C, 1)))


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), offset=st.sampled_from([0.0, 2.0**20]))
def test_translating_centres_and_points_changes_nothing(seed, offset):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2000, 2000, size=(8, 6)) / 1024.0
    Z = rng.integers(-2000, 2000, size=(3, 6)) / 1024.0
    R, w = inverse(RBF(2.0)(X) + np.eye(8)), rng.normal(size=8)
    here, there = Posterior(X, w, R, kernel=RBF(2.0)), Posterior(X + offset, w, R, kernel=RBF(2.0))
    for one, other in zip(here.latent(Z), there.latent(Z + offset), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_precision_is_stored_exactly_symmetric():
    post = two_class()
    rough = post.precision * (1 + 1e-13 * np.random.default_rng(0).normal(size=post.precision.shape))
    stored = Posterior(post.centres, post.weights, rough, kernel=post.kernel).precision
    assert np.array_equal(stored, stored.T)
    np.testing.assert_allclose(stored, post.precision, rtol=1e-12)
    model = several("softmax", True)
    R = model.precision
    assert np.array_equal(R, R.transpose(1, 0, 3, 2))


def test_exactly_symmetric_precision_keeps_its_bits():
    R = np.array([[0.1, 0.3], [0.3, 0.7]])
    assert np.array_equal(Posterior(np.eye(2), [1, 2], R, kernel=RBF()).precision, R)


@EACH
def test_posteriors_are_immutable_and_copies_are_equal(make):
    post = make()
    with pytest.raises(AttributeError):
        post.mean = 1.0
    X = points()
    for other in (post, pickle.loads(pickle.dumps(post)), copy.deepcopy(post)):
        for array in (other.centres, other.weights, other.precision):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1.0
        for one, same in zip(post.latent(X), other.latent(X), strict=True):
            assert np.array_equal(one, same)
    assert len({post, make()}) == 2


def test_what_the_user_passed_stays_the_users():
    X, w, R = np.eye(2), np.ones(2), np.eye(2)
    W, record = np.ones(2), {"steps": [1, 2]}
    post = Posterior(X, w, R, kernel=RBF(), factors={"site_precision": W}, training=record)
    for array in (X, w, R, W):
        array[:] = 5.0
    record["steps"].append(3)
    assert np.array_equal(post.centres, np.eye(2))
    assert np.array_equal(post.factors["site_precision"], np.ones(2))
    assert post.training == {"steps": [1, 2]}
    with pytest.raises(TypeError):
        post.factors["more"] = W


def test_defaults_and_attributes():
    post = two_class(feature_names=["a", "b", "c"])
    assert isinstance(post.likelihood, Probit)
    assert (post.n_centres, post.n_features, post.n_latents, post.n_classes) == (12, 3, 1, 2)
    assert post.classes.tolist() == [0, 1]
    assert post.feature_names == ("a", "b", "c")
    assert dict(post.factors) == dict(post.training) == {}
    assert several("softmax", False).classes.tolist() == [0, 1, 2]
    regression = two_class(None)
    assert (regression.classes, regression.n_classes) == (None, 0)
    assert all("\n" not in repr(make()) and len(repr(make())) < 250 for make in MODELS.values())


def test_frames_and_single_precision_are_accepted():
    post, X = two_class(), points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(post.probability(frame), post.probability(X))
    assert post.probability(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [-1, 1], [0.5, 2.5], [False, True], pd.Series(["a", "bc"])]
)
def test_labels_may_be_strings_or_numbers(labels):
    post = two_class(classes=labels)
    assert post.classes.tolist() == list(labels)
    assert set(post.predict(points(50)).tolist()) <= set(labels)
    with pytest.raises(ValueError, match="read-only"):
        post.classes[0] = post.classes[1]


@pytest.mark.parametrize("question", ["probability", "probability_gradient", "predict"])
def test_regression_answers_only_latent_questions(question):
    with pytest.raises(InvalidInputError, match=r"needs a likelihood, got a regression \(likelihood=None\)"):
        getattr(two_class(None), question)(points())


def build(**changes):
    arguments = {"centres": np.eye(3), "weights": np.ones(3), "precision": np.eye(3), "kernel": RBF()}
    arguments |= changes
    return Posterior(
        arguments.pop("centres"), arguments.pop("weights"), arguments.pop("precision"), **arguments
    )


THREE = {"weights": np.ones((3, 4)), "precision": np.zeros((4, 3, 3)), "likelihood": "softmax"}
ASYMMETRIC = np.eye(3) + 1e-9 * np.eye(3, k=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"centres": np.ones(3)}, "centres must be two-dimensional"),
        ({"centres": np.empty((0, 3))}, r"centres must hold points with features, got shape \(0, 3\)"),
        ({"centres": np.full((3, 3), math.inf)}, "centres must be finite"),
        ({"weights": np.ones(2)}, r"weights must have shape \(3,\), or \(3, C\) .* got \(2,\)"),
        ({"weights": np.ones((3, 1))}, r"weights must have shape .* got \(3, 1\)"),
        ({"weights": [1.0, math.nan, 1.0]}, "weights must be finite, got nan at index 1"),
        ({"precision": np.eye(2)}, r"precision must have shape \(3, 3\), as weights, got \(2, 2\)"),
        ({"precision": np.full((3, 3), math.nan)}, r"precision must be finite, got nan at index \(0, 0\)"),
        ({"precision": ASYMMETRIC}, r"precision must be symmetric, got 1e-09 at \[0, 2\] and 0.0 at its"),
        ({"kernel": "rbf"}, "kernel must be one kernel of gpcert, got 'rbf'"),
        ({"kernel": [RBF()] * 2}, "kernel must be one kernel of gpcert, got"),
        ({"kernel": RBF([1.0, 2.0])}, "kernel must have one lengthscale or 3, .* got 2"),
        ({"likelihood": "cauchit"}, "likelihood"),
        ({"likelihood": "softmax"}, "likelihood must be a two-class one"),
        ({"mean": [0.0, 1.0]}, r"mean must be a number, got shape \(2,\)"),
        ({"mean": math.nan}, "mean must be finite"),
        ({"classes": [1, 1]}, r"classes must be distinct, got \[1, 1\]"),
        ({"classes": [1, 2, 3]}, r"classes must be 2 labels, got shape \(3,\)"),
        ({"classes": "ab"}, r"classes must be 2 labels, got shape \(\)"),
        ({"classes": [[1], [1, 2]]}, "classes must be all numbers or all strings"),
        ({"classes": [1, "a"]}, r"classes must be all numbers or all strings, got \[1, 'a'\]"),
        ({"classes": [1j, 2.0]}, "classes must be all numbers or all strings"),
        ({"classes": [2**70, 0]}, "classes must be float64 or narrower"),
        ({"classes": [math.nan, 1.0]}, "classes must be finite"),
        ({"classes": [None, "a"]}, "classes must be all numbers or all strings"),
        ({"classes": [0, 1], "likelihood": None}, "classes must be None for regression"),
        ({"feature_names": ["a", "b"]}, "feature_names must have length 3, got 2"),
        ({"factors": {"a b": [1.0]}}, "factors must be named by identifiers, got 'a b'"),
        ({"factors": {"whitening": [math.nan]}}, r"factors\['whitening'\] must be finite"),
        ({"factors": {"site_precision": [1.0]}}, r"factors\['site_precision'\] must be >= 0 of shape \(3,\)"),
        ({"factors": {"site_precision": [1.0, -1.0, 1.0]}}, "must be >= 0"),
        ({"training": {"value": math.nan}}, "training must be a JSON-able mapping"),
        ({"training": {"value": object()}}, "training must be a JSON-able mapping"),
        (THREE | {"likelihood": "probit"}, "likelihood must be softmax or one-vs-rest"),
        (
            THREE | {"precision": np.zeros((4, 4, 3))},
            r"must have shape \(4, 4, 3, 3\) or \(4, 3, 3\), as weights",
        ),
        (THREE | {"kernel": [RBF()] * 3}, "kernel must be one kernel of gpcert or a sequence of 4"),
        (THREE | {"kernel": [RBF()] * 3 + [1]}, "kernel must be one of gpcert, got 1"),
        (THREE | {"mean": np.zeros(3)}, "mean must be a number or 4 of them"),
        (
            THREE | {"precision": np.zeros((4, 4, 3, 3)), "likelihood": OneVsRest(Probit())},
            r"precision must have shape \(C, n, n\) for a one-vs-rest likelihood",
        ),
    ],
)
def test_what_breaks_a_rule_is_named(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**changes)


@pytest.mark.parametrize("question", ["latent", "latent_gradient", "probability", "predict"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 4)), "X must have 3 features, got 4"),
        (np.ones(3), "X must be two-dimensional"),
        ([[1.0, 2.0, math.nan]], r"X must be finite, got nan at index \(0, 2\)"),
        ([["a", "b", "c"]], "X must be numbers"),
    ],
)
def test_bad_points_are_named(question, X, message):
    with pytest.raises(InvalidInputError, match=message):
        getattr(two_class(), question)(X)

"""Kernel laws: positive definite, symmetric, constant diagonal, exact gradients, exact descriptions."""

import copy
import json
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpcert.errors import InvalidInputError
from gpcert.kernels import (
    RBF,
    Anchors,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Sum,
    kernel_from_dict,
)
from gpcert.kernels.base import TRUST

STATIONARY = (RBF, Matern12, Matern32, Matern52, RationalQuadratic)
scales = st.floats(0.3, 5.0)


@st.composite
def stationary(draw, d):
    kind = draw(st.sampled_from(STATIONARY))
    lengthscale = draw(scales | st.lists(scales, min_size=d, max_size=d))
    return kind(lengthscale, *(draw(scales) for _ in range(2 if kind is RationalQuadratic else 1)))


def kernels(d):
    pair = st.lists(stationary(d), min_size=2, max_size=3).map(tuple)
    composite = pair.map(Sum) | pair.map(Product)
    nested = st.tuples(composite, stationary(d)).map(lambda k: k[0] * k[1] + k[1])
    return stationary(d) | composite | nested


@st.composite
def problems(draw, least=1, most=9):
    """A kernel and points of 1 to 7 features: both ways of computing distances."""
    d = draw(st.sampled_from([1, 2, 5, 7]))
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]
    return draw(kernels(d)), X, rng


def reference(kernel, x, y):
    """k(x, y) of two points by the textbook formulas, in plain Python."""
    if isinstance(kernel, Sum):
        return sum(reference(term, x, y) for term in kernel.terms)
    if isinstance(kernel, Product):
        return math.prod(reference(factor, x, y) for factor in kernel.factors)
    r2 = sum(
        ((a - b) / l) ** 2 for a, b, l in zip(x, y, np.broadcast_to(kernel.lengthscale, x.shape), strict=True)
    )
    r = math.sqrt(r2)
    formulas = {
        RBF: lambda: math.exp(-r2 / 2),
        Matern12: lambda: math.exp(-r),
        Matern32: lambda: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
        Matern52: lambda: (1 + math.sqrt(5) * r + 5 * r2 / 3) * math.exp(-math.sqrt(5) * r),
        RationalQuadratic: lambda: (1 + r2 / (2 * kernel.alpha)) ** -kernel.alpha,
    }
    return kernel.variance * formulas[type(kernel)]()


def references(kernel, X, Z):
    return np.array([[reference(kernel, x, z) for z in Z] for x in X])


@given(problems())
def test_matrix_is_the_textbook_formula(problem):
    kernel, X, rng = problem
    Z = np.vstack([X[:2], rng.normal(size=(3, X.shape[1]))])
    np.testing.assert_allclose(kernel(X, Z), references(kernel, X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X), references(kernel, X, X), rtol=1e-12, atol=1e-14)


@given(problems())
def test_symmetric_with_constant_diagonal_and_positive_definite(problem):
    kernel, X, _ = problem
    K = kernel(X)
    assert np.array_equal(K, K.T)
    # Sums and products of several kernels may round differently in the matrix.
    np.testing.assert_allclose(np.diag(K), kernel.prior_variance, rtol=1e-15)
    assert np.linalg.eigvalsh(K).min() >= -1e-13 * len(X) * kernel.prior_variance
    assert K.max() <= kernel.prior_variance * (1 + 1e-15)


@pytest.mark.parametrize("kind", STATIONARY)
def test_large_matrices_of_many_blocks_are_symmetric_and_equal_to_their_parts(kind):
    X = np.random.default_rng(1).normal(size=(700, 9))
    X[13], X[14] = X[600], X[600] + 1e-9
    kernel = kind(2.0, 1.7)
    K = kernel(X)
    assert np.array_equal(K, K.T)
    assert K[13, 600] == K[13, 13] == 1.7
    np.testing.assert_allclose(K[5:9], kernel(X[5:9], X), rtol=1e-12)
    np.testing.assert_allclose(K[14, 600], reference(kernel, X[14], X[600]), rtol=1e-14)


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("ard", [False, True])
@pytest.mark.parametrize("kind", STATIONARY)
def test_offsets_and_spreads_lose_nothing_visible(kind, ard, d):
    rng = np.random.default_rng(2)
    # Multiples of 2^-10, so that adding the offset is exact and the reference needs none.
    X = rng.integers(-3000, 3000, size=(40, d)) / 1024.0
    kernel = kind(rng.uniform(1, 3, d) if ard else 1.3)
    np.testing.assert_allclose(kernel(X + 2.0**20), references(kernel, X, X), rtol=1e-12, atol=1e-15)
    # Two tight clusters 2^20 apart: distances inside a cluster are 1e-12 of the squared norms.
    clusters = np.where(np.arange(40)[:, None] % 2, X + 2.0**20, X)
    np.testing.assert_allclose(
        kernel(clusters), references(kernel, clusters, clusters), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("d", [3, 12])
def test_a_few_close_pairs_among_distant_ones_keep_their_distance(d):
    rng = np.random.default_rng(3)
    X = 50 * rng.normal(size=(60, d))
    X[1] = X[0] + 1e-7 * rng.normal(size=d)
    kernel = Matern12(0.01)
    np.testing.assert_allclose(kernel(X), references(kernel, X, X), rtol=1e-11, atol=1e-300)
    assert 0.999 < kernel(X)[0, 1] < 1.0


@pytest.mark.parametrize("d", [3, 12])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("kind", STATIONARY)
def test_extreme_lengthscales_give_finite_matrices_and_gradients(kind, scale, d):
    X = np.random.default_rng(4).normal(size=(6, d))
    limit = np.eye(6) if scale < 1 else np.ones((6, 6))
    G = np.ones((6, 6))
    for lengthscale in (scale, np.full(d, scale)):
        gram = kind(lengthscale).gram(X)
        np.testing.assert_allclose(gram.matrix, limit, atol=1e-150)
        assert np.isfinite(gram.contract(G)).all()
        assert np.isfinite(kind(lengthscale).input_gradient(X, X + 1.0, G)).all()


@settings(deadline=None)
@given(problems())
def test_contract_is_the_derivative_in_theta(problem):
    kernel, X, rng = problem
    G = rng.normal(size=(len(X), len(X)))
    step = 1e-5

    def total(theta):
        return np.sum(G * kernel.with_theta(theta)(X))

    directions = np.eye(len(kernel.theta)) * step
    numeric = [(total(kernel.theta + e) - total(kernel.theta - e)) / (2 * step) for e in directions]
    gram = kernel.gram(X)
    np.testing.assert_allclose(gram.contract(G), numeric, atol=1e-6 * kernel.prior_variance * len(X))
    np.testing.assert_allclose(gram.matrix, kernel(X), rtol=1e-13)
    assert np.array_equal(gram.matrix, gram.matrix.T)


@settings(deadline=None)
@given(problems())
def test_input_gradient_is_the_derivative_in_x(problem):
    kernel, X, rng = problem
    Z = rng.normal(size=(4, X.shape[1]))
    B = rng.normal(size=(len(X), 4))
    assume(np.abs(X[:, None] - Z).max(axis=2).min() > 1e-2)  # finite differences need room around a cone
    step = 1e-5
    numeric = np.empty_like(X)
    for k in range(X.shape[1]):
        e = step * np.eye(X.shape[1])[k]
        numeric[:, k] = np.sum(B * (kernel(X + e, Z) - kernel(X - e, Z)), axis=1) / (2 * step)
    bound = 1e-6 * kernel.prior_variance * np.abs(B).sum()
    np.testing.assert_allclose(kernel.input_gradient(X, Z, B), numeric, atol=10 * bound)


@settings(deadline=None)
@given(problems())
def test_anchors_change_no_covariance_whichever_kernel_asks(problem):
    """What is kept is of one lengthscale: kernels, and the parts of one, take turns."""
    kernel, X, rng = problem
    Z, w = rng.normal(size=(4, X.shape[1])), rng.normal(size=4)
    anchors = Anchors(Z)
    for each in (kernel, RBF(0.7), kernel):
        assert np.array_equal(each(X, anchors), each(X, Z))
        values, slopes = each.weighted(X, anchors, w)
        np.testing.assert_allclose(values, references(each, X, Z) @ w, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(
            slopes, each.input_gradient(X, Z, np.tile(w, (len(X), 1))), rtol=1e-11, atol=1e-12
        )


@pytest.mark.parametrize("kind", STATIONARY)
def test_coinciding_points_contribute_no_gradient(kind):
    X = np.random.default_rng(5).normal(size=(5, 6))
    gradient = kind(1.5).input_gradient(X, X, np.eye(5))
    assert np.array_equal(gradient, np.zeros((5, 6)))


def test_matern12_gradients_survive_nearly_coinciding_points():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(8, 6))
    direction = rng.normal(size=6)
    Z = X + 1e-13 * direction
    lengthscale = rng.uniform(1, 2, 6)
    difference = (X - Z) / lengthscale
    # Next to its cone exp(-rho) has the gradient -(x - z)/(rho l^2), of size one whatever the distance.
    expected = -difference / np.linalg.norm(difference, axis=1)[:, None] / lengthscale
    np.testing.assert_allclose(Matern12(lengthscale).input_gradient(X, Z, np.eye(8)), expected, rtol=1e-10)
    both = np.vstack([X, Z])
    pairs = np.kron([[0, 1], [0, 0]], np.eye(8))
    exact = (difference**2 / np.linalg.norm(difference, axis=1)[:, None]).sum(axis=0)
    np.testing.assert_allclose(Matern12(lengthscale).gram(both).contract(pairs)[:6], exact, rtol=1e-10)


@given(problems())
def test_theta_describes_the_kernel(problem):
    kernel, X, _ = problem
    assert kernel.theta.shape == (len(kernel.parameter_names),)
    assert len(set(kernel.parameter_names)) == len(kernel.parameter_names)
    again = kernel.with_theta(kernel.theta)
    assert type(again) is type(kernel)
    np.testing.assert_allclose(again.theta, kernel.theta, atol=1e-15)
    moved = kernel.with_theta(kernel.theta + 0.25)
    np.testing.assert_allclose(moved.theta, kernel.theta + 0.25, atol=1e-14)
    assert moved != kernel
    assert kernel.n_features in (None, X.shape[1])


@given(problems())
def test_descriptions_are_exact(problem):
    kernel, X, _ = problem
    copies = [
        kernel_from_dict(json.loads(json.dumps(kernel.to_dict()))),
        eval(repr(kernel)),
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
    ]
    for other in copies:
        assert other == kernel
        assert hash(other) == hash(kernel)
        assert np.array_equal(other(X), kernel(X))


@settings(deadline=None)
@given(problems(), st.floats(-1, 1))
def test_one_builder_serves_all_parameters(problem, shift):
    kernel, X, rng = problem
    G = rng.normal(size=(len(X), len(X)))
    build = kernel.gram_builder(X)
    build(kernel)
    other = kernel.with_theta(kernel.theta + shift)
    # Both sides know z to the relative accuracy of kernels/base.py. -log(phi) is concave and 0 at z = 0,
    # so -z phi' <= phi log(1/phi): an entry loses at most log(1/phi) of it, phi = K/s2, also in sums
    # (x log(1/x) is concave) and products.
    K, s2, real = other(X), other.prior_variance, np.finfo(np.float64)
    in_z = 2 * (X.shape[1] + 4) / TRUST * real.eps
    exponent = np.log(s2 / np.maximum(K, real.tiny))
    assert (np.abs(build(other).matrix - K) <= K * (1e-14 + in_z * exponent) + real.tiny).all()
    np.testing.assert_allclose(build(other).contract(G), other.gram(X).contract(G), rtol=1e-13, atol=1e-13)


def test_sums_and_products_compose_and_flatten():
    a, b, c = RBF(1.0), Matern32([1.0, 2.0]), RationalQuadratic(2.0, 3.0, 0.5)
    assert a + b + c == a + (b + c) == Sum((a, b, c))
    assert a * b * c == Product((a, Product((b, c))))
    assert (a + b) * c != a + b * c
    assert ((a + b) * c).n_features == 2
    assert (a * c).n_features is None
    assert (a + c).prior_variance == 4.0
    assert ((a + c) * c).prior_variance == 12.0
    assert (b * c).parameter_names == (
        "factors[0].lengthscale[0]",
        "factors[0].lengthscale[1]",
        "factors[0].variance",
        "factors[1].lengthscale",
        "factors[1].variance",
        "factors[1].alpha",
    )


@pytest.mark.parametrize(
    "combine", [lambda k: 2.0 * k, lambda k: k * 2.0, lambda k: k + 1.0, lambda k: "a" + k]
)
def test_numbers_do_not_combine_with_kernels(combine):
    with pytest.raises(InvalidInputError, match="must be combined with kernels of gpcert, got "):
        combine(RBF())


def test_kernels_are_immutable():
    kernel = RBF([1.0, 2.0])
    with pytest.raises(AttributeError):
        kernel.variance = 2.0
    for array in (kernel.lengthscale, pickle.loads(pickle.dumps(kernel)).lengthscale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "lengthscale must be > 0, got 0.0"),
        (lambda: RBF([1.0, -2.0]), "lengthscale must be > 0, got -2.0"),
        (lambda: RBF(np.ones((2, 2))), "lengthscale must be a number or one per feature"),
        (lambda: RBF([]), "lengthscale must be a number or one per feature"),
        (lambda: Matern12(1.0, math.nan), "variance must be finite"),
        (lambda: Matern12(1.0, [1.0]), "variance must be a number"),
        (lambda: RationalQuadratic(alpha=-1.0), "alpha must be > 0"),
        (lambda: RBF("wide"), "lengthscale must be numbers"),
        (lambda: Sum((RBF(),)), "terms must be at least 2 kernels, got 1"),
        (lambda: Product((RBF(), 3.0)), "factors must be kernels, got 3.0"),
        (lambda: RBF([1.0, 2.0]) + RBF([1.0, 2.0, 3.0]), r"terms must agree on the number of features"),
        (lambda: RBF().with_theta([0.0]), "theta must have length 2, got 1"),
        (lambda: RBF().with_theta([1e9, 0.0]), "lengthscale must be finite"),
        (lambda: RBF([1.0, 2.0])(np.ones((3, 3))), "X must have 2 features, got 3"),
        (lambda: RBF()(np.ones((3, 3)), np.ones((3, 2))), "Z must have 3 features, as X, got 2"),
        (lambda: RBF()(np.ones(3)), "X must be two-dimensional"),
    ],
)
def test_what_breaks_a_rule_is_named(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    "description",
    [
        None,
        [],
        {},
        {"type": "periodic"},
        {"type": ["rbf"]},
        {"type": "rbf", "lengthscale": "0x1p0"},
        {"type": "rbf", "lengthscale": 1.0, "variance": "0x1p0"},
        {"type": "rbf", "lengthscale": "nan", "variance": "0x1p0"},
        {"type": "rbf", "lengthscale": "0x1p99999", "variance": "0x1p0"},
        {"type": "rbf", "lengthscale": [["0x1p0"]], "variance": "0x1p0"},
        {"type": "rbf", "lengthscale": "0x1p0", "variance": ["0x1p0"]},
        {"type": "rbf", "lengthscale": "0x1p0", "variance": "0x1p0", "code": "import os"},
        {"type": "sum", "terms": "rbf"},
        {"type": "sum", "terms": []},
        {"type": "sum", "factors": []},
    ],
)
def test_odd_descriptions_are_refused(description):
    with pytest.raises(InvalidInputError):
        kernel_from_dict(description)


def test_deep_descriptions_are_refused():
    description = RBF().to_dict()
    for level in range(2000):
        kind, parts = ("sum", "terms") if level % 2 else ("product", "factors")
        description = {"type": kind, parts: [RBF().to_dict(), description]}
    with pytest.raises(InvalidInputError, match="nested"):
        kernel_from_dict(description)


@pytest.mark.parametrize(
    "kernel", [RBF(np.full(60, 8.0)), Matern12(np.full(60, 8.0)), RBF(8.0) * Matern52(9.0)]
)
def test_gradients_need_no_matrix_per_feature(kernel):
    n = 1200
    rng = np.random.default_rng(7)
    X, G = rng.normal(size=(n, 60)), rng.normal(size=(n, n))
    tracemalloc.start()
    kernel.gram(X).contract(G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n * 8

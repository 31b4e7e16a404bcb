"""Softmax expectations: exact cases in ball arithmetic, independent rules against each other, bounds."""

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.errors import InvalidInputError
from gpcert.likelihoods import Logit, Softmax
from gpcert.likelihoods.integrals.nodes import lattice_average
from helpers.expectations import assert_encloses, grid_reference, line_reference

model = Softmax()
SETTINGS = settings(deadline=None, max_examples=25)


@pytest.fixture(autouse=True)
def precision():
    before = ctx.prec
    ctx.prec = 100
    yield
    ctx.prec = before


def random_covariance(rng, classes, scale):
    A = rng.normal(size=(classes, classes))
    return scale * A @ A.T / classes


floats = st.floats(-8, 8)


# Exact cases.


@SETTINGS
@given(
    mean=st.lists(floats, min_size=2, max_size=2),
    s=st.floats(0.05, 5),
    t=st.floats(0.05, 5),
    r=st.floats(-1, 1),
)
def test_two_classes_are_the_logistic_of_the_difference(mean, s, t, r):
    cov = np.array([[s * s, r * s * t], [r * s * t, t * t]])
    p = model.expectation([mean], [cov])[0]
    var = max(s * s + t * t - 2 * r * s * t, 0.0)
    assert p[1] == pytest.approx(float(Logit().expectation(mean[1] - mean[0], var)), abs=1e-14)
    assert p.sum() == pytest.approx(1, abs=1e-14)
    if r == 0:
        np.testing.assert_allclose(p, model.expectation([mean], [[s * s, t * t]])[0], atol=1e-15)


@SETTINGS
@given(
    mean=st.lists(floats, min_size=3, max_size=3),
    direction=st.lists(st.floats(-4, 4), min_size=3, max_size=3),
)
def test_three_classes_moving_along_a_line(mean, direction):
    """Covariance of rank one: the integral is one-dimensional and known in ball arithmetic."""
    cov = np.multiply.outer(direction, direction)
    error = model.expectation_error([mean], [cov])[0]
    assert (error <= 1e-9).all()
    assert_encloses(model.expectation([mean], [cov])[0], error, line_reference(mean, direction))


@settings(deadline=None, max_examples=15)
@given(
    mean=st.lists(floats, min_size=3, max_size=5),
    s=st.one_of(st.floats(0, 3), st.floats(2.9, 12)),
    j=st.integers(0, 2),
)
def test_one_uncertain_latent_among_independent_ones(mean, s, j):
    direction = [s if k == j else 0.0 for k in range(len(mean))]
    var = np.square(direction)
    error = model.expectation_error([mean], [var])[0]
    assert (error <= 1e-8).all()
    assert_encloses(model.expectation([mean], [var])[0], error, line_reference(mean, direction))


@pytest.mark.parametrize("classes", [3, 5, 30])
def test_without_variance_it_is_the_softmax(classes):
    mean = np.random.default_rng(classes).normal(size=(4, classes)) * 5
    exact = np.exp(mean) / np.exp(mean).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.expectation(mean, np.zeros((4, classes))), exact, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        model.expectation(mean, np.zeros((4, classes, classes))), exact, rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("classes", [3, 4, 10, 100])
@pytest.mark.parametrize("variance", [0.3, 4.0, 200.0])
def test_exchangeable_classes_share_equally(classes, variance):
    mean = np.full((1, classes), 7.7)
    var = np.full((1, classes), variance)
    error = model.expectation_error(mean, var)
    assert (np.abs(model.expectation(mean, var) - 1 / classes) <= error).all()
    assert (error <= 1e-8).all()


# Independent rules agree.


@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0, 30.0])
def test_gumbel_and_tensor_rule_agree(scale):
    """Every covariance of three classes is a diagonal one up to common shifts of the latents."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        d, x = rng.uniform(0.2, 1, size=3) * scale, rng.uniform(-0.05, 0.05, size=3) * scale
        cov = np.diag(d) + x[:, None] + x
        mean = rng.normal(size=3) * np.sqrt(scale)
        one, error_one = model.expectation([mean], [cov]), model.expectation_error([mean], [cov])
        two, error_two = model.expectation([mean], [d]), model.expectation_error([mean], [d])
        assert (np.abs(one - two) <= error_one + error_two).all()
        assert (error_one <= 1e-8).all()
        assert (error_two <= 1e-8).all()


def test_four_independent_classes_against_a_slow_grid():
    rng = np.random.default_rng(4)
    mean, var = rng.normal(size=4), rng.uniform(0.3, 2, size=4)
    slow = grid_reference(mean, np.diag(var))
    np.testing.assert_allclose(model.expectation([mean], [var])[0], slow, rtol=0, atol=1e-9)


# Laws.


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("full", [False, True])
def test_common_shifts_change_nothing(classes, full):
    rng = np.random.default_rng(7)
    mean, var = rng.normal(size=(1, classes)), rng.uniform(0.5, 2, size=(1, classes))
    cov = np.eye(classes) * var[:, None] if full else var
    p, shifted = model.expectation(mean, cov), model.expectation(mean + 1e3, cov)
    np.testing.assert_allclose(p, shifted, rtol=0, atol=1e-11)
    if full:
        x = rng.uniform(0, 0.3, size=classes)
        np.testing.assert_allclose(p, model.expectation(mean, cov + x[:, None] + x), rtol=0, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
@pytest.mark.parametrize("full", [False, True])
def test_extremes_give_probabilities(classes, full):
    rng = np.random.default_rng(9)
    for size in (0.0, 1e3, 1e20, 1e99):
        for variance in (0.0, 1e-99, 1.0, 1e4, 1e99):
            mean = rng.normal(size=(1, classes)) * size
            cov = rng.uniform(0.5, 1, size=(1, classes)) * variance
            if full:
                cov = np.eye(classes) * cov[:, None]
            p, error = model.expectation(mean, cov), model.expectation_error(mean, cov)
            assert ((p >= 0) & (p <= 1)).all()
            assert np.abs(p.sum() - 1) <= 1e-12
            assert ((error >= 0) & (error <= 1)).all()
            for derivative in model.expectation_gradient(mean, cov):
                assert np.isfinite(derivative).all()


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_monotone_in_own_mean(classes):
    mean = np.zeros((9, classes))
    mean[:, 0] = np.linspace(-8, 8, 9)
    p = model.expectation(mean, np.full((9, classes), 2.0))
    assert (np.diff(p[:, 0]) > 0).all()
    assert (np.diff(p[:, 1]) < 0).all()


# Gradients.


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_gradient_in_means_and_variances(classes):
    rng = np.random.default_rng(10)
    mean, var = rng.normal(size=(2, classes)), rng.uniform(0.3, 12, size=(2, classes))
    by_mean, by_var = model.expectation_gradient(mean, var)
    assert by_mean.shape == by_var.shape == (2, classes, classes)
    h = 1e-4
    for j in range(classes):
        step = h * np.eye(classes)[j]
        quotient = (model.expectation(mean + step, var) - model.expectation(mean - step, var)) / (2 * h)
        np.testing.assert_allclose(by_mean[:, :, j], quotient, rtol=0, atol=1e-7)
        quotient = (model.expectation(mean, var + step) - model.expectation(mean, var - step)) / (2 * h)
        np.testing.assert_allclose(by_var[:, :, j], quotient, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("classes", "tolerance"), [(2, 1e-7), (3, 1e-7), (4, 2e-5)])
def test_gradient_in_the_covariance(classes, tolerance):
    rng = np.random.default_rng(11)
    A = rng.normal(size=(classes, classes))
    cov = np.diag(rng.uniform(1, 2, size=classes)) + 0.03 * (A + A.T)
    mean = rng.normal(size=classes)
    by_mean, by_cov = model.expectation_gradient([mean], [cov])
    assert by_cov.shape == (1, classes, classes, classes)
    np.testing.assert_array_equal(by_cov, by_cov.swapaxes(2, 3))
    h = 1e-4
    for j in range(classes):
        step = h * np.eye(classes)[j]
        quotient = (model.expectation([mean + step], [cov]) - model.expectation([mean - step], [cov])) / (
            2 * h
        )
        np.testing.assert_allclose(by_mean[0, :, j], quotient[0], rtol=0, atol=tolerance)
        for k in range(classes):
            change = np.zeros((classes, classes))
            change[j, k] += 0.5 * h
            change[k, j] += 0.5 * h
            quotient = (
                model.expectation([mean], [cov + change]) - model.expectation([mean], [cov - change])
            ) / (2 * h)
            np.testing.assert_allclose(by_cov[0, :, j, k], quotient[0], rtol=0, atol=tolerance)


def test_the_lattice_is_a_fair_average():
    mean = np.array([0.3, -1.0, 0.5, 0.0, 2.0])
    var = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    average = lattice_average(mean, np.diag(var))
    np.testing.assert_allclose(average.weights @ average.p, model.expectation([mean], [var])[0], atol=1e-3)


# Errors.


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_no_points_give_no_rows(classes):
    for cov in (np.zeros((0, classes)), np.zeros((0, classes, classes))):
        assert model.expectation(np.zeros((0, classes)), cov).shape == (0, classes)
        assert model.expectation_error(np.zeros((0, classes)), cov).shape == (0, classes)


def test_bad_latents_are_refused():
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        model.expectation([[0.0]], [[1.0]])
    with pytest.raises(InvalidInputError, match="cov must have shape"):
        model.expectation([[0.0, 1.0]], [[1.0, 1.0, 1.0]])
    with pytest.raises(InvalidInputError, match="cov must have a diagonal >= 0"):
        model.expectation([[0.0, 1.0]], [[1.0, -1.0]])
    with pytest.raises(InvalidInputError, match="cov must be symmetric"):
        model.expectation([[0.0, 1.0]], [[[1.0, 0.5], [0.0, 1.0]]])
    with pytest.raises(InvalidInputError, match="cov must be positive semi-definite"):
        model.expectation([[0.0, 1.0]], [[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(InvalidInputError, match="mean must be finite"):
        model.expectation([[0.0, np.inf]], [[1.0, 1.0]])

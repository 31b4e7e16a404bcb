"""Four and more correlated latents: the mixture, the split, the tables, and bounds that the truth honours."""

import math
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.likelihoods import Softmax
from gpcert.likelihoods.integrals.correlated import (
    centred,
    correlated_rules,
    independent_part,
    mixture,
    split,
)
from gpcert.likelihoods.integrals.gumbel import (
    _TAYLOR,
    Cloud,
    convolution,
    gumbel_derivatives,
    gumbel_integral,
    spacing,
    taylor_remainder,
    unit,
)
from helpers.expectations import assert_encloses, grid_reference, line_reference
from helpers.oracle import examples
from helpers.several import Setting, random_model

model = Softmax()


# The mixture: N(0, I + Lambda) by few N(z, I).


def chi_square(nodes, weights, variances) -> arb:
    """sum w_n w_k K(z_n, z_k) - 1 in ball arithmetic, K the integral of N(z) N(z') / N(0, 1 + v)."""
    total = arb(0)
    z = [[arb(float(x)) for x in row] for row in nodes]
    w = [arb(float(x)) for x in weights]
    sum_w = sum(w, arb(0))
    v = [arb(float(x)) for x in variances]
    c = [(1 + 2 * x) / (1 + x) for x in v]
    scale = arb(1)
    for x in v:
        scale *= (1 + x) / (1 + 2 * x).sqrt()
    for i in range(len(w)):
        for k in range(i + 1):
            exponent = arb(0)
            for a, b, y in zip(z[i], z[k], c, strict=True):
                exponent += (a + b) ** 2 / (2 * y) - (a * a + b * b) / 2
            total += (1 if i == k else 2) * w[i] * w[k] * exponent.exp()
    return scale * total - 2 * sum_w + 1


@given(
    variances=st.lists(st.floats(-8, 0.6).map(lambda t: 10**t), min_size=1, max_size=4),
    target=st.sampled_from([1e-1, 1e-2, 1e-3]),
)
@settings(deadline=None, max_examples=examples(30))
def test_the_distance_is_the_chi_square_distance(variances, target):
    rule = mixture(np.sort(variances)[::-1], target, 150)
    before, ctx.prec = ctx.prec, 150
    exact = chi_square(rule.nodes, rule.weights, np.sort(variances)[::-1])
    ctx.prec = before
    assert abs(rule.weights.sum() - 1) < 1e-12
    assert exact <= arb(rule.distance) ** 2
    # and hardly more than that
    assert float(exact.mid()) >= 0.9 * rule.distance**2 - 1e-12


@pytest.mark.parametrize("variances", [[0.3], [0.5, 0.2, 0.05], [1.5, 0.1, 0.1, 0.02], [20.0], [0.0003]])
def test_the_distance_aimed_at_is_reached(variances):
    for target in (1e-2, 1e-4):
        rule = mixture(np.array(variances), target, 10**5)
        assert rule.distance <= max(1.01 * target, 1e-6) or variances[0] > 10
    few, many = (mixture(np.array(variances), 1e-9, most) for most in (9, 99))
    assert len(few.weights) <= 9
    assert many.distance <= few.distance


def test_no_correlation_needs_one_node():
    rule = mixture(np.zeros(0), 1e-5, 10)
    assert rule.distance == 0.0
    assert len(rule.weights) == 1


# The split.


def random_covariance(rng, classes):
    """Of any size, with common shifts, factors, nearly equal latents."""
    A = rng.standard_normal((classes, rng.integers(1, classes + 1)))
    cov = 10.0 ** rng.uniform(-6, 3) * (A @ A.T / A.shape[1])
    cov += (
        np.diag(10.0 ** rng.uniform(-2, 1, classes)) * np.diagonal(cov).mean() * rng.choice([0.0, 1.0, 1.0])
    )
    x = rng.standard_normal(classes) * 0.1 * np.sqrt(np.diagonal(cov).mean())
    cov += np.abs(x[:, None] + x).max() + x[:, None] + x
    values, vectors = np.linalg.eigh(0.5 * (cov + cov.T))
    cov = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return 0.5 * (cov + cov.T)


@given(seed=st.integers(0, 10**6), classes=st.sampled_from([4, 5, 7, 10]))
@settings(deadline=None, max_examples=examples(60))
def test_the_split_is_exact_on_differences(seed, classes):
    cov = random_covariance(np.random.default_rng(seed), classes)
    sigma = centred(cov[None])[0]
    d = independent_part(sigma[None])[0]
    assert (d >= 0).all()
    if not d.all():
        return
    parts = split(sigma, d)
    assert (parts.variances > 0).all()
    again = np.diag(d) + (parts.directions * parts.variances) @ parts.directions.T
    contrast = np.eye(classes) - 1 / classes
    off = contrast @ (again - sigma) @ contrast
    # In units of D, which is how the defect is measured.
    root = np.sqrt(d)
    assert np.linalg.norm(off / root[:, None] / root, 2) <= 4 * parts.defect + 1e-12


def test_the_largest_independent_part_is_found():
    """Where Sigma is D plus one factor, the rest is that factor, up to what the barrier leaves."""
    rng = np.random.default_rng(0)
    for classes in (5, 10):
        d, v = rng.uniform(1, 3, classes), rng.standard_normal(classes)
        cov = np.diag(d) + np.multiply.outer(v, v) * 0.3
        sigma = centred(cov[None])
        parts = split(sigma[0], independent_part(sigma)[0])
        assert parts.variances[0] < 1.0
        assert (parts.variances[1:] < 0.02).all()


# The tables.


@pytest.mark.parametrize("s", [0.0, 1e-4, 0.03, 0.7, 2.9, 3.1, 20.0])
def test_gumbel_plus_normal_in_ball_arithmetic(s):
    before, ctx.prec = ctx.prec, 80
    h = 0.7
    table, error = convolution(-4.0, h, 20, s, 3)
    for i in (0, 5, 8, 19):
        y = -4.0 + i * h

        def value(z: acb, _: bool, y: float = y) -> acb:
            # The argument is cut where G vanishes, so that the integrand stays finite.
            return (-(-(acb(y) - acb(s) * z)).exp()).exp() * (-z * z / 2).exp()

        if s == 0:
            exact = (-(-arb(y)).exp()).exp()
        else:
            ends = [acb(x) for x in np.linspace(-10.0, 10.0, 41)]
            whole = sum((acb.integral(value, a, b) for a, b in pairwise(ends)), acb(0))
            exact = (whole / (2 * acb.pi()).sqrt()).real
        assert float(abs(exact - arb(float(table[0, i]))).upper()) <= error + 1e-14
    # Derivatives: those of lower order, differentiated on a fine grid.
    fine, _ = convolution(-1.0, 1e-3, 5, s, 3)
    for k in range(3):
        slope = unit(s) * (fine[k, 3] - fine[k, 1]) / 2e-3
        assert slope == pytest.approx(fine[k + 1, 2], abs=2e-6 * 60)
    ctx.prec = before


@pytest.mark.parametrize("s", [1e-3, 0.2, 1.0, 2.9, 3.1, 12.0])
def test_taylor_from_the_table(s):
    r = 0.5 * spacing(s)
    table, _ = convolution(-3.0, 4 * r, 9, s, 3 + _TAYLOR)
    moved, _ = convolution(-3.0 + r, 4 * r, 9, s, 3)
    bounds = (1.0, 1.0, 5.0, 40.0)
    for k in range(4):
        taylor = sum((r / unit(s)) ** i / math.factorial(i) * table[k + i] for i in range(_TAYLOR + 1))
        rest = taylor_remainder(s, r, _TAYLOR, 3) * bounds[k]
        assert rest < 1e-9
        assert (np.abs(taylor - moved[k]) / unit(s) ** k <= rest + 1e-11 * bounds[k]).all()


@pytest.mark.parametrize("variance", [1e-4, 0.5, 6.0, 200.0])
def test_a_cloud_is_the_average_of_its_points(variance):
    rng = np.random.default_rng(3)
    mean, d = rng.standard_normal(5) * 2, variance * rng.uniform(0.3, 1.0, 5)
    cloud = Cloud(
        rng.standard_normal((7, 5)) * np.sqrt(variance), np.array([1.0, -0.5, 0.3, 0.4, -0.6, 0.2, 0.2])
    )
    p, error = gumbel_integral(mean, d, cloud)
    pairs = list(zip(cloud.shifts, cloud.weights, strict=True))
    exact = sum(w * gumbel_integral(mean + shift, d).p for shift, w in pairs)
    assert (np.abs(np.maximum(exact, 0) / np.maximum(exact, 0).sum() - p) <= error + 1e-9).all()
    *whole, bound = gumbel_derivatives(mean, d, cloud)
    for k in range(3):
        single = sum(w * gumbel_derivatives(mean + shift, d)[k] for shift, w in pairs)
        assert np.abs(whole[k] - single).max() <= min(bound, 1e-9)
    assert bound < 1e-6


# The bound is honoured.


def factor_reference(mean, d, v):
    """Covariance diag(d) + v v^T: one dense rule over the factor, independent latents given it."""
    step = 0.25 / max(1.0, np.abs(v).max() / np.sqrt(d.min()))
    z = step * np.arange(-int(7 / step), int(7 / step) + 1)
    weights = np.exp(-0.5 * z * z)
    values = [gumbel_integral(mean + v * g, d).p for g in z]
    return weights @ np.array(values) / weights.sum()


@given(seed=st.integers(0, 10**6), classes=st.sampled_from([4, 6, 10, 12]))
@settings(deadline=None, max_examples=examples(12))
def test_one_factor_to_many_digits(seed, classes):
    rng = np.random.default_rng(seed)
    d = 10.0 ** rng.uniform(-1, 1.5) * rng.uniform(0.5, 2.0, classes)
    v = rng.standard_normal(classes) * np.sqrt(d) * rng.uniform(0.05, 1.0)
    mean = rng.standard_normal(classes) * np.sqrt(d.mean()) * rng.choice([0.3, 1.5])
    x = rng.uniform(0, 0.2, classes) * d.mean()
    cov = np.diag(d) + np.multiply.outer(v, v) + x[:, None] + x
    p, error = model.expectation_and_error([mean], [cov])
    assert (np.abs(p[0] - factor_reference(mean, d, v)) <= error[0] + 1e-10).all()
    assert (error <= 1e-3).all()


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=examples(25))
def test_four_classes_against_a_dense_grid(seed):
    rng = np.random.default_rng(seed)
    cov = random_covariance(rng, 4)
    cov *= min(1.0, 9.0 / np.diagonal(cov).max())
    mean = rng.standard_normal(4) * rng.choice([0.1, 1.0, 3.0])
    p, error = model.expectation_and_error([mean], [cov])
    assert (np.abs(p[0] - grid_reference(mean, cov)) <= error[0] + 1e-7).all()
    assert p[0].sum() == pytest.approx(1, abs=1e-12)


@given(
    mean=st.lists(st.floats(-5, 5), min_size=4, max_size=6),
    direction=st.lists(st.floats(-3, 3), min_size=6, max_size=6),
    size=st.sampled_from([1e-6, 1e-3, 0.1, 1.0]),
)
@settings(deadline=None, max_examples=examples(10))
def test_latents_that_move_along_a_line(mean, direction, size):
    """Covariances of rank one, with differences that are certain; the truth in ball arithmetic."""
    line = size * np.array(direction[: len(mean)])
    p, error = model.expectation_and_error([mean], [np.multiply.outer(line, line)])
    before, ctx.prec = ctx.prec, 100
    assert_encloses(p[0], error[0], line_reference(mean, line))
    ctx.prec = before
    assert (error <= 1e-4).all()


@given(seed=st.integers(0, 10**6), classes=st.sampled_from([4, 5, 7]))
@settings(deadline=None, max_examples=examples(60))
def test_hopeless_classes_leave_the_three_others(seed, classes):
    """All but three classes far below: the tensor rule of three classes is a reference for any covariance."""
    rng = np.random.default_rng(seed)
    cov = random_covariance(rng, classes)
    mean = rng.standard_normal(classes) * rng.choice([0.3, 2.0])
    mean[3:] -= 400 + 20 * np.sqrt(cov.max())
    p, error = model.expectation_and_error([mean], [cov])
    q, other = model.expectation_and_error([mean[:3]], [cov[:3, :3]])
    assert (np.abs(p[0, :3] - q[0]) <= error[0, :3] + other[0]).all()


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-4, 1e-2])
def test_nearly_equal_latents(apart):
    rng = np.random.default_rng(7)
    A = np.diag(rng.uniform(0.5, 1.5, 4))
    A[1] = A[0]
    A[1, 1] += np.sqrt(apart)
    cov, mean = A @ A.T, rng.standard_normal(4)
    p, error = model.expectation_and_error([mean], [cov])
    assert (np.abs(p[0] - grid_reference(mean, cov, 0.15)) <= error[0] + 1e-8).all()
    assert (error <= 1e-4).all()


def test_certain_latents_are_exact():
    p, error = model.expectation_and_error([[0.0, 1.0, 2.0, -1.0]], np.zeros((1, 4, 4)))
    exact = np.exp([0.0, 1.0, 2.0, -1.0])
    np.testing.assert_allclose(p[0], exact / exact.sum(), atol=1e-11)
    assert (error <= 1e-9).all()


@pytest.mark.parametrize("size", [1e-150, 1e-20, 1e-8, 1e8, 1e90])
def test_any_scale_of_random_covariances(size):
    rng = np.random.default_rng(13)
    for classes in (4, 7):
        for _ in range(4):
            A = rng.standard_normal((classes, rng.integers(1, classes + 1)))
            cov = size * (A @ A.T)
            p, error = model.expectation_and_error(
                rng.standard_normal((1, classes)), 0.5 * (cov + cov.T)[None]
            )
            assert p.sum() == pytest.approx(1.0)
            assert ((error >= 0) & (error <= 1)).all()


@pytest.mark.full
@pytest.mark.parametrize("scale", [0.3, 3.0, 60.0])
def test_ten_classes_against_long_monte_carlo(scale):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((10, 10))
    cov = scale * (0.5 * np.eye(10) + A @ A.T / 30)
    mean = rng.standard_normal(10) * np.sqrt(scale)
    p, error = model.expectation_and_error([mean], [cov])
    assert (error <= 3e-3).all()
    sums, squares, count = np.zeros(10), np.zeros(10), 0
    L = np.linalg.cholesky(cov)
    for _ in range(60):
        f = mean + rng.standard_normal((100_000, 10)) @ L.T
        q = np.exp(f - f.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        sums, squares, count = sums + q.sum(axis=0), squares + (q * q).sum(axis=0), count + len(q)
    average = sums / count
    deviation = np.sqrt((squares / count - average**2) / count)
    assert (np.abs(p[0] - average) <= error[0] + 5 * deviation).all()


@pytest.mark.parametrize("classes", [4, 7, 10])
def test_posteriors_are_known_to_four_digits(classes):
    for seed in range(6):
        post = random_model(Setting("correlated", classes, 10, 2, 1.0, seed))
        X = post.centres[:3] + 0.1
        mean, cov = post.latent(X)
        p, error = model.expectation_and_error(mean, cov)
        assert (error <= 1e-4).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


# Laws.


def test_permuting_classes_permutes_the_values():
    rng = np.random.default_rng(8)
    post = random_model(Setting("correlated", 6, 10, 2, 1.0, 4))
    mean, cov = post.latent(post.centres[:4] + 0.2)
    order = rng.permutation(6)
    p, error = model.expectation_and_error(mean, cov)
    q, _ = model.expectation_and_error(mean[:, order], cov[:, order][:, :, order])
    assert (np.abs(q - p[:, order]) <= 2 * error[:, order]).all()


def test_a_row_does_not_depend_on_its_company():
    rng = np.random.default_rng(9)
    cov = np.stack([random_covariance(rng, 5) for _ in range(6)])
    mean = rng.standard_normal((6, 5))
    whole = model.expectation(mean, cov)
    for i in range(6):
        np.testing.assert_allclose(
            model.expectation(mean[i : i + 1], cov[i : i + 1])[0], whole[i], atol=1e-13
        )


def test_common_shifts_of_correlated_latents_change_nothing():
    rng = np.random.default_rng(10)
    A = rng.standard_normal((6, 6))
    cov, mean = np.eye(6) + 0.2 * A @ A.T, rng.standard_normal(6)
    x = rng.uniform(0, 3, 6)
    p, error = model.expectation_and_error([mean, mean + 50.0], [cov, cov + x[:, None] + x])
    assert (np.abs(p[0] - p[1]) <= error[0] + error[1]).all()
    assert (error <= 1e-4).all()


def test_fewer_nodes_are_an_honest_choice():
    """Rules of any accuracy agree within their bounds."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((8, 8))
    cov, mean = 4 * np.eye(8) + 0.5 * A @ A.T, rng.standard_normal(8)
    best = correlated_rules(cov[None], 1e-6, 5000)[0].integral(mean)
    for target in (0.3, 1e-1, 1e-2, 1e-3):
        rule = correlated_rules(cov[None], target, 5000)[0]
        p, error = rule.integral(mean)
        assert (np.abs(p - best.p) <= error + best.error).all()
        assert rule.distance <= 1.01 * target


def test_ranges_of_a_model_with_a_large_variance_are_not_trivial():
    """A kernel of variance 100 and ten classes: the predictor's error used to be near 1."""
    rng = np.random.default_rng(12)
    y = np.arange(60) % 10
    X = 3.0 * np.stack([np.cos(y), np.sin(y)], axis=1) + rng.standard_normal((60, 2)) * 0.3
    post = gc.GPClassifier(gc.RBF(1.5, 100.0), likelihood="softmax", max_evals=0).fit(X, y).posterior_
    answer = gc.probability_range(post, gc.Ball(X[0], 0.01), 0, tolerance=0.02)
    assert answer.status == "converged"
    assert answer.upper - answer.lower < 0.1

"""The logistic-normal integral against ball arithmetic: values, derivatives, error bounds, tails."""

from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from gpcert.likelihoods import Logit
from gpcert.likelihoods.integrals.logistic_normal import _EDGES, _narrow_table, _wide_table

logit = Logit()
SETTINGS = settings(deadline=None, max_examples=40)
means = st.floats(-60, 60)
deviations = st.floats(0.01, 12)


@pytest.fixture(autouse=True)
def precision():
    before = ctx.prec
    ctx.prec = 160
    yield
    ctx.prec = before


def mode(m: float, v: float) -> float:
    """argmax of sigma(f) N(f; m, v), by bisection."""
    low, high = m, m + v
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if middle - m - v * expit(-middle) > 0 else (middle, high)
    return low


def reference(m: float, v: float) -> tuple[arb, arb, arb]:
    """Balls around log E sigma(f), f ~ N(m, v), and its first two derivatives in m.

    Integrated over 16 standard deviations around the mode: what is outside is below e^-100 of the whole.
    """
    centre, s = mode(m, v), float(np.sqrt(v))
    mean, var = acb(m), acb(v)
    top = -((acb(centre) - mean) ** 2) / (2 * var) + min(centre, 0.0)

    def density(power: int):
        def integrand(f: acb, _: bool) -> acb:
            # Two forms of the same functions: the one whose exponential is small stays finite.
            if f.real.mid() > 0:
                sigma, rest = 1 / (1 + (-f).exp()), (-f).exp() / (1 + (-f).exp())
            else:
                sigma, rest = f.exp() / (1 + f.exp()), 1 / (1 + f.exp())
            return sigma * rest**power * (-((f - mean) ** 2) / (2 * var) - top).exp()

        return integrand

    pieces = int(2 * s) + 1
    points = [acb(centre + 16 * s * (2 * i / pieces - 1)) for i in range(pieces + 1)]
    tolerance = arb(2) ** -110

    def integral(power: int) -> arb:
        total = acb(0)
        for a, b in pairwise(points):
            total += acb.integral(density(power), a, b, rel_tol=tolerance, abs_tol=tolerance)
        return total.real

    z, first, second = integral(0), integral(1), integral(2)
    d1 = first / z
    log_z = z.log() + top.real - (2 * arb.pi() * arb(v)).sqrt().log()
    return log_z, d1, 2 * second / z - d1 - d1 * d1


def distance(computed: float, exact: arb) -> float:
    """An upper bound on |computed - exact|."""
    assert exact.is_finite()
    return float(abs(arb(float(computed)) - exact).upper())


@SETTINGS
@given(means, deviations)
@example(-1.0, 1e-3)
@example(-8.0, 4.0)  # at the reflection m = -v/2 of the wide rule
@example(-2.0, 2.0)  # at the switch between the rules
@example(-2.0, float(np.nextafter(2, 3)))
@example(40.0, 2.5)
def test_expectation_and_tilted_meet_their_bounds(m, s):
    v = s * s
    log_z, d1, d2 = reference(m, v)
    tilted = logit.tilted(1.0, m, v)
    assert distance(tilted.log_z, log_z) <= logit.log_expectation_error(m, v)
    assert distance(tilted.d1, d1) <= 1e-14
    assert distance(tilted.d2, d2) <= 1e-14
    p = log_z.exp()
    assert distance(logit.expectation(m, v), p) <= logit.expectation_error(m, v) <= 1e-13
    by_mean, by_var = logit.expectation_gradient(m, v)
    assert distance(by_mean, p * d1) <= 1e-14
    assert distance(by_var, p * (d2 + d1 * d1) / 2) <= 1e-14


@pytest.mark.parametrize("s", [0.1, 0.9, 1.9, 2.1, 5.0, 15.0])
@pytest.mark.parametrize("depth", [30.0, 200.0, 460.0])
def test_log_z_is_accurate_where_z_underflows_any_absolute_error(s, depth):
    """Means chosen so that Z is about e^-depth, down to 1e-200."""
    v = s * s
    m = -depth - v / 2 if depth > v / 2 else -s * np.sqrt(2 * depth)
    log_z, d1, d2 = reference(m, v)
    tilted = logit.tilted(1.0, m, v)
    bound = float(logit.log_expectation_error(m, v))
    assert float(log_z) < -0.5 * depth
    assert distance(tilted.log_z, log_z) <= bound <= 1e-12
    assert distance(logit.expectation(m, v), log_z.exp()) <= 1e-12 * float(log_z.exp())
    assert distance(tilted.d1, d1) <= 1e-14
    assert distance(tilted.d2, d2) <= 1e-14


@pytest.mark.parametrize("s", [30.0, 100.0])
@pytest.mark.parametrize("t", [-40.0, -10.0, -1.0, 0.0, 3.0])
def test_wide_posteriors(s, t):
    """Variances to 10,000; d2 is held to its own scale 1/v."""
    v, m = s * s, t * s
    log_z, d1, d2 = reference(m, v)
    tilted = logit.tilted(1.0, m, v)
    assert distance(tilted.log_z, log_z) <= logit.log_expectation_error(m, v)
    assert distance(tilted.d1, d1) <= 1e-14
    assert distance(tilted.d2, d2) <= 1e-12 / v


@pytest.mark.parametrize("t", [-1e3, -30.0, -1.0, 0.0, 2.0])
@pytest.mark.parametrize("s", [1e8, 1e30])
def test_huge_variances_approach_the_normal_law(s, t):
    """For s -> inf the logistic is a step: log Phi(t) and its derivatives, corrections of order 1/v."""
    ctx.prec = 600
    z = arb(t)
    mills = (-z / arb(2).sqrt()).erfc() / 2
    log_phi = mills.log()
    ratio = (-z * z / 2).exp() / (2 * arb.pi()).sqrt() / mills
    tilted = logit.tilted(1.0, t * s, s * s)
    scale = max(1.0, t * t)
    assert distance(tilted.log_z, log_phi) <= 1e-12 * scale
    assert distance(tilted.d1 * s, ratio) <= 1e-12 * scale
    shrink = 1 - ratio * (z + ratio)  # 1 + v d2, which expectation propagation divides by
    assert distance(1 + s * s * tilted.d2, shrink) <= 1e-12


def test_labels_flip_the_sign():
    m, v = np.array([-3.0, 0.5, 4.0]), np.array([0.3, 2.0, 9.0])
    up, down = logit.tilted(1.0, m, v), logit.tilted(-1.0, -m, v)
    np.testing.assert_array_equal(up.log_z, down.log_z)
    np.testing.assert_array_equal(up.d1, -down.d1)
    np.testing.assert_array_equal(up.d2, down.d2)


def test_zero_variance_is_the_logistic_itself():
    f = np.linspace(-30, 30, 61)
    exact = logit.log_likelihood(1.0, f)
    tilted = logit.tilted(1.0, f, 0.0)
    np.testing.assert_allclose(tilted.log_z, exact.value, rtol=1e-13, atol=2e-15)
    np.testing.assert_allclose(tilted.d1, exact.d1, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(tilted.d2, exact.d2, rtol=1e-12, atol=1e-15)


def test_batches_equal_single_points():
    """Grouping by node count, blocks and order change nothing beyond rounding."""
    rng = np.random.default_rng(0)
    m, v = rng.normal(size=(60, 50)) * 4, np.exp(3 * rng.normal(size=(60, 50)))
    together = logit.tilted(1.0, m, v)
    for i, j in [(0, 0), (17, 23), (59, 49)]:
        alone = logit.tilted(1.0, m[i, j], v[i, j])
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[i, j], b, rtol=1e-12, atol=1e-15)


def test_the_rules_agree_where_they_meet():
    """Two independent rules at s = 2: the narrow one below, the wide one above."""
    m = np.linspace(-30, 30, 241)
    below, above = logit.tilted(1.0, m, 4.0), logit.tilted(1.0, m, np.nextafter(4.0, 5.0) * (1 + 4e-16))
    for a, b in zip(below, above, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-14)


def test_tables_state_a_tiny_truncation():
    tables = [_narrow_table(edge) for edge in _EDGES]
    assert all(0 < t.truncation < 1e-16 for t in tables)
    assert 0 < _wide_table().truncation < 1e-15
    assert [t.nodes.size for t in tables] == sorted(t.nodes.size for t in tables)


@pytest.mark.parametrize("s", [2.0, 3.0, 4.0])
def test_the_strip_bound_holds_and_has_the_right_order(s):
    """Relative error of the plain trapezoid rule at coarse steps: below the bound, and of its order.

    Reaching the poles of sigma at Im f = pi the rate is e^(-2 pi^2 / (s h)): a narrower strip would show.
    """
    m = -0.3
    exact = float(logit.expectation(m, s * s))
    a = 0.93 * np.pi / s
    errors, bounds = [], []
    for h in np.array([0.9, 0.7, 0.5]) * 2 / s:
        z = h * np.arange(-40, 41)
        rule = h / np.sqrt(2 * np.pi) * np.exp(-0.5 * z * z) @ expit(m + s * z)
        errors.append(abs(rule / exact - 1))
        bounds.append(2 * np.exp(a * a / 2) / np.cos(s * a / 2) / np.expm1(2 * np.pi * a / h))
    assert (np.array(errors) <= np.array(bounds)).all()
    rate = np.log(errors[0] / errors[-1]) / np.log(bounds[0] / bounds[-1])
    assert 0.9 < rate < 1.3


@pytest.mark.parametrize("s", [2.5, 8.0])
@pytest.mark.parametrize("m", [-3.0, 0.7])
def test_the_wide_bound_holds_at_coarse_steps(s, m):
    exact, v, c, theta = float(logit.expectation(m, s * s)), s * s, 8 / np.pi, 2.9
    errors = []
    for h in (2.4, 1.8, 1.2):
        f = h * np.arange(-60, 61)
        delta = expit(f) - ndtr(f / np.sqrt(c))
        rule = ndtr(m / np.sqrt(v + c)) + h * delta @ np.exp(-0.5 * (f - m) ** 2 / v) / np.sqrt(2 * np.pi * v)
        strip = 1 / np.cos(theta / 2) + np.exp(theta**2 / (2 * c))
        errors.append(abs(rule / exact - 1))
        assert errors[-1] <= 2 * strip * np.exp(theta**2 / (2 * v)) / np.expm1(2 * np.pi * theta / h)
    assert errors[-1] < 1e-2 * errors[0]

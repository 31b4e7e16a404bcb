"""Declared facts of the profiles, swept in ball arithmetic.

The truth here is an independent formula of each profile in arb power series: phi and its derivatives at z
are the Taylor coefficients of phi(z + t), computed by python-flint and enclosed rigorously.
"""

import math
from itertools import pairwise

import flint
import numpy as np
import pytest
from flint import arb, arb_series
from hypothesis import given
from hypothesis import strategies as st

from gpcert.errors import InvalidInputError
from gpcert.kernels import RBF, Matern12, Matern32, Matern52, RationalQuadratic

ORDERS = (1, 2, 3, 4)
EPS = 2.0**-52

KERNELS = [
    RBF(),
    Matern12(),
    Matern32(),
    Matern52(),
    RationalQuadratic(alpha=0.3),
    RationalQuadratic(alpha=1.0),
    RationalQuadratic(alpha=40.0),
]
EACH = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


@pytest.fixture(autouse=True)
def _precision():
    before = flint.ctx.prec, flint.ctx.cap
    flint.ctx.prec, flint.ctx.cap = 160, 5
    yield
    flint.ctx.prec, flint.ctx.cap = before


def exponent(kernel, z):
    """-log of the exponential part of phi, as an arb power series."""
    if isinstance(kernel, RBF):
        return z
    if isinstance(kernel, RationalQuadratic):
        return (z / arb(kernel.alpha) + 1).log() * arb(kernel.alpha)
    nu2 = {Matern12: 1, Matern32: 3, Matern52: 5}[type(kernel)]
    return (z * (2 * nu2)).sqrt()


def truth(kernel, z):
    """Enclosures of phi(z), phi'(z), ..., phi''''(z) over the ball z > 0."""
    s = exponent(kernel, arb_series([arb(z), 1]))
    phi = (-s).exp()
    if isinstance(kernel, Matern32):
        phi = (s + 1) * phi
    if isinstance(kernel, Matern52):
        phi = (s * s / 3 + s + 1) * phi
    return [phi[m] * math.factorial(m) for m in range(5)]


@EACH
def test_values_and_derivatives_are_within_a_few_ulps_of_the_truth(kernel):
    points = np.concatenate([np.geomspace(1e-12, 1e4, 300), np.random.default_rng(0).uniform(0, 20, 100)])
    computed = [kernel.profile.value(points)] + [kernel.profile.derivative(points, m) for m in ORDERS]
    for i, z in enumerate(points):
        # Rounding s by one ulp moves exp(-s) by s ulps; s is rounded a few times.
        s = float(exponent(kernel, arb_series([arb(z)]))[0].mid())
        for m, exact in enumerate(truth(kernel, z)):
            error = abs(arb(float(computed[m][i])) - exact)
            assert error <= (12 + 3 * s) * EPS * abs(exact) + arb(1e-300), (z, m)


def closed_form(kernel, z):
    """The same five numbers for Matern 3/2 and 5/2 without the cancellation of Taylor series of balls."""
    rho = (z * 2).sqrt()
    q = arb(3 if isinstance(kernel, Matern32) else 5).sqrt()
    E = (-q * rho).exp()
    if isinstance(kernel, Matern32):
        third, fourth = q / rho**2 + 1 / rho**3, q**2 / rho**3 + 3 * q / rho**4 + 3 / rho**5
        return [(1 + q * rho) * E, -3 * E, 3 * q * E / rho, -3 * q * E * third, 3 * q * E * fourth]
    slope = -(1 + q * rho) * E * 5 / 3
    fourth = q**2 / rho**2 + q / rho**3
    return [(1 + q * rho + 5 * rho**2 / 3) * E, slope, 25 * E / 3, -25 * q * E / rho / 3, 25 * E * fourth / 3]


@pytest.mark.parametrize("kernel", [Matern32(), Matern52()], ids=repr)
def test_closed_forms_are_the_taylor_coefficients(kernel):
    flint.ctx.prec = 600
    for z in np.geomspace(1e-12, 1e4, 100):
        for one, other in zip(closed_form(kernel, arb(z)), truth(kernel, z), strict=True):
            assert abs(one - other) <= arb("1e-60") * abs(one)


def signs_are_certain(kernel, low, high, depth=0):
    """(-1)^m phi^(m) >= 0 on all of [low, high]; undecided balls are halved."""
    z = arb(0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-9))
    enclosures = closed_form if isinstance(kernel, Matern32 | Matern52) else truth
    if all((-1) ** m * derivative >= 0 for m, derivative in enumerate(enclosures(kernel, z))):
        return True
    middle = 0.5 * (low + high)
    halves = ((low, middle), (middle, high))
    return depth < 12 and all(signs_are_certain(kernel, a, b, depth + 1) for a, b in halves)


@EACH
def test_profiles_are_completely_monotone_on_balls_covering_the_line(kernel):
    edges = np.geomspace(1e-12, 1e4, 400)
    for low, high in pairwise(edges):
        assert signs_are_certain(kernel, low, high), (low, high)


@EACH
def test_smoothness_counts_the_derivatives_finite_at_zero(kernel):
    flint.ctx.prec = 600
    profile = kernel.profile
    assert profile.value(np.array(0.0)) == 1.0
    near = truth(kernel, arb("1e-45"))
    for m in ORDERS:
        at_zero = float(profile.derivative(np.array(0.0), m))
        if m <= profile.smoothness:
            assert abs(arb(at_zero) - near[m]) <= 1e-14 * abs(near[m])
        else:
            assert at_zero == (-1) ** m * math.inf
            assert abs(near[m]) > 1e20


@EACH
@given(z=st.floats(min_value=0.0, allow_nan=False))
def test_never_nan_and_signed_from_zero_to_infinity(kernel, z):
    z = np.array([z])
    assert 0.0 <= kernel.profile.value(z)[0] <= 1.0
    for m in ORDERS:
        assert (-1) ** m * kernel.profile.derivative(z, m)[0] >= 0.0


@EACH
@given(z=st.floats(0.0, 1e4), w=st.floats(0.0, 1e4))
def test_values_decrease(kernel, z, w):
    near, far = sorted((z, w))
    value = kernel.profile.value(np.array([near, far]))
    # Up to the rounding of the values themselves.
    assert value[1] <= value[0] * (1 + 4 * EPS * (4 + near))


@pytest.mark.parametrize("order", [0, 5, -1])
@EACH
def test_other_orders_are_refused(kernel, order):
    with pytest.raises(InvalidInputError, match="order must be"):
        kernel.profile.derivative(np.ones(2), order)


@given(z=st.floats(1e-6, 1e3), log_alpha=st.floats(-3.0, 6.0))
def test_rational_quadratic_slope_in_log_alpha(z, log_alpha):
    alpha = math.exp(log_alpha)
    flint.ctx.prec = 160

    def phi(a):
        return ((arb(z) / a + 1).log() * -a).exp()

    a = arb_series([arb(alpha), 1])
    slope = ((arb(z) / a + 1).log() * -a).exp()[1] * arb(alpha)
    computed = float(RationalQuadratic(alpha=alpha).profile.alpha_slope(np.array([z]))[0])
    # log1p(u) - u/(1 + u) cancels for small u = z/alpha: an error of a few ulps of z phi remains.
    assert abs(arb(computed) - slope) <= 8 * EPS * (1 + z) * (abs(slope) + z * phi(arb(alpha)))

"""Laws of the two-class likelihoods and of one-vs-rest: containment, tails, derivatives, errors."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from gpcert.errors import InvalidInputError
from gpcert.likelihoods import Link, Logit, OneVsRest, Probit, Softmax, likelihood_from, likelihood_from_dict
from gpcert.likelihoods.integrals.logistic_normal import hazard

SETTINGS = settings(deadline=None, max_examples=60)


def enclose_logistic(lower, upper):
    return expit(lower) * (1 - 1e-14), np.minimum(expit(upper) * (1 + 1e-14) + 1e-300, 1.0)


def enclose_normal(lower, upper):
    return ndtr(lower) * (1 - 1e-12), np.minimum(ndtr(upper) * (1 + 1e-12) + 1e-300, 1.0)


def logistic_link(**options):
    return Link(expit, enclose_logistic, "logistic", symmetric=True, **options)


TRAINABLE = [Probit(), Probit(scale=0.3), Probit(scale=40.0), Logit()]
BINARY = [*TRAINABLE, logistic_link(tolerance=1e-3)]
EXTREMES = np.concatenate([-np.logspace(99, -99, 67), [0.0], np.logspace(-99, 99, 67)])
VARIANCES = np.concatenate([[0.0, 5e-324, 1e-310], np.logspace(-99, 99, 67)])


@pytest.fixture(autouse=True)
def precision():
    before = ctx.prec
    ctx.prec = 200
    yield
    ctx.prec = before


def ids(likelihood):
    return repr(likelihood)


def normal_cdf(z: arb) -> arb:
    return (-z / arb(2).sqrt()).erfc() / 2


def probit_argument(scale: float, m: float, v: float) -> arb:
    return arb(m) / (arb(scale) ** -2 + arb(v)).sqrt()


def distance(computed: float, exact: arb) -> float:
    """An upper bound on |computed - exact|."""
    assert exact.is_finite()
    return float(abs(arb(float(computed)) - exact).upper())


# Laws that every two-class likelihood obeys.


@pytest.mark.parametrize("likelihood", TRAINABLE, ids=ids)
def test_tails_are_finite_monotone_and_in_range(likelihood):
    mean, var = np.meshgrid(EXTREMES, VARIANCES)
    p = likelihood.expectation(mean, var)
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p, axis=1) >= 0).all()
    assert (np.abs(p[:, EXTREMES == 0] - 0.5) <= 1e-13).all()
    error = likelihood.expectation_error(mean, var)
    assert ((error > 0) & (error < 1e-13)).all()
    for derivative in likelihood.expectation_gradient(mean, var):
        assert np.isfinite(derivative).all()
    for derivative in likelihood.log_expectation_gradient(mean, var):
        assert np.isfinite(derivative).all()
    for sign in (-1.0, 1.0):
        log_z, d1, d2 = likelihood.tilted(sign, mean, var)
        assert np.isfinite(log_z).all()
        assert (log_z <= 0).all()
        assert np.isfinite(d1).all()
        assert (sign * d1 >= 0).all()
        assert (d2 <= 0).all()
        assert (1 + var * d2 > 0).all()
        value, *slopes = likelihood.log_likelihood(sign, EXTREMES)
        assert (value <= 0).all()
        assert all(np.isfinite(s).all() for s in slopes)
        assert (slopes[1] <= 0).all()


def test_tails_of_a_link():
    """The same for a link, whose guarantee is the error bound: monotone up to it."""
    link = logistic_link(tolerance=0.01)
    mean, var = np.meshgrid(EXTREMES[::11], VARIANCES[::11])
    p, error = link.expectation(mean, var), link.expectation_error(mean, var)
    assert ((p >= 0) & (p <= 1)).all()
    assert (error <= 0.01 + 1e-12).all()
    assert (np.diff(p, axis=1) >= -(error[:, 1:] + error[:, :-1])).all()
    assert all(np.isfinite(g).all() for g in link.expectation_gradient(mean, var))


@pytest.mark.parametrize("likelihood", BINARY, ids=ids)
@settings(deadline=None, max_examples=25)
@given(m=st.floats(-1e3, 1e3), step=st.floats(0, 10), v=st.floats(0, 1e4))
def test_monotone_and_symmetric(likelihood, m, step, v):
    p, q = likelihood.expectation(m, v), likelihood.expectation(m + step, v)
    error = likelihood.expectation_error(m, v) + likelihood.expectation_error(m + step, v)
    assert p <= q + error
    assert likelihood.symmetric
    assert abs(p + likelihood.expectation(-m, v) - 1) <= 2 * likelihood.expectation_error(m, v) + 1e-15


@pytest.mark.parametrize("likelihood", BINARY, ids=ids)
def test_variance_pulls_towards_one_half(likelihood):
    """The corner lemma: dP/dS has the sign of -mean."""
    mean = np.array([-2.0, -0.1, 0.1, 2.0])[:, None]
    _, by_var = likelihood.expectation_gradient(mean, np.array([0.1, 1.0, 30.0]))
    assert (np.sign(by_var) == -np.sign(mean)).all()


@pytest.mark.parametrize("likelihood", BINARY, ids=ids)
def test_gradient_is_the_difference_quotient(likelihood):
    mean, var = np.meshgrid(np.linspace(-3, 3, 7), [0.05, 1.0, 20.0])
    exact = Logit() if isinstance(likelihood, Link) else likelihood
    by_mean, by_var = likelihood.expectation_gradient(mean, var)
    h = 1e-5
    quotient = (exact.expectation(mean + h, var) - exact.expectation(mean - h, var)) / (2 * h)
    tolerance = 1e-5 if isinstance(likelihood, Link) else 1e-8
    np.testing.assert_allclose(by_mean, quotient, rtol=0, atol=tolerance * max(1, np.abs(quotient).max()))
    quotient = (exact.expectation(mean, var + h) - exact.expectation(mean, var - h)) / (2 * h)
    np.testing.assert_allclose(by_var, quotient, rtol=0, atol=tolerance * max(1, np.abs(quotient).max()))


@pytest.mark.parametrize("likelihood", BINARY, ids=ids)
def test_logarithms_agree_with_values(likelihood):
    mean, var = np.meshgrid(np.linspace(-4, 4, 9), [0.0, 0.5, 9.0])
    p, log_p = likelihood.expectation(mean, var), likelihood.log_expectation(mean, var)
    np.testing.assert_allclose(np.exp(log_p), p, rtol=1e-13)
    for plain, logged in zip(
        likelihood.expectation_gradient(mean, var),
        likelihood.log_expectation_gradient(mean, var),
        strict=True,
    ):
        np.testing.assert_allclose(logged * p, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("likelihood", TRAINABLE, ids=ids)
def test_tilted_is_the_logarithm_of_the_expectation(likelihood):
    mean, var = np.meshgrid(np.linspace(-4, 4, 9), [0.0, 0.5, 9.0])
    for sign in (-1.0, 1.0):
        log_z, d1, d2 = likelihood.tilted(sign, mean, var)
        np.testing.assert_allclose(log_z, likelihood.log_expectation(sign * mean, var), rtol=1e-13)
        h = 1e-5
        up, down = likelihood.tilted(sign, mean + h, var), likelihood.tilted(sign, mean - h, var)
        scale = max(1.0, float(np.abs(d2).max()))
        np.testing.assert_allclose(d1, (up.log_z - down.log_z) / (2 * h), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(d2, (up.d1 - down.d1) / (2 * h), rtol=1e-5, atol=1e-7 * scale)


@pytest.mark.parametrize("likelihood", TRAINABLE, ids=ids)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_log_likelihood_derivatives(likelihood, sign):
    f = np.linspace(-6, 6, 25) / (likelihood.scale if isinstance(likelihood, Probit) else 1.0)
    h = 1e-5 * float(np.ptp(f)) / 12
    here = likelihood.log_likelihood(sign, f)
    up, down = likelihood.log_likelihood(sign, f + h), likelihood.log_likelihood(sign, f - h)
    np.testing.assert_allclose(np.exp(here.value), likelihood.value(sign * f), rtol=1e-12)
    for order in range(3):
        quotient = (up[order] - down[order]) / (2 * h)
        scale = np.abs(here[order + 1]).max()
        np.testing.assert_allclose(here[order + 1], quotient, rtol=1e-6, atol=1e-7 * scale)


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), logistic_link()], ids=ids)
def test_bad_moments_are_refused(likelihood):
    with pytest.raises(InvalidInputError, match=r"var must be finite and >= 0, got -1\.0"):
        likelihood.expectation(0.0, [1.0, -1.0])
    with pytest.raises(InvalidInputError, match="mean must be finite, got nan"):
        likelihood.expectation(np.nan, 1.0)


@pytest.mark.parametrize("likelihood", TRAINABLE, ids=ids)
def test_bad_labels_are_refused(likelihood):
    with pytest.raises(InvalidInputError, match=r"y must hold \+1 and -1, got 0\.0"):
        likelihood.tilted([1.0, 0.0], 0.0, 1.0)
    with pytest.raises(InvalidInputError, match=r"y must hold \+1 and -1, got 2\.0"):
        likelihood.log_likelihood(2.0, 0.0)


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), logistic_link()], ids=ids)
def test_shapes_broadcast_and_may_be_empty(likelihood):
    assert likelihood.expectation(0.0, 1.0).shape == ()
    assert likelihood.expectation(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert likelihood.expectation_error(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert likelihood.expectation(np.zeros(0), np.ones(0)).shape == (0,)
    assert all(g.shape == (2, 3) for g in likelihood.expectation_gradient(np.zeros((2, 1)), np.ones(3)))


# The probit in ball arithmetic.


@SETTINGS
@given(z=st.one_of(st.floats(-50, 50), st.floats(-1e3, -3), st.floats(-4, -2)))
def test_hazard_in_both_tails(z):
    ctx.prec = 400 + int(3 * z * z) // 400
    exact_z = arb(z)
    ratio = (-exact_z * exact_z / 2).exp() / (2 * arb.pi()).sqrt() / normal_cdf(exact_z)
    excess = exact_z + ratio
    spread = 1 - ratio * excess
    third = ratio * (excess * excess - spread)
    exact = (ratio, excess, -ratio * excess, spread, third)
    for computed, value in zip(hazard(np.array(z)), exact, strict=True):
        assert distance(computed, value) <= 3e-12 * abs(float(value)) + 1e-300


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
@SETTINGS
@given(t=st.floats(-37, 37), v=st.floats(0, 1e6))
def test_probit_meets_its_bounds(scale, t, v):
    probit = Probit(scale)
    m = t * float(np.sqrt(scale**-2 + v))
    exact = normal_cdf(probit_argument(scale, m, v))
    assert distance(probit.expectation(m, v), exact) <= probit.expectation_error(m, v) <= 4e-15
    assert distance(probit.log_expectation(m, v), exact.log()) <= probit.log_expectation_error(m, v)


@pytest.mark.parametrize("t", [-1e4, -1e3, -38.0, -3.0, -2.999, 0.0, 5.0, 30.0])
@pytest.mark.parametrize("v", [0.0, 0.7, 1e8])
def test_probit_tilted_in_the_tails(t, v):
    ctx.prec = 600
    scale = 0.8
    m = t * float(np.sqrt(scale**-2 + v))
    log_z, d1, d2 = Probit(scale).tilted(1.0, m, v)
    z, deviation = probit_argument(scale, m, v), (arb(scale) ** -2 + arb(v)).sqrt()
    ratio = (-z * z / 2).exp() / (2 * arb.pi()).sqrt() / normal_cdf(z)
    assert distance(log_z, normal_cdf(z).log()) <= 1e-14 * max(1.0, t * t)
    assert distance(d1, ratio / deviation) <= 1e-13 * float(ratio / deviation) + 1e-200
    d2_exact = -ratio * (z + ratio) / deviation**2
    assert distance(d2, d2_exact) <= 1e-13 * abs(float(d2_exact)) + 1e-200


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 1e30, [1.0, 2.0], "wide"])
def test_probit_scale_is_checked(scale):
    with pytest.raises(InvalidInputError, match="scale must be"):
        Probit(scale)


# Links given by an enclosing function.


@SETTINGS
@given(m=st.floats(-30, 30), v=st.floats(0, 400))
def test_link_contains_the_truth(m, v):
    """The probit as a link: its expectation is known in closed form."""
    link = Link(ndtr, enclose_normal, "normal", symmetric=True, tolerance=1e-4)
    exact = normal_cdf(probit_argument(1.0, m, v))
    error = link.expectation_error(m, v)
    assert distance(link.expectation(m, v), exact) <= error <= 1.1e-4
    log_error = link.log_expectation_error(m, v)
    assert np.isinf(log_error) or distance(link.log_expectation(m, v), exact.log()) <= log_error


def test_link_reaches_the_requested_tolerance():
    coarse, fine = logistic_link(tolerance=1e-3), logistic_link(tolerance=1e-5)
    m, v = np.array([-2.0, 0.3, 1.0]), np.array([0.2, 1.0, 50.0])
    assert (coarse.expectation_error(m, v) <= 1e-3 + 1e-9).all()
    assert (fine.expectation_error(m, v) <= 1e-5 + 1e-9).all()
    assert (np.abs(fine.expectation(m, v) - Logit().expectation(m, v)) <= fine.expectation_error(m, v)).all()


def test_link_with_a_jump_and_a_floor():
    """Monotone is all that is needed: 0.1 below 0, 0.8 from 0 on; E = 0.1 + 0.7 Phi(m/s)."""

    def value(f):
        return np.where(f < 0, 0.1, 0.8)

    def enclose(lower, upper):
        return value(lower), value(upper)

    step = Link(value, enclose, "step", tolerance=1e-4)
    assert not step.symmetric
    m, v = np.array([-1.0, 0.2, 3.0]), np.array([1.0, 4.0, 0.01])
    exact = 0.1 + 0.7 * ndtr(m / np.sqrt(v))
    assert (np.abs(step.expectation(m, v) - exact) <= step.expectation_error(m, v)).all()


def test_an_inconsistent_link_is_refused():
    with pytest.raises(InvalidInputError, match="value must be increasing"):
        Link(lambda f: expit(-f), lambda a, b: (expit(-b), expit(-a)))
    with pytest.raises(InvalidInputError, match=r"value must lie in \[0, 1\]"):
        Link(lambda f: 2 * expit(f), lambda a, b: (2 * expit(a), 2 * expit(b)))
    with pytest.raises(InvalidInputError, match="enclose must contain value"):
        Link(expit, lambda a, b: (expit(a), expit(a)))
    with pytest.raises(InvalidInputError, match="enclose must return lo <= hi"):
        Link(expit, lambda a, b: (expit(b) + 0.1, expit(a)))
    with pytest.raises(InvalidInputError, match=r"value\(-f\) = 1 - value\(f\)"):
        Link(lambda f: expit(f - 1), lambda a, b: (0 * a, 0 * a + 1), symmetric=True)
    with pytest.raises(InvalidInputError, match="enclose must return shape"):
        Link(expit, lambda a, b: (0.0, 1.0))
    with pytest.raises(InvalidInputError, match="value must return shape"):
        Link(lambda f: 0.5, lambda a, b: (0 * a, 0 * a + 1))
    with pytest.raises(InvalidInputError, match="value must be a function"):
        Link(0.5, enclose_logistic)
    with pytest.raises(InvalidInputError, match="enclose must be a function"):
        Link(expit, None)
    with pytest.raises(InvalidInputError, match="tolerance must be"):
        logistic_link(tolerance=0)


def test_a_link_neither_trains_nor_stores():
    link = logistic_link()
    for call in (lambda: link.log_likelihood(1.0, 0.0), lambda: link.tilted(1.0, 0.0, 1.0), link.to_dict):
        with pytest.raises(InvalidInputError, match="'logistic'"):
            call()


# One-vs-rest.


@pytest.mark.parametrize("link", [Probit(), Logit()], ids=ids)
def test_one_vs_rest_is_the_ratio(link):
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=(20, 4)) * 2, rng.uniform(0, 5, size=(20, 4))
    model = OneVsRest(link)
    p = link.expectation(mean, var)
    np.testing.assert_allclose(model.expectation(mean, var), p / p.sum(axis=1, keepdims=True), rtol=1e-13)
    assert (model.expectation_error(mean, var) < 2e-13).all()


@pytest.mark.parametrize("shift", [-38.0, -100.0, -1e4])
def test_one_vs_rest_ratios_survive_underflow(shift):
    """Every p_c underflows; the ratio of two normal tails is known in ball arithmetic."""
    ctx.prec = 1000
    mean = np.array([[shift, shift - 1 / abs(shift), 2 * shift]])
    var = np.full((1, 3), 0.5)
    model = OneVsRest(Probit())
    p, error = model.expectation(mean, var)[0], model.expectation_error(mean, var)[0]
    tails = [normal_cdf(probit_argument(1.0, float(m), 0.5)) for m in mean[0]]
    total = tails[0] + tails[1] + tails[2]
    assert (error < 1e-6).all()
    for c in range(3):
        assert distance(p[c], tails[c] / total) <= error[c]


def test_one_vs_rest_extremes():
    mean = np.array([[-1e99, -1e99, -1e99], [1e99, -1e99, 0.0], [0.0, 0.0, 0.0]])
    for link in (Probit(), Logit()):
        for variance in (0.0, 1.0, 1e99):
            p = OneVsRest(link).expectation(mean, np.full(mean.shape, variance))
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
            np.testing.assert_allclose(p[[0, 2]], 1 / 3, rtol=1e-14)


@pytest.mark.parametrize("link", [Probit(), Logit()], ids=ids)
def test_one_vs_rest_gradient(link):
    rng = np.random.default_rng(1)
    mean, var = rng.normal(size=(5, 3)) * 2, rng.uniform(0.5, 5, size=(5, 3))
    model = OneVsRest(link)
    by_mean, by_var = model.expectation_gradient(mean, var)
    h = 1e-6
    for j in range(3):
        step = h * np.eye(3)[j]
        quotient = (model.expectation(mean + step, var) - model.expectation(mean - step, var)) / (2 * h)
        np.testing.assert_allclose(by_mean[:, :, j], quotient, atol=1e-8)
        quotient = (model.expectation(mean, var + step) - model.expectation(mean, var - step)) / (2 * h)
        np.testing.assert_allclose(by_var[:, :, j], quotient, atol=1e-8)


def test_one_vs_rest_is_checked():
    with pytest.raises(InvalidInputError, match="link must be a two-class likelihood"):
        OneVsRest("probit")
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        OneVsRest(Probit()).expectation([[0.0]], [[1.0]])


def test_one_vs_rest_of_a_link_contains_the_probit():
    link = Link(ndtr, enclose_normal, "normal", symmetric=True, tolerance=1e-4)
    mean, var = np.array([[0.5, -1.0, 2.0], [-50.0, -60.0, -50.0]]), np.ones((2, 3))
    error = OneVsRest(link).expectation_error(mean, var)
    truth = OneVsRest(Probit()).expectation(mean, var)
    assert (np.abs(OneVsRest(link).expectation(mean, var) - truth) <= error).all()
    assert (error[0] < 1e-3).all()
    assert (error[1] > 0.99).all()  # nothing is known about a ratio of zeros


# Names and files.


@pytest.mark.parametrize(
    "likelihood",
    [Probit(), Probit(0.1), Logit(), Softmax(), OneVsRest(Probit(3.3)), OneVsRest(Logit())],
    ids=ids,
)
def test_dictionaries_round_trip(likelihood):
    assert likelihood_from_dict(likelihood.to_dict()) == likelihood


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"name": "cauchit"},
        {"name": "probit"},
        {"name": "probit", "scale": "x"},
        {"name": "probit", "scale": (0.0).hex()},
        {"name": "probit", "scale": 1.0},
        {"name": "logit", "more": 1},
        {"name": "one_vs_rest", "link": {"name": "softmax"}},
        {"name": ["logit"]},
        [],
        None,
    ],
)
def test_damaged_descriptions_are_one_error(damaged):
    with pytest.raises(InvalidInputError, match="likelihood description"):
        likelihood_from_dict(damaged)


def test_names():
    assert likelihood_from("probit") == Probit()
    assert likelihood_from("logit") == Logit()
    assert likelihood_from("softmax") == Softmax()
    ready = OneVsRest(Logit())
    assert likelihood_from(ready) is ready
    for wrong in ("cauchit", None, 3, Logit):
        with pytest.raises(InvalidInputError, match="likelihood must be one of"):
            likelihood_from(wrong)

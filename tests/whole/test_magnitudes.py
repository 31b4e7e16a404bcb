"""All finite doubles: claims hold at every magnitude of inputs and parameters, judged in ball arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.batched.cells import _Smooth
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.errors import InvalidInputError
from gpcert.kernels import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    Sum,
    radial_terms,
)
from gpcert.posterior import Posterior
from gpcert.questions.certify import certify
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball, Box
from helpers.magnitudes import Query, falsehoods, random_query
from helpers.oracle import bits, examples
from judge.kernels import covariance

ONE = [[0.0]]


def single(kernel, weight=3.0, d=1):
    """One centre at 0, no precision: the mean is weight * k(x)."""
    return Posterior(np.zeros((1, d)), [weight], [[0.0]], kernel=kernel)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_claims_hold_at_all_magnitudes(seed):
    assert falsehoods(random_query(seed), seed) == []


HARD = {
    "rational quadratic, z/alpha overflows": (RationalQuadratic(1.0, 1.0, 1e-306), 1e3),
    "rational quadratic, z overflows": (RationalQuadratic(1.0, 1.0, 0.01), 1e160),
    "rational quadratic, short lengthscale": (RationalQuadratic(1e-160, 1.0, 0.01), 1.0),
    "rational quadratic, next to overflow": (RationalQuadratic(1.0, 1.0, 1e-4), 1e154),
    "rational quadratic, smallest alpha": (RationalQuadratic(1.0, 1.0, 5e-324), 1e150),
    "rational quadratic, largest alpha": (RationalQuadratic(1.0, 1.0, 1.7e308), 1.0),
    "shortest lengthscale": (Matern12(5e-324), 1e-323),
    "longest lengthscale": (RBF(1.7e308), 1.6e308),
    "lengthscales apart, sum": (Matern12(3e-162) + RBF(1.0), 1.0),
    "lengthscales apart, long": (RBF(1.0, 1e-3) + RBF(1e163), 1e163),
    "lengthscales apart, product": (Matern32(1e-90, 2.0) * RBF(1e80), 1e-90),
    "lengthscales far apart": (RBF(1e-17, 1e-3) + RBF(1e248), 1e248),
    "ratio of 1e120": (RBF(1.0) + RBF(1e-60), 0.1),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("weight", [3.0, -1e-40, 1e290])
def test_claims_hold_at_the_ends_of_the_doubles(name, weight):
    kernel, x = HARD[name]
    for region in (Box([x], [x]), Box([x], [min(2.0 * x, 1.7e308)]), Box([-x], [x])):
        assert falsehoods(Query(single(kernel, weight), region), 1) == []


@pytest.mark.parametrize(
    ("variance", "weight"), [(1e300, 1e180), (1e100, 1e250), (1e40, 1e290), (1e35, 1e305)]
)
def test_large_variances_times_tiny_exponentials(variance, weight):
    """exp(-z) underflows where variance * exp(-z) does not: a feature stands still far from the centre."""
    post = single(RBF(1.0, variance), weight, d=2)
    for high in (0.0, 0.01):
        assert falsehoods(Query(post, Box([38.8, 0.0], [38.8, high])), 1) == []


@pytest.mark.parametrize("kernel", [Matern12(), RBF()])
@pytest.mark.parametrize("low", [700.0, 800.0, 1e3])
def test_means_below_every_double_are_not_zero(kernel, low):
    assert falsehoods(Query(single(kernel, -1e-40), Box([low], [low + 40.0])), 1) == []


def test_ordinary_models_beside_extreme_inputs_are_still_answered():
    """Far away nothing is known of the data: P is 1/2, and that is said, not "unknown"."""
    for kernel in (RBF(), Matern52(), RBF() + Matern32(2.0)):
        for x in (1e150, 1e200, 1e300):
            answer = probability_range(single(kernel), Box([x], [2.0 * x]))
            assert answer.status == "converged"
            assert answer.upper - answer.lower < 1e-9


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("radius", [5e-324, 1e-200, 7e-164, 1e-100])
def test_balls_of_hardly_any_width(norm, radius):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2, 2))
    post = Posterior(X, [1.0, -2.0], 0.1 * np.eye(2), kernel=RBF())
    for centre in (np.zeros(2), X[0]):
        assert falsehoods(Query(post, Ball(centre, radius, norm)), 1) == []


@pytest.mark.parametrize("variance", [2.0**-1070, 1e-200])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("correlated", [True, False])
def test_softmax_of_tiny_variances_is_answered(variance, sign, correlated):
    """Softmax of a variance below all digits of a probability: the means decide, and they are equal."""
    rng = np.random.default_rng(0)
    Z, C, n = rng.standard_normal((5, 2)), 3, 5
    blocks = np.einsum("ce,ij->ceij", np.eye(C), np.eye(n)) if correlated else np.stack([np.eye(n)] * C)
    post = Posterior(
        Z, rng.standard_normal((n, C)), 0.1 * sign * blocks, kernel=RBF(1.0, variance), likelihood="softmax"
    )
    answer = probability_range(post, Ball(Z[0], 0.1), 0, max_nodes=3)
    assert answer.lower <= 1.0 / 3.0 <= answer.upper  # all latents are 0 to 1e-190
    assert certify(post, Z[0], Ball(Z[0], 0.1), max_nodes=3).status in ("unknown", "safe", "unsafe")


def test_equal_products_are_added_up():
    """Eleven factors of two terms each: twelve monomials, with the weights of Pascal's triangle."""
    kernel = Product(tuple(Sum((RBF(), Matern32(1.0, 3.0))) for _ in range(11)))
    ((group,),) = radial_terms(kernel, 2)
    weights = sorted(m.weight for m in group.phi.monomials)
    expected = [float(Fraction(3) ** j * _choose(11, j)) for j in range(12)]
    assert weights == sorted(expected)
    assert kernel.prior_variance == 4.0**11


def _choose(n, k):
    return 1 if k == 0 else _choose(n, k - 1) * (n - k + 1) // k


def test_too_many_products_are_refused_at_once():
    factors = tuple(Sum((RBF([1.0, 1.0 + i]), Matern32([1.0 + i, 1.0]))) for i in range(1, 40))
    post = Posterior(np.zeros((1, 2)), [0.1], [[0.0]], kernel=Product(factors))
    with pytest.raises(InvalidInputError, match="at most 256 factors"):
        probability_range(post, Box([0.0, 0.0], [0.1, 0.1]))
    assert np.isfinite(post.latent([[0.0, 0.0]])[0]).all()


def test_variances_are_multiplied_exactly():
    """The product of the first two is beyond the doubles, that of all three is not."""
    for first, third in ((1e200, 1e-300), (1e-200, 1e300)):
        kernel = RBF(1.0, first) * RBF(1.0, first) * RBF(1.0, third)
        exact = Fraction(first) ** 2 * Fraction(third)
        assert kernel.prior_variance == float(exact)
        assert radial_terms(kernel, 1)[0][0].phi.at_zero == float(exact)


@pytest.mark.parametrize("variance", [1e200, 1e-200])
def test_prior_variances_beyond_the_doubles_are_refused(variance):
    kernel = RBF(1.0, variance) * Matern12(1.0, variance)
    with pytest.raises(InvalidInputError, match="kernel must have a prior variance"):
        Posterior(ONE, [1.0], [[0.0]], kernel=kernel)


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_nearly_proportional_lengthscales_keep_the_declared_accuracy(seed):
    """K1: ratio * z in the group's metric is each factor's own z to (D + 64) u, in exact rationals.

    Chains of lengthscales, each within the tolerance of the one before: deviations must not add up.
    """
    rng = np.random.default_rng(seed)
    D = int(rng.integers(2, 5))
    scales = [10.0 ** rng.uniform(-3, 3, D)]
    for _ in range(4):
        drift = 1.0 + rng.integers(-14, 15, D) * 2.0**-53
        scales.append(scales[-1] * drift * 2.0 ** rng.integers(-2, 3))
    kernels = [RationalQuadratic(scale, 1.0, 1.0 + i) for i, scale in enumerate(scales)]  # alpha names them
    x = rng.standard_normal(D) * 10.0 ** rng.uniform(-3, 3)
    kernel = kernels[0] * kernels[1] + kernels[2] + kernels[3] * kernels[4]
    seen = set()
    for term in radial_terms(kernel, D):
        for group in term:
            for monomial in group.phi.monomials:
                for profile, ratio in monomial.factors:
                    own = scales[round(profile.alpha) - 1]
                    computed = ratio * float(0.5 * np.sum((x / group.lengthscale) ** 2))
                    exact = sum(Fraction(a) ** 2 / Fraction(l) ** 2 for a, l in zip(x, own, strict=True)) / 2
                    assert abs(Fraction(computed) - exact) <= Fraction(D + 64, 2**53) * exact
                    seen.add(profile.alpha)
    assert seen == {1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize("kernel", [RBF(1.0, 2.0), RationalQuadratic(0.7, 50.0, 2.0), RBF() + Matern52(2.0)])
@pytest.mark.parametrize("size", [1e-14, -1e-14, 0.0])
def test_the_norm_of_the_explained_function_holds_for_the_stored_precision(kernel, size):
    """K6: sum_i (R k)_i k(., x_i) for an R that is singular, or negative by rounding, in ball arithmetic."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((4, 2))
    root = rng.standard_normal((4, 1))
    R = root @ root.T / kernel.prior_variance + size * np.eye(4)
    R = 0.5 * (R + R.T)
    slice_ = make_radial_slice(model_of(Posterior(X, np.ones(4), R, kernel=kernel)), X[0], np.arange(2))
    declared = _Smooth.of(slice_, np.full((1, 2), 0.1)).largest
    for x in (X[0], X.mean(axis=0), X[1] + 5.0):
        with bits(320):
            k = arb_mat(4, 1, [covariance(kernel, [arb(v) for v in c - x]) for c in X])
            K = arb_mat(
                4,
                4,
                [
                    covariance(kernel, [arb(a) - arb(b) for a, b in zip(p, q, strict=True)])
                    for p in X
                    for q in X
                ],
            )
            r = arb_mat(4, 4, [arb(float(v)) for v in R.ravel()]) * k
            assert (r.transpose() * K * r)[0, 0] <= arb(declared) ** 2

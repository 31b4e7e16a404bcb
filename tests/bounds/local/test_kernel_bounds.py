"""Bounds of every kernel: containment judged in ball arithmetic, exactness at the reference, order, facts.

`tests/whole/test_containment.py` does the same for the Gaussian kernel; GPCERT_SOAK multiplies the counts.
"""

from dataclasses import replace

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.model import model_of
from gpcert.kernels import RBF, Matern12, Matern32, Matern52, RationalQuadratic, radial_terms
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball, Box
from helpers.exact import CHOICES, KERNELS, Case, falsehoods, random_kernel, random_posterior
from helpers.oracle import bits, examples
from judge import Truth


def cases(**fixed):
    """Random cases of all kernels, some of their fields drawn from fewer values."""
    choices = CHOICES | {"kernel": KERNELS} | fixed
    return st.builds(Case, **{name: st.sampled_from(values) for name, values in choices.items()})


@settings(max_examples=examples(25))
@given(
    cases(
        precision=("laplace", "stiff"),
        width=(1e-9, 1e-3, 0.1, 0.5),
        place=("data",),
        n=(1, 2, 3, 8),
        d=(1, 2, 3),
        layout=("normal", "duplicates", "ard"),
        tolerance=(1e-3, 1e-6),
    )
)
def test_ranges_hold_next_to_centres(case):
    """Regions around and beside the kinks of the Matern kernels."""
    assert falsehoods(case) == []


@pytest.mark.parametrize("kernel", [Matern52(), Matern32(), Matern12(), RationalQuadratic(alpha=0.4), RBF()])
def test_the_declared_steepness_is_never_exceeded(kernel):
    z = np.concatenate([np.geomspace(1e-8, 1e3, 4000), np.linspace(0.01, 8, 4000)])
    phi = kernel.profile
    second = phi.derivative(z, 1) + 2.0 * z * phi.derivative(z, 2)
    assert second.max() <= phi.steepest
    g = phi.exponent(z)
    ratios = [np.abs(phi.value(z))] + [np.abs(phi.derivative(z, m)) for m in (1, 2, 3, 4)]
    for m in range(4):
        some = ratios[m] > 1e-290
        assert (z * ratios[m + 1] <= (g + m + 1) * ratios[m] * (1 + 1e-9))[some].all()


def test_proportional_metrics_are_gathered():
    l = np.array([0.3, 2.0, 7.0])
    one, two = RBF(l, 2.0), Matern32(3.0 * l, 5.0)
    assert len(radial_terms(one + two, 3)) == 1
    assert len(radial_terms(one * two, 3)[0]) == 1
    other = Matern32([1.0, 1.0, 2.0])
    assert len(radial_terms(one + other, 3)) == 2
    assert [len(term) for term in radial_terms((one + two) * other, 3)] == [2, 2]


@pytest.mark.parametrize("kind", KERNELS)
def test_terms_are_the_kernel(kind):
    rng = np.random.default_rng(0)
    kernel = random_kernel(kind, np.array([0.5, 1.0, 2.0]), 1.7, rng, 3)
    X, Z = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    total = np.zeros((6, 5))
    for term in radial_terms(kernel, 3):
        product = np.ones((6, 5))
        for group in term:
            scaled = (X[:, None] - Z[None]) / group.lengthscale
            product *= group.phi.value(0.5 * (scaled**2).sum(axis=-1))
        total += product
    np.testing.assert_allclose(total, kernel(X, Z), rtol=1e-13)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_ranges_converge_and_agree_with_a_grid(kind, likelihood):
    case = Case(8, 2, "probit", "laplace", "normal", "box", "data", 0.5, 1, 0.02, "nodes", 11, kind)
    rng = np.random.default_rng(case.seed)
    kernel = random_kernel(kind, 0.8, 4.0, rng, 2)
    X = rng.standard_normal((case.n, 2))
    R = np.linalg.inv(kernel(X) + np.diag(10.0 ** rng.uniform(-1, 1, case.n)))
    post = Posterior(X, rng.standard_normal(case.n), 0.5 * (R + R.T), kernel=kernel, likelihood=likelihood)
    region = Ball([0.1, -0.2], 0.4)
    answer = probability_range(post, region, max_nodes=4000)
    assert answer.status == "converged"
    box = region.box()
    grid = np.stack(
        np.meshgrid(*(np.linspace(a, b, 61) for a, b in zip(box.lower, box.upper, strict=True))), -1
    )
    p = post.probability(grid.reshape(-1, 2))[:, 1]
    assert answer.min.lower <= p.min() <= answer.min.upper + 0.02
    assert answer.max.upper >= p.max() >= answer.max.lower - 0.02


def test_a_box_of_many_lengthscales_is_answered():
    post = random_posterior(
        replace(
            Case(5, 2, "probit", "laplace", "normal", "box", "data", 0.5, 1, 0.02, "nodes", 1),
            kernel="matern32",
        ),
        np.random.default_rng(1),
    )
    answer = probability_range(post, Box([-1e6, -1e6], [1e6, 1e6]), max_nodes=10)
    assert 0.0 <= answer.lower <= answer.upper <= 1.0


@settings(max_examples=examples(40))
@given(cases(precision=("laplace", "stiff", "spectrum", "excess"), n=(1, 2, 5, 8), d=(1, 2, 3)))
def test_the_variance_is_never_deeper_than_declared(case):
    """F3, F5: S >= -deepest everywhere, tried at centres, between and around them."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    deepest = model_of(post).deepest
    scale = 0.5 * np.ptp(post.centres, axis=0) + 1e-3
    around = post.centres[0] + scale * rng.standard_normal(case.d)
    for x in (post.centres[0], post.centres.mean(axis=0), around):
        with bits(640):
            assert Truth(post).latent(x)[1] >= -deepest


@pytest.mark.parametrize("kernel", [Matern12(1.0, 1.0), Matern32(1.0, 1.0), Matern52(1.0, 1.0)])
@pytest.mark.parametrize("away", [0.0, 1e-12, 1e-10, 1e-8, 1e-6])
def test_balls_around_nearly_a_centre(kernel, away):
    """The range of delta ends at the centre: behind it Lemma K said that phi lies below its tangent."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((1, 3)), rng.uniform(-0.45, 0.45, (5, 3)), [[3.0, 0.0, 0.0]]])
    weights = np.concatenate([[-1e-3], -rng.uniform(0.2, 0.5, 5), [6.0]])
    post = Posterior(X, weights, 1e-10 * np.eye(7), kernel=kernel, mean=1.5)
    answer = probability_range(post, Ball([away, 0.0, 0.0], 0.5), tolerance=1e-3, max_nodes=20)
    truth = Truth(post)
    with bits(128):
        values = [truth.probability(x, 1) for x in X[1:6]]
        assert all(arb(answer.lower) <= value <= arb(answer.upper) for value in values)

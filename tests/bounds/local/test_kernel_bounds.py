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
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.planes import variances
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.functional import radial_pieces
from gpcert.bounds.local.radial.local import RadialLocal, radial_envelope
from gpcert.bounds.local.radial.plane import away
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.kernels import RBF, Matern12, Matern32, Matern52, RationalQuadratic, radial_terms
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Ball, Box
from helpers.exact import CHOICES, KERNELS, Case, falsehoods, random_kernel, random_posterior, random_region
from helpers.oracle import bits, examples
from judge import Truth

DEFINITE = [kind for kind in CHOICES["precision"] if kind != "indefinite"]


def cases(**fixed):
    """Random cases of all kernels, some of their fields drawn from fewer values."""
    choices = CHOICES | {"kernel": KERNELS} | fixed
    return st.builds(Case, **{name: st.sampled_from(values) for name, values in choices.items()})


@settings(max_examples=examples(60))
@given(cases(precision=DEFINITE))
def test_ranges_hold_for_every_kernel(case):
    assert falsehoods(case) == []


@settings(max_examples=examples(15))
@given(cases(precision=("indefinite",)))
def test_ranges_hold_for_indefinite_precisions(case):
    assert falsehoods(case) == []


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


@settings(max_examples=examples(8))
@given(cases(precision=("laplace", "spectrum"), n=(30,), d=(25, 30), width=(0.1, 0.5), tolerance=(0.02,)))
def test_ranges_hold_with_many_moving_features(case):
    assert falsehoods(case) == []


def local_of(post, lower, upper, reference, free=False):
    slice_ = make_radial_slice(model_of(post), lower, np.arange(len(lower)))
    domain = BoxDomain(*scaled_box(lower, upper, reference, slice_.lengthscale))
    return RadialLocal(expand_radial(slice_, domain, reference, free=free))


def next_to(near, lower, upper, rng):
    """A point of the box so near to `near` that the rounding of distances is larger than the distance."""
    step = rng.standard_normal(len(near)) * (upper - lower) * 10.0 ** rng.uniform(-14, -5)
    return np.clip(near + step, lower, upper)


def functional(post, x, a, tau, kappa):
    """a mu - tau S + kappa at x (d,) in balls, mu without the prior mean."""
    with bits(320):
        mean, variance = Truth(post).latent(x)
        return arb(a) * (mean - arb(float(post.mean))) - arb(tau) * variance + arb(kappa)


LOCAL = cases(
    precision=CHOICES["precision"],
    n=(1, 2, 5, 8, 30),
    d=(1, 2, 3, 5, 26),
    shape=("box",),
    place=("data",),
    width=(1e-9, 1e-3, 0.05, 0.3, 1.0, 3.0),
)


@settings(max_examples=examples(90))
@given(
    LOCAL,
    st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.3), (1.0, -0.3)]),
    st.sampled_from(["corner", "centre", "inside", "at a centre", "next to a centre"]),
    st.booleans(),
)
def test_functionals_hold_at_sampled_points(case, functional_of, where, free):
    """The local bound itself, at random points, at corners, and at training points inside the box; K8."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    box = random_region(case, post, rng)
    lower, upper = box.lower, box.upper
    near = np.clip(post.centres[rng.integers(post.n_centres)], lower, upper)
    share = {"corner": rng.integers(0, 2, case.d), "centre": 0.5, "inside": rng.random(case.d)}
    if "a centre" in where:
        reference = near if where == "at a centre" else next_to(near, lower, upper, rng)
    else:
        reference = np.clip(lower + share[where] * (upper - lower), lower, upper)
    a, tau = functional_of
    tau = tau / post.kernel.prior_variance**0.5 if a else tau
    local = local_of(post, lower, upper, reference, free)
    bound = local.lower_bound(a, tau, 0.0).latent
    slice_, domain = local.expansion.slice, local.expansion.domain
    S = slice_.latent(reference)[1]
    least, most = variances(
        slice_.model, slice_.prior, S, away(slice_, domain), slice_.largest_variance
    )  # X8
    points = [lower + rng.random(case.d) * (upper - lower) for _ in range(4)]
    points += [np.where(rng.random(case.d) < 0.5, lower, upper) for _ in range(4)]
    points += [near, reference]
    for x in points:
        x = np.clip(x, lower, upper)
        assert functional(post, x, a, tau, 0.0) >= bound, x
        variance = Truth(post).latent(x)[1]
        assert variance <= most
        assert least <= 0.0 or variance >= least


@pytest.mark.parametrize("kind", KERNELS)
def test_the_bound_is_exact_where_the_minimum_is_the_reference(kind):
    """The mean rises steeply from a corner: the quadratic is smallest there, and the bound is its value."""
    rng = np.random.default_rng(3)
    kernel = random_kernel(kind, 1.0, 1.0, rng, 3)
    post = Posterior(np.array([[2.0, 2.0, 2.0]]), [5.0], np.zeros((1, 1)), kernel=kernel)
    lower = np.zeros(3)
    local = local_of(post, lower, lower + 0.2, lower)
    value = float(functional(post, lower, 1.0, 0.0, 0.0))
    bound = local.lower_bound(1.0, 0.0, 0.0).latent
    assert value - 1e-12 <= bound <= value


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("functional_of", [(1.0, 0.2), (1.0, -0.2)])
def test_the_gap_has_the_declared_order(kind, functional_of):
    """O(h^3) with an interior reference away from the centres: a tenth of the size, a thousandth of it."""
    rng = np.random.default_rng(5)
    kernel = random_kernel(kind, 1.0, 2.0, rng, 2)
    X = rng.standard_normal((12, 2))
    R = np.linalg.inv(kernel(X) + np.diag(10.0 ** rng.uniform(-1, 1, 12)))
    post = Posterior(X, rng.standard_normal(12), 0.5 * (R + R.T), kernel=kernel)
    starts = rng.uniform(-1, 1, (200, 2))
    centre = max(starts, key=lambda x: np.linalg.norm(X - x, axis=1).min())
    gaps = []
    for half in (0.03, 0.003):
        lower, upper = centre - half, centre + half
        bound = local_of(post, lower, upper, centre).lower_bound(*functional_of, 0.0).latent
        grid = np.stack(np.meshgrid(*(np.linspace(a, b, 41) for a, b in zip(lower, upper, strict=True))), -1)
        mean, variance = post.latent(grid.reshape(-1, 2))
        gaps.append(float((functional_of[0] * mean - functional_of[1] * variance).min()) - bound)
    assert gaps[1] <= max(gaps[0] / 500.0, 2e-13)


@settings(max_examples=examples(40))
@given(LOCAL)
def test_the_envelope_holds_and_shrinks(case):
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    box = random_region(case, post, rng)
    slice_ = make_radial_slice(model_of(post), box.lower, np.arange(case.d))
    mean, variance = radial_envelope(slice_, box.lower, box.upper)
    for x in (box.lower, box.upper, 0.5 * box.lower + 0.5 * box.upper):
        with bits(320):
            exact = Truth(post).latent(np.clip(x, box.lower, box.upper))
            assert mean[0] <= exact[0] <= mean[1]
            assert variance[0] <= exact[1] <= variance[1]


@settings(max_examples=examples(40))
@given(LOCAL)
def test_values_at_points_are_enclosed(case):
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    box = random_region(case, post, rng)
    slice_ = make_radial_slice(model_of(post), box.lower, np.arange(case.d))
    for x in (box.lower, post.centres[0], box.upper):
        mean, variance = slice_.latent(x)
        with bits(320):
            exact = Truth(post).latent(x)
            assert mean[0] <= exact[0] <= mean[1]
            assert variance[0] <= exact[1] <= variance[1]


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


@settings(max_examples=examples(90))
@given(
    LOCAL,
    st.sampled_from(["corner", "inside", "at a centre", "next to a centre"]),
    st.sampled_from(["kept", "free", "one side"]),
)
def test_every_centre_is_enclosed(case, where, lines):
    """Lemma K itself, and K7: the polynomials and their leftovers contain k_i at every point tried."""
    rng = np.random.default_rng(case.seed)
    post = random_posterior(case, rng)
    box = random_region(case, post, rng)
    lower, upper = box.lower, box.upper
    near = np.clip(post.centres[rng.integers(post.n_centres)], lower, upper)
    share = rng.integers(0, 2, case.d) if where == "corner" else rng.random(case.d)
    start = near if where == "at a centre" else np.clip(lower + share * (upper - lower), lower, upper)
    if where == "next to a centre":
        start = next_to(near, lower, upper, rng)
    e = local_of(post, lower, upper, start, lines == "free").expansion
    if lines == "one side":
        e = expand_radial(e.slice, e.domain, start, rng.random(post.n_centres) < 0.7)
    for x in (lower, upper, near, np.clip(lower + rng.random(case.d) * (upper - lower), lower, upper)):
        d = (x - start) / e.slice.lengthscale
        total, low, high = e.k.copy(), e.grown * 1e-9, e.grown * 1e-9
        for c in e.components:
            r = 0.5 * float(c.rho @ (d * d))
            delta = r - c.v @ d
            total += delta * (c.P[0] + delta * (c.P[1] / 2.0 + delta * c.P[2] / 6.0))
            square, constant = c.remainder.square, c.remainder.constant
            low = low + square[0] * delta**2 + constant[0]
            high = high + square[1] * delta**2 + c.remainder.linear * r + constant[1]
        k = post.kernel(post.centres, x[None])[:, 0]
        assert (k >= total - low).all()
        assert (k <= total + high).all()


@pytest.mark.parametrize("kind", KERNELS)
def test_functionals_hold_on_dense_lines(kind):
    """One feature, few centres: little slack is left to hide a wrong term."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        kernel = random_kernel(kind, 1.0, 1.0, rng, 1)
        n = int(rng.integers(1, 4))
        X = rng.uniform(-2, 2, (n, 1))
        R = np.linalg.inv(kernel(X) + 0.1 * np.eye(n))
        post = Posterior(X, 3.0 * rng.standard_normal(n), 0.5 * (R + R.T), kernel=kernel)
        lower = rng.uniform(-2, 2, 1)
        upper = lower + 10.0 ** rng.uniform(-2, 0)
        start = lower + rng.choice([0.0, 0.5, 1.0]) * (upper - lower)
        local = local_of(post, lower, upper, start, bool(rng.integers(2)))
        mean, variance = post.latent(np.linspace(lower, upper, 400))
        for a, tau in ((1.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.0, 1.0), (0.0, -1.0)):
            values = a * mean - tau * variance
            assert local.lower_bound(a, tau, 0.0).latent <= values.min() + 1e-9


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


@pytest.mark.parametrize("kind", ["matern12", "matern32", "sum of products"])
def test_the_quadratic_itself_lies_below(kind):
    """Theorem K, K7 and K8 point by point, around a centre: weights are chosen so that few errors of its
    line count, and little is left to hide a wrong term of the square.
    """
    rng = np.random.default_rng(0)
    for _ in range(150):
        kernel = random_kernel(kind, 1.0, 1.0, rng, 2)
        n = int(rng.integers(1, 4))
        X = np.concatenate([np.zeros((1, 2)), rng.uniform(-2, 2, (n - 1, 2))])
        R = np.linalg.inv(kernel(X) + 0.1 * np.eye(n))
        R = 0.5 * (R + R.T)
        tau, upper = float(rng.choice([-1.0, -0.3, 0.3, 1.0])), 10.0 ** rng.uniform(-2, 0, 2)
        start = rng.choice([0.0, 0.1, 0.5]) * upper
        weights = -2.0 * tau * (R @ kernel(X, start[None])[:, 0]) * rng.choice([0.9, 1.0, 1.1], n)
        post = Posterior(X, weights, R, kernel=kernel)
        m = local_of(post, -upper, upper, start, free=True)._forms
        pieces = radial_pieces(m, 1.0, tau, 0.0)
        H, base = sum(pieces.parts), pieces.base - pieces.excess
        for matrix, diagonal, rounding, constant in pieces.remainders:
            H = H - (0.0 if matrix is None else matrix) - (0.0 if diagonal is None else np.diag(diagonal))
            base -= rounding + constant
        points = np.concatenate([upper * rng.uniform(-1, 1, (200, 2)), upper * [[0, 0], [1, 1], [-1, 1]]])
        mean, variance = post.latent(points)
        for d, value in zip(
            (points - start) / m.expansion.slice.lengthscale, mean - tau * variance, strict=True
        ):
            assert base + pieces.g @ d + 0.5 * d @ H @ d <= value + 1e-9


@pytest.mark.parametrize("tau", [-1.0, -0.3, 0.3])
def test_a_kink_in_the_middle_costs_little_more_than_its_chord(tau):
    """K7, K8: one centre at the reference, in a box of radius h: the bound is short of the least value by
    no more than the chord's height, h / 4, and a share of the square.
    """
    R = np.array([[0.25]])
    post = Posterior(np.zeros((1, 2)), [0.5], R, kernel=Matern12(1.0, 1.0))
    corner = np.array([0.2, 0.2])
    h = float(np.linalg.norm(corner))
    values = [float(functional(post, s * corner, 1.0, tau, 0.0)) for s in np.linspace(0.0, 1.0, 101)]
    bound = local_of(post, -corner, corner, np.zeros(2), free=True).lower_bound(1.0, tau, 0.0).latent
    slope = 0.5 + 2.0 * abs(tau) * 0.25
    assert min(values) - slope * h / 2.0 <= bound <= min(values)

"""The verified facts of a model (F1-F3) and of an expansion (C1-C4) against exact arithmetic."""

from __future__ import annotations

import gc
import math
import weakref
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.kernels import RBF
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT
from helpers.majorants import BUILDERS
from helpers.oracle import (
    BITS,
    PRECISIONS,
    BoxCase,
    around,
    balls,
    bits,
    examples,
    gram,
    half_square,
    is_certainly_indefinite,
    is_psd,
    lengthscale,
    posteriors,
    random_box,
    random_posterior,
)

small = posteriors(n=st.integers(1, 10), d=st.integers(1, 3))


def gaps(post):
    """precision - (positive - negative), exactly: rows of fractions."""
    parts = model_of(post).parts
    negative = np.zeros_like(parts.positive) if parts.negative is None else parts.negative
    return [
        [Fraction(float(r)) - Fraction(float(p)) + Fraction(float(q)) for r, p, q in zip(*rows, strict=True)]
        for rows in zip(post.precision, parts.positive, negative, strict=True)
    ]


@settings(max_examples=examples(80))
@given(post=small)
def test_the_precision_is_the_difference_of_definite_parts(post):
    """F1, in rational arithmetic: both parts PSD, and the rest below the defect by diagonal dominance."""
    parts = model_of(post).parts
    assert is_psd(parts.positive)
    assert parts.negative is None or is_psd(parts.negative)
    for row, defect in zip(gaps(post), parts.defect, strict=True):
        assert sum(map(abs, row)) <= Fraction(float(defect)) * (1 + Fraction(UNIT))


@settings(max_examples=examples(40))
@given(post=small, seed=st.integers(0, 2**32 - 1))
def test_the_excess_variance_is_an_upper_bound(post, seed):
    """By sum_ij gap_ij k_i k_j the variance may differ from that of the parts."""
    model = model_of(post)
    k = np.random.default_rng(seed).random(post.n_centres) * post.kernel.variance
    exact = [Fraction(float(x)) for x in k]
    form = sum(
        x * y * g for x, row in zip(exact, gaps(post), strict=True) for y, g in zip(exact, row, strict=True)
    )
    assert abs(form) <= Fraction(model.excess_variance(k))


@settings(max_examples=examples(80))
@given(post=small)
def test_row_weights_dominate(post):
    """F2: at least the exact row sums of absolute values of both parts, and no more than rounding above."""
    model = model_of(post)
    negative = model.parts.negative
    absolute = [np.abs(model.parts.positive)] + ([] if negative is None else [np.abs(negative)])
    for row, weight in zip(np.concatenate(absolute, axis=1), model.row_weight, strict=True):
        exact = sum((Fraction(float(v)) for v in row), Fraction(0))
        assert exact <= Fraction(float(weight))
        assert weight <= float(exact) * (1 + 1e-9) + 1e-290


def contraction_is_true(post):
    """F3: part <= contraction K^-1, as contraction K - K part K >= 0 (K is positive definite)."""
    model = model_of(post)
    with bits(3000):
        pairs = [(model.contraction, size_of(post))]
        if model.parts.negative is not None:
            pairs.append((model.contraction_negative, balls(model.parts.negative)))
        K = gram(post)
        return not any(
            is_certainly_indefinite(arb(c) * K - K * part * K) for c, part in pairs if np.isfinite(c)
        )


def size_of(post):
    """positive + negative part, exactly."""
    parts = model_of(post).parts
    return balls(parts.positive) if parts.negative is None else balls(parts.positive) + balls(parts.negative)


@settings(max_examples=examples(60))
@given(post=posteriors(n=st.integers(1, 7), d=st.integers(1, 3)))
def test_the_contraction_holds(post):
    assert contraction_is_true(post)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9, 1e12, 1e16])
def test_the_contraction_holds_far_from_the_origin(offset):
    """A rank-one precision as large as the distances of the *rounded* x / lengthscale allow."""
    for seed in range(40):
        x = offset + 3.0 * np.random.default_rng(seed).standard_normal((2, 1))
        rounded = x / 3.0
        rho = float(np.exp(-0.5 * (rounded[0, 0] - rounded[1, 0]) ** 2))
        post = Posterior(x, [1.0, -1.0], np.full((2, 2), 1.0 / (2.0 + 2.0 * rho)), kernel=RBF(3.0))
        if x[0, 0] != x[1, 0]:
            assert contraction_is_true(post)


@pytest.mark.parametrize("seed", range(5))
def test_posteriors_of_laplace_contract(seed):
    """R = (K + W^-1)^-1 <= K^-1: a contraction of about one, and a defect at the level of rounding."""
    post = random_posterior(np.random.default_rng(seed), 40, 3)
    model = model_of(post)
    assert 0.99 <= model.contraction <= 1.01
    assert (model.parts.defect <= 1e-11 * np.trace(post.precision)).all()


@pytest.mark.parametrize("seed", range(8))
def test_an_inverse_is_definite_by_its_residual(seed):
    """F5, in rational and ball arithmetic: noise of many sizes, centres nearly the same."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((9, 2))
    X[1] = X[0] + 1e-9  # K is nearly singular
    sites = 10.0 ** rng.uniform(-12, 2, 9)
    kernel = RBF(1.0, 10.0 ** rng.uniform(-2, 2))
    R = np.linalg.inv(kernel(X) + np.diag(1.0 / sites))
    factors = {"site_precision": sites} if seed % 2 else None
    post = Posterior(X, np.ones(9), 0.5 * (R + R.T), kernel=kernel, factors=factors)
    model = model_of(post)
    assert (model.parts.defect == 0).all()
    assert model.parts.positive is model.precision
    assert is_psd(model.parts.positive)
    assert 1.0 <= model.contraction <= 1.0 + 1e-6
    assert contraction_is_true(post)


def test_a_residual_that_is_not_small_proves_nothing():
    """A precision a little too large for (K + N)^-1, and one that is not definite: the long way, and true."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6, 2))
    R = np.linalg.inv(RBF()(X) + 0.5 * np.eye(6))
    for change in (0.01 * R, -1.001 * np.linalg.eigvalsh(R)[0] * np.eye(6)):
        post = Posterior(X, np.ones(6), R + change, kernel=RBF(), factors={"site_precision": np.full(6, 2.0)})
        model = model_of(post)
        assert model.parts.positive is not model.precision
        assert is_psd(model.parts.positive)
        assert contraction_is_true(post)


@pytest.mark.parametrize("kind", PRECISIONS)
def test_every_kind_of_precision_gives_a_finite_model(kind):
    for seed in range(5):
        model = model_of(random_posterior(np.random.default_rng(seed), 30, 4, kind))
        assert np.isfinite(model.parts.defect).all()
        assert np.isfinite(model.magnitude).all()
        assert np.isfinite(model.row_weight).all()


def test_an_indefinite_precision_is_split_without_a_defect():
    R = np.diag([1.0, -2.0, 0.5])
    model = model_of(Posterior(np.eye(3), np.ones(3), R, kernel=RBF()))
    assert (model.parts.defect <= 1e-13).all()
    assert model.parts.negative is not None
    assert is_psd(model.parts.negative)


@pytest.mark.parametrize("jitter", [1e-4, 1e-6, 1e-8])
def test_variational_precisions_split_into_parts_of_norm_one(jitter):
    """R = K^-1 - K^-1 C K^-1 with C about K, some directions wider: R has entries of the order 1 / jitter."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 3.0, size=(40, 1))
    K = np.exp(-0.5 * (X - X.T) ** 2) + jitter * np.eye(40)
    L = np.linalg.cholesky(K)
    A = rng.standard_normal((40, 40)) / np.sqrt(40)
    inverse = np.linalg.inv(L)
    R = inverse.T @ (np.eye(40) - 0.7 * A @ A.T) @ inverse
    model = model_of(Posterior(X, np.ones(40), 0.5 * (R + R.T), kernel=RBF()))
    assert model.parts.negative is not None
    assert model.contraction < 10.0
    assert (model.parts.defect <= 1e-9 * np.abs(R).max()).all()


@pytest.mark.parametrize("scale", [1e-250, 1e-150, 1e150, 1e250])
def test_extreme_precisions_are_sound(scale):
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    R = (Q * np.array([1.0, 1.0, 1e-3, 1e-8, -1e-12])) @ Q.T
    post = Posterior(rng.standard_normal((5, 2)), np.ones(5), 0.5 * (R + R.T) * scale, kernel=RBF())
    model = model_of(post)
    assert is_psd(model.parts.positive)
    assert contraction_is_true(post)


def test_the_model_is_verified_once_and_dies_with_its_posterior():
    post = random_posterior(np.random.default_rng(0), 5, 2)
    assert model_of(post) is model_of(post)
    alive = weakref.ref(model_of(post))
    del post
    gc.collect()
    assert alive() is None


#: Underflow, which the functional counts once for all parts, and the radii of balls around zero.
NOTHING = arb(2) ** -250


class Orders:
    """The exact parts of an expansion at a displacement d (balls)."""

    def __init__(self, post, e, reference, d):
        n = post.n_centres
        self.post, self.metric = (
            post,
            sum((arb(float(m)) * v * v for m, v in zip(e.metric, d, strict=True)), arb(0)),
        )
        self.k = [self._kernel(reference, row) for row in post.centres]
        scale = [arb(float(s)) for s in lengthscale(post)]
        reference = [arb(float(v)) for v in reference]
        self.a = [
            sum(
                ((arb(float(c)) - x) / s * v for c, x, s, v in zip(row, reference, scale, d, strict=True)),
                arb(0),
            )
            for row in post.centres
        ]
        parts = model_of(post).parts
        self.size = size_of(post)
        self.R = self.size if parts.negative is None else balls(parts.positive) - balls(parts.negative)
        self.r = self.R * arb_mat(n, 1, self.k)

    def _kernel(self, x, centre):
        return arb(float(self.post.kernel.variance)) * (-half_square(x, centre, self.post)).exp()

    def kappa(self, p):
        """Order p alone (n,)."""
        return [k * a**p / math.factorial(p) for k, a in zip(self.k, self.a, strict=True)]

    def tail(self, p):
        """Everything from order p on (n,)."""
        heads = [sum((a**q / math.factorial(q) for q in range(p)), arb(0)) for a in self.a]
        return [k * (a.exp() - head) for k, a, head in zip(self.k, self.a, heads, strict=True)]

    def mean(self, kappa):
        return sum((arb(float(w)) * v for w, v in zip(self.post.weights, kappa, strict=True)), arb(0))

    def linear(self, kappa):
        return sum((self.r[i, 0] * v for i, v in enumerate(kappa)), arb(0))

    def inner(self, x, y, R=None):
        n = len(x)
        return (arb_mat(1, n, x) * (self.R if R is None else R) * arb_mat(n, 1, y))[0, 0]


def form_value(form, d):
    """d^T matrix d + excess as a ball."""
    column = arb_mat(len(d), 1, d)
    return (column.transpose() * balls(form.matrix) * column)[0, 0] + arb(float(form.excess))


def tails_value(tails, d):
    return sum(
        (
            arb(t.value) * sum((arb(float(c)) * v * v for c, v in zip(t.form, d, strict=True)), arb(0))
            for t in tails
        ),
        arb(0),
    )


def check_majorants(post, box, a, tau, x):
    """C1-C3, X2-X5: each part of the expansion at x against the majorant that is said to bound it."""
    e = around(
        make_slice(model_of(post), box.reference, np.arange(post.n_features)),
        box.lower,
        box.upper,
        box.reference,
    )
    d = [
        (arb(float(p)) - arb(float(q))) / arb(float(s))
        for p, q, s in zip(x, box.reference, lengthscale(post), strict=True)
    ]
    exact = Orders(post, e, box.reference, d)
    one, two = exact.kappa(1), exact.kappa(2)
    cubic = arb(a) * exact.mean(exact.kappa(3)) + arb(2 * tau) * (
        exact.linear(exact.kappa(3)) + exact.inner(one, two)
    )
    rounding = arb(a * e.error_M + abs(tau) * e.error_q)
    for build in BUILDERS:
        m = build(e)
        if m.cubic is not None:
            form = form_value(m.cubic_form(a, tau), d)
            assert form >= 0
            assert abs(cubic) <= exact.metric * form.sqrt() + rounding + NOTHING
        assert exact.inner(exact.tail(2), exact.tail(2), exact.size) <= form_value(m.second, d) + NOTHING
        assert exact.inner(exact.tail(3), exact.tail(3), exact.size) <= form_value(m.third, d) + NOTHING
        for order in (3, 4):
            rest = exact.tail(order)
            part = arb(a) * exact.mean(rest) + arb(2 * tau) * exact.linear(rest)
            assert abs(part) <= tails_value(m.tails(a, tau, order), d) + NOTHING


@settings(max_examples=examples(300))
@given(
    post=posteriors(n=st.integers(1, 8), d=st.integers(1, 4)),
    seed=st.integers(0, 2**32 - 1),
    a=st.sampled_from([0.0, 1.0]),
    tau=st.sampled_from([-3.0, -0.01, 0.0, 0.01, 3.0]),
)
def test_majorants_dominate_the_parts_they_bound(post, seed, a, tau):
    rng = np.random.default_rng(seed)
    box = random_box(rng, post)
    with bits(BITS), np.errstate(all="ignore"):
        for x in (rng.permutation(box.points(rng, 3))[0], box.points(rng, 1)[0]):
            check_majorants(post, box, a, tau, x)


@settings(max_examples=examples(300))
@given(
    v=st.floats(-3.0, 3.0),
    width=st.floats(0.01, 1.5),
    right=st.booleans(),
    tau=st.sampled_from([-1.0, 0.0, 1.0]),
)
def test_majorants_of_one_centre_on_a_line_are_tight_and_true(v, width, right, tau):
    """One centre, one feature: flattening loses nothing at the far end, so a wrong constant shows there."""
    post = Posterior([[v]], [-1.0], [[0.8]], kernel=RBF())
    lower, upper = np.array([0.0]), np.array([width])
    box = BoxCase(lower, upper, upper if right else lower)
    with bits(BITS), np.errstate(all="ignore"):
        check_majorants(post, box, 1.0, tau, lower if right else upper)
        check_majorants(post, box, 0.0, tau, 0.5 * (lower + upper))


@pytest.mark.parametrize("seed", range(20))
def test_majorants_that_cancel_to_rounding_noise_stay_majorants(seed):
    """Trap 1: octagons with weights that are even and a rank-one precision of alternating signs around 0.

    The cubic is exactly zero, |V kappa_2| and |V kappa_3| almost: their matrices are noise of either sign.
    """
    rng = np.random.default_rng(seed)
    rings = rng.uniform(0.3, 1.2, size=int(rng.integers(1, 4)))
    corners = np.array([(1, 1), (1, -1), (-1, -1), (-1, 1)]) / math.sqrt(2)
    axes = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
    centres = np.concatenate([s * np.concatenate([corners, axes]) for s in rings])
    signs = np.tile(np.repeat([0.25, -0.25], 4), len(rings))
    weights = np.repeat(rng.standard_normal(2 * len(rings)), 4)
    order = rng.permutation(len(centres))
    post = Posterior(
        centres[order], weights[order], np.outer(signs, signs)[np.ix_(order, order)], kernel=RBF()
    )
    width = np.full(2, 10.0 ** rng.uniform(-4, -0.5))
    box = BoxCase(-width, width, np.zeros(2))
    with bits(BITS), np.errstate(all="ignore"):
        for x in (box.lower, box.upper, *box.points(rng, 1)[:2]):
            check_majorants(post, box, 1.0, 0.0, x)
            check_majorants(post, box, 1.0, float(rng.choice([-1.0, 1.0])), x)

"""The verified facts of a model (F1-F3) against exact arithmetic on the stored doubles."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.model import model_of
from gpcert.kernels import RBF
from gpcert.posterior import Posterior
from gpcert.rounding import UNIT
from oracle import (
    PRECISIONS,
    balls,
    bits,
    examples,
    gram,
    is_certainly_indefinite,
    is_psd,
    posteriors,
    random_posterior,
)

small = posteriors(n=st.integers(1, 10), d=st.integers(1, 3))


@settings(max_examples=examples(80))
@given(post=small)
def test_the_precision_is_psd_less_a_small_diagonal(post):
    """F1, in rational arithmetic: equal off the diagonal, above it by `defect` to one rounding, and PSD."""
    model = model_of(post)
    R, shifted = post.precision, model.shifted
    off = ~np.eye(post.n_centres, dtype=bool)
    assert (R[off] == shifted[off]).all()
    for r, s, defect in zip(np.diagonal(R), np.diagonal(shifted), model.defect, strict=True):
        exact = Fraction(float(s)) - Fraction(float(r))
        assert exact >= 0
        assert abs(Fraction(float(defect)) - exact) <= exact * Fraction(UNIT)
    assert is_psd(shifted)


@settings(max_examples=examples(40))
@given(post=small, seed=st.integers(0, 2**32 - 1))
def test_the_excess_variance_is_an_upper_bound(post, seed):
    """By sum_i (shifted - precision)_ii k_i^2 the variance may exceed that of `shifted`."""
    model = model_of(post)
    k = np.random.default_rng(seed).random(post.n_centres) * post.kernel.variance
    gaps = [
        Fraction(float(s)) - Fraction(float(r))
        for s, r in zip(*map(np.diagonal, (model.shifted, post.precision)), strict=True)
    ]
    assert sum(gap * Fraction(float(x)) ** 2 for gap, x in zip(gaps, k, strict=True)) <= Fraction(
        model.excess_variance(k)
    )


@settings(max_examples=examples(80))
@given(post=small)
def test_row_weights_dominate(post):
    """F2: at least the exact row sums of |shifted|, and no more than rounding above."""
    model = model_of(post)
    for row, weight in zip(model.shifted, model.row_weight, strict=True):
        exact = sum((abs(Fraction(float(v))) for v in row), Fraction(0))
        assert exact <= Fraction(float(weight))
        assert weight <= float(exact) * (1 + 1e-12) + 1e-290


def contraction_is_true(post):
    """F3: shifted <= contraction K^-1, as contraction K - K shifted K >= 0 (K is positive definite)."""
    model = model_of(post)
    if not np.isfinite(model.contraction):
        return True
    with bits(3000):
        K = gram(post)
        return not is_certainly_indefinite(arb(model.contraction) * K - K * balls(model.shifted) * K)


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
    assert 1.0 <= model.contraction <= 1.01
    assert (model.defect <= 1e-11 * np.trace(post.precision)).all()


@pytest.mark.parametrize("kind", PRECISIONS)
def test_every_kind_of_precision_gives_a_finite_model(kind):
    for seed in range(5):
        model = model_of(random_posterior(np.random.default_rng(seed), 30, 4, kind))
        assert np.isfinite(model.defect).all()
        assert np.isfinite(model.shifted).all()
        assert np.isfinite(model.row_weight).all()


def test_an_indefinite_precision_has_the_defect_of_its_eigenvalue():
    R = np.diag([1.0, -2.0, 0.5])
    model = model_of(Posterior(np.eye(3), np.ones(3), R, kernel=RBF()))
    assert (model.defect >= 2.0).all()
    assert (model.defect <= 16.0).all()
    assert is_psd(model.shifted)


@pytest.mark.parametrize("scale", [1e-250, 1e-150, 1e150, 1e250])
def test_extreme_precisions_are_sound(scale):
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    R = (Q * np.array([1.0, 1.0, 1e-3, 1e-8, -1e-12])) @ Q.T
    post = Posterior(rng.standard_normal((5, 2)), np.ones(5), 0.5 * (R + R.T) * scale, kernel=RBF())
    model = model_of(post)
    assert is_psd(model.shifted)
    assert contraction_is_true(post)


def test_the_model_is_verified_once_and_dies_with_its_posterior():
    post = random_posterior(np.random.default_rng(0), 5, 2)
    assert model_of(post) is model_of(post)
    alive = weakref.ref(model_of(post))
    del post
    gc.collect()
    assert alive() is None

"""Y2: how far means and covariances of classes go, any radial kernel, against balls of both at points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import LabelBound
from gpcert.bounds.several.tangents.functionals import View
from gpcert.bounds.several.tangents.reaches import _slopes
from gpcert.kernels import radial_terms
from helpers.oracle import bits, examples
from judge.latents import Latents
from judge.models import Model

KERNELS = ("matern52", "matern32", "matern12", "rational quadratic", "sum", "product")
models = st.builds(
    Model,
    kind=st.just("softmax"),
    kernel=st.sampled_from(KERNELS),
    precision=st.sampled_from(["laplace", "spectrum", "indefinite", "excess"]),
    layout=st.sampled_from(["normal", "ard", "duplicates", "offset"]),
    n=st.sampled_from([1, 3, 8]),
    d=st.sampled_from([1, 3]),
    classes=st.sampled_from([3, 5]),
    units=st.sampled_from([0, 0, -3, 100]),
    size=st.sampled_from([0, 0, 3, -36, 36]),
    push=st.sampled_from([0, 0, 6]),
    seed=st.integers(0, 10**6),
)


def seen(post, x, width, shape="box"):
    """The bound of a label over a set around x, what is known of it from the middle, and points of it."""
    scale = np.asarray(post.kernel.lengthscale if hasattr(post.kernel, "lengthscale") else 1.0)
    region = gc.Ball(x, width, np.inf if shape == "box" else 2.0, scale=np.broadcast_to(scale, x.shape))
    moving = np.ones(len(x), dtype=bool)
    bound = BoundFactory(post).margin(0, shape_of(region, moving), x, moving)
    assert isinstance(bound, LabelBound)
    box, whole = region.box(), bound.softmax
    view = whole.views(box.lower, box.upper)[0]
    reaches = whole.reaches(view, whole.latents(view.start))
    rng = np.random.default_rng(0)
    corners = np.where(rng.random((6, len(x))) < 0.5, box.lower, box.upper)
    inside = rng.uniform(box.lower, box.upper, (3, len(x)))
    points = [bound.shape.project(p) for p in [*corners, *inside]]
    return reaches, [p for p in points if region.contains(p)], whole.slice.moderate


@bits(200)
def functional(a, B, latents):
    mean, covariance = latents
    total = arb(0)
    for c, row in enumerate(B):
        total += arb(float(a[c])) * mean[c]
        for e, weight in enumerate(row):
            total += arb(float(weight)) * covariance[c][e]
    return total


def asked(rng, C):
    B = rng.standard_normal((4, C, C))
    B = B + B.transpose(0, 2, 1)
    B[0] = 0.0
    B[0, 0, 0], B[0, 1, 1] = -0.5, 0.5  # as in Theorem 4
    return B


@settings(max_examples=examples(60), deadline=None)
@given(model=models, width=st.sampled_from([1e-9, 1e-3, 0.1, 1.0]), shape=st.sampled_from(["box", "ball"]))
def test_means_and_covariances_stay_within(model, width, shape):
    post = model.posterior()
    reaches, points, moderate = seen(post, post.centres[0] * (1.0 + 1e-3), width, shape)
    if not moderate:  # never asked
        return
    rng = np.random.default_rng(model.seed)
    C = post.n_latents
    a, B = rng.standard_normal((2, C)), asked(rng, C)
    least, largest = [reaches.least_mean(row) for row in a], reaches.largest(B)
    with bits(200):
        exact = Latents(post)
        for x in points:
            latents = exact.all(x)
            for row, bound in zip(a, least, strict=True):
                assert np.isnan(bound) or not functional(row, 0.0 * B[0], latents) < arb(float(bound))
            for form, bound in zip(B, largest, strict=True):
                assert np.isnan(bound) or not functional(0.0 * a[0], form, latents) > arb(float(bound))


def one_class(kernel, d=2, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    R = np.linalg.inv(kernel(X) + 0.3 * kernel.prior_variance * np.eye(n))
    blocks = np.einsum("ce,ij->ceij", np.eye(3) - 1.0 / 3.0, 0.5 * (R + R.T))
    weights = np.linalg.solve(kernel(X) + 0.3 * np.eye(n), rng.standard_normal((n, 3)))
    return gc.Posterior(X, weights, blocks, kernel=kernel, likelihood="softmax")


@pytest.mark.parametrize("kernel", [gc.Matern52(1.0, 2.0), gc.RationalQuadratic(1.0, 2.0, 1.0)], ids=repr)
@pytest.mark.parametrize("without", ["slopes", "second", "square"])
def test_no_part_can_be_left_out(kernel, without):
    """With one term less some mean or covariance passes its bound: the test above can fail."""
    rng, passed = np.random.default_rng(1), 0
    for seed in range(6):
        post = one_class(kernel, seed=seed)
        reaches, points, _ = seen(post, post.centres[0] + 0.05, 1e-3 if without == "slopes" else 0.3)
        less = {
            "slopes": {"slopes": 0.0 * reaches.slopes},
            "second": {"second": 0.0},
            "square": {"first": 0.0, "second": 0.0},
        }[without]
        poor = replace(reaches, **less)
        exact = Latents(post)
        for x in points:
            latents = exact.all(x)
            for B in asked(rng, 3):
                at = float(functional(np.zeros(3), B, latents))
                passed += at > float(poor.largest(B[None])[0])
                assert at <= float(reaches.largest(B[None])[0])
    assert passed > 0


@pytest.mark.parametrize("kernel", [gc.Matern52(1.3, 2.0), gc.RationalQuadratic(0.7, 2.0, 0.8)], ids=repr)
@pytest.mark.parametrize("width", [0.01, 0.1, 0.7])
def test_norms_in_the_rkhs_are_not_passed_and_nearly_reached(kernel, width):
    """|k_x - k_xh|^2 = 2 phi(0) - 2 phi(r), and less its first order 4 r phi'(r) - 2 r phi'(0) more."""
    reaches, _, _ = seen(one_class(kernel), np.array([0.2, -0.1]), width)
    r = 0.5 * float(reaches.reach @ reaches.reach)
    (term,) = radial_terms(kernel, 2)
    profile = term[0].phi
    (zero, at_zero), (value, slope) = (
        [float(v[0]) for v in profile.derivatives(np.array([z]), 1)] for z in (0.0, r)
    )
    first, second = 2 * zero - 2 * value, 2 * zero - 2 * value + 4 * r * slope - 2 * r * at_zero
    assert 0.75 * reaches.first**2 <= first <= reaches.first**2
    assert 0.1 * reaches.second**2 <= second + 1e-13 <= reaches.second**2 + 1e-12


@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_are_derivatives_within_their_errors(kernel):
    post = Model(kind="softmax", kernel=kernel, n=5, d=3, seed=3).posterior()
    moving = np.ones(3, dtype=bool)
    x = post.centres.mean(axis=0)
    slice_ = BoundFactory(post).margin(0, shape_of(gc.Ball(x, 0.1), moving), x, moving).softmax.slice
    slopes, blur = _slopes(slice_, x)
    step = 1e-5 * slice_.lengthscale
    for j in range(3):
        move = np.where(np.arange(3) == j, step, 0.0)
        ends = [slice_.values(x + sign * move)[0] for sign in (1.0, -1.0)]
        np.testing.assert_allclose(slopes[:, j], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-9)
    assert (blur <= 1e-11 * np.abs(slopes) + 1e-290).all()


@pytest.mark.parametrize("kernel", [gc.Matern52(2.0, 5.0), gc.Matern32(2.0, 5.0)], ids=repr)
def test_small_balls_need_no_functional(kernel, monkeypatch):
    """Eleven classes: ninety functionals were bounded, one by one, however small the ball."""
    rng = np.random.default_rng(0)
    middles = 2.0 * rng.standard_normal((11, 5))
    y = np.arange(88) % 11
    X = middles[y] + 0.3 * rng.standard_normal((88, 5))
    post = gc.GPClassifier(kernel=kernel, likelihood="softmax", max_evals=0).fit(X, y).posterior_

    def refused(*_, **__):
        raise AssertionError("a functional was bounded")

    monkeypatch.setattr(View, "_local", refused)
    assert gc.certify(post, X[0], gc.Ball(X[0], 0.01)).status == "safe"

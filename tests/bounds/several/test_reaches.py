"""Y2: how far means and covariances of classes go, any radial kernel, against balls of both at points."""

from __future__ import annotations

import numpy as np
import pytest

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.labels import LabelBound
from gpcert.bounds.several.tangents.expansion import _slopes
from gpcert.kernels import radial_terms
from judge.models import Model

KERNELS = ("matern52", "matern32", "matern12", "rational quadratic", "sum", "product")


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


def one_class(kernel, d=2, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    R = np.linalg.inv(kernel(X) + 0.3 * kernel.prior_variance * np.eye(n))
    blocks = np.einsum("ce,ij->ceij", np.eye(3) - 1.0 / 3.0, 0.5 * (R + R.T))
    weights = np.linalg.solve(kernel(X) + 0.3 * np.eye(n), rng.standard_normal((n, 3)))
    return gc.Posterior(X, weights, blocks, kernel=kernel, likelihood="softmax")


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

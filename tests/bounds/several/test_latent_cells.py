"""Three classes: tangents anchored anywhere, images of boxes, cells. Everything lies above the truth."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.several.cells.cells import Cells, anchored
from gpcert.bounds.several.cells.image import coordinates_at, image_of
from gpcert.bounds.several.tangents.expansion import Latents
from gpcert.likelihoods import Softmax
from gpcert.search import Minimiser
from helpers.oracle import bits, examples
from helpers.several import Setting, random_box, random_model

KINDS = ["correlated", "independent"]
BETAS = [(1.0, 1.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.0, 1.0)]


def softmax_coordinates(rng):
    """Coordinates around random latents of three classes."""
    model = class_model_of(random_model(Setting("correlated", 3, 3, 1, 0.1, 1)))
    A = rng.standard_normal((3, 3)) * 10.0 ** rng.uniform(-0.5, 0.6)
    mean = 3.0 * rng.standard_normal(3)
    latents = Latents(mean, A @ A.T + 0.1 * np.eye(3), 0.0, 0.0, mean)
    return coordinates_at(model, latents, np.ones(3))


def log_sum(coordinates, beta, z):
    """log sum beta_i E p_i at z (m, 5), and a bound of its error (m,)."""
    mean = np.zeros((len(z), 3))
    mean[:, :2] = coordinates.mean + z[:, :2] @ coordinates.L.T
    cov = np.zeros((len(z), 3, 3))
    cov[:, :2, :2] = coordinates.V + coordinates.L @ coordinates.changed(z) @ coordinates.L.T
    cov = 0.5 * (cov + cov.transpose(0, 2, 1))
    p, e = Softmax().expectation(mean, cov), Softmax().expectation_error(mean, cov)
    total = p @ beta
    return np.log(np.maximum(total, 1e-300)), (e @ beta) / np.maximum(total, 1e-300)


@given(seed=st.integers(0, 10**6), beta=st.sampled_from(BETAS))
@settings(max_examples=examples(60), deadline=None)
def test_tangents_anchored_anywhere_lie_above(seed, beta):
    """T4, and equality at the anchor."""
    rng = np.random.default_rng(seed)
    coordinates = softmax_coordinates(rng)
    if coordinates is None:
        return
    size = 10.0 ** rng.uniform(-3, 0)
    z = size * rng.uniform(-1, 1, (12, 5)) * np.array([3.0, 3.0, 1.0, 0.5, 0.5])
    E = coordinates.changed(z)
    z = z[np.linalg.eigvalsh(E)[:, 0] > -0.95]
    tangent = anchored(coordinates, np.array(beta), z[0], np.ptp(z, axis=0)) if len(z) else None
    if tangent is None:
        return
    truth, error = log_sum(coordinates, np.array(beta), z)
    known = error < 1e-3
    bound = tangent(z)
    assert (truth[known] - 2.0 * error[known] <= bound[known]).all()
    if known[0] and truth[0] > -3.0:  # the proved error of the gradient costs little over the box
        assert bound[0] <= truth[0] + 1e-2


def exact_bound(coordinates, tangent, z):
    """T4 at z (5,) in ball arithmetic: the tangent's own logs and slopes, V and V_a from stored doubles."""
    L, V = arb_mat(coordinates.L.tolist()), arb_mat(coordinates.V.tolist())

    def covariance(y):
        E = arb_mat(2, 2)
        for weight, matrix in zip(y[2:], coordinates.basis, strict=True):
            E += arb_mat(matrix.tolist()) * arb(float(weight))
        return V + L * E * L.transpose()

    anchor = covariance(tangent.anchor)
    change = anchor.inv() * (covariance(z) - anchor)
    identity = arb_mat(2, 2, [1, 0, 0, 1])
    pen = (change.trace() - (identity + change).det().log()) / 2
    step = [arb(float(x)) - arb(float(y)) for x, y in zip(z, tangent.anchor, strict=True)]
    terms = [
        (arb(float(log)) + sum((arb(float(a)) * b for a, b in zip(row, step, strict=True)), arb(0))).exp()
        for log, row in zip(tangent.logs, tangent.slopes, strict=True)
    ]
    return sum(terms, arb(0)).log() + pen


@given(seed=st.integers(0, 10**6), edge=st.sampled_from([0.5, 0.99, 0.99999]))
@settings(max_examples=examples(40), deadline=None)
def test_rounding_of_the_convex_bound_in_ball_arithmetic(seed, edge):
    """Also where the covariance is nearly singular, seen from the anchor."""
    rng = np.random.default_rng(seed)
    coordinates = softmax_coordinates(rng)
    z = 0.3 * rng.uniform(-1, 1, 5)
    tangent = None if coordinates is None else anchored(coordinates, np.ones(3), z, np.full(5, 4.0))
    if tangent is None:
        return
    points = z + rng.uniform(-1, 1, (8, 5)) * 10.0 ** rng.uniform(-6, 0)
    points[0, 2:] = z[2:] - edge * np.array([np.sqrt(2.0), 0.0, 0.0]) * (1.0 + z[2] / np.sqrt(2.0))
    with bits(300):
        exact = [exact_bound(coordinates, tangent, point) for point in points]
        covariances = [(e, bound) for e, bound in zip(exact, tangent(points), strict=True) if e.is_finite()]
        assert all(bool(e <= bound) for e, bound in covariances)
        assert len(covariances) >= 4  # the others are not positive definite: there is nothing to bound


def setting_of(kind, d, width, seed, n=10):
    return Setting(kind, 3, n, d, width, seed)


def image_and_points(setting, rng, label=0):
    """A bound, the image of a random box, and points of the box; None where there is none."""
    post = random_model(setting)
    box = random_box(setting, post)
    moving = box.lower < box.upper
    if not moving.any():
        return None
    bound = BoundFactory(post).pair(label, shape_of(box, moving), box.lower, moving)[0]
    lower, upper = box.lower[moving], box.upper[moving]
    image = image_of(bound.model, bound.slice, bound.shape, (lower, upper))
    if image is None:
        return None
    d = len(lower)
    U = np.concatenate([rng.random((20, d)), rng.integers(0, 2, (20, d)).astype(float)])
    full = np.tile(box.lower, (len(U), 1))
    full[:, moving] = np.clip(lower + U * (upper - lower), lower, upper)
    mean, cov = post.latent(full)
    z = mean @ image.coordinates.first.T + np.tensordot(cov, image.coordinates.second, ([1, 2], [1, 2]))
    return post, bound, image, full, full[:, moving], z - image.coordinates.offset


@given(
    kind=st.sampled_from(KINDS),
    d=st.sampled_from([1, 3, 30]),
    width=st.sampled_from([1e-6, 0.05, 0.3]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=examples(25), deadline=None)
def test_images_contain_the_latents(kind, d, width, seed):
    rng = np.random.default_rng(seed)
    made = image_and_points(setting_of(kind, d, width, seed), rng)
    if made is None:
        return
    image, points, z = made[2], made[4], made[5]
    slack = 1e-9 * (1.0 + np.abs(image.coordinates.offset)) + 1e-9
    assert ((image.lower - slack <= z) & (z <= image.upper + slack)).all()
    for sign in (1.0, -1.0):
        k = sign * rng.standard_normal(5)
        image.halfspace(k, -np.inf, points[0])
    assert (z @ image.normals.T <= image.bounds + np.abs(image.normals) @ slack).all()
    cut = image.tightened(image.lower, image.upper)
    assert cut is not None
    assert ((cut[0] - slack <= z) & (z <= cut[1] + slack)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_many_cells_reach_the_maximum(kind, label):
    """A box on which one tangent is far off: cells with anchors of their own close the gap."""
    rng = np.random.default_rng(0)
    made = image_and_points(Setting(kind, 3, 10, 2, 0.8, 5), rng, label)
    assert made is not None
    bound, image = made[1:3]
    lower, upper = image.box
    search = Minimiser(bound, lower, upper)
    search.start()
    truth = np.log(1.0 - search.upper)
    cells = Cells(image, bound.beta, search.witness)
    cells.refine(-np.inf, 1)
    first = cells.top
    cells.refine(truth + 0.01, 200)
    assert truth <= cells.top <= truth + 0.01 < first


def test_minimum_and_maximum_share_the_image():
    post = random_model(Setting("correlated", 3, 10, 3, 0.1, 7))
    moving = np.ones(3, dtype=bool)
    box = gc.Box(post.centres[0] - 0.1, post.centres[0] + 0.1)
    low, high = BoundFactory(post).pair(0, shape_of(box, moving), box.lower, moving)
    for bound in (low, high):
        bound.over(box.lower, box.upper, post.centres[0], 0.9)
    assert low.images is high.images
    assert len(low.images) == 1
    assert low.cells is not high.cells

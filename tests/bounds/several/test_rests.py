"""What T2 leaves of every class beyond second order: above the truth, in balls."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.softmax import SoftmaxBound
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.expansion import latents_on
from gpcert.bounds.several.tangents.tangent import _across, whitened
from helpers.several import Setting, random_model
from judge.latents import Latents

KINDS = ["correlated", "independent"]


def box_of(post: gc.Posterior, half: float) -> tuple[SoftmaxBound, np.ndarray, np.ndarray]:
    """A softmax bound, and the ends of a box around a point near the data."""
    x, moving = post.centres[0] + 0.2, np.ones(post.centres.shape[1], dtype=bool)
    lower, upper = x - half, x + half
    return BoundFactory(post).pair(0, shape_of(gc.Box(lower, upper), moving), x, moving)[0], lower, upper


def ball_form(matrix: np.ndarray, x: list[arb]) -> arb:
    return sum((arb(float(matrix[i, j])) * x[i] * x[j] for i, j in np.ndindex(*matrix.shape)), arb(0))


def scaled(bound: SoftmaxBound, reference: np.ndarray, point: np.ndarray) -> list[arb]:
    """The displacement d of a point."""
    ends = zip(point, reference, bound.lengthscale, strict=True)
    return [(arb(float(p)) - arb(float(r))) / arb(float(s)) for p, r, s in ends]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half", [0.02, 0.2])
def test_every_class_is_as_far_from_its_expansion_as_its_rest_says(kind, half):
    """s_i of the stored doubles (T2): by means alone, by covariances alone, and by both."""
    share = np.zeros(3)
    for seed in (0, 2, 3, 5):
        post = random_model(Setting(kind, 4, 10, 8, half, seed))
        bound, lower, upper = box_of(post, half)
        rng = np.random.default_rng(seed)
        points = np.where(rng.random((6, 8)) < 0.5, lower, upper)
        x, far = bound.expansion(lower, upper), latents_on(bound.model, bound.slice, points[0])
        anchor = anchor_at(far.mean, far.covariance, bound.correlated)
        seen = None if anchor is None else whitened(x, anchor)
        if seen is None:
            continue
        a, B = rng.standard_normal((3, 4)), rng.standard_normal((3, 4, 4))
        a[1], B[0] = 0.0, 0.0
        B = B + B.swapaxes(1, 2) if kind == "correlated" else B * np.eye(4)
        across, truth = _across(seen, a, B), Latents(post)
        for point in points:
            mean, covariance = truth.all(point)
            d = scaled(bound, x.reference, point)
            for i in range(3):
                value = sum(
                    (arb(float(a[i, c])) * (mean[c] - arb(float(far.mean[c]))) for c in range(4)), arb(0)
                )
                for c, e in np.ndindex(4, 4):
                    value += arb(float(B[i, c, e])) * (covariance[c][e] - arb(float(far.covariance[c, e])))
                value -= arb(float(across.constant[i])) + ball_form(across.hessian[i], d) / 2
                value -= sum((arb(float(g)) * v for g, v in zip(across.gradient[i], d, strict=True)), arb(0))
                assert bool(abs(value) <= arb(float(across.rest[i])))
                share[i] = max(share[i], float(abs(value).mid()) / across.rest[i])
    assert (share > 0.01).all()  # far more than rounding

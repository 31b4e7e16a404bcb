"""The scale of a covariance apart (T7), squares of several forms, functionals from Y1: above the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.tangents.anchor import anchor_at
from gpcert.bounds.several.tangents.expansion import latents_on
from gpcert.bounds.several.tangents.scaling import chord, height, largest
from gpcert.bounds.several.tangents.shifts import Shifts
from gpcert.bounds.several.tangents.tangent import penalty, whitened
from helpers.oracle import examples
from helpers.several import Setting, at_least, random_model
from judge.latents import Latents

SEEDS = st.integers(0, 10**6)


@given(seed=SEEDS, N=st.integers(1, 5), tilt=st.floats(-3.0, 3.0))
@settings(max_examples=examples(60), deadline=None)
def test_the_penalty_lies_below_its_line_and_its_shape(seed, N, tilt):
    """pen(E) <= height + slope e + kappa(nu / (1 + low)) |E - e I|^2 / (1 + low)^2, in balls."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, N)) * 10.0 ** rng.uniform(-3, 0)
    E = 0.3 * (A + A.T) / max(1.0, np.abs(np.linalg.eigvalsh(A + A.T)).max())
    E += rng.uniform(-0.4, 2.0) * np.eye(N)
    e = float(np.trace(E)) / N
    low, high = e - rng.uniform(0, 0.3) * (1 + e), e + rng.uniform(0, 0.5)
    nu = -float(np.linalg.eigvalsh(E - e * np.eye(N))[0]) + 1e-9
    assert nu / (1 + low) < 0.95
    slope = chord(N, low, high) + tilt
    exact = [[arb(v) for v in row] for row in E.tolist()]
    trace = sum((exact[i][i] for i in range(N)), arb(0))
    mean = trace / N
    whole = arb_mat(N, N, [exact[i][j] + (1 if i == j else 0) for i in range(N) for j in range(N)])
    pen = (trace - whole.det().log()) / 2
    square = sum(((exact[i][j] - (mean if i == j else 0)) ** 2 for i in range(N) for j in range(N)), arb(0))
    weight = arb(penalty(nu / (1 + low))) / (1 + arb(low)) ** 2
    above = arb(height(N, low, high, slope)) + arb(slope) * mean + weight * square
    assert bool(pen <= above)


@given(seed=SEEDS)
@settings(max_examples=examples(40), deadline=None)
def test_squares_of_several_forms(seed):
    """sum_n weight_n (linear + form + rest)^2 <= loss on the box, at corners and inside, in balls."""
    rng = np.random.default_rng(seed)
    N, d = rng.integers(1, 5), rng.integers(1, 6)
    reach = 10.0 ** rng.uniform(-2, 0, d)
    hessian = rng.standard_normal((N, d, d)) * 10.0 ** rng.uniform(-2, 2)
    hessian += hessian.transpose(0, 2, 1)
    constant, gradient = rng.standard_normal(N) * 10.0 ** rng.uniform(-3, 0), rng.standard_normal((N, d))
    rest, weight = np.abs(rng.standard_normal(N)) * 0.01, rng.random(N)
    shifts = Shifts(reach, constant, gradient, hessian, rest, 0.0)
    loss, most = shifts.square(weight), shifts.largest()
    for inside in (1.0, rng.random(d)):
        u = reach * np.where(rng.random(d) < 0.5, -1.0, 1.0) * inside
        exact = [arb(float(v)) for v in u]
        values = [
            arb(float(constant[n]))
            + sum((arb(float(g)) * v for g, v in zip(gradient[n], exact, strict=True)), arb(0))
            + _form(hessian[n], exact) / 2
            for n in range(N)
        ]
        values = [v + arb(float(r)) * (1 if v > 0 else -1) for v, r in zip(values, rest, strict=True)]
        total = sum((arb(float(w)) * v * v for w, v in zip(weight, values, strict=True)), arb(0))
        above = arb(loss.constant) + _form(loss.matrix, exact)
        above += sum((arb(float(g)) * v for g, v in zip(loss.gradient, exact, strict=True)), arb(0))
        assert bool(total <= above)
        assert bool(sum((v * v for v in values), arb(0)) <= arb(most) ** 2)
        bends = [abs(_form(H, exact)) / 2 for H in hessian]
        assert all(bool(b <= arb(float(m))) for b, m in zip(bends, shifts.bends, strict=True))


def _form(matrix, x):
    pairs = ((i, j) for i in range(len(x)) for j in range(len(x)))
    return sum((arb(float(matrix[i, j])) * x[i] * x[j] for i, j in pairs), arb(0))


def _box(kind, seed, half, classes=4, d=3):
    """A softmax bound on a box around a point of a model, and points of the box, corners among them."""
    post = random_model(Setting(kind, classes, 10, d, half, seed))
    x = post.centres[0] + 0.2
    lower, upper = x - half, x + half
    moving = np.ones(d, dtype=bool)
    bound = BoundFactory(post).pair(0, shape_of(gc.Box(lower, upper), moving), x, moving)[0]
    rng = np.random.default_rng(seed)
    corners = np.where(rng.random((4, d)) < 0.5, lower, upper)
    return post, bound, lower, upper, np.concatenate([corners, rng.uniform(lower, upper, (3, d))])


@pytest.mark.parametrize("kind", ["correlated", "independent"])
@pytest.mark.parametrize("half", [0.02, 0.4])
def test_functionals_from_the_shared_expansion_lie_below(kind, half):
    """a.m + <B, Sigma> - offset of the stored doubles, in balls."""
    for seed in range(4):
        post, bound, lower, upper, points = _box(kind, seed, half)
        x, rng = bound.expansion(lower, upper), np.random.default_rng(seed)
        a, B = rng.standard_normal(4), rng.standard_normal((4, 4))
        B = B + B.T if kind == "correlated" else np.diag(np.diagonal(B))
        low = x.smallest(a, B, 0.3).latent
        truth = Latents(post)
        for point in points:
            mean, covariance = truth.all(point)
            value = sum((arb(float(w)) * m for w, m in zip(a, mean, strict=True)), arb(-0.3))
            for c in range(4):
                value += sum((arb(float(B[c, e])) * covariance[c][e] for e in range(4)), arb(0))
            assert bool(arb(low) <= value)


@pytest.mark.parametrize("kind", ["correlated", "independent"])
def test_the_bound_of_a_box_lies_above_the_truth(kind):
    """log sum_i beta_i p_i, targets in reach and out of it."""
    lines = 0
    for seed, half in ((1, 0.01), (1, 0.1), (3, 0.2), (5, 0.15), (8, 0.05), (9, 0.1), (10, 0.1)):
        post, bound, lower, upper, points = _box(kind, seed, half, d=26)
        x = bound.expansion(lower, upper)
        latents = latents_on(bound.model, bound.slice, 0.3 * lower + 0.7 * upper)
        anchor = anchor_at(latents.mean, latents.covariance, bound.correlated)
        seen = None if anchor is None else whitened(x, anchor)
        if seen is None:
            continue
        p = at_least(post, points)
        for beta in (np.array([0.0, 1.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.5, 0.5]), np.eye(4)[1]):
            truth = np.log(np.maximum(p @ beta, 1e-300)).max()
            for target in (truth + 0.05, -math.inf):
                found = largest(seen, beta, target, x.smallest)
                assert found is None or truth <= found[0] + 1e-12
                lines += found is not None
    assert lines

"""Planes of the variance itself (G8): below S and -S in ball arithmetic, sharp, and no term of them idle."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.radial.plane import radial_plane
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.rounding import gamma
from helpers.exact import KERNELS, Case, random_region
from helpers.exact import random_posterior as several_kernels
from helpers.oracle import (
    BoxCase,
    bits,
    examples,
    half_square,
    lengthscale,
    posteriors,
    random_box,
    random_posterior,
)
from judge import Truth

BITS = 320
LINES = [(-1.0, 0.0), (1.0, 0.0), (-0.3, 0.7), (2.5, -0.2)]


class At(NamedTuple):
    """A plane, and where it touches."""

    plane: Any
    reference: np.ndarray


def plane_of(post, box, line):
    slice_ = replace(make_slice(model_of(post), box.reference, np.arange(post.n_features)), sign=0.0)
    domain = BoxDomain(*scaled_box(box.lower, box.upper, box.reference, lengthscale(post)))
    with np.errstate(all="ignore"):
        return plane_at(slice_, domain, box.reference, line, math.inf)


def value_at(post, line, x):
    """-tau S + kappa as a ball."""
    return arb(line[1]) - arb(line[0]) * Truth(post).latent(x)[1]


def sum_at(post, at, x):
    """sum_i b_i k_i(x) + still k(x, xh) / s2 + constant as a ball."""
    kernels = ((-half_square(x, centre, post)).exp() for centre in post.centres)
    variance = arb(float(post.kernel.variance))
    terms = (arb(float(b)) * variance * k for b, k in zip(at.plane.b, kernels, strict=True))
    still = arb(at.plane.still) * (-half_square(x, at.reference, post)).exp()
    return sum(terms, arb(at.plane.constant)) + still


def bent(plane):
    """Tried as if the plane had failed by little at a corner."""
    return plane.lower_bound(True)._replace(value=0.0, point=plane.around.domain.reach)


def between(post, at, x):
    """What the second order adds at x to e^r f, as a ball, less its rounding."""
    parts, rest = at.plane._between(bent(at.plane))
    reach = at.plane.around.domain.reach
    size = float(reach @ sum(np.abs(part) for part in parts) @ reach) + float(rest.diagonal @ reach**2)
    matrix = sum(parts) - np.diag(rest.diagonal)
    d = [
        (arb(float(a)) - arb(float(b))) / arb(float(c))
        for a, b, c in zip(x, at.reference, lengthscale(post), strict=True)
    ]
    form = sum((arb(float(matrix[i, j])) * d[i] * d[j] for i in range(len(d)) for j in range(len(d))), arb(0))
    return form / 2 - arb(rest.rounding) - arb(gamma(60) * size)


def variational(kernel, seed, n=7, d=3):
    """Less certain than its prior in some directions: an indefinite precision with contraction 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    K = kernel(X) + 1e-9 * np.eye(n)
    root, A = np.linalg.cholesky(K), rng.normal(size=(n, n))
    C = root @ np.linalg.inv(np.eye(n) + 0.25 * root.T @ root) @ root.T + 0.5 * root @ A @ A.T @ root.T / n
    inverse = np.linalg.inv(K)
    R = inverse - inverse @ C @ inverse
    return gc.Posterior(X, rng.normal(size=n), (R + R.T) / 2, kernel=kernel, likelihood="probit")


@settings(max_examples=examples(150))
@given(
    st.one_of(
        posteriors(n=st.integers(1, 12), d=st.integers(1, 5)),
        st.builds(variational, st.just(gc.RBF(1.5, 2.0)), st.integers(0, 999)),
    ),
    st.sampled_from(LINES),
    st.sampled_from([1e-3, 0.05, 0.5, 2.0]),
    st.integers(0, 2**32 - 1),
)
def test_a_plane_of_the_variance_lies_below_it(post, line, size, seed):
    """Both orders at corners, random points and the relaxation's minimum, with the stored doubles."""
    rng = np.random.default_rng(seed)
    box = random_box(rng, post, size / math.sqrt(post.n_features))
    plane = plane_of(post, box, line)
    if plane is None:  # no posterior of this kernel: how often is counted below
        return
    with np.errstate(all="ignore"):
        bounds = [plane.lower_bound(False), plane.lower_bound(True), plane.bent(bent(plane))]
    second, bounds = bounds[2] is not None, [bound for bound in bounds if bound is not None]
    at = At(plane, box.reference)
    least = [np.clip(box.reference + b.point * lengthscale(post), box.lower, box.upper) for b in bounds]
    with bits(BITS):
        for x in (*least, box.reference, box.lower, box.upper, *box.points(rng, 4)):
            grow = half_square(x, box.reference, post).exp()
            value = value_at(post, line, x)
            known = sum_at(post, at, x) * grow - arb(plane.excess)
            assert value * grow >= known
            assert not second or value * grow >= known + between(post, at, x)
            assert all(value >= arb(bound.latent) for bound in bounds)


@pytest.mark.parametrize("line", LINES)
def test_posteriors_have_planes_that_touch_and_lose_the_third_power(line):
    """Exact at the reference; near it the second order leaves a fifth, and a third more of it would cross.
    The negative part's price is of second order as well: precisions without one.
    """
    rng = np.random.default_rng(3)
    for _ in range(4):
        post = random_posterior(rng, 8, 3)
        middle, step = post.centres.mean(axis=0), 0.01 * lengthscale(post)
        box = BoxCase(middle - step, middle + step, middle)
        plane = plane_of(post, box, line)
        at = At(plane, middle)
        with bits(BITS):
            size = arb(1e-9) * (abs(arb(plane.constant)) + abs(arb(plane.still)) + 1)
            assert abs(value_at(post, line, middle) - sum_at(post, at, middle)) <= size
            assert not value_at(post, line, middle) >= sum_at(post, at, middle) + arb(plane.excess) + size
            for x in (box.lower, box.upper):
                grow = half_square(x, middle, post).exp()
                lost = (value_at(post, line, x) - sum_at(post, at, x)) * grow
                assert arb("0.8") * lost <= between(post, at, x) <= lost
                assert not arb("1.34") * between(post, at, x) <= lost


def test_the_negative_part_is_paid_for():
    """One centre that is less certain than the prior: S = s2 + k^2 / s2 is convex in k, and without the price
    (J4) its tangent would be claimed to lie above it.
    """
    post = gc.Posterior([[0.0]], [1.0], [[-0.5]], kernel=gc.RBF(1.0, 2.0))
    start = np.array([1.0])
    plane = plane_of(post, BoxCase(start - 0.5, start + 0.5, start), (1.0, 0.0))
    assert plane.still > 0
    at, free = At(plane, start), At(replace(plane, constant=plane.constant + plane.still, still=0.0), start)
    with bits(BITS):
        for x in (start - 0.5, start + 0.5):
            value = value_at(post, (1.0, 0.0), x)
            assert sum_at(post, at, x) <= value < sum_at(post, free, x)


def test_a_variance_below_zero_is_paid_for():
    """A precision a little larger than any posterior's, 1.0005 K^-1: from one centre to the other the square
    that is left out is -0.0005 times that of the kernels, without its lift.
    """
    X, kernel = np.array([[0.0], [1.0]]), gc.RBF(1.0, 2.0)
    R = 1.0005 * np.linalg.inv(kernel(X))
    post = gc.Posterior(X, [1.0, 0.0], (R + R.T) / 2, kernel=kernel)
    plane = plane_of(post, BoxCase(X[0], X[1], X[0]), (-1.0, 0.0))
    assert 2e-3 <= plane.excess <= 6e-3  # 2 delta e^r, delta = 0.0005 s2
    with bits(BITS):
        grow = half_square(X[1], X[0], post).exp()
        value, known = value_at(post, (-1.0, 0.0), X[1]) * grow, sum_at(post, At(plane, X[0]), X[1]) * grow
        assert known - arb(plane.excess) <= value < known


@settings(max_examples=examples(120), deadline=None)
@given(
    st.sampled_from(KERNELS),
    st.sampled_from(LINES),
    st.sampled_from(["laplace", "stiff", "spectrum", "indefinite"]),
    st.integers(0, 2**32 - 1),
)
def test_planes_of_other_kernels_lie_below_the_variance(kernel, line, precision, seed):
    """G8 by G5, kinks, sums and products included."""
    rng = np.random.default_rng(seed)
    case = Case(
        n=int(rng.integers(1, 9)), d=int(rng.integers(1, 6)), link="probit", precision=precision,
        layout="multimodal", shape="box", place="near", width=0.5, label=1, tolerance=0.02, stop="none",
        seed=seed, kernel=kernel,
    )  # fmt: skip
    post = several_kernels(case, rng)
    region = random_region(case, post, rng)
    check_radial(post, line, region.lower, region.upper, region.centre, rng)


def check_radial(post, line, lower, upper, start, rng):
    slice_ = replace(make_radial_slice(model_of(post), start, np.arange(len(start))), sign=0.0)
    if not slice_.moderate:
        return None
    domain = BoxDomain(*scaled_box(lower, upper, start, slice_.lengthscale))
    plane = radial_plane(slice_, domain, start, line, math.inf)
    if plane is None or plane.bound.latent == -math.inf:
        return None
    bound = plane.bound
    least = np.clip(start + bound.point * slice_.lengthscale, lower, upper)
    with bits(BITS):
        for x in (least, start, lower, upper, *rng.uniform(lower, upper, (4, len(start)))):
            assert arb(bound.latent) <= value_at(post, line, x)
    return bound.latent


@pytest.mark.parametrize("line", LINES[:2])
@pytest.mark.parametrize("kernel", [gc.Matern32(1.5, 2.0), gc.RationalQuadratic(1.5, 2.0, 1.0)], ids=repr)
def test_planes_of_other_kernels_are_worth_having(kernel, line):
    """Definite or not, they exist and are near the values at the corners: none above would notice."""
    for seed in range(3):
        post, rng = variational(kernel, seed), np.random.default_rng(seed)
        assert not model_of(post).definite
        start = 0.5 * rng.normal(size=3)
        found = check_radial(post, line, start - 0.05, start + 0.05, start, rng)
        assert found >= -line[0] * post.latent(start[None])[1][0] - 0.4


@pytest.mark.parametrize("norm", [math.inf, 2.0])
def test_many_features_are_settled_at_once(norm):
    """Where the variance scaled by e^{2r} and divided again would lose more than the tolerance."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 40))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    post = gc.GPClassifier(kernel=gc.RBF(6.0, 8.0), max_evals=0).fit(X, y).posterior_
    for x in X[:3]:
        answer = gc.latent_range(post, gc.Ball(x, 0.08 if norm > 2 else 0.5, norm=norm), max_nodes=12)
        assert answer.status == "converged"
        with bits(BITS):
            variance = Truth(post).latent(answer.variance.argmax)[1]
            assert answer.variance.max.lower <= variance <= answer.variance.max.upper

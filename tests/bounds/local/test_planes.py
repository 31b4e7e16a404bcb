"""Supporting planes and bounds of sums of kernels, in ball arithmetic at corners, random points, minima."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.local.gaussian.plane import SECOND
from gpcert.bounds.local.radial.functional import kernel_below
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.regions import Ball
from helpers.exact import Case, random_region
from helpers.exact import random_posterior as several_kernels
from helpers.oracle import (
    bits,
    examples,
)
from judge import Truth

seeds = st.integers(0, 2**32 - 1)
BITS = 240
KERNELS = [
    "matern52", "matern32", "matern12", "rational quadratic", "sum", "product", "other sum", "other product",
    "sum of products",
]  # fmt: skip


def test_what_a_kernel_has_beyond_its_first_order():
    """G6: 2 (1 + r - e^-r (1 + 2 r)) <= SECOND |d|^4, r = |d|^2 / 2, and no smaller factor would do."""
    with bits(BITS):
        rest = [(r, 2 * (1 + r - (-r).exp() * (1 + 2 * r))) for r in (arb(2) ** i for i in range(-40, 12))]
        assert all(norm <= arb(SECOND) * (2 * r) ** 2 for r, norm in rest)
        assert rest[0][1] >= arb("0.999") * arb(SECOND) * (2 * rest[0][0]) ** 2


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(KERNELS), seeds)
def test_a_kernel_lies_above_its_line(kernel, seed):
    """G5: k(x, xh) / k(xh, xh) >= share - sum_j curl_j d_j^2 / 2, in ball arithmetic, kinks included."""
    rng = np.random.default_rng(seed)
    case = Case(
        n=2, d=int(rng.integers(1, 4)), link="probit", precision="laplace", layout="multimodal", shape="box",
        place="near", width=0.5, label=1, tolerance=0.02, stop="none", seed=seed, kernel=kernel,
    )  # fmt: skip
    post = several_kernels(case, rng)
    region = random_region(case, post, rng)
    reference = np.clip(region.centre, region.lower, region.upper)
    slice_ = make_radial_slice(model_of(post), reference, np.arange(case.d))
    domain = BoxDomain(*scaled_box(region.lower, region.upper, reference, slice_.lengthscale))
    share, curl = kernel_below(slice_, domain)
    assert 0.9 * (share > 0) <= np.isfinite(curl).all()
    here = gc.Posterior(reference[None], np.ones(1), np.eye(1), kernel=post.kernel)  # its mean is k(x, xh)
    with bits(BITS):
        top = Truth(here).latent(reference)[0]
        inside = rng.uniform(region.lower, region.upper, (3, case.d))
        for x in (reference, region.lower, region.upper, *inside):
            line = arb(float(share))
            for c, a, b, unit in zip(curl, x, reference, slice_.lengthscale, strict=True):
                line -= arb(float(c)) * ((arb(float(a)) - arb(float(b))) / arb(float(unit))) ** 2 / 2
            assert Truth(here).latent(x)[0] >= top * line


@pytest.mark.parametrize("norm", [np.inf, 2.0, 1.0, 3.0])
def test_hard_regions_are_settled_and_true(norm):
    """Twenty-six features, half a standard deviation: the range of S would be hopeless there."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 26))
    y = (X[:, :4].sum(axis=1) > 0).astype(int)
    post = gc.GPClassifier(kernel=gc.RBF(6.0, 8.0), max_evals=0).fit(X, y).posterior_
    radius = {np.inf: 0.4, 3.0: 0.8, 2.0: 1.0, 1.0: 1.5}[norm]
    truth, narrow = Truth(post), 0
    for x in X[:4]:
        ball = Ball(x, radius, norm=norm)
        answer = gc.probability_range(post, ball, max_nodes=20)
        narrow += answer.status == "converged"
        worst = gc.attack(post, ball, label=1, starts=4).x
        assert truth.at_least(worst, 1, answer.min.lower)
        assert truth.at_most(answer.argmin, 1, answer.min.upper)
    assert narrow >= 3

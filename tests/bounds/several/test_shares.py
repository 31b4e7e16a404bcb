"""One-vs-rest ranges with all classes at the same point (O6): ball arithmetic says what is in a cell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.sums import KernelSum
from gpcert.bounds.several import shares
from gpcert.likelihoods import OneVsRest, Probit
from judge import Truth

#: More than the features with which inputs are halved.
MANY = 26


def one_vs_rest(rng, kernels, d, link, n=7, reach=0.5):
    X = rng.normal(size=(n, d))
    R = [np.linalg.inv(k(X, X) + np.diag(rng.uniform(0.05, 1.0, n))) for k in kernels]
    R = np.array([0.5 * (each + each.T) for each in R])
    weights, mean = rng.normal(size=(n, len(kernels))) * reach, rng.normal(size=len(kernels)) * 0.5
    return gc.Posterior(X, weights, R, kernel=tuple(kernels), likelihood=OneVsRest(link), mean=mean)


def bounds_on(post, region, label):
    d = post.centres.shape[1]
    moving = np.ones(d, dtype=bool)
    return BoundFactory(post).pair(label, shape_of(region, moving), region.x, moving)


def probit(z):
    """The normal distribution function."""
    return (-z / arb(2).sqrt()).erfc() / 2


def test_every_point_is_in_a_cell_that_is_left():
    """With q of each point by ball arithmetic: none lies in what was called empty."""
    rng = np.random.default_rng(5)
    post = one_vs_rest(rng, [gc.RBF(8.0, 2.0)] * 3, MANY, Probit(), reach=1.5)
    region = gc.Ball(np.zeros(MANY), 0.6)
    box, exact = region.box(), Truth(post)
    for side, bound in enumerate(bounds_on(post, region, 0)):
        cells = shares.Cells(bound.apart, (box.lower, box.upper), region.x, region.x)
        target = bound.at(cells.worst)[1] - 0.05
        cells.refine(target, 40)
        assert cells._above >= target > cells.value or cells.value >= target
        for z in [*rng.uniform(box.lower, box.upper, (8, MANY)), *cells._seen[:8]]:
            p = [probit(exact.mean(z, j) / (1 + exact.clipped(z, j)).sqrt()) for j in range(3)]
            q = [p_j if rises else 1 - p_j for p_j, rises in zip(p, cells._rising, strict=True)]
            share = p[0] / sum(p)
            held = any(
                all(
                    low <= value and (high >= 1.0 or value < high)
                    for value, low, high in zip(q, *ends, strict=True)
                )
                for ends in ((cell.low, cell.high) for cell in cells._open)
            )
            assert held or (1 - share if side else share) >= arb(target)


def test_classes_that_rise_together_have_a_narrow_share():
    """p_0 = p_1 (or nearly) everywhere, both change much: P_0 < 1/2, and separate ranges say far more."""
    weights = [[-5.0, -5.0, 0.0], [5.0, 5.0, 0.0]]
    X = np.zeros((2, MANY))
    X[:, 0] = -2.0, 2.0
    for kernel in (gc.RBF(4.0), (gc.RBF(4.0), gc.RBF(4.2), gc.Matern52(4.0))):
        post = gc.Posterior(
            X,
            weights,
            np.zeros((3, 2, 2)),
            kernel=kernel,
            likelihood=OneVsRest(Probit()),
            mean=[0.0, 0.0, -3.0],
        )
        region = gc.Ball(np.zeros(MANY), 0.3)
        box, bound = region.box(), bounds_on(post, region, 0)[1]
        found = bound.over(box.lower, box.upper, region.x, 0.46)
        while found.pieces is not None and found.value < 0.46:
            found = bound.over(box.lower, box.upper, region.x, 0.46)
        assert found.value >= 0.46
        assert bound.apart.over(box.lower, box.upper, region.x, 0.46).value < 0.43


@pytest.mark.parametrize("seed", range(6))
def test_a_total_of_planes_is_below_their_sum(seed):
    """Value by value in exact rationals: weights and constants less what the excess allows."""
    rng = np.random.default_rng(seed)
    post = one_vs_rest(rng, [gc.RBF(3.0, 2.0)] * 3, 2, Probit())
    region = gc.Ball(rng.normal(size=2), 0.4)
    bound = bounds_on(post, region, 0)[0]
    box, parts = region.box(), []
    for own, other in bound.apart.classes:
        for side in (own, other):
            domain = side.shape.domain(box.lower, box.upper, region.x, side.lengthscale)
            level = side.curves.level(float(rng.uniform(0.01, 0.99)))
            plane = plane_at(side.slice, domain, region.x, level, side.slice.largest_variance)
            parts.append((float(10.0 ** rng.uniform(-6, 3)), plane))
    total = KernelSum.total(parts)
    around = total.around
    for a in rng.normal(size=(4, len(around.k))) * 0.1:  # k_i e^{a_i} up to `rough`, e^r up to its largest
        kernels = np.minimum(around.k * np.exp(a), around.rough)

        def value(plane, kernels=kernels):
            sums = sum(Fraction(b) * Fraction(k) for b, k in zip(plane.b, kernels, strict=True))
            return sums + Fraction(plane.still) + Fraction(plane.constant) - Fraction(plane.excess)

        assert value(total) <= sum(Fraction(factor) * value(plane) for factor, plane in parts)


def test_kernels_that_vanish_over_the_box_end_no_question():
    """One class has a lengthscale so short that its kernel is 0 in doubles: no division by it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 26))
    kernels = (gc.RBF(10.0, 2.0), gc.Matern32(1e-3, 1.0), gc.RBF(10.0, 2.0))
    R = np.array([np.linalg.inv(k(X, X) + 0.1 * np.eye(6)) for k in kernels])
    R, link = 0.5 * (R + R.transpose(0, 2, 1)), OneVsRest(Probit())
    post = gc.Posterior(X, rng.normal(size=(6, 3)), R, kernel=kernels, likelihood=link)
    ball = gc.Ball(np.zeros(26), 0.3)
    found, verdict = (
        gc.probability_range(post, ball, 0, max_nodes=3),
        gc.certify(post, ball.centre, ball, max_nodes=3),
    )
    truth = Truth(post)
    for z in ball.centre + 0.3 * rng.choice([-1.0, 1.0], (4, 26)):
        assert truth.at_least(z, 0, found.lower)
        assert truth.at_most(z, 0, found.upper)
    assert verdict.margin.lower <= verdict.margin.upper

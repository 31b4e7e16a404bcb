"""X4: what rounding does to the coefficients of an expansion, against ball arithmetic, on sets of every norm.

Seen from a reference beside it, a small ball lies where signed sums v.d cancel while |v|.|d| does not: the
roundings of v do not cancel with them.
"""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.ball import BallShape
from gpcert.bounds.geometry.domain import BoxShape
from gpcert.bounds.geometry.sparse import SparseShape
from gpcert.bounds.local.gaussian.expansion import expand
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.one.gaussian import mean_over
from gpcert.kernels import RBF
from gpcert.likelihoods import Probit
from gpcert.posterior import Posterior
from gpcert.regions import Ball
from helpers.oracle import bits, examples, rational

NORMS = (0.0, 1.0, 1.5, 2.0, 4.0, np.inf)


def shape_of(centre: np.ndarray, radius: float, norm: float):
    """The shape of a ball of any norm; of norm 0 at most one feature moves, by at most `radius`."""
    moving = np.ones(len(centre), dtype=bool)
    if norm == 0:
        return SparseShape(Ball(centre, 1, 0, domain=(centre - radius, centre + radius)), moving)
    if norm == np.inf:
        return BoxShape(centre - radius, centre + radius)
    return BallShape(Ball(centre, radius, norm), moving)


def points_of(centre: np.ndarray, radius: float, norm: float, rng: np.random.Generator) -> np.ndarray:
    """Points of the ball for certain (m, d): the centre, one feature moved, and for larger norms several."""
    d = len(centre)
    unit = np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)])
    if norm >= 1.0:
        unit = np.concatenate([unit, rng.uniform(-0.5, 0.5, (8, d)) / d])
    points = centre + radius * 2.0**-20 * np.rint(unit * 2.0**20 * 0.999)
    return np.clip(points, centre - radius, centre + radius)


@settings(max_examples=examples(150))
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 7), norm=st.sampled_from(NORMS))
def test_sums_of_absolute_values_are_bounded(seed, d, norm):
    """`Domain.absolute` against exact sums |v_j| |d_j| at points of the region."""
    rng = np.random.default_rng(seed)
    centre = np.rint(rng.standard_normal(d) * 2.0**20) * 2.0**-20
    radius = 2.0 ** float(rng.integers(-12, 2))
    reference = centre + np.rint(rng.standard_normal(d) * 2.0**20) * 2.0**-20 * 2.0 ** float(
        rng.integers(-8, 2)
    )
    lengthscale = 2.0 ** rng.integers(-2, 3, d).astype(float)
    far = 8.0 * (np.abs(reference - centre) + radius)
    domain = shape_of(centre, radius, norm).domain(centre - far, centre + far, reference, lengthscale)
    rows = rng.standard_normal((4, d)) * 10.0 ** rng.uniform(-3, 3, (4, d))
    found = domain.absolute(rows)
    for x in points_of(centre, radius, norm, rng):
        ends = zip(x, reference, lengthscale, strict=True)
        moved = [(rational(a) - rational(b)) / rational(s) for a, b, s in ends]
        for row, bound in zip(rows, found, strict=True):
            total = sum((abs(rational(v) * e) for v, e in zip(row, moved, strict=True)), fmpq(0))
            assert total <= rational(bound)


def lone_centre(v: np.ndarray, weight: float) -> Posterior:
    """One training point at v, so that the expansion at 0 has the coefficients weight k v^p / p!."""
    return Posterior(
        v[None], np.array([weight]), np.array([[0.3]]), kernel=RBF(1.0, 1.0), likelihood=Probit(), mean=0.0
    )


def polynomial(v: np.ndarray, weight: float, d: np.ndarray) -> arb:
    """weight k (1 + a + a^2/2), a = v.d, k = exp(-|v|^2/2): M to second order, exactly."""
    exact = [arb(float(x)) for x in v]
    a = sum((x * arb(float(y)) for x, y in zip(exact, d, strict=True)), arb(0))
    k = (-sum((x * x for x in exact), arb(0)) / 2).exp()
    return arb(weight) * k * (1 + a + a * a / 2)


def computed(e, d: np.ndarray) -> arb:
    """M0 + M1.d + d^T M2 d / 2 with the stored coefficients, evaluated exactly."""
    d = [arb(float(x)) for x in d]
    total = arb(e.M.value) + sum((arb(float(g)) * x for g, x in zip(e.M.gradient, d, strict=True)), arb(0))
    for row, x in zip(e.M.hessian, d, strict=True):
        total += x * sum((arb(float(h)) * y for h, y in zip(row, d, strict=True)), arb(0)) / 2
    return total


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("away", [0.5, 8.0, 24.0])
def test_coefficients_are_wrong_by_no_more_than_said(norm, away):
    """The ball lies at (away, -away, ...) from the reference, where v.d nearly vanishes."""
    rng = np.random.default_rng(5)
    for d in (2, 4, 6):
        for _ in range(6):
            weight, v = float(rng.standard_normal()), 1.0 + 0.02 * rng.random(d)
            centre, reference = away * np.tile([1.0, -1.0], d // 2), np.zeros(d)
            far = np.full(d, 2.0 * away)
            domain = shape_of(centre, 2.0**-12, norm).domain(-far, far, reference, np.ones(d))
            slice_ = make_slice(model_of(lone_centre(v, weight)), reference, np.arange(d))
            e = expand(slice_, domain, reference)
            with bits(200):
                for x in points_of(centre, 2.0**-12, norm, rng):
                    assert abs(polynomial(v, weight, x) - computed(e, x)) <= arb(e.error_M)


@pytest.mark.parametrize("norm", NORMS)
def test_the_mean_is_bounded_where_its_gradient_cancels(norm):
    """`mean_over` beside a ball: never above the exact mean, and its rounding covers X4."""
    rng = np.random.default_rng(6)
    for d in (2, 4):
        for _ in range(10):
            weight, v = float(rng.standard_normal()), 1.0 + 0.02 * rng.random(d)
            centre, reference = 2.0 * np.tile([1.0, -1.0], d // 2), np.zeros(d)
            domain = shape_of(centre, 2.0**-12, norm).domain(
                np.full(d, -4.0), np.full(d, 4.0), reference, np.ones(d)
            )
            slice_ = make_slice(model_of(lone_centre(v, weight)), reference, np.arange(d))
            found = mean_over(slice_, domain, reference).lower_bound(False, np.inf)
            e = expand(slice_, domain, reference)
            with bits(200):
                for x in points_of(centre, 2.0**-12, norm, rng):
                    gap = [arb(float(a)) - arb(float(b)) for a, b in zip(v, x, strict=True)]
                    mean = arb(weight) * (-sum((g * g for g in gap), arb(0)) / 2).exp()
                    assert mean >= arb(found.latent)
                    assert abs(polynomial(v, weight, x) - computed(e, x)) <= arb(found.rounding)

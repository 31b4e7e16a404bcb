"""B11: a quadratic over a p-ball by the ball's own constraint, in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.geometry.ball_quadratic import descended, unit_lower_bound
from gpcert.bounds.geometry.ball_separable import _least, separable_bound
from gpcert.bounds.geometry.unit_ball import UnitBall
from gpcert.regions import nearest
from helpers.oracle import bits, examples
from helpers.quadratics import matrix

NORMS = (1.5, 3.0, 1.0 + 1e-7, 1.2, 1.99, 2.0 + 1e-9, 4.7, 200.0)
SIZES = st.sampled_from([0.0, 1e-200, 1e-9, 0.1, 1.0, 30.0])


def power(v: float, p: float) -> arb:
    return arb(abs(v)) ** arb(p) if v else arb(0)


def interval(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals in [-1, 1]: across 0, on one side of it, ending there, of no length."""
    ends = np.sort(rng.uniform(-1, 1, (2, n)) * 10.0 ** rng.choice([0, -1, -9], n), axis=0)
    low, high = np.where(rng.random((2, n)) < 0.3, [-np.ones(n), np.ones(n)], ends)
    low = np.where(rng.random(n) < 0.2, np.minimum(high, 0.0), low)
    return np.where(rng.random(n) < 0.1, high, low), high


@settings(max_examples=examples(120), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), SIZES, SIZES, SIZES)
def test_one_coordinate_is_bounded(seed, p, slope, curve, multiplier):
    rng, n = np.random.default_rng(seed), 5
    low, high = interval(rng, n)
    s, E = slope * rng.standard_normal(n), curve * rng.random(n)
    m = max(multiplier, 1e-9 * float(np.abs(s).max() + E.max()) + 1e-290)
    with np.errstate(all="ignore"):
        values, u = _least(s, E, m, UnitBall(low, high, p))
    assert np.isfinite(values).all()
    size = 1e-12 * (np.abs(s) + E + (2.0 + p) * m)  # what `separable_bound` subtracts besides is less
    with bits(200):
        for j in range(n):
            near = u[j] + 1e-3 * rng.standard_normal(4)
            for v in [low[j], high[j], *np.clip([0.0, u[j], *near, *rng.uniform(-1, 1, 4)], low[j], high[j])]:
                w = arb(s[j]) * arb(v) - arb(E[j]) * arb(v) ** 2 / 2 + arb(m) * power(v, p)
                assert arb(values[j]) - arb(size[j]) <= w


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.sampled_from(["indefinite", "negative", "psd"]))
def test_any_convexifier_tangent_and_multiplier_are_sound(seed, p, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    H, g = matrix(rng, kind, n), rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 1)
    low, high = interval(rng, n)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    ball = UnitBall(low, high, p)
    E = np.abs(H).sum(axis=1) * rng.uniform(1.0, 2.0, n)
    start = rng.uniform(-1, 1, n), float(10.0 ** rng.uniform(-6, 1))
    with np.errstate(all="ignore"):
        value = separable_bound(g, H, ball, E, [start], np.inf)
    assert value > -np.inf
    for z in rng.standard_normal((8, n)):
        u = (1.0 - 1e-13) * nearest(z, low, high, p)
        with bits(200):
            inside = (
                bool(sum((power(v, p) for v in u), arb(0)) <= 1) and (low <= u).all() and (u <= high).all()
            )
            Hu = [sum((arb(a) * arb(v) for a, v in zip(row, u, strict=True)), arb(0)) for row in H]
            q = sum(
                ((arb(a) + b / 2) * arb(v) for a, b, v in zip(g, Hu, u, strict=True)),
                arb(0),
            )
            assert not inside or arb(value) <= q


@pytest.mark.parametrize("norm", [1.3, 1.5, 1.8, 3.0, 5.0])
def test_concave_forms_with_a_slope_are_nearly_exact(norm):
    """Eight features, a concave form about as large as the slope: B6 lost a tenth of it and more."""
    rng = np.random.default_rng(8)
    for _ in range(4):
        turn, _ = np.linalg.qr(rng.standard_normal((8, 8)))
        H = -(turn * np.linspace(0.0, 1.0, 8)) @ turn.T
        g = rng.uniform(0.7, 1.3, 8) * rng.choice([-1.0, 1.0], 8)
        ball = UnitBall(-np.ones(8), np.ones(8), norm)
        u = descended(g, 0.5 * (H + H.T), ball)
        best = float(g @ u + 0.5 * u @ H @ u)
        assert best - 0.02 * abs(best) <= unit_lower_bound(g, 0.5 * (H + H.T), ball).value <= best


@pytest.mark.parametrize("norm", [1.2, 1.5, 1.9])
@pytest.mark.parametrize("n", [4, 8])
def test_convex_forms_are_nearly_exact(norm, n):
    rng = np.random.default_rng(n)
    A, g = rng.standard_normal((n, n)), rng.standard_normal(n)
    ball = UnitBall(-np.ones(n), np.ones(n), norm)
    y = descended(g, A @ A.T, ball)
    found = unit_lower_bound(g, A @ A.T, ball)
    here = float(g @ y + 0.5 * y @ A @ A.T @ y)
    assert found.value >= here - 1e-3 * abs(here)

"""Ranges over balls of every norm: inclusions, two paths for one norm, brute force over few coordinates."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.geometry.unit_ball import pair_bound
from helpers.exact import CHOICES, Case, falsehoods, small_model
from helpers.oracle import examples
from helpers.quadratics import matrix

BALLS = (2.0, 1.0, 1.5, 3.0, 1.01, 2.5, 17.0, 0.0)


def cases(**fixed):
    """Random queries over balls of norms other than infinity."""
    choices = CHOICES | {
        "norm": BALLS,
        "shape": ("ball", "features", "domain", "scale"),
        "n": (1, 2, 5, 8, 13),
    }
    choices |= {"precision": ("laplace", "zero", "spectrum", "stiff", "excess")} | fixed
    return st.builds(Case, **{name: st.sampled_from(values) for name, values in choices.items()})


@settings(max_examples=examples(24), deadline=None)
@given(cases(d=(1, 2, 3, 5, 8)))
def test_bounds_hold_over_balls_of_every_norm(case):
    assert falsehoods(case) == []


@settings(max_examples=examples(3), deadline=None)
@given(cases(d=(25, 30), n=(13, 30), width=(0.1, 0.5, 1.0), tolerance=(0.02,)))
def test_bounds_hold_over_balls_with_many_features(case):
    assert falsehoods(case) == []


@pytest.mark.parametrize("seed", range(4))
def test_inclusions_of_balls_are_never_contradicted(seed):
    """L0 with one coordinate in L1 in L1.5 in L2 in L3 in Linf."""
    rng = np.random.default_rng(seed)
    post = small_model(d=3, seed=seed, likelihood=("probit", "logit")[seed % 2])
    x, r = rng.standard_normal(3), float(10.0 ** rng.uniform(-2, -0.3))
    domain = (x - r * rng.integers(0, 2, 3), x + r)
    balls = [gc.Ball(x, 1, 0, domain=domain)]
    balls += [gc.Ball(x, r, norm, domain=domain) for norm in (1, 1.5, 2, 3, np.inf)]
    answers = gc.probability_range(post, balls, tolerance=0.01, max_nodes=30)
    for small, big in itertools.pairwise(answers):
        assert small.min.upper >= big.min.lower
        assert small.max.lower <= big.max.upper


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("radius", [0.05, 0.4])
def test_two_paths_to_the_euclidean_ball_agree(d, radius):
    """p = 2 takes closed formulas, p next to 2 the powers of the general case; the sets differ by 1e-9."""
    post = small_model(d=d, seed=d)
    x = np.full(d, 0.2)
    domain = (x - 0.3 * radius, x + radius)
    answers = [
        gc.probability_range(post, gc.Ball(x, radius, p, domain=domain), tolerance=1e-3)
        for p in (2.0, 2.0 + 1e-10, 2.0 - 1e-10)
    ]
    for r in answers:
        assert r.status == "converged"
        assert abs(r.min.lower - answers[0].min.lower) <= 1.01e-3
        assert abs(r.max.upper - answers[0].max.upper) <= 1.01e-3


@pytest.mark.parametrize("norm", [2.0, 1.0, 3.0, 1.5])
def test_the_ball_is_bounded_not_its_hull(norm):
    """In 2 features the corners of the hull, far outside the ball, would change the answer."""
    post = small_model(d=2, seed=4)
    grid = np.linspace(-0.8, 0.8, 161)
    X = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    inside = X[(np.abs(X) ** norm).sum(axis=1) <= 0.8**norm]
    p = post.probability(inside)[:, 1]
    r = gc.probability_range(post, gc.Ball([0.0, 0.0], 0.8, norm), tolerance=1e-3)
    assert r.status == "converged"
    assert r.lower <= p.min() <= r.min.upper + 2e-2
    assert r.max.lower - 2e-2 <= p.max() <= r.upper


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_few_coordinates_agree_with_brute_force(k, likelihood):
    """Norm 0 against the boxes of all supports."""
    d, tolerance = 5, 5e-3
    post = small_model(n=20, d=d, seed=k, likelihood=likelihood)
    rng = np.random.default_rng(k)
    x = 0.5 * rng.standard_normal(d)
    low, high = x - rng.random(d) * rng.integers(0, 2, d), x + rng.random(d)
    answer = gc.probability_range(post, gc.Ball(x, k, 0, domain=(low, high)), tolerance=tolerance)
    boxes = []
    for support in itertools.combinations(range(d), k):
        moves = np.isin(np.arange(d), support)
        boxes.append(gc.Box(np.where(moves, low, x), np.where(moves, high, x)))
    every = gc.probability_range(post, boxes, tolerance=tolerance)
    assert answer.status == "converged"
    assert answer.min.lower <= min(r.min.upper for r in every)
    assert answer.min.upper >= min(r.min.lower for r in every)
    assert answer.max.upper >= max(r.max.lower for r in every)
    assert answer.max.lower <= max(r.max.upper for r in every)


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32 - 1))
def test_pair_bounds_hold_on_every_support(seed):
    """Z3, Z4 against points of all supports, in rational arithmetic."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    H = matrix(rng, ["psd", "indefinite", "diagonal", "negative"][seed % 4], n)
    g = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2)
    forced = rng.random(n) < 0.2
    low, high = -rng.random(n) * rng.integers(0, 2, n), rng.random(n)
    low = np.where(forced, 0.3 * high, low)
    count = int(rng.integers(0, n + 1))
    pairs = pair_bound(g, H, low, high, forced, count)
    target = pairs.least() + rng.random() * 3 * (1 + abs(pairs.least()))
    each = pairs.with_each()
    found = pairs.survivors(target, each < target, 10**6)
    assert found is not None
    listed = {frozenset(row) for row in found.tolist()}
    free = np.flatnonzero(~forced)
    for support in itertools.combinations(free.tolist(), min(count, len(free))):
        moves = np.isin(np.arange(n), support) | forced
        for _ in range(4):
            e = np.where(
                moves,
                np.where(rng.random(n) < 0.5, rng.choice([low, high]), low + rng.random(n) * (high - low)),
                0,
            )
            e = np.where(moves, np.clip(e, low, high), 0.0)
            value = quadratic(g, H, e)
            assert Fraction(pairs.least()) <= value
            for j in support:
                assert Fraction(each[j]) <= value
            if value < Fraction(target):
                assert any(set(support) <= names for names in listed)


def quadratic(g, H, e):
    """g.e + e^T H e / 2 as a rational number."""
    v = [Fraction(float(x)) for x in e]
    rows = [sum(Fraction(float(h)) * x for h, x in zip(row, v, strict=True)) for row in H]
    return sum(x * (Fraction(float(a)) + r / 2) for x, a, r in zip(v, g, rows, strict=True))


@pytest.mark.parametrize("norm", [1e13, 1e15, 1e16, 1e300])
def test_huge_norms_are_answered(norm):
    """The ball of norm inf is hardly larger."""
    post = small_model()
    whole = gc.probability_range(post, gc.Ball([0.1, 0.2], 0.3))
    found = gc.probability_range(post, gc.Ball([0.1, 0.2], 0.3, norm=norm))
    assert found.status == "converged"
    assert found.min.lower <= whole.min.upper
    assert found.max.upper >= whole.max.lower - 0.02

"""One-vs-rest labels, two classes compared at the same point (O4): ball arithmetic says who wins."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.several.joint import JointLabel, _between, _Box
from gpcert.likelihoods import OneVsRest, Probit
from helpers.oracle import examples
from judge import Truth

D = 2
KERNELS = (
    gc.RBF(1.0, 2.0),
    gc.RBF(np.array([0.7, 1.6]), 1.0),
    gc.Matern52(1.2, 1.5),
    gc.Matern32(1.5, 1.0),
    gc.RBF(0.9, 1.0) + gc.Matern52(2.0, 0.5),
)


def one_vs_rest(rng, classes=3, n=6, same=False):
    """As training would leave it, a kernel for each class."""
    X = rng.normal(size=(n, D))
    chosen = [KERNELS[0 if same else rng.integers(len(KERNELS))] for _ in range(classes)]
    R = [np.linalg.inv(k(X, X) + np.diag(rng.uniform(0.05, 1.0, n))) for k in chosen]
    weights = rng.normal(size=(n, classes)) * rng.choice([0.5, 2.0])
    mean = rng.normal(size=classes) * 0.3
    link = OneVsRest(Probit(float(rng.choice([1.0, 0.5, 3.0]))))
    R = np.array([0.5 * (each + each.T) for each in R])
    return gc.Posterior(X, weights, R, kernel=tuple(chosen), likelihood=link, mean=mean)


def asked(rng, post, width, norm):
    """A region, its bound, and points of it: corners and others."""
    x = rng.normal(size=D) * 0.7
    region = gc.Ball(x, width, norm=norm)
    box = region.inner_box()
    label = int(post.probability(x[None])[0].argmax())
    moving = np.ones(D, dtype=bool)
    bound = BoundFactory(post).margin(label, shape_of(region, moving), x, moving)
    corners = np.array(np.meshgrid(*zip(box.lower, box.upper, strict=True))).reshape(D, -1).T
    points = [z for z in (*corners, x, *(rng.uniform(box.lower, box.upper, (6, D)))) if region.contains(z)]
    return region, label, bound, points


def noise(post):
    """c of the probit link: p = Phi(mu / sqrt(c + S))."""
    return 1 / arb(post.likelihood.link.scale) ** 2


def margin_is_above(exact, z, label, value):
    """(1 + P_c - P_j) / 2 is at least `value` for every j; > 1/2, by mu / A, where `value` is; proved."""
    if value > 0.5:  # probabilities near 1 may differ by less than balls tell
        score = [
            exact.mean(z, j) / (noise(exact.post) + exact.clipped(z, j)).sqrt()
            for j in range(exact.post.n_classes)
        ]
        return all(score[label] > other for j, other in enumerate(score) if j != label)
    p = exact.probabilities(z)
    return all((1 + p[label] - other) / 2 >= arb(value) for j, other in enumerate(p) if j != label)


def test_classes_that_rise_together_are_told_apart_at_once():
    """mu_0 = mu_1 + 0.2 everywhere, and both change by more than that: separate ranges overlap."""
    weights = [[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]
    link, mean = OneVsRest(Probit()), [0.2, 0.0, -2.0]
    for kernel in (gc.RBF(2.0), gc.Matern52(2.0), (gc.RBF(2.0), gc.RBF(2.1), gc.Matern32(2.0))):
        post = gc.Posterior(
            [[-2.0], [2.0]], weights, np.zeros((3, 2, 2)), kernel=kernel, likelihood=link, mean=mean
        )
        moving, low, high = np.array([True]), np.array([-0.3]), np.array([0.3])
        bound = BoundFactory(post).margin(0, shape_of(gc.Box(low, high), moving), low, moving)
        assert bound.over(low, high, low, 0.5 + 1e-9).value > 0.5
        assert bound.apart.over(low, high, low, 0.5 + 1e-9).value < 0.5


def test_rivals_beaten_on_different_boxes_around_one_are_beaten_on_it():
    rng = np.random.default_rng(11)
    bound = asked(rng, one_vs_rest(rng), 0.1, np.inf)[2]
    low, high = np.zeros(D), np.ones(D)
    bound.known.add(low, high, np.array([True, False]))
    bound.known.add(low - 1.0, high, np.array([False, True]))
    assert bound.over(0.2 * high, 0.4 * high, 0.3 * high, 0.5).value > 0.5


def test_a_rival_without_expansions_is_bounded_apart():
    """R7 is asked of every class, not of the label's alone."""
    odd = gc.RBF(np.array([1.0, 1e32])) + gc.Matern52(1.0)
    for kernels in ((gc.RBF(1.0), odd, gc.RBF(1.0)), (odd, gc.RBF(1.0), gc.RBF(1.0))):
        link, R = OneVsRest(Probit()), np.zeros((3, 2, 2))
        post = gc.Posterior(
            np.eye(2), np.ones((2, 3)), R, kernel=kernels, likelihood=link, mean=[1.0, 0.0, 0.0]
        )
        region, moving = gc.Ball([0.0, 0.0], 0.1), np.ones(2, dtype=bool)
        bound = BoundFactory(post).margin(0, shape_of(region, moving), np.zeros(2), moving)
        assert not isinstance(bound, JointLabel)


def scores(exact, z, label, rival):
    """z_c and z_j, as balls."""
    c = noise(exact.post)
    return [exact.mean(z, j) / (c + exact.clipped(z, j)).sqrt() for j in (label, rival)]


@given(seed=st.integers(0, 10**6), width=st.sampled_from([1e-6, 0.1, 0.4, 1.0]))
@settings(max_examples=examples(60), deadline=None)
def test_no_number_of_an_excluded_cell_lies_between_two_classes(seed, width):
    """O4 and what a class exceeds alone, with cells anywhere: wrong ends, or one end alone, are seen."""
    rng = np.random.default_rng(seed)
    post = one_vs_rest(rng, same=bool(seed % 2))
    region, label, bound, points = asked(rng, post, width, np.inf)
    box, exact = region.box(), Truth(post)
    start = points[int(rng.integers(len(points)))]
    compared = _Box(bound, (box.lower, box.upper), start, (True,), [start, points[-1]])
    others = [j for j in range(post.n_classes) if j != label]
    for index, j in enumerate(others):
        own, rival = bound.own.objective(start)[0], -bound.rivals[index].objective(start)[0]
        low, high = sorted(rng.uniform(min(own, rival) - 0.5, max(own, rival) + 0.5, 2))
        done, _ = compared._excluded(bound.rivals[index], low, high)
        least = compared._exceeded(bound.own, low)
        for z in points:
            z_c, z_j = scores(exact, z, label, j)
            assert least is None or z_c > arb(least)
            assert not done or z_c > z_j or z_c > arb(high) or z_j < arb(low)


@pytest.mark.parametrize("means", [[0.0, 2.0, 0.05], [0.0, 0.05, 2.0], [0.0, 2.0, 0.05, -1.0]])
def test_of_several_rivals_the_worst_counts(means):
    weights, box, C = [[0.1] * len(means)], (np.array([-0.5]), np.array([0.5])), len(means)
    post = gc.Posterior(
        [[0.0]],
        weights,
        np.zeros((C, 1, 1)),
        kernel=gc.RBF(1.0),
        likelihood=OneVsRest(Probit()),
        mean=means,
    )
    moving = np.array([True])
    bound = BoundFactory(post).margin(0, shape_of(gc.Box(*box), moving), box[0], moving)
    found = bound.over(*box, box[0], 0.5 + 1e-9)
    assert found.value > 0.1
    assert margin_is_above(Truth(post), box[0], 0, found.value)


def test_cells_reach_down_to_what_the_label_exceeds():
    """Both classes rise along one of 30 features; the rival is ahead only where both are lowest."""
    d = 30
    centres, weights, wide = np.zeros((2, d)), np.zeros((2, 3)), np.full(d, 1e-3)
    centres[:, 0], weights[:, 0], weights[:, 1], wide[0] = (-2.0, 2.0), (-4.0, 4.0), (-2.5, 2.5), 0.5
    post = gc.Posterior(
        centres,
        weights,
        np.zeros((3, 2, 2)),
        kernel=gc.RBF(2.0),
        likelihood=OneVsRest(Probit()),
        mean=[0.35, 0.0, -9.0],
    )
    exact, moving = Truth(post), np.ones(d, dtype=bool)
    bound = BoundFactory(post).margin(0, shape_of(gc.Box(-wide, wide), moving), np.zeros(d), moving)
    z_c, z_j = scores(exact, -wide, 0, 1)
    assert z_c < z_j
    for start in (wide, 0.3 * wide, 0.0 * wide, -wide):
        compared = _Box(bound, (-wide, wide), start, (True,), [wide, -0.8 * wide, -wide])
        own, rival = bound.own.objective(wide)[0], -bound.rivals[0].objective(wide)[0]
        least = compared._exceeded(bound.own, own)
        most = compared._most(bound.rivals[0], least, own, rival)
        assert z_j < arb(most)


@pytest.mark.parametrize("long", [gc.RBF(20.0), gc.Matern52(20.0)])
@pytest.mark.parametrize("short", [gc.RBF(1.0), gc.Matern52(1.0)])
def test_classes_are_added_up_in_common_units(long, short):
    """The rival rises from 1.5 to 0.5, in its own lengthscale; in the label's it would hardly move."""
    post = gc.Posterior(
        [[0.0]],
        [[0.0, 2.0, 0.0]],
        np.zeros((3, 1, 1)),
        kernel=(long, short, short),
        likelihood=OneVsRest(Probit()),
        mean=[0.3, -0.5, 0.0],
    )
    moving, box, start = np.array([True]), (np.array([0.5]), np.array([1.5])), np.array([1.5])
    bound = BoundFactory(post).margin(0, shape_of(gc.Box(*box), moving), start, moving)
    (z_c, z_j), t = scores(Truth(post), box[0], 0, 1), 0.5
    assert z_c < t < z_j
    compared = _Box(bound, box, start, (True,), [start])
    for share in np.linspace(0.0, 1.0, 33).tolist():
        assert not compared._least(bound.own, t, share, bound.rivals[0]).value > 0.0


def test_a_rival_that_is_low_everywhere_wins_where_the_label_falls():
    """z_1 = 0 stays below half of z_0 at the reference; what counts is the smallest z_0."""
    link, mean = OneVsRest(Probit()), [-1.0, 0.0, -3.0]
    weights, box = [[3.0, 0.0, 0.0]], (np.array([0.0]), np.array([4.0]))
    for kernel in (gc.RBF(1.0), gc.Matern52(1.0)):
        post = gc.Posterior([[0.0]], weights, np.zeros((3, 1, 1)), kernel=kernel, likelihood=link, mean=mean)
        moving = np.array([True])
        bound = BoundFactory(post).margin(0, shape_of(gc.Box(*box), moving), box[0], moving)
        found = bound.over(*box, box[0], 0.5 + 1e-9)
        assert margin_is_above(Truth(post), box[1], 0, found.value)


@pytest.mark.parametrize("same", [True, False])
def test_many_features(same):
    """More than 24: several cells and factors. Corners, samples and the worst point that is found."""
    rng = np.random.default_rng(4 if same else 5)
    n, d = 12, 30
    X = rng.normal(size=(n, d))
    kernels = tuple(gc.RBF(6.0 if same else 5.0 + j, 9.0) for j in range(3))
    R = [np.linalg.inv(k(X, X) + np.diag(rng.uniform(0.05, 1.0, n))) for k in kernels]
    R = np.array([0.5 * (each + each.T) for each in R])
    link = OneVsRest(Probit())
    post = gc.Posterior(X, rng.normal(size=(n, 3)), R, kernel=kernels, likelihood=link, mean=np.zeros(3))
    exact, moving = Truth(post), np.ones(d, dtype=bool)
    proved = 0
    for x in rng.normal(size=(6, d)):
        label = int(post.probability(x[None])[0].argmax())
        for radius in (0.05, 0.15, 0.3):
            region = gc.Ball(x, radius)
            box = region.box()
            bound = BoundFactory(post).margin(label, shape_of(region, moving), x, moving)
            worst = x - radius * np.sign(bound.objective(x)[1])
            worst = np.clip(worst, box.lower, box.upper)
            found = bound.over(box.lower, box.upper, worst, 0.5 + 1e-9)
            proved += found.value > 0.5
            for z in (x, worst, found.point, *np.where(rng.random((4, d)) < 0.5, box.lower, box.upper)):
                if region.contains(z):
                    assert margin_is_above(exact, z, label, found.value)
    assert proved >= 6


@given(st.floats(-45.0, 45.0), st.floats(0.0, 10.0), st.lists(st.floats(0.0, 1.0), min_size=2, max_size=2))
@settings(max_examples=examples(100), deadline=None)
def test_margins_between_two_numbers(low, width, shares):
    """The last sentence of O4, in balls: any third class only brings the margin nearer to 0."""
    high = low + width
    first, second = sorted(low + share * (high - low) for share in shares)
    p, q = ((1 + (arb(min(t, high)) / arb(2).sqrt()).erf()) / 2 for t in (first, second))
    assert not p / (p + q) < arb(_between(low, high))

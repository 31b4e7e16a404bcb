"""One-vs-rest labels, two classes compared at the same point (O4, O5): ball arithmetic says who wins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds import BoundFactory, shape_of
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.local.forms import Pieces, Remainder, least
from gpcert.bounds.several.joint import JointLabel, _roots
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


@given(seed=st.integers(0, 10**6), width=st.sampled_from([1e-9, 0.02, 0.1, 0.4, 1.0]))
@settings(max_examples=examples(50), deadline=None)
def test_what_is_said_of_a_box_holds_on_it(seed, width):
    rng = np.random.default_rng(seed)
    post = one_vs_rest(rng, same=bool(seed % 2))
    region, label, bound, points = asked(rng, post, width, rng.choice([1.0, 2.0, np.inf]))
    assert isinstance(bound, JointLabel)
    box = region.box()
    reference = points[int(rng.integers(len(points)))]
    found = bound.over(box.lower, box.upper, reference, 0.5 + 1e-9)
    exact = Truth(post)
    for z in points:
        assert margin_is_above(exact, z, label, found.value)


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


def test_a_rival_beaten_on_a_box_is_not_asked_about_on_its_parts():
    rng = np.random.default_rng(11)
    bound = asked(rng, one_vs_rest(rng, classes=4), 0.1, np.inf)[2]
    low, high = np.zeros(D), np.ones(D)
    bound._remember(low, high, np.array([1]))
    assert bound._known(low, 0.5 * high).tolist() == [True, False, True]
    assert bound._known(low - 1e-9, high).tolist() == [False] * 3
    bound._remember(low, high, np.array([0, 1, 2]))
    assert bound._known(low, high).tolist() == [True, False, True]


@given(seed=st.integers(0, 10**6), width=st.sampled_from([1e-9, 0.05, 0.5, 2.0]))
@settings(max_examples=examples(30), deadline=None)
def test_roots_of_the_variance_stay_between_their_ends(seed, width):
    """O5, for kernels of every kind, at corners and inside, c the noise of the link."""
    rng = np.random.default_rng(seed)
    post = one_vs_rest(rng)
    region, _, bound, points = asked(rng, post, width, np.inf)
    box, exact = region.box(), Truth(post)
    for label, (own, _) in enumerate(bound.apart.classes):
        start = points[int(rng.integers(len(points)))]
        domain = bound.shape.domain(box.lower, box.upper, start, own.lengthscale)
        low, high = _roots(own, domain, start)
        for z in points:
            root = (noise(post) + exact.clipped(z, label)).sqrt()
            assert root >= arb(low)
            assert root <= arb(high)


def quadratic(pieces, d):
    """base + g.d + d^T (sum of parts) d / 2 - remainders - excess, exactly."""
    d = [Fraction(v) for v in d]

    def form(matrix):
        return sum(Fraction(matrix[i, j]) * d[i] * d[j] for i in range(len(d)) for j in range(len(d))) / 2

    value = Fraction(pieces.base) + sum(Fraction(g) * v for g, v in zip(pieces.g, d, strict=True))
    value += sum(form(part) for part in pieces.parts) - Fraction(pieces.excess)
    for matrix, diagonal, rounding, constant in pieces.remainders:
        value -= Fraction(rounding) + Fraction(constant)
        value -= 0 if matrix is None else form(matrix)
        value -= 0 if diagonal is None else form(np.diag(diagonal))
    return value


@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_other_units_and_without_a_programme(seed):
    """In exact rationals: nothing is gained by changing units, by adding up, or by the rough bound."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 3)

    def symmetric():
        A = rng.normal(size=(D, D))
        return size * 0.5 * (A + A.T)

    A = rng.normal(size=(D, D))
    remainders = [Remainder(A @ A.T, np.abs(rng.normal(size=D)), 1e-3, 0.1), Remainder(None, None, 0.2)]
    one = Pieces(rng.normal() * size, rng.normal(size=D), [symmetric(), symmetric()], remainders, 1e-2)
    reach = np.abs(rng.normal(size=D)) + 0.1
    factor = 10.0 ** rng.uniform(-2, 2, D)
    domain = BoxDomain(-reach, reach)
    moved = one.measured_by(factor, reach)
    both, rough = least(domain, [one, moved.times(1.7)], (np.inf, 1e-6)).value, moved.rough(domain)
    for point in (*(rng.uniform(-reach, reach, (10, D))), reach, -reach, 0.0 * reach):
        # d = factor * d': the same points, each in its own units
        there = [Fraction(f) * Fraction(v) for f, v in zip(factor, point, strict=True)]
        value = quadratic(moved, point)
        assert value <= quadratic(one, there)
        assert Fraction(rough) <= value
        assert Fraction(both) <= quadratic(one, point) + Fraction(1.7) * value

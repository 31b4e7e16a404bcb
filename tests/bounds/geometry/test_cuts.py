"""Parts of boxes and balls on one side of a hyperplane (B9), in exact rationals; planes on them (B10)."""

from __future__ import annotations

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.geometry.cut import HalfSpace
from gpcert.bounds.local.forms import Quadratic
from gpcert.regions import project
from helpers.oracle import bits, examples, rational
from helpers.quadratics import matrix
from judge import Truth

NORMS = (1.0, 1.5, 2.0, 3.0, 7.3, np.inf)
KINDS = ("psd", "indefinite", "negative", "zero")


def dot(a, b) -> fmpq:
    return sum((rational(x) * y for x, y in zip(a, b, strict=True)), fmpq(0))


def form(H, d) -> fmpq:
    return sum((dot(row, d) * v for row, v in zip(H, d, strict=True)), fmpq(0)) / 2


class Setting:
    """A ball, a reference in it, and points of the ball with their exact displacements."""

    def __init__(self, seed: int, norm: float) -> None:
        rng = self.rng = np.random.default_rng(seed)
        d = self.d = int(rng.integers(1, 6))
        self.lengthscale = 10.0 ** rng.uniform(-1, 1, d)
        self.ball = gc.Ball(
            rng.normal(size=d) * 10.0 ** rng.uniform(-1, 4), 10.0 ** rng.uniform(-3, 0), norm=norm
        )
        self.shape = shape_of(self.ball, np.ones(d, dtype=bool))
        box = self.ball.box()
        self.box = box.lower, box.upper
        drawn = self.ball.x + 2.0 * self.ball.radius * rng.uniform(-1.0, 1.0, (24, d))
        self.points = [project(self.ball, x) for x in drawn]
        self.reference = self.points.pop()
        assert all(self.ball.contains(x) for x in self.points)

    def domain(self, reference):
        return self.shape.domain(*self.box, reference, self.lengthscale)

    def exact(self, x, reference) -> list[fmpq]:
        steps = zip(x, reference, self.lengthscale, strict=True)
        return [(rational(a) - rational(b)) / rational(unit) for a, b, unit in steps]

    def half(self, share: float) -> HalfSpace:
        """A random half space that takes about this share of the ball."""
        normal = self.rng.normal(size=self.d)
        d = np.array([(x - self.reference) / self.lengthscale for x in self.points])
        level = float(np.quantile(d @ normal, share))
        return HalfSpace(self.reference, self.lengthscale, normal, level + 1e-9 * abs(level))


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.sampled_from(KINDS))
def test_suprema_and_quadratics_over_a_cut_hold(seed, norm, kind):
    """B9: support, norm, and the quadratic's minimum at every point that is certainly on this side."""
    case = Setting(seed, norm)
    half = case.half(case.rng.choice([0.1, 0.3, 0.6]))
    domain = half.seen_from(case.points[0], case.domain(case.points[0]))
    rows, metric = case.rng.normal(size=(3, case.d)), case.rng.random(case.d)
    g, H = case.rng.normal(size=case.d), matrix(case.rng, kind, case.d)
    suprema, span = domain.support(rows), domain.norm(metric)
    value = domain.minimise(g, H, case.rng.choice([np.inf, 0.0, -1.0])).value
    seen = 0
    for x in case.points:
        if not dot(half.normal, case.exact(x, half.start)) <= rational(half.level):
            continue
        d = case.exact(x, case.points[0])
        seen += 1
        assert all(dot(row, d) <= rational(most) for row, most in zip(rows, suprema, strict=True))
        assert (
            sum((rational(m) * v * v for m, v in zip(metric, d, strict=True)), fmpq(0)) <= rational(span) ** 2
        )
        assert dot(g, d) + form(H, d) >= rational(value)
    assert seen


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(NORMS), st.sampled_from(KINDS))
def test_a_quadratic_is_negative_on_one_side_only(seed, norm, kind):
    """B9: where it is negative lies below the cut, and in the box that the cut leaves."""
    case = Setting(seed, norm)
    domain = case.domain(case.reference)
    g, H = case.rng.normal(size=case.d), matrix(case.rng, kind, case.d)
    values = [dot(g, d) + form(H, d) for d in (case.exact(x, case.reference) for x in case.points)]
    one = sorted(values)[int(case.rng.integers(1, len(values)))]
    base = -int(one.p) / int(one.q)
    slope, level = Quadratic(base, g, H).cut(domain)
    lower, upper = HalfSpace(case.reference, case.lengthscale, slope, level).shortened(domain, *case.box)
    for x, value in zip(case.points, values, strict=True):
        if rational(base) + value < 0:
            assert dot(slope, case.exact(x, case.reference)) < rational(level)
            assert ((lower <= x) & (x <= upper)).all()


def test_cuts_are_sharp():
    """A ball of norm 3 on one side: suprema across it and the span fall; nothing above would notice."""
    ball = gc.Ball(np.zeros(8), 1.0, norm=3)
    shape, one = shape_of(ball, np.ones(8, dtype=bool)), np.ones(8)
    whole = shape.domain(-one, one, 0.4 * one, one)
    half = HalfSpace(np.zeros(8), one, -one, -3.4)  # the largest sum is 4
    cut = half.seen_from(0.4 * one, whole)
    assert cut.norm(one) < 0.6 * whole.norm(one)
    assert (cut.support(np.eye(8)) < 0.92 * whole.support(np.eye(8))).all()
    lower, upper = half.shortened(shape.domain(-one, one, 0.0 * one, one), -one, one)
    assert (upper - lower < 1.4).all()


def hard(kernel: gc.Kernel) -> tuple[gc.Posterior, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = (2.0 * np.sin(X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] > 0).astype(int)
    return gc.GPClassifier(kernel=kernel, max_evals=0).fit(X, y).posterior_, X


@pytest.mark.parametrize("norm", [1.0, 3.0, np.inf])
def test_what_planes_on_cuts_prove_is_true(norm):
    """B10: P >= value on the box, and >= elsewhere beside the pieces; in ball arithmetic."""
    post, X = hard(gc.Matern32(3.0, 10.0))
    truth, rng, cuts, beside = Truth(post), np.random.default_rng(1), 0, 0
    for x in X[:3]:
        ball = gc.Ball(x, {1.0: 1.0, 3.0: 0.7, np.inf: 0.5}[norm], norm=norm)
        everywhere = np.ones(5, dtype=bool)
        points = [project(ball, x + 2.0 * ball.radius * rng.uniform(-1.0, 1.0, 5)) for _ in range(40)]
        for label, bound in enumerate(BoundFactory(post).pair(0, shape_of(ball, everywhere), x, everywhere)):
            chances = post.probability(np.array(points))[:, label]
            worst, box = points[int(chances.argmin())], ball.box()
            found = bound.over(box.lower, box.upper, worst, float(chances.min()) - 0.01)
            cuts += found.pieces is not None
            with bits(120):
                for point in points:
                    inside = [(low <= point).all() and (point <= up).all() for low, up in found.pieces or ()]
                    assert truth.at_least(point, label, found.value)
                    if inside and not any(inside):
                        beside += 1
                        assert truth.at_least(point, label, found.elsewhere)
    assert cuts or norm == np.inf  # there hyperplanes shorten nothing
    assert beside or norm != 1.0

"""What a bound that fails leaves of a box (Q3, Q4), in exact rationals; planes on it, in ball arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.bounds.factory import BoundFactory, shape_of
from gpcert.bounds.geometry.domain import BoxDomain, BoxShape
from gpcert.bounds.geometry.remnant import Remnant, remnant
from gpcert.bounds.interface import Certified
from gpcert.bounds.one.left import Left
from gpcert.search.local import descend
from helpers.oracle import bits, examples, rational
from helpers.quadratics import exact, matrix
from judge import Truth

seeds = st.integers(0, 2**32 - 1)
KINDS = ("psd", "indefinite", "negative", "zero")


def box(rng: np.random.Generator, d: int) -> BoxDomain:
    """Around 0, which may be at an end; some features stand still, widths of all magnitudes."""
    width = 10.0 ** rng.uniform(-3, 1, d) * (rng.random(d) < 0.9)
    share = rng.choice([0.0, 1.0, 0.3, 0.5], d)
    return BoxDomain(-width * share, width * (1.0 - share))


def steps(part: Remnant, d: np.ndarray) -> fmpq:
    """sum_j |slopes_j| delta_j, exactly."""
    total = fmpq(0)
    for slope, low, high, x in zip(part.slopes, part.low, part.high, d, strict=True):
        far = rational(x) - rational(low) if slope > 0 else rational(high) - rational(x)
        total += abs(rational(slope)) * far
    return total


def filled(rng: np.random.Generator, part: Remnant) -> np.ndarray:
    """A point of the part, mostly on its edge: features leave their near ends one by one."""
    near = np.where(part.slopes > 0, part.low, part.high)
    far = np.where(part.slopes > 0, part.high, part.low)
    d, room = near.copy(), part.room * rng.choice([1.0, 1.0, 0.5])
    for j in rng.permutation(len(d)):
        price = abs(part.slopes[j]) * abs(far[j] - near[j])
        share = 1.0 if price <= room else room / price * (1.0 - 1e-12)
        d[j] = near[j] + share * (far[j] - near[j])
        room = max(room - price, 0.0)
    return np.clip(d, part.low, part.high)


def drawn(rng: np.random.Generator, d: int) -> Remnant | None:
    slopes = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 2, d) * (rng.random(d) < 0.8)
    return remnant(box(rng, d), -(10.0 ** rng.uniform(-4, 1)), slopes)


@settings(max_examples=examples(150), deadline=None)
@given(seeds)
def test_suprema_over_a_remnant_hold(seed):
    """Q4: norm, support and absolute at points of the part, exactly."""
    rng = np.random.default_rng(seed)
    part = drawn(rng, int(rng.integers(1, 9)))
    n = len(part.low)
    metric, rows = rng.random(n) * 10.0 ** rng.uniform(-2, 2, n), rng.normal(size=(3, n))
    with np.errstate(all="ignore"):
        length, support, absolute = part.norm(metric), part.support(rows), part.absolute(rows)
    for _ in range(12):
        d = filled(rng, part)
        if not steps(part, d) <= rational(part.room):
            continue
        x = [rational(v) for v in d]
        assert sum((rational(m) * v * v for m, v in zip(metric, x, strict=True)), fmpq(0)) <= (
            rational(length) ** 2
        )
        for row, most, size in zip(rows, support, absolute, strict=True):
            terms = [rational(a) * v for a, v in zip(row, x, strict=True)]
            assert sum(terms, fmpq(0)) <= rational(most)
            assert sum(map(abs, terms), fmpq(0)) <= rational(size)


def test_the_norm_of_a_remnant_is_that_of_a_knapsack():
    """One of ten features may leave its end, or two half-way: the norm is that of one."""
    domain, one = BoxDomain(np.zeros(10), np.ones(10)), np.ones(10)
    part = remnant(domain, -0.5, 0.5 * one)
    assert part.norm(one) == pytest.approx(1.0, rel=1e-12)
    assert BoxDomain.norm(part, one) == pytest.approx(np.sqrt(10.0), rel=1e-12)
    away = remnant(BoxDomain(-2.0 * one, one), -0.5, -one)  # far from 0, and near an end
    assert (away.low >= 0.5 - 1e-12).all()
    assert away.support(-np.eye(10)) == pytest.approx(-0.5 * one, rel=1e-12)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 0.0, 1.0])
def test_nothing_is_made_of_what_is_unknown_or_settled(value):
    domain, one = BoxDomain(-np.ones(2), np.ones(2)), np.ones(2)
    assert remnant(domain, value, one) is None
    assert remnant(domain, -1.0, np.array([1.0, np.nan])) is None
    assert remnant(domain, -1.0, None) is None


@settings(max_examples=examples(150), deadline=None)
@given(seeds, st.sampled_from(KINDS))
def test_a_quadratic_is_negative_on_its_remnant_only(seed, kind):
    """Q3, Q4: every point where it is negative, exactly, lies in the remnant and in its raw box."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    lengthscale, reference = 10.0 ** rng.uniform(-1, 1, d), rng.normal(size=d) * 10.0 ** rng.uniform(-1, 4)
    domain = box(rng, d)
    g, H = rng.normal(size=d) * 10.0 ** rng.uniform(-1, 1), matrix(rng, kind, d)
    with np.errstate(all="ignore"):
        found = domain.minimise(g, H)
    shares = rng.choice([0.0, 1.0, 0.03, 0.97, 0.5], (40, d))
    points = np.clip(domain.low + shares * (domain.high - domain.low), domain.low, domain.high)
    values = sorted((exact(g, H, x), i) for i, x in enumerate(points))
    one = values[int(rng.integers(1, 12))][0]  # the functional is the quadratic less this
    base = -int(one.p) / int(one.q)
    part = remnant(domain, base + found.value - 1e-12 * (abs(base) + abs(found.value)), found.slopes)
    if part is None:
        return
    ends = reference + domain.low * lengthscale, reference + domain.high * lengthscale
    lower, upper = part.shortened(reference, lengthscale, *ends)
    for value, i in values:
        if value + rational(base) < 0:
            assert steps(part, points[i]) <= rational(part.room)
            assert ((part.low <= points[i]) & (points[i] <= part.high)).all()
            rows = zip(lower, upper, *ends, reference, points[i], lengthscale, strict=True)
            for low, high, least, most, c, x, unit in (map(rational, row) for row in rows):
                raw = min(max(c + x * unit, least), most)
                assert low <= raw <= high


def many(d: int, link: str = "probit") -> tuple[gc.Posterior, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, d))
    y = (X[:, :5].sum(axis=1) + 0.3 * rng.normal(size=60) > 0).astype(int)
    kernel = gc.RBF(0.9 * np.sqrt(d), 10.0)
    return gc.GPClassifier(kernel=kernel, likelihood=link, max_evals=0).fit(X, y).posterior_, X


def questions(post, shape, x):
    """Bounds with what they are of: P of a class, or the mean or the variance and its sign."""
    everywhere, factory = np.ones(len(x), dtype=bool), BoundFactory(post)
    for label, bound in enumerate(factory.pair(0, shape, x, everywhere)):
        yield bound, ("P", label)
    yield factory.sign(1, shape, x, everywhere), ("P", 1)
    names = (("mean", 1), ("mean", -1), ("variance", 1), ("variance", -1))
    yield from zip(factory.latent(shape, x, everywhere), names, strict=True)


def is_at_least(truth, what, point, value) -> bool:
    quantity, label = what
    if quantity == "P":
        return truth.at_least(point, label, value)
    mean, S = truth.latent(point)
    return bool(label * (mean if quantity == "mean" else S.max(0)) >= value)


@pytest.mark.parametrize(("d", "radius"), [(5, 0.5), (14, 0.4), (30, 0.5)])
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_what_planes_on_remnants_prove_is_true(d, radius, link):
    """B10: what is bounded is >= value on the box, and >= elsewhere beside the pieces; in ball arithmetic."""
    post, X = many(d, link)
    truth, rng, left, beside = Truth(post), np.random.default_rng(1), set(), set()
    for x in X[:3]:
        region = gc.Ball(x, radius)
        area, shape = region.box(), shape_of(region, np.ones(d, dtype=bool))
        points = x + radius * rng.choice([-1.0, 1.0, 0.3, -0.9], (30, d))
        for bound, what in questions(post, shape, x):
            worst = descend(bound, area.lower, area.upper)
            for slack in (0.02, 1e-3):
                found = bound.over(area.lower, area.upper, worst, bound.at(worst)[0] - slack)
                if found.pieces is not None:
                    left.add(what)
                with bits(120):
                    for point in (*points, worst):
                        assert is_at_least(truth, what, point, found.value)
                        inside = [((a <= point) & (point <= b)).all() for a, b in found.pieces or ()]
                        if inside and not any(inside):
                            beside.add(what)
                            assert is_at_least(truth, what, point, found.elsewhere)
    assert len(left) >= 4
    assert len(beside) >= 4


def test_a_part_that_is_no_shorter_box_still_counts_with_the_target():
    """A hyperplane may leave less than the box and shorten it nowhere: no surplus, and halves come next."""
    lower, upper, one = np.zeros(2), np.ones(2), np.ones(2)
    left, found = Left(lower, upper), Certified(0.9, lower, 0, False)
    assert left.proved(found, 0.6).value == 0.9
    left.shorten(lower.copy(), upper.copy())
    assert left.proved(found, 0.6).value == 0.6
    assert left.divided(found, BoxShape(lower, upper), one, 0.6).pieces is None


@pytest.mark.parametrize("width", [1.0, 1e-160, 1e-170, 1e-300])
def test_what_is_left_is_smaller_than_the_box_at_all_magnitudes(width):
    """The search would never end with a piece that is the box; a file of a proof knows halves alone."""
    lower, upper, one = np.zeros(2), np.full(2, width), np.ones(2)
    left, found = Left(lower, upper), Certified(0.5, lower, 0, False)
    left.shorten(lower, np.array([0.25 * width, 0.9 * width]))
    pieces = left.divided(found, BoxShape(lower, upper), one, 0.6).pieces
    assert pieces
    assert all((low >= lower).all() and (high <= left.upper).all() for low, high in pieces)
    assert left.divided(found, BoxShape(lower, upper, capped=False), one, 0.6).pieces is None
    left.shorten(lower, lower)
    assert left.divided(found, BoxShape(lower, upper), one, 0.6).pieces in (None, ((lower, lower),))

"""The sharper forms one by one, where they are tight: higher orders, the logistic, ends of variances."""

from __future__ import annotations

import random
from fractions import Fraction
from math import factorial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flint import arb, arb_mat

from fuzz import FIVE_ERF, LOGIT
from gpcert_check import logit
from gpcert_check.balls import read_region
from gpcert_check.five_erf import FiveErf
from gpcert_check.indefinite import variances
from gpcert_check.leaves import Point, Slice
from gpcert_check.logit import CURVE, SIGMA, SLOPE, LogitLevel, mean_of
from gpcert_check.model import Latent
from gpcert_check.planes import Probit
from gpcert_check.reading import Reject
from gpcert_check.regions import Box
from gpcert_check.sharper import Forms, narrowed
from gpcert_check.work import Work
from making import Prover, Toy, box, hexed, sample
from truth import exact_latent, needed_mean

PROBIT = {"name": "probit", "scale": (1.0).hex()}
KERNEL = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("forms", [0, 1, 2])
def test_the_orders_of_one_centre_are_attained(sign: int, forms: int) -> None:
    """V2 (a), (b): b k e^a over [-1, 1] less its first orders is as small as they say, at an end.

    In the metric v of its own the two factors of Cauchy-Schwarz are parallel at d = 1; a form with the best
    theta is attained there as well. In the plain metric, and at d = -1, the bound holds and may lose.
    """
    v = 0.7
    latent = Latent([[v]], KERNEL, [sign * 1.3], [0.5], 0.0)
    bk = sign * arb(1.3) * (-(arb(v) ** 2) / 2).exp()
    sizes = [abs(bk) * arb(v) ** p / factorial(p) for p in (3, 4)]
    view = Slice(latent, Box([Fraction(-1)], [Fraction(1)]), 1)
    for own in (True, False):
        metric = arb(v if own else 0.25)
        thetas = [float((a / metric ** (arb(p) / 2)).mid()) for p, a in zip((3, 4), sizes, strict=True)]
        told = {"metric": hexed([float(metric.mid())]), "thetas": hexed(thetas[:forms]), "own": own}
        leaf = {"ref": hexed([0.0]), "forms": told}
        point = Point(view, [Fraction(-1)], [Fraction(1)], leaf)
        view.expand([(point, Probit(PROBIT).level({"t": (0.0).hex()}, latent))])
        least = (point.H[0, 0] - point.rest) / 2
        for d in (arb(-1), arb(-0.3), arb(0.2), arb(1)):
            a = v * d
            rest = bk * (a.exp() - 1 - a)  # orders from two on
            assert least * d * d <= rest + arb(10) ** -15
            lost = rest - least * d * d
        if own and sign < 0:  # what is subtracted is needed
            assert abs(lost) <= arb(10) ** -15


@pytest.mark.parametrize(("metric", "theta"), [(1.0, -0.3), (1.0, 0.0), (-1.0, 0.3), (0.0, 0.3)])
def test_a_metric_and_its_thetas_are_positive(metric: float, theta: float) -> None:
    """V2: a form with a negative theta would be added."""
    for own in (True, False):
        with pytest.raises(Reject, match="V2: metric and thetas"):
            Forms({"metric": hexed([metric]), "thetas": hexed([theta]), "own": own}, 1)


def test_what_the_polygon_of_a_level_needs_at_most() -> None:
    """V10 (a): chord + nu sqrt(c + S) is largest inside a cell here, and nowhere above what is taken."""
    latent = Latent([[0.0]], KERNEL, [0.0], [0.5], 0.0)
    latent.verify([1.0])
    S = [0.0, 6.0]
    m = [needed_mean(LOGIT, 0.2, s) + 1e-9 for s in S]
    level = LogitLevel(0.2, {"c": (0.01).hex(), "S": hexed(S), "m": hexed(m)}, latent)
    for steep in (0.2, 0.5, 1.0):
        for i in range(61):
            at = arb(i) / 10
            chord = m[0] + (arb(m[1]) - m[0]) * at / 6
            assert level._highest(arb(steep)) >= chord + steep * (level.c + at).sqrt() - arb(10) ** -20


def test_a_tangent_that_is_none_is_refused() -> None:
    latent = Latent([[0.0]], KERNEL, [0.0], [0.5], 0.0)
    latent.verify([1.0])
    level = LogitLevel(0.7, None, latent)
    m = needed_mean(LOGIT, 0.7, 0.5)
    assert level._tangent({"tangent": hexed([0.5, m - 1e-6, m + 1e-6])})[1] >= m
    for wrong in ([0.5, m - 0.4, m - 0.3], [0.5, m + 0.3, m + 0.4], [0.5, m + 0.1, m - 0.1], [-0.5, m, m]):
        with pytest.raises(Reject, match="V10"):
            level._tangent({"tangent": hexed(wrong)})
    with pytest.raises(Reject, match="below the largest variance"):
        level._above(latent.top, {"tangent": hexed([0.5, m - 1e-6, m + 1e-6])})


@pytest.mark.parametrize("function", [SIGMA, SLOPE, CURVE])
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 11.0), (-7.0, 40.0), (2.5, 300.0)])
def test_both_ways_to_integrate_agree(
    function: logit.Smooth, mean: float, variance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V10: over standard deviations, and over the latent itself."""
    wide = mean_of(function, arb(mean), arb(variance))
    monkeypatch.setattr(logit, "_WIDE", 1e9)
    narrow = mean_of(function, arb(mean), arb(variance))
    assert narrow.rad() < 1e-20
    assert wide.rad() < 1e-20
    assert wide.overlaps(narrow)


def test_expectations_with_a_huge_variance_are_known_well() -> None:
    """|E sigma - Phi(m/s)| is at most the larger density times the integral of |sigma - step|, 2 log 2."""
    for variance in (1e9, 1e12, 1e36):
        p = mean_of(SIGMA, arb(5), arb(variance))
        assert p.rad() < 1e-25
        assert abs(p - logit.normal(5 / arb(variance).sqrt())) <= 1 / arb(variance).sqrt()


@pytest.mark.parametrize(("function", "less"), [(SIGMA, 1), (SLOPE, 2), (CURVE, 4)])
@pytest.mark.parametrize("variance", [0.5, 4.0, 10.0])
def test_small_expectations_are_known_relatively(function: logit.Smooth, less: int, variance: float) -> None:
    """sigma, sigma' and sigma'' lie between e^u - less e^2u and e^u, whose expectations are known."""
    mean, S = arb(-70), arb(variance)
    most = (mean + S / 2).exp()
    least = most - less * (2 * mean + 2 * S).exp()
    found = mean_of(function, mean, S)
    assert found.rad() < 1e-17 * most
    assert found.upper() >= least.lower()
    assert found.lower() <= most.upper()


def test_a_level_near_one_half_has_a_tangent() -> None:
    """V10 (b): its slope is positive, and smaller than what a ball around it shows."""
    latent = Latent([[0.0]], KERNEL, [0.0], [0.5], 0.0)
    latent.verify([1.0])
    level = LogitLevel(0.5 + 2.0**-50, None, latent)
    height, slope = level._tangent({"tangent": hexed([0.5, 0.0, 1e-13])})[1:]
    assert height == arb(1e-13)
    assert abs(slope) < 1e-12


def test_the_gram_matrix_of_a_metric() -> None:
    """V2 (a): e^{-|L^-1 (v_i - v_j)|^2/2}, in lengthscales times roots of the metric."""
    latent = Latent([[0.0], [1.5]], KERNEL, [0.0, 0.0], [0.5, 0.0, 0.0, 0.5], 0.0)
    exact = (-(arb(1.5) ** 2) / (2 * arb(0.25))).exp()
    assert abs(latent.gram([0], [0.25])[0, 1] - exact) < arb(10) ** -25


def test_balls_around_0_have_squares() -> None:
    """`ball ** 2` is NaN where the ball holds 0: a sum that may vanish at its reference was rejected."""
    total: Any = SimpleNamespace(f0=arb(0, 1e-30), f1=[arb(1)], f2=arb_mat([[1]]), x=arb(1))
    assert Forms(None, 1).rest(total, arb(3)) > 0
    mean = arb(-1e-9).union(arb(1e-9))
    assert abs(mean_of(SLOPE, mean, arb(11)) - mean_of(SLOPE, arb(0), arb(11))) < 1e-9


@pytest.mark.parametrize("R", [0.5, 0.9, -0.4])
def test_kernels_leave_ends_of_the_variance(R: float) -> None:
    """V8': of one centre S = s2 - R k^2 is extreme where k is, at two corners: there the ends are met."""
    latent = Latent([[0.2, -0.1]], KERNEL, [0.0], [R], 0.0)
    latent.settle(arb(0), arb(1))
    region = read_region(box([0.4, -0.3], [1.1, 0.6]), 2)
    view = Slice(latent, region, 1)
    before = Work.spent
    known = narrowed(view, region.lower, region.upper, {"spread": True})
    assert Work.spent >= before + 4
    exact = [latent.s2 - R * (-arb(z) / 2).exp() ** 2 for z in (0.2**2, 0.9**2 + 0.7**2)]
    low, high = sorted(exact, key=lambda x: float(x.mid()))
    near, far = ((-arb(z) / 2).exp() for z in (0.2**2, 0.9**2 + 0.7**2))
    slack = abs(R) * (near - far) ** 2 / 2 + arb("1e-8")  # of e^2 the sign is not used
    assert low - slack <= known.bottom <= low
    assert high <= known.top <= high + slack
    assert narrowed(view, region.lower, region.upper, {}) is latent
    with pytest.raises(Reject, match="V8': spread must be true"):
        narrowed(view, region.lower, region.upper, {"spread": 1})


@pytest.mark.parametrize("seed", range(12))
def test_variances_stay_between_what_kernels_leave(seed: int, tmp_path: Path) -> None:
    """V8' at points of boxes of every size, in balls; nothing is lost where a box is a point, nearly."""
    rng, toy = random.Random(seed), Toy(seed, 4, 2)
    latent = Prover(toy, tmp_path / "m").checker.model.latents[0]
    width = (1e-9, 0.1, 0.6, 3.0)[seed % 4]
    low = [rng.uniform(-1, 1) for _ in range(2)]
    region = read_region(box(low, [a + width for a in low]), 2)
    known = narrowed(Slice(latent, region, 1), region.lower, region.upper, {"spread": True})
    assert 0 <= known.bottom <= known.top <= latent.top
    for _ in range(60):
        S = exact_latent(toy, sample(region, rng))[1]
        assert known.bottom <= S.nonnegative_part() <= known.top
    assert seed % 4 or known.top - known.bottom < 1e-6


def test_a_mean_between_ends_of_the_variance_clears_a_level() -> None:
    """V8': all links, on both sides of 1/2, with the end that counts; numbers are proved again from 0 on."""
    ends: Any = SimpleNamespace(bottom=arb(0.3), top=arb(0.8))
    wide: Any = SimpleNamespace(bottom=arb(0), top=arb(0.8))
    for p in (0.2, 0.7):
        S = 0.3 if p < 0.5 else 0.8
        m = needed_mean(LOGIT, p, S)
        latent = Latent([[0.0]], KERNEL, [0.0], [0.5], 0.0)
        latent.verify([1.0])
        curve = {
            "c": (1.0).hex(),
            "S": hexed([0.0, 6.0]),
            "m": hexed([needed_mean(LOGIT, p, 0.0) + 1e-6] * 2),
        }
        level = LogitLevel(p, curve if p < 0.5 else None, latent)
        leaf = {"tangent": hexed([S, m - 1e-6, m + 1e-6])}
        assert abs(level.outright(ends, arb(m), leaf)) < 1e-5
        far: Any = SimpleNamespace(bottom=arb(0.2), top=arb(0.9))
        with pytest.raises(Reject, match="variance"):
            level.outright(far, arb(m), leaf)
        t = {0.2: -0.8, 0.7: 0.5}[p]
        probit = Probit({"name": "probit", "scale": (1.0).hex()}).level({"t": t.hex()}, latent)
        assert abs(probit.outright(ends, t * (1 + arb(S)).sqrt(), {})) < 1e-12
        five, told = FiveErf(FIVE_ERF).level({"p": p.hex()}, latent), needed_mean(FIVE_ERF, p, S) + 1e-9
        line = {"line": hexed([told, 0.0, S])}
        assert five.outright(ends, arb(told), line) >= 0
        if p < 0.5:  # what was shown from 0.3 on is not known from 0 on
            with pytest.raises(Reject, match="V16"):
                five.outright(wide, arb(told), line)


def test_planes_take_the_end_of_the_variance_that_counts() -> None:
    """V8' and V3': with no reach the box's own ends hold; below 1/2 a tangent touches below them."""
    latent = Latent([[0.0]], KERNEL, [0.0], [0.5], 0.0)
    latent.verify([1.0])
    latent.bottom, latent.top = arb(0.3), arb(0.8)
    least, most, _ = variances(latent, arb(0), None)
    assert least == latent.bottom
    assert most == latent.top
    p, S = 0.2, 0.5  # a variance between the two ends: the smallest one does not reach it
    m = needed_mean(LOGIT, p, S)
    curve = {"c": (1.0).hex(), "S": hexed([0.0, 6.0]), "m": hexed([needed_mean(LOGIT, p, 0.0) + 1e-6] * 2)}
    level = LogitLevel(p, curve, latent)
    leaf = {"tau": (0.0).hex(), "tangent": hexed([S, m - 1e-6, m + 1e-6])}
    with pytest.raises(Reject, match="above the smallest variance"):
        level.plane(latent, 0.0, leaf, arb(0), None)
    latent.bottom = arb(S)
    assert abs(level.plane(latent, 0.0, leaf, arb(0), None).constant + m) < 1e-5


@pytest.mark.parametrize("multipliers", [(-1.0, 0.0), (0.0, -1.0)])
def test_multipliers_of_a_ball_are_not_negative(multipliers: tuple[float, float]) -> None:
    """V7: what is at most 0 on the ball, times a negative number, would be gained for nothing."""
    norm = "2" if multipliers[0] else "1"
    where = {"kind": "ball", "x": hexed([0.0] * 2), "radius": (1.0).hex(), "norm": norm}
    region = read_region({**where, "features": None, "domain": None, "scale": None}, 2)
    cell = region.cell(region.lower, region.upper, [0.0, 0.0], [arb(1)] * 2)
    with pytest.raises(Reject, match="V7: a multiplier is negative"):
        cell.gain(hexed(multipliers), [arb(0)] * 2, arb_mat(2, 2))

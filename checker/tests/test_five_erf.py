"""scikit-learn's formula (V16) and floors (V17) against sampling in ball arithmetic."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flint import acb, arb, arb_series

from bases import FIVE_ERF, FLOORED, bases
from gpcert_check import five_erf
from gpcert_check.claims import Checker, Claim
from gpcert_check.five_erf import BENT, STEEPEST, FiveErf, FiveErfLevel, Psi, above, slope
from gpcert_check.floored import Floored
from gpcert_check.joint import Class
from gpcert_check.links import link_of
from gpcert_check.model_file import Model
from gpcert_check.reading import Reject
from gpcert_check.two_classes import TwoClasses
from gpcert_check.work import MOST_WORK, Work
from making import COEFFICIENTS, LAMBDAS, Toy, everywhere
from truth import exact_expectation, needed_mean

LINK = FiveErf(FIVE_ERF)


def density(w: arb, power: int) -> arb:
    """sum_i c_i lambda_i^power e^{-lambda_i^2 w}, w = f^2."""
    terms = zip(COEFFICIENTS, LAMBDAS, strict=True)
    return sum((arb(c) * arb(a) ** power * (-arb(a) * a * w).exp() for c, a in terms), arb(0))


def around(middle: float, half: float, power: int) -> arb:
    """`density` on |w - middle| <= half: Taylor of order 12, the rest by |c_i| lambda_i^(power + 24)."""
    t, total, factor = arb(0, half), arb(0), arb(1)
    for k in range(12):
        total += density(arb(middle), power + 2 * k) * factor
        factor = -factor * t / (k + 1)
    most = sum(abs(c) * a ** (power + 24) for c, a in zip(COEFFICIENTS, LAMBDAS, strict=True))
    return total + arb(0, 1.01 * most) * abs(factor)


def test_the_formula_rises_and_bends_as_little_as_is_said() -> None:
    """V16: with w = f^2, s' = d1/sqrt(pi), s'' = -2 f d3/sqrt(pi), s''' = (4 w d5 - 2 d3)/sqrt(pi), d_k the
    densities. Up to w = 200 on 1,168 cells; beyond, the widest of the five, whose coefficient is positive,
    exceeds the others, and all are small.
    """
    root = arb.pi().sqrt()
    cells = [(0.02 * i + 0.01, 0.0101) for i in range(400)] + [
        (8 + 0.25 * i + 0.125, 0.125) for i in range(768)
    ]
    for w, half in cells:
        W, d1, d3, d5 = arb(w, half), *(around(w, half, k) for k in (1, 3, 5))
        assert d1 > 0
        assert 2 * (W.upper()).sqrt() * abs(d3) / root < STEEPEST
        assert abs(4 * W * d5 - 2 * d3) / root < BENT
    widest = min(zip(LAMBDAS, COEFFICIENTS, strict=True))
    others = [(a, c) for a, c in zip(LAMBDAS, COEFFICIENTS, strict=True) if a != widest[0]]
    relative = [(arb(c) * a, arb(a) * a - arb(widest[0]) * widest[0]) for a, c in others if c < 0]
    assert all(gap > 0 for _, gap in relative)  # so that they fall faster
    assert arb(widest[1]) * widest[0] + sum((size * (-gap * 200).exp() for size, gap in relative), arb(0)) > 0
    sizes = [(abs(c), arb(a)) for c, a in zip(COEFFICIENTS, LAMBDAS, strict=True)]
    rest = sum((c * (4 * a**5 * 200 + 2 * a**3 * 15) * (-a * a * 200).exp() for c, a in sizes), arb(0))
    assert rest < arb("1e-5")  # at least |s''| and |s'''| there; w e^{-a^2 w} falls beyond 1/a^2 < 8


def test_the_formula_is_an_expectation_of_error_functions() -> None:
    """The closed form against an integral of s(f) = sum_i c_i (1 + erf(lambda_i f))/2."""
    for mean, variance in ((0.3, 0.5), (-2.0, 4.0), (5.0, 0.01)):

        def integrand(z: Any, _: bool, mean: float = mean, variance: float = variance) -> Any:
            f = acb(mean) + acb(variance).sqrt() * z
            terms = zip(COEFFICIENTS, LAMBDAS, strict=True)
            return sum((c * (1 + (f * a).erf()) / 2 for c, a in terms), acb(0)) * (-z * z / 2).exp()

        whole = acb.integral(integrand, -14, 14).real / (2 * arb.pi()).sqrt()
        assert abs(whole - LINK.expectation(arb(mean), arb(variance))) < arb("1e-20")
        other = 1 - LINK.expectation(arb(mean), arb(variance))
        assert abs(other - LINK.expectation(arb(-mean), arb(variance)) - LINK.spare) < arb("1e-20")


def random_psi(rng: random.Random) -> tuple[Psi, float, float, float]:
    """psi, a level that it may reach, and a range."""
    low = rng.choice([0.0, 0.0, 10 ** rng.uniform(-3, 3)])
    high = low + 10 ** rng.uniform(-6, 3)
    p = rng.choice([0.5, rng.uniform(0.01, 0.99), 1 - 10 ** rng.uniform(-7, -1), 10 ** rng.uniform(-9, -1)])
    S, c = low + rng.random() * (high - low), rng.uniform(0.5, 5)
    m, step = needed_mean(FIVE_ERF, p, S), 1e-3 * (1 + S)
    rate = (needed_mean(FIVE_ERF, p, S + step) - m) / step * rng.choice([1.0, 1.0, 0.7, 1.4])
    shift, touch = rng.choice([1e-6, 1e-3, 0.1, -1e-6, -1e-3]), rng.choice([S, low, high, -1.0, 1e300])
    if rate >= 0:
        return Psi(m - rate * S + shift, rate, 0.0, 1.0, touch), p, low, high
    steep = -2 * rate * (c + S) ** 0.5
    return Psi(m + steep * (c + S) ** 0.5 + shift, 0.0, steep, c, touch), p, low, high


def test_what_is_above_is_above_at_every_variance() -> None:
    """V16 (a): no sampled variance contradicts; and the test says something about both answers."""
    told = {True: 0, False: 0}
    for seed in range(400):
        rng = random.Random(seed)
        psi, p, low, high = random_psi(rng)
        found = above(psi, arb(p), arb(low), arb(high))
        told[found] += 1
        points = [low, high, *(low + (high - low) * rng.random() ** 3 for _ in range(30))]
        values = [exact_expectation(FIVE_ERF, psi.at(arb(S)), arb(S)) - p for S in points]
        assert not found or not any(value < 0 for value in values), (seed, psi, p, low, high)
    assert min(told.values()) > 60


def test_a_psi_that_touches_is_known_to_be_above() -> None:
    """What the exporter relies on: a tangent raised a little is enough, lowered it is too little."""
    for p, S in ((0.3, 0.5), (0.7, 0.5), (0.9, 2.0), (0.05, 1.0)):
        m, step = needed_mean(FIVE_ERF, p, S), 1e-4
        rate = (needed_mean(FIVE_ERF, p, S + step) - needed_mean(FIVE_ERF, p, S - step)) / (2 * step)
        steep = max(0.0, -2 * rate * (3 + S) ** 0.5)
        a = m - max(rate, 0.0) * S + steep * (3 + S) ** 0.5
        for less, reached in ((1e-6, True), (-1e-6, False)):
            psi = Psi(a + less, max(rate, 0.0), steep, 3.0, S)
            assert above(psi, arb(p), arb(S - 0.001), arb(S + 0.001)) is reached


def test_a_cell_far_from_its_middle_is_no_cell() -> None:
    psi = Psi(1.0, 0.1, 0.0, 1.0, 0.0)
    with pytest.raises(Reject, match="too long"):
        five_erf._smallest(psi, 2.58, 0.0, 0.0, 0.4)
    with pytest.raises(Reject, match="not known"):
        above(psi, arb(0.1), arb(0), arb("inf"))
    with pytest.raises(Reject, match="not known"):
        above(psi, arb(0.1), arb("nan"), arb(1))


def test_a_cell_is_bounded_from_below() -> None:
    """At its ends as inside, on either side of where it is expanded; what is no number is no bound."""
    for seed in range(60):
        rng = random.Random(seed)
        psi, _, low, _ = random_psi(rng)
        base = min(2.58, psi.c) if psi.steep else 2.58
        length = (base + low) / 16
        for near in (low, low + length, low + rng.random() * length):
            found = five_erf._smallest(psi, base, near, low, low + length)
            for S in (low, low + length, *(low + rng.random() * length for _ in range(5))):
                assert not found > exact_expectation(FIVE_ERF, psi.at(arb(S)), arb(S))
    for a in (-1e300, -1e200, -1e100):
        assert not above(Psi(a, 0.0, 0.0, 1.0, 0.0), arb(0.3), arb(0), arb(0.1))
    for unsure in (arb(0.5, 0.1), arb("nan")):
        assert not above(Psi(0.0, 0.0, 0.0, 1.0, 0.0), unsure, arb(0), arb(0.1))


@pytest.mark.parametrize(
    ("psi", "near", "low", "high"),
    [
        (Psi(1.0, 0.0, 0.0, 1.0, 0.0), 0.0, 0.0, 0.15),  # g1 < 0 < q, the vertex beyond the right end
        (Psi(0.5, 0.09, 0.0, 1.0, 0.0), 1.2, 1.0, 1.2),  # g1 > 0, q > 0, beyond the left one
        (Psi(1.0, 0.17, 0.0, 1.0, 0.0), 1.0, 1.0, 1.2),  # inside, seen from the left
        (Psi(1.0, 0.17, 0.0, 1.0, 0.0), 1.2, 1.0, 1.2),  # and from the right
    ],
)
def test_a_parabola_is_as_small_as_on_its_cell(psi: Psi, near: float, low: float, high: float) -> None:
    """V16: its vertex counts only where it lies in the cell; elsewhere true proofs would be rejected."""
    grid = [arb(low + (high - low) * k / 400) for k in range(401)]
    least = min((exact_expectation(FIVE_ERF, psi.at(S), S) for S in grid), key=float)
    found, g = five_erf._smallest(psi, 2.58, near, low, high), five_erf._series(psi, arb(near))
    assert g[2] > 0
    assert (g[1] < 0) == (near == low)
    assert least - 2e-5 < found <= least


def test_the_rest_of_a_series_is_bounded() -> None:
    """Cauchy's estimate holds of the coefficients themselves."""
    steep, rising = Psi(20 * 1.5**0.5, 0.0, 20.0, 0.5, 0.0), Psi(-5.0, 5.0, 0.0, 1.0, 0.0)  # 0 at 1
    plain = Psi(2.0, 0.3, 0.0, 1.0, 0.0), Psi(-1.0, 0.0, 2.0, 0.5, 0.0), Psi(9.0, 0.0, 0.0, 1.0, 0.0)
    for psi in (*plain, steep, rising):
        base = min(2.58, psi.c) if psi.steep else 2.58
        for near in (0.0, 1.0, 30.0):
            radius = (arb(base) + near) / 4
            most = five_erf._largest(psi, arb(near), radius)
            for angle in range(16):
                z = acb(near) + acb(radius) * (acb(0, 1) * angle * acb.pi() / 8).exp()
                height = psi.a + psi.rate * z - psi.steep * (z + psi.c).sqrt()
                parts = [
                    c * (-height * a / (1 + 2 * acb(a) * a * z).sqrt()).erfc() / 2
                    for c, a in zip(COEFFICIENTS, LAMBDAS, strict=True)
                ]
                assert sum(map(abs, parts), arb(0)) <= most
            for k, coefficient in enumerate(five_erf._series(psi, arb(near))):
                assert abs(coefficient) * radius**k <= most
    assert arb_series([1, 1]).prec == 10  # the length of series elsewhere is what it was


@pytest.mark.parametrize(("steep", "reached"), [(0.5, True), (0.6, False), (1e300, False)])
def test_ranges_of_any_length_have_few_cells(steep: float, reached: bool) -> None:
    """-steep sqrt(c + S) has Phi(-steep) for its limit: .309, .274 and 0."""
    assert above(Psi(0.0, 0.0, steep, 0.0625, 0.0), arb(0.3), arb(0), arb(1e60)) is reached
    assert Work.spent <= 10**7
    assert not above(Psi(-1e300, 1.0, 0.0, 1.0, 1e300), arb(0.3), arb(0), arb(1e300))


def test_work_is_counted() -> None:
    Work.spent = MOST_WORK - 2_000
    with pytest.raises(Reject, match="more work"):
        above(Psi(40.0, 0.0, 0.0, 1.0, 0.0), arb(0.9), arb(0), arb(100))


def test_a_number_is_proved_again_for_a_larger_variance() -> None:
    """What is kept of one file says nothing about another one's variances."""
    level = FiveErfLevel(0.9)
    leaf = {"line": [needed_mean(FIVE_ERF, 0.9, 1.0).hex(), (0.0).hex(), (1.0).hex()]}
    small, large = (SimpleNamespace(bottom=arb(0), top=arb(x)) for x in (0.5, 9))
    for _ in range(2):
        assert level.outright(small, arb(3), leaf) > 0  # type: ignore[arg-type]
        with pytest.raises(Reject, match="below the curve"):
            level.outright(large, arb(3), leaf)  # type: ignore[arg-type]


def test_a_rate_bounds_the_probability_from_below() -> None:
    """V16 (c) as `joint` reads it, on made-up cells of one feature."""
    for seed in range(60):
        rng = random.Random(seed)
        p, S, change, x = (
            rng.uniform(0.02, 0.98),
            rng.uniform(0.1, 3),
            rng.uniform(0.01, 0.5),
            rng.uniform(0.1, 1),
        )
        m = needed_mean(FIVE_ERF, p, S)
        rate = (needed_mean(FIVE_ERF, p, S + 1e-4) - m) / 1e-4
        steep = max(0.0, -2 * rate * (2 + S) ** 0.5)
        psi = Psi(m + steep * (2 + S) ** 0.5 - max(0.0, rate) * S, max(0.0, rate), steep, 2.0, S)
        one = Class.__new__(Class)
        one.level = SimpleNamespace(psi=lambda _, psi=psi: psi)
        latent = SimpleNamespace(s2=S, lift=arb(0), negative=arb(0), top=arb(9), bottom=arb(0))
        one.view = SimpleNamespace(latent=latent)  # type: ignore[assignment]
        one.point = SimpleNamespace(leaf={}, q0=arb(0), x=arb(x) ** 2)  # type: ignore[assignment]
        one._change = lambda change=change: arb(change)  # type: ignore[method-assign]
        found = one._five_erf()
        for _ in range(20):
            d, f = rng.uniform(0, x), rng.choice([rng.gauss(0, 0.1), rng.gauss(0, 2)])
            here = arb(max(0.0, S + rng.choice([-1, 1, rng.uniform(-1, 1)]) * change * d))
            truth = exact_expectation(FIVE_ERF, psi.at(here) + f, here)
            start = exact_expectation(FIVE_ERF, psi.at(here), here)
            lost = (found.apart + found.spread * d) * abs(f) + found.curve * f * f / 2
            assert not truth < start + found.slope * f - lost, seed


def test_the_slope_is_the_derivative() -> None:
    h = arb(2) ** -30
    for mean, variance in ((0.2, 0.3), (-3.0, 2.0)):
        m, v = arb(mean), arb(variance)
        secant = (LINK.expectation(m + h, v) - LINK.expectation(m - h, v)) / (2 * h)
        assert abs(secant - slope(m, v)) < arb("1e-15")


@pytest.mark.parametrize("name", ["five erf", "floored"])
def test_both_classes_at_a_point_and_free_claims(name: str, tmp_path: Path) -> None:
    """V16 (b), V17: class 0 has what class 1 has not; what holds of any latent needs no proof."""
    (base,) = [each for each in bases() if each.name == name]
    z, checker = [0.1, 0.2], base.prover.checker
    exact = exact_expectation(base.toy.likelihood, *map(arb, base.toy.latent(z)))
    for label, value in ((1, exact), (0, 1 - exact)):
        found = checker.subject.value(Claim("probability", label, 1, False, 0.0), z)
        assert abs(found - value) < arb("1e-14")
        assert abs(found - value - (arb("1e-8") if name == "five erf" else arb("0.01"))) > arb("1e-9")
    region = base.file["regions"][0]
    free = {"five erf": (1 - 0.9e-8, 1 - 1.1e-8), "floored": (0.9801, 0.9799)}[name]
    for value, accepted in zip(free, (True, False), strict=True):
        for claim in (everywhere(1, "<=", value, None), everywhere(0, ">=", 1 - value, None)):
            (tmp_path / "p").write_text(json.dumps(base.prover.file([region], [claim])))
            if accepted:
                checker.check(str(tmp_path / "p"))
            else:
                with pytest.raises(Reject, match="without a proof"):
                    checker.check(str(tmp_path / "p"))


def test_class_1_has_no_spare(tmp_path: Path) -> None:
    """V16 (b): what is left over belongs to class 0 alone."""
    (base,) = [each for each in bases() if each.name == "five erf"]
    for claim in (everywhere(1, ">=", 0.9e-8, None), everywhere(0, "<=", 1 - 0.9e-8, None)):
        (tmp_path / "p").write_text(json.dumps(base.prover.file([base.file["regions"][0]], [claim])))
        with pytest.raises(Reject, match="without a proof"):
            base.prover.checker.check(str(tmp_path / "p"))


def test_a_floor_lifts_every_level() -> None:
    link = Floored(FLOORED, link_of)
    level = link.level({"t": (0.7).hex()}, SimpleNamespace())
    inner = exact_expectation(FLOORED["link"], arb(0.7), arb(0))  # type: ignore[arg-type]
    assert abs(level.probability - (arb(0.02) + (1 - 2 * arb(0.02)) * inner)) < arb("1e-20")


@pytest.mark.parametrize(
    "likelihood",
    [
        {"name": "five_erf", "scale": (1.0).hex()},
        {"name": "floored", "link": FIVE_ERF, "floor": (0.1).hex()},
        {"name": "floored", "link": FLOORED, "floor": (0.1).hex()},
        *({"name": "floored", "link": {"name": "logit"}, "floor": x.hex()} for x in (0.0, -0.1, 0.5, 2.0)),
        {"name": "floored", "link": {"name": "logit"}, "floor": "nan"},
        {"name": "floored", "link": {"name": "logit"}},
    ],
)
def test_other_descriptions_are_refused(likelihood: dict[str, Any], tmp_path: Path) -> None:
    Toy(3, link=likelihood).write(tmp_path / "m")
    with pytest.raises(Reject):
        TwoClasses(Model(str(tmp_path / "m")))


def test_one_vs_rest_has_no_floor(tmp_path: Path) -> None:
    Toy(3, classes=3, link={"name": "one_vs_rest", "link": FLOORED}).write(tmp_path / "m")
    with pytest.raises(Reject, match="does not know the likelihood floored"):
        Checker(str(tmp_path / "m"))


def test_a_leaf_tells_one_psi_of_the_right_signs() -> None:
    level, one = FiveErfLevel(0.4), (1.0).hex()
    for leaf in (
        {},
        {"line": [one] * 3, "root": [one] * 4},
        {"line": [one, (-1.0).hex(), one]},
        {"root": [one, (-1.0).hex(), one, one]},
        {"root": [one, (0.0).hex(), one, one]},
        {"root": [one, one, (0.0).hex(), one]},
        {"root": [one, one, (5e-324).hex(), one]},
        {"line": [one] * 2},
    ):
        with pytest.raises(Reject):
            level.psi(leaf)
    for p in (0.0, 1.0, -0.5, 2.0):
        with pytest.raises(Reject, match="between 0 and 1"):
            FiveErfLevel(p)
    with pytest.raises(Reject, match="a level is a number"):
        level.outright(SimpleNamespace(bottom=arb(0), top=arb(1)), arb(9), {"line": [one] * 3})  # type: ignore[arg-type]
    assert Psi(0.0, 1.0, 2.0, 3.0, 0.0).change(arb(1)) == 1.5


def test_lines_far_above_the_curve_at_small_variances_are_seen_to_be() -> None:
    """Of variances of 1e12: at 0 z is a million, and Cauchy's estimate says nothing."""
    psi, top = five_erf.Psi(1433130.1228009416, 1.6658560678126057e-06, 0.0, 1.0, 860296486776.3184), 1.08e12
    assert five_erf.above(psi, arb(0.999), arb(0), arb(top))
    assert not five_erf.above(psi._replace(a=psi.a * (1 - 1e-6)), arb(0.999), arb(0), arb(top))
    assert not five_erf.above(psi._replace(a=-psi.a), arb(0.999), arb(0), arb(1))

"""V1 to V10 against sampling in ball arithmetic, on random small models; more seeds in `full`."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import reduce
from types import SimpleNamespace

import pytest
from flint import arb, arb_mat, ctx, fmpq

import fuzz
from gpcert_check import model
from gpcert_check.arithmetic import indefiniteness, integers, largest, quadratic
from gpcert_check.balls import read_region
from gpcert_check.leaves import Slice, leaves
from gpcert_check.model import Latent
from gpcert_check.planes import Plane, Probit, falling
from gpcert_check.reading import Reject
from making import Toy, box, hexed, leaf_for


@pytest.mark.parametrize("complaints", fuzz.ALL, ids=lambda f: f.__name__)
def test_no_bound_lies_beyond_what_it_bounds(complaints) -> None:
    assert next((c for seed in range(120) for c in complaints(seed)), None) is None


@pytest.mark.full
def test_no_bound_lies_beyond_what_it_bounds_with_more_seeds() -> None:
    assert [c for complaints in fuzz.ALL for seed in range(1_000, 1_500) for c in complaints(seed)] == []


def test_doubles_are_taken_exactly() -> None:
    for x in (0.1, 5e-324, 1e308, -1 / 3):
        exact = fmpq(*x.as_integer_ratio())
        assert arb(x) == arb(exact) or arb(x).contains(exact)
        assert arb(x).rad() == 0
        assert arb_mat(1, 1, [x])[0, 0].rad() == 0
        assert (arb_mat(1, 1, [x])[0, 0] - arb(x)) == 0
        assert (arb(1) + x - 1).contains(exact)


def test_largest_is_an_upper_bound_and_refuses_what_is_not_finite() -> None:
    wide = arb(1, 0.5)
    assert largest([wide, arb(-3)]) >= 1.5
    assert largest([arb(-3)]) == 0
    for bad in (arb("nan"), arb("inf")):
        with pytest.raises(Reject):
            largest([bad])


def test_the_quadratic_programme_in_rationals() -> None:
    """V5 on integers: D = 0 and the minimiser y give the exact minimum of a convex programme."""
    H = arb_mat(2, 2, [2, 1, 1, 3])
    g = [arb(-1), arb(-2)]
    cells = [(arb(0), arb(1)), (arb(0), arb(1))]
    y = [Fraction(1, 5), Fraction(3, 5)]  # H y = -g
    value = quadratic(g, H, cells, [0.0, 0.0], [float(a) for a in y])
    exact = arb(fmpq(-7, 10))
    assert value <= exact
    assert value >= exact - 1e-9


def test_a_negative_multiplier_is_refused() -> None:
    """With D < 0 the dual value of V5 may lie above the minimum: of d^2 on [-1, 1] it would be 1/2."""
    for bad in (-1.0, -5e-324):
        with pytest.raises(Reject, match="multiplier is negative"):
            quadratic([arb(0)], arb_mat(1, 1, [2.0]), [(arb(-1), arb(1))], [bad], [0.0])


def test_what_is_missing_for_definiteness_is_paid_for() -> None:
    """V5: the form diag(1, -1e-9) on [0, 1]^2 has the minimum -5e-10, however small its defect is."""
    cells = [(arb(0), arb(1))] * 2
    value = quadratic([arb(0)] * 2, arb_mat(2, 2, [1.0, 0.0, 0.0, -1e-9]), cells, [0.0] * 2, [0.0] * 2)
    assert value <= arb(-1e-9) / 2


def test_indefiniteness_is_an_upper_bound_of_the_negative_part() -> None:
    for a in (1.0, 0.0, -1e-13, -0.5):
        A = arb_mat(2, 2, [1.0, 1.0, 1.0, 1.0 + a])  # smallest eigenvalue about a/2
        e = indefiniteness(A, "it")
        assert (1 + e) * (1 + a + e) >= 1
    with pytest.raises(Reject, match="not positive semidefinite"):
        indefiniteness(arb_mat(2, 2, [0.0, 1.0, 1.0, 0.0]), "it")


def test_leaves_cover_the_region_exactly() -> None:
    region = read_region(box([0.0, 0.0, 5.0], [1.0, 2.0, 5.0]), 3)
    nodes = [{"split": 0, "at": (0.25).hex()}, {"a": 1}, {"split": 1, "at": (1.5).hex()}, {"b": 1}, {"c": 1}]
    found = [(low, high, [*leaf]) for low, high, leaf in leaves(nodes, region)]
    assert found == [([0, 0], [0.25, 2], ["a"]), ([0.25, 0], [1, 1.5], ["b"]), ([0.25, 1.5], [1, 2], ["c"])]
    volume = sum((h[0] - a[0]) * (h[1] - a[1]) for a, h, _ in found)
    assert volume == 2


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([{"split": 0, "at": (7.0).hex()}, {}, {}], "outside its box"),
        ([{"split": 0, "at": (1.0).hex()}, {}, {}], "outside its box"),
        ([{"split": 0, "at": (0.5).hex()}, {"split": 0, "at": (0.5).hex()}, {}, {}, {}], "outside its box"),
        ([{"split": 0, "at": (0.5).hex()}, {}], "does not cover"),
        ([], "does not cover"),
        ([{}, {}], "after the end"),
        ([{"split": 1, "at": (0.5).hex()}, {}, {}], "an integer in"),
    ],
)
def test_a_tree_that_is_none_is_refused(nodes, reason: str) -> None:
    with pytest.raises(Reject, match=reason):
        list(leaves(nodes, read_region(box([0.0], [1.0]), 1)))


def latent_of(toy: Toy, rough: float) -> Latent:
    """The first latent of a toy, its precision changed by relative errors of that size."""
    rng = random.Random(toy.n)
    for i in range(toy.n):
        for j in range(i + 1):
            toy.R[0][i][j] = toy.R[0][j][i] = toy.R[0][i][j] * (1 + rough * rng.uniform(-1, 1))
    flat = [x for row in toy.R[0] for x in row]
    return Latent(toy.X, toy.description()["kernel"], toy.alpha[0], flat, toy.m0[0])


def residual(toy: Toy) -> arb:
    """V1: the largest column sum of |R (K + diag(1/W)) - I|, term by term in 400 bits."""
    n, s2 = toy.n, arb(toy.s2)
    columns = []
    for j in range(n):
        gaps = [[(arb(a) - b) / s for a, b, s in zip(x, toy.X[j], toy.scale, strict=True)] for x in toy.X]
        B = [s2 * (-sum((g * g for g in gap), arb(0)) / 2).exp() for gap in gaps]
        B[j] += 1 / arb(toy.W[0][j])
        terms = [sum((arb(r) * b for r, b in zip(row, B, strict=True)), arb(0)) for row in toy.R[0]]
        columns.append(sum((abs(x - (i == j)) for i, x in enumerate(terms)), arb(0)))
    return reduce(lambda a, b: a.max(b), columns)


@pytest.mark.parametrize("rows", [2, 500])
def test_the_residual_of_the_model_is_bounded_and_hardly_more(rows: int, monkeypatch) -> None:
    """Integers and blocks of rows: never below the truth, and above it by less than anybody will notice."""
    monkeypatch.setattr(model, "_ROWS", rows)
    for seed in range(24):
        toy = Toy(seed, 5, 2)
        toy.W[0][0] = (1e-63, 1e-12, 1.0)[seed % 3]  # as far as real models go
        toy.R[0] = toy._inverse(toy.W[0])
        latent = latent_of(toy, (0.0, 1e-9, 1e-5)[seed // 8])
        latent.verify(toy.W[0])
        with ctx.workprec(400):
            exact = residual(toy)
            assert exact <= latent.surplus <= exact + arb(2) ** -60


def test_integers_are_near_and_wide_balls_have_none() -> None:
    found, bits = integers(arb_mat(2, 2, [arb(1) / 3, -arb(1) / 3, 1, arb(0.5, 2.0**-81)]), 80)
    assert bits == 80
    for x, scaled in zip(found, (arb(2) ** 80 / 3, -(arb(2) ** 80) / 3, 2**80, 2**79), strict=True):
        assert abs(arb(x) - scaled) <= 2
    with pytest.raises(Reject, match="known too badly"):
        integers(arb_mat(1, 1, [arb(0.5, 2.0)]), 80)
    (rough,), bits = integers(arb_mat(1, 1, [arb(0.5, 2.0**-60)]), 80)  # fewer bits, if fewer are known
    assert 40 < bits <= 60
    assert abs(arb(rough) - arb(2) ** (bits - 1)) <= 2


def test_a_mean_without_kernels_is_decided_by_its_constant() -> None:
    """The smallest exact case: one centre of weight 0, a box, t = 0: the bound is m0 itself."""
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    latent = Latent([[0.0]], kernel, [0.0], [0.5], 0.25)
    latent.verify(
        [1.0]
    )  # K + 1/W = 2, R = 1/2: the residual is 0, but for what the integers' rounding may cost
    assert 0 <= latent.surplus < arb(2) ** -70
    region = read_region(box([0.0], [1.0]), 1)
    level = Probit({"name": "probit", "scale": (1.0).hex()}).level({"t": (0.0).hex()}, latent)
    leaf = {"ref": hexed([0.0]), "D": hexed([0.0]), "y": hexed([0.0])}
    (value,) = Slice(latent, region, 1)._values([([Fraction(0)], [Fraction(1)], leaf)], [level])
    assert 0.25 - arb(10) ** -13 <= value <= 0.25


def test_a_falling_plane_bends_as_much_as_it_must() -> None:
    """V3': two centres far apart and R = 11 K^-1, so that S = -10 at both; seen from the other one, a plane
    without its bend lies 0.4 above what it supports.
    """
    near, c = (arb(-8)).exp(), arb(0.01)
    k = float(near.mid())
    own, other = 11.0 / (1.0 - k * k), -11.0 * k / (1.0 - k * k)
    kernel = {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    latent = Latent([[0.0], [4.0]], kernel, [0.0, 0.0], [own, other, other, own], 0.0)
    latent.settle(arb(10.000001), arb(0))  # what is true of it
    r = [own + other * near, other + own * near]  # R k(0)
    plane = falling(latent, arb(0), arb(1), c, r[0] + r[1] * near)
    there = plane.constant + plane.still * near + plane.factor * (r[0] * near + r[1])
    assert there - plane.bend * (1 - near) <= c.sqrt()  # S < 0: clipped
    assert there > c.sqrt() + 0.3


def test_a_bend_costs_its_chord() -> None:
    """V3: f = -(1 - e^-r) alone, so e^r f = 1 - e^r, smallest at the far end of the box: 1 - e^2."""
    latent = Latent(
        [[0.0]], {"type": "rbf", "lengthscale": (1.0).hex(), "variance": (1.0).hex()}, [0.0], [0.5], 0.0
    )
    bent = Plane(arb(0), arb(0), arb(0), arb(1))
    level = SimpleNamespace(hints="", uses_precision=lambda leaf: False, plane=lambda *about: bent)
    region = read_region(box([0.0], [2.0]), 1)
    value, _ = leaf_for(Slice(latent, region, 1), level, [Fraction(0)], [Fraction(2)], {}, [0.0])
    assert value <= 1 - arb(2).exp() + arb(10) ** -20  # attained at the end of the box


def test_toys_are_what_they_say() -> None:
    toy = Toy(3)
    B = [
        [
            Fraction(toy.kernel(a, b)) + (Fraction(1) / Fraction(toy.W[0][i]) if i == j else 0)
            for j, b in enumerate(toy.X)
        ]
        for i, a in enumerate(toy.X)
    ]
    for i in range(toy.n):
        for j in range(toy.n):
            entry = sum(Fraction(toy.R[0][i][k]) * B[k][j] for k in range(toy.n))
            assert abs(entry - (i == j)) < Fraction(1, 10**9)

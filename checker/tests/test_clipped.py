"""V3', V4, V10 where S is clipped at 0: planes against the latent itself, at points of their cells.

Precisions q K^-1, so that S = s2 - q k^T K^-1 k: q > 1 has S < 0 at the centres, q < 0 S up to (1 - q) s2.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from gpcert_check.balls import read_region
from gpcert_check.leaves import Point, Slice
from gpcert_check.logit import SIGMA, Logit, mean_of
from gpcert_check.model import Latent
from gpcert_check.planes import Probit, rising
from gpcert_check.radial import view_of
from gpcert_check.reading import Reject
from making import box, hexed

PROBIT, LOGIT = Probit({"name": "probit", "scale": (1.0).hex()}), Logit({"name": "logit"})
KINDS = ("rbf", "matern12", "matern32", "matern52", "rational_quadratic")


def latent_of(kind: str, q: float, alpha: float) -> Latent:
    """Two centres, R = q K^-1 in doubles; what is true of it is settled with room for their rounding."""
    about: dict[str, Any] = {"type": kind, "lengthscale": (1.0).hex(), "variance": (1.0).hex()}
    about |= {"alpha": (1.7).hex()} if kind == "rational_quadratic" else {}
    X = [[0.0], [1.5]]
    one = Latent(X, about, [alpha, -0.3 * alpha], [1.0, 0.0, 0.0, 1.0], 0.2)
    k = float(one.covariances([1.5])[0].mid())
    own, other = q / (1 - k * k), -q * k / (1 - k * k)
    found = Latent(X, about, one.alpha, [own, other, other, own], 0.2)
    found.settle(arb(max(q - 1, 0.0) + 1e-9), arb(max(-q, 0.0) + 1e-9))
    return found


def cell_of(latent: Latent, rng: random.Random) -> tuple[Slice, list[Fraction], list[Fraction]]:
    low = rng.uniform(-1.0, 2.0)
    high = low + rng.choice([1e-6, 0.01, 0.1, 0.5, 3.0])
    return view_of(latent, read_region(box([low], [high]), 1), 1), [Fraction(low)], [Fraction(high)]


def plane_at(point: Point, latent: Latent, view: Slice, x: float) -> arb:
    """The plane of a point, less its bend, at x; m0 is in its constant."""
    k = latent.covariances([x])
    near = latent.profile.value((arb(x) - arb(float.fromhex(point.leaf["ref"][0]))) ** 2 / 2)
    total = sum((b * each for b, each in zip(point.b, k, strict=True)), arb(0))
    return point.plane.constant + point.plane.still * near + total - point.plane.bend * (1 - near)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [0.7, 2.0, 6.0, -1.0])
def test_planes_of_the_probit_lie_below_what_they_support(kind: str, q: float) -> None:
    rng, closest = random.Random(int(10 * q)), arb(1)
    for _ in range(60):
        latent = latent_of(kind, q, rng.uniform(-2.0, 2.0))
        view, lower, upper = cell_of(latent, rng)
        ends = float(lower[0]), float(upper[0])
        t = rng.choice([-2.0, -0.5, 0.5, 2.0])
        tau = rng.choice([0.0, 0.02, 0.1, 0.3, 0.6]) * abs(t)
        leaf = {"ref": hexed([rng.choice([*ends, sum(ends) / 2])]), "touch": (0.0).hex()}
        leaf |= {"tau": tau.hex()} if t > 0 or rng.random() < 0.5 else {}
        leaf |= {"tau": (0.0).hex()} if t < 0 and "tau" in leaf else {}
        level, point = PROBIT.level({"t": t.hex()}, latent), Point(view, lower, upper, leaf)
        view.expand([(point, level)])
        for i in range(21):
            x = min(max(ends[0] + (ends[1] - ends[0]) * i / 20, ends[0]), ends[1])
            mean, variance = latent.at([x])
            gap = mean - t * (1 + variance).sqrt() - plane_at(point, latent, view, x)
            assert gap > -(arb(10) ** -12), (kind, q, t, leaf, ends, x)
            closest = closest.min(abs(gap))
    assert closest < 1e-5


@pytest.mark.parametrize("q", [0.7, 2.0, 6.0])
def test_planes_of_the_logistic_lie_below_what_they_support(q: float) -> None:
    """E sigma(N(mean - plane, S)) >= p."""
    rng = random.Random(int(10 * q))
    for _ in range(25):
        latent = latent_of("rbf", q, rng.uniform(-2.0, 2.0))
        view, lower, upper = cell_of(latent, rng)
        ends = float(lower[0]), float(upper[0])
        p = rng.choice([0.6, 0.9, 0.99])
        S = rng.choice([0.0, 0.2, 1.0, 3.0])
        tangent = [S, *bracket(p, S)]
        leaf = {"ref": hexed([rng.choice(ends)]), "tangent": hexed(tangent)}
        leaf |= {"tau": (0.0).hex()} if rng.random() < 0.5 else {}
        level, point = LOGIT.level({"p": p.hex()}, latent), Point(view, lower, upper, leaf)
        if not expanded(view, point, level):
            assert "tau" in leaf  # the tangent touches below the variances of the cell
            continue
        for i in range(7):
            x = min(max(ends[0] + (ends[1] - ends[0]) * i / 6, ends[0]), ends[1])
            mean, variance = latent.at([x])
            assert mean_of(SIGMA, mean - plane_at(point, latent, view, x), variance) > p - 1e-12


def expanded(view: Slice, point: Point, level: Any) -> bool:
    """Whether the hints are accepted."""
    try:
        view.expand([(point, level)])
    except Reject:
        return False
    return True


def bracket(p: float, S: float) -> list[float]:
    """Doubles below and above m_p(S), and close."""
    low, high = 0.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_of(SIGMA, arb(middle), arb(S)) <= p else (low, middle)
    return [low, high]


@pytest.mark.parametrize("t", [0.7, 2.0])
def test_where_the_variance_is_clipped_all_over_a_cell_nothing_is_lost(t: float) -> None:
    """S = -5 at the centre, and below 0 around it: mu - t is what the mean alone proves."""
    latent = latent_of("rbf", 6.0, 1.0)
    view = view_of(latent, read_region(box([-0.01], [0.01]), 1), 1)
    point = Point(view, [Fraction(-0.01)], [Fraction(0.01)], {"ref": hexed([0.0]), "tau": (0.0).hex()})
    view.expand([(point, PROBIT.level({"t": t.hex()}, latent))])
    assert abs(plane_at(point, latent, view, 0.0) - (latent.at([0.0])[0] - t)) < 1e-12


def test_a_slope_that_stays_below_the_level_where_the_variance_is_clipped_loses_nothing_there() -> None:
    """tau = t / (2 (c^(1/2) + below^(1/2))): the line meets t c^(1/2) where S is smallest; steeper, it
    would lie below.
    """
    latent, q0, x = latent_of("rbf", 6.0, 1.0), arb(0.5), arb(4)
    t, below = arb(2), latent.lift  # S is anything on so wide a cell
    for tau, lost in ((t / (2 * (1 + below.sqrt())), 0.0), (t / 2, float((t / 2 * below).mid()))):
        above = tau + t * t / (4 * tau)
        plane = rising(latent, -above, tau, q0, arb(0), x, above - t)
        assert abs(plane.constant + above + tau * (1 + q0) + lost) < 1e-12

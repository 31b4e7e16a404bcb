"""NaN and overflow end as "unknown": nothing counts as proved because a comparison with NaN is false."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from gpcert.bounds.geometry.sparse import SparseDomain, SparseShape
from gpcert.bounds.geometry.unit_ball import PairBound
from gpcert.bounds.interface import Certified
from gpcert.bounds.levels.steps import step_curves
from gpcert.bounds.local.forms import subtract
from gpcert.bounds.several.labels import Comparison
from gpcert.bounds.several.tangents.functionals import View
from gpcert.likelihoods import Link
from gpcert.regions import Ball
from gpcert.search import Minimiser

D = 6


def sparse(count: int = 2) -> SparseDomain:
    """At most `count` of D features move by at most 1."""
    shape = SparseShape(Ball(np.zeros(D), count, 0, domain=(-1.0, 1.0)), np.ones(D, dtype=bool))
    domain = shape.domain(np.full(D, -1.0), np.full(D, 1.0), np.zeros(D), np.ones(D))
    assert isinstance(domain, SparseDomain)
    return domain


@pytest.mark.parametrize("enough", [math.nan, -math.inf, 1e308])
def test_a_target_that_nothing_meets_leaves_everything_open(enough):
    """-inf is what a target becomes if the base overflows; the bound then is -inf, and meets nothing."""
    domain = sparse()
    g = np.full(D, math.inf) if enough == -math.inf else np.ones(D)
    with np.errstate(all="ignore"):  # as the search calls it
        bound = domain.minimise(g, np.eye(D), enough)
    assert domain.suspects.asked
    assert domain.suspects.coordinates.all()
    assert not bound.value >= enough or enough == bound.value == -math.inf


@pytest.mark.parametrize(
    "excess", [math.inf, math.nan, 1e308], ids=["infinite", "unknown", "overflows with the base"]
)
@pytest.mark.parametrize("first", ["met", "lost"])
def test_one_lost_functional_is_enough(excess, first):
    """Z4: supports are closed only if every functional closed them, whatever the order."""
    domain = sparse()
    for lost in (first == "lost", first == "met"):
        base = -1e308 if lost else 10.0
        found = subtract(
            domain, base, np.zeros(D), [np.eye(D)], [np.zeros(D)], [], excess if lost else 0.0, (0.0, 1e-6)
        )
        assert (found.value >= 0.0) == (not lost)
    assert domain.suspects.asked
    assert domain.suspects.coordinates.all()
    assert domain.suspects.supports is None


def test_no_target_is_not_a_lost_one():
    """Ranges of variances ask for nothing and close nothing."""
    domain = sparse()
    subtract(domain, 1.0, np.ones(D), [np.eye(D)], [np.zeros(D)], [], 0.0, (np.inf, 0.05))
    assert not domain.suspects.asked


def test_supports_of_unknown_value_survive():
    b, C = np.full(4, 1.0), np.zeros((4, 4))
    C[1, 2] = C[2, 1] = math.nan
    pairs = PairBound(b, C, np.zeros(4, dtype=bool), 2, 0.0)
    kept = pairs.survivors(1.5, np.ones(4, dtype=bool), 100)
    assert (1, 2) in set(map(tuple, kept.tolist()))


class Rated:
    """One box, of which each weighing says what it is told."""

    beta, lengthscale, largest = np.zeros(3), np.ones(1), 1e9

    def __init__(self, answers):
        self._answers = iter(answers)
        self.shape = SimpleNamespace(domain=lambda *_: "not empty")

    def shares(self, x):
        return np.full(3, 1.0 / 3.0)

    def weighing(self, beta):
        probability = next(self._answers)
        return SimpleNamespace(over=lambda lower, *_: Certified(probability, lower, 0, False))


class Compared(Comparison):
    """Theorem 4 settles nothing."""

    def __init__(self, answers):
        self.softmax, self.label = Rated(answers), 0

    def objective(self, x):
        raise NotImplementedError

    def undecided(self, lower, upper, reference):
        return self.rivals, None


@pytest.mark.parametrize("answers", [(math.nan, 0.9), (0.9, math.nan)])
def test_a_label_does_not_win_by_nan(answers):
    zero = np.zeros(1)
    assert not Compared(answers).over(zero, zero + 1.0, zero, 0.6).value > 0.5
    assert Compared((0.9, 0.8)).over(zero, zero + 1.0, zero, 0.6).value > 0.5


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (-1.0, math.nan), (math.nan, math.nan)])
def test_a_range_with_nan_is_everything(ends):
    low, high = ends
    latent = SimpleNamespace(
        lower_bound=lambda a, tau, kappa, accuracy: SimpleNamespace(latent=low if tau < 0 else -high)
    )
    view = SimpleNamespace(_local=lambda a, B: (latent, 0.0))
    assert View.range(view, np.eye(2), 0.0) == (-math.inf, math.inf)


def test_steps_at_an_unknown_variance_say_nothing():
    link = step_curves(Link(lambda f: (f > 0).astype(float), lambda a, b: (a > 0, b > 0)))
    assert link.at_least(3.0, (0.0, math.nan)) == 0.0
    assert link.at_least(3.0, (0.0, 0.0)) > 0.99


def test_a_point_of_unknown_value_is_no_witness_of_anything():
    """The upper end stays what it was; a region of one point with an unknown value has the trivial range."""
    values = iter([(0.2, 0.4), (math.nan, math.nan), (math.nan, math.nan)])
    bound = SimpleNamespace(at=lambda x: next(values))
    search = Minimiser(bound, np.zeros(1), np.ones(1))
    search.offer(np.zeros(1))
    search.offer(np.ones(1))
    assert search.upper == 0.4
    values = iter([(math.nan, math.nan)] * 2)
    point = Minimiser(bound, np.zeros(0), np.zeros(0))
    point.start(point=np.zeros(0))
    assert (point.lower, point.upper) == (0.0, 1.0)

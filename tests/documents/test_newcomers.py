"""What docs/architecture.md promises to a newcomer: a kernel, a link, a region and a question made here,
outside of the package, need no change in it. The judge decides in ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.special import ndtr

import gpcert as gc
from gpcert.bounds.factory import BoundFactory
from gpcert.bounds.geometry.domain import BoxDomain, BoxShape, Domain, scaled_box
from gpcert.bounds.interface import BoxBound
from gpcert.kernels import kernel_from_dict
from gpcert.kernels.stationary import Profile, Stationary
from gpcert.search import Minimiser, Search, run, widest
from gpcert.settings import Settings
from judge.decide import above, at_least, at_most, below
from judge.truth import Truth

TOLERANCE = 0.01


@dataclass(frozen=True)
class TwoScales(Profile):
    """phi(z) = (exp(-z) + exp(-4z))/2, completely monotone as a sum of such functions."""

    smoothness = math.inf

    @property
    def steepest(self) -> float:
        """(1 + 4)/2 times that of exp(-z), which is 2 exp(-3/2) < 0.4463."""
        return 2.5 * 0.4463

    def value(self, z: np.ndarray) -> np.ndarray:
        return 0.5 * (np.exp(-z) + np.exp(-4.0 * z))

    def exponent(self, z: np.ndarray) -> np.ndarray:
        """z (e^-z + 4^(m+1) e^-4z) <= 4z (e^-z + 4^m e^-4z)."""
        return np.minimum(4.0 * z, 1e4)

    def _derivative(self, z: np.ndarray, order: int) -> np.ndarray:
        return 0.5 * (-1.0) ** order * (np.exp(-z) + 4.0**order * np.exp(-4.0 * z))


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Stationary):
    """A kernel of one's own: the profile, and a name for files."""

    type_name = "mixture of two scales"

    @property
    def profile(self) -> Profile:
        return TwoScales()


#: The same kernel made of known parts, for the judge: half the lengthscale makes 4z of z.
KNOWN = gc.RBF(0.75, 1.0) + gc.RBF(0.375, 1.0)


def posterior(kernel: gc.Kernel, likelihood: object = "probit") -> gc.Posterior:
    """Two features, twelve centres; the same numbers for every kernel and link."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (12, 2))
    R = np.linalg.inv(KNOWN(X) + 0.5 * np.eye(12))
    weights = np.where(X.sum(axis=1) < 0.1, 0.5, -0.5)  # P(1) falls towards large features
    return gc.Posterior(X, weights, R, kernel=kernel, likelihood=likelihood)


def points(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """A grid on a rectangle, its ends included."""
    x, y = np.meshgrid(*np.linspace(lower, upper, 13).T)
    return np.stack([x.ravel(), y.ravel()], axis=1)


def test_a_kernel_made_here_is_certified_and_stored() -> None:
    post, truth = posterior(Mixture(0.75, 2.0)), Truth(posterior(KNOWN))
    region = gc.Ball(np.array([0.2, -0.1]), 0.4, norm=2)
    r = gc.probability_range(post, region, tolerance=TOLERANCE)
    assert r.status == "converged"
    inside = [x for x in points(region.box().lower, region.box().upper) if region.contains(x)]
    assert len(inside) > 100
    for x in inside:
        assert truth.at_least(x, 1, r.min.lower) is True
        assert truth.at_most(x, 1, r.max.upper) is True
    assert truth.at_most(r.argmin, 1, r.min.upper) is True
    assert truth.at_least(r.argmax, 1, r.max.lower) is True
    assert kernel_from_dict(post.kernel.to_dict()) == post.kernel
    assert type(kernel_from_dict((post.kernel + gc.RBF(1.0)).to_dict()).parts[0]) is Mixture


def two_slopes(f: np.ndarray) -> np.ndarray:
    return 0.5 * (ndtr(f) + ndtr(3.0 * f))


def test_a_link_made_here_is_certified() -> None:
    link = gc.Link(two_slopes, lambda a, b: (two_slopes(a) - 1e-14, two_slopes(b) + 1e-14), "two slopes")
    post = posterior(gc.RBF(0.75, 2.0), link)
    # Its expectation is the mean of those of two probits, whose scales are 1 and 3.
    truths = [Truth(posterior(gc.RBF(0.75, 2.0), gc.Probit(scale))) for scale in (1.0, 3.0)]

    def truth(x: np.ndarray) -> arb:
        return (truths[0].probability(x, 1) + truths[1].probability(x, 1)) / 2

    box = gc.Box(np.array([-0.2, -0.5]), np.array([0.4, 0.1]))
    r = gc.probability_range(post, box, tolerance=TOLERANCE)
    assert r.status == "converged"
    for x in points(box.lower, box.upper):
        assert at_least(lambda x=x: truth(x), r.min.lower) is True
        assert at_most(lambda x=x: truth(x), r.max.upper) is True
    assert at_most(lambda: truth(r.argmin), r.min.upper) is True
    assert at_least(lambda: truth(r.argmax), r.max.lower) is True
    sure = gc.certify(post, r.argmax, gc.Ball(r.argmax, 0.01))
    assert sure.status == "safe"
    assert above(lambda: truth(r.argmax), sure.threshold) is True


@dataclass(frozen=True, eq=False)
class Triangle(BoxShape):
    """A region of one's own: the points of a box with x_0 + x_1 <= `most`, exactly."""

    most: float

    is_box = False

    def holds(self, x: np.ndarray) -> bool:
        return sum(Fraction(float(each)) for each in x) <= Fraction(self.most)

    def domain(
        self, lower: np.ndarray, upper: np.ndarray, reference: np.ndarray, lengthscale: np.ndarray
    ) -> Domain | None:
        """A box that misses the triangle is empty; any other is kept whole, which is sound."""
        return BoxDomain(*scaled_box(lower, upper, reference, lengthscale)) if self.holds(lower) else None

    def project(self, point: np.ndarray) -> np.ndarray:
        """Towards the corner [lower, ...], until it is exactly inside."""
        inside, share = np.clip(point, self.lower, self.upper), 1.0
        while not self.holds(inside):
            share *= 0.99
            inside = self.lower + share * (inside - self.lower)
        return inside

    def vertex(self, gradient: np.ndarray, point: np.ndarray) -> np.ndarray:
        return self.project(super().vertex(gradient, point))


class Smallest(Search):
    """A question of one's own: the smallest value of one bound."""

    def __init__(self, bound: BoxBound, lower: np.ndarray, upper: np.ndarray) -> None:
        super().__init__(gc.Box(lower, upper))
        self._side = Minimiser(bound, lower, upper)

    def begin(self) -> Iterator[None]:
        self.sides = (self._side,)
        self._side.start()
        yield

    def choose(self) -> Minimiser | None:
        return widest(self.sides, TOLERANCE)

    def known(self) -> tuple[float, float]:
        return self._side.lower, self._side.upper


def test_a_region_made_here_is_all_that_bounds_and_search_need() -> None:
    post = posterior(gc.RBF(0.75, 2.0))
    truth, lower, upper = Truth(post), np.array([-0.3, -0.3]), np.array([0.4, 0.4])
    shape = Triangle(lower, upper, -0.05)
    low, _ = BoundFactory(post).pair(1, shape, lower, np.ones(2, dtype=bool))
    question = Smallest(low, lower, upper)
    run(question, Settings(TOLERANCE, max_nodes=2000))
    (search,) = question.sides
    assert search.upper - search.lower <= TOLERANCE
    assert shape.holds(search.witness)
    assert truth.at_most(search.witness, 1, search.upper) is True
    grid = points(lower, upper)
    inside = np.array([shape.holds(x) for x in grid])
    assert inside.sum() > 50
    for x in grid[inside]:
        assert truth.at_least(x, 1, search.lower) is True
    # The triangle and not its box was searched: in the box P falls lower.
    assert any(below(lambda x=x: truth.probability(x, 1), search.lower) is True for x in grid[~inside])

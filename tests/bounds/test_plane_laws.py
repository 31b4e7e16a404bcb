"""The laws of supporting planes (G1, G2, G6 to G8, J4) and of sums of kernels (D1, G4, G5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from flint import arb

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.domain import BoxDomain, scaled_box
from gpcert.bounds.levels.registry import curves_of
from gpcert.bounds.local.gaussian.plane import plane_at
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.radial.functional import radial_plane
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.bounds.one.gaussian import mean_over
from helpers.cases import drawn, region_near
from helpers.laws import BoundLaws, Case
from judge import Truth

OTHERS = ("matern52", "matern32", "matern12", "rational quadratic", "sum", "other product")
LINES = ((-1.0, 0.0), (1.0, 0.0), (-0.3, 0.7), (2.5, -0.2))


@dataclass
class PlaneCase(Case):
    """Lower bounds of one functional of mean and variance over a box, one for each way of finishing it."""

    post: gc.Posterior
    ends: tuple[np.ndarray, np.ndarray]
    reference: np.ndarray
    functional: Callable[[Truth, np.ndarray], arb]
    bounds: Callable[[PlaneCase], list]

    def lower(self):
        with np.errstate(all="ignore"):
            self.found = self.bounds(self)
        return np.array([-np.inf if each is None else each.latent for each in self.found])

    def points(self, row, rng):
        (low, high), here = self.ends, self.reference
        d = len(low)
        corners = [np.where([i >> j & 1 for j in range(d)], high, low) for i in range(2 ** min(d, 3))]
        within = rng.uniform(low, high, (3, d))
        return [*corners, *within, here, np.clip(here + 1e-4 * (within[0] - here), low, high)]

    def truth(self, row, x):
        if not hasattr(self, "_truth"):
            self._truth = Truth(self.post)
        return self.functional(self._truth, x)

    def subset(self, share):
        low, high = (self.reference + share * (end - self.reference) for end in self.ends)
        return replace(self, ends=(low, high))

    def domain(self, slice_):
        return BoxDomain(*scaled_box(*self.ends, self.reference, slice_.lengthscale))


def bent(plane, forms=True):
    """By norms, by forms, and with what is known of the space between, as if it were needed at a corner."""
    flat = [plane.lower_bound(False), plane.lower_bound(True)]
    if not hasattr(plane, "bent"):
        return flat
    return [*flat, plane.bent(flat[1]._replace(value=0.0, point=plane.around.domain.reach))]


class PlaneLaws(BoundLaws):
    kernel: str | tuple[str, ...] = "rbf"
    n: int | tuple[int, ...] = (1, 3, 5, 8)
    d: int | tuple[int, ...] = (1, 2, 3)
    precision = ("laplace", "laplace", "stiff", "spectrum", "zero", "indefinite")
    slack = 0.3  # forms and norms are balanced by size
    order = 1.7
    count = 50

    def make(self, rng, size):
        seen = size == self.sizes[0]
        precision = "laplace" if seen else self.precision
        post = drawn(rng, kernel=self.kernel, n=self.n, d=self.d, precision=precision)
        box = region_near(rng, post, np.nan, size)
        if not (box.upper > box.lower).all():
            return None
        start = box.centre if seen else rng.uniform(box.lower, box.upper)
        return self.case(rng, post, (box.lower, box.upper), start)

    def slice(self, post, start, sign):
        make = make_slice if isinstance(post.kernel, gc.RBF) else make_radial_slice
        return make(model_of(post), start, np.arange(post.n_features), sign)

    def supports(self, case, slice_, level):
        if isinstance(case.post.kernel, gc.RBF):
            found = plane_at(slice_, case.domain(slice_), case.reference, level, slice_.largest_variance)
            return [] if found is None else bent(found)
        if not slice_.moderate:
            return []
        found = radial_plane(slice_, case.domain(slice_), case.reference, level, slice_.largest_variance)
        return [None if found is None else found.bound]

    def extreme(self, rng):
        """Weights of all magnitudes, boxes of many lengthscales."""
        case = self.make(rng, 10.0 ** rng.uniform(0, 2))
        if case is None:
            return None
        weights = case.post.weights * 10.0 ** rng.choice([-300, -150, 150, 290])
        post = gc.Posterior(case.post.centres, weights, case.post.precision, kernel=case.post.kernel)
        return replace(case, post=post)


class TestLevels(PlaneLaws):
    def case(self, rng, post, ends, start):
        sign = float(rng.choice([-1.0, 1.0]))
        p = float(np.clip(post.probability(start[None])[0, int(sign > 0)], 1e-9, 1 - 1e-9))
        level = curves_of(post.likelihood).level(p * float(rng.choice([1.0, 0.99, 0.5])))

        def functional(truth, x):
            mean, S = truth.latent(x)
            return arb(sign) * mean - arb(level.t) * (1 + S.max(arb(0))).sqrt()

        def bounds(case):
            slice_ = self.slice(case.post, case.reference, sign)
            return self.supports(case, slice_, level.within(lambda: (0.0, slice_.largest_variance)))

        return PlaneCase(post, ends, start, functional, bounds)


class TestLevelsOfManyFeatures(TestLevels):
    n, d = (3, 8), (13, 27)
    order = None
    count = 10


class TestLevelsOfOtherKernels(TestLevels):
    kernel = OTHERS
    order = 0.9


class TestVariances(PlaneLaws):
    """Lines kappa - tau S (G8)."""

    order = 1.7

    def case(self, rng, post, ends, start):
        tau, kappa = LINES[int(rng.integers(len(LINES)))]
        scale = float(post.kernel.prior_variance)

        def functional(truth, x):
            return arb(kappa * scale) - arb(tau) * truth.variance(x)

        def bounds(case):
            slice_ = replace(self.slice(case.post, case.reference, 1.0), sign=0.0)
            return self.supports(case, slice_, (tau, kappa * scale))

        return PlaneCase(post, ends, start, functional, bounds)


class TestVariancesOfOtherKernels(TestVariances):
    kernel = OTHERS
    order = 0.9


class TestMeans(PlaneLaws):
    """One sum of kernels, by norms and by forms."""

    def case(self, rng, post, ends, start):
        sign = float(rng.choice([-1.0, 1.0]))

        def bounds(case):
            slice_ = self.slice(case.post, case.reference, sign)
            found = mean_over(slice_, case.domain(slice_), case.reference)
            return [found.lower_bound(False), found.lower_bound(True)]

        return PlaneCase(post, ends, start, lambda truth, x: arb(sign) * truth.mean(x), bounds)


class TestMeansOfManyFeatures(TestMeans):
    n, d = (3, 8), (13, 27)
    order = None
    count = 10

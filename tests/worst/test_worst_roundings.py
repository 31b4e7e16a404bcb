"""Roundings of single values, thousands of times. No worst case attains them, as many errors would have to
have one sign: the scale in a row is one at which the term is noticed here; at 0.9 none is.
"""

from __future__ import annotations

import numpy as np
from flint import arb, fmpq

import gpcert as gc
from gpcert.bounds.facts.model import model_of
from gpcert.bounds.geometry.box_quadratic import quadratic_lower_bound
from gpcert.bounds.geometry.domain import BoxDomain
from gpcert.bounds.levels.curves import ProbitLevel
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.bounds.local.gaussian.sums import Covariances, KernelSum
from gpcert.bounds.local.radial.expansion import expand_radial
from gpcert.bounds.local.radial.slice import make_radial_slice
from gpcert.engine.backend import Backend
from gpcert.engine.boxes import boxes
from gpcert.engine.facts import Facts
from gpcert.engine.profiles import profile_of
from gpcert.engine.quadratic import dual
from gpcert.engine.radial import RadialSums
from gpcert.engine.root import Rows
from gpcert.engine.rounding import normal_down, normal_up
from gpcert.engine.sums import Sums
from gpcert.engine.values import amplitudes, points
from gpcert.rounding import exp_down, exp_up, normal_cdf_bounds
from helpers.laws import TermLaws
from helpers.quadratics import exact
from helpers.worst import column, exactly, plane
from judge import Truth


def cases(make, count=300, far=6.0):
    """(posterior, point): few centres, up to `far` lengthscales off, half of them next to another."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        n, d = int(rng.integers(1, 3)), int(rng.choice([1, 1, 5]))
        l = rng.uniform(0.5, 1.0, d)
        x = l * rng.standard_normal(d)
        X = x + l * rng.standard_normal((n, d)) * rng.uniform(0.1, far) / np.sqrt(d)
        X[1:] = X[:1] + 1e-3 * l if rng.random() < 0.5 else X[1:]
        weights = rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 1.0, n)
        R = np.linalg.inv(make(l)(X) + 1e-4 * np.eye(n))
        yield gc.Posterior(X, weights, 0.5 * (R + R.T), kernel=make(l), likelihood=gc.Probit()), x


def within(value, low, high):
    return arb(float(low)) <= value <= arb(float(high))


def row(post, x):
    """The engine's view of a point, its origin some lengthscales off."""
    every = np.arange(len(x))
    facts = Facts(Backend(), model_of(post), every, x + 3.0 * np.asarray(post.kernel.lengthscale), False,
                  profile_of(post.kernel))  # fmt: skip
    rows = Rows(*(x[None],) * 4, np.zeros((1, 0)), column(1.0))
    return points(facts, x[None], amplitudes(facts, rows.standing)), boxes(facts, rows, x[None])


@exactly
def test_values():
    """E1, E3, K1 and J1, and sums at their reference: J5 and G4."""
    for post, x in cases(lambda l: gc.RBF(l, 1.0)):
        mean, S = Truth(post).latent(x)
        slice_ = make_slice(model_of(post), x, np.arange(len(x)))
        at, box = row(post, x)
        ends = [*slice_.latent(x), *([float(e[0]) for e in pair] for pair in (at.mean(), at.variance))]
        assert all(within(value, *pair) for value, pair in zip((mean, S, mean, S), ends, strict=True))
        f = Sums(at, box, plane(post.weights))
        v, k, relative, _ = slice_.visit(x)
        domain = BoxDomain(0.0 * x, 0.0 * x + 1e-60)
        pieces = KernelSum(Covariances(slice_, domain, v, k, relative), post.weights, 0.0).pieces(False)
        for base, excess in ((float(f.value[0]), float(f.excess[0])), (pieces.base, pieces.excess)):
            assert within(mean, arb(base) - arb(excess), arb(base) + arb(excess))


@exactly
def test_values_of_other_kernels():
    for make in (gc.Matern32, gc.Matern52, lambda l, s: gc.RationalQuadratic(l, s, 2.0)):
        for post, x in cases(lambda l, make=make: make(l, 1.0), 120, 40.0):
            mean, S = Truth(post).latent(x)
            slice_ = make_radial_slice(model_of(post), x, np.arange(len(x)))
            at, box = row(post, x)
            ends = [*slice_.latent(x), *([float(e[0]) for e in pair] for pair in (at.mean(), at.variance))]
            assert all(within(value, *pair) for value, pair in zip((mean, S, mean, S), ends, strict=True))
            data = RadialSums(at, box, plane(post.weights)).data
            e = expand_radial(slice_, BoxDomain(0.0 * x, 0.0 * x + 1e-60), x)
            for base, error in ((float(data.value[0]), float(data.value_error[0])), (e.M0, e.error_M)):
                assert within(mean, arb(base) - arb(error), arb(base) + arb(error))


@exactly
def test_functions():
    """R2, R3, J8, and the probit's level."""
    backend, rng = Backend(), np.random.default_rng(2)
    for x in rng.uniform(-8.0, 8.0, 2000):
        phi = (-arb(x) / arb(2).sqrt()).erfc() / 2
        assert within(phi, *normal_cdf_bounds(x))
        assert within(phi, normal_down(backend, column(x))[0], normal_up(backend, column(x))[0])
        assert within(arb(x).exp(), exp_down(x), exp_up(x))
        S, t = abs(x), x / 4
        assert within(arb(t) * (1 + arb(S)).sqrt(), *ProbitLevel(t, 1.0, 1.0).curve(S))


def test_quadratics():
    """Q2 where it is the chord: at an end of the interval."""
    rng, backend = np.random.default_rng(3), Backend()
    for _ in range(400):
        g, low, high, y = rng.standard_normal(1), -rng.random(1), rng.random(1), rng.standard_normal(1)
        H = -rng.random((1, 1))
        ends = [exact(g, H, end) for end in (low, high)]
        found = dual(backend, g[None], H[None], low[None], high[None], -H, y[None]).value[0]
        assert fmpq(*float(found).as_integer_ratio()) <= min(ends)
        scalar = quadratic_lower_bound(g, H, low, high).value
        assert fmpq(*float(scalar).as_integer_ratio()) <= min(ends)


VALUES, OTHERS, FUNCTIONS, CHORDS = (
    "test_values",
    "test_values_of_other_kernels",
    "test_functions",
    "test_quadratics",
)
TERMS = [
    ("E1", "bounds/local/gaussian/slice.py", "np.asarray({|0.03 * }UNIT * ((self.model.centres", VALUES),
    ("E3", "bounds/local/enclosures.py", "error = {|0.05 * }sum_up(np.abs(weights) * bound", VALUES),
    ("E3", "bounds/local/enclosures.py", "error_S = {2.02|0.0} * sqrt_up", VALUES),
    ("J1", "engine/values.py", "return {4.0|0.0} * UNIT * (d + 16)", VALUES),
    ("J1", "engine/values.py", "error = {|0.001 * }size * self._relative * 1.01", VALUES),
    ("J1", "engine/values.py", "error = {2.02|0.0} * self._relative * self.weighted", VALUES),
    ("J5", "engine/sums.py", "found = found * (1.0 + 1e-9){| * 0.0003}", VALUES),
    ("X4", "bounds/local/gaussian/sums.py", "excess = self.excess + {|0.03 * }sum_up(", VALUES),
    ("K1", "bounds/local/radial/slice.py", "np.asarray({1.01|0.01} * self.blur * g + {|0.01 * }UNIT", OTHERS),
    ("J14", "engine/radial.py", "value_error = {1.02|0.001} * (at.unit", OTHERS),
    ("Theorem K", "bounds/local/radial/expansion.py", "grown * unit) * {1.01|0.002},", OTHERS),
    ("R2", "rounding.py", "math.exp(x) * (1.0 + {2|0} * LIBRARY_ULPS * UNIT) + TINY", FUNCTIONS),
    ("R3", "rounding.py", "return max(0.0, {down(lower)|up(lower)})", FUNCTIONS),
    ("J8", "engine/rounding.py", "UNIT * ({64.0|1.0} + {16.0|0.5} * tail", FUNCTIONS),
    ("L2", "bounds/levels/curves.py", "ends[0] - {4|0} * UNIT * abs(ends[0])", FUNCTIONS),
    ("Q2", "engine/quadratic.py", "- {|0 * }gamma(4 * d + 80) * size", CHORDS),
]  # fmt: skip


class TestTerms(TermLaws):
    terms = TERMS

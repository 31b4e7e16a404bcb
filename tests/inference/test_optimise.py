"""Gradients of the log marginal likelihood, its maximisation under a budget, and the bounds of the search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpcert as gc
from gpcert.errors import InvalidInputError
from gpcert.inference.optimise import log_bounds, maximise
from gpcert.inference.train import METHODS, marginal_likelihood

ARD = np.array([0.7, 1.5, 3.0])
KERNELS = [
    gc.RBF(1.3, 4.0),
    gc.RBF(ARD, 4.0),
    gc.Matern12(1.3, 4.0),
    gc.Matern12(ARD, 4.0),
    gc.Matern32(ARD, 4.0),
    gc.Matern52(1.3, 4.0),
    gc.RationalQuadratic(ARD, 4.0, 0.6),
    gc.RBF(1.3, 2.0) + gc.Matern32(ARD, 1.0),
    gc.RBF(2.0, 2.0) * gc.RationalQuadratic(1.3, 2.0, 3.0) + gc.Matern52(ARD, 0.5),
]


def data(n: int = 25, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    X[-1] = X[0]  # a duplicated point
    y = np.where(X[:, 0] + 0.4 * random.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


@pytest.mark.parametrize("link", [gc.Probit(), gc.Probit(scale=0.5), gc.Logit()], ids=str)
@pytest.mark.parametrize("inference", METHODS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient_against_finite_differences(kernel: gc.RBF, inference: str, link: object) -> None:
    X, y = data()
    evaluate = marginal_likelihood(X, y, kernel, link, METHODS[inference])
    h = 1e-4
    steps = h * np.eye(len(kernel.theta))
    # Fourth order: the error of the difference is of the order of h^4 and of 1e-12/h.
    numeric = [
        (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * h)
        for step in steps
        for value in [lambda t: evaluate(kernel.with_theta(kernel.theta + t)).value]
    ]
    np.testing.assert_allclose(evaluate(kernel).gradient, numeric, rtol=1e-6, atol=1e-6)


@dataclass(frozen=True)
class Bowl:
    """A smooth function with its maximum 0 at (1, -2), badly scaled."""

    theta: np.ndarray

    @property
    def value(self) -> float:
        a, b = self.theta - [1.0, -2.0]
        return float(-50.0 * np.log1p(a**2 + 100.0 * (b - a**2) ** 2))

    @property
    def gradient(self) -> np.ndarray:
        a, b = self.theta - [1.0, -2.0]
        inner = a**2 + 100.0 * (b - a**2) ** 2
        slope = np.array([2.0 * a - 400.0 * a * (b - a**2), 200.0 * (b - a**2)])
        return -50.0 / (1.0 + inner) * slope


WIDE = np.array([[-10.0, 10.0], [-10.0, 10.0]])


@settings(max_examples=40, deadline=None)
@given(budget=st.integers(1, 120), n_restarts=st.integers(0, 4), seed=st.integers(0, 1000))
def test_budget_is_never_exceeded_and_the_best_is_kept(budget: int, n_restarts: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    theta = random.uniform(-3, 3, size=2)
    seen: list[float] = []

    def evaluate(theta: np.ndarray) -> Bowl:
        assert (theta >= WIDE[:, 0]).all()
        assert (theta <= WIDE[:, 1]).all()
        seen.append(Bowl(theta).value)
        return Bowl(theta)

    result = maximise(evaluate, theta, WIDE, budget, n_restarts=n_restarts, random=random)
    assert 1 <= len(seen) <= budget
    assert result.trace == tuple(seen)
    assert seen[0] == Bowl(theta).value
    assert result.best.value == max(seen)
    np.testing.assert_array_equal(result.best.theta, result.theta)


def test_more_budget_is_never_worse() -> None:
    values = [maximise(Bowl, np.zeros(2), WIDE, budget).best.value for budget in (1, 10, 40, 100)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(0.0, abs=1e-8)


def test_convergence_is_reported() -> None:
    assert not maximise(Bowl, np.zeros(2), WIDE, 5).converged
    assert maximise(Bowl, np.zeros(2), WIDE, 1000).converged


def test_restarts_escape_a_flat_start() -> None:
    """At (9, 9) the bowl is nearly flat: one start does not arrive in this budget, one of several does."""
    start = np.array([9.0, 9.0])
    one = maximise(Bowl, start, WIDE, 30)
    several = maximise(Bowl, start, WIDE, 600, n_restarts=5, random=np.random.default_rng(0))
    assert several.best.value > one.best.value


def test_a_step_that_cannot_be_evaluated_ends_the_start() -> None:
    def evaluate(theta: np.ndarray) -> Bowl:
        if theta[0] > 0.5:
            raise InvalidInputError("theta[0] must be <= 0.5")
        return Bowl(theta)

    result = maximise(evaluate, np.array([-1.0, 0.0]), WIDE, 50)
    assert result.theta[0] <= 0.5
    with pytest.raises(InvalidInputError):
        maximise(evaluate, np.array([1.0, 0.0]), WIDE, 50)


def test_progress_sees_every_evaluation_and_can_stop() -> None:
    calls: list[tuple[int, float]] = []

    def progress(count: int, value: float, theta: np.ndarray) -> bool:
        assert Bowl(theta).value == value
        calls.append((count, value))
        return count == 7

    result = maximise(Bowl, np.zeros(2), WIDE, 100, n_restarts=3, progress=progress)
    assert calls == list(enumerate(result.trace, start=1))
    assert len(calls) == 7


def test_default_bounds_follow_the_data_and_contain_the_kernel() -> None:
    X, _ = data()
    kernel = gc.RBF(ARD, 4.0) * gc.RationalQuadratic(1e-9, 1e9, 1.0)
    bounds, scaled = log_bounds(kernel, X), log_bounds(gc.RBF(1e6 * ARD, 4.0), 1e6 * X)
    assert bounds.shape == (len(kernel.theta), 2)
    assert (bounds[:, 0] <= kernel.theta).all()
    assert (kernel.theta <= bounds[:, 1]).all()
    np.testing.assert_allclose(scaled[:3], bounds[:3] + np.log(1e6), rtol=1e-12)


def test_bounds_of_constant_and_huge_features() -> None:
    X = np.array([[1.0, -1.7e308], [1.0, 1.7e308]])
    assert np.isfinite(log_bounds(gc.RBF(np.ones(2), 1.0), X)).all()
    assert np.isfinite(log_bounds(gc.RBF(), X)).all()
    assert np.isfinite(log_bounds(gc.RBF(), X[:, :1])).all()


def test_given_bounds_replace_defaults_by_name() -> None:
    X, _ = data()
    kernel = gc.RBF(1.0, 1.0) + gc.RBF(2.0, 1.0)
    bounds = np.exp(log_bounds(kernel, X, {"variance": (0.5, 2.0), "terms[1].lengthscale": (2.0, 2.0)}))
    np.testing.assert_allclose(bounds[[1, 3]], [[0.5, 2.0]] * 2)
    np.testing.assert_allclose(bounds[2], [2.0, 2.0])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"varience": (1, 2)}, "must name parameters of the kernel"),
        ({"variance": (2, 1)}, r"bounds\['variance'\] must be \(lowest, highest\)"),
        ({"variance": (0, 1)}, "0 < lowest"),
        ({"variance": 1.0}, "lowest"),
        ({"variance": (2.0, 3.0)}, "contain the kernel's parameters, got variance=1 outside"),
    ],
)
def test_bad_bounds_are_one_clear_error(bounds: dict[str, object], message: str) -> None:
    X, _ = data()
    with pytest.raises(InvalidInputError, match=message):
        log_bounds(gc.RBF(), X, bounds)

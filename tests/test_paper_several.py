"""Propositions 3 and 4: cells, masses and softmax bounds contain the truth; the printed sign does not."""

import numpy as np
import pytest

from gpcert.likelihoods import Softmax
from gpcert.paper import several
from gpcert.paper.several import LatentRanges, softmax_bounds

CORRELATED = np.array([[2.0, 1.8, 0.3], [1.8, 2.0, 0.2], [0.3, 0.2, 1.0]])


def point(mean, covariance):
    """Ranges that are one point."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    return LatentRanges((mean, mean), (covariance, covariance))


def random_case(rng, C=3):
    A = rng.standard_normal((C, C)) * 10.0 ** rng.uniform(-1, 0.5)
    return rng.normal(0, 1.5, C), A @ A.T + 0.05 * np.eye(C)


def expected(mean, covariance, label, rng, draws=200_000):
    """Monte Carlo with its standard error."""
    f = rng.multivariate_normal(mean, covariance, draws)
    p = np.exp(f - np.logaddexp.reduce(f, axis=1, keepdims=True))[:, label]
    return float(p.mean()), float(p.std() / draws**0.5)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_over_ranges(seed):
    """Means and covariances drawn inside the ranges never leave the bounds."""
    rng = np.random.default_rng(seed)
    C = int(rng.integers(2, 4))
    mean, covariance = random_case(rng, C)
    width = 10.0 ** rng.uniform(-3, -1)
    ranges = LatentRanges((mean - width, mean + width), (covariance - width / 4, covariance + width / 4))
    label = int(rng.integers(C))
    lower, upper = softmax_bounds(ranges, label, 12)
    assert 0 <= lower <= upper <= 1
    for _ in range(3):
        noise = rng.uniform(-width / 4, width / 4, (C, C))
        inside = covariance + 0.5 * (noise + noise.T)
        value, error = expected(mean + rng.uniform(-width, width, C), inside, label, rng)
        assert lower <= value + 5 * error
        assert upper >= value - 5 * error


@pytest.mark.parametrize("seed", range(4))
def test_bounds_tighten_with_the_partition(seed):
    rng = np.random.default_rng(seed)
    mean, covariance = random_case(rng)
    widths = []
    for intervals in (8, 16, 32):
        lower, upper = softmax_bounds(point(mean, covariance), 0, intervals)
        widths.append(upper - lower)
    assert widths[0] > widths[1] > widths[2]


def test_bounds_agree_with_quadrature():
    mean = np.array([0.4, -0.2, 0.1])
    truth = float(np.asarray(Softmax().expectation(mean[None], CORRELATED[None]))[0, 0])
    lower, upper = softmax_bounds(point(mean, CORRELATED), 0, 60)
    assert lower <= truth <= upper
    assert upper - lower < 0.35


def test_the_printed_sign_gives_false_bounds(monkeypatch):
    """With the paper's minus in the conditional mean a correlated case leaves its own bounds."""
    ranges = point([2.0, 0.0], [[9.0, 8.8], [8.8, 9.0]])
    value, error = expected(ranges.mean[0], ranges.covariance[0], 0, np.random.default_rng(0))
    lower, upper = softmax_bounds(ranges, 0, 400)
    assert lower <= value <= upper
    monkeypatch.setattr(several, "_moved", lambda mean, slope, step: mean - slope * step)
    assert softmax_bounds(ranges, 0, 400)[1] < value - 5 * error


def test_unbounded_ranges_say_nothing():
    ranges = LatentRanges((np.array([0.0, -np.inf]), np.array([1.0, 0.0])), (np.eye(2), np.eye(2)))
    assert softmax_bounds(ranges, 0, 8) == (0.0, 1.0)

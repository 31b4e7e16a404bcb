"""Propositions 3 and 4: cells, masses and softmax bounds contain the truth; the printed sign does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpcert.bounds.facts.classes import class_model_of
from gpcert.bounds.local.gaussian.slice import make_slice
from gpcert.kernels import RBF
from gpcert.likelihoods import OneVsRest, Probit, Softmax
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.regions import Box
from gpcert_paper.method import several
from gpcert_paper.method.covariance import covariances
from gpcert_paper.method.several import LatentRanges, softmax_bounds
from gpcert_paper.method.softmax import EntryModels
from gpcert_paper.method.variance import largest_variance, smallest_variance
from helpers.oracle import examples
from helpers.several import Setting, falsehoods, random_box, random_model

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


SETTINGS = st.builds(
    Setting,
    kind=st.sampled_from(["correlated", "independent"]),
    classes=st.sampled_from([2, 3, 4]),
    n=st.sampled_from([3, 10]),
    d=st.sampled_from([1, 2, 4]),
    width=st.sampled_from([1e-6, 0.1, 0.3, 3.0]),
    seed=st.integers(0, 10**6),
)


@settings(max_examples=examples(20), deadline=None)
@given(setting=SETTINGS, data=st.data())
def test_ranges_hold(setting, data):
    post = random_model(setting)
    box = random_box(setting, post)
    label = data.draw(st.integers(0, setting.classes - 1))
    answer = probability_range(post, box, label, "paper", tolerance=0.05, max_nodes=6)
    assert falsehoods(post, box, answer, np.random.default_rng(setting.seed)) == []
    ours = probability_range(post, box, label, tolerance=0.05, max_nodes=6)
    for mine, other in ((ours.min, answer.min), (ours.max, answer.max)):
        assert mine.lower <= other.upper
        assert other.lower <= mine.upper


@pytest.mark.parametrize("seed", range(6))
def test_covariances_are_enclosed_and_the_enclosures_shrink(seed):
    setting = Setting("correlated", 3, 10, 2, 0.1, seed)
    post = random_model(setting)
    entries, model = EntryModels.of(post), class_model_of(post)
    geometry = model.functional(np.zeros(3), np.zeros((3, 3)))
    x = post.centres[0] + 0.05
    widths = []
    for half in (0.1, 0.02):
        slice_ = make_slice(geometry, x, np.arange(2))
        c = covariances(slice_, x - half, x + half)
        X = x + np.random.default_rng(seed).uniform(-half, half, (200, 2))
        _, S = post.latent(X)
        for (i, j), one in zip(entries.pairs, entries.models, strict=True):
            low, high = smallest_variance(one, c).value, largest_variance(one, c).value
            assert low - 1e-9 <= S[:, i, j].min()
            assert S[:, i, j].max() <= high + 1e-9
            widths.append(high - low)
    first, second = np.split(np.array(widths), 2)
    assert (second < first).all()


def test_other_likelihoods_get_one_sentence():
    X, weights = np.zeros((2, 1)), np.zeros((2, 3))
    post = Posterior(X, weights, np.zeros((3, 2, 2)), kernel=RBF(1.0, 1.0), likelihood=OneVsRest(Probit()))
    with pytest.raises(ValueError, match="method 'paper' needs two classes or softmax, and one RBF kernel"):
        probability_range(post, Box([0.0], [1.0]), 1, method="paper")

"""Limits of time: whose time it is that passes."""

from types import SimpleNamespace

import numpy as np
import pytest

import gpcert as gc
from gpcert import clock
from gpcert.bounds.facts import classes, model
from gpcert.clock import OutOfTime, check, now, remaining, standing, until


@pytest.fixture
def time(monkeypatch):
    """[the time], which passes only as a test lets it; none was spent `standing` by earlier tests."""
    time = [100.0]
    clock._stood.set(0.0)
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: time[0]))
    return time


def test_no_time_passes_for_limits_while_the_clock_stands(time):
    with until(now() + 5.0):
        time[0] += 3.0
        with standing():
            time[0] += 50.0
            check()
            with standing():
                time[0] += 50.0
        assert remaining() == pytest.approx(2.0)
        check()
        time[0] += 2.5
        with pytest.raises(OutOfTime):
            check()
    assert remaining() == np.inf


def test_what_a_standing_clock_hid_counts_no_later_either(time):
    @standing()
    def fails():
        time[0] += 10.0
        raise KeyError

    before = now()
    with pytest.raises(KeyError):
        fails()
    assert now() == before
    with until(now() + 1.0):
        check()


@pytest.mark.parametrize(
    "limit", [lambda: until(now() + 1.0, lambda: True), standing], ids=["until", "standing"]
)
def test_a_limit_that_an_interrupt_kept_from_ending_does_not_outlive_its_frame(time, limit):
    """Between the set and the `with` that would take it back, or before it is taken back, Ctrl-C may come."""
    entered = limit()
    next(entered.gen)  # what `with` does first
    with until(now() + 2.0):  # a later question
        del entered
        assert remaining() == 2.0
        check()
    time[0] += 5.0
    check()
    assert remaining() == np.inf


def test_limits_that_are_over_are_not_kept(time):
    """Suspended out of order, each once held on to all before it."""
    entered = []
    for _ in range(50):
        entered.append(until(now() + 1.0))
        next(entered[-1].gen)
    del entered[:]
    with until(now() + 2.0):
        assert len(list(clock._limits())) == 1
        assert clock._limit.get().outer is None
    assert clock._limit.get() is None


@pytest.mark.parametrize("kernel", [gc.RBF(1.0), gc.Matern52(1.0)], ids=["Gaussian", "Matern"])
@pytest.mark.parametrize("likelihood", ["softmax", "probit"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_model_is_checked_once_whatever_the_limit_of_the_first_question(
    count, likelihood, kernel, time, monkeypatch
):
    """A check takes longer than the limit: it was given up, and begun again, for every question."""
    rng = np.random.default_rng(1)
    X = np.repeat(3.0 * np.eye(3)[:count], 5, axis=0) + 0.1 * rng.normal(size=(5 * count, 3))
    train = gc.GPClassifier(kernel=kernel, likelihood=likelihood, max_evals=0)
    post = train.fit(X, np.repeat(range(count), 5)).posterior_
    checked = []

    def slowly(verify):
        def slow(posterior):
            time[0] += 60.0
            checked.append(posterior)
            return verify(posterior)

        return slow

    monkeypatch.setattr(classes, "_verify", slowly(classes._verify))
    monkeypatch.setattr(model, "_verified", slowly(model._verified))
    first = gc.certify(post, X[0], gc.Ball(X[0], 0.05), max_seconds=5.0)
    assert (first.status, first.seconds) == ("safe", 0.0)
    times = len(checked)
    assert gc.probability_range(post, gc.Ball(X[0], 0.01), 1, max_seconds=5.0).status == "converged"
    assert gc.certified_radius(post, X[0], max_radius=0.05, max_seconds=5.0).safe == 0.05
    assert len(checked) == times > 0

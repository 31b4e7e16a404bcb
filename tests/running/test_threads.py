"""Questions about small models and their training have one BLAS thread and leave the process as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

import gpcert as gc
from gpcert import estimator
from gpcert.running import one_thread

X = np.array([[0.0], [1.0], [2.0], [3.0]])


def threads() -> set[int]:
    return {each["num_threads"] for each in ThreadpoolController().info() if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """As in a user's process, however the tests are run."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        assert threads() == {2}
        yield
        assert threads() == {2}


@pytest.fixture(scope="module")
def clf() -> gc.GPClassifier:
    return gc.GPClassifier(max_evals=0).fit(X, ["a", "a", "b", "b"])


def test_a_question_has_one_thread_and_the_process_its_own_again(clf: gc.GPClassifier) -> None:
    seen: list[set[int]] = []

    def look(p: gc.Progress) -> bool:
        seen.append(threads())
        return False

    gc.probability_range(clf, gc.Ball([1.4], 0.3), progress=look)
    gc.certify(clf, gc.balls(X, 0.2), progress=look, n_jobs=1)
    gc.evaluate(clf, X, ["a", "a", "b", "b"], [0.1], progress=look, n_jobs=1)
    gc.explain(clf, [1.4], 0.2, progress=look)
    gc.certified_radius(clf, [[1.4]], progress=look)
    assert len(seen) >= 5
    assert all(each == {1} for each in seen)


def test_training_has_one_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    train = estimator.train

    def look(*args: Any) -> Any:
        seen.append(threads())
        return train(*args)

    monkeypatch.setattr(estimator, "train", look)
    gc.GPClassifier(max_evals=0).fit(X, ["a", "a", "b", "b"])
    assert seen == [{1}]


def test_an_error_sets_the_threads_back(clf: gc.GPClassifier) -> None:
    with pytest.raises(gc.InvalidInputError):
        gc.probability_range(clf, gc.Ball([1.4], 0.3), tolerance=-1.0)
    assert threads() == {2}


def test_questions_at_the_same_time_leave_nothing_behind() -> None:
    """Whoever ends first: the one that has set the threads, or another that began later."""
    for first_ends_first in (True, False):
        inside, leave = threading.Event(), threading.Event()

        def other(inside: threading.Event = inside, leave: threading.Event = leave) -> None:
            with one_thread(10, 1):
                inside.set()
                leave.wait(30)

        thread = threading.Thread(target=other)
        with one_thread(10, 1), one_thread(10, 1):
            assert threads() == {1}
            thread.start()
            assert inside.wait(30)
            if not first_ends_first:
                leave.set()
                thread.join(30)
                assert threads() == {1}
        leave.set()
        thread.join(30)
        assert threads() == {2}


@pytest.mark.parametrize(("centres", "regions"), [(10_000, 1), (1_000, 100_000)])
def test_large_products_keep_their_threads(centres: int, regions: int) -> None:
    with one_thread(centres, regions):
        assert threads() == {2}

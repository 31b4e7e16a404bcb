"""Batches on all cores: the same answers, nothing of the caller's script run twice, fallbacks that work."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import pytest

import gpcert as gc
from exact import small_model
from gpcert import parallel
from gpcert.questions import batches

REGIONS = [gc.Ball(x, 0.2) for x in np.random.default_rng(2).standard_normal((9, 2))]


def times(factor: int, piece: int) -> int:
    return factor * piece


def sleeps(shared: object, seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fails(shared: object, piece: int) -> int:
    raise gc.InvalidInputError(f"piece must be good, got {piece}")


def dies(shared: object, piece: int) -> int:
    os._exit(3)


@pytest.fixture
def eager(monkeypatch):
    """Processes are thought worth their start for any work, and counted."""
    started = []

    def counted(work, shared, pieces):
        started.append(len(pieces))
        return parallel.on_processes(work, shared, pieces)

    monkeypatch.setattr(batches, "processes_pay", lambda seconds, done, left: left > 1)
    monkeypatch.setattr(batches, "on_processes", counted)
    return started


def test_pieces_come_back_under_their_number():
    assert dict(parallel.on_processes(times, 3, {4: 5, 7: 2})) == {4: 15, 7: 6}


def test_what_cannot_travel_is_answered_here(eager):
    """A link of functions without a name cannot be sent to another process."""
    link = gc.Link(
        lambda f: 0.5 + 0.4 * np.tanh(f),
        lambda a, b: (0.5 + 0.4 * np.tanh(a) - 1e-12, 0.5 + 0.4 * np.tanh(b) + 1e-12),
    )
    post = small_model(likelihood=link)
    answers = gc.probability_range(post, REGIONS, max_nodes=1)
    assert eager == [len(REGIONS) - 4]
    alone = [gc.probability_range(post, region, max_nodes=1) for region in REGIONS]
    assert [(a.min, a.max) for a in answers] == [(a.min, a.max) for a in alone]


def test_an_error_of_a_piece_is_raised_here():
    with pytest.raises(gc.InvalidInputError, match="piece must be good, got 1"):
        list(parallel.on_processes(fails, None, {0: 1}))


def test_closing_the_iterator_ends_the_processes():
    """They ignore Ctrl-C; if they went on, a program that was interrupted could not end."""
    answers = parallel.on_processes(sleeps, None, {0: 0.0, 1: 600.0, 2: 600.0})
    assert next(answers) == (0, 0.0)
    answers.close()
    # Not `join`: a thread of the executor waits for them too, and of two that wait one never hears.
    gone = {child.sentinel for child in multiprocessing.active_children()}
    while gone:
        ended = wait(gone, 60)
        assert ended
        gone -= set(ended)


def test_processes_that_die_leave_the_rest_to_the_caller():
    assert dict(parallel.on_processes(dies, None, {0: 1, 1: 2})) == {}


def test_a_batch_on_processes_answers_as_one_after_the_other(eager):
    post = small_model()
    batch = gc.probability_range(post, REGIONS)
    assert eager
    for answer, region in zip(batch, REGIONS, strict=True):
        alone = gc.probability_range(post, region)
        for ours, theirs in ((answer.min, alone.min), (answer.max, alone.max)):
            assert abs(ours.lower - theirs.lower) <= 1e-9
            assert abs(ours.upper - theirs.upper) <= 1e-9
        assert answer.status == alone.status


def test_verdicts_and_radii_on_processes_are_the_same(eager):
    post = small_model()
    X = np.random.default_rng(4).standard_normal((34, 2))
    verdicts = gc.certify(post, X, [gc.Ball(x, 0.2) for x in X])
    radii = gc.certified_radius(post, X, rtol=0.01)
    assert len(eager) == 2
    for x, v, r in zip(X, verdicts, radii, strict=True):
        alone = gc.certified_radius(post, x, rtol=0.01)
        assert v.status == gc.certify(post, x, gc.Ball(x, 0.2)).status
        assert (r.label, r.status) == (alone.label, alone.status)
        assert (r.safe, r.unsafe) == pytest.approx((alone.safe, alone.unsafe), rel=0.01)
    assert {v.status for v in verdicts} == {"safe", "unsafe"}


def test_an_evaluation_on_processes_is_the_same(eager):
    post = small_model()
    X = np.random.default_rng(3).standard_normal((80, 2))
    y = post.probability(X).argmax(axis=1)
    y = np.asarray(post.classes)[y]
    on_cores = gc.evaluate(post, X, y, [0.01, 0.1])
    assert eager
    assert gc.evaluate(post, X[:1], y[:1], [0.01, 0.1]).verdicts.tolist() == on_cores.verdicts[:1].tolist()
    assert on_cores.clean == 1.0
    assert (on_cores.verdicts != "").all()


def test_dead_processes_cost_no_answer(eager, monkeypatch):
    monkeypatch.setattr(batches, "on_processes", lambda *args: iter(()))
    answers = gc.probability_range(small_model(), REGIONS)
    assert [answer.status for answer in answers] == ["converged"] * len(REGIONS)


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    """Processes that start afresh import the caller's script, unless told not to."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\n"
        "from gpcert import parallel\n"
        "import operator\n"
        "print(sorted(parallel.on_processes(operator.mul, 3, {0: 1, 1: 2})))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(gc.__file__).parents[1])}
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert run.stdout == "once\n[(0, 3), (1, 6)]\n", run.stderr

"""The one batch: the same answers on all cores, progress across processes, stops, workers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

import gpcert as gc
from gpcert.running import Collector, Lot, Pieces, Progress, Running, ask_all, batch, cores, made
from helpers import running_tasks
from helpers.exact import small_model

REGIONS = [gc.Ball(x, 0.2, norm=2) for x in np.random.default_rng(2).standard_normal((9, 2))]
TOLD = "a worker ran out of memory or was killed"


def asked(ask, task, pieces, n_jobs=2, progress=None, **options):
    """The answers, and what was complained of."""
    collector = Collector(progress or (lambda p: None))
    ask_all(ask, task, Pieces(len(pieces), list(pieces).__getitem__), Running(collector, n_jobs), **options)
    return collector.answers, collector.complaints


@pytest.fixture
def eager(monkeypatch):
    """Any work is thought worth workers, and what they are given is counted."""
    started = []

    def counted(jobs):
        started.append(jobs)
        return parallel(jobs)

    parallel = batch.parallel
    monkeypatch.setattr(batch, "_WORTH", 0.0)
    monkeypatch.setattr(batch, "parallel", counted)
    return started


def bits(answer):
    return answer.min, answer.max, answer.status, answer.nodes, tuple(answer.argmin), tuple(answer.argmax)


def test_answers_come_back_under_their_number():
    assert asked(running_tasks.times, 3, [5, 2, 7]) == ({0: 15, 1: 6, 2: 21}, [])


def of_even_numbers(pieces):
    """Two lots of what is even, as numbers without their pieces; a number answers itself."""
    for some in ([2, 0], [6]):
        yield Lot.of({i: i for i in some}, [(0.0, 1.0, 1, 0.0)] * len(some))


def test_pieces_are_made_where_they_are_looked_at():
    seen, pieces = [], Pieces(8, lambda i: seen.append(i) or i)
    found = ask_all(running_tasks.times, 10, pieces, Running(n_jobs=1), together=of_even_numbers)
    assert seen == [1, 3, 4, 5, 7]  # the others were answered unseen
    assert [made(found[i], i) for i in range(8)] == [0, 10, 2, 30, 40, 50, 6, 70]
    assert list(pieces) == list(range(8))  # the caller's are all there still
    told = []
    again = ask_all(running_tasks.times, 10, pieces, Running(told.append, 1), together=of_even_numbers)
    assert {i: made(answer, i) for i, answer in again.items()} == {
        i: made(answer, i) for i, answer in found.items()
    }
    assert [p.done for p in told] == list(range(1, 9))
    assert {p.total for p in told} == {8}


def test_a_listener_stops_a_lot_and_what_is_known_is_kept():
    progress = Running(lambda p: p.done == 2, 1)
    found = ask_all(running_tasks.times, 10, Pieces(8, int), progress, together=of_even_numbers)
    assert {i: made(answer, i) for i, answer in found.items()} == {0: 0, 2: 2}


def test_numbered_pieces_are_a_mapping():
    pieces = Pieces(3, lambda i: [i])
    first = pieces[0]
    first.append("hint")
    assert pieces[0] is first  # what was made is kept, with what it was told
    assert pieces.pop(0) == [0, "hint"]
    assert (list(pieces), len(pieces), 0 in pieces, 3 in pieces, -1 in pieces) == (
        [1, 2],
        2,
        False,
        False,
        False,
    )
    for gone in (0, 3, -1):
        with pytest.raises(KeyError):
            pieces[gone]


def test_workers_are_other_processes_with_one_thread_each():
    found, _ = asked(running_tasks.where, None, range(4))
    assert {(main, threads) for _, main, threads in found.values()} == {(True, "1")}
    assert os.getpid() not in {process for process, *_ in found.values()}


def test_joblib_may_be_told_otherwise():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        found, _ = asked(running_tasks.where, None, range(4), n_jobs=None)
        answers = gc.probability_range(small_model(), REGIONS)
    assert {(process, main) for process, main, _ in found.values()} == {(os.getpid(), False)}
    assert [bits(a) for a in answers] == [
        bits(a) for a in gc.probability_range(small_model(), REGIONS, n_jobs=1)
    ]
    with joblib.parallel_config(n_jobs=1):
        found, _ = asked(running_tasks.where, None, range(4), n_jobs=None)
    assert {(process, main) for process, main, _ in found.values()} == {(os.getpid(), True)}


def test_a_batch_on_processes_has_the_bits_of_one_after_the_other():
    post = small_model()
    one = gc.probability_range(post, REGIONS, n_jobs=1)
    assert [bits(a) for a in one] == [bits(gc.probability_range(post, region)) for region in REGIONS]
    assert [bits(a) for a in one] == [bits(a) for a in gc.probability_range(post, REGIONS, n_jobs=2)]


def test_every_question_answers_alike_on_processes():
    post, X = small_model(), np.random.default_rng(4).standard_normal((34, 2))
    balls, y = [gc.Ball(x, 0.2) for x in X], np.asarray(post.classes)[post.probability(X).argmax(axis=1)]

    def answers(n_jobs):
        verdicts = gc.certify(post, X, balls, n_jobs=n_jobs)
        radii = gc.certified_radius(post, X, rtol=0.01, n_jobs=n_jobs)
        table = gc.evaluate(post, X, y, [0.01, 0.1], n_jobs=n_jobs)
        latent = gc.latent_range(post, balls[:3], n_jobs=n_jobs)
        e = gc.explain(post, X[:3], 0.1, n_jobs=n_jobs)
        d = gc.robustness(post, balls[:4], x=X[:4], n_jobs=n_jobs)
        return (
            [(v.status, v.margin, v.ended, v.nodes) for v in verdicts],
            [(r.label, r.status, r.safe, r.unsafe, r.tests) for r in radii],
            (table.verdicts.tolist(), table.certified.tolist(), table.attacked.tolist()),
            [(r.mean.min, r.mean.max, r.variance.min, r.variance.max) for r in latent],
            (e.lower.tolist(), e.upper.tolist()),
            [(r.lower, r.upper) for r in d],
        )

    assert answers(1) == answers(2)


def test_short_work_starts_no_worker_and_long_work_does(monkeypatch, eager):
    gc.probability_range(small_model(), REGIONS, max_nodes=1)
    assert eager == [-1]  # thought long: after the first four
    monkeypatch.setattr(batch, "_WORTH", 5.0)
    gc.probability_range(small_model(), REGIONS, max_nodes=1)
    assert eager == [-1]


def test_a_first_piece_that_takes_long_moves_too(monkeypatch, eager):
    monkeypatch.setattr(batch, "_ALONE", 0.05)
    found, _ = asked(running_tasks.steps, None, [100, 100, 1], n_jobs=None)
    assert eager == [-1]
    assert set(found.values()) == {("all", 100), ("all", 1)}


def test_a_link_of_functions_without_a_name_travels():
    link = gc.Link(
        lambda f: 0.5 + 0.4 * np.tanh(f),
        lambda a, b: (0.5 + 0.4 * np.tanh(a) - 1e-12, 0.5 + 0.4 * np.tanh(b) + 1e-12),
    )
    post = small_model(likelihood=link)
    two, one = (gc.probability_range(post, REGIONS, max_nodes=1, n_jobs=n) for n in (2, 1))
    assert [bits(a) for a in two] == [bits(a) for a in one]


def test_what_cannot_travel_is_answered_here():
    class Stays:
        def __reduce__(self):
            raise TypeError

    assert asked(lambda task, piece, report: os.getpid(), Stays(), [1, 2]) == (
        {0: os.getpid(), 1: os.getpid()},
        [],
    )


def test_an_error_of_a_piece_is_raised_here():
    with pytest.raises(ValueError, match="piece must be good, got"):
        asked(running_tasks.fails, None, [1, 2])


def test_progress_comes_from_all_workers_at_once(tmp_path):
    """No piece ends before reports of two have come: the callback then makes the file they wait for."""
    seen: list[Progress] = []

    def progress(p):
        seen.append(p)
        if {q.index for q in seen} >= {0, 1}:
            (tmp_path / "go").touch()

    steps = [400, 400, 5]
    found, _ = asked(running_tasks.steps, None, steps, progress=progress)
    assert found == {i: ("all", n) for i, n in enumerate(steps)}
    first = next(i for i, p in enumerate(seen) if p.done)
    assert {p.index for p in seen[:first]} == {0, 1}
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].done, {p.total for p in seen}) == (3, {3})
    for i in range(3):
        mine = [p for p in seen if p.index == i]
        assert [p.nodes for p in mine] == sorted(p.nodes for p in mine)
        assert all(0.0 <= p.lower <= p.upper <= 1.0 for p in mine)
        assert (mine[-1].nodes, mine[-1].upper) == (steps[i], 1.0 / steps[i])


def test_true_from_the_callback_stops_all_workers_and_keeps_what_is_known():
    begun = set()

    def progress(p):
        begun.update({p.index} if p.nodes > 5 else ())
        return begun == {0, 1}

    found, _ = asked(running_tasks.steps, None, [10**6] * 2 + [5] * 50, progress=progress)
    assert {found[i][0] for i in (0, 1)} == {"stopped"}
    assert len(found) < 52


def test_a_worker_without_reports_hears_that_it_is_to_stop():
    """The attack of a softmax model went on for a minute and a half after Ctrl-C."""
    found, _ = asked(running_tasks.silent, None, range(2), progress=lambda p: True)
    assert found == {}


def test_a_batch_stopped_on_processes_says_what_it_knows():
    post = small_model(n=30, d=5)
    regions = [gc.Box(np.full(5, -1.5), np.full(5, 1.5))] * 12
    answers = gc.probability_range(post, regions, tolerance=1e-9, n_jobs=2, progress=lambda p: p.nodes > 20)
    assert {a.status for a in answers} == {"interrupted"}
    assert max(a.nodes for a in answers) > 20
    assert [(a.lower, a.upper) for a in answers[4:]] == [(0.0, 1.0)] * 8


def test_an_error_of_the_callback_is_the_callers_and_ends_the_workers():
    with pytest.raises(ZeroDivisionError):
        asked(running_tasks.steps, None, [10**6] * 3, progress=lambda p: 1 // 0)


def test_a_worker_that_dies_costs_its_piece_only():
    found, told = asked(running_tasks.dies, {2, 5}, range(9))
    assert found == {i: i for i in range(9) if i not in (2, 5)}
    assert told == [f"{TOLD}: 2 of 9 are not answered"]


def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path):
    found, told = asked(running_tasks.dies_once, str(tmp_path), range(5))
    assert found == {i: i for i in range(5)}
    assert told == [f"{TOLD}: its work was repeated"]


def test_a_piece_without_memory_costs_itself_only():
    found, told = asked(running_tasks.hungry, 1, range(4))
    assert found == {0: 0, 2: 2, 3: 3}
    assert told == [f"{TOLD}: 1 of 4 are not answered"]


def test_where_processes_always_die_the_work_is_done_here(monkeypatch):
    monkeypatch.setattr(batch.Board, "begun", lambda board: np.empty(0, dtype=np.intp))
    found, told = asked(running_tasks.dies_elsewhere, os.getpid(), range(4))
    assert found == {i: i for i in range(4)}
    assert told == [f"{TOLD}: its work was repeated"]


def test_in_the_library_it_is_a_warning_and_the_answer_is_unknown(monkeypatch):
    monkeypatch.setattr("gpcert.questions.ranges._ask", dies_at_the_third)
    with pytest.warns(RuntimeWarning, match=f"{TOLD}: 1 of 9 are not answered"):
        answers = gc.probability_range(small_model(), REGIONS, n_jobs=2)
    assert [a.status for a in answers] == ["converged"] * 2 + ["interrupted"] + ["converged"] * 6
    assert (answers[2].lower, answers[2].upper) == (0.0, 1.0)


def dies_at_the_third(task, piece, report):
    from gpcert.questions.ranges import _RangeSearch, run

    region = piece.region
    if (region.x == REGIONS[2].x).all():
        report(0.0, 1.0, 0, 0.0)
        os._exit(3)
    query = _RangeSearch(task, piece)
    run(query, task.settings, report)
    return query.answer()


def test_cores_are_counted_as_the_quota_allows(monkeypatch, eager):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert cores() == 1
    gc.probability_range(small_model(), REGIONS, max_nodes=1)
    assert eager == []


def test_a_bar_is_drawn(capsys):
    gc.probability_range(small_model(), REGIONS, progress=True)
    drawn = capsys.readouterr().err
    assert "probability_range: 100%" in drawn
    assert "9/9" in drawn
    assert "width " in drawn
    gc.probability_range(small_model(), REGIONS[0], progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_n_jobs_is_checked(n_jobs):
    with pytest.raises(gc.InvalidInputError, match="n_jobs must be a whole number, not 0, got"):
        gc.probability_range(small_model(), REGIONS, n_jobs=n_jobs)


SCRIPT = """
print("once")
import sys
sys.path.insert(0, {tests!r})
from helpers import running_tasks
from gpcert.running import Pieces, Running, ask_all

busy = set()

def progress(p):
    busy.update({{p.index}} - {{0}})
    if len(busy) == 2:
        print("busy", flush=True)

found = ask_all(running_tasks.{task}, None, Pieces(4, [1, 10**6, 10**6, 1].__getitem__), Running(progress, 2))
print({{i: found[i][0] for i in sorted(found)}})
"""


def test_the_first_ctrl_c_returns_what_is_known(tmp_path):
    """Nothing of the script runs twice, though it has no guard; the signal goes to the workers, too."""
    process = started(tmp_path, "steps")
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process, tmp_path) == (0, ["{0: 'all', 1: 'stopped', 2: 'stopped'}"])


def test_the_second_ctrl_c_does_not_wait(tmp_path):
    process = started(tmp_path, "stubborn")
    os.killpg(process.pid, signal.SIGINT)
    (board,) = tmp_path.glob("gpcert-*")
    while not np.fromfile(board)[-7]:  # workers are not yet told to stop
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process, tmp_path) == (-signal.SIGINT, [])


def test_workers_end_with_a_killed_parent(tmp_path):
    process = started(tmp_path, "stubborn")
    process.kill()
    assert ended(process, tmp_path) == (-signal.SIGKILL, [])


def started(folder, task):
    """A script whose two workers are busy."""
    script = folder / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1]), task=task))
    environment = os.environ | {"PYTHONPATH": str(Path(gc.__file__).parents[1]), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=-1, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["once\n", "busy\n"]
    return process


def ended(process, folder):
    """How it ended and what else it said; no process of its session and no file is left."""
    out, _ = process.communicate(timeout=120)
    while any(living(process.pid)):
        time.sleep(0.05)  # for ever, if one stays
    assert [path.name for path in folder.iterdir()] == ["script.py"]
    return process.returncode, [line for line in out.splitlines() if line != "busy"]


def living(session):
    """Whether each process is a living one of this session."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *_, its = entry.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        yield int(its) == session and state != "Z"


def test_no_warning_of_joblib_is_left_over():
    """Stopped early, joblib would complain of tasks that nobody wanted any more."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asked(running_tasks.steps, None, [10**6] * 30, progress=lambda p: p.nodes > 5)
    assert caught == []


def test_a_callback_that_raises_ctrl_c_is_a_ctrl_c():
    """At whatever report: the batch ends, and what had come back by then is kept."""
    for call in (1, 2, 5, 9):
        calls = []

        def progress(p, call=call, calls=calls):
            calls.append(p)
            if len(calls) == call:
                raise KeyboardInterrupt

        found, _ = asked(running_tasks.steps, None, [3] * 4 + [10**6] * 2, progress=progress)
        assert len(calls) == call
        assert calls[-1].done <= len(found)
        assert all(answer == ("all", 3) or answer[0] == "stopped" for answer in found.values())


def test_a_callback_that_fails_on_threads_leaves_the_next_call_alone():
    """The threads of one call have ended when the next begins: they share a backend."""
    post = small_model()
    balls = [gc.Ball(x, 0.3) for x in post.centres[:6]]

    def fails(p):
        raise ZeroDivisionError

    with joblib.parallel_config(backend="threading", n_jobs=2):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                gc.probability_range(post, balls, progress=fails)
            assert len(gc.probability_range(post, balls)) == 6


def test_more_workers_than_pieces_are_not_started():
    found, told = asked(running_tasks.times, 3, [0, 1], n_jobs=10**9)
    assert len(found) == 2
    assert told == []

"""Many rows on several processes, one BLAS thread each; interrupted, what is known comes back.

Each row is asked on its own. The posterior travels to the workers once, as it was loaded: no worker opens the
file again, so that all answer for the same model.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from gpcert.cli.main import THREADS
from gpcert.cli.progress import Interrupt, ProgressLine
from gpcert.posterior import Posterior

__all__ = ["Answer", "Ask", "Outcome", "answer_all"]

Answer = dict[str, Any]
#: Asks one question: (posterior, query, progress) -> a JSON-able answer. A module's function: it travels.
Ask = Callable[[Posterior, Any, Callable[..., bool]], Answer]


class Outcome(NamedTuple):
    """Answers, None where there is none; whether Ctrl-C ended the work; what else went wrong."""

    answers: list[Answer | None]
    interrupted: bool
    failure: str | None


def answer_all(
    ask: Ask, post: Posterior, queries: Sequence[Any], jobs: int, line: ProgressLine, interrupt: Interrupt
) -> Outcome:
    """The answers in the order of the queries, as many as could be had."""
    many = min(jobs, len(queries)) > 1
    answers: list[Answer | None] = [None] * len(queries)
    failure = None
    try:
        (_on_processes if many else _here)(ask, post, queries, answers, jobs, line, interrupt)
    except KeyboardInterrupt:
        interrupt.requested = True
    except (BrokenProcessPool, MemoryError):
        failure = "a worker ran out of memory or was killed; the rows it had not answered are missing"
    finally:
        line.clear()
    return Outcome(answers, interrupt.requested, failure)


def _here(
    ask: Ask,
    post: Posterior,
    queries: Sequence[Any],
    answers: list[Answer | None],
    jobs: int,
    line: ProgressLine,
    interrupt: Interrupt,
) -> None:
    for i, query in enumerate(queries):

        def progress(lower: float, upper: float, *more: object, done: int = i) -> bool:
            line.draw(done, f"gap {upper - lower:.3g}")
            return interrupt.requested

        answers[i] = ask(post, query, progress)
        line.draw(i + 1)
        if interrupt.requested:
            return


def _on_processes(
    ask: Ask,
    post: Posterior,
    queries: Sequence[Any],
    answers: list[Answer | None],
    jobs: int,
    line: ProgressLine,
    interrupt: Interrupt,
) -> None:
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by the workers when they load BLAS
    context = multiprocessing.get_context("spawn")
    stop, gaps = context.Event(), context.Array("d", len(queries), lock=False)
    executor = ProcessPoolExecutor(
        min(jobs, len(queries)), context, initializer=_start_worker, initargs=(ask, post, stop, gaps)
    )
    try:
        waiting = {executor.submit(_work, i, query): i for i, query in enumerate(queries)}
        _collect(waiting, answers, gaps, stop, line, interrupt)
    finally:
        stop.set()
        executor.shutdown(cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _collect(
    waiting: dict[Future[Answer | None], int],
    answers: list[Answer | None],
    gaps: Any,
    stop: Any,
    line: ProgressLine,
    interrupt: Interrupt,
) -> None:
    done = 0
    while waiting:
        finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
        for future in finished:
            i = waiting.pop(future)
            answers[i] = future.result()
            gaps[i] = 0.0
            done += 1
        line.draw(done, f"widest gap {max(gaps):.3g}")
        if interrupt.requested:
            stop.set()  # running searches end at their next step; rows not begun answer None at once


_worker: tuple[Ask, Posterior, Any, Any] | None = None


def _start_worker(ask: Ask, post: Posterior, stop: Any, gaps: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    global _worker
    _worker = ask, post, stop, gaps


def _work(i: int, query: Any) -> Answer | None:
    assert _worker is not None
    ask, post, stop, gaps = _worker

    def progress(lower: float, upper: float, *more: object) -> bool:
        gaps[i] = upper - lower
        return bool(stop.is_set())

    return None if stop.is_set() else ask(post, query, progress)

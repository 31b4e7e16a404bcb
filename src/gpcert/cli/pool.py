"""Many rows on several processes, one BLAS thread each; interrupted, what is known comes back.

Each row is asked on its own. The posterior travels to the workers once, as it was loaded: no worker opens the
file again, so that all answer for the same model.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from gpcert.cli.progress import Interrupt, ProgressLine
from gpcert.parallel import parcel, starting, unpack
from gpcert.posterior import Posterior

__all__ = ["Answer", "Ask", "Outcome", "answer_all"]

#: Seconds of work in this process before others are started: a short run is over before they would be up.
ALONE = 2.0
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
    run = _Run(ask, post, queries, line, interrupt)
    failure = None
    try:
        run.here(math.inf if min(jobs, len(queries)) <= 1 else ALONE)
        if run.waiting() and not interrupt.requested:
            run.on_processes(jobs)
    except KeyboardInterrupt:
        interrupt.requested = True
    except (BrokenProcessPool, MemoryError):
        failure = "a worker ran out of memory or was killed; the rows it had not answered are missing"
    finally:
        line.clear()
    return Outcome(run.answers, interrupt.requested, failure)


class _Run:
    """The queries of one run and the answers so far."""

    def __init__(
        self, ask: Ask, post: Posterior, queries: Sequence[Any], line: ProgressLine, interrupt: Interrupt
    ) -> None:
        self._ask, self._post, self._queries = ask, post, queries
        self._line, self._interrupt = line, interrupt
        self.answers: list[Answer | None] = [None] * len(queries)

    def waiting(self) -> list[int]:
        """Positions without an answer."""
        return [i for i, answer in enumerate(self.answers) if answer is None]

    def here(self, seconds: float) -> None:
        """One after the other in this process, until the time is up; a search cut off then is forgotten."""
        deadline = time.monotonic() + seconds
        for i, query in enumerate(self._queries):
            cut = False

            def progress(lower: float, upper: float, *more: object, done: int = i) -> bool:
                nonlocal cut
                self._line.draw(done, f"width {upper - lower:.3g}")
                cut = time.monotonic() > deadline
                return cut or self._interrupt.requested

            answer = self._ask(self._post, query, progress)
            if cut and not self._interrupt.requested:
                return
            self.answers[i] = answer
            self._line.draw(i + 1)
            if self._interrupt.requested or time.monotonic() > deadline:
                return

    def on_processes(self, jobs: int) -> None:
        """The rest on several processes."""
        rest = self.waiting()
        context = multiprocessing.get_context("spawn")
        stop, widths = context.Event(), context.Array("d", len(self._queries), lock=False)
        with parcel(self._post) as file:
            executor = ProcessPoolExecutor(
                min(jobs, len(rest)),
                context,
                initializer=_start_worker,
                initargs=(self._ask, file, stop, widths),
            )
            try:
                with starting():
                    running = {executor.submit(_work, i, self._queries[i]): i for i in rest}
                self._collect(running, widths, stop)
            finally:
                stop.set()
                executor.shutdown(cancel_futures=True)

    def _collect(self, running: dict[Future[Answer | None], int], widths: Any, stop: Any) -> None:
        while running:
            finished, _ = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                i = running.pop(future)
                self.answers[i] = future.result()
                widths[i] = 0.0
            self._line.draw(len(self.answers) - len(running), f"widest {max(widths):.3g}")
            if self._interrupt.requested:
                stop.set()  # running searches end at their next step; rows not begun answer None at once


_worker: tuple[Ask, Posterior, Any, Any] | None = None


def _start_worker(ask: Ask, file: str, stop: Any, widths: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    global _worker
    _worker = ask, unpack(file), stop, widths


def _work(i: int, query: Any) -> Answer | None:
    assert _worker is not None
    ask, post, stop, widths = _worker

    def progress(lower: float, upper: float, *more: object) -> bool:
        widths[i] = upper - lower
        return bool(stop.is_set())

    return None if stop.is_set() else ask(post, query, progress)

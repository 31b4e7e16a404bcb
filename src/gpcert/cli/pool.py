"""Many rows on several processes, one BLAS thread each; interrupted, what is known comes back.

Each row is asked on its own. The posterior travels to the workers once, as it was loaded: no worker opens the
file again, so that all answer for the same model.
"""

from __future__ import annotations

import math
import multiprocessing
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from gpcert.cli.progress import Interrupt, ProgressLine
from gpcert.parallel import starting, workers
from gpcert.posterior import Posterior

__all__ = ["Answer", "Ask", "Outcome", "answer_all"]

#: Seconds of work in this process before others are started: a short run is over before they would be up.
ALONE = 2.0
Answer = dict[str, Any]
#: Asks one question: (posterior, query, progress) -> a JSON-able answer. A module's function: it travels.
Ask = Callable[[Posterior, Any, Callable[..., bool]], Answer]


class Outcome(NamedTuple):
    """Answers, None where there is none; whether a signal ended the work; what else went wrong."""

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
        run.everywhere(jobs)
        interrupt.over = True  # here, where a KeyboardInterrupt would still be caught
    except KeyboardInterrupt:
        interrupt.requested = True
    except (BrokenProcessPool, MemoryError):
        if not interrupt.requested:  # else the signal may have ended it, too
            failure = "a worker ran out of memory or was killed; the rows it had not answered are missing"
    except Exception as error:
        if not any(run.answers):
            raise
        # One row's trouble does not cost the answers to the others.
        failure = "".join(traceback.format_exception_only(error)).strip()
    finally:
        interrupt.over = True
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

    def everywhere(self, jobs: int) -> None:
        """First here, then on processes where they can be had and there is more than one row."""
        self.here(math.inf if min(jobs, len(self._queries)) <= 1 else ALONE)
        try:
            if self.waiting() and not self._interrupt.requested:
                self.on_processes(jobs)
        except OSError:  # no processes, or no more of them: a sandbox, a limit
            self.here(math.inf)

    def here(self, seconds: float) -> None:
        """One after the other in this process, until the time is up; a search cut off then is forgotten."""
        deadline = time.monotonic() + seconds
        rest = self.waiting()
        for known, i in enumerate(rest, len(self._queries) - len(rest)):
            cut = False

            def progress(lower: float, upper: float, *more: object, done: int = known) -> bool:
                nonlocal cut
                self._line.draw(done, f"width {upper - lower:.3g}")
                cut = time.monotonic() > deadline
                return cut or self._interrupt.requested

            answer = self._ask(self._post, self._queries[i], progress)
            if cut and not self._interrupt.requested:
                return
            self.answers[i] = answer
            self._line.draw(known + 1)
            if self._interrupt.requested or time.monotonic() > deadline:
                return

    def on_processes(self, jobs: int) -> None:
        """The rest on several processes."""
        rest = self.waiting()
        context = multiprocessing.get_context("spawn")
        with starting():
            stop, widths = context.Event(), context.Array("d", len(self._queries), lock=False)
        running: dict[Future[Answer | None], int] = {}
        try:
            parcel = pickle.dumps(self._post)
            with workers(min(jobs, len(rest)), _start_worker, parcel, self._ask, stop, widths) as executor:
                with starting():
                    running.update((executor.submit(_work, i, self._queries[i]), i) for i in rest)
                self._collect(dict(running), widths, stop)
        finally:
            for future, i in running.items():  # also what came in together with a failure
                if future.done() and not future.cancelled() and future.exception() is None:
                    self.answers[i] = future.result()

    def _collect(self, running: dict[Future[Answer | None], int], widths: Any, stop: Any) -> None:
        while running:
            finished, _ = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()  # raises what went wrong
                widths[running.pop(future)] = 0.0
            self._line.draw(len(self.answers) - len(running), f"widest {max(widths):.3g}")
            if self._interrupt.requested:
                stop.set()  # running searches end at their next step; rows not begun answer None at once


_worker: tuple[Ask, Posterior, Any, Any] | None = None


def _start_worker(post: Posterior, ask: Ask, stop: Any, widths: Any) -> None:
    global _worker
    _worker = ask, post, stop, widths


def _work(i: int, query: Any) -> Answer | None:
    assert _worker is not None
    ask, post, stop, widths = _worker

    def progress(lower: float, upper: float, *more: object) -> bool:
        widths[i] = upper - lower
        return bool(stop.is_set())

    return None if stop.is_set() else ask(post, query, progress)

"""Workers of joblib: how many, of which kind, fed from a thread of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

from gpcert.running.board import Board
from gpcert.running.signals import SIGNALS
from gpcert.running.worker import Call, settle

__all__ = ["cores", "deaf", "feed", "kill", "parallel", "wanted"]


def cores() -> int:
    """Cores this process may use: its affinity, a container's quota, LOKY_MAX_CPU_COUNT."""
    import joblib

    return int(joblib.cpu_count())


def wanted(n_jobs: int | None) -> int | None:
    """How many workers: what is asked for, what joblib was told; 1 inside a worker; None: as many as pay."""
    if multiprocessing.current_process().daemon:  # daemons may not have children
        return 1
    if n_jobs is not None and n_jobs < -1:
        return max(1, cores() + 1 + n_jobs)
    if n_jobs is not None or "joblib" not in sys.modules:  # nobody can have told joblib anything
        return n_jobs
    from joblib.parallel import get_active_backend

    backend, told = get_active_backend()
    return 1 if told is None and backend.nesting_level else told


def parallel(jobs: int) -> Any:
    """joblib's, on the backend that is active; on ours if that is loky, as it is by default."""
    from joblib import Parallel
    from joblib._parallel_backends import LokyBackend
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if isinstance(backend, LokyBackend):
        backend = LokyBackend(inner_max_num_threads=backend.inner_max_num_threads or 1)
        backend.configure = partial(backend.configure, initializer=settle, initargs=(os.getpid(),))
    as_they_come = getattr(backend, "supports_return_generator", False)
    return Parallel(jobs, backend, "generator_unordered" if as_they_come else "list")


def feed(
    workers: Any, call: Call, pieces: list[tuple[int, Any]], board: Board, results: SimpleQueue[Any]
) -> None:
    """Send the pieces and hand on what comes back; in a thread of its own, so that the caller can listen."""
    from joblib import delayed

    def calls() -> Iterator[Any]:
        for row, piece in pieces:
            if board.stopped:
                return
            yield delayed(call)(row, piece)

    try:
        with deaf():
            for answer in workers(calls()):
                results.put(answer)
        results.put(None)
    except BaseException as error:
        results.put(error)


@contextmanager
def deaf() -> Iterator[None]:
    """Processes started inside, by this thread, do not hear `SIGNALS`: a terminal sends them to all.

    The trackers, which remove what a killed process leaves behind, come first: starting them would unblock
    some of the signals again.
    """
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as loky_tracker

    mask = getattr(signal, "pthread_sigmask", lambda how, signals: ())
    before = mask(signal.SIG_BLOCK, SIGNALS)
    resource_tracker.ensure_running()
    loky_tracker.ensure_running()
    mask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)


def kill() -> None:
    """End loky's processes, busy or not."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

"""Workers of joblib: how many, of which kind, fed from a thread of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.running.board import SENT, Board
from gpcert.running.signals import SIGNALS
from gpcert.running.worker import Call, settle

#: A piece that has cost so many workers, the last of them alone, is set aside.
TRIED = 3
_DASK, _RAY = "DaskDistributedBackend", "RayBackend"
#: Seconds to wait for workers of a cluster that has lost all of them.
_PATIENCE = 180
#: Seconds of work in a task of a cluster, at least and at most: each costs the client some 5 ms.
_TASK = 1.0, 4.0


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
    if told is None and remote():  # whoever names a cluster means it; Dask counts its workers itself
        return 2 if _kind(backend) == _DASK else max(2, int(backend.effective_n_jobs(-1)))
    return 1 if told is None and backend.nesting_level else told


def remote() -> bool:
    """Whether joblib was told to use a cluster."""
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    return not backend.nesting_level and _kind(backend) in (_DASK, _RAY)


def _kind(backend: Any) -> str:
    return type(backend).__name__


def _at_least_two(configure: Any, *given: Any, **named: Any) -> int:
    """One worker of a cluster is no reason for joblib to do the work in this process."""
    return max(2, int(configure(*given, **named)))


def parallel(jobs: int) -> Any:
    """joblib's, on the backend that is active; on ours if that is loky, as it is by default."""
    from joblib import Parallel
    from joblib._parallel_backends import LokyBackend
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if isinstance(backend, LokyBackend):
        backend = LokyBackend(inner_max_num_threads=backend.inner_max_num_threads or 1)
        backend.configure = partial(backend.configure, initializer=settle, initargs=(os.getpid(),))
    if remote() and not isinstance(backend.configure, partial):
        backend.configure = partial(_at_least_two, backend.configure)
        backend.MIN_IDEAL_BATCH_DURATION, backend.MAX_IDEAL_BATCH_DURATION = _TASK
        if _kind(backend) == _DASK:
            backend.submit = partial(_submit, backend.submit)
            backend.wait_for_workers_timeout = _PATIENCE
        else:
            backend.supports_return_generator = True  # Ray's pools call back, unlike multiprocessing's
    as_they_come = getattr(backend, "supports_return_generator", False)
    return Parallel(jobs, backend, "generator_unordered" if as_they_come else "list")


def _submit(submit: Any, batch: Any, callback: Any = None) -> Any:
    """As joblib's Dask backend, which forgets to call back when a task has killed its workers: it would be
    waited for without end.
    """
    future = submit(batch, callback)

    def failed(done: Any) -> None:
        if callback is not None and not done.cancelled() and done.exception() is not None:
            callback(done.exception())

    future.add_done_callback(failed)
    return future


def packed(ask: Any, task: Any) -> NDArray[np.uint8] | None:
    """What all pieces share, as it travels; None: it cannot."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        return np.frombuffer(dumps((ask, task)), dtype=np.uint8)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def deaths(error: BaseException) -> int:
    """How many workers an error tells of; 0: it is one of the work itself."""
    module, _, _ = type(error).__module__.partition(".")
    if isinstance(error, BrokenExecutor | CancelledError | asyncio.CancelledError):
        return 1
    if module == "distributed":
        return TRIED if type(error).__name__ == "KilledWorker" else 1  # Dask has given it to several
    lost = module == "ray" and "RayTaskError" not in {kind.__name__ for kind in type(error).__mro__}
    return int(lost)


def feed(
    workers: Any,
    call: Call,
    parcel: NDArray[np.uint8],
    pieces: list[tuple[int, Any]],
    board: Board,
    results: SimpleQueue[Any],
) -> None:
    """Send the pieces and hand on what comes back; in a thread of its own, so that the caller can listen."""
    from joblib import delayed

    def calls() -> Iterator[Any]:
        for row, piece in pieces:
            if board.stopped:
                return
            board.mark(row, SENT)
            yield delayed(call)(parcel, row, piece)

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

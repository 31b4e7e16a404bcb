"""Workers of joblib: processes of this machine, threads, or machines of a Dask or Ray cluster.

The caller and its workers share a table in a file, the board: which pieces are under way, what is known of
them, and whether to stop. Workers open it by its path; on another machine there is none, and only what is
finished is reported. Bounds are written one double at a time: a reader may meet a new lower end beside an old
upper one, and both hold.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.clock import until
from gpcert.errors import GpcertError, InvalidInputError
from gpcert.extras import extra
from gpcert.running.process import SIGNALS
from gpcert.running.progress import Stopped
from gpcert.validation import Index

#: How far a piece is; 0 before. A worker on another machine has no board: its pieces stay sent.
SENT, BEGUN, ENDED = 1, 2, 3
#: Columns: state, reports so far, and the last report: lower, upper, nodes, seconds, which of its regions.
_WIDTH = 7
#: A piece that has cost this many workers, the last of them alone, is set aside.
TRIED = 3
_DASK, _RAY = "DaskDistributedBackend", "RayBackend"
#: Seconds to wait for workers of a cluster that has lost all of them.
_PATIENCE = 180
#: Seconds of work in a task of a cluster, at least and at most: each costs the client some 5 ms.
_TASK = 1.0, 4.0
#: Seconds between two looks whether the parent is still there.
_LOOK = 0.5

_mine = threading.local()


class Board:
    """One row for each piece, and a last one whose first number says that all shall stop."""

    def __init__(self, path: str, rows: int) -> None:
        self._rows = np.memmap(path, np.float64, "r+", shape=(rows + 1, _WIDTH)).view(np.ndarray)
        self._path = path
        self._seen = np.zeros(rows)

    @classmethod
    def made(cls, rows: int) -> tuple[str, Board]:
        """A new one and its path; the file goes with `remove`, or when this process ends in any way."""
        from joblib.externals.loky.backend import resource_tracker

        number, path = tempfile.mkstemp(prefix="gpcert-")
        resource_tracker.register(path, "file")
        with os.fdopen(number, "wb") as file:
            file.write(bytes(8 * _WIDTH * (rows + 1)))  # written, not only promised by a full disk
        return path, cls(path, rows)

    def remove(self) -> None:
        """Take the file away; who has opened it may still write."""
        from joblib.externals.loky.backend import resource_tracker

        with suppress(OSError):
            os.unlink(self._path)
            resource_tracker.unregister(self._path, "file")

    @property
    def stopped(self) -> bool:
        """Whether pieces are to end with what they know, and no other is to begin."""
        return bool(self._rows[-1, 0])

    def stop(self) -> None:
        """Tell all."""
        self._rows[-1, 0] = 1.0

    def mark(self, row: int, state: int) -> None:
        """Say how far a piece is."""
        self._rows[row, 0] = state

    def begun(self) -> Index:
        """Rows of the pieces under way; of those that were sent, if nobody has said that one was begun."""
        states = self._rows[:-1, 0]
        return np.flatnonzero(states == (BEGUN if (states == BEGUN).any() else SENT))

    def write(self, row: int, lower: float, upper: float, nodes: int, seconds: float, at: int = 0) -> bool:
        """A report about a piece; whether it is to stop."""
        mine = self._rows[row]
        mine[2:] = lower, upper, nodes, seconds, at
        mine[1] += 1.0
        return self.stopped

    def reported(self, row: int) -> bool:
        """Whether a piece has made a report."""
        return bool(self._rows[row, 1])

    def last(self, row: int) -> list[float]:
        """The last report about a piece: lower, upper, nodes, seconds, which of its regions."""
        known: list[float] = self._rows[row, 2:].tolist()
        return known

    def news(self) -> list[int]:
        """Rows of the pieces that have reported since this was asked last."""
        counts = self._rows[:-1, 1].copy()
        fresh: list[int] = np.flatnonzero(counts != self._seen).tolist()
        self._seen = counts
        return fresh


@dataclass(frozen=True, eq=False)
class Call:
    """One piece in a worker. What all pieces of a batch share, `parcel`, is opened once in each."""

    token: str
    path: str
    rows: int

    def __call__(self, parcel: NDArray[np.uint8], row: int, piece: Any) -> tuple[int, Any]:
        """(row, the answer about a piece); `Stopped` or a MemoryError in its place where there is none.

        `parcel`: (ask, task), pickled. As an array, and as an argument, it travels once: joblib's own workers
        get a memory map, Dask scatters it, Ray puts it where all of a machine can read it.
        """
        (ask, task), board = self._opened(parcel)
        if board is None:
            return row, ask(task, piece, lambda *known, at=0: False)
        if board.stopped:
            return row, Stopped()
        board.mark(row, BEGUN)
        try:
            with until(math.inf, _once(board)):  # an attack, say, makes no reports
                return row, ask(task, piece, partial(board.write, row))
        except (Stopped, MemoryError) as nothing:
            return row, nothing
        except KeyboardInterrupt:
            return row, Stopped()
        finally:
            board.mark(row, ENDED)

    def _opened(self, parcel: NDArray[np.uint8]) -> tuple[Any, Board | None]:
        """What `ask` needs, this thread's own copy, and the board if it is within reach."""
        if getattr(_mine, "token", None) != self.token:
            _mine.token, _mine.shared, _mine.board = self.token, pickle.loads(parcel.data), None
            if os.path.exists(self.path):
                _mine.board = Board(self.path, self.rows)
        return _mine.shared, _mine.board


def _once(board: Board) -> Callable[[], bool]:
    """Whether to stop, heard once, as Ctrl-C is: what is known then is put together in peace."""
    heard = False

    def stop() -> bool:
        nonlocal heard
        chosen = not heard and board.stopped
        heard = heard or chosen
        return chosen

    return stop


def settle(parent: int) -> None:
    """A process of this machine leaves signals to its parent, and ends with it however that ends."""
    for number in SIGNALS:  # they reach the whole group
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


def cores() -> int:
    """Cores this process may use: its affinity, a container's quota, LOKY_MAX_CPU_COUNT."""
    import joblib

    return int(joblib.cpu_count())


def wanted(n_jobs: int | None) -> int | None:
    """How many workers: `n_jobs`, or joblib's setting; 1 inside a worker; None: as many as pay."""
    if multiprocessing.current_process().daemon:  # daemons may not have children
        return 1
    if n_jobs is not None and n_jobs < -1:
        return max(1, cores() + 1 + n_jobs)
    if n_jobs is not None or "joblib" not in sys.modules:  # joblib has no setting
        return n_jobs
    from joblib.parallel import get_active_backend

    backend, chosen = get_active_backend()
    if chosen is None and remote():  # a named cluster is meant; Dask counts its workers itself
        return 2 if _kind(backend) == _DASK else max(2, int(backend.effective_n_jobs(-1)))
    return 1 if chosen is None and backend.nesting_level else chosen


def remote() -> bool:
    """Whether joblib's setting is a cluster."""
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


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Batches inside run on the cluster at this address: tcp://HOST:PORT of Dask, ray, ray://HOST:PORT."""
    if address is None:
        yield
        return
    import joblib

    if address.startswith(("tcp://", "tls://", "ucx://")):
        distributed = extra("distributed", "Dask")
        try:
            client = distributed.Client(address, timeout=20)
        except (OSError, TimeoutError) as error:
            chosen = f"--cluster must be a Dask scheduler that answers, got {address} ({error})"
            raise GpcertError(chosen) from None
        with client, joblib.parallel_config("dask"):
            yield
    elif address == "ray" or address.startswith("ray://"):
        ray, backend = extra("ray", "Ray"), extra("ray.util.joblib", "Ray")
        if not ray.is_initialized():
            ray.init(address=None if address == "ray" else address, log_to_driver=False)
        backend.register_ray()
        with joblib.parallel_config("ray"):
            yield
    else:
        raise InvalidInputError(f"--cluster must be tcp://HOST:PORT, ray or ray://HOST:PORT, got {address!r}")

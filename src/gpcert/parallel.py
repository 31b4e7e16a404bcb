"""Independent pieces of work on all cores: processes with one BLAS thread each, started only where they pay.

A process costs a second or two to start, so callers do a few pieces themselves first and ask
`processes_pay`. Where processes cannot be started (a daemon, a sandbox) or die, fewer answers come back: the
caller does the rest itself.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

__all__ = ["THREADS", "cores", "on_processes", "parcel", "processes_pay", "starting", "unpack"]

#: What the BLAS libraries read when they are loaded.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: Expected seconds of work below which processes do not pay.
_WORTH = 5.0

_shared: Any = None


def cores() -> int:
    """Cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def processes_pay(seconds: float, done: int, left: int) -> bool:
    """Whether the `left` pieces are better done on processes, `done` of them having taken `seconds`."""
    return left > 1 and cores() > 1 and seconds / max(done, 1) * left > _WORTH


def on_processes(
    work: Callable[[Any, Any], Any], shared: Any, pieces: Mapping[int, Any]
) -> Iterator[tuple[int, Any]]:
    """(i, work(shared, pieces[i])), as they come; `work` must be a function of one of our modules.

    What is raised by `work` is raised here. Closing the iterator ends the processes.
    """
    jobs = min(cores(), len(pieces))
    context = multiprocessing.get_context("spawn")  # no lock or thread of this process is copied
    with parcel(shared) as file:
        others = set(multiprocessing.active_children())
        executor = ProcessPoolExecutor(jobs, context, initializer=_receive, initargs=(file,))
        waiting: dict[Future[Any], int] = {}
        try:
            with starting():
                for i, piece in pieces.items():
                    waiting[executor.submit(_answer, work, piece)] = i
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except (BrokenProcessPool, OSError, AssertionError):  # AssertionError: daemons may not have children
            return
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
            if waiting:  # left early: what still runs would keep this program from ending
                for child in set(multiprocessing.active_children()) - others:
                    child.terminate()


@contextmanager
def parcel(shared: Any) -> Iterator[str]:
    """A file that carries an object to the processes, for `unpack`.

    Not an argument: what is larger than a pipe would block the parent for ever if a process dies at once.
    """
    with TemporaryDirectory(prefix="gpcert-") as folder:  # of this user alone
        path = os.path.join(folder, "shared")
        with open(path, "wb") as file:
            pickle.dump(shared, file)
        yield path


def unpack(path: str) -> Any:
    """What a `parcel` of our own parent holds."""
    with open(path, "rb") as file:
        return pickle.load(file)


@contextmanager
def starting() -> Iterator[None]:
    """Processes started inside have one BLAS thread, do not run the caller's script, and never see Ctrl-C.

    The terminal sends Ctrl-C to the whole group: blocked here, it reaches this process a moment later.
    """
    mask = getattr(signal, "pthread_sigmask", None)
    before = mask(signal.SIG_BLOCK, {signal.SIGINT}) if mask is not None else None
    try:
        with _one_thread_each(), _without_main():
            yield
    finally:
        if mask is not None:
            mask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside use one BLAS thread."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes started inside do not run the caller's script again: they need nothing from it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _receive(file: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    global _shared
    _shared = unpack(file)


def _answer(work: Callable[[Any, Any], Any], piece: Any) -> Any:
    return work(_shared, piece)

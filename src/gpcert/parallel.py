"""Independent pieces of work on all cores: processes with one BLAS thread each, started only where they pay.

A process costs a second or two to start, so callers do a few pieces themselves first and ask
`processes_pay`. Where processes cannot be started (a daemon, a sandbox) or die, fewer answers come back: the
caller does the rest itself. A process ends when its parent does, however that ends, and leaves no file.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from types import FrameType, ModuleType
from typing import Any

__all__ = [
    "SIGNALS",
    "THREADS",
    "cores",
    "on_processes",
    "on_signals",
    "processes_pay",
    "starting",
    "workers",
]

#: What the BLAS libraries read when they are loaded.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: What asks a program to end: Ctrl-C, schedulers, a terminal that was closed (not on every system).
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
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
    waiting: dict[Future[Any], int] = {}
    try:
        parcel = pickle.dumps(shared)
    except (pickle.PicklingError, AttributeError, TypeError):  # a `Link` made of functions without a name
        return
    try:
        with workers(min(cores(), len(pieces)), _receive, parcel) as executor:
            with starting():
                for i, piece in pieces.items():
                    waiting[executor.submit(_answer, work, piece)] = i
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
    except (BrokenProcessPool, OSError, AssertionError):  # AssertionError: daemons may not have children
        return


@contextmanager
def workers(
    jobs: int, start: Callable[..., None], parcel: bytes, *more: Any
) -> Iterator[ProcessPoolExecutor]:
    """An executor whose processes begin with `start(shared, *more)` and end with this block, busy or not.

    `parcel`: what they share, pickled; it travels through a pipe. As an argument it would block this process
    for ever if one of the others dies at once; a file would stay behind if this process is killed. The end of
    a second pipe, which only this process holds open, tells the others to end: it closes even by SIGKILL.
    """
    context = multiprocessing.get_context("spawn")  # no lock or thread of this process is copied
    receiver, sender = context.Pipe(duplex=False)
    lifeline, held = context.Pipe(duplex=False)
    with receiver, lifeline, held:
        with starting():
            begin = start, receiver, context.Lock(), lifeline, *more
            executor = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=begin)
        threading.Thread(target=_send, args=(sender, parcel, jobs), daemon=True).start()
        try:
            yield executor
        finally:
            held.close()
            executor.shutdown(cancel_futures=True)


def _send(sender: Connection, parcel: bytes, copies: int) -> None:
    with sender, suppress(OSError):  # all receivers have gone
        for _ in range(copies):
            sender.send_bytes(parcel)


def _begin(
    start: Callable[..., None], receiver: Connection, turn: Any, lifeline: Connection, *more: Any
) -> None:
    for number in SIGNALS:  # they reach the whole group; the parent decides
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(lifeline,), daemon=True).start()
    try:
        with turn:
            parcel = receiver.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)  # the parent has gone
    start(pickle.loads(parcel), *more)


def _follow(lifeline: Connection) -> None:
    """Nothing is ever sent: reading ends when the parent lets go."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


@contextmanager
def on_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """`SIGNALS` call the handler, but for those that are ignored (`nohup`); in the main thread only."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        heeded = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
        before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def starting() -> Iterator[None]:
    """Processes started inside have one BLAS thread, do not run the caller's script, and see no `SIGNALS`.

    A terminal sends Ctrl-C to the whole group: blocked here, it reaches this process a moment later.
    """
    mask = getattr(signal, "pthread_sigmask", None)
    before = None
    if mask is not None:
        from multiprocessing import resource_tracker

        before = mask(signal.SIG_BLOCK, SIGNALS)
        resource_tracker.ensure_running()  # it unblocks two of them again
        mask(signal.SIG_BLOCK, SIGNALS)
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


def _receive(shared: Any) -> None:
    global _shared
    _shared = shared


def _answer(work: Callable[[Any, Any], Any], piece: Any) -> Any:
    return work(_shared, piece)

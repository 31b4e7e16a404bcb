"""What belongs to the whole process: signals that ask it to end, and how many threads BLAS has.

A question about a small model makes thousands of small products; on several threads each waits for the
others, and the same question, or training, takes many times the CPU time (docs/costs.md). A call that begins
while no other is under way sets their number to one, and back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

import scipy.linalg  # noqa: F401  (its BLAS is another library than numpy's: both are to be found)
from threadpoolctl import ThreadpoolController

#: What the BLAS libraries read when they are loaded.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: What asks a program to end: Ctrl-C, schedulers, a terminal that was closed (not on every system).
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


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


#: Centres up to which one thread is enough, and centres times regions (of training: times centres).
_CENTRES, _PRODUCTS = 4_096, 4_000_000

#: Held by the call that has set the number: only who has set it sets it back.
_set = threading.Lock()


@contextmanager
def one_thread(centres: int, regions: int) -> Iterator[None]:
    """BLAS keeps to one thread inside, unless centres times regions are many."""
    large = centres > _CENTRES or centres * regions > _PRODUCTS
    if large or not _set.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _set.release()


@cache
def _libraries() -> ThreadpoolController:
    """To find them takes milliseconds, as long as many a question."""
    return ThreadpoolController()

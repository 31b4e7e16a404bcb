"""A deadline that long computations look at, so that a limit of time holds inside a box as well.

What is under way is given up by an exception, as Ctrl-C does: nothing that was known is lost. What is
verified once per model, for all questions to come, is not given up, and no question pays for it: `standing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(eq=False)
class _Limit:
    """What `until` or `standing` set, inside of another.

    An interrupt may keep either from taking it back; it does not count any more once their frame is gone.
    """

    deadline: float
    stop: Callable[[], bool] | None
    outer: _Limit | None
    stands: bool = False  #: whether limits further out do not count
    over: bool = False


_limit: ContextVar[_Limit | None] = ContextVar("gpcert limit", default=None)
_stood: ContextVar[float] = ContextVar("gpcert seconds stood still", default=0.0)


class OutOfTime(Exception):
    """The deadline has passed. No error: what ends here has an answer."""


def now() -> float:
    """The clock of all limits of time: that of `time.perf_counter`, less what was spent `standing`."""
    return time.perf_counter() - _stood.get()


@contextmanager
def _within(limit: _Limit) -> Iterator[None]:
    try:  # before it is set: an interrupt may come between
        _limit.set(limit)
        yield
    finally:
        limit.over = True
        if _limit.get() is limit:  # not if an interrupt delayed this, and there are others by now
            _limit.set(_innermost())


def _limits() -> Iterator[_Limit]:
    """Those that count, from the innermost on."""
    limit = _limit.get()
    while limit is not None:
        if not limit.over:
            yield limit
        limit = limit.outer


def _innermost() -> _Limit | None:
    return next(_limits(), None)


@contextmanager
def standing() -> Iterator[None]:
    """Inside, no time passes for limits, and none ends anything.

    For what is verified once per model: given up at every question's limit, it would never be known. Ctrl-C
    still ends it.
    """
    start = now()
    try:
        with _within(_Limit(float("inf"), None, _innermost(), stands=True)):
            yield
    finally:
        _stood.set(_stood.get() + now() - start)


@contextmanager
def until(deadline: float, stop: Callable[[], bool] | None = None) -> Iterator[None]:
    """Inside, `check` raises after the deadline (on the clock of `now`), or an earlier one.

    `stop`: whether somebody wants it to end; that is Ctrl-C to the computation.
    """
    with _within(_Limit(deadline, stop, _innermost())):
        yield


def remaining() -> float:
    """Seconds until the deadline; inf: there is none."""
    least = float("inf")
    for limit in _limits():
        if limit.stands:
            break
        least = min(least, limit.deadline)
    return least - now()


def heed() -> None:
    """Raise KeyboardInterrupt if somebody wants it to end."""
    stop = next((limit.stop for limit in _limits() if limit.stop is not None), None)
    if stop is not None and stop():
        raise KeyboardInterrupt


def check() -> None:
    """Raise `OutOfTime` if the deadline has passed; cheap enough for every quadratic programme."""
    heed()
    if remaining() < 0.0:
        raise OutOfTime

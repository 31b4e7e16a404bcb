"""A deadline that long computations look at, so that a limit of time holds inside a box as well.

What is under way is given up by an exception, as Ctrl-C does: nothing that was known is lost. What is
verified once per model, for all questions to come, is not given up, and no question pays for it: `standing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float] = ContextVar("gpcert deadline", default=float("inf"))
_stop: ContextVar[Callable[[], bool] | None] = ContextVar("gpcert stop", default=None)
_stood: ContextVar[float] = ContextVar("gpcert seconds stood still", default=0.0)


class OutOfTime(Exception):
    """The deadline has passed. No error: what ends here has an answer."""


def now() -> float:
    """The clock of all limits of time: that of `time.perf_counter`, less what was spent `standing`."""
    return time.perf_counter() - _stood.get()


@contextmanager
def standing() -> Iterator[None]:
    """Inside, no time passes for limits, and none ends anything.

    For what is verified once per model: given up at every question's limit, it would never be known. Ctrl-C
    still ends it.
    """
    start, token = now(), _deadline.set(float("inf"))
    try:
        yield
    finally:
        _deadline.reset(token)
        _stood.set(_stood.get() + now() - start)


@contextmanager
def until(deadline: float, stop: Callable[[], bool] | None = None) -> Iterator[None]:
    """Inside, `check` raises after the deadline (on the clock of `now`), or an earlier one.

    `stop`: whether somebody wants it to end; that is Ctrl-C to whoever works.
    """
    tokens = _deadline.set(min(deadline, _deadline.get())), _stop.set(stop or _stop.get())
    try:
        yield
    finally:
        _deadline.reset(tokens[0])
        _stop.reset(tokens[1])


def left() -> float:
    """Seconds until the deadline; inf: there is none."""
    return _deadline.get() - now()


def heed() -> None:
    """Raise KeyboardInterrupt if somebody wants it to end."""
    stop = _stop.get()
    if stop is not None and stop():
        raise KeyboardInterrupt


def check() -> None:
    """Raise `OutOfTime` if the deadline has passed; cheap enough for every quadratic programme."""
    heed()
    if now() > _deadline.get():
        raise OutOfTime

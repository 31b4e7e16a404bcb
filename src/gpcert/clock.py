"""A deadline that long computations look at, so that a limit of time holds inside a box as well.

What is under way is given up by an exception, as Ctrl-C does: nothing that was known is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["OutOfTime", "check", "until"]

_deadline: ContextVar[float] = ContextVar("gpcert deadline", default=float("inf"))


class OutOfTime(Exception):
    """The deadline has passed. No error: what ends here has an answer."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Inside, `check` raises after the deadline (on the clock of `time.perf_counter`), or an earlier one."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check() -> None:
    """Raise `OutOfTime` if the deadline has passed; cheap enough for every quadratic programme."""
    if time.perf_counter() > _deadline.get():
        raise OutOfTime

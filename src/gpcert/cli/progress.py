"""One line on a terminal that says how far the work is, and Ctrl-C, TERM or HUP as a polite request."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from gpcert.running import Bar, on_signals


class Interrupt:
    """While active, the first Ctrl-C, TERM or HUP sets `requested`, the second raises KeyboardInterrupt.

    Further ones do nothing: what is known is being saved. `again` tells what the second one does.
    """

    def __init__(self, again: str = "at once") -> None:
        self.requested = False
        self.over = False  #: the work has ended: signals change nothing any more
        self.status = 130  #: exit status: 128 + the signal's number
        self._again = again
        self._signals = on_signals(self._ask)

    def __enter__(self) -> Self:
        self._signals.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals.__exit__(kind, value, trace)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if self.requested:
            self.over = True
            raise KeyboardInterrupt(self.status)
        self.requested = True
        self.status = 128 + number
        told = f"\nstopping; what is known will be kept (Ctrl-C again: {self._again})\n"
        # Not `print`: the signal may have come while it was printing. The terminal may have gone (HUP).
        with suppress(OSError, AttributeError):
            os.write(sys.stderr.fileno(), told.encode())


def line(what: str, total: int, quiet: bool) -> Bar:
    """A bar on standard error; silent when that is no terminal, or when told to be."""
    seen = not quiet and sys.stderr is not None and sys.stderr.isatty()
    return Bar(what, total, leave=False, shown=seen)


def duration(seconds: float) -> str:
    """3 s, 2 min 5 s, 1 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

"""One line on a terminal that says how far the work is, and Ctrl-C, TERM or HUP as a polite request.

The estimate of the time left comes from the rows that are done, once there are three; a single search has no
honest estimate (nobody knows how many boxes are left), only its width and a limit if one was set.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self, TextIO

from gpcert.parallel import on_signals

__all__ = ["Interrupt", "ProgressLine", "duration"]

_EVERY = 0.1  # seconds between two drawings of the line


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


class ProgressLine:
    """Draws and redraws one line on standard error; silent when that is no terminal, or when told to be."""

    def __init__(self, what: str, total: int, jobs: int = 1, quiet: bool = False, out: TextIO | None = None):
        self._out = sys.stderr if out is None else out
        self._live = not quiet and self._out is not None and self._out.isatty()
        self._what, self._total, self._jobs = what, total, max(1, jobs)
        self._start = self._drawn = time.monotonic()
        self._width = 0

    def draw(self, done: int, note: str = "") -> None:
        """Show that `done` of the rows are answered, and a note (the width of what is running)."""
        now = time.monotonic()
        if not self._live or now - self._drawn < _EVERY:
            return
        self._drawn = now
        parts = [f"{self._what}: {done}/{self._total}", note, self._left(done, now - self._start)]
        text = ", ".join(part for part in parts if part)
        self._write("\r" + text.ljust(self._width))
        self._width = len(text)

    def _left(self, done: int, passed: float) -> str:
        if done < 3:
            return f"{duration(passed)} so far"
        return f"about {duration(passed / done * (self._total - done))} left"

    def clear(self) -> None:
        """Leave no trace of the line."""
        if self._live and self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        """A terminal that has gone is no reason to stop working."""
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            self._live = False


def duration(seconds: float) -> str:
    """3 s, 2 min 5 s, 1 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

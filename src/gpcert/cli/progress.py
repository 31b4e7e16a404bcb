"""One line on a terminal that says how far the work is, and Ctrl-C or TERM as a polite request.

The estimate of the time left comes from the rows that are done, once there are three; a single search has no
honest estimate (nobody knows how many boxes are left), only its width and a limit if one was set.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self, TextIO

__all__ = ["Interrupt", "ProgressLine", "duration"]

_EVERY = 0.1  # seconds between two drawings of the line


class Interrupt:
    """While active, the first Ctrl-C (or TERM) sets `requested`; the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.requested = False
        self.status = 130  #: exit status: 128 + the signal's number
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self.status = 128 + number
        print("\nstopping; what is known will be kept (Ctrl-C again: at once)", file=sys.stderr)


class ProgressLine:
    """Draws and redraws one line on standard error; silent when that is no terminal, or when told to be."""

    def __init__(self, what: str, total: int, jobs: int = 1, quiet: bool = False, out: TextIO | None = None):
        self._out = sys.stderr if out is None else out
        self._live = not quiet and self._out.isatty()
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
        self._out.write("\r" + text.ljust(self._width))
        self._out.flush()
        self._width = len(text)

    def _left(self, done: int, passed: float) -> str:
        if done < 3:
            return f"{duration(passed)} so far"
        return f"about {duration(passed / done * (self._total - done))} left"

    def clear(self) -> None:
        """Leave no trace of the line."""
        if self._live and self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._out.flush()
            self._width = 0


def duration(seconds: float) -> str:
    """3 s, 2 min 5 s, 1 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

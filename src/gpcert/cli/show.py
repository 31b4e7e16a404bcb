"""What people on a terminal see: lines, tables, a bar; and their Ctrl-C, TERM or HUP as a polite request."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from types import FrameType
from typing import Self

from gpcert.numbers import exactly, percent
from gpcert.records.rows import Row
from gpcert.running import Bar, on_signals
from gpcert.validation import printable

#: Characters written at once: of a longer text Python loses the rest if a signal comes while a pipe is full.
_PIECE = 2048


def say(*lines: str) -> str:
    """Print the lines; what went wrong, "" if nothing or if the reader has gone (`| head`): it has enough."""
    if sys.stdout is None:
        return "it is closed"
    text = "".join(f"{line}\n" for line in lines)
    try:
        for start in range(0, len(text), _PIECE):
            sys.stdout.write(text[start : start + _PIECE])
        sys.stdout.flush()
    except OSError as error:
        # What could not be printed must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
    return ""


def tell(*lines: str) -> int:
    """Print the lines, and warn if that fails; 1 then, 0 else."""
    if unsaid := say(*lines):
        warn(f"standard output could not be written ({unsaid})")
    return int(bool(unsaid))


def warn(reason: str) -> None:
    """One line on standard error, if there is anybody to read it."""
    if sys.stderr is None:
        return
    with suppress(OSError):
        print(printable(f"gpcert: {reason}".replace("\n", " ")), file=sys.stderr)


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are as wide as their widest cell."""
    lines = [[printable(cell) for cell in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def row_cells(row: Row) -> tuple[str, ...]:
    """What tables begin with: row, true label, predicted label, its probability, radius if there is one."""
    best = "" if row.probability is None else f"{row.probability.max():.3f}"
    name = str(row.row) if row.id is None else row.id
    message = name, row.label or "", row.predicted or "", best
    return message if row.radius is None else (*message, exactly(row.radius))


def by_radius(
    answers: Sequence[Row],
    names: Sequence[str],
    of: Callable[[Row], str],
) -> str:
    """For each radius how many answers are called what, and how many of those called `names[0]` are right."""
    lines = []
    for radius in sorted({a.radius for a in answers}, key=lambda r: r or 0.0):
        some = [a for a in answers if a.radius == radius]
        counts = ", ".join(f"{sum(of(a) == name for a in some)} {name}" for name in names)
        right = sum(of(a) == names[0] and a.label == a.predicted for a in some)
        share = f"; right and {names[0]}: {percent(Fraction(right, len(some)))}" if some[0].label else ""
        where = "" if radius is None else f"radius {exactly(radius)}: "
        lines.append(f"{where}{counts}{share}")
    return "\n".join(lines)


class Interrupt(ExitStack):
    """While active, the first Ctrl-C, TERM or HUP sets `requested`, the second raises KeyboardInterrupt.

    Further ones do nothing: what is known is being saved. `again` tells what the second one does.
    """

    def __init__(self, again: str = "at once") -> None:
        super().__init__()
        self.requested = False
        self.over = False  #: the work has ended: signals change nothing any more
        self.status = 130  #: exit status: 128 + the signal's number
        self._again = again

    def __enter__(self) -> Self:
        self.enter_context(on_signals(self._ask))
        return super().__enter__()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.over:
            return
        if self.requested:
            self.over = True
            raise KeyboardInterrupt(self.status)
        self.requested = True
        self.status = 128 + number
        message = f"\nstopping; what is known will be kept (Ctrl-C again: {self._again})\n"
        # Not `print`: the signal may have come while it was printing. The terminal may have gone (HUP).
        with suppress(OSError, AttributeError):
            os.write(sys.stderr.fileno(), message.encode())


def line(what: str, total: int, quiet: bool) -> Bar:
    """A bar on standard error; silent when that is no terminal, or with --quiet."""
    seen = not quiet and sys.stderr is not None and sys.stderr.isatty()
    return Bar(what, total, leave=False, shown=seen)


def duration(seconds: float) -> str:
    """3 s, 2 min 5 s, 1 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

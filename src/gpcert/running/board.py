"""A table in a file that the caller and its workers read and write: where pieces stand, and whether to stop.

Workers open it by its path; on another machine there is none, and only what is finished is heard of. Bounds
are written one double at a time: a reader may meet a new lower end beside an old upper one, and both hold.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

import numpy as np

from gpcert.validation import Index

#: How far a piece is; 0 before. A worker on another machine has no board: its pieces stay sent.
SENT, BEGUN, ENDED = 1, 2, 3
#: Columns: state, reports so far, and the last report: lower, upper, nodes, seconds, which of its regions.
_WIDTH = 7


class Board:
    """One row for each piece, and a last one whose first number says that all shall stop."""

    def __init__(self, path: str, rows: int) -> None:
        self._rows = np.memmap(path, np.float64, "r+", shape=(rows + 1, _WIDTH)).view(np.ndarray)
        self._path = path
        self._seen = np.zeros(rows)

    @classmethod
    def made(cls, rows: int) -> tuple[str, Board]:
        """A new one and its path; the file goes with `remove`, or when this process ends in any way."""
        from joblib.externals.loky.backend import resource_tracker

        number, path = tempfile.mkstemp(prefix="gpcert-")
        resource_tracker.register(path, "file")
        with os.fdopen(number, "wb") as file:
            file.write(bytes(8 * _WIDTH * (rows + 1)))  # written, not only promised by a full disk
        return path, cls(path, rows)

    def remove(self) -> None:
        """Take the file away; whoever has opened it may still write."""
        from joblib.externals.loky.backend import resource_tracker

        with suppress(OSError):
            os.unlink(self._path)
            resource_tracker.unregister(self._path, "file")

    @property
    def stopped(self) -> bool:
        """Whether pieces are to end with what they know, and no other is to begin."""
        return bool(self._rows[-1, 0])

    def stop(self) -> None:
        """Tell all."""
        self._rows[-1, 0] = 1.0

    def mark(self, row: int, state: int) -> None:
        """Say how far a piece is."""
        self._rows[row, 0] = state

    def begun(self) -> Index:
        """Rows of the pieces under way; of those that were sent, if nobody has said that one was begun."""
        states = self._rows[:-1, 0]
        return np.flatnonzero(states == (BEGUN if (states == BEGUN).any() else SENT))

    def write(self, row: int, lower: float, upper: float, nodes: int, seconds: float, at: int = 0) -> bool:
        """A report about a piece; whether it is to stop."""
        mine = self._rows[row]
        mine[2:] = lower, upper, nodes, seconds, at
        mine[1] += 1.0
        return self.stopped

    def reported(self, row: int) -> bool:
        """Whether a piece has made a report."""
        return bool(self._rows[row, 1])

    def last(self, row: int) -> list[float]:
        """The last report about a piece: lower, upper, nodes, seconds, which of its regions."""
        known: list[float] = self._rows[row, 2:].tolist()
        return known

    def news(self) -> list[int]:
        """Rows of the pieces that have reported since this was asked last."""
        counts = self._rows[:-1, 1].copy()
        fresh: list[int] = np.flatnonzero(counts != self._seen).tolist()
        self._seen = counts
        return fresh

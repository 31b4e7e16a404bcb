"""What is done in a worker: a process of this machine, a thread, or a machine elsewhere."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.clock import until
from gpcert.running.board import BEGUN, ENDED, Board
from gpcert.running.progress import Stopped
from gpcert.running.signals import SIGNALS

#: Seconds between two looks whether the parent is still there.
_LOOK = 0.5

_mine = threading.local()


@dataclass(frozen=True, eq=False)
class Call:
    """One piece in a worker. What all pieces of a batch share, `parcel`, is opened once in each."""

    token: str
    path: str
    rows: int

    def __call__(self, parcel: NDArray[np.uint8], row: int, piece: Any) -> tuple[int, Any]:
        """(row, the answer about a piece); `Stopped` or a MemoryError in its place where there is none.

        `parcel`: (ask, task), pickled. As an array, and as an argument, it travels once: joblib's own workers
        get a memory map, Dask scatters it, Ray puts it where all of a machine can read it.
        """
        (ask, task), board = self._opened(parcel)
        if board is None:
            return row, ask(task, piece, lambda *known, at=0: False)
        if board.stopped:
            return row, Stopped()
        board.mark(row, BEGUN)
        try:
            with until(math.inf, _once(board)):  # an attack, say, makes no reports
                return row, ask(task, piece, partial(board.write, row))
        except (Stopped, MemoryError) as nothing:
            return row, nothing
        except KeyboardInterrupt:
            return row, Stopped()
        finally:
            board.mark(row, ENDED)

    def _opened(self, parcel: NDArray[np.uint8]) -> tuple[Any, Board | None]:
        """What `ask` needs, this thread's own copy, and the board if it is within reach."""
        if getattr(_mine, "token", None) != self.token:
            _mine.token, _mine.shared, _mine.board = self.token, pickle.loads(parcel.data), None
            if os.path.exists(self.path):
                _mine.board = Board(self.path, self.rows)
        return _mine.shared, _mine.board


def _once(board: Board) -> Callable[[], bool]:
    """Whether to stop, heard once, as Ctrl-C is: what is known then is put together in peace."""
    heard = False

    def stop() -> bool:
        nonlocal heard
        told = not heard and board.stopped
        heard = heard or told
        return told

    return stop


def settle(parent: int) -> None:
    """A process of this machine leaves signals to its parent, and ends with it however that ends."""
    for number in SIGNALS:  # they reach the whole group
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)

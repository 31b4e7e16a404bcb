"""Many pieces of work in one call: a few here, the rest on processes where they pay; Ctrl-C ends the call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from gpcert.parallel import on_processes, processes_pay

__all__ = ["ask_all"]

Task = TypeVar("Task")
Piece = TypeVar("Piece")
Answer = TypeVar("Answer")


def ask_all(
    ask: Callable[[Task, Piece], Answer],
    task: Task,
    pieces: Sequence[Piece],
    told: Callable[[int, Answer], bool],
    *,
    trial: int = 1,
    alone: bool = False,
) -> None:
    """`told(i, ask(task, pieces[i]))` for every piece, in any order, until it returns True or Ctrl-C.

    The first `trial` are asked here, and show whether processes would pay; `alone`: all are. `ask` must be a
    function of one of our modules, and `task` what all pieces share.
    """
    waiting = dict(enumerate(pieces))
    start = time.perf_counter()
    with suppress(KeyboardInterrupt):  # what has been told is known; the caller knows what has not
        for i in list(waiting)[:trial]:
            if told(i, ask(task, waiting.pop(i))):
                return
        if not alone and processes_pay(time.perf_counter() - start, trial, len(waiting)):
            for i, answer in on_processes(ask, task, dict(waiting)):
                del waiting[i]
                if told(i, answer):
                    return
        for i in list(waiting):  # all, or what the processes left over
            if told(i, ask(task, waiting.pop(i))):
                return

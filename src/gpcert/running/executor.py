"""Many pieces of work in one call, here or on workers, told of as they come; stopped, what is known is kept.

Workers are processes (joblib's loky), one BLAS thread each, or whatever `joblib.parallel_config` says. They
cost a second or two to start: unless a number of them is asked for, the work begins here, and moves once it
is seen to be long. A worker that dies costs the piece it was at: which of several that were under way that
was is found by halving them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from gpcert.running.board import Board
from gpcert.running.progress import Listener, Progress, Report, listener, wants_to_stop
from gpcert.running.signals import SIGNALS
from gpcert.running.worker import Call, Trouble, settle

__all__ = ["Ask", "Running", "ask_all", "cores"]

#: Answers one piece: (task, piece, report) -> answer. `task` is what all pieces share.
Ask = Callable[[Any, Any, Report], Any]

#: Expected seconds of work below which processes do not pay.
_WORTH = 5.0
#: Pieces done here, or else seconds spent on fewer, before that is estimated.
_TRIAL, _ALONE = 4, 2.0
#: Seconds between two looks at what the workers have reported.
_LOOK = 0.05


@dataclass(frozen=True)
class Running:
    """How a batch runs: who is told, on how many workers, and who hears of workers that died."""

    progress: Listener | bool | None = None
    n_jobs: int | None = None
    complain: Callable[[str], None] = lambda told: warnings.warn(told, RuntimeWarning, stacklevel=4)


def cores() -> int:
    """Cores this process may use: its affinity, a container's quota, LOKY_MAX_CPU_COUNT."""
    import joblib

    return int(joblib.cpu_count())


def ask_all(
    ask: Ask,
    task: Any,
    pieces: Mapping[int, Any],
    told: Callable[[int, Any], bool],
    running: Running,
    *,
    what: str = "",
    total: int | None = None,
    size: Callable[[Any], int] = lambda piece: 1,
) -> None:
    """`told(i, ask(task, pieces[i], report))` for every piece, in any order, until it is True or Ctrl-C.

    A piece is about `size` regions, the first of them number i of `total`; those that are no piece's are
    answered already. Pieces lost with a dead worker are not told. A second Ctrl-C is raised.
    """
    with listener(running.progress, what) as tell:
        count = sum(map(size, pieces.values())) if total is None else total
        batch = _Batch(ask, task, dict(pieces), told, running, tell, count, size)
        try:
            batch.run()
        except KeyboardInterrupt:
            if batch.stopping:
                raise
        finally:
            batch.complain()


class _Batch:
    """The pieces that wait, and those who are told."""

    def __init__(
        self,
        ask: Ask,
        task: Any,
        waiting: dict[int, Any],
        told: Callable[[int, Any], bool],
        running: Running,
        tell: Listener | None,
        total: int,
        size: Callable[[Any], int],
    ) -> None:
        self._ask, self._task, self._waiting, self._told = ask, task, waiting, told
        self._running, self._tell, self._total, self._size = running, tell, total, size
        self._done = total - sum(map(size, waiting.values()))
        self._last: dict[int, tuple[float, ...]] = {}
        self._deaths, self._lost = 0, 0
        self.stopping = False

    def run(self) -> None:
        """Here, on workers where they pay or are asked for, and here again where there are none."""
        jobs = _wanted(self._running.n_jobs)
        if jobs in (None, -1):
            self._here(may_move=True)
        if self._waiting and not self.stopping and jobs != 1:
            self._on_workers(-1 if jobs is None else jobs)
        if not self.stopping:
            self._here(may_move=False)

    def complain(self) -> None:
        """Say what dead workers have cost."""
        if self._deaths:
            cost = f"{self._lost} of {self._total} are not answered" if self._lost else "its work was repeated"
            self._running.complain(f"a worker ran out of memory or was killed: {cost}")

    def _report(self, i: int, lower: float, upper: float, nodes: int, seconds: float, at: int = 0) -> bool:
        """Tell the listener where a piece stands; whether to stop."""
        if self._tell is None:
            return False
        self._last[i] = lower, upper, nodes, seconds
        return self._say(i + at, at, self._last[i])

    def _say(self, index: int, more: int, known: tuple[float, ...]) -> bool:
        assert self._tell is not None
        lower, upper, nodes, seconds = known
        said = Progress(index, self._done + more, self._total, lower, upper, int(nodes), seconds)
        if wants_to_stop(self._tell(said)):
            self.stopping = True
        return self.stopping

    def _finish(self, i: int, answer: Any) -> None:
        """Hand on the answer to a piece."""
        self.stopping |= self._told(i, answer)
        size = self._size(self._waiting.pop(i))
        self._done += size
        known = self._last.pop(i, (-np.inf, np.inf, 0, 0.0))
        if self._tell is not None and not self.stopping:
            self._say(i + size - 1, 0, known)

    def _here(self, may_move: bool) -> None:
        """One after the other; `may_move`: until workers would pay. A search cut off then is forgotten."""
        start, begun_with = time.perf_counter(), len(self._waiting)

        def pays(trial: int, seconds: float) -> bool:
            left, spent = len(self._waiting), time.perf_counter() - start
            done = begun_with - left
            enough = may_move and left > 1 and (done >= trial or spent > seconds)
            return enough and spent / max(done, 1) * left > _WORTH and cores() > 1

        for i in list(self._waiting):
            moved = False

            def report(*known: Any, at: int = 0, i: int = i) -> bool:
                nonlocal moved
                moved = not self._report(i, *known, at=at) and pays(sys.maxsize, _ALONE)
                return moved or self.stopping

            try:
                answer = self._ask(self._task, self._waiting[i], report)
            except KeyboardInterrupt:
                if moved:  # by which some end what they have begun
                    return
                raise
            if moved:
                return
            self._finish(i, answer)
            if self.stopping or pays(_TRIAL, _ALONE):
                return

    def _on_workers(self, jobs: int) -> None:
        """All that waits, in groups; a group that a worker died in is divided until one piece is to blame."""
        try:
            from joblib.externals.loky.backend.reduction import dumps

            parcel = np.frombuffer(dumps((self._ask, self._task)), dtype=np.uint8)
        except (pickle.PicklingError, AttributeError, TypeError):  # it cannot travel
            return
        groups = [list(self._waiting)]
        with suppress(OSError):  # no processes, or no more of them: a sandbox, a limit
            while groups and not self.stopping:
                group = groups.pop(0)
                before = len(self._waiting)
                begun = self._on(group, parcel, jobs)
                if begun is None:
                    continue
                self._deaths += 1
                rest = [i for i in group if i in self._waiting and i not in begun]
                if not begun and len(self._waiting) == before:
                    return  # they die before they begin
                if len(begun) == 1:
                    self._lose(begun[0])
                    begun = []
                groups += [part for part in (rest, begun[::2], begun[1::2]) if part]

    def _lose(self, i: int) -> None:
        """A piece that nothing can be said about."""
        size = self._size(self._waiting.pop(i))
        self._done += size
        self._lost += size

    def _on(self, group: list[int], parcel: Any, jobs: int) -> list[int] | None:
        """A group on workers; if one of them died, the pieces that were under way."""
        path, board = Board.made(len(group))
        call = Call(uuid.uuid4().hex, parcel, path, len(group))
        results: SimpleQueue[Any] = SimpleQueue()
        pieces = [(row, self._waiting[i]) for row, i in enumerate(group)]
        ended = False
        try:
            parallel = _parallel(jobs)
            threading.Thread(target=_feed, args=(parallel, call, pieces, board, results), daemon=True).start()
            while not ended:
                try:
                    ended = self._hear(group, board, results)
                except KeyboardInterrupt:
                    if self.stopping:
                        raise
                    self.stopping = True
                if self.stopping:
                    board.stop()
        except BrokenExecutor:
            ended = True
            return [group[row] for row in board.begun() if group[row] in self._waiting]
        finally:
            board.stop()
            if not ended:
                _kill()
            board.remove()
        return None

    def _hear(self, group: list[int], board: Board, results: SimpleQueue[Any]) -> bool:
        """Wait a moment for an answer, and look at the board; True: that was all."""
        said: Any = ()
        with suppress(Empty):
            said = results.get(timeout=_LOOK)
        for row, known, at in board.news() if self._tell is not None else ():
            if group[row] in self._waiting and not self.stopping:
                self._report(group[row], *known, at=at)
        if isinstance(said, BaseException):
            raise said
        if said and said.trouble is None:
            self._finish(group[said.row], said.answer)
        elif said and said.trouble is Trouble.LOST:
            self._deaths += 1
            self._lose(group[said.row])
        return said is None


def _wanted(n_jobs: int | None) -> int | None:
    """How many workers: what is asked for, what joblib was told; 1 inside a worker; None: as many as pay."""
    if multiprocessing.current_process().daemon:  # daemons may not have children
        return 1
    if n_jobs is not None or "joblib" not in sys.modules:  # nobody can have told joblib anything
        return n_jobs
    from joblib.parallel import get_active_backend

    backend, told = get_active_backend()
    return 1 if told is None and backend.nesting_level else told


def _parallel(jobs: int) -> Any:
    """joblib's, on the backend that is active; on ours if that is loky, as it is by default."""
    from joblib import Parallel
    from joblib._parallel_backends import LokyBackend
    from joblib.parallel import get_active_backend

    class Loky(LokyBackend):
        def configure(self, **options: Any) -> Any:
            return super().configure(**options, initializer=settle, initargs=(os.getpid(),))

    backend, _ = get_active_backend()
    if isinstance(backend, LokyBackend):
        backend = Loky(inner_max_num_threads=backend.inner_max_num_threads or 1)
    as_they_come = getattr(backend, "supports_return_generator", False)
    return Parallel(jobs, backend, "generator_unordered" if as_they_come else "list")


def _feed(
    parallel: Any, call: Call, pieces: list[tuple[int, Any]], board: Board, results: SimpleQueue[Any]
) -> None:
    """Send the pieces and hand on what comes back; in a thread of its own, so that the caller can listen."""
    from joblib import delayed

    def calls() -> Iterator[Any]:
        for row, piece in pieces:
            if board.stopped:
                return
            yield delayed(call)(row, piece)

    try:
        _deaf()
        for answer in parallel(calls()):
            results.put(answer)
        results.put(None)
    except BaseException as error:
        results.put(error)


def _deaf() -> None:
    """This thread, and so all processes that it starts, does not hear `SIGNALS`: a terminal sends them to all.

    The trackers of resources are started first: starting them would unblock some of the signals again.
    """
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        from joblib.externals.loky.backend import resource_tracker as loky_tracker

        resource_tracker.ensure_running()
        loky_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def _kill() -> None:
    """End loky's processes, busy or not."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

"""Many pieces of work in one call, here or on workers, reported as they come; stopped, what is known is kept.

Workers are processes (joblib's loky), one BLAS thread each, or what `joblib.parallel_config` says. They
cost a second or two to start: unless a number of them is asked for, the work begins here, and moves once it
is seen to be long. Which piece a worker died of is found by halving those that were under way.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from gpcert.errors import GpcertError
from gpcert.running.progress import Collector, Listener, Progress, Report, Stopped, listener, wants_to_stop
from gpcert.running.workers import (
    TRIED,
    Board,
    Call,
    cores,
    deaf,
    deaths,
    feed,
    kill,
    packed,
    parallel,
    remote,
    wanted,
)
from gpcert.validation import Index

#: Expected seconds of work below which processes do not pay.
_WORTH = 5.0
#: Pieces done here, or else seconds spent on fewer, before that is estimated.
_TRIAL, _ALONE = 4, 2.0
#: Seconds that pieces have to stop.
_PATIENCE = 5.0
#: Seconds between two looks at what the workers have reported.
_LOOK = 0.05

#: Answers one piece: (task, piece, report) -> answer. `task` is what all pieces share.
Ask = Callable[[Any, Any, Report], Any]


class Pieces(Mapping[int, Any]):
    """Pieces of work about `count` regions, each about one of them, or a block: the numbers of `step`.

    `make` makes a piece where it is looked at, and it is kept: of a large batch most are answered unseen.

    >>> from gpcert.running import Pieces
    >>> pieces = Pieces(3, lambda i: [i])
    >>> pieces.pop(1), list(pieces)
    ([1], [0, 2])
    """

    def __init__(self, count: int, make: Callable[[int], Any], step: int = 1) -> None:
        self._make, self._made, self.step = make, dict[int, Any](), step
        self.count = count
        self.waiting = np.zeros(count, dtype=bool)
        self.waiting[::step] = True

    @classmethod
    def blocks(cls, count: int, size: int) -> Pieces:
        """The numbers of the regions, some at a time."""
        return cls(count, lambda i: np.arange(i, min(i + size, count)), size)

    def copy(self) -> Pieces:
        """The same pieces, to be made anew."""
        other = Pieces(self.count, self._make, self.step)
        other.waiting = self.waiting.copy()
        return other

    def __len__(self) -> int:
        return int(np.count_nonzero(self.waiting))

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.waiting).tolist())

    def __contains__(self, i: object) -> bool:
        return isinstance(i, int) and 0 <= i < self.count and bool(self.waiting[i])

    def __getitem__(self, i: int) -> Any:
        if i not in self:
            raise KeyError(i)
        if i not in self._made:
            self._made[i] = self._make(i)
        return self._made[i]

    def pop(self, i: int) -> Any:
        """A piece, which is then gone."""
        piece = self[i]
        self.waiting[i] = False
        del self._made[i]
        return piece

    def without(self, known: Container[int]) -> Pieces:
        """The same pieces, about the other regions."""
        other = self.copy()
        for i in self:
            remaining = [number for number in self.numbers(i) if number not in known]
            other.waiting[i] = bool(remaining)
            if remaining and self.step > 1:
                other._made[i] = np.array(remaining)
        return other

    def numbers(self, i: int) -> list[int]:
        """The regions that a piece is about."""
        return [i] if self.step == 1 else self[i].tolist()

    def answers(self, answer: Any) -> Sequence[Any]:
        """To each of them, from the answer to the piece."""
        return [answer] if self.step == 1 else answer

    def regions(self) -> int:
        """How many regions the pieces are about."""
        return len(self) if self.step == 1 else sum(map(len, self.values()))


@dataclass(frozen=True, eq=False)
class Lot:
    """Pieces that were answered together: their numbers, ascending, and of each, by its place among these,
    the answer, made where it is looked at, and what is reported of it.
    """

    numbers: Index
    answer: Callable[[int], Any]
    known: Callable[[int], Sequence[float]]

    @classmethod
    def of(cls, answers: Mapping[int, Any], known: Sequence[Sequence[float]]) -> Lot:
        """Of answers that are there already."""
        rows = sorted(zip(answers, answers.values(), known, strict=True), key=itemgetter(0))
        numbers, made, reported = zip(*rows, strict=True)
        return cls(np.array(numbers, dtype=np.intp), made.__getitem__, reported.__getitem__)


def made(answer: Any, number: int) -> Any:
    """The answer to a piece, which may still be one of a lot."""
    if isinstance(answer, Lot):
        return answer.answer(int(np.searchsorted(answer.numbers, number)))
    return answer


#: Answers as many pieces, each of one region, as it can, lot by lot.
Together = Callable[[Pieces], Iterator[Lot]]


class Keeper:
    """Where answers are kept as they come, and some are known before; here nowhere."""

    def known(self, pieces: Pieces) -> dict[int, Any]:
        """The answers that need not be asked for, by the number of the region."""
        return {}

    def keep(self, answers: Sequence[Any]) -> None:
        """Answers that have come."""

    def lose(self, numbers: Sequence[int], reason: str) -> None:
        """Regions that have no answer."""

    def close(self) -> None:
        """No answer comes any more."""


@dataclass(frozen=True)
class Running:
    """How a batch runs: its listener, the number of workers, what keeps its answers.

    `keeper`: made for each batch, of a function that gives the answer which says nothing of a piece.
    """

    progress: Listener | bool | None = None
    n_jobs: int | None = None
    keeper: Callable[[Any], Keeper] = lambda blank: Keeper()


def ask_all(
    ask: Ask,
    task: Any,
    pieces: Pieces,
    running: Running,
    *,
    what: str = "",
    stopped: Callable[[Any], bool] = lambda answer: False,
    blank: Callable[[Any], Any] | None = None,
    together: Together | None = None,
) -> dict[int, Any]:
    """By region, the answers of ask(task, piece, report), until one was `stopped` or Ctrl-C.

    `blank` gives the answer, or for a block the answers, that say nothing about a piece. Many pieces may be
    answered `together` first. What was not begun, or was lost with a worker, has no answer. An answer may be
    a lot it was given with: see `made`. A second Ctrl-C is raised.
    """
    keeper = Keeper() if blank is None else running.keeper(blank)
    known = keeper.known(pieces)
    rest = pieces.without(known) if known else pieces.copy()
    with listener(running.progress, what) as tell:
        answers = running.progress.answers if isinstance(running.progress, Collector) else {}
        answers.update(known)
        batch = _Batch(ask, task, rest, running, tell, stopped, pieces.regions(), keeper, answers)
        try:
            batch.run(together)
        except KeyboardInterrupt:
            if batch.stopping:
                raise
        finally:
            keeper.close()
            batch.complain()
    return batch.found


@dataclass(eq=False)
class _Batch:
    """The pieces that wait, those that are answered, and the listener."""

    ask: Ask
    task: Any
    waiting: Pieces
    running: Running
    tell: Listener | None
    stopped: Callable[[Any], bool]
    total: int
    keeper: Keeper
    found: dict[int, Any]
    stopping: bool = False

    def __post_init__(self) -> None:
        self._done = self.total - self.waiting.regions()
        self._last: dict[int, Sequence[float]] = {}  # reports of the pieces under way
        self._at: dict[int, int] = {}  # how many of their regions are done
        self._deaths = self._lost = 0

    def run(self, together: Together | None) -> None:
        """Here, on workers where they pay or are asked for, and here again where there are none."""
        if together is not None and self.waiting:
            self._together(together)
        if not self.waiting or self.stopping:
            return
        jobs = wanted(self.running.n_jobs) or -1
        if jobs == -1:
            self._here(may_move=True)
        if self.waiting and not self.stopping and jobs != 1:
            self._on_workers(jobs if remote() else min(jobs, len(self.waiting)))
        if not self.stopping:
            self._here(may_move=False)

    def complain(self) -> None:
        """Say what dead workers have cost."""
        if self._deaths:
            cost = f"{self._lost} of {self.total} are not answered" if self._lost else "its work was repeated"
            message = f"a worker ran out of memory or was killed: {cost}"
            if isinstance(self.tell, Collector):
                self.tell.complaints.append(message)
            else:
                warnings.warn(message, RuntimeWarning, stacklevel=4)

    def _say(self, index: int, known: Sequence[float]) -> None:
        """Tell the listener what is known of a region; it may want to stop."""
        if self.tell is not None and not self.stopping:
            lower, upper, nodes, seconds = known
            done = self._done + sum(self._at.values())
            progress = Progress(index, done, self.total, lower, upper, int(nodes), seconds)
            self.stopping |= wants_to_stop(self.tell(progress))

    def _report(self, i: int, known: Sequence[float], at: int) -> bool:
        """Tell what is known of a piece, at which of its regions; whether to stop."""
        if self.tell is not None and not self.stopping:
            self._last[i], self._at[i] = known, at
            self._say(self.waiting.numbers(i)[at], known)
        return self.stopping

    def _finish(self, i: int, answer: Any) -> None:
        """Take the answer to a piece, and tell."""
        last = self.waiting.numbers(i)[-1]
        self._settle(i, answer)
        self._say(last, self._last.pop(i, (-np.inf, np.inf, 0, 0.0)))

    def _settle(self, i: int, answer: Any) -> None:
        """Take the answer to a piece."""
        self.stopping |= self.stopped(answer)
        numbers, answers = self.waiting.numbers(i), self.waiting.answers(answer)
        found = {k: each for k, each in zip(numbers, answers, strict=False) if each is not None}
        self.found.update(found)
        self._gone(i)
        self.keeper.keep(list(found.values()))

    def _together(self, together: Together) -> None:
        """What can be answered in lots."""
        for lot in together(self.waiting):
            if self.tell is None and type(self.keeper) is Keeper:  # nobody looks at them yet
                self.found.update(dict.fromkeys(lot.numbers.tolist(), lot))
                self.waiting.waiting[lot.numbers] = False
                self._done += len(lot.numbers)
                continue
            for at, i in enumerate(lot.numbers.tolist()):
                self._settle(i, lot.answer(at))
                if self.tell is not None:
                    self._say(i, lot.known(at))
                if self.stopping:
                    return

    def _here(self, may_move: bool) -> None:
        """One after the other; `may_move`: until workers would pay. A search cut off then is forgotten."""
        start, begun_with = time.perf_counter(), len(self.waiting)

        def pays(trial: int, seconds: float) -> bool:
            remaining, spent = len(self.waiting), time.perf_counter() - start
            done = begun_with - remaining
            enough = may_move and remaining > 1 and (done >= trial or spent > seconds)
            return enough and spent / max(done, 1) * remaining > _WORTH and cores() > 1

        for i in list(self.waiting):
            moved = False

            def report(
                lower: float, upper: float, nodes: int, seconds: float, at: int = 0, i: int = i
            ) -> bool:
                nonlocal moved
                stop = self._report(i, (lower, upper, nodes, seconds), at)
                moved = not stop and pays(sys.maxsize, _ALONE)
                return moved or self.stopping

            try:
                answer = self.ask(self.task, self.waiting[i], report)
            except Stopped:
                self.stopping = not moved
                return
            if moved:
                return
            self._finish(i, answer)
            if self.stopping or pays(_TRIAL, _ALONE):
                return

    def _on_workers(self, jobs: int) -> None:
        """All that waits; what was under way when a worker died is divided and tried again, until one piece
        alone is to blame.
        """
        parcel = packed(self.ask, self.task)
        if parcel is None:
            return
        died = Counter[int]()
        try:
            self._groups([list(self.waiting)], died, parcel, jobs)
        except OSError as error:  # no processes, or no more of them: a sandbox, a limit
            if remote():
                raise GpcertError(f"no worker of the cluster answers ({error})") from error
        for i in [i for i in self.waiting if died[i] and not self.stopping]:
            self._lose(i, "a worker died of it, and there is no other")  # never here

    def _groups(self, groups: list[list[int]], died: Counter[int], parcel: Any, jobs: int) -> None:
        while groups and not self.stopping:
            group, before = groups.pop(0), len(self.waiting)
            begun, count = self._on(group, parcel, jobs)
            if not count:
                continue
            self._deaths += count
            died.update(begun * count)
            rest = [i for i in group if i in self.waiting and i not in begun]
            if not begun and len(self.waiting) == before:  # they die before they begin
                if not remote():
                    return
                if self._deaths >= 2 * TRIED:
                    raise TimeoutError("its workers die before they begin")
            if len(begun) == 1 and died[begun[0]] >= TRIED:
                self._lose(begun.pop(), f"{TRIED} workers died of it")
            groups += [part for part in (rest, begun[::2], begun[1::2]) if part]

    def _lose(self, i: int, reason: str) -> None:
        """A piece that nothing can be said about."""
        numbers = self.waiting.numbers(i)
        self._lost += len(numbers)
        self._gone(i)
        self.keeper.lose(numbers, reason)

    def _gone(self, i: int) -> None:
        """A piece waits no more."""
        self._done += len(self.waiting.numbers(i))
        self._at.pop(i, None)
        self.waiting.pop(i)

    def _on(self, group: list[int], parcel: Any, jobs: int) -> tuple[list[int], int]:
        """A group on workers; if some of them died, the pieces that were under way, and how many."""
        with deaf():
            path, board = Board.made(len(group))
        call = Call(uuid.uuid4().hex, path, len(group))
        results: SimpleQueue[Any] = SimpleQueue()
        pieces, ended = [(row, self.waiting[i]) for row, i in enumerate(group)], False
        sent = parallel(jobs), call, parcel, pieces, board, results
        feeder = threading.Thread(target=feed, args=sent, daemon=True)
        try:
            feeder.start()
            while not ended:
                try:
                    ended = self._hear(group, board, results)
                except KeyboardInterrupt:  # which may have come with the last word in hand
                    if self.stopping:
                        raise
                    self.stopping = True
                    ended = not feeder.is_alive() and results.empty()
                if self.stopping:
                    board.stop()
        except BaseException as error:  # a cancelled task is no Exception
            count = deaths(error)
            if not count:
                raise
            ended = True
            return [group[row] for row in board.begun() if group[row] in self.waiting], count
        finally:
            board.stop()
            if not ended:
                kill()
                feeder.join(_PATIENCE)  # threads of a shared backend must not meet those of the next call
            board.remove()
        return [], 0

    def _hear(self, group: list[int], board: Board, results: SimpleQueue[Any]) -> bool:
        """Wait a moment for an answer, and look at the board; True: that was all."""
        said: Any = ()
        with suppress(Empty):
            said = results.get(timeout=_LOOK)
        if isinstance(said, BaseException):
            raise said
        if said is None:
            return True
        if said:
            row, answer = said
            self._take(group[row], row, answer, board)
        for row in board.news() if self.tell is not None else ():
            if group[row] in self.waiting and not self.stopping:
                *known, at = board.last(row)
                self._report(group[row], known, int(at))
        return False

    def _take(self, i: int, row: int, answer: Any, board: Board) -> None:
        """What a worker has said about a piece."""
        if isinstance(answer, MemoryError):
            self._deaths += 1
            self._lose(i, "it ran out of memory")
        elif not isinstance(answer, Stopped):
            if board.reported(row):
                self._last[i] = board.last(row)[:-1]
            self._finish(i, answer)

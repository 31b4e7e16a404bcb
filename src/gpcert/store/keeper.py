"""Between the executor and a store: what is known already, and answers kept as they come.

Answers are written by a thread of their own, many in one transaction where they come fast: the computation
does not wait for the disk. `close` waits until all of them are on it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, Queue
from typing import Any

from gpcert.errors import StoreError
from gpcert.posterior import Posterior
from gpcert.results import Answer
from gpcert.running import Keeper, Pieces
from gpcert.store.joining import interrupted
from gpcert.store.rows import key_of
from gpcert.store.store import Store

#: Answers that wait to be written, at most: memory stays constant however slow the disk is.
_MOST = 1000


#: The kept answer as it is given out; None: it is asked again.
Served = Callable[[Answer], Answer | None]


def keeping(
    store: Any, posts: Sequence[Posterior], what: str, served: Served | None = None
) -> Callable[[Any], Keeper]:
    """Keepers for the questions of one call: a Store, or the path of one, with the models they are about."""
    kept = store if isinstance(store, Store) else Store(store)
    for post in posts:
        kept.add_model(post)
    if isinstance(kept, Plan):
        return kept.planner
    return lambda blank: _Keeper(kept, blank, what, served or _unproved)


def name_rows(store: Any, names: Iterable[tuple[Answer, str]]) -> None:
    """What rows are called, kept beside answers about them if possible: no answer is lost for a name."""
    kept = store if isinstance(store, Store) else Store(store)
    if not isinstance(kept, Plan):
        with suppress(StoreError):
            kept.name_rows(names)
        kept.close()


def _unproved(answer: Any) -> Any:
    """Nobody has asked for its proof, or looked whether there still is one."""
    asked = getattr(answer, "proof", None) is not None or getattr(answer, "unproved", None) is not None
    return replace(answer, proof=None, unproved=None) if asked else answer


class Plan(Store):
    """Given as the store of a question, it notes what would be asked, and nothing is computed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.blanks: list[Answer] = []

    def planner(self, blank: Callable[[Any], Any]) -> Keeper:
        """What a batch hears: that all is known."""
        return _Planner(blank, self.blanks)


class _Planner(Keeper):
    def __init__(self, blank: Callable[[Any], Any], blanks: list[Answer]) -> None:
        self._blank, self._blanks = blank, blanks

    def known(self, pieces: Pieces) -> dict[int, Any]:
        """Nothing remains to ask."""
        found = {k: blank for i in pieces for k, blank in _blanks(pieces, i, self._blank)}
        self._blanks += found.values()
        return found


def _blanks(pieces: Pieces, i: int, blank: Callable[[Any], Any]) -> Iterable[tuple[int, Answer]]:
    """Of each region of a piece the answer that says nothing."""
    return zip(pieces.numbers(i), pieces.answers(blank(pieces[i])), strict=True)


class _Keeper(Keeper):
    """Of one batch; `blank` gives, of a piece, the answer that says nothing, or one for each of its parts."""

    def __init__(self, store: Store, blank: Callable[[Any], Any], what: str, served: Served) -> None:
        self._store, self._blank, self._what, self._served = store, blank, what, served
        self._asked: dict[int, Answer] = {}
        self._queue: Queue[list[Answer] | None] = Queue(_MOST)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._begun = self._told = False

    def known(self, pieces: Pieces) -> dict[int, Any]:
        """The answers that need not be asked for, by the number of the region."""
        lost, found = self._store.set_aside_keys(), {}
        for i in pieces:
            for k, blank in _blanks(pieces, i, self._blank):
                answer = self._find(blank, lost)
                if answer is None:
                    self._asked[k] = blank
                else:
                    found[k] = answer
        return found

    def _find(self, asked: Answer, lost: Container[bytes]) -> Answer | None:
        """What was set aside is not tried again: it may end the process again."""
        key = asked.key
        if key_of(key) in lost:
            return asked
        found = self._store.find(key, asked.settings)
        return None if found is None else self._served(found)

    def keep(self, answers: Sequence[Any]) -> None:
        """Answers that have come; an interrupted one is not what was asked for."""
        self._check()
        some = [answer for answer in answers if not interrupted(answer)]
        if not some:
            return
        if self._thread is None:
            self._begin()
            self._thread = threading.Thread(target=self._write, args=(self._store.run,), daemon=True)
            self._thread.start()
        self._queue.put(some)

    def lose(self, numbers: Sequence[int], reason: str) -> None:
        """Regions that nothing can be said about are remembered as such."""
        self._begin()
        self._store.set_aside([self._asked[k] for k in numbers], reason)

    def close(self) -> None:
        """All is on the disk, or an error says why not."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        if self._begun:
            self._begun = False
            if self._failure is None:
                self._store.end()
        self._store.close()  # the last to close leaves one file, without a log beside it
        self._check()

    def _begin(self) -> None:
        if self._store.run is None:
            self._store.begin(self._what)
            self._begun = True

    def _write(self, run: int | None) -> None:
        """In the thread: all that waits goes into one transaction, pieces undivided."""
        store = Store(self._store.path)
        batch: list[Answer] | None = []
        while batch is not None:
            batch, waiting = self._queue.get(), []
            while batch:
                waiting += batch
                try:
                    batch = self._queue.get_nowait() if len(waiting) < _MOST else []
                except Empty:
                    batch = []
            if waiting and self._failure is None:
                try:
                    store.put(waiting, run)
                except BaseException as error:
                    self._failure = error  # raised by the next call; the queue is emptied all the same
        store.close()

    def _check(self) -> None:
        if self._failure is not None and not self._told:
            self._told = True
            raise self._failure

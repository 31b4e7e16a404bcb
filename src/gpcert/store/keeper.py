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

    def divided(self, pieces: Pieces) -> tuple[Pieces, dict[int, Any]]:
        """Nothing remains to ask."""
        found = {i: self._blank(piece) for i, piece in pieces.items()}
        for blank in found.values():
            self._blanks += [blank] if isinstance(blank, Answer) else blank
        return Pieces(0, pieces.get), found


class _Keeper(Keeper):
    """Of one batch; `blank` gives, of a piece, the answer that says nothing, or one for each of its parts."""

    def __init__(self, store: Store, blank: Callable[[Any], Any], what: str, served: Served) -> None:
        self._store, self._blank, self._what, self._served = store, blank, what, served
        self._known: dict[int, list[Answer | None]] = {}
        self._asked: dict[int, list[Answer]] = {}
        self._queue: Queue[list[Answer] | None] = Queue(_MOST)
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._begun = self._told = False

    def divided(self, pieces: Pieces) -> tuple[Pieces, dict[int, Any]]:
        """Pieces, or what remains of them, that have to be asked; and the answers to the others."""
        rest = pieces.copy()
        found: dict[int, Any] = {}
        lost = self._store.set_aside_keys()
        for i, piece in pieces.items():
            blank = self._blank(piece)
            single = isinstance(blank, Answer)
            parts = [blank] if single else list(blank)
            known = [self._find(part, lost) for part in parts]
            missing = [at for at, answer in enumerate(known) if answer is None]
            if not missing:
                rest.pop(i)
                found[i] = known[0] if single else known
                continue
            self._asked[i] = [parts[at] for at in missing]
            if len(missing) < len(parts):
                rest[i], self._known[i] = piece[missing], known
        return rest, found

    def _find(self, asked: Answer, lost: Container[bytes]) -> Answer | None:
        """What was set aside is not tried again: it may end the process again."""
        key = asked.key
        if key_of(key) in lost:
            return asked
        found = self._store.find(key, asked.settings)
        return None if found is None else self._served(found)

    def at(self, i: int, at: int) -> int:
        """Which part of the whole piece it is."""
        if i not in self._known:
            return at
        missing = [place for place, answer in enumerate(self._known[i]) if answer is None]
        return missing[at]

    def whole(self, i: int, answer: Any) -> Any:
        """Keep what was answered; with what was known before, it is the answer to the whole piece."""
        self._check()
        single = isinstance(answer, Answer)
        self._keep([a for a in ([answer] if single else answer) if a is not None and not interrupted(a)])
        self._asked.pop(i, None)
        if i not in self._known:
            return answer
        new, merged, ended = iter(answer), [], object()
        for known in self._known.pop(i):
            each = next(new, ended) if known is None else known
            if each is ended:  # stopped here; None: this one was, others of the piece were not
                break
            merged.append(each)
        return merged

    def lose(self, i: int, reason: str) -> None:
        """A piece that nothing can be said about is remembered as such."""
        self._begin()
        self._store.set_aside(self._asked.pop(i, []), reason)

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

    def _keep(self, answers: list[Answer]) -> None:
        if not answers:
            return
        if self._thread is None:
            self._begin()
            self._thread = threading.Thread(target=self._write, args=(self._store.run,), daemon=True)
            self._thread.start()
        self._queue.put(answers)

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

"""`Store`: answers in one file, one for each question, with the models they are about."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from gpcert.errors import GpcertError, StoreError
from gpcert.model_file import model_bytes, model_of
from gpcert.posterior import Posterior
from gpcert.results import Answer, Key
from gpcert.settings import Settings
from gpcert.store.file import clear_errors, connect, is_begun, transaction
from gpcert.store.joining import sharp_enough
from gpcert.store.listing import Listing
from gpcert.store.rows import (
    BESIDE,
    SEALED,
    SEALS,
    WHOLE,
    answer_of,
    intact,
    key_of,
    numbers_of,
    put_row,
    where_of,
)
from gpcert.validation import require
from gpcert.version import __version__

_TEXTS = ("kind", "status", "model")
_LISTED = f"FROM answers a {BESIDE}"
_NUMBERS = ("lower", "upper", "width", "tolerance", "max_seconds", "max_nodes", "seconds", "created")

_LOT = 500  # answers merged in one transaction

#: Writes what a row is called, by the key of a question about it; the first name stays.
NAMED = "INSERT OR IGNORE INTO pieces VALUES ('row', ?, ?, 0)"


class Store:
    """Answers and models in one file that many processes may open at once.

    `store=` of a question keeps each answer as it comes, and what is kept is not computed again. Two answers
    to one question become one, with the narrower of each two ends. The file is made when it is first written
    to.

    A file is trusted as far as a file of results is: what is read has the form of an answer to the question,
    about the model that was given; whether its numbers are true is not looked at.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    StoreError
        By every method, if the file is damaged, foreign, newer, read-only, full, or busy for too long.

    Examples
    --------
    >>> import tempfile
    >>> clf = gc.GPClassifier(max_evals=0).fit([[0], [1], [2], [3]], ["a", "a", "b", "b"])
    >>> store = gc.Store(tempfile.mktemp(".db"))
    >>> gc.certify(clf, gc.Ball([0.2], 0.1), store=store).status.value, len(store.answers())
    ('safe', 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        require(isinstance(path, str | os.PathLike), f"store must be a path or a Store, got {path!r}")
        self.path = Path(os.fspath(path))
        self.run: int | None = None  #: the run that new answers belong to, if one was begun
        self._connection: sqlite3.Connection | None = None
        self._writes = False

    def answers(
        self, kind: str | None = None, status: str | None = None, model: str | None = None
    ) -> Listing:
        """What is known of the answers.

        Parameters
        ----------
        kind : str, optional
            Only answers of this class, such as "Verdict".
        status : str, optional
            Only answers with this status.
        model : str, optional
            Only answers about the model with this digest.

        Returns
        -------
        Listing
            One row for each.
        """
        columns = [f"CAST({name} AS TEXT)" for name in ("a.kind", "a.status", "m.digest")]
        columns += [*(f"CAST(a.{name} AS REAL)" for name in _NUMBERS), "CAST(a.run AS INTEGER)"]
        where, given = where_of({"a.kind": kind, "a.status": status, "m.digest": model})
        found = self.verified(f"{', '.join(columns)} {_LISTED} {where} ORDER BY a.id", given)
        return Listing.of(("id", *_TEXTS, *_NUMBERS, "run"), ((row[0], *row[SEALS:]) for row in found))

    def counts(self, kind: str | None = None, status: str | None = None, model: str | None = None) -> Listing:
        """How many answers of each kind have which status, and the seconds that they took.

        Parameters
        ----------
        kind : str, optional
            Only answers of this class, such as "Verdict".
        status : str, optional
            Only answers with this status.
        model : str, optional
            Only answers about the model with this digest.

        Returns
        -------
        Listing
            One row for each kind and status.
        """
        where, given = where_of({"a.kind": kind, "a.status": status, "m.digest": model})
        seconds: dict[tuple[str, str], list[float]] = {}
        for row in self.verified(f"1 {_LISTED} {where}", given):
            seconds.setdefault((row[4], row[5]), []).append(row[10])
        rows = ((*of, len(each), sum(each)) for of, each in sorted(seconds.items()))
        return Listing.of(("kind", "status", "count", "seconds"), rows)

    def verified(self, rest: str, given: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of SELECT SEALED and the rest; an error where an answer in them is not what was written."""
        for row in self.reading(f"SELECT {SEALED}, {rest}", given):
            if row[0] is not None and not intact(*row[1:SEALS]):
                raise StoreError(f"{self.path}, answer {row[0]} is damaged: it is not what was written")
            yield row

    def runs(self) -> Listing:
        """The runs: what was asked, when, by which version, how many answers stem from it.

        Returns
        -------
        Listing
            One row for each.
        """
        sql = f"""SELECT id, CAST(what AS TEXT), CAST(started AS REAL), CAST(ended AS REAL),
        CAST(version AS TEXT), coalesce(a.n, 0), coalesce(l.n, 0), CAST(surroundings AS TEXT) FROM runs
        LEFT JOIN {numbers_of("answers", "run")} a ON a.of = id
        LEFT JOIN {numbers_of("lost", "run")} l ON l.of = id ORDER BY id"""
        names = ("id", "what", "started", "ended", "version", "answers", "lost", "surroundings")
        return Listing.of(names, self.reading(sql))

    def models(self) -> Listing:
        """The models.

        Returns
        -------
        Listing
            One row for each; `model(digest)` loads one.
        """
        sql = f"""SELECT CAST(digest AS TEXT), CAST(target AS TEXT), CAST(version AS TEXT),
        CAST(created AS REAL), length(content), coalesce(a.n, 0) FROM models
        LEFT JOIN {numbers_of("answers", "model")} a ON a.of = id ORDER BY id"""
        return Listing.of(("digest", "target", "version", "created", "bytes", "answers"), self.reading(sql))

    def lost(self) -> Listing:
        """Questions that were set aside, since the processes that tried to answer them died.

        Returns
        -------
        Listing
            One row for each.
        """
        sql = """SELECT id, CAST(kind AS TEXT), CAST(reason AS TEXT), CAST(created AS REAL),
        CAST(run AS INTEGER) FROM lost ORDER BY id"""
        return Listing.of(("id", "kind", "reason", "created", "run"), self.reading(sql))

    def model(self, digest: str) -> Posterior:
        """A model, checked as `gc.load` does.

        Parameters
        ----------
        digest : str
            Its digest, or a beginning that only one has.

        Returns
        -------
        Posterior
            The model.
        """
        rows = list(
            self.reading(
                "SELECT digest, content, sha256 FROM models WHERE substr(digest, 1, ?) = ?",
                (len(digest), digest),
            )
        )
        require(len(rows) == 1, f"model must be the digest of one model in {self.path}, got {digest!r}")
        ((own, content, written),) = rows
        whole = isinstance(content, bytes) and sha256(content).hexdigest() == written
        post = model_of(content, f"{self.path}, model {own[:12]}") if whole else None
        if post is None or post.digest != own:
            raise StoreError(f"{self.path} is damaged: model {own[:12]} is not what was written")
        return post

    def answer(self, number: int) -> Answer:
        """One answer, checked.

        Parameters
        ----------
        number : int
            Its id, as in `answers()`.

        Returns
        -------
        Answer
            To the bit what was written.
        """
        rows = list(self.reading(f"{WHOLE} WHERE a.id = ?", (number,)))
        require(len(rows) == 1, f"id must be that of an answer in {self.path}, got {number}")
        return answer_of(self.path, *rows[0])

    def load(
        self, kind: str | None = None, status: str | None = None, model: str | None = None
    ) -> Iterator[Answer]:
        """The answers themselves, one after the other, checked.

        Parameters
        ----------
        kind : str, optional
            Only answers of this class, such as "Verdict".
        status : str, optional
            Only answers with this status.
        model : str, optional
            Only answers about the model with this digest.

        Returns
        -------
        iterator of Answer
            In the order of their ids.
        """
        where, given = where_of({"a.kind": kind, "a.status": status, "m.digest": model})
        rows = self.reading(f"{WHOLE} {where} ORDER BY a.id", given)
        return (answer_of(self.path, *row) for row in rows)

    def numbers(self) -> list[int]:
        """Ids of all answers that can be reached, from both ends of a damaged file."""
        found: set[int] = set()
        for order in ("ASC", "DESC"):
            with suppress(StoreError):
                for (number,) in self.reading(f"SELECT id FROM answers ORDER BY id {order}"):
                    found.add(number)
        return sorted(found)

    def find(self, key: Key, settings: Settings) -> Answer | None:
        """The answer to this question, if there is one that was searched for as sharply as this."""
        rows = self.reading(f"{WHOLE} WHERE a.key = ?", (key_of(key),)) if self._exists() else ()
        for row in rows:
            if not intact(*row[1:]) or sharp_enough(Settings(*row[-3:]), settings):
                return answer_of(self.path, *row)
        return None

    def best(self, key: Key) -> Answer | None:
        """The best answer to this question that there is, however it was searched for."""
        return self.find(key, Settings(math.inf, 0.0, 0.0))

    # Writing

    def add_model(self, post: Posterior) -> int:
        """Keep the model, once; its number."""
        found = self._model_number(post.digest) if self._exists() else None
        if found is not None:
            return found
        try:
            content = model_bytes(post)
        except GpcertError as error:
            raise StoreError(f"a store must hold the model, which cannot be saved: {error}") from None
        row = post.digest, content, sha256(content).hexdigest(), post.target, __version__, time.time()
        with self.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO models (digest, content, sha256, target, version, created) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
        number = self._model_number(post.digest)
        assert number is not None
        return number

    def begin(self, what: str, surroundings: dict[str, str] | None = None) -> int:
        """A run begins: answers that are put from now on belong to it."""
        about = json.dumps(surroundings or {})
        with self.writing() as connection:
            made = connection.execute(
                "INSERT INTO runs (what, started, version, surroundings) VALUES (?, ?, ?, ?)",
                (what, time.time(), __version__, about),
            )
        self.run = int(made.lastrowid or 0)
        return self.run

    def end(self) -> None:
        """The run has ended."""
        with self.writing() as connection:
            connection.execute("UPDATE runs SET ended = ? WHERE id = ?", (time.time(), self.run))
        self.run = None

    def put(self, answers: Iterable[Answer], run: int | None = None) -> None:
        """Keep answers, all of them or none; each joined with what is there."""
        with self.writing() as connection:
            for answer in answers:
                put_row(connection, self.path, answer, self.run if run is None else run)

    def name_rows(self, names: Iterable[tuple[Answer, str]]) -> None:
        """What the rows are called that these answers are about; of several with one question the first."""
        rows = [(key_of(answer.key).hex(), name) for answer, name in names]
        with self.writing() as connection:
            connection.executemany(NAMED, rows)

    def row_of(self, answer: Answer) -> str | None:
        """What the row is called that it is about; None: nobody has said."""
        sql = "SELECT CAST(data AS TEXT) FROM pieces WHERE place = 'row' AND key = ?"
        return next((name for (name,) in self.reading(sql, (key_of(answer.key).hex(),))), None)

    def set_aside(self, asked: Sequence[Answer], reason: str) -> None:
        """Remember questions that could not be answered, by answers that say nothing."""
        rows = [(key_of(a.key), self.run, type(a).__name__, reason, time.time()) for a in asked]
        with self.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO lost (key, run, kind, reason, created) VALUES (?, ?, ?, ?, ?)", rows
            )

    def set_aside_keys(self) -> set[bytes]:
        """Which questions were set aside."""
        if not self._exists():
            return set()
        return {bytes(key) for (key,) in self.reading("SELECT CAST(key AS BLOB) FROM lost")}

    def retry(self) -> None:
        """Forget what was set aside: it is tried again, say on a larger machine."""
        with self.writing() as connection:
            connection.execute("DELETE FROM lost")

    def compact(self) -> tuple[int, int]:
        """Check all of it, and give unused space back.

        Returns
        -------
        tuple of 2 int
            Bytes before and after.
        """
        for digest in self.models()["digest"]:
            self.model(digest)
        for _ in self.load():
            pass
        with clear_errors(self.path):
            connection = self._open(write=True)
            (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise StoreError(f"{self.path} is damaged ({verdict}); it was left as it is")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            before = self.path.stat().st_size
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before, self.path.stat().st_size

    def close(self) -> None:
        """Close the file; nothing is lost without it: what was put is in the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # The file

    def _exists(self) -> bool:
        return self._connection is not None or is_begun(self.path)

    def _open(self, write: bool) -> sqlite3.Connection:
        if self._connection is None or (write and not self._writes):
            self.close()
            self._connection, self._writes = connect(self.path, write), write
        return self._connection

    def reading(self, sql: str, given: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of the file; by a filter: a bare cursor is closed with them, an error after the store."""
        with clear_errors(self.path):
            yield from filter(None, self._open(write=False).execute(sql, given))

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with clear_errors(self.path):
            connection = self._open(write=True)
            with transaction(connection):
                yield connection

    def _model_number(self, digest: str) -> int | None:
        rows = list(self.reading("SELECT id FROM models WHERE digest = ?", (digest,)))
        return int(rows[0][0]) if rows else None

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self.run)


def _reopened(path: Path, run: int | None) -> Store:
    store = Store(path)
    store.run = run
    return store


class Merged(NamedTuple):
    """How many answers were taken, and how many could not be read."""

    taken: int
    unreadable: int


def merge(target: Store, source: Store) -> Merged:
    """Take over the models and the answers of another store, checked one by one, to join what is there."""
    models, unreadable, taken = set(), 0, 0
    for digest in source.models()["digest"]:
        try:
            target.add_model(source.model(digest))
            models.add(digest)
        except GpcertError:
            continue
    target.begin(f"merge of {source.path}")
    lot: list[Answer] = []
    names: list[tuple[Answer, str]] = []
    for number in source.numbers():
        try:
            answer = source.answer(number)
        except GpcertError:
            unreadable += 1
            continue
        if answer.model not in models:
            unreadable += 1
            continue
        lot.append(answer)
        if (name := source.row_of(answer)) is not None:
            names.append((answer, name))
        if len(lot) == _LOT:
            target.put(lot)
            taken, lot = taken + len(lot), []
    target.put(lot)
    target.name_rows(names)
    target.end()
    return Merged(taken + len(lot), unreadable)

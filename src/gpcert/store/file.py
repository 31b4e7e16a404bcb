"""The SQLite file of a store: made, opened and checked; what goes wrong is one sentence.

A store may come from a stranger: its tables must be ours to the letter (no trigger, no view), nothing in it
is executed, and what is read from it is checked by the reader.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from gpcert.errors import StoreError

VERSION = 2
_APPLICATION = 0x67706374  # "gpct"
#: Seconds to wait for another process that writes.
PATIENCE = 60.0

#: Answers in two tables: a damaged page of contents costs its answers, not the list of them. `key`: SHA-256
#: of the digests of model, region and question; tolerance and limits: the sharpest for which the answer is as
#: good as a new one. `lost`: what could not be answered. `asked`: what campaigns ask, and whether the model's
#: label is the true one. `pieces`: small records by place and key.
_TABLES = (
    """CREATE TABLE models (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, content BLOB NOT NULL,
sha256 TEXT NOT NULL, target TEXT NOT NULL, version TEXT NOT NULL, created REAL NOT NULL)""",
    """CREATE TABLE runs (id INTEGER PRIMARY KEY, what TEXT NOT NULL, started REAL NOT NULL, ended REAL,
version TEXT NOT NULL, surroundings TEXT NOT NULL)""",
    """CREATE TABLE answers (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, model INTEGER NOT NULL,
run INTEGER, kind TEXT NOT NULL, status TEXT NOT NULL, lower REAL, upper REAL, width REAL NOT NULL,
tolerance REAL NOT NULL, max_seconds REAL NOT NULL, max_nodes REAL NOT NULL, seconds REAL NOT NULL,
created REAL NOT NULL)""",
    "CREATE TABLE contents (id INTEGER PRIMARY KEY, data TEXT NOT NULL, sha256 TEXT NOT NULL)",
    """CREATE TABLE lost (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, run INTEGER, kind TEXT NOT NULL,
reason TEXT NOT NULL, created REAL NOT NULL)""",
    """CREATE TABLE asked (campaign TEXT NOT NULL, part INTEGER NOT NULL, item INTEGER NOT NULL,
key BLOB NOT NULL, truth INTEGER, PRIMARY KEY (campaign, part, item)) WITHOUT ROWID""",
    """CREATE TABLE pieces (place TEXT NOT NULL, key TEXT NOT NULL, data TEXT NOT NULL,
number INTEGER NOT NULL, PRIMARY KEY (place, key)) WITHOUT ROWID""",
)


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """The open store; `write`: made where there is none, else only read."""
    with clear_errors(path):
        if not write:
            return _checked(path, _to_read(path))
        if path.exists() and not path.is_file():
            raise StoreError(f"store must be a file, got {path}")
        if not path.parent.is_dir():
            raise StoreError(f"store must be in a folder that exists, got {path}")
        connection = _open(f"{path.absolute().as_uri()}?mode=rwc")
        if not _is_store(connection):
            _make(connection, path)
        _checked(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        # Every commit reaches the disk before the next begins: what is kept survives a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        return connection


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as one sentence each; none of them has changed what was committed before."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # the latter of names in a damaged schema
        message = str(error)
        kept = "what was committed before is kept"
        reasons = {
            "file is not a database": f"{path} must be a gpcert store, got a file that is not one",
            "full": f"{path} could not be written ({message}); {kept}",
            "I/O error": f"{path} could not be read or written ({message}); {kept}",
            "malformed": f"{path} is damaged ({message}); it was left as it is: what can be read of it goes "
            f"to a new store by gpcert store merge NEW {path}",
            "decode": f"{path} is damaged: it holds a text that is none; it was left as it is",
            "readonly": f"{path} must be a store that can be written, got one that is read-only",
            "unable to open": f"{path} must be a file, in a folder, that can be opened ({message})",
            "locked": f"{path} was in use by another process for {PATIENCE:g} s; {kept}",
        }
        found = next((said for sign, said in reasons.items() if sign in message), f"{path}: {message}")
        raise StoreError(found) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it is written, or nothing; nobody else writes in between."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _open(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _to_read(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise StoreError(f"store must be a file that exists, got {path}")
    uri = path.absolute().as_uri()
    connection = _open(f"{uri}?mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # A folder where nothing can be written: nobody writes to the store either, unless a log says so.
        if _has(path, "wal") or _has(path, "journal"):
            raise
        connection = _open(f"{uri}?immutable=1")
    return connection


def _has(path: Path, log: str) -> bool:
    return os.path.exists(f"{path}-{log}") and os.path.getsize(f"{path}-{log}") > 0


def is_begun(path: Path) -> bool:
    """Whether there is anything in the file. Where the process that made it was killed at that, what
    was written is taken back first: only one who may write can do so, and a half of it reads like damage.
    """
    if path.is_file() and _has(path, "journal"):
        with suppress(sqlite3.Error), closing(_open(f"{path.absolute().as_uri()}?mode=rw")) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return path.exists() and path.stat().st_size > 0


def _is_store(connection: sqlite3.Connection) -> bool:
    """Whether anything is in the file."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(tables or connection.execute("PRAGMA application_id").fetchone()[0])


def _make(connection: sqlite3.Connection, path: Path) -> None:
    with transaction(connection):
        if not _is_store(connection):  # another process may have been first
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


def _checked(path: Path, connection: sqlite3.Connection) -> sqlite3.Connection:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise StoreError(f"{path} must be a gpcert store, got another database or an empty file")
    if version != VERSION:
        raise StoreError(f"{path} must be a store of version {VERSION}, got {version}: of another gpcert")
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found != set(_TABLES):
        raise StoreError(f"{path} must have the tables of a gpcert store and no others, got others")
    return connection

"""Answers as rows of the tables: under which key, joined with what is there, sealed; and which are wanted."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import Any

from gpcert.errors import GpcertError, StoreError, contradicted
from gpcert.results import Answer, Key, answer_from_dict
from gpcert.store.joining import effort, headline, joined

#: An answer's content with its seal, and the columns of the tables that the seal is about.
SEALED = """a.id, c.data, c.sha256, CAST(a.key AS BLOB), CAST(a.kind AS TEXT), CAST(a.status AS TEXT),
CAST(m.digest AS TEXT), CAST(a.lower AS REAL), CAST(a.upper AS REAL), CAST(a.width AS REAL),
CAST(a.seconds AS REAL), CAST(a.tolerance AS REAL), CAST(a.max_seconds AS REAL), CAST(a.max_nodes AS REAL)"""
#: How many columns that is.
SEALS = 14
#: Where they stand: joined to the answers a.
BESIDE = "LEFT JOIN contents c ON c.id = a.id LEFT JOIN models m ON m.id = a.model"
#: An answer, with what it has to be checked against.
WHOLE = f"SELECT {SEALED} FROM answers a {BESIDE}"

_NAN = float("nan")


def key_of(key: Key) -> bytes:
    """What identifies a question, without settings, in 32 bytes."""
    return sha256("".join(key[:3]).encode()).digest()


def put_row(connection: sqlite3.Connection, path: Path, answer: Answer, run: int | None) -> None:
    """Keep the answer, with what is known of its question already; in a transaction."""
    key = key_of(answer.key)
    connection.execute("DELETE FROM lost WHERE key = ?", (key,))
    old = connection.execute(f"{WHOLE} WHERE a.key = ?", (key,)).fetchone()
    number = None if old is None else old[0]
    if old is not None:
        known = answer_of(path, *old)
        whole = joined(known, answer)
        if whole is known:
            return
        if whole is None:
            for table in ("answers", "contents"):
                connection.execute(f"DELETE FROM {table} WHERE id = ?", (number,))
            contradicted(f"two answers to one question of {path} contradict each other and are not kept")
            return
        answer = whole
    columns = _columns(answer)
    number = connection.execute(
        "INSERT OR REPLACE INTO answers (id, key, run, kind, status, model, lower, upper, width, seconds, "
        "tolerance, max_seconds, max_nodes, created) "
        "VALUES (?, ?, ?, ?, ?, (SELECT id FROM models WHERE digest = ?), ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, key, run, *columns, time.time()),
    ).lastrowid
    data = json.dumps(answer.to_dict(), allow_nan=False)
    connection.execute(
        "INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", (number, data, _seal(data, key, *columns))
    )


def answer_of(path: Path, number: int, data: Any, sealed: Any, key: bytes, *columns: Any) -> Answer:
    """What was put, to the bit, or an error: SQLite has no checksums of its own."""
    place = f"{path}, answer {number}"
    if not intact(data, sealed, key, *columns):
        raise StoreError(f"{place} is damaged: it is not what was written; gpcert store merge leaves it out")
    try:
        answer = answer_from_dict(json.loads(data))
    except (GpcertError, ValueError, RecursionError) as error:
        raise StoreError(f"{place} is no answer: {error}") from None
    if columns != tuple(None if value != value else value for value in _columns(answer)):
        raise StoreError(f"{place} is damaged: tables show what it does not say")
    if key_of(answer.key) != key:
        raise StoreError(f"{path} is damaged: answer {number} is not to its own question")
    return answer


def _columns(answer: Answer) -> tuple[Any, ...]:
    """What the tables show of an answer."""
    status, *numbers = astuple(headline(answer))
    head = type(answer).__name__, status, answer.model
    return *head, *numbers, seconds_of(answer), *astuple(effort(answer))


def seconds_of(answer: Answer) -> float:
    """What the search took."""
    return float(getattr(getattr(answer, "range", answer), "seconds", 0.0))


def _seal(data: str, key: bytes, kind: str, status: str, model: str, *numbers: float | None) -> str:
    """One hash of content and columns: tables are checked without reading answers."""
    hashed = sha256(data.encode("utf-8", "replace")).hexdigest()
    # As SQLite gives numbers back: without the sign of a zero, and nan as nothing.
    columns = pack(f"<{len(numbers)}d", *[_NAN if v is None or v != v else v + 0.0 for v in numbers])
    return sha256(f"{hashed} {kind} {status} {model} ".encode("utf-8", "replace") + key + columns).hexdigest()


def intact(data: Any, sealed: Any, *columns: Any) -> bool:
    """Whether columns and content are what was written together."""
    complete = isinstance(data, str) and None not in columns[:4]
    return complete and _seal(data, *columns) == sealed


def where_of(wanted: dict[str, str | None]) -> tuple[str, list[str]]:
    """The condition that columns have these values, where they are given, and the values."""
    given = {name: value for name, value in wanted.items() if value is not None}
    return "WHERE " * bool(given) + " AND ".join(f"{name} = ?" for name in given), list(given.values())


def numbers_of(table: str, column: str) -> str:
    """How many rows there are of each value of a column, counted in one pass."""
    return f"(SELECT {column} AS of, count(*) AS n FROM {table} GROUP BY {column})"

"""Answers as rows of the tables: under which key, whether better than what is there; and which are wanted."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import astuple
from hashlib import sha256
from struct import pack
from typing import Any

from gpcert.results import Answer, Key
from gpcert.settings import Settings
from gpcert.store.ranking import effort, headline, sharp_enough

#: An answer's content with its seal, and the columns of the tables that the seal is about.
SEALED = """a.id, c.data, c.sha256, CAST(a.key AS BLOB), CAST(a.kind AS TEXT), CAST(a.status AS TEXT),
CAST(a.lower AS REAL), CAST(a.upper AS REAL), CAST(a.width AS REAL), CAST(a.seconds AS REAL)"""

_NAN = float("nan")


def key_of(key: Key) -> bytes:
    """What identifies a question, settings apart, in 32 bytes."""
    return sha256("".join(key[:3]).encode()).digest()


def put_row(connection: sqlite3.Connection, answer: Answer, data: str, run: int | None) -> None:
    """Keep the answer, whose content is `data`, unless a better one is there; in a transaction."""
    key, head, known = key_of(answer.key), headline(answer), astuple(effort(answer))
    old = connection.execute(
        "SELECT id, width, tolerance, max_seconds, max_nodes FROM answers WHERE key = ?", (key,)
    ).fetchone()
    if old is None:
        number = connection.execute(
            "INSERT INTO answers (key, model, kind, status, width, tolerance, max_seconds, max_nodes, "
            "seconds, created) VALUES (?, (SELECT id FROM models WHERE digest = ?), ?, '', 0, ?, ?, ?, 0, 0)",
            (key, answer.model, type(answer).__name__, *known),
        ).lastrowid
    else:
        number = old[0]
        if sharp_enough(Settings(*known), Settings(*old[2:])):
            connection.execute(
                "UPDATE answers SET tolerance = ?, max_seconds = ?, max_nodes = ? WHERE id = ?",
                (*known, number),
            )
        proved = getattr(answer, "proof", None) is not None  # the same with a proof is more
        if not (head.width < old[1] or (proved and head.width == old[1])):
            return
    connection.execute(
        "UPDATE answers SET run = ?, status = ?, lower = ?, upper = ?, width = ?, seconds = ?, created = ? "
        "WHERE id = ?",
        (run, head.status, head.lower, head.upper, head.width, seconds_of(answer), time.time(), number),
    )
    numbers = head.lower, head.upper, head.width, seconds_of(answer)
    sealed = _seal(data, key, type(answer).__name__, head.status, *numbers)
    connection.execute("INSERT OR REPLACE INTO contents VALUES (?, ?, ?)", (number, data, sealed))
    connection.execute("DELETE FROM lost WHERE key = ?", (key,))


def seconds_of(answer: Answer) -> float:
    """What the search took."""
    return float(getattr(getattr(answer, "range", answer), "seconds", 0.0))


def _seal(data: str, key: bytes, kind: str, status: str, *numbers: float | None) -> str:
    """Two hashes: of the content, and of it with the columns: tables are checked without reading answers."""
    hashed = sha256(data.encode("utf-8", "replace")).hexdigest()
    # As SQLite gives numbers back: without the sign of a zero, and nan as nothing.
    columns = pack("<4d", *[_NAN if v is None or v != v else v + 0.0 for v in numbers])
    text = f"{hashed} {kind} {status} ".encode("utf-8", "replace")
    return f"{hashed} {sha256(text + key + columns).hexdigest()}"


def intact(data: Any, sealed: Any, *columns: Any) -> bool:
    """Whether columns and content are what was written together; not known of what has but one hash."""
    return isinstance(data, str) and _seal(data, *columns) == sealed


def where_of(wanted: dict[str, str | None]) -> tuple[str, list[str]]:
    """The condition that columns have these values, where they are given, and the values."""
    given = {name: value for name, value in wanted.items() if value is not None}
    return "WHERE " * bool(given) + " AND ".join(f"{name} = ?" for name in given), list(given.values())


def numbers_of(table: str, column: str) -> str:
    """How many rows there are of each value of a column, counted in one pass."""
    return f"(SELECT {column} AS of, count(*) AS n FROM {table} GROUP BY {column})"

"""What a campaign has asked of a store, and how far its answers are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gpcert.results import Answer
from gpcert.store.rows import key_of
from gpcert.store.store import Store

__all__ = ["Standing", "clear", "parts_of", "register", "settled", "standings", "widths"]


class Standing(NamedTuple):
    """One question of a campaign about one item: nothing is known where the status is None."""

    item: int
    truth: bool | None  #: whether the model's label is the true one
    status: str | None
    lower: float | None
    upper: float | None
    width: float | None
    seconds: float | None
    lost: int  #: 1: it was set aside


def clear(store: Store, campaign: str) -> None:
    """Forget what a campaign has asked; the answers stay."""
    with store.writing() as connection:
        connection.execute("DELETE FROM asked WHERE campaign = ?", (campaign,))
        connection.execute("DELETE FROM pieces WHERE place = ?", (f"campaign {campaign}",))


def register(
    store: Store,
    campaign: str,
    part: int,
    told: dict[str, Any],
    blanks: Iterable[Answer],
    truths: Sequence[bool | None],
) -> None:
    """Write down one part of what a campaign asks: its description, its questions, what is true."""
    rows = [
        (campaign, part, item, key_of(blank.key), truth)
        for item, (blank, truth) in enumerate(zip(blanks, truths, strict=True))
    ]
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO pieces (place, key, data, number) VALUES (?, ?, ?, ?)",
            (f"campaign {campaign}", str(part), json.dumps(told), part),
        )
        connection.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?)", rows)


def parts_of(store: Store, campaign: str) -> list[dict[str, Any]]:
    """The descriptions of its parts; none: it has not begun."""
    sql = "SELECT CAST(data AS TEXT) FROM pieces WHERE place = ? ORDER BY number"
    return [json.loads(data) for (data,) in store.reading(sql, (f"campaign {campaign}",))]


def standings(store: Store, campaign: str, part: int) -> list[Standing]:
    """Where every question of a part stands."""
    sql = """SELECT item, truth, CAST(status AS TEXT), CAST(lower AS REAL), CAST(upper AS REAL),
    CAST(width AS REAL), CAST(seconds AS REAL), EXISTS (SELECT 1 FROM lost l WHERE l.key = q.key)
    FROM asked q LEFT JOIN answers a ON a.key = q.key WHERE campaign = ? AND part = ? ORDER BY item"""
    return [
        Standing(item, None if truth is None else bool(truth), *rest)
        for item, truth, *rest in store.reading(sql, (campaign, part))
    ]


def widths(store: Store, campaign: str, part: int) -> dict[int, float]:
    """How much is open of each question; inf of those that were never answered."""
    return {s.item: float("inf") if s.width is None else s.width for s in standings(store, campaign, part)}


def settled(store: Store, campaign: str, part: int) -> bool:
    """Whether no larger limit would change anything: nothing is missing but what was lost."""
    sql = """SELECT count(*) FROM asked q LEFT JOIN answers a ON a.key = q.key
    WHERE campaign = ? AND part = ? AND (a.id IS NULL OR a.max_seconds < 9e999)
    AND NOT EXISTS (SELECT 1 FROM lost l WHERE l.key = q.key)"""
    ((left,),) = store.reading(sql, (campaign, part))
    return not left

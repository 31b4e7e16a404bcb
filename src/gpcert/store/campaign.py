"""What a campaign has asked of a store, and how far its answers are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from gpcert.errors import StoreError
from gpcert.results import Answer
from gpcert.store.rows import BESIDE, key_of
from gpcert.store.store import NAMED, Store

#: What is told of a part.
_TOLD = {"ask", "model", "norm", "radius", "radii", "features", "settings", "files"}
_EARLIER = _TOLD - {"settings", "files"} | {"threshold"}


class Truth(IntEnum):
    """Whether the model's label of a row is the true one."""

    WRONG = 0  #: proved: at the row itself another class is more probable
    RIGHT = 1  #: as the predictor sees it; a verdict proves it
    UNSURE = 2  #: the predictor sees another one, too near a tie for a proof


class Standing(NamedTuple):
    """One question of a campaign about one item: nothing is known where the status is None."""

    item: int
    truth: Truth | None  #: None: the data have no labels
    status: str | None
    lower: float | None
    upper: float | None
    width: float | None
    seconds: float | None
    limit: float | None  #: of the seconds that it may take, if it met one
    lost: int  #: 1: it was set aside


def forget(store: Store, campaign: str, parts: int) -> None:
    """Of what a campaign has asked, the parts after so many; the answers stay."""
    with store.writing() as connection:
        connection.execute("DELETE FROM asked WHERE campaign = ? AND part >= ?", (campaign, parts))
        place = f"campaign {campaign}"
        connection.execute("DELETE FROM pieces WHERE place = ? AND number >= ?", (place, parts))


def register(
    store: Store,
    campaign: str,
    part: int,
    told: dict[str, Any],
    blanks: Iterable[Answer],
    truths: Sequence[Truth | None],
    names: Sequence[str],
) -> None:
    """Write down one part of what a campaign asks, about rows with these names, in place of what was there:
    whoever looks from elsewhere sees a whole part, before and after.
    """
    rows = [
        (campaign, part, item, key_of(blank.key), truth)
        for item, (blank, truth) in enumerate(zip(blanks, truths, strict=True))
    ]
    with store.writing() as connection:
        connection.execute("DELETE FROM asked WHERE campaign = ? AND part = ?", (campaign, part))
        connection.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?)", rows)
        called = [(key.hex(), name) for (*_, key, _), name in zip(rows, names, strict=True)]
        connection.executemany(NAMED, called)
        connection.execute(
            "INSERT OR REPLACE INTO pieces (place, key, data, number) VALUES (?, ?, ?, ?)",
            (f"campaign {campaign}", str(part), json.dumps(told), part),
        )


def parts_of(store: Store, campaign: str) -> list[dict[str, Any]]:
    """The descriptions of its parts; none: it has not begun."""
    sql = "SELECT CAST(data AS TEXT) FROM pieces WHERE place = ? ORDER BY number"
    rows = list(store.reading(sql, (f"campaign {campaign}",)))
    try:
        told = [json.loads(data) for (data,) in rows]
    except (ValueError, RecursionError):
        told = [None]
    if any(isinstance(each, dict) and each.keys() == _EARLIER for each in told):
        raise StoreError(f"{store.path} has what an earlier gpcert wrote of its campaign; run it again")
    if not all(isinstance(each, dict) and each.keys() == _TOLD and _fits(each) for each in told):
        raise StoreError(f"{store.path} is damaged: what its campaign asks cannot be read; run it again")
    return told


def _fits(told: dict[str, Any]) -> bool:
    """Whether its numbers are numbers."""
    radii, settings, files = told["radii"], told["settings"], told["files"]
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        return False
    listed = isinstance(radii, list) and all(isinstance(r, int | float) for r in radii)
    numbers = (told["radius"], settings.get("threshold")) if isinstance(settings, dict) else ("",)
    return (listed or told["ask"] != "evaluate") and all(
        n is None or isinstance(n, int | float) for n in numbers
    )


def standings(store: Store, campaign: str, part: int) -> list[Standing]:
    """Where every question of a part stands."""
    rest = f"""item, CASE WHEN truth IN (0, 1, 2) THEN truth END,
    EXISTS (SELECT 1 FROM lost l WHERE l.key = q.key) FROM asked q LEFT JOIN answers a ON a.key = q.key
    {BESIDE} WHERE campaign = ? AND part = ? ORDER BY item"""
    found = []
    for row in store.verified(rest, (campaign, part)):
        status, _, lower, upper, width, seconds, _, limit, _, item, truth, lost = row[5:]
        known = None if truth is None else Truth(truth)
        found.append(Standing(item, known, status, lower, upper, width, seconds, limit, lost))
    return found


def widths(store: Store, campaign: str, part: int) -> dict[int, float]:
    """How much is open of each question; inf of those that were never answered."""
    return {s.item: float("inf") if s.width is None else s.width for s in standings(store, campaign, part)}


def settled(store: Store, campaign: str, part: int) -> bool:
    """Whether no larger limit would change anything: nothing is missing but what was lost."""
    return all(s.lost or s.limit == math.inf for s in standings(store, campaign, part))

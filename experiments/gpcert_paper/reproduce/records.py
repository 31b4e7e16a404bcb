"""Rows of finished work in a store, by place and key."""

from __future__ import annotations

import json
from typing import Any

from gpcert.errors import StoreError
from gpcert.store.store import Store


class Records:
    """The records at one place of a store, in the order in which they came."""

    def __init__(self, store: Store, place: str) -> None:
        self._store, self._place = store, place

    def all(self) -> dict[str, Any]:
        """Key -> record."""
        if not self._store.path.exists():
            return {}
        sql = "SELECT CAST(key AS TEXT), CAST(data AS TEXT) FROM pieces WHERE place = ? ORDER BY number"
        rows = list(self._store.reading(sql, (self._place,)))
        try:
            return {key: json.loads(data) for key, data in rows}
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self._store.path} must hold JSON at {self._place}, got {error}") from None

    def put(self, key: str, record: Any) -> None:
        """Keep a record, committed when this returns; one with the same key is replaced."""
        with self._store.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO pieces (place, key, data, number) VALUES (?, ?, ?, "
                "(SELECT coalesce(max(number), 0) + 1 FROM pieces WHERE place = ?))",
                (self._place, key, json.dumps(record), self._place),
            )

"""Stores put together; also the way out of a damaged one: what can be read of it is taken over."""

from __future__ import annotations

from typing import NamedTuple

from gpcert.errors import GpcertError
from gpcert.results import Answer
from gpcert.store.store import Store

_LOT = 500


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

"""Answers as a table: one line per answer (of an explanation, per point and feature)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from gpcert.records.rows import Row
from gpcert.regions import Ball
from gpcert.results import Answer, Explanation


def flat(answer: Answer) -> list[dict[str, Any]]:
    """The numbers and words of an answer by name; points and regions, but for their radius, stay aside.

    `min_lower` is `answer.min.lower`.
    """
    if isinstance(answer, Explanation):
        table = {name: part.tolist() for name, part in answer.table().items() if name != "row"}
        return [dict(zip(table, line, strict=True)) for line in zip(*table.values(), strict=True)]
    region = getattr(answer, answer.subject)
    radius = {"radius": region.radius} if isinstance(region, Ball) and answer.subject == "region" else {}
    return [radius | dict(_entries(answer, ""))]


def about_whom(answer: Answer) -> dict[str, Any]:
    """The centre, and what a ball is besides its radius, as texts."""
    told: dict[str, Any] = {}
    subject = getattr(answer, answer.subject)
    region = subject[0] if isinstance(subject, tuple) and subject else subject
    if isinstance(region, Ball):
        told["x"] = str(region.x.tolist())
        told["norm"] = f"{region.norm:g}"
        told["features"] = None if region.features is None else str(list(region.features))
        told["scale"] = None if region.scale is None else str(region.scale.tolist())
    return told


def _entries(value: Any, prefix: str) -> Iterable[tuple[str, Any]]:
    for field in fields(value):
        entry, name = getattr(value, field.name), prefix + field.name
        if isinstance(entry, Enum):
            yield name, str(entry)
        elif entry is None or isinstance(entry, str | bool | int):
            yield name, entry
        elif isinstance(entry, float):
            yield name, float(entry)
        elif is_dataclass(entry) and field.name not in ("region", "ball", "about"):
            yield from _entries(entry, f"{name}_")


def line_of(row: Row) -> list[dict[str, Any]]:
    """The lines of one answer of a run, with what is known of its row."""
    return [about_row(row) | line for line in flat(row.answer)]


def about_row(row: Row) -> dict[str, Any]:
    """What is known of a row, and the radius that was asked about."""
    told: dict[str, Any] = {"row": row.row, "id": row.id, "true": row.label, "predicted": row.predicted}
    if row.probability is not None:
        told["predicted_probability"] = float(row.probability.max())
    return told | {"radius": row.radius}


def columns(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The lines as columns; those that are empty throughout are left out."""
    names = dict.fromkeys(name for line in lines for name in line)
    made = {name: [line.get(name) for line in lines] for name in names}
    return {name: values for name, values in made.items() if any(value is not None for value in values)}

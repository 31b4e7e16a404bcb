"""Answers as a table: one line per answer (of an explanation, per point and feature), in CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.records.rows import Row
from gpcert.regions import Ball
from gpcert.results import Answer, Explanation

TABLES = (".csv", ".parquet")


def flat(answer: Answer, classes: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """The numbers and words of an answer by name; points and regions, but for their radius, stay aside.

    `min_lower` is `answer.min.lower`; labels are class values where the classes are known.
    """
    if isinstance(answer, Explanation):
        names = answer.feature_names or tuple(f"x{j}" for j in range(answer.lower.shape[1]))
        parts = {name: getattr(answer, name) for name in ("value", "lower", "upper", "sign")}
        return [
            {"feature": names[j], **{name: part[i, j].item() for name, part in parts.items()}}
            for i in range(len(answer.lower))
            for j in range(len(names))
        ]
    region = getattr(answer, answer.subject)
    radius = {"radius": region.radius} if isinstance(region, Ball) and answer.subject == "region" else {}
    found = radius | dict(_entries(answer, ""))
    label = found.get("label")
    if isinstance(label, int) and label < len(classes):
        found["label"] = classes[label]
    return [found]


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


def line_of(row: Row, classes: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines of one answer of a run, with what is known of its row."""
    told: dict[str, Any] = {"row": row.row, "id": row.id, "true": row.label, "predicted": row.predicted}
    if row.probability is not None:
        told["predicted_probability"] = float(row.probability.max())
    return [told | {"radius": row.radius} | line for line in flat(row.answer, classes)]


def columns(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The lines as columns; those that are empty throughout are left out."""
    names = dict.fromkeys(name for line in lines for name in line)
    made = {name: [line.get(name) for line in lines] for name in names}
    return {name: values for name, values in made.items() if any(value is not None for value in values)}


def check_extension(path: Path) -> None:
    """What writing will need is told before the work."""
    if path.suffix == ".parquet":
        _parquet()


def write_table(path: Path, table: Mapping[str, Sequence[Any]]) -> None:
    """Columns into a CSV or Parquet file, whole or not at all; numbers exactly."""
    if path.suffix == ".parquet":
        arrow, parquet = _parquet()
        sink = io.BytesIO()
        parquet.write_table(arrow.table({name: _stored(arrow, each) for name, each in table.items()}), sink)
        write_whole(path, sink.getvalue())
        return
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    write_whole(path, text.getvalue())


def _stored(arrow: Any, values: Sequence[Any]) -> Any:
    """A column of one type; of names that have none (tuples, intervals, numbers and words), as texts."""
    if not any(isinstance(value, tuple) for value in values):
        with suppress(arrow.lib.ArrowException, TypeError):
            return arrow.array(list(values))
    return arrow.array([str(value) for value in values])


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidInputError(
            "a .parquet file needs pyarrow, got none: pip install 'gpcert[tables]'"
        ) from None
    return pyarrow, pyarrow.parquet

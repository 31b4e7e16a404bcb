"""One answer of a run with the row of the data that it is about; answers as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any

from gpcert.regions import Ball
from gpcert.results import Answer, Attack, CertifiedRadius, Explanation, ProbabilityRange, Verdict
from gpcert.schema import NotNegative, Point, encoded, read
from gpcert.validation import Float

#: Probabilities at a row are estimates: they may leave [0, 1], and their sum 1, by this.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Row:
    """`row`: its position in the data; `id`, `label`, ...: what is known of it; `radius`: as it was asked."""

    row: int
    id: str | None
    label: str | None
    predicted: str | None
    probability: Annotated[Float, "c", (-_SLACK, 1.0 + _SLACK)] | None
    x: Point | None
    radius: NotNegative | None
    answer: ProbabilityRange | Verdict | CertifiedRadius | Attack | Explanation

    @classmethod
    def read(cls, entries: dict[str, Any], features: int, classes: int) -> Row:
        """What `to_dict` wrote, of a model with these numbers of both (0: not known); else one sentence."""
        sizes = {axis: size for axis, size in (("d", features), ("c", classes)) if size}
        every = dict.fromkeys(field.name for field in fields(cls))
        found: Row = read(cls, every | entries, sizes, versioned=False)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, exact; what is not known is left out."""
        entries = {name: value for name, value in encoded(self).items() if value is not None}
        return entries | {"answer": self.answer.to_dict()}

    def flaws(self) -> Iterator[str]:
        p, region = self.probability, getattr(self.answer, "region", None)
        if p is not None and not abs(p.sum() - 1.0) <= _SLACK * len(p):
            yield f"probability must have the sum 1, got {p.sum()}"
        if region is not None and region.radius != self.radius:
            yield f"radius must be that of the region, {region.radius}, got {self.radius}"


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
    """The centre of a ball and its kind, as texts."""
    entries: dict[str, Any] = {}
    region = next(iter(answer.regions), None)
    if isinstance(region, Ball):
        entries["x"] = str(region.x.tolist())
        entries["norm"] = f"{region.norm:g}"
        entries["features"] = None if region.features is None else str(list(region.features))
        entries["scale"] = None if region.scale is None else str(region.scale.tolist())
    return entries


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
    """What is known of a row, and the radius that was asked."""
    entries: dict[str, Any] = {"row": row.row, "id": row.id, "true": row.label, "predicted": row.predicted}
    if row.probability is not None:
        entries["predicted_probability"] = float(row.probability.max())
    return entries | {"radius": row.radius}


def columns(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The lines as columns; those that are empty throughout are left out."""
    names = dict.fromkeys(name for line in lines for name in line)
    made = {name: [line.get(name) for line in lines] for name in names}
    return {name: values for name, values in made.items() if any(value is not None for value in values)}

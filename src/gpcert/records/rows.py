"""One answer of a run, with the row of the data that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

from gpcert.regions import Ball
from gpcert.results import Attack, CertifiedRadius, Explanation, ProbabilityRange, Verdict
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
        """What `to_dict` told, of a model with so many of both (0: not known); else one sentence."""
        sizes = {axis: size for axis, size in (("d", features), ("c", classes)) if size}
        every = dict.fromkeys(field.name for field in fields(cls))
        found: Row = read(cls, every | entries, sizes, versioned=False)
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, exact; what is not known is left out."""
        told = {name: value for name, value in encoded(self).items() if value is not None}
        return told | {"answer": self.answer.to_dict()}

    def flaws(self) -> Iterator[str]:
        """See `Record`."""
        p, region = self.probability, getattr(self.answer, "region", None)
        if p is not None and not abs(p.sum() - 1.0) <= _SLACK * len(p):
            yield f"probability must have the sum 1, got {p.sum()}"
        radius = region.radius if isinstance(region, Ball) else None
        if region is not None and radius != self.radius:
            yield f"radius must be that of the region, {radius}, got {self.radius}"

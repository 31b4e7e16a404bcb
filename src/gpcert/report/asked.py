"""What the page asks of a model: ranges over regions, and what may be concluded about a label."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum

from gpcert.questions import probability_range
from gpcert.regions import Ball, Region
from gpcert.report.study import Study
from gpcert.results import Enclosure, ProbabilityRange

__all__ = ["Asked", "Verdict", "ask", "ask_image", "at_least", "at_most", "between"]

_TOLERANCE = 0.005  # fine enough for the three digits of the page
_MAX_SECONDS = 5.0  # for one region: the page gets written on any machine


class Verdict(StrEnum):
    """Whether the label can change inside the region, as far as the enclosures prove it."""

    SAFE = "the label cannot change"
    UNSAFE = "the label can change"
    UNDECIDED = "undecided"


@dataclass(frozen=True, eq=False)
class Asked:
    """A region, the certified range of P(label) over it, the label's name, and an estimate of P(label) at the
    centre.
    """

    region: Region
    range: ProbabilityRange
    name: str
    at_centre: float

    @property
    def verdict(self) -> Verdict:
        """Two classes: the label is kept where P(label) > 1/2 and lost where P(label) < 1/2."""
        if self.range.lower > 0.5:
            return Verdict.SAFE
        return Verdict.UNSAFE if self.range.min.upper < 0.5 else Verdict.UNDECIDED


def ask(study: Study, region: Region, label: int) -> Asked:
    """The range of P(label), a class index, over the region."""
    found = probability_range(
        study.classifier.posterior_, region, label, tolerance=_TOLERANCE, max_seconds=_MAX_SECONDS
    )
    at_centre = study.classifier.predict_proba(region.centre[None])[0, label]
    return Asked(region, found, str(study.classes[label]), float(at_centre))


def ask_image(study: Study, i: int, radii: Iterable[float]) -> dict[float, Asked]:
    """All pixels of test image i moving by each radius, inside [0, 1]; the label is the predicted one."""
    label = int(study.probability[i].argmax())
    return {r: ask(study, Ball(study.data.X_test[i], r, domain=(0.0, 1.0)), label) for r in radii}


def at_least(p: float) -> str:
    """p to three digits, rounded down: still a lower bound."""
    return str(Decimal(p).quantize(Decimal("0.001"), rounding=ROUND_FLOOR))


def at_most(p: float) -> str:
    """p to three digits, rounded up: still an upper bound."""
    return str(Decimal(p).quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def between(bounds: Enclosure | ProbabilityRange) -> str:
    """[lower, upper] to three digits, rounded outward."""
    return f"[{at_least(bounds.lower)}, {at_most(bounds.upper)}]"

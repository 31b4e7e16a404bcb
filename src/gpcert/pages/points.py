"""Answers by row: what all results files about one model and kind of region prove, and shares of points.

Files come from strangers: what is wrong, or contradicts what is known already, is an error that names the
file and the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.numbers import Exact
from gpcert.records.rows import Row
from gpcert.regions import Box
from gpcert.results import (
    Attack,
    CertifiedRadius,
    Explanation,
    ProbabilityRange,
    ProofFile,
    Unproved,
    Verdict,
)
from gpcert.validation import Float, Mask, require

#: Where a results file is, its document, its answers.
ResultsFile = tuple[Path, dict[str, Any], list[Row]]

K = TypeVar("K")

#: Numbers are smaller: their differences do not overflow.
_HUGE = 2.0**1023


class RowVerdict(NamedTuple):
    """ "safe", "unsafe" or "unknown" within a radius or over a box."""

    status: str
    margin: tuple[Exact, Exact]
    counterexample: Float | None


@dataclass(eq=False)
class RowAnswers:
    """One row of the data with every answer about it, on a page with these classes and this threshold.

    `verdicts`: by radius; `boxed`: by the ends of boxes; `safe`, `unsafe`: radii proved and refuted.
    """

    row: int
    name: str
    classes: Sequence[str]
    threshold: float
    x: Float | None = None
    label: str | None = None
    predicted: str = ""
    probability: float = math.nan
    ranges: list[ProbabilityRange] = field(default_factory=list)
    verdicts: dict[float, RowVerdict] = field(default_factory=dict)
    boxed: dict[bytes, RowVerdict] = field(default_factory=dict)
    attacks: dict[float, Attack] = field(default_factory=dict)
    explained: list[Explanation] = field(default_factory=list)
    proofs: list[ProofFile] = field(default_factory=list)
    unproved: Unproved | None = None
    found: tuple[float, float, Float | None] | None = None  #: certified radius: safe, unsafe, counterexample
    reach: float = 0.0  #: the largest radius asked

    @property
    def correct(self) -> bool | None:
        """Whether the predicted label is the true one; None where that is not known."""
        return None if self.label is None or not self.predicted else self.label == self.predicted

    @property
    def safe(self) -> float:
        """The largest radius proved safe, -1 if none: what holds for a ball holds for every smaller one."""
        proved = [radius for radius, v in self.verdicts.items() if v.status == "safe"]
        return max([-1.0, *proved, *([self.found[0]] if self.found and self.found[0] > 0 else [])])

    @property
    def unsafe(self) -> float:
        """The smallest radius with a proved counterexample, infinite if none is known."""
        proved = [radius for radius, v in self.verdicts.items() if v.status == "unsafe"]
        return min([math.inf, *proved, *([self.found[1]] if self.found else [])])

    @property
    def certainty(self) -> str:
        """The largest probability, "" where it is not known."""
        return f"{self.probability:.3f}" if math.isfinite(self.probability) else ""

    def status(self, radius: float) -> str:
        """What is proved at a radius."""
        return "safe" if self.safe >= radius else "unsafe" if self.unsafe <= radius else "unknown"

    @property
    def own(self) -> RowVerdict | None:
        """The verdict at the largest radius asked, or over the last box."""
        last = next(reversed(self.boxed.values()), None)
        return self.verdicts[max(self.verdicts)] if self.verdicts else last

    def range_of(self, name: str) -> ProbabilityRange | None:
        """The last range of P(name)."""
        return next((r for r in reversed(self.ranges) if str(r.label) == name), None)

    @property
    def counterexample(self) -> tuple[float | None, Float] | None:
        """The point of another label that is known at the smallest radius, with it; else one in a box."""
        known = [(radius, v.counterexample) for radius, v in self.verdicts.items()]
        known += [(self.found[1], self.found[2])] if self.found else []
        known += [(radius, a.x) for radius, a in self.attacks.items() if a.success]
        found = [(r, z) for r, z in known if z is not None]
        boxed = [(None, v.counterexample) for v in self.boxed.values() if v.counterexample is not None]
        return min(found, key=lambda pair: pair[0]) if found else next(reversed(boxed), None)

    def add(self, row: Row) -> None:
        """Add one answer; `InvalidInputError` if it contradicts those that are here."""
        answer, radius = row.answer, row.radius
        for name in ("argmin", "argmax", "counterexample", "x"):
            for place in (getattr(answer, name, None), row.x):
                inside = place is None or bool((np.abs(place) < _HUGE).all())
                require(inside, f"{name} must be less than {_HUGE:g}, got more")
        self._add_row(row)
        proof = getattr(answer, "proof", None)
        self.proofs += proof if isinstance(proof, tuple) else [] if proof is None else [proof]
        self.unproved = self.unproved or getattr(answer, "unproved", None)
        if isinstance(answer, ProbabilityRange):
            self._check_class("label", str(answer.label))
            self.ranges.append(answer)
            if radius is not None and len(self.classes) == 2 and self.predicted:
                _add(self.verdicts, radius, self._implied(answer), f"at radius {radius}")
        elif isinstance(answer, CertifiedRadius):
            self._check_label(answer.label, answer.safe > 0)
            known, other = self.found or (0.0, math.inf, None), (answer.unsafe, answer.counterexample)
            self.found = max(known[0], answer.safe), *min(known[1:], other, key=lambda pair: pair[0])
            self.reach = max(self.reach, answer.max_radius)
        elif isinstance(answer, Verdict):
            self._check_label(answer.label, answer.status == "safe")
            margin = answer.margin.lower, answer.margin.upper
            verdict = RowVerdict(str(answer.status), margin, answer.counterexample)
            if isinstance(answer.region, Box):
                ends = answer.region.lower.tobytes() + answer.region.upper.tobytes()
                _add(self.boxed, ends, verdict, "over a box")
            elif radius is not None:
                _add(self.verdicts, radius, verdict, f"at radius {radius}")
        elif radius is None:
            rule = "a page must be about balls, or ranges or verdicts over boxes"
            raise InvalidInputError(f"{rule}, got {type(answer).__name__}")
        elif isinstance(answer, Attack):
            if self.predicted:
                self._check_class("label", str(answer.label))
            on_it = not self.predicted or str(answer.label) == self.predicted
            if on_it and (radius not in self.attacks or not self.attacks[radius].success):
                self.attacks[radius] = answer
        else:
            self._check_class("label", str(answer.label))
            self.explained.append(answer)
        self.reach = max(self.reach, *self.verdicts, self.found[0] if self.found else 0.0)
        self._check_consistent()

    def _add_row(self, row: Row) -> None:
        """What a file knows of the row itself: the same in all of them."""
        predicted, p = row.predicted or "", row.probability
        for name, value in (("label", row.label), ("predicted", predicted)):
            if value and self.classes:
                self._check_class(name, value)
        same = row.x is None or self.x is None or np.array_equal(row.x, self.x)
        require(same, "x must be the same in all answers about a row, got two")
        for name, one, other in (("label", row.label, self.label), ("predicted", predicted, self.predicted)):
            rule = f"{name} must be the same in all answers about a row"
            require(not (one and other) or one == other, f"{rule}, got {other!r} and {one!r}")
        self.x = self.x if row.x is None else row.x
        self.label, self.predicted = row.label or self.label, predicted or self.predicted
        if p is not None:
            self.probability = float(p.max())
            largest = not (predicted and self.classes) or p[self.classes.index(predicted)] >= p.max()
            require(largest, f"predicted must be the class of the largest probability, got {predicted!r}")

    def _check_class(self, what: str, name: str) -> None:
        known = ", ".join(self.classes[:12])
        require(name in self.classes, f"{what} must be one of {known}, got {name[:40]!r}")

    def _check_label(self, label: Label, proved: bool) -> None:
        """Near a tie two computations may differ, never where a label is proved."""
        if proved and self.predicted and self.threshold >= 0.5:
            self._check_class("label", str(label))
            rule = f"label must be the predicted one, {self.predicted[:40]!r}, where it is proved"
            require(str(label) == self.predicted, f"{rule}, got another")

    def _implied(self, r: ProbabilityRange) -> RowVerdict:
        """What the range of one of two classes proves about the predicted label."""
        own, least = str(r.label) == self.predicted, Fraction(self.threshold)
        ends = r.min if own else r.max
        low, high = Fraction(ends.lower), Fraction(ends.upper)
        margin = (low - least, high - least) if own else (1 - least - high, 1 - least - low)
        status = "safe" if margin[0] > 0 else "unsafe" if margin[1] < 0 else "unknown"
        witness = r.argmin if own else r.argmax
        return RowVerdict(status, margin, witness if status == "unsafe" else None)

    def _check_consistent(self) -> None:
        text = f"safe up to {self.safe} contradicts"
        if self.safe >= self.unsafe < math.inf:  # inf: none is known
            raise InvalidInputError(f"{text} unsafe at {self.unsafe}; one was told before")
        broken = min((radius for radius, a in self.attacks.items() if a.success), default=math.inf)
        if self.safe >= broken < math.inf and self.threshold >= 0.5:  # else no contradiction
            raise InvalidInputError(f"{text} an attack at {broken}; one was told before")


def _add(verdicts: dict[K, RowVerdict], key: K, found: RowVerdict, where: str) -> None:
    """A verdict that decides stays, whatever another file left open."""
    known = verdicts.get(key)
    if known is None or known.status == "unknown":
        verdicts[key] = found
    elif found.status not in ("unknown", known.status):
        raise InvalidInputError(f"{found.status} {where} contradicts {known.status}, told before")


def delta(answer: ProbabilityRange) -> Fraction:
    """The largest that max - min can be, exactly."""
    return Fraction(answer.upper) - Fraction(answer.lower)


def merged(results: Sequence[ResultsFile], threshold: float) -> list[RowAnswers]:
    """The points of all files, by row."""
    first_path, first, _ = results[0]
    points: dict[int, RowAnswers] = {}
    for path, document, rows in results:
        for what in ("classes", "features"):
            same = document["model"].get(what) == first["model"].get(what)
            require(same, f"{path} and {first_path} must be about the same {what}, got two")
        classes = document["model"].get("classes", [])
        for i, row in enumerate(rows):
            new = RowAnswers(row.row, row.id or str(row.row), classes, threshold)
            try:
                points.setdefault(row.row, new).add(row)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: answer {i} (row {row.row}): {error}") from None
    return [points[row] for row in sorted(points)]


@dataclass(frozen=True)
class AtRadius:
    """ProvedShares in [0, 1] of all points at one radius. Accuracies are None where labels are not known.

    `certified` and `certified_most` are proved bounds of the accuracy under the worst perturbation;
    `attacked` is what the attacks left: certified <= true value <= min(certified_most, attacked).
    """

    radius: float
    safe: Fraction
    unsafe: Fraction
    certified: Fraction | None
    certified_most: Fraction | None
    attacked: Fraction | None


class ProvedShares:
    """Counts what is proved at any radius; the radii of the points are looked up once."""

    def __init__(self, points: Sequence[RowAnswers]) -> None:
        self._points = points
        self.safe = np.array([p.safe for p in points])
        self.unsafe = np.array([p.unsafe for p in points])
        self.right = np.array([bool(p.correct) for p in points])
        self.labelled = all(p.correct is not None for p in points)

    def ends(self, most: int = 400) -> list[float]:
        """The radii at which a share changes, up to where every point was asked.

        Of more than `most` some are left out: between those that stay a step function falls early.
        """
        known = np.concatenate([self.safe, self.unsafe])
        known = known[(known > 0) & np.isfinite(known)]
        asked = [p.reach for p in self._points if not math.isfinite(p.unsafe)]
        last = min(asked, default=float(known.max(initial=0.0)))  # a counterexample holds for larger radii
        found = np.unique([*known[known <= last], *([last] if math.isfinite(last) and last > 0 else [])])
        if len(found) > most:
            found = found[np.unique(np.linspace(0, len(found) - 1, most).astype(int))]
        return [float(r) for r in found]

    def at(self, radius: float) -> AtRadius:
        """The shares at one radius."""
        safe, unsafe = self.safe >= radius, self.unsafe <= radius
        return AtRadius(
            radius=radius,
            safe=_share(safe),
            unsafe=_share(unsafe),
            certified=_share(safe & self.right) if self.labelled else None,
            certified_most=_share(~unsafe & self.right) if self.labelled else None,
            attacked=self._attacked(radius) if self.labelled else None,
        )

    def _attacked(self, radius: float) -> Fraction | None:
        if radius not in self._points[0].attacks:
            return None
        tried = [p.attacks.get(radius) for p in self._points]
        if any(a is None for a in tried):
            return None
        stood = np.array([a is not None and not a.success for a in tried])
        return _share(stood & self.right)


def _share(which: Mask) -> Fraction:
    return Fraction(int(np.count_nonzero(which)), len(which))


def clean_accuracy(points: Sequence[RowAnswers]) -> Fraction | None:
    """Share of points whose predicted label is the true one; None where labels are not known."""
    known = [p.correct for p in points]
    return None if None in known or not known else Fraction(sum(map(bool, known)), len(known))


def median_radius(points: Sequence[RowAnswers]) -> float | None:
    """The radius up to which at least half of the points are proved safe; None if none was asked for."""
    if not all(p.found for p in points):
        return None
    return sorted(max(0.0, p.safe) for p in points)[(len(points) - 1) // 2]


def radii_asked(points: Sequence[RowAnswers]) -> list[float]:
    """The radii at which verdicts or attacks were asked for at every point."""
    return _common([{*p.verdicts, *p.attacks} for p in points])


def radii_decided(points: Sequence[RowAnswers]) -> list[float]:
    """The radii at which verdicts were asked for at every point."""
    return _common([set(p.verdicts) for p in points])


def radii_attacked(points: Sequence[RowAnswers]) -> list[float]:
    """The radii at which every point was attacked."""
    return _common([set(p.attacks) for p in points])


def _common(radii: Sequence[set[float]]) -> list[float]:
    return sorted(r for r in set.intersection(*radii) if math.isfinite(r)) if radii else []


def own_statuses(points: Sequence[RowAnswers]) -> list[str]:
    """The verdict of every point at its own radius, or over its box, where none is of all of them."""
    found = [p.own.status for p in points if p.own is not None]
    same = len({bool(p.verdicts) for p in points}) == 1 and not any(len(p.boxed) > 1 for p in points)
    return found if len(found) == len(points) and same and not radii_decided(points) else []


def main_radius(points: Sequence[RowAnswers]) -> float | None:
    """The radius of the figure to remember: the largest with verdicts, of those attacked if there are any."""
    decided = [r for r in radii_decided(points) if r > 0]
    tried = [r for r in radii_attacked(points) if r in decided]
    return max(tried or decided, default=None)


def typical_radius(points: Sequence[RowAnswers]) -> float | None:
    """Where radii were searched for, one to look at: what half of the points reach, in two digits."""
    middle = median_radius(points)
    if not middle or not math.isfinite(middle):
        return None
    return float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(middle)) or None


def shown_radius(points: Sequence[RowAnswers]) -> float | None:
    """The radius at which rows and classes are shown."""
    return main_radius(points) or typical_radius(points)

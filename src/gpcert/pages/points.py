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
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.numbers import Exact
from gpcert.records.rows import Row
from gpcert.regions import Ball, Box
from gpcert.results import Attack, CertifiedRadius, Explanation, ProbabilityRange, ProofFile, Unproved
from gpcert.results import Verdict as Decided
from gpcert.validation import Float, Mask, require

#: A results file: where it is, its document, its answers.
Result = tuple[Path, dict[str, Any], list[Row]]

K = TypeVar("K")

#: Numbers are smaller: their differences do not overflow.
_HUGE = 2.0**1023


class Ranged(NamedTuple):
    """The range of P(name) over a region; `radius` None: a box."""

    name: str
    radius: float | None
    answer: ProbabilityRange

    @property
    def delta(self) -> Fraction:
        """The largest that max - min can be, exactly."""
        return Fraction(self.answer.upper) - Fraction(self.answer.lower)


class Verdict(NamedTuple):
    """ "safe", "unsafe" or "unknown" within a radius or over a box."""

    status: str
    margin: tuple[Exact, Exact]
    counterexample: Float | None


class Explained(NamedTuple):
    """Delta of P(name) per feature, (d,) each, along the axes of a ball: estimate and bounds."""

    name: str
    ball: Ball
    value: Float
    lower: Float
    upper: Float


@dataclass(eq=False)
class Point:
    """One row of the data with every answer about it. `safe`, `unsafe`: radii proved and refuted.

    `verdicts`: by radius; `boxed`: by the ends of boxes.
    """

    row: int
    name: str
    x: Float | None = None
    label: str | None = None
    predicted: str = ""
    probability: float = math.nan
    ranges: list[Ranged] = field(default_factory=list)
    verdicts: dict[float, Verdict] = field(default_factory=dict)
    boxed: dict[bytes, Verdict] = field(default_factory=dict)
    attacks: dict[float, Attack] = field(default_factory=dict)
    explained: list[Explained] = field(default_factory=list)
    proofs: list[ProofFile] = field(default_factory=list)
    unproved: Unproved | None = None
    found: tuple[float, float, Float | None] | None = None  #: certified radius: safe, unsafe, counterexample
    reach: float = 0.0  #: the largest radius asked about

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
    def own(self) -> Verdict | None:
        """The verdict at the largest radius asked about, or over the last box: of rows that have each their
        own.
        """
        last = next(reversed(self.boxed.values()), None)
        return self.verdicts[max(self.verdicts)] if self.verdicts else last

    def range_of(self, name: str) -> Ranged | None:
        """The range of P(name) that was told last."""
        return next((r for r in reversed(self.ranges) if r.name == name), None)

    @property
    def counterexample(self) -> tuple[float | None, Float] | None:
        """The point of another label that is known at the smallest radius, with it; else one in a box."""
        known = [(radius, v.counterexample) for radius, v in self.verdicts.items()]
        known += [(self.found[1], self.found[2])] if self.found else []
        known += [(radius, a.x) for radius, a in self.attacks.items() if a.success]
        found = [(r, z) for r, z in known if z is not None]
        boxed = [(None, v.counterexample) for v in self.boxed.values() if v.counterexample is not None]
        return min(found, key=lambda pair: pair[0]) if found else next(reversed(boxed), None)


def merged(results: Sequence[Result], threshold: float) -> list[Point]:
    """The points of all files, by row."""
    first_path, first, _ = results[0]
    points: dict[int, Point] = {}
    for path, document, rows in results:
        for what in ("classes", "features"):
            same = document["model"].get(what) == first["model"].get(what)
            require(same, f"{path} and {first_path} must be about the same {what}, got two")
        reader = _Reader(document, threshold)
        for i, row in enumerate(rows):
            try:
                reader.read(points.setdefault(row.row, Point(row.row, row.id or str(row.row))), row)
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: answer {i} (row {row.row}): {error}") from None
    return [points[row] for row in sorted(points)]


class _Reader:
    """Adds the answers of one file to their points."""

    def __init__(self, document: dict[str, Any], threshold: float) -> None:
        self._classes: list[str] = document["model"].get("classes", [])
        self._threshold = Fraction(threshold)

    def read(self, point: Point, row: Row) -> None:
        """Add one answer."""
        for name in ("argmin", "argmax", "counterexample", "x"):
            for place in (getattr(row.answer, name, None), row.x):
                if place is not None and not (np.abs(place) < _HUGE).all():
                    _refuse(f"{name} must be less than {_HUGE:g}, got more")
        self._about(point, row)
        answer, radius = row.answer, row.radius
        proof = getattr(answer, "proof", None)
        point.proofs += proof if isinstance(proof, tuple) else [] if proof is None else [proof]
        point.unproved = point.unproved or getattr(answer, "unproved", None)
        if isinstance(answer, ProbabilityRange):
            self._add_range(point, answer, radius)
        elif isinstance(answer, CertifiedRadius):
            self._same_label(point, answer.label, answer.safe > 0)
            _add_radius(point, answer)
        elif isinstance(answer, Decided):
            self._same_label(point, answer.label, answer.status == "safe")
            margin = answer.margin.lower, answer.margin.upper
            verdict = Verdict(str(answer.status), margin, answer.counterexample)
            if isinstance(answer.region, Box):
                ends = answer.region.lower.tobytes() + answer.region.upper.tobytes()
                _add(point.boxed, ends, verdict, "over a box")
            elif radius is not None:
                _add(point.verdicts, radius, verdict, f"at radius {radius}")
        elif radius is None:
            _refuse(
                f"a page must be about balls, or ranges or verdicts over boxes, got {type(answer).__name__}"
            )
        elif isinstance(answer, Attack):
            on_it = not point.predicted or self._name(answer.label) == point.predicted
            if on_it and (radius not in point.attacks or not point.attacks[radius].success):
                point.attacks[radius] = answer
        elif isinstance(answer, Explanation):
            found = answer.value[0], answer.lower[0], answer.upper[0]
            point.explained.append(Explained(self._name(answer.label), answer.balls[0], *found))
        point.reach = max(point.reach, *point.verdicts, point.found[0] if point.found else 0.0)
        _check_consistent(point, self._threshold)

    def _about(self, point: Point, row: Row) -> None:
        label, predicted, p = row.label, row.predicted or "", row.probability
        for name, told in (("label", label), ("predicted", predicted)):
            if told and self._classes and told not in self._classes:
                _refuse(f"{name} must be one of {', '.join(self._classes[:12])}, got {told[:40]!r}")
        if row.x is not None and point.x is not None and not np.array_equal(row.x, point.x):
            _refuse("x must be the same in all answers about a row, got two")
        for name, one, other in (("label", label, point.label), ("predicted", predicted, point.predicted)):
            if one and other and one != other:
                _refuse(f"{name} must be the same in all answers about a row, got {other!r} and {one!r}")
        point.x = point.x if row.x is None else row.x
        point.label, point.predicted = label or point.label, predicted or point.predicted
        if p is not None:
            point.probability = float(p.max())
            if predicted and self._classes and p[self._classes.index(predicted)] < p.max():
                _refuse(f"predicted must be the class of the largest probability, got {predicted!r}")

    def _name(self, label: Label) -> str:
        if str(label) not in self._classes:
            _refuse(f"label must be one of {', '.join(self._classes[:12])}, got {str(label)[:40]!r}")
        return str(label)

    def _same_label(self, point: Point, label: Label, proved: bool) -> None:
        """Near a tie two computations may differ, never where a label is proved."""
        if (
            proved
            and point.predicted
            and self._threshold >= Fraction(1, 2)
            and self._name(label) != point.predicted
        ):
            _refuse(
                f"label must be the predicted one, {point.predicted[:40]!r}, where it is proved, got another"
            )

    def _add_range(self, point: Point, r: ProbabilityRange, radius: float | None) -> None:
        found = Ranged(self._name(r.label), radius, r)
        point.ranges.append(found)
        if radius is not None and len(self._classes) == 2 and point.predicted:
            implied = _implied(point, found, self._threshold)
            _add(point.verdicts, radius, implied, f"at radius {radius}")


def _add_radius(point: Point, answer: CertifiedRadius) -> None:
    known = point.found or (0.0, math.inf, None)
    told = answer.unsafe, answer.counterexample
    point.found = max(known[0], answer.safe), *min(known[1:], told, key=lambda pair: pair[0])
    point.reach = max(point.reach, answer.max_radius)


def _add(verdicts: dict[K, Verdict], key: K, found: Verdict, where: str) -> None:
    """A verdict that decides stays, whatever another file left open."""
    known = verdicts.get(key)
    if known is None or known.status == "unknown":
        verdicts[key] = found
    elif found.status not in ("unknown", known.status):
        _refuse(f"{found.status} {where} contradicts {known.status}, told before")


def _check_consistent(point: Point, threshold: Fraction) -> None:
    if point.safe >= point.unsafe < math.inf:  # inf: none is known
        _refuse(f"safe up to {point.safe} contradicts unsafe at {point.unsafe}; one was told before")
    broken = min((radius for radius, a in point.attacks.items() if a.success), default=math.inf)
    if point.safe >= broken < math.inf and threshold >= Fraction(1, 2):  # else no contradiction
        _refuse(f"safe up to {point.safe} contradicts an attack at {broken}; one was told before")


def _refuse(rule: str) -> NoReturn:
    raise InvalidInputError(rule)


def _implied(point: Point, found: Ranged, least: Fraction) -> Verdict:
    """What the range of one of two classes proves about the predicted label."""
    own, r = found.name == point.predicted, found.answer
    low, high = (Fraction(end) for end in vars(r.min if own else r.max).values())
    margin = (low - least, high - least) if own else (1 - least - high, 1 - least - low)
    status = "safe" if margin[0] > 0 else "unsafe" if margin[1] < 0 else "unknown"
    witness = r.argmin if own else r.argmax
    return Verdict(status, margin, witness if status == "unsafe" else None)


@dataclass(frozen=True)
class AtRadius:
    """Shares in [0, 1] of all points at one radius. Accuracies are None where labels are not known.

    `certified` and `certified_most` are proved bounds of the accuracy under the worst perturbation;
    `attacked` is what the attacks left: certified <= true value <= min(certified_most, attacked).
    """

    radius: float
    safe: Fraction
    unsafe: Fraction
    certified: Fraction | None
    certified_most: Fraction | None
    attacked: Fraction | None


class Shares:
    """Counts what is proved at any radius; the radii of the points are looked up once."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self.safe = np.array([p.safe for p in points])
        self.unsafe = np.array([p.unsafe for p in points])
        self.right = np.array([bool(p.correct) for p in points])
        self.labelled = all(p.correct is not None for p in points)

    def ends(self, most: int = 400) -> list[float]:
        """The radii at which a share changes, up to where something was asked about every point.

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


def clean_accuracy(points: Sequence[Point]) -> Fraction | None:
    """Share of points whose predicted label is the true one; None where labels are not known."""
    known = [p.correct for p in points]
    return None if None in known or not known else Fraction(sum(map(bool, known)), len(known))


def median_radius(points: Sequence[Point]) -> float | None:
    """The radius up to which at least half of the points are proved safe; None if none was asked for."""
    if not all(p.found for p in points):
        return None
    return sorted(max(0.0, p.safe) for p in points)[(len(points) - 1) // 2]


def radii_asked(points: Sequence[Point]) -> list[float]:
    """The radii at which verdicts or attacks were asked for at every point."""
    every = [set(p.verdicts) | set(p.attacks) for p in points]
    common = set.intersection(*every) if every else set()
    return sorted(r for r in common if math.isfinite(r))


def radii_decided(points: Sequence[Point]) -> list[float]:
    """The radii at which verdicts were asked for at every point."""
    return [r for r in radii_asked(points) if all(r in p.verdicts for p in points)]


def radii_attacked(points: Sequence[Point]) -> list[float]:
    """The radii at which every point was attacked."""
    return [r for r in radii_asked(points) if all(r in p.attacks for p in points)]


def own_statuses(points: Sequence[Point]) -> list[str]:
    """The verdict of every point at its own radius, or over its box, where none is of all of them."""
    found = [p.own.status for p in points if p.own is not None]
    alike = len({bool(p.verdicts) for p in points}) == 1 and not any(len(p.boxed) > 1 for p in points)
    return found if len(found) == len(points) and alike and not radii_decided(points) else []


def main_radius(points: Sequence[Point]) -> float | None:
    """The radius of the figure to remember: the largest with verdicts, of those attacked if there are any."""
    decided = [r for r in radii_decided(points) if r > 0]
    tried = [r for r in radii_attacked(points) if r in decided]
    return max(tried or decided, default=None)


def typical_radius(points: Sequence[Point]) -> float | None:
    """Where radii were searched for, one to look at: what half of the points reach, in two digits."""
    middle = median_radius(points)
    if not middle or not math.isfinite(middle):
        return None
    return float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(middle)) or None


def shown_radius(points: Sequence[Point]) -> float | None:
    """The radius at which rows and classes are shown."""
    return main_radius(points) or typical_radius(points)

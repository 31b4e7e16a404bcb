"""Answers by row: what all results files together prove about each point.

Files come from strangers: what is wrong, or contradicts what is known already, is an error that names the
file and the answer.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.numbers import Exact
from gpcert.report.fields import Fields
from gpcert.validation import Float, require

__all__ = ["Attacked", "Explained", "Point", "Ranged", "Verdict", "merge"]

#: Probabilities may leave [0, 1], and what is made of them its interval, by rounding.
_SLACK = 1e-6
_HALF = Fraction(1, 2)


@dataclass(frozen=True, eq=False)
class Ranged:
    """Enclosures of min and max P(name) over a region; `radius` None: a box."""

    name: str
    radius: float | None
    min: tuple[float, float]
    max: tuple[float, float]
    argmin: Float | None
    argmax: Float | None
    status: str

    @property
    def delta(self) -> Fraction:
        """The largest that max - min can be, exactly."""
        return Fraction(self.max[1]) - Fraction(self.min[0])


@dataclass(frozen=True, eq=False)
class Verdict:
    """ "safe", "unsafe" or "unknown" within a radius."""

    radius: float
    status: str
    margin: tuple[Exact, Exact]
    counterexample: Float | None


@dataclass(frozen=True, eq=False)
class Attacked:
    """What an attack found within a radius."""

    radius: float
    method: str
    success: bool
    probability: float
    x: Float | None


@dataclass(frozen=True, eq=False)
class Explained:
    """Delta per feature, (d,) each: estimate and bounds."""

    name: str
    radius: float
    value: Float
    lower: Float
    upper: Float


@dataclass(eq=False)
class Point:
    """One row of the data with every answer about it. `safe`, `unsafe`: radii proved and refuted."""

    row: int
    name: str
    x: Float | None = None
    label: str | None = None
    predicted: str = ""
    probability: float = math.nan
    ranges: list[Ranged] = field(default_factory=list)
    verdicts: dict[float, Verdict] = field(default_factory=dict)
    attacks: dict[float, Attacked] = field(default_factory=dict)
    explained: list[Explained] = field(default_factory=list)
    found: tuple[float, float, Float | None] | None = None  #: certified radius: safe, unsafe, counterexample

    @property
    def correct(self) -> bool | None:
        """Whether the predicted label is the true one; None where that is not known."""
        return None if self.label is None else self.label == self.predicted

    @property
    def safe(self) -> float:
        """The largest radius proved safe, -1 if none: what holds for a ball holds for every smaller one."""
        proved = [v.radius for v in self.verdicts.values() if v.status == "safe"]
        return max([-1.0, *proved, *([self.found[0]] if self.found and self.found[0] > 0 else [])])

    @property
    def unsafe(self) -> float:
        """The smallest radius with a proved counterexample, infinite if none is known."""
        proved = [v.radius for v in self.verdicts.values() if v.status == "unsafe"]
        return min([math.inf, *proved, *([self.found[1]] if self.found else [])])

    def range_of(self, name: str) -> Ranged | None:
        """The range of P(name) that was told last."""
        return next((r for r in reversed(self.ranges) if r.name == name), None)

    @property
    def counterexample(self) -> Float | None:
        """The point of another label that lies closest, as far as is known."""
        known = [(v.radius, v.counterexample) for v in self.verdicts.values()]
        known += [(self.found[1], self.found[2])] if self.found else []
        found = [(r, z) for r, z in known if z is not None]
        return min(found, key=lambda pair: pair[0])[1] if found else None


def merge(results: Sequence[tuple[Path, dict[str, Any]]]) -> list[Point]:
    """The points of all results files, by row; the files must be about one model, data and kind of region."""
    first_path, first = results[0]
    points: dict[int, Point] = {}
    for path, document in results:
        for what, one, other in (
            ("model", document["model"].get("sha256"), first["model"].get("sha256")),
            ("data", document["data"].get("sha256"), first["data"].get("sha256")),
            ("kind of region", _kind(document), _kind(first)),
            ("classes", document["model"].get("classes"), first["model"].get("classes")),
            ("features", document["model"].get("features"), first["model"].get("features")),
        ):
            require(one == other, f"{path} and {first_path} must be about the same {what}, got two")
        threshold = document["settings"].get("threshold", 0.5)
        require(
            threshold == 0.5,
            f"{path} must have threshold 0.5 for a report on labels, got {reprlib.repr(threshold)}",
        )
        reader = _Reader(path, document)
        for i, answer in enumerate(document["answers"]):
            reader.read(points, i, answer)
    return [points[row] for row in sorted(points)]


def _kind(document: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(document["settings"].get(key) for key in ("norm", "features", "domain", "scale"))


class _Reader:
    """Turns the answers of one file into parts of points."""

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self._path = path
        self._classes: list[str] = document["model"].get("classes", [])
        self._d = len(document["model"].get("features", []))
        verb: str = document["verb"]
        parts = {
            "range": self._read_range,
            "certify": self._read_certify,
            "radius": self._read_radius,
            "attack": self._read_attack,
            "explain": self._read_explain,
        }
        if verb not in parts:
            raise InvalidInputError(f"{path} must be the results of a question, got {verb[:40]!r}")
        self._part = parts[verb]

    def read(self, points: dict[int, Point], i: int, answer: dict[str, Any]) -> None:
        """Add one answer to its point."""
        given, row = Fields(self._path, i, answer), answer["row"]
        for name in ("seconds", "nodes", "tests"):
            if name in given:
                given.number(name, 0.0)
        point = points.setdefault(row, Point(row, given.text("id") or str(row)))
        self._about(point, given)
        self._part(point, given)
        _check_consistent(point, given)

    def _about(self, point: Point, given: Fields) -> None:
        x, label = given.vector("x", self._d), given.text("label", self._classes)
        predicted = given.text("predicted", self._classes) or ""
        if x is not None and point.x is not None and not np.array_equal(x, point.x):
            given.refuse("x must be the same in all answers about a row, got two")
        for name, one, other in (("label", label, point.label), ("predicted", predicted, point.predicted)):
            if one and other and one != other:
                given.refuse(f"{name} must be the same in all answers about a row, got {other!r} and {one!r}")
        point.x = point.x if x is None else x
        point.label, point.predicted = label or point.label, predicted or point.predicted
        p = given.vector("probability", len(self._classes), -_SLACK, 1.0 + _SLACK)
        if p is not None:
            point.probability = float(p.max())
            if predicted and self._classes and p[self._classes.index(predicted)] < p.max():
                given.refuse(f"predicted must be the class of the largest probability, got {predicted!r}")

    def _read_range(self, point: Point, given: Fields) -> None:
        name = given.class_name(self._classes)
        radius = given.number("radius", 0.0) if "radius" in given else None
        low, high = (given.pair(end, -_SLACK, 1.0 + _SLACK) for end in ("min", "max"))
        if not low[0] <= high[1]:
            given.refuse(f"min must not lie above max, got {list(low)} and {list(high)}")
        ends = given.vector("argmin", self._d), given.vector("argmax", self._d)
        point.ranges.append(Ranged(name, radius, low, high, *ends, given.text("status") or ""))
        if radius is not None and len(self._classes) == 2 and point.predicted:
            _add(point, _implied(point, point.ranges[-1], radius), given)

    def _read_certify(self, point: Point, given: Fields) -> None:
        radius, status = given.number("radius", 0.0), given.text("verdict", ("safe", "unsafe", "unknown"))
        margin = given.pair("margin", -1.0 - _SLACK, 1.0 + _SLACK)
        other = given.vector("counterexample", self._d)
        if status is None:
            given.refuse("verdict must be one of safe, unsafe, unknown, got nothing")
        wrong = {"safe": margin[0] < 0.0, "unsafe": margin[1] > 0.0, "unknown": margin[0] > 0.0}
        if wrong[status]:
            given.refuse(f"margin must have the sign of its verdict {status}, got {list(margin)}")
        if (status == "unsafe") != (other is not None):
            given.refuse(f"counterexample must be given with verdict unsafe and no other, got {status}")
        _add(point, Verdict(radius, status, margin, other), given)

    def _read_radius(self, point: Point, given: Fields) -> None:
        safe = given.number("safe", 0.0)
        unsafe = given.number("unsafe", 0.0) if "unsafe" in given else math.inf
        other = given.vector("counterexample", self._d)
        if not (safe < unsafe or safe == unsafe == 0.0):
            given.refuse(f"safe must be < unsafe, got {safe} and {unsafe}")
        if math.isfinite(unsafe) != (other is not None):
            given.refuse("counterexample must be given with a radius unsafe and no other")
        known = point.found or (0.0, math.inf, None)
        point.found = max(known[0], safe), *min(known[1:], (unsafe, other), key=lambda pair: pair[0])

    def _read_attack(self, point: Point, given: Fields) -> None:
        radius, success = given.number("radius", 0.0), given.flag("success")
        p = given.number("attacked_probability", -_SLACK, 1.0 + _SLACK)
        found = Attacked(radius, given.text("method") or "", success, p, given.vector("attacked", self._d))
        known = point.attacks.get(radius)
        if known is None or not known.success:
            point.attacks[radius] = found

    def _read_explain(self, point: Point, given: Fields) -> None:
        most = 2.0 + _SLACK
        parts = [given.vector(name, self._d, -most, most) for name in ("value", "lower", "upper")]
        value, lower, upper = (np.array([]) if part is None else part for part in parts)
        if not (value.size and value.shape == lower.shape == upper.shape):
            given.refuse("value, lower and upper must be lists of one number for each feature")
        if not ((lower <= value) & (value <= upper)).all():
            given.refuse("value must lie between lower and upper")
        name = given.class_name(self._classes)
        point.explained.append(Explained(name, given.number("radius", 0.0), value, lower, upper))


def _add(point: Point, found: Verdict, given: Fields) -> None:
    """A verdict that decides stays, whatever another file left open."""
    known = point.verdicts.get(found.radius)
    if known is None or known.status == "unknown":
        point.verdicts[found.radius] = found
    elif found.status not in ("unknown", known.status):
        given.refuse(f"{found.status} at radius {found.radius} contradicts {known.status}, told before")


def _check_consistent(point: Point, given: Fields) -> None:
    if point.safe >= point.unsafe:
        given.refuse(f"safe up to {point.safe} contradicts unsafe at {point.unsafe}; one was told before")
    broken = min((a.radius for a in point.attacks.values() if a.success), default=math.inf)
    if point.safe >= broken:
        given.refuse(f"safe up to {point.safe} contradicts an attack at {broken}; one was told before")


def _implied(point: Point, found: Ranged, radius: float) -> Verdict:
    """What the range of one of two classes proves about the predicted label."""
    own = found.name == point.predicted
    low, high = map(Fraction, found.min if own else found.max)
    margin = (low - _HALF, high - _HALF) if own else (_HALF - high, _HALF - low)
    status = "safe" if margin[0] > 0 else "unsafe" if margin[1] < 0 else "unknown"
    witness = found.argmin if own else found.argmax
    return Verdict(radius, status, margin, witness if status == "unsafe" else None)

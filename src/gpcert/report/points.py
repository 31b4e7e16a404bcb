"""Answers by row: what all results files together prove about each point.

Files come from strangers: every value is checked before it is used, and a wrong one is an error that names
the file and the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import Float, require

__all__ = ["Attacked", "Explained", "Point", "Ranged", "Verdict", "merge"]


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
    seconds: float

    @property
    def delta(self) -> tuple[float, float]:
        """Bounds of max - min."""
        return max(0.0, self.max[0] - self.min[1]), self.max[1] - self.min[0]


@dataclass(frozen=True, eq=False)
class Verdict:
    """ "safe", "unsafe" or "unknown" within a radius."""

    radius: float
    status: str
    margin: tuple[float, float]
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
        ):
            require(one == other, f"{path} and {first_path} must be about the same {what}, got two")
        reader = _Reader(path, [str(name) for name in document["model"].get("classes", [])], document)
        threshold = document["settings"].get("threshold", 0.5)
        require(threshold == 0.5, f"{path} must have threshold 0.5 for a report on labels, got {threshold}")
        for i, answer in enumerate(document["answers"]):
            reader.read(points, i, answer)
    return [points[row] for row in sorted(points)]


def _kind(document: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(document["settings"].get(key) for key in ("norm", "features", "domain", "scale"))


class _Reader:
    """Turns the answers of one file into parts of points."""

    def __init__(self, path: Path, classes: list[str], document: dict[str, Any]) -> None:
        self._path = path
        self._classes = classes
        self._verb: str = document["verb"]
        self._parts = {
            "range": self._read_range,
            "certify": self._read_certify,
            "radius": self._read_radius,
            "attack": self._read_attack,
            "explain": self._read_explain,
        }
        self._answer: dict[str, Any] = {}
        self._place = ""

    def read(self, points: dict[int, Point], i: int, answer: dict[str, Any]) -> None:
        """Add one answer to its point."""
        self._answer, self._place = answer, f"{self._path}: answer {i}"
        row = answer["row"]
        point = points.setdefault(row, Point(row, str(answer.get("id", row))))
        self._about(point)
        part = self._parts.get(self._verb)
        if part is None:
            raise InvalidInputError(
                f"{self._path} must be the results of a question, got {self._verb[:40]!r}"
            )
        part(point)

    def _about(self, point: Point) -> None:
        given = self._answer
        point.x = self._vector("x")
        point.label = str(given["label"]) if "label" in given else None
        point.predicted = str(given.get("predicted", ""))
        p = self._vector("probability")
        if p is not None:
            point.probability = float(p.max())

    def _read_range(self, point: Point) -> None:
        name = self._class()
        radius = None if "radius" not in self._answer else self._number("radius")
        low, high = self._pair("min"), self._pair("max")
        ends = self._vector("argmin"), self._vector("argmax")
        status, seconds = str(self._answer.get("status")), self._number("seconds")
        point.ranges.append(Ranged(name, radius, low, high, *ends, status, seconds))
        if radius is not None and len(self._classes) == 2 and radius not in point.verdicts:
            point.verdicts[radius] = _implied(point, point.ranges[-1], radius)

    def _read_certify(self, point: Point) -> None:
        radius, status = self._number("radius"), str(self._answer.get("verdict"))
        self._require(status in ("safe", "unsafe", "unknown"), "verdict must be safe, unsafe or unknown")
        point.verdicts[radius] = Verdict(radius, status, self._pair("margin"), self._vector("counterexample"))

    def _read_radius(self, point: Point) -> None:
        infinite = self._answer.get("unsafe") is None
        unsafe = math.inf if infinite else self._number("unsafe")
        point.found = self._number("safe"), unsafe, self._vector("counterexample")

    def _read_attack(self, point: Point) -> None:
        radius, success = self._number("radius"), self._answer.get("success")
        self._require(isinstance(success, bool), "success must be true or false")
        point.attacks[radius] = Attacked(
            radius,
            str(self._answer.get("method")),
            bool(success),
            self._number("attacked_probability"),
            self._vector("attacked"),
        )

    def _read_explain(self, point: Point) -> None:
        parts = [self._vector(name) for name in ("value", "lower", "upper")]
        self._require(
            all(part is not None for part in parts), "value, lower and upper must be lists of numbers"
        )
        value, lower, upper = (np.asarray(part) for part in parts)
        found = Explained(self._class(), self._number("radius"), value, lower, upper)
        point.explained.append(found)

    def _class(self) -> str:
        position = self._answer.get("class")
        if type(position) is not int or not 0 <= position < len(self._classes):
            raise InvalidInputError(f"{self._place}: class must be a position in the model's classes")
        return self._classes[position]

    def _number(self, name: str) -> float:
        value = self._answer.get(name)
        self._require(_is_number(value), f"{name} must be a finite number")
        return float(value)  # type: ignore[arg-type]

    def _pair(self, name: str) -> tuple[float, float]:
        value = self._vector(name)
        self._require(value is not None and len(value) == 2, f"{name} must be two numbers")
        assert value is not None
        return float(value[0]), float(value[1])

    def _vector(self, name: str) -> Float | None:
        value = self._answer.get(name)
        if value is None:
            return None
        good = isinstance(value, list) and value and all(_is_number(v) for v in value)
        self._require(bool(good), f"{name} must be a list of finite numbers")
        return np.array(value, dtype=np.float64)

    def _require(self, condition: bool, rule: str) -> None:
        if not condition:
            raise InvalidInputError(f"{self._place}: {rule}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308


def _implied(point: Point, found: Ranged, radius: float) -> Verdict:
    """What the range of one of two classes proves about the predicted label."""
    own = found.name == point.predicted
    low, high = (found.min[0], found.min[1]) if own else (1.0 - found.max[1], 1.0 - found.max[0])
    status = "safe" if low > 0.5 else "unsafe" if high < 0.5 else "unknown"
    witness = found.argmin if own else found.argmax
    margin = (low - 0.5, high - 0.5)
    return Verdict(radius, status, margin, witness if status == "unsafe" else None)

"""Results files by model and kind of region: what a page puts together, and what it compares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from gpcert.numbers import exactly
from gpcert.pages.points import ResultsFile, RowAnswers, merged
from gpcert.records.results_file import words_of
from gpcert.records.rows import Row
from gpcert.regions import Ball, Region
from gpcert.results import CertifiedRadius, Verdict
from gpcert.results.wording import Words
from gpcert.validation import Float, require


@dataclass(frozen=True, eq=False)
class ResultGroup:
    """One model, one kind of region: its results files, and what they prove together about each row."""

    name: str
    results: Sequence[ResultsFile]
    points: list[RowAnswers]
    threshold: float
    words: Words

    @property
    def document(self) -> dict[str, Any]:
        """The first document: model and data are the same in all."""
        return self.results[0][1]

    @property
    def rows(self) -> list[Row]:
        """The answers of all files."""
        return [row for _, _, rows in self.results for row in rows]

    @property
    def region(self) -> Region | None:
        """One of the regions: all are of its kind; that of a ball, if there is one."""
        regions = [next(iter(row.answer.regions), None) for _, _, rows in self.results for row in rows[:1]]
        return next((r for r in regions if isinstance(r, Ball)), regions[0] if regions else None)

    @property
    def image(self) -> tuple[int, int] | None:
        """Rows and columns of the images that the rows are; None: they are none."""
        shape = self.document["data"].get("image_shape")
        return None if shape is None else (shape[0], shape[1])

    @cached_property
    def grey(self) -> tuple[float, float]:
        """What is black and what is white in images: the least and the largest value of any row."""
        x = [p.x for p in self.points if p.x is not None]
        return (min(float(v.min()) for v in x), max(float(v.max()) for v in x)) if x else (0.0, 1.0)

    @cached_property
    def scale(self) -> Float | None:
        """Units of the features."""
        return None if self.region is None else self.region.scale

    @property
    def shape(self) -> str:
        """The kind of region, in short."""
        return _shape_name(self.document["settings"])

    @property
    def question(self) -> str:
        """What a radius means here: the same in groups that may be compared at one radius.

        Units count by their name: one standard deviation is another number after training again. So do
        features: all of two and all of four are not the same.
        """
        asked = dict(zip(_KIND, _kind(self.document), strict=True))
        if self.words.unit is not None:
            asked["scale"] = self.words.unit
        if asked["features"] is None:
            asked["features"] = list(self.words.features)
        elif isinstance(asked["features"], list):
            asked["features"] = [self.words.feature(j) if type(j) is int else j for j in asked["features"]]
        return json.dumps(asked | {"threshold": self.threshold})

    @property
    def called(self) -> dict[str, str]:
        """What the verdicts are called: below a threshold of their own classes need not change."""
        lost = "can change" if self.threshold == 0.5 else f"can fall to {exactly(self.threshold)}"
        return {"safe": "proved safe", "unsafe": lost, "unknown": "not decided"}

    def other(self, point: RowAnswers) -> str:
        """What a counterexample is: of two classes, the other one."""
        if self.threshold != 0.5:
            return f"probability at most {exactly(self.threshold)}"
        others = [name for name in self.words.classes if name != point.predicted]
        return f"predicted {others[0]}" if len(others) == 1 < len(self.words.classes) else "another class"

    @property
    def most(self) -> str:
        """What the share without a counterexample is called: only at one half it bounds an accuracy."""
        return (
            "worst case at most"
            if self.threshold == 0.5
            else f"right and above {exactly(self.threshold)} at most"
        )

    @property
    def radius_name(self) -> str:
        """What a radius is called on an axis: with its unit, if that has a name."""
        return f"radius (in {self.words.unit})" if self.words.unit else "radius"

    @property
    def ends(self) -> str:
        """Where curves over the radius end."""
        lost = self.called["unsafe"]
        rows = self.words.rows
        return f"A curve ends at the largest radius tested for all {rows}, or where all {lost}."

    def far(self, radius: float) -> str:
        """A radius with its unit."""
        return f"{exactly(radius)} {self.words.unit or ''}".rstrip()

    @property
    def ranged(self) -> tuple[str, str]:
        """The class whose ranges are shown, and where they were asked: at one radius, or at several."""
        name = next((str(p.ranges[-1].label) for p in self.points if p.ranges), "")
        radii = {found.region.radius for p in self.points if (found := p.range_of(name)) is not None}
        (radius,) = radii if len(radii) == 1 else (None,)
        if radius is not None:
            return name, f" at radius {self.far(radius)}"
        return name, " at the last radius asked" if len(radii) > 1 else ""

    def restricted(self, rows: set[int]) -> ResultGroup:
        """The same about some of the rows."""
        return replace(self, points=[p for p in self.points if p.row in rows])


def common_threshold(groups: Sequence[ResultGroup]) -> float | None:
    """That of all groups, None if they have several."""
    found = {group.threshold for group in groups}
    return found.pop() if len(found) == 1 else None


def differences(groups: Sequence[ResultGroup]) -> str:
    """What the questions of groups differ in."""
    asked = [json.loads(group.question) for group in groups]
    found = [name for key, name in _ASKED.items() if any(each[key] != asked[0][key] for each in asked)]
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def grouped(results: Sequence[ResultsFile], separate: bool = False) -> list[ResultGroup]:
    """The results files by model and kind of region, or each by itself; all must be about the same data."""
    groups: dict[Any, list[ResultsFile]] = {}
    first_path, first, _ = results[0]
    targets = {str(document["data"].get("target"))[:40] for _, document, _ in results} - {"None"}
    require(len(targets) <= 1, f"results must have the same target column, got {sorted(targets)[:4]}")
    for k, result in enumerate(results):
        path, document, _ = result
        same = document["data"].get("sha256") == first["data"].get("sha256")
        require(same, f"{path} and {first_path} must be about the same data, got two")
        kind = json.dumps([document["model"].get("sha256"), _kind(document)])
        groups.setdefault((k,) if separate else kind, []).append(result)
    found = []
    for name, some in zip(_names(list(groups.values()), separate), groups.values(), strict=True):
        threshold = _threshold(some)
        every = [words_of(document) for _, document, _ in some]
        words = replace(every[0], partly=any(words.partly for words in every))
        found.append(ResultGroup(name, some, merged(some, threshold), threshold, words))
    for group in found[1:]:
        _check_same_rows(found[0], group)
    return found


def _check_same_rows(first: ResultGroup, second: ResultGroup) -> None:
    """A number of a row must mean one row: tables in memory have no hash to compare."""
    if first.words.features != second.words.features:
        return  # of one file each model may use its own columns
    known = {p.row: p for p in first.points}
    for p in second.points:
        q = known.get(p.row)
        same = q is None or all(
            one is None or other is None or np.array_equal(one, other)
            for one, other in ((p.x, q.x), (p.label, q.label))
        )
        text = f"{first.name} and {second.name} must be about the same rows"
        require(same, f"{text}, got two different rows {p.name[:40]!r}")


def _names(groups: Sequence[Sequence[ResultsFile]], separate: bool) -> list[str]:
    """The models' files, and of more what it takes to distinguish them; `separate`: the results files."""
    firsts = [some[0] for some in groups]
    files = [str(path if separate else document["model"].get("file")) for path, document, _ in firsts]
    short = [PurePath(file).name or file for file in files]
    files = short if len(set(short)) == len(set(files)) else files
    models = [f"model {str(document['model'].get('sha256'))[:8]}" for _, document, _ in firsts]
    shapes = [_shape_name(document["settings"]) for _, document, _ in firsts]
    more = [models] if len(set(files)) < len(set(models)) else []
    more += [shapes] if len(set(shapes)) > 1 else []
    found = [", ".join(names) for names in zip(files, *more, strict=True)]
    return [name if found.index(name) == k else f"{name} ({k + 1})" for k, name in enumerate(found)]


def _shape_name(settings: Mapping[str, Any]) -> str:
    norm, features = settings.get("norm"), settings.get("features")
    number = str(norm).removesuffix(".0")
    text = f"norm {number[:20]}{_NORMS.get(number, '')}"
    return text + (f", {len(features)} features" if isinstance(features, list) else "")


def _threshold(results: Sequence[ResultsFile]) -> float:
    """Above which P(label) has to stay: one for all."""
    known: set[float] = set()
    for path, _, rows in results:
        known |= {r.answer.threshold for r in rows if isinstance(r.answer, Verdict | CertifiedRadius)}
        text = f"{path}: threshold must be the same in all verdicts about a model, got {sorted(known)[:4]}"
        require(len(known) <= 1, text)
    return known.pop() if known else 0.5


_NORMS = {"inf": " (each by itself)", "2": " (Euclidean)", "1": " (in sum)", "0": " (so many at all)"}
_KIND = ("norm", "features", "domain", "scale")
_ASKED = {
    "norm": "the norm",
    "features": "the features that move",
    "domain": "the limits",
    "scale": "the unit of the radius",
    "threshold": "the threshold",
}


def _kind(document: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(document["settings"].get(key) for key in _KIND)

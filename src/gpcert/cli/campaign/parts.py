"""The parts of a campaign: one batch of one question about all rows, with one model, one norm, one radius."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from gpcert.bounds.factory import BoundFactory
from gpcert.classes import Label, position
from gpcert.cli.campaign.file import Campaign
from gpcert.cli.io.sources import read_points
from gpcert.cli.io.tables import DataTable
from gpcert.cli.options import rows
from gpcert.cli.regions import BallOptions, ball_around, read_shape
from gpcert.cli.session import LoadedModel
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.proofs.prover import ProofPath, row_names
from gpcert.questions.certify import certify
from gpcert.questions.decision import refutes
from gpcert.questions.evaluate import evaluate
from gpcert.questions.explain import explain
from gpcert.questions.radius import certified_radius
from gpcert.questions.ranges import probability_range
from gpcert.results import Answer
from gpcert.store import Plan, Store
from gpcert.validation import Float, Index, require

#: What two lines of a campaign may differ in, beyond question, model, norm, features and radius.
SETTINGS = (
    *("scale", "domain", "threshold", "label"),
    *("method", "tolerance", "rtol", "max_radius", "max_seconds", "max_nodes"),
)

#: Rows in one call; a multiple of the blocks that questions work in.
_LOT = 2048

#: Entries of a question that are parameters of its function as they stand.
_PASSED = ("tolerance", "max_nodes", "threshold", "max_radius", "rtol", "method", "device")


class Truth(IntEnum):
    """Whether the model's label of a row is the true one."""

    WRONG = 0  #: proved: at the row itself another class is more probable
    RIGHT = 1  #: as the predictor sees it; a verdict proves it
    UNSURE = 2  #: the predictor sees another one, too near a tie for a proof


@dataclass(frozen=True, eq=False)
class ModelData:
    """The rows of the data, and what a model makes of them."""

    model: LoadedModel
    table: DataTable

    @cached_property
    def probability(self) -> Float:
        """Of the classes, as the predictor sees it (m, C)."""
        return self.model.post.probability(self.table.X)

    @cached_property
    def truth(self) -> list[Truth | None]:
        """Of every row whether the model's label is its own; None where the data have no labels."""
        labels, classes = self.table.labels, self.model.classes
        if labels is None or not classes:
            return [None] * len(self.table.X)
        factory, found = BoundFactory(self.model.post), self.probability.argmax(axis=1).tolist()
        return [self._truth(factory, i, found[i], classes.index(label)) for i, label in enumerate(labels)]

    def _truth(self, factory: BoundFactory, i: int, found: int, true: int) -> Truth:
        if found == true:
            return Truth.RIGHT
        wrong = refutes(self.model.post, factory, self.table.X[i], true, 0.5)
        return Truth.WRONG if wrong else Truth.UNSURE

    @cached_property
    def nearness(self) -> Float:
        """How far the rows are from the decision boundary, in probability (m,)."""
        p = np.sort(self.probability, axis=1)
        return np.asarray(p[:, -1] - p[:, -2])


@dataclass(frozen=True, eq=False)
class Part:
    """`described`: what is asked, in words for tables; `proof`: the folder for proof files."""

    described: dict[str, Any]
    points: ModelData
    shape: BallOptions
    question: dict[str, Any]
    radius: float | None
    proof: ProofPath | None

    @property
    def post(self) -> Posterior:
        """The model in question."""
        return self.points.model.post

    @property
    def table(self) -> DataTable:
        """The rows."""
        return self.points.table

    @property
    def limit(self) -> float:
        """Seconds for one answer, as the file says."""
        return float(self.question.get("max_seconds", math.inf))

    @property
    def truth(self) -> list[Truth | None]:
        """Of every row, where that is a part of what is asked."""
        return self.points.truth if self.judges else [None] * len(self.table.X)

    @property
    def judges(self) -> bool:
        """Whether it is about labels: its answers narrow the certified accuracy."""
        return self.question["ask"] in ("certify", "evaluate")

    def ask(self, order: Index, seconds: float, **running: Any) -> None:
        """The rows in this order, with this limit in seconds for each; answers go to the store."""
        q, X, shape = self.question, self.table.X[order], self.shape
        options: dict[str, Any] = {name: q[name] for name in _PASSED if name in q}
        options |= running | {"max_seconds": None if math.isinf(seconds) else seconds, "proof": self.proof}
        if q["ask"] == "radius":
            certified_radius(self.post, X, **shape._asdict(), **options)
        elif q["ask"] == "evaluate":
            evaluate(self.post, X, self._labels()[order], q["radii"], **shape._asdict(), **options)
        elif q["ask"] == "explain":
            options |= {"features": shape.features, "domain": shape.domain, "scale": shape.scale}
            explain(self.post, X, self.radius or 0.0, self._label(), **options)
        else:
            chosen = [ball_around(self.table, i, self.radius or 0.0, shape) for i in order.tolist()]
            if q["ask"] == "certify":
                certify(self.post, X, chosen, **options)
            else:
                probability_range(self.post, chosen, self._label(), **options)

    def blanks(self, store: Store) -> Iterator[Answer]:
        """What would be asked, as answers that say nothing, in the order of the rows."""
        for lot in lots(np.arange(len(self.table.X))):
            plan = Plan(store.path)
            self.ask(lot, self.limit, store=plan)
            plan.close()
            yield from plan.blanks

    def _label(self) -> Label:
        return self.post.labels[position(self.post.labels, self.question.get("label"))]

    def _labels(self) -> Any:
        require(self.table.labels is not None, "evaluate must be asked about rows with labels, got none")
        return np.array(self.table.labels)


def lots(order: Index) -> Iterator[Index]:
    """Rows by the thousand: a campaign's memory does not grow with its size."""
    for first in range(0, len(order), _LOT):
        yield order[first : first + _LOT]


def parts(campaign: Campaign) -> Iterator[Part]:
    """All parts, in the order of the file; files are read, options checked."""
    for name, file in campaign.models.items():
        model = LoadedModel(campaign.place(file))
        post = model.post
        require(post.likelihood is not None, f"models.{name} must be a classifier, got a regression model")
        given = campaign.data
        parsed = argparse.Namespace(
            data=campaign.place(given["file"]),
            rows=rows(given["rows"]) if "rows" in given else None,
            target=given.get("target"),
            id=given.get("id"),
            delimiter=given.get("delimiter"),
            encoding="utf-8",
            decimal=".",
            missing=None,
        )
        points = ModelData(model, read_points(parsed, post))
        table, asked = points.table, any("proof" in question for question in campaign.questions)
        names = row_names([*map(table.named, range(len(table.X)))], table.X) if asked else None
        for i, question in enumerate(campaign.questions):
            if name in question.get("models", [name]):
                folder = question.get("proof")
                proof = None if folder is None else ProofPath(campaign.place(folder), model.sha256, names)
                try:
                    for part in _of(name, points, question, proof):
                        part.described["files"] = {file: model.sha256, given["file"]: points.table.sha256}
                        yield part
                except InvalidInputError as error:
                    raise InvalidInputError(f"questions[{i}]: {error}") from None


def _listed(entry: str | list[str] | None) -> list[str] | None:
    """One text is a list of one."""
    return [entry] if isinstance(entry, str) else entry


def _of(name: str, points: ModelData, question: dict[str, Any], proof: ProofPath | None) -> Iterator[Part]:
    alone = question["ask"] in ("radius", "evaluate")
    for norm in question.get("norms", ["inf"]):
        for features in question.get("features", [None]):
            parsed = argparse.Namespace(
                norm=float(norm),
                features=features,
                domain=_listed(question.get("domain")),
                scale=_listed(question.get("scale")),
            )
            shape = read_shape(parsed, points.model.post, points.table)
            for radius in [None] if alone else question["radii"]:
                described = {"ask": question["ask"], "model": name, "norm": str(norm), "radius": radius}
                described |= {"radii": question.get("radii"), "features": features}
                described |= {"settings": {name: question.get(name) for name in SETTINGS}}
                yield Part(described, points, shape, question, radius, proof)

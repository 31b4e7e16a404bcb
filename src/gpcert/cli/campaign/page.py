"""What a campaign has found so far: a page, that of its answers as results files in memory, or a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from gpcert.claims import around
from gpcert.cli.campaign.file import Campaign, threshold_of
from gpcert.cli.campaign.parts import SETTINGS, Part, parts
from gpcert.cli.session import Rows, describe_data
from gpcert.errors import InvalidInputError
from gpcert.numbers import exactly
from gpcert.pages import report_on
from gpcert.posterior import Posterior
from gpcert.records.batch import shape_told, unit_of
from gpcert.records.results_file import describe_model, document
from gpcert.records.rows import Row, about_row, columns, flat
from gpcert.regions import Ball
from gpcert.results import Answer, CertifiedRadius, Evaluation, Status
from gpcert.store import Store

_LIMITS = ("tolerance", "max_seconds", "max_nodes")


def campaign_pages(campaign: Campaign, store: Store, path: Path) -> dict[float, str]:
    """HTML texts: every answer that the store has to the campaign's questions, each checked as it is read.

    One for each threshold, because safe means another thing above another one; questions without verdicts are
    on the first. What is asked follows from the models and the data as they are now: an answer about others
    is not found.
    """
    first, *others = campaign.thresholds
    some: dict[float, list[Any]] = {threshold: [] for threshold in (first, *others)}
    for part in parts(campaign):
        document, rows = result_of(part, store)
        threshold = threshold_of(part.question)
        if rows:
            some[first if threshold is None else threshold].append((_name(path, part), document, rows))
    if not any(some.values()):
        raise InvalidInputError(f"{path} must have been run before, got a store without its answers")
    title = f"Campaign {path.stem}"
    return {
        threshold: report_on(results, f"{title}, threshold {exactly(threshold)}" if others else title)
        for threshold, results in some.items()
        if results
    }


def campaign_rows(campaign: Campaign, store: Store) -> dict[str, list[Any]]:
    """Columns with a line for every row and radius (of an explanation, and feature); of a question without an
    answer what is known of its row.
    """
    lines = []
    for part in parts(campaign):
        features = part.described["features"]
        described = {name: part.described[name] for name in ("ask", "model", "norm")}
        described |= {"features": None if features is None else ",".join(features)}
        described |= {name: part.question.get(name) for name in SETTINGS}
        described = {
            name: ", ".join(value) if isinstance(value, list) else value for name, value in described.items()
        }
        for row in _rows(part, store):
            lines += [described | about_row(row) | line for line in _lines(part, row.answer)]
    return columns(lines)


def _lines(part: Part, answer: Answer | None) -> list[dict[str, Any]]:
    """What is known of one row, for each radius of the question."""
    if answer is None:
        alone = part.question["ask"] != "evaluate"
        return [{"radius": radius} for radius in ([part.radius] if alone else part.question["radii"])]
    if not isinstance(answer, Evaluation):
        return flat(answer)
    safe, unsafe = float(answer.safe[0]), float(answer.unsafe[0])
    found = {
        "safe": None if math.isnan(safe) else safe,
        "unsafe": unsafe,
        "seconds": answer.seconds,
        "threshold": answer.threshold,
    }
    words = zip(answer.radii.tolist(), answer.verdicts.ravel().tolist(), strict=True)
    return [{"radius": radius, "label": answer.labels[0], "status": word} | found for radius, word in words]


def _name(path: Path, part: Part) -> Path:
    radius = "" if part.radius is None else f" at {part.radius}"
    return Path(f"{path.stem}: {part.question['ask']}{radius}")


def result_of(part: Part, store: Store) -> tuple[dict[str, Any], list[Row]]:
    """The document of one part and the rows that are answered."""
    model, table, shape, question = part.points.model, part.table, part.shape, part.question
    known: list[Any] = [row for row in _rows(part, store) if row.answer is not None]
    answers = [replace(row, answer=_shown(part.post, row.answer)) for row in known]
    described = shape_told(shape, model.features)
    settings = {name: question.get(name) for name in ("threshold", "label", "method", "rtol", *_LIMITS)}
    return document(
        question["ask"],
        settings=settings | described | {"unit": unit_of(part.post, described["scale"])},
        model=describe_model(part.post, Path(model.file).name, model.sha256),
        data=describe_data(table, None),
        answers=answers,
        asked=len(table.X),
        interrupted=False,
        seconds=sum(float(getattr(row.answer, "seconds", 0.0)) for row in answers),
    ), answers


def _rows(part: Part, store: Store) -> Iterator[Row]:
    """Every row with its answer, or None."""
    X, shape = part.table.X, part.shape
    balls = [(i, None if part.radius is None else shape.ball(x, part.radius)) for i, x in enumerate(X)]
    rows = Rows(part.points.model, part.table, balls)
    return (rows.row(i, store.best(blank.key)) for i, blank in enumerate(part.blanks(store)))


def _shown(post: Posterior, answer: Answer) -> Any:
    """An evaluation of one point as the two radii that it has found; any other answer as it is."""
    if not isinstance(answer, Evaluation):
        return answer
    safe, unsafe, point = float(answer.safe[0]), float(answer.unsafe[0]), answer.counterexamples[0]
    label, last = answer.labels[0], float(answer.radii[-1])
    status = Status.NODES if (answer.verdicts == "unknown").any() else Status.CONVERGED
    known = math.isfinite(unsafe)
    return CertifiedRadius(
        safe=0.0 if math.isnan(safe) else safe,
        unsafe=unsafe,
        counterexample=point if known else None,
        probability=float(post.probability(point[None])[0, post.labels.index(label)]) if known else None,
        label=label,
        threshold=answer.threshold,
        max_radius=last,
        rtol=math.inf,  # as near as the radii of the question are
        status=Status.RADIUS if safe == last else status,
        tests=0,
        nodes=0,
        seconds=answer.seconds,
        ball=cast(Ball, around(answer.balls[0], 0.0)),
        about=answer.about,
        proof=next(iter(answer.proof or ()), None),
        unproved=answer.unproved,
    )

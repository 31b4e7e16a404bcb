"""What a campaign has found so far, as results files in memory: its page is the page of these files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from gpcert.claims import around
from gpcert.cli.campaign.file import Campaign, threshold_of
from gpcert.cli.campaign.parts import Part, parts
from gpcert.cli.session import Rows, describe_data
from gpcert.errors import InvalidInputError
from gpcert.numbers import exactly
from gpcert.pages import report_on
from gpcert.posterior import Posterior
from gpcert.records.batch import shape_told, unit_of
from gpcert.records.results_file import describe_model, document
from gpcert.records.rows import Row
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


def _name(path: Path, part: Part) -> Path:
    radius = "" if part.radius is None else f" at {part.radius}"
    return Path(f"{path.stem}: {part.question['ask']}{radius}")


def result_of(part: Part, store: Store) -> tuple[dict[str, Any], list[Row]]:
    """The document of one part and its rows."""
    model, table, shape, question = part.points.model, part.table, part.shape, part.question
    balls = [(i, None if part.radius is None else shape.ball(x, part.radius)) for i, x in enumerate(table.X)]
    rows, found = Rows(model, table, balls), (store.best(blank.key) for blank in part.blanks(store))
    answers = [rows.row(i, _shown(part.post, answer)) for i, answer in enumerate(found) if answer is not None]
    told = shape_told(shape, model.features)
    settings = {name: question.get(name) for name in ("threshold", "label", "method", "rtol", *_LIMITS)}
    return document(
        question["ask"],
        settings=settings | told | {"unit": unit_of(part.post, told["scale"])},
        model=describe_model(part.post, Path(model.file).name, model.sha256),
        data=describe_data(table, None),
        answers=answers,
        asked=len(table.X),
        interrupted=False,
        seconds=sum(float(getattr(row.answer, "seconds", 0.0)) for row in answers),
    ), answers


def _shown(post: Posterior, answer: Answer) -> Answer:
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
        rtol=math.inf,  # as near as the radii that were asked about are
        status=Status.RADIUS if safe == last else status,
        tests=0,
        nodes=0,
        seconds=answer.seconds,
        ball=cast(Ball, around(answer.balls[0], 0.0)),
        about=answer.about,
        proof=next(iter(answer.proof or ()), None),
        unproved=answer.unproved,
    )

"""A batch of Python answers as the document that a command writes: pages and files are the same for both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.pictures import image_shape
from gpcert.posterior import Posterior
from gpcert.records.results_file import describe_model, document
from gpcert.records.rows import Row
from gpcert.regions import Ball
from gpcert.results import Attack, CertifiedRadius, Explanation, ProbabilityRange, Verdict
from gpcert.settings import Settings
from gpcert.validation import Float, require

_VERBS: dict[type, str] = {
    ProbabilityRange: "range",
    Verdict: "certify",
    CertifiedRadius: "radius",
    Attack: "attack",
    Explanation: "explain",
}


def batch_document(
    post: Posterior | None,
    answers: Sequence[Any],
    ids: Sequence[Any],
    truth: Sequence[Label] | None = None,
    order: dict[Any, int] | None = None,
) -> tuple[dict[str, Any], list[Row]]:
    """The document with its rows; `order`: positions of the ids, shared by documents about the same rows. Of
    answers from files the model is not at hand (None): they are about one, and know its classes.
    """
    kinds = {type(answer) for answer in answers}
    regions = [region_of(answer) for answer in answers]
    if len(kinds) != 1 or not kinds <= set(_VERBS) or None in regions:
        found = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        rule = "ranges, verdicts, radii, attacks or explanations of one row, of one kind"
        raise InvalidInputError(f"answers must be {rule}, got {found}")
    order = {} if order is None else order
    X = np.stack([region.centre for region in regions])
    probability = np.array([]) if post is None else post.probability(X)
    classes = [str(value) for value in (answers[0].about.classes if post is None else post.labels)]
    own = getattr(answers[0], "feature_names", None) if post is None else post.feature_names
    names, image = own or tuple(f"x{j}" for j in range(X.shape[1])), image_of(own, X)
    points: dict[Any, dict[bytes, int]] = {}  # of each id: the rows that share it are numbered
    rows = []
    for i, (answer, region) in enumerate(zip(answers, regions, strict=True)):
        drawn, same = isinstance(region, Ball), points.setdefault(ids[i], {})
        seen = drawn and len(probability) > 0  # else the row may be anywhere in its box
        k = same.setdefault(X[i].tobytes(), len(same))
        at = order.setdefault((ids[i], k), len(order))
        rows.append(
            Row(
                row=at,
                id=f"{ids[i]} ({k + 1})" if k else None if ids[i] == at else str(ids[i]),
                label=None if truth is None else str(truth[i]),
                predicted=_predicted(answer, classes, probability[i] if seen else None),
                probability=probability[i] if seen else None,
                x=X[i] if drawn else None,
                radius=region.radius if drawn and not isinstance(answer, CertifiedRadius) else None,
                answer=answer,
            )
        )
    kind = _VERBS[kinds.pop()]
    settings = _settings(post, names, regions, answers[0].settings)
    stopped = any(
        str(getattr(answer, "ended", getattr(answer, "status", ""))) == "interrupted" for answer in answers
    )
    return document(
        kind,
        settings=settings,
        model=_told_by(answers[0], names) if post is None else describe_model(post, "in memory", post.digest),
        data={"file": "a table in memory", "sha256": None, "target": None, "image_shape": image},
        answers=rows,
        asked=len(rows),
        interrupted=stopped,
        seconds=sum(float(getattr(answer, "seconds", 0.0)) for answer in answers),
    ), rows


def region_of(answer: Any) -> Any:
    """What an answer is about; None of several rows."""
    return answer.regions[0] if len(answer.regions) == 1 else None


def _predicted(answer: Any, classes: Sequence[str], probability: Float | None) -> str | None:
    """The model's label at the point: of a verdict or a radius its own."""
    if probability is not None:
        return classes[int(probability.argmax())]
    return str(answer.label) if isinstance(answer, Verdict | CertifiedRadius) else None


def _told_by(answer: Any, names: Sequence[str]) -> dict[str, Any]:
    """What an answer says of its model."""
    unknown = dict.fromkeys(("kernel", "likelihood"), "not told")
    entries = {"file": "not at hand", "sha256": answer.model, "digest": answer.model, "target": answer.target}
    return (
        entries
        | unknown
        | {
            "centres": 0,
            "features": list(names),
            "classes": [str(value) for value in answer.about.classes],
            "training": {},
        }
    )


def image_of(names: Sequence[str] | None, X: Float) -> list[int] | None:
    """Rows and columns where all points are images."""
    shapes = {image_shape(x, None if names is None else tuple(names)) for x in X}
    shape = shapes.pop() if len(shapes) == 1 else None
    return None if shape is None else list(shape)


def _settings(
    post: Posterior | None, names: Sequence[str], regions: Sequence[Any], asked: Settings
) -> dict[str, Any]:
    shapes = [shape_told(region, names) for region in regions if isinstance(region, Ball)]
    same = all(shape == shapes[0] for shape in shapes)
    require(same, "answers must be about one kind of region (norm, features, domain, scale), got several")
    limits = {name: None if math.isinf(value) else value for name, value in vars(asked).items()}
    shape = shapes[0] if shapes else {}
    return shape | {"unit": None if post is None else unit_of(post, shape.get("scale"))} | limits


def unit_of(post: Posterior, scale: Sequence[float] | Float | None) -> str | None:
    """What radius 1 means, in words, where a scale has a name: deviations of the training columns."""
    known = post.training_columns
    if scale is None or known is None:
        return None
    spread = np.where(known.spread > 0, known.spread, 1.0)
    return "standard deviations" if np.array_equal(np.asarray(scale, dtype=np.float64), spread) else None


def shape_told(shape: Any, names: Sequence[str]) -> dict[str, Any]:
    """The kind of a ball (norm, features, domain, scale) as JSON: features by name, an infinite end null."""
    return {
        "norm": "inf" if shape.norm == math.inf else shape.norm,
        "features": None if shape.features is None else [names[j] for j in shape.features],
        "domain": shape.domain and [_finite(end.tolist()) for end in shape.domain],
        "scale": None if shape.scale is None else shape.scale.tolist(),
    }


def _finite(ends: list[float]) -> list[float | None]:
    return [end if math.isfinite(end) else None for end in ends]

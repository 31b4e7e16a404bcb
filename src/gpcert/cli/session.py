"""One run of a question: model and rows in, answers out, printed and saved."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpcert.cli.pool import Answer, Ask, answer_all
from gpcert.cli.progress import Interrupt, ProgressLine, duration
from gpcert.cli.sources import class_names, feature_names
from gpcert.cli.tables import Table
from gpcert.errors import InvalidInputError, ModelFileError
from gpcert.files import write_whole
from gpcert.parallel import cores
from gpcert.regions import Ball, Region
from gpcert.report.results_file import describe_model, document, dumps
from gpcert.store import load_hashed
from gpcert.validation import require

__all__ = ["Model", "Rows", "check_output", "class_position", "finish", "open_model", "run_session"]

_SHOWN = 10  # rows of a table on the terminal, where a file holds them all


class Model:
    """A loaded posterior with the name and the hash of its file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.post, self.sha256 = load_hashed(file)
        self.classes = class_names(self.post)
        self.features = feature_names(self.post)


def open_model(parsed: argparse.Namespace) -> Model:
    """The model of a question: one that classifies. Everything about options is checked before the work."""
    inputs = (getattr(parsed, name, None) for name in ("model", "data", "boxes"))
    check_output(parsed.output, *inputs)
    model = Model(parsed.model)
    if model.post.likelihood is None:
        raise ModelFileError(f"{model.file} must be a classifier, got a regression model")
    return model


def check_output(path: Path | None, *inputs: str | Path | None) -> None:
    """A missing folder is told before the work, not after it; no input is written over."""
    if path is None:
        return
    require(path.parent.is_dir(), f"--output must be in a folder that exists, got {path}")
    require(not path.is_dir(), f"--output must be a file, got the folder {path}")
    require(not path.exists() or path.is_file(), f"--output must be an ordinary file, got {path}")
    for other in inputs:
        same = other is not None and path.exists() and os.path.exists(other) and os.path.samefile(path, other)
        require(not same, f"--output must not be one of the inputs, got {path}")


def class_position(classes: Sequence[str], label: str | None) -> int:
    """The column of a class value; of two classes, the second by default."""
    if label is None:
        require(len(classes) == 2, f"--label must be one of {', '.join(classes)}, got none")
        return 1
    if label not in classes:
        raise InvalidInputError(f"--label must be one of {', '.join(classes)}, got {label!r}")
    return classes.index(label)


class Rows:
    """What answers start with: the row, its labels, the estimated probabilities at the point, the region."""

    def __init__(
        self, model: Model, table: Table | None, regions: Sequence[tuple[int, Region | None]]
    ) -> None:
        self._model, self._table, self._regions = model, table, regions
        self._probability = None if table is None else model.post.probability(table.X)

    def about(self, k: int) -> Answer:
        """The beginning of the k-th answer."""
        i, region = self._regions[k]
        told = _region(region)
        table, probability = self._table, self._probability
        if table is None or probability is None:
            return {"row": i, **told}
        said: Answer = {"row": table.rows[i]}
        if table.ids is not None:
            said["id"] = table.ids[i]
        if table.labels is not None:
            said["label"] = table.labels[i]
        said["predicted"] = self._model.classes[int(probability[i].argmax())]
        said["probability"] = probability[i].tolist()
        return said | {"x": table.X[i].tolist()} | told


def _region(region: Region | None) -> Answer:
    if region is None:
        return {}
    if isinstance(region, Ball):
        return {"radius": region.radius}
    return {"lower": region.lower.tolist(), "upper": region.upper.tolist()}


def run_session(
    parsed: argparse.Namespace,
    model: Model,
    table: Table | None,
    ask: Ask,
    queries: Sequence[Any],
    rows: Rows,
    settings: dict[str, Any],
    table_of: Callable[[list[Answer]], str],
    summary_of: Callable[[list[Answer]], str] = lambda answers: "",
) -> int:
    """Ask all queries, print and save the answers; the exit status: 0, 130 after Ctrl-C, 143 after TERM."""
    jobs = min(parsed.jobs or cores(), len(queries))
    line = ProgressLine(parsed.verb, len(queries), jobs, parsed.quiet)
    start = time.perf_counter()
    with Interrupt() as interrupt:
        outcome = answer_all(ask, model.post, queries, jobs, line, interrupt)
        answers = [rows.about(k) | found for k, found in enumerate(outcome.answers) if found is not None]
        results = document(
            parsed.verb,
            settings=settings | {"jobs": jobs, "command": shlex.join(["gpcert", *parsed.command])},
            model=describe_model(model.post, model.file, model.sha256),
            data=_describe(table, parsed),
            answers=answers,
            asked=len(queries),
            interrupted=outcome.interrupted,
            seconds=time.perf_counter() - start,
        )
        finish(parsed, results, table_of, summary_of)
    if outcome.failure:
        print(f"gpcert: {outcome.failure}", file=sys.stderr)
        return 1
    return interrupt.status if outcome.interrupted else 0


def finish(
    parsed: argparse.Namespace,
    results: dict[str, Any],
    table_of: Callable[[list[Answer]], str],
    summary_of: Callable[[list[Answer]], str],
) -> None:
    """Print first: answers are seen even where they cannot be saved."""
    text = dumps(results)
    answers = results["answers"]
    if parsed.json:
        print(text, end="")
    else:
        shown = answers if parsed.output is None else answers[:_SHOWN]
        if lines := table_of(shown):
            print(lines)
            if len(shown) < len(answers):
                print(f"... {len(answers) - len(shown)} more in {parsed.output}")
        if answers and (summary := summary_of(answers)):
            print(summary)
        told = f"{len(answers)} of {results['asked']} answered in {duration(results['seconds'])}"
        print(told if results["complete"] else f"{told}; stopped early, every bound shown holds")
    if parsed.output is not None:
        write_whole(parsed.output, text)
        if not parsed.json:
            print(f"saved: {parsed.output}")


def _describe(table: Table | None, parsed: argparse.Namespace) -> dict[str, Any]:
    if table is None:
        return {}
    shape = parsed.image_shape or table.image_shape
    if shape is not None:
        d = table.X.shape[1]
        require(shape[0] * shape[1] == d, f"--image-shape must have {d} pixels, got {shape[0]}x{shape[1]}")
    return {
        "file": table.source,
        "sha256": table.sha256,
        "target": table.target,
        "image_shape": None if shape is None else list(shape),
    }

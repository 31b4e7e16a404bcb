"""One run of a question: model and rows in, answers out, printed and saved."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gpcert.cli.asking import Ask, answer_all, size
from gpcert.cli.gates import Gate
from gpcert.cli.io.sources import class_names, feature_names
from gpcert.cli.io.tables import Table
from gpcert.cli.keeping import Kept, check_outputs, keep, rescue
from gpcert.cli.progress import Interrupt, duration, line
from gpcert.cli.show import say, warn
from gpcert.errors import ModelFileError
from gpcert.files import write_whole
from gpcert.formats import TABLES, check_lines, write_table
from gpcert.model_file import load_hashed
from gpcert.questions.checks import units_apart
from gpcert.records.batch import unit_of
from gpcert.records.results_file import (
    describe_model,
    document,
    dumps,
    impossible,
    summary,
    surroundings,
    units,
)
from gpcert.records.rows import Row, columns, line_of
from gpcert.regions import Ball, Region
from gpcert.results.wording import few
from gpcert.results.wording import lines as table_lines
from gpcert.running import cores
from gpcert.validation import printable, require

#: Answers, by number, to as many queries as it can at once; given where answers are kept.
Together = Callable[[Any], Mapping[int, Any]]

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
    check_outputs(parsed, *(getattr(parsed, name, None) for name in ("model", "data", "boxes")))
    swapped = str(parsed.data).endswith(".safetensors") and not parsed.model.endswith(".safetensors")
    require(not swapped, f"MODEL must stand before DATA, got {parsed.model} and then {parsed.data}")
    model = Model(parsed.model)
    if model.post.likelihood is None:
        raise ModelFileError(f"{model.file} must be a classifier, got a regression model")
    return model


class Rows:
    """What stands beside answers: the row, its labels, estimated probabilities at the point, the radius."""

    def __init__(
        self, model: Model, table: Table | None, regions: Sequence[tuple[int, Region | None]]
    ) -> None:
        self._model, self._table, self._regions = model, table, regions
        self._probability = None if table is None else model.post.probability(table.X)

    def row(self, k: int, answer: Any) -> Row:
        """The k-th answer with its row."""
        i, region = self._regions[k]
        radius = region.radius if isinstance(region, Ball) else None
        table, probability = self._table, self._probability
        if table is None or probability is None:
            return Row(i, None, None, None, None, None, radius, answer)
        return Row(
            row=table.rows[i],
            id=None if table.ids is None else table.ids[i],
            label=None if table.labels is None else table.labels[i],
            predicted=self._model.classes[int(probability[i].argmax())],
            probability=probability[i],
            x=table.X[i],
            radius=radius,
            answer=answer,
        )


def run_session(
    parsed: argparse.Namespace,
    model: Model,
    table: Table | None,
    ask: Ask,
    queries: Sequence[Any],
    rows: Rows,
    settings: dict[str, Any],
    table_of: Callable[[list[Row]], str],
    summary_of: Callable[[list[Row]], str] = lambda answers: "",
    together: Together = lambda store: {},
    gate: Gate | None = None,
) -> int:
    """Ask all queries, save and print the answers, judge them; the exit status is one of docs/cli.md."""
    data = {} if table is None else describe_data(table, parsed.image_shape)
    tell_skipped(*([] if table is None else [table]))
    jobs, asked_for = min(parsed.jobs or cores(), len(queries)), sum(map(size, queries))
    if parsed.output is not None:
        check_lines(parsed.output, asked_for * (len(model.features) if parsed.verb == "explain" else 1))
    bar = line(parsed.verb, asked_for, parsed.quiet)
    start = time.perf_counter()
    with Interrupt() as interrupt, _kept(parsed, model, queries, together) as asked:
        outcome = answer_all(ask, model.post, asked[0], parsed.jobs, bar, interrupt, asked[1])
        answers = [rows.row(k, found) for k, found in enumerate(outcome.answers) if found is not None]
        if parsed.store is not None:
            from gpcert.store.keeper import name_rows

            name_rows(parsed.store, ((row.answer, row.id or str(row.row)) for row in answers))
        results = document(
            parsed.verb,
            settings=settings
            | {"unit": unit_of(model.post, settings.get("scale"))}
            | {"jobs": jobs, "command": shlex.join(["gpcert", *parsed.command])},
            model=describe_model(model.post, model.file, model.sha256),
            data=data,
            answers=answers,
            asked=asked_for,
            interrupted=outcome.interrupted,
            seconds=time.perf_counter() - start,
        )
        text = dumps(results)
        kept = _save(parsed.output, results, text)
        told = _tell(parsed, results, text, kept, table_of, summary_of)
        judged = 0 if gate is None else gate.judge(answers, results["seconds"], parsed.json)
    if settings.get("norm", 0) != 0 and settings["scale"] is None:  # balls, in the units of the file
        moving = settings["features"] and [model.features.index(name) for name in settings["features"]]
        if apart := units_apart(model.post, moving, settings["domain"], "--scale std"):
            warn(apart)
    if unlike := impossible(results, answers, ("--domain data", "--features")):
        warn(unlike)
    if outcome.failure:
        warn(outcome.failure)
    if outcome.failure or kept.failed:
        return 1
    return interrupt.status if outcome.interrupted else int(not told) or judged


@contextmanager
def _kept(
    parsed: argparse.Namespace,
    model: Model,
    queries: Sequence[Any],
    together: Together,
) -> Iterator[tuple[Sequence[Any], Callable[[], Mapping[int, Any]]]]:
    """What is asked, and what answers many queries at once, with a store that keeps it if one was named."""
    if parsed.store is None:
        yield queries, partial(together, None)
        return
    from gpcert.store import Store

    store = Store(parsed.store)
    store.add_model(model.post)
    store.begin(shlex.join(["gpcert", *parsed.command]), surroundings())
    kept = [replace(query, limits=query.limits | {"store": store}) for query in queries]
    yield kept, partial(together, store)
    store.end()
    store.close()


def _save(path: Path | None, results: dict[str, Any], text: str) -> Kept:
    """Before anything is printed: a reader of standard output that has gone costs no file."""
    if path is None:
        return Kept(None)
    if not results["answers"]:
        return Kept(None, f"no row was answered: nothing is saved in {path}")
    if path.suffix.lower() not in TABLES:
        return keep(path, lambda place: write_whole(place, text), results["complete"])
    lines = [line for row in results["answers"] for line in line_of(row)]
    return keep(path, lambda place: write_table(place, columns(lines)), results["complete"])


def _tell(
    parsed: argparse.Namespace,
    results: dict[str, Any],
    text: str,
    kept: Kept,
    table_of: Callable[[list[Row]], str],
    summary_of: Callable[[list[Row]], str],
) -> bool:
    """Print the table, or the document if asked for or not saved where it was wanted; whether it worked."""
    # A temporary folder may go with a batch job, its log does not: only who sits before a terminal is spared.
    seen = sys.stdout is not None and sys.stdout.isatty()
    whole = parsed.json or (kept.failed and (kept.place is None or not seen))
    lines = [text.rstrip()] if whole else _for_people(parsed, results, kept.place, table_of, summary_of)
    unsaid = say(*lines)
    if kept.note:
        warn(kept.note + "; every answer is on standard output" * (kept.failed and whole and not unsaid))
    if unsaid and kept.place is None and results["answers"]:
        name = f"{parsed.verb}.json"
        kept = rescue("standard output", name, lambda place: write_whole(place, text), unsaid)
        warn(kept.note)
    elif unsaid:
        warn(f"standard output could not be written ({unsaid})")
    return not unsaid


def _for_people(
    parsed: argparse.Namespace,
    results: dict[str, Any],
    place: Path | None,
    table_of: Callable[[list[Row]], str],
    summary_of: Callable[[list[Row]], str],
) -> list[str]:
    answers = results["answers"]
    shown = answers if place is None else answers[:_SHOWN]
    lines = [table] if answers and (table := table_of(shown)) else []
    if lines and len(shown) < len(answers):
        lines.append(f"... {len(answers) - len(shown)} more in {printable(str(place))}")
    if answers and (counts := summary_of(answers)):
        lines.append(counts)
    lines += map(printable, [*few(summary(results, answers)), *table_lines(units(results, answers))])
    told = f"{len(answers)} of {results['asked']} answered in {duration(results['seconds'])}"
    lines.append(told if results["complete"] else f"{told}; stopped early, every bound shown holds")
    return lines if place is None else [*lines, f"saved: {printable(str(place))}"]


def tell_skipped(*tables: Table) -> None:
    """Rows that `--missing skip` left out are said; the others keep their positions."""
    for table in tables:
        if table.skipped:
            n = table.skipped + len(table.X)
            warn(f"{table.source}: {table.skipped} of {n} rows have empty cells and are left out")


def describe_data(table: Table, shape: tuple[int, int] | None) -> dict[str, Any]:
    """What a reader needs to know of the data; `shape` of its images, where the table does not say it."""
    shape = shape or table.image_shape
    if shape is not None:
        d = table.X.shape[1]
        require(shape[0] * shape[1] == d, f"--image-shape must have {d} pixels, got {shape[0]}x{shape[1]}")
    return {
        "file": table.source,
        "sha256": table.sha256,
        "target": table.target,
        "image_shape": None if shape is None else list(shape),
    }

"""One run of a question: model and rows in, answers out, printed and saved."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpcert.cli.gates import Gate
from gpcert.cli.io.sources import class_names, feature_names
from gpcert.cli.io.tables import DataTable
from gpcert.cli.keeping import Kept, check_outputs, keep, rescue
from gpcert.cli.show import Interrupt, duration, line, say, warn
from gpcert.errors import ImpossibleInputsWarning, ModelFileError, StoreError, UnitsWarning
from gpcert.files import write_whole
from gpcert.formats import TABLES, check_lines, write_table
from gpcert.model_file import load_hashed
from gpcert.proofs.prover import ProofPath, check_provable, row_names
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
from gpcert.running import Collector, Progress, cores
from gpcert.validation import Float, printable, require

if TYPE_CHECKING:
    from gpcert.store import Store

#: A public question with all but how it runs: called with progress, n_jobs and store.
Question = Callable[..., Any]

_SHOWN = 10  # rows of a table on the terminal, where a file holds them all


class LoadedModel:
    """A loaded posterior with the name and the hash of its file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.post, self.sha256 = load_hashed(file)
        self.classes = class_names(self.post)
        self.features = feature_names(self.post)


def open_model(parsed: argparse.Namespace) -> LoadedModel:
    """The model of a question: one that classifies. Everything about options is checked before the work."""
    check_outputs(parsed, *(getattr(parsed, name, None) for name in ("model", "data", "boxes")))
    swapped = str(parsed.data).endswith(".safetensors") and not parsed.model.endswith(".safetensors")
    require(not swapped, f"MODEL must stand before DATA, got {parsed.model} and then {parsed.data}")
    model = LoadedModel(parsed.model)
    if model.post.likelihood is None:
        raise ModelFileError(f"{model.file} must be a classifier, got a regression model")
    return model


def proof_folder(
    parsed: argparse.Namespace,
    model: LoadedModel,
    regions: Sequence[Region],
    names: Sequence[str],
    X: Iterable[Float],
) -> ProofPath | None:
    """The folder, with the names of the rows X; what cannot be proved is an error before the work."""
    if parsed.proof is None:
        return None
    check_provable(model.post, regions, "--proof")
    return ProofPath(parsed.proof, model.sha256, row_names(names, X))


class Rows:
    """What stands beside answers: the row, its labels, estimated probabilities at the point, the radius."""

    def __init__(
        self, model: LoadedModel, table: DataTable | None, regions: Sequence[tuple[int, Region | None]]
    ) -> None:
        self._model, self._table, self._regions = model, table, regions
        self._probability = None if table is None else model.post.probability(table.X)

    def __len__(self) -> int:
        return len(self._regions)

    @property
    def names(self) -> list[str]:
        """What each is called: by its id, or its position."""
        return [str(i) if self._table is None else self._table.named(i) for i, _ in self._regions]

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
    model: LoadedModel,
    table: DataTable | None,
    rows: Rows,
    questions: Sequence[tuple[Sequence[int], Question]],
    settings: dict[str, Any],
    table_of: Callable[[list[Row]], str],
    summary_of: Callable[[list[Row]], str] = lambda answers: "",
    gate: Gate | None = None,
) -> int:
    """Ask about all rows, each question about those with its numbers; save and print the answers, judge them.

    The exit status is one of docs/cli.md.
    """
    data = {} if table is None else describe_data(table, parsed.image_shape)
    tell_skipped(*([] if table is None else [table]))
    asked = len(rows)
    if parsed.output is not None:
        check_lines(parsed.output, asked * (len(model.features) if parsed.verb == "explain" else 1))
    start = time.perf_counter()
    with Interrupt() as interrupt, _store(parsed, model) as store:
        found, failure = _answers(parsed, questions, asked, store, interrupt)
        answers = [rows.row(k, answer) for k, answer in enumerate(found) if answer is not None]
        if store is not None:
            with suppress(StoreError):  # no answer is lost for a name
                store.name_rows((row.answer, row.id or str(row.row)) for row in answers)
        results = document(
            parsed.verb,
            settings=settings
            | {"unit": unit_of(model.post, settings.get("scale"))}
            | {"jobs": min(parsed.jobs or cores(), asked), "command": _command(parsed)},
            model=describe_model(model.post, model.file, model.sha256),
            data=data,
            answers=answers,
            asked=asked,
            interrupted=interrupt.requested,
            seconds=time.perf_counter() - start,
        )
        text = dumps(results)
        kept = _save(parsed.output, results, text)
        printed = _tell(parsed, results, text, kept, table_of, summary_of)
        judged = 0 if gate is None else gate.judge(answers, results["seconds"], parsed.json)
    if settings.get("norm", 0) != 0 and settings["scale"] is None:  # balls, in the units of the file
        moving = settings["features"] and [model.features.index(name) for name in settings["features"]]
        if hint := units_apart(model.post, moving, settings["domain"], "--scale std"):
            warn(hint)
    if unlike := impossible(results, answers, ("--domain data", "--features")):
        warn(unlike)
    if failure:
        warn(failure)
    if failure or kept.failed:
        return 1
    return interrupt.status if interrupt.requested else int(not printed) or judged


def _answers(
    parsed: argparse.Namespace,
    questions: Sequence[tuple[Sequence[int], Question]],
    asked: int,
    store: Store | None,
    interrupt: Interrupt,
) -> tuple[list[Any], str]:
    """The answers by number, None where there is none, and what went wrong.

    Interrupted, with dead workers, or with an error in one row, what is known comes back.
    """
    found: list[Any] = [None] * asked
    complaints: list[str] = []
    failures: list[str] = []
    bar = line(parsed.verb, asked, parsed.quiet)
    try:
        for numbers, ask in questions:
            first = asked - found.count(None)

            def listen(p: Progress, first: int = first) -> bool:
                bar(replace(p, done=first + p.done, total=asked))
                return interrupt.requested

            collector = Collector(listen)
            try:
                with warnings.catch_warnings():  # these are said once, after the answers
                    for kind in (ImpossibleInputsWarning, UnitsWarning):
                        warnings.simplefilter("ignore", kind)
                    ask(progress=collector, n_jobs=parsed.jobs, store=store)
            finally:
                complaints += collector.complaints
                for at, answer in collector.answers.items():
                    found[numbers[at]] = answer
            if interrupt.requested:
                break
        interrupt.over = True  # here, where a KeyboardInterrupt would still be caught
    except KeyboardInterrupt:
        interrupt.requested = True
    except Exception as error:
        if all(answer is None for answer in found):
            raise
        failures.append("".join(traceback.format_exception_only(error)).strip())
    finally:
        interrupt.over = True
        bar.close()
    if None in found:
        return found, "; ".join([*complaints, *failures])
    for complaint in complaints:  # a worker died, and cost nothing but time
        warn(complaint)
    return found, "; ".join(failures)


@contextmanager
def _store(parsed: argparse.Namespace, model: LoadedModel) -> Iterator[Store | None]:
    """The store that was named, with a run begun in it."""
    if parsed.store is None:
        yield None
        return
    from gpcert.store import Store

    store = Store(parsed.store)
    store.add_model(model.post)
    store.begin(_command(parsed), surroundings())
    yield store
    store.end()
    store.close()


def _command(parsed: argparse.Namespace) -> str:
    return shlex.join(["gpcert", *parsed.command])


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
    counted = f"{len(answers)} of {results['asked']} answered in {duration(results['seconds'])}"
    lines.append(counted if results["complete"] else f"{counted}; stopped early, every bound shown holds")
    return lines if place is None else [*lines, f"saved: {printable(str(place))}"]


def tell_skipped(*tables: DataTable) -> None:
    """Say how many rows `--missing skip` has skipped; the others keep their positions."""
    for table in tables:
        if table.skipped:
            n = table.skipped + len(table.X)
            warn(f"{table.source}: {table.skipped} of {n} rows have empty cells and are left out")


def describe_data(table: DataTable, shape: tuple[int, int] | None) -> dict[str, Any]:
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

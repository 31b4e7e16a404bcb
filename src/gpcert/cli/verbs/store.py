"""`gpcert store`: what is in a store of answers, elsewhere, smaller, together."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from gpcert.cli.keeping import check_output, files_of_store, keep
from gpcert.cli.options import count
from gpcert.cli.show import columns, tell, warn
from gpcert.formats import TABLES
from gpcert.records import save_answers
from gpcert.records.rows import about_whom, flat
from gpcert.records.rows import columns as flat_columns
from gpcert.store import Store, merge
from gpcert.store.listing import Listing
from gpcert.validation import printable, require

DESCRIPTION = """
Look into a store of answers (--store, store=, campaigns) and move what is in it: list counts and
runs, show prints an answer or a model, export writes a table (.csv, .parquet, .xlsx) or the
answers themselves (.json), compact checks everything and gives unused space back, merge takes the answers
of other stores, damaged ones included, into the first.
"""
EXAMPLES = """
  gpcert store list runs.db
  gpcert store show runs.db --id 17
  gpcert store export runs.db --kind Verdict -o verdicts.parquet
  gpcert store merge all.db monday.db tuesday.db
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=["list", "show", "export", "compact", "merge"])
    parser.add_argument("files", nargs="+", type=Path, metavar="STORE")
    parser.add_argument("--kind", metavar="CLASS", help="only answers of this class: ProbabilityRange, ...")
    parser.add_argument("--status", metavar="WORD", help="only answers with this status: safe, ...")
    parser.add_argument("--model", metavar="DIGEST", help="only this model, or the one to show")
    parser.add_argument("--id", type=count, metavar="N", help="the answer to show")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="export: .json, .csv, .parquet, .xlsx; show: the model, .safetensors",
    )


def run(parsed: argparse.Namespace) -> int:
    """One action on one store; merge: on several."""
    several = parsed.action == "merge"
    require(
        len(parsed.files) > 1 if several else len(parsed.files) == 1,
        f"{parsed.action} must be given {'two stores or more' if several else 'one store'}, "
        f"got {len(parsed.files)}",
    )
    files = (file for store in parsed.files for file in files_of_store(store))
    ends = (".json", *TABLES) if parsed.action == "export" else (".safetensors",)
    check_output(parsed.output, *files, ends=ends)
    action = {"list": _list, "show": _show, "export": _export, "compact": _compact, "merge": _merge}
    with closing(Store(parsed.files[0])) as store:
        return action[parsed.action](store, parsed)


def _list(store: Store, parsed: argparse.Namespace) -> int:
    counts = store.counts(parsed.kind, parsed.status, parsed.model)
    lines = [(row["kind"], row["status"], str(row["count"])) for row in counts]
    models = [(row["digest"][:12], str(row["answers"]), row["target"]) for row in store.models()]
    runs = [
        (str(row["id"]), _when(row["started"]), _when(row["ended"]), str(row["answers"]), row["what"][:60])
        for row in store.runs()
    ]
    blocks = [columns(("answers", "status", "count"), lines), columns(("model", "answers", "target"), models)]
    blocks.append(columns(("run", "began", "ended", "answers", "what"), runs[-20:]))
    lost = [(row["kind"], row["reason"]) for row in store.lost()]
    blocks += [columns(("set aside", "why"), lost)] if lost else []
    return tell("\n\n".join(blocks))


def _show(store: Store, parsed: argparse.Namespace) -> int:
    require(
        (parsed.id is None) != (parsed.model is None),
        "show must be given --id or --model, got both or none",
    )
    if parsed.id is not None:
        answer = store.answer(parsed.id)
        return tell(json.dumps(answer.to_dict(), indent=1), *(printable(str(c)) for c in answer.claims()))
    post = store.model(parsed.model)
    description = {"digest": post.digest, **post.description(), "training": dict(post.training)}
    if parsed.output is not None:
        from gpcert.model_file import save

        save(post, parsed.output)
    return tell(printable(repr(post)), json.dumps(description, indent=1))


def _export(store: Store, parsed: argparse.Namespace) -> int:
    path = parsed.output
    require(path is not None, "--output must be given to export, got none")
    if path.suffix.lower() not in TABLES:
        answers = list(store.load(parsed.kind, parsed.status, parsed.model))
        number, write = len(answers), lambda place: save_answers(place, answers)
    else:
        which = parsed.kind, parsed.status, parsed.model
        table = store.answers(*which)
        pairs = list(zip(table, store.load(*which), strict=True))
        about = [row | {"row": store.row_of(answer)} | about_whom(answer) for row, answer in pairs]
        lines = [
            known | line for known, (_, answer) in zip(about, pairs, strict=True) for line in flat(answer)
        ]
        number, write = len(table), Listing(flat_columns(lines) or table.columns).save
    kept = keep(path, write)
    if kept.note:
        warn(kept.note)
    return int(kept.failed) or tell(f"{number} answers written: {printable(str(kept.place))}")


def _compact(store: Store, parsed: argparse.Namespace) -> int:
    before, after = store.compact()
    return tell(f"checked; {before} bytes before, {after} after")


def _merge(store: Store, parsed: argparse.Namespace) -> int:
    failed = 0
    for path in parsed.files[1:]:
        require(path.resolve() != store.path.resolve(), f"merge must be of other stores, got {path} twice")
        taken, unreadable = merge(store, Store(path))
        failed += unreadable
        tell(f"{printable(str(path))}: {taken} answers taken, {unreadable} could not be read")
    return int(bool(failed))


def _when(moment: Any) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))

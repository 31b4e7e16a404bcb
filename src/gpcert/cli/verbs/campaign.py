"""`gpcert campaign`: many questions from a file, kept in a store, resumed by running again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from gpcert.cli.campaign.file import Campaign, read_campaign
from gpcert.cli.campaign.page import campaign_pages, campaign_rows
from gpcert.cli.campaign.rounds import run_campaign
from gpcert.cli.campaign.standing import PartStatus, changed, lines
from gpcert.cli.keeping import check_output, files_of_store, keep
from gpcert.cli.show import Interrupt, columns, duration, line, tell, warn
from gpcert.errors import InvalidInputError
from gpcert.files import write_whole
from gpcert.formats import TABLES, write_table
from gpcert.numbers import (
    exactly,
    percent,
    percent_at_least,
    percent_at_most,
    radius_at_least,
    radius_at_most,
)
from gpcert.records.results_file import surroundings
from gpcert.running.workers import cluster
from gpcert.store import Store
from gpcert.validation import printable, require

_PAGES = (".html", ".htm")

DESCRIPTION = """
Run the questions of a campaign file (TOML: models, data, radii, norms, features, limits; see
docs/campaigns.md). Every answer is kept in the campaign's store as it comes: after Ctrl-C, a crash
or a power cut, the same command goes on. status and report may be asked for at any time, from
another terminal, too.
"""
EXAMPLES = """
  gpcert campaign run digits.toml
  gpcert campaign status digits.toml
  gpcert campaign run digits.toml --cluster tcp://scheduler:8786
  gpcert campaign report digits.toml -o digits.html
  gpcert campaign report digits.toml -o digits.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=["run", "status", "report"])
    parser.add_argument("file", type=Path, metavar="FILE", help="the campaign, a TOML file")
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="tcp://HOST:PORT of a Dask scheduler, or ray, ray://HOST:PORT"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="report: a .html page, or a .csv, .parquet or .xlsx table, with all rows",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def run(parsed: argparse.Namespace) -> int:
    """One action."""
    require(parsed.output is None or parsed.action == "report", "--output must be given to report only")
    campaign = read_campaign(parsed.file)
    read = [campaign.place(name) for name in (*campaign.models.values(), campaign.data["file"])]
    for path in _outputs(parsed.output, campaign).values():
        check_output(path, parsed.file, *read, *files_of_store(campaign.store), ends=(*_PAGES, *TABLES))
    with closing(Store(campaign.store)) as store:
        return (_run if parsed.action == "run" else _look)(parsed, campaign, store)


def _look(parsed: argparse.Namespace, campaign: Campaign, store: Store) -> int:
    """status, report"""
    found = list(lines(campaign, store))
    if not found:
        raise InvalidInputError(f"{parsed.file} must have been run before, got a store without it")
    other = ", ".join(changed(campaign, store))
    message = f"{parsed.file} was last run with another content of {other}; run it again: what holds is kept"
    if other and not _is_page(parsed.output):  # a page is about the models and data as they are now
        raise InvalidInputError(message)
    if parsed.output is not None:
        files = [keep(path, write) for path, write in _writers(parsed, campaign, store)]
        for note in filter(None, (*(kept.note for kept in files), other and message)):
            warn(note)
        shown = [] if other else [_shown(found)]
        shown += [f"saved: {printable(str(kept.place))}" for kept in files if not kept.failed]
        return int(any(kept.failed for kept in files)) or tell(*shown)
    return tell(_shown(found), _total(campaign, store, found))


def _is_page(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() in _PAGES


def _outputs(path: Path | None, campaign: Campaign) -> dict[float, Path]:
    """The file of each threshold: page.html for the first, page.threshold-0.9.html beside it."""
    if path is None:
        return {}
    first, *others = campaign.thresholds
    others = others if _is_page(path) else []
    return {first: path} | {
        t: path.with_name(f"{path.stem}.threshold-{exactly(t)}{path.suffix}") for t in others
    }


def _writers(
    parsed: argparse.Namespace, campaign: Campaign, store: Store
) -> list[tuple[Path, Callable[[Path], None]]]:
    """The table, or the pages."""
    if not _is_page(parsed.output):
        return [(parsed.output, partial(write_table, table=campaign_rows(campaign, store)))]
    places = _outputs(parsed.output, campaign)
    texts = campaign_pages(campaign, store, parsed.file)
    return [(places[t], partial(write_whole, content=text)) for t, text in texts.items()]


def _run(parsed: argparse.Namespace, campaign: Campaign, store: Store) -> int:
    store.begin(f"campaign {parsed.file}", surroundings())
    bar = line("campaign", 0, parsed.quiet)
    with Interrupt() as interrupt, cluster(parsed.cluster):
        try:
            complete = run_campaign(campaign, store, bar, lambda: interrupt.requested)
        finally:
            bar.close()
    store.end()
    found = list(lines(campaign, store))
    status = tell(_shown(found), _total(campaign, store, found))
    if interrupt.requested:
        return interrupt.status
    if not complete:
        tell("the budget is spent; the same command goes on with as much again")
    return status or int(any(each.lost for each in found))


def _shown(found: list[PartStatus]) -> str:
    differing = _different(found)
    head = (
        "question",
        "model",
        "norm",
        "features",
        "radius",
        *differing,
        "answered",
        "open",
        "lost",
        "proved",
    )
    return columns(
        head,
        [
            (
                *(each.ask, each.model, each.norm, each.features, each.radius),
                *(each.settings[name] for name in differing),
                f"{each.answered}/{each.asked}",
                str(each.open),
                str(each.lost),
                _proved(each),
            )
            for each in found
        ],
    )


def _different(found: list[PartStatus]) -> list[str]:
    """Settings that lines differ in: what a verdict is about, and what one question is asked with twice."""
    about = {"scale", "domain", "threshold", "label"}
    seen: dict[str, set[tuple[str, str]]] = {name: set() for name in found[0].settings}
    for each in found:
        for name, value in each.settings.items():
            if name != "threshold" or value:  # else it has none
                seen[name].add(("" if name in about else each.ask, value))
    return [name for name, pairs in seen.items() if len(pairs) > len({ask for ask, _ in pairs})]


def _proved(each: PartStatus) -> str:
    above = "" if each.threshold == 0.5 else f" above {exactly(each.threshold)}"
    if each.certified is not None:
        low, high = each.certified
        if high is None:
            return f"{percent(low)} right and proved{above}"
        if low == high:
            return f"robust accuracy {percent(low)}"
        return f"robust accuracy in [{percent_at_least(low)}, {percent_at_most(high)}]"
    if each.median is not None:
        safe, unsafe = each.median
        top = "none found" if unsafe == float("inf") else radius_at_most(unsafe)
        return f"median radius{above} in [{radius_at_least(safe)}, {top}]"
    return ""


def _total(campaign: Campaign, store: Store, found: list[PartStatus]) -> str:
    parts = {each.part: each for each in found}
    answered, asked = (sum(getattr(e, name) for e in parts.values()) for name in ("answered", "asked"))
    spent, remaining = (sum(getattr(e, name) for e in parts.values()) for name in ("seconds", "remaining"))
    (*_, last) = store.runs()
    state = "ended" if last["ended"] else f"began about {duration(time.time() - last['started'])} ago"
    rest = f"; about {duration(remaining)} of it left" if remaining else ""
    return f"{answered} of {asked} answered in {duration(spent)} of work{rest}; the last run {state}"

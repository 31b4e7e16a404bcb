"""One self-contained page from one or several results files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path, PurePath

from gpcert.html import Html, join, tag
from gpcert.pages import charts, sections
from gpcert.pages.charts import curves
from gpcert.pages.compare import comparison, overview
from gpcert.pages.details import card, influences
from gpcert.pages.groups import ResultGroup, common_threshold, grouped
from gpcert.pages.html import glossary, page
from gpcert.pages.points import ResultsFile, shown_radius
from gpcert.pages.table import points_table
from gpcert.records.results_file import read_results
from gpcert.validation import require

_CARDS = 12


def report(paths: Sequence[Path], title: str | None = None, separate: bool = False) -> str:
    """The HTML text of a report on results files."""
    return report_on([(path, *read_results(path)) for path in paths], title, separate)


def report_on(results: Sequence[ResultsFile], title: str | None = None, separate: bool = False) -> str:
    """The same of documents in memory, each with the name of its file and its rows.

    Files about one model and kind of region become one result; several are compared. `separate`: every file
    is a result by itself, as two runs of one model are.
    """
    groups = grouped(results, separate)
    for group in groups:
        require(bool(group.points), f"{group.results[0][0]} must hold at least one answer, got none")
    return render(groups, title)


def render(groups: Sequence[ResultGroup], title: str | None = None) -> str:
    """The page of what is known."""
    if len(groups) == 1:
        content, lead = _sections(groups[0], 1), sections.claim(groups[0])
    else:
        content = [("Comparison", comparison(groups))]
        content += [(f"{k}. {group.name}", _whole(group, len(groups))) for k, group in enumerate(groups, 1)]
        each = [f"{group.name}: {sections.claims(group)[0]}" for group in groups]
        attacked = all(map(sections.only_attacked, groups))
        said, same = overview(groups)
        lead = sections.stated(said, "the claim of each result", each, attacked, same)
    content.append(("What the words mean", glossary(common_threshold(groups))))
    return page(title or "How far can the inputs be off?", _subtitle(groups), content, lead)


def _whole(group: ResultGroup, of: int) -> Html:
    """One of several results, under one heading."""
    parts = [join([tag("h3", heading, class_="part"), part]) for heading, part in _sections(group, of)]
    return join([sections.claim(group), *parts])


def _sections(group: ResultGroup, of: int) -> list[tuple[str, Html]]:
    """The parts of one of `of` results."""
    radius, rows = shown_radius(group.points), group.words.rows
    finite = (p.safe for p in group.points if math.isfinite(p.safe))  # a label may hold in the whole domain
    reach = max(finite, default=0.0) if radius is None else radius
    every = [
        ("In short", sections.headline(group)),
        ("Units", sections.units(group)),
        (
            f"{group.words.row.capitalize()} by {group.words.row}",
            charts.point_map(group, reach) if reach > 0 else Html(""),
        ),
        ("Class by class", sections.classes(group)),
        ("Curves", curves(group)),
        ("Distributions", charts.distributions(group)),
        (f"Influence of {group.words.noun}", influences(group)),
        ("Most fragile images", _gallery(group)),
        (f"All {rows}", points_table(group, of)),
        ("Settings and versions", sections.settings(group)),
    ]
    return [(heading, part) for heading, part in every if part]


def _subtitle(groups: Sequence[ResultGroup]) -> str:
    first = groups[0].document
    models = f"Model {_base(first['model'].get('file'))}" if len(groups) == 1 else f"{len(groups)} results"
    data = _base(first["data"].get("file") or "boxes")
    parts = [document for group in groups for _, document, _ in group.results]
    asked, answered = (sum(n) for n in zip(*((d["asked"], len(d["answers"])) for d in parts), strict=True))
    missing = f", {answered:,} of {asked:,} questions answered" if answered < asked else ""
    whole = all(document["complete"] for document in parts)
    early = "" if whole else f"; some runs were stopped early{missing}, all bounds hold"
    return f"{models}, data {data}, gpcert {first['versions'].get('gpcert')}{early}"


def _base(file: object) -> str:
    """The name of a file without folders, which are nobody's business; they are among the settings."""
    return PurePath(str(file)).name or str(file)


def _gallery(group: ResultGroup) -> Html:
    """Images with the closest counterexamples first."""
    if group.image is None:
        return Html("")
    known = [(found[0], p) for p in group.points if (found := p.counterexample) is not None]
    broken = [(math.inf if radius is None else radius, p.row, p) for radius, p in known]
    chosen = [p for _, _, p in sorted(broken, key=lambda known: known[:2])[:_CARDS]]
    if not chosen:
        return Html("")
    text = (
        "The images whose class changes within the smallest radius: the image, the closest image of another "
        "class that is known, and what moved (orange brighter, blue darker)."
    )
    return join([tag("p", text), tag("div", *(card(p, group) for p in chosen), class_="cards")])

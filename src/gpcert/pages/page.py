"""One self-contained page from one or several results files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.html import Html, join, tag
from gpcert.pages import sections
from gpcert.pages.html import page
from gpcert.pages.points import Point, merge
from gpcert.pages.table import Pictures, card, points_table
from gpcert.records.results_file import read_results
from gpcert.records.rows import Row
from gpcert.validation import require

__all__ = ["report", "report_on"]

_CARDS = 12


def report(paths: Sequence[Path], title: str | None = None) -> str:
    """The HTML text of a report on results files about one model and one data file."""
    return report_on([(path, *read_results(path)) for path in paths], title)


def report_on(results: Sequence[tuple[Path, dict[str, Any], list[Row]]], title: str | None = None) -> str:
    """The HTML text of a report on results, each with a name, its document and its rows."""
    points = merge(results)
    require(bool(points), f"{results[0][0]} must hold at least one answer, got none")
    first = results[0][1]
    pictures = _pictures(first, points)
    named = [(path.name, document) for path, document, _ in results]
    content = [
        ("Summary", sections.headline(points)),
        ("Curves", sections.curves(points)),
        ("Distributions", sections.distributions(points)),
        ("Influence of features", sections.explanations(points, pictures.names, pictures.shape)),
        ("Most fragile images", _gallery(points, pictures)),
        ("Points", points_table(points, pictures)),
        ("Settings and versions", sections.settings(named)),
    ]
    kept = [(heading, part) for heading, part in content if part]
    subtitle = _subtitle(first, [document for _, document, _ in results])
    return page(title or "How far can the inputs move?", subtitle, kept)


def _subtitle(first: dict[str, Any], documents: Sequence[dict[str, Any]]) -> str:
    data = first["data"].get("file") or "boxes"
    early = "" if all(d["complete"] for d in documents) else "; some runs were stopped early, all bounds hold"
    return f"Model {first['model'].get('file')}, data {data}, gpcert {first['versions'].get('gpcert')}{early}"


def _pictures(document: dict[str, Any], points: Sequence[Point]) -> Pictures:
    names, shape = document["model"].get("features", []), document["data"].get("image_shape")
    x = [p.x for p in points if p.x is not None]
    low, high = (min(float(v.min()) for v in x), max(float(v.max()) for v in x)) if x else (0.0, 1.0)
    return Pictures(None if shape is None else (shape[0], shape[1]), names, low, high)


def _gallery(points: Sequence[Point], pictures: Pictures) -> Html:
    """Images with the closest counterexamples first."""
    if pictures.shape is None:
        return Html("")
    broken = [p for p in points if np.isfinite(p.unsafe) and p.counterexample is not None]
    chosen = sorted(broken, key=lambda p: (p.unsafe, p.row))[:_CARDS]
    if not chosen:
        return Html("")
    text = (
        "The points whose label changes within the smallest radius: the image, the closest image of another "
        "label that is known, and what moved (orange brighter, blue darker)."
    )
    return join(
        [tag("p", text, class_="soft"), tag("div", *(card(p, pictures) for p in chosen), class_="cards")]
    )

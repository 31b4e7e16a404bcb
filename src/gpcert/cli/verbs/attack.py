"""`gpcert attack`: search a region around each row for a point with another label."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from gpcert.cli.asking import Answer
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_jobs, add_output, add_region
from gpcert.cli.regions import balls, read_radii, read_shape
from gpcert.cli.session import Rows, open_model, run_session
from gpcert.cli.show import by_radius, columns, row_cells
from gpcert.numbers import percent_at_most
from gpcert.posterior import Posterior
from gpcert.questions import attack
from gpcert.records.batch import shape_told
from gpcert.records.rows import Row
from gpcert.regions import Region
from gpcert.results import Attack
from gpcert.running import Listener
from gpcert.validation import Float

__all__ = ["configure", "run"]

DESCRIPTION = """
Look for a point of the region around each row where the model gives another label. What is found
is evidence; what is not found proves nothing: for that there is `gpcert certify`.
"""
EXAMPLES = """
  gpcert attack model.safetensors patients.csv --radius 0.1 --scale std -o attack.json
  gpcert attack model.safetensors patients.csv --radius 1 --method gpfgs
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser)
    parser.add_argument(
        "--method", choices=["pgd", "gpfgs", "gpjm"], default="pgd", help="how to search (%(default)s)"
    )
    add_region(parser, several_radii=True)
    add_jobs(parser.add_argument_group("effort"))
    add_output(parser)


@dataclass(frozen=True, eq=False)
class _Query:
    x: Float
    region: Region
    method: str
    limits: dict[str, Any] = field(default_factory=dict)


def run(parsed: argparse.Namespace) -> int:
    """An attack for each row and radius."""
    model = open_model(parsed)
    table = read_points(parsed, model.post)
    shape = read_shape(parsed, model.post, table)
    regions = balls(table, read_radii(parsed, table), shape)
    queries = [_Query(table.X[i], region, parsed.method) for i, region in regions]
    settings = {"method": parsed.method, **shape_told(shape, model.features)}
    rows = Rows(model, table, regions)
    return run_session(parsed, model, table, _ask, queries, rows, settings, _table, _summary)


def _ask(post: Posterior, query: _Query, progress: Listener) -> Answer:
    return {"answer": attack(post, query.region, query.x, method=query.method, **query.limits)}


def _table(rows: list[Row]) -> str:
    head = ("row", "true", "predicted", "P at row", "radius", "P after", "label changed")
    lines = [
        (*row_cells(r), f"{a.probability:.3f}", "yes" if a.success else "no")
        for r in rows
        if isinstance(a := r.answer, Attack)
    ]
    return columns(head, lines)


def _summary(rows: list[Row]) -> str:
    def outcome(row: Row) -> str:
        return "changed" if isinstance(row.answer, Attack) and row.answer.success else "withstood"

    return by_radius(rows, ("withstood", "changed"), outcome, percent_at_most)

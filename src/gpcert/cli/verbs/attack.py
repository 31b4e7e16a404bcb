"""`gpcert attack`: search a region around each row for a point with another label."""

from __future__ import annotations

import argparse
from functools import partial

from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_jobs, add_output, add_region
from gpcert.cli.regions import balls, read_radii, read_shape
from gpcert.cli.session import Rows, open_model, run_session
from gpcert.cli.show import by_radius, columns, row_cells
from gpcert.questions.attack import attack
from gpcert.records.batch import shape_told
from gpcert.records.rows import Row
from gpcert.results import Attack

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


def run(parsed: argparse.Namespace) -> int:
    """An attack for each row and radius."""
    model = open_model(parsed)
    table = read_points(parsed, model.post)
    shape = read_shape(parsed, model.post, table)
    regions = balls(table, read_radii(parsed, table), shape)
    rows, starts = Rows(model, table, regions), table.X[[i for i, _ in regions]]
    ask = partial(attack, model.post, [region for _, region in regions], starts, method=parsed.method)
    settings = {"method": parsed.method, **shape_told(shape, model.features)}
    return run_session(parsed, model, table, rows, [(range(len(rows)), ask)], settings, _table, _summary)


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

    return by_radius(rows, ("withstood", "changed"), outcome)

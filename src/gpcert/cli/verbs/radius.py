"""`gpcert radius`: how far each row can move before its label changes."""

from __future__ import annotations

import argparse
import math
import statistics
from functools import partial

from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_limits, add_output, add_proof, add_shape, number
from gpcert.cli.regions import read_shape
from gpcert.cli.session import Rows, open_model, proof_folder, run_session
from gpcert.cli.show import columns, row_cells
from gpcert.numbers import radius_at_least, radius_at_most
from gpcert.questions.radius import certified_radius
from gpcert.records.batch import shape_told
from gpcert.records.rows import Row
from gpcert.results import CertifiedRadius

DESCRIPTION = """
For each row the largest radius within which its label is proved not to change, and the smallest at
which a point of another label is known.
"""
EXAMPLES = """
  gpcert radius model.safetensors patients.csv --scale std -o radius.json
  gpcert radius digits.safetensors dataset:mnist38 --rows 0:20 --max-radius 0.5 --rtol 0.01
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser)
    group = parser.add_argument_group("region (units of the file)")
    group.add_argument(
        "--max-radius",
        type=number,
        metavar="R",
        help="look no further (default: twice as far as the farthest training point)",
    )
    group.add_argument(
        "--rtol", type=number, default=1e-3, help="how near the two radii have to be (%(default)s)"
    )
    add_shape(group)
    add_limits(parser, tolerance=None)
    add_output(parser)
    add_proof(parser)


def run(parsed: argparse.Namespace) -> int:
    """A pair of radii for each row."""
    model = open_model(parsed)
    table = read_points(parsed, model.post)
    shape = read_shape(parsed, model.post, table)
    limits = {name: getattr(parsed, name) for name in ("max_radius", "rtol", "max_seconds", "max_nodes")}
    rows = Rows(model, table, [(i, None) for i in range(len(table.X))])
    proof = proof_folder(parsed, model, [shape.ball(x, 0.0) for x in table.X[:1]], rows.names, table.X)
    ask = partial(certified_radius, model.post, table.X, **shape._asdict(), **limits, proof=proof)
    settings = {**shape_told(shape, model.features), **limits}
    return run_session(parsed, model, table, rows, [(range(len(rows)), ask)], settings, _table, _summary)


def _table(rows: list[Row]) -> str:
    head = ("row", "true", "predicted", "P at row", "label holds up to", "status")
    lines = [
        (*row_cells(r), _bracket(a.safe, a.unsafe), str(a.status))
        for r in rows
        if isinstance(a := r.answer, CertifiedRadius)
    ]
    return columns(head, lines)


def _bracket(safe: float, unsafe: float) -> str:
    """Proved safe, and known unsafe: between them lies the radius at which the label changes."""
    return f"[{radius_at_least(safe)}, {'none found' if math.isinf(unsafe) else radius_at_most(unsafe)}]"


def _summary(rows: list[Row]) -> str:
    found = [row.answer for row in rows if isinstance(row.answer, CertifiedRadius)]
    safe, unsafe = (statistics.median_low(getattr(a, name) for a in found) for name in ("safe", "unsafe"))
    return f"median radius in {_bracket(safe, unsafe)}"

"""`gpcert certify`: is the label of each row the label of its whole region?"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from gpcert.cli.gates import add_gate, read_gate
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_device, add_limits, add_output, add_proof, add_region, number
from gpcert.cli.regions import read_regions
from gpcert.cli.session import Rows, open_model, proof_folder, run_session
from gpcert.cli.show import by_radius, columns, row_cells
from gpcert.numbers import between
from gpcert.questions.certify import certify
from gpcert.records.rows import Row
from gpcert.results import Verdict, VerdictStatus
from gpcert.validation import require

DESCRIPTION = """
Whether the label of a row can change within a region around it: "safe" is proved, "unsafe" comes
with a counterexample, "unknown" with what is known of the margin, P(label) - threshold.
"""
EXAMPLES = """
  gpcert certify model.safetensors patients.csv --radius 0.1 --scale std -o certify.json
  gpcert certify model.safetensors patients.csv --radius 1 --radius 2 --features age,bmi
  gpcert certify model.safetensors test.csv --radius 0.1 --require 0.9 --class ill --junit gate.xml
  gpcert certify model.safetensors --boxes boxes.csv
  gpcert certify digits.safetensors dataset:mnist38 --rows 0:50 --radius 0.05 --domain 0:1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser, optional=True)
    parser.add_argument(
        "--threshold", type=number, default=0.5, metavar="T", help="P(label) must stay above it (%(default)s)"
    )
    add_region(parser, several_radii=True, boxes=True)
    add_limits(parser)
    add_device(parser)
    add_gate(parser)
    add_output(parser)
    add_proof(parser)


def run(parsed: argparse.Namespace) -> int:
    """A verdict for each row and radius."""
    model = open_model(parsed)
    table = None if parsed.data is None else read_points(parsed, model.post)
    regions, shape = read_regions(parsed, model.post, table)
    points = [region.centre if table is None else table.X[i] for i, region in regions]
    for (i, region), x in zip(regions, points, strict=True):
        inside = table is None or region.contains(x)
        require(inside, f"{parsed.boxes} must have boxes that hold their rows, got one without row {i}")
    limits = {name: getattr(parsed, name) for name in ("tolerance", "max_seconds", "max_nodes")}
    rows, sets = Rows(model, table, regions), [region for _, region in regions]
    proof = proof_folder(parsed, model, sets, rows.names, [region.centre for region in sets])
    options = limits | {"device": parsed.device, "proof": proof}
    ask = partial(certify, model.post, np.array(points), sets, parsed.threshold, **options)
    settings = {"threshold": parsed.threshold, **shape, **limits}
    gate = read_gate(parsed, [rows.row(k, None) for k in range(len(rows))], model.post.labels)
    return run_session(
        parsed, model, table, rows, [(range(len(rows)), ask)], settings, _table, _summary, gate
    )


def _table(rows: list[Row]) -> str:
    radius = ("radius",) if rows and rows[0].radius is not None else ()
    head = ("row", "true", "predicted", "P at row", *radius, "status", "margin in", "ended")
    lines = [
        (*row_cells(r), str(a.status), between(a.margin.lower, a.margin.upper), str(a.ended))
        for r in rows
        if isinstance(a := r.answer, Verdict)
    ]
    return columns(head, lines)


def _summary(rows: list[Row]) -> str:
    return by_radius(rows, tuple(VerdictStatus), lambda r: getattr(r.answer, "status", ""))

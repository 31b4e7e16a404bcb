"""`gpcert certify`: is the label of each row the label of its whole region?"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.cli.asking import Answer
from gpcert.cli.gates import add_gate, read_gate
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_device, add_limits, add_output, add_region, number
from gpcert.cli.proving import add_proof, proof_paths
from gpcert.cli.regions import read_regions
from gpcert.cli.session import Rows, open_model, run_session
from gpcert.cli.show import by_radius, columns, row_cells
from gpcert.numbers import between
from gpcert.posterior import Posterior
from gpcert.proofs.prover import ProofPath
from gpcert.questions.certify import certify, settled_verdicts
from gpcert.questions.checks import Kept
from gpcert.records.rows import Row
from gpcert.regions import Region
from gpcert.results import Verdict, VerdictStatus
from gpcert.running import Listener
from gpcert.validation import Float, require

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


@dataclass(frozen=True, eq=False)
class _Query:
    x: Float
    region: Region
    threshold: float
    limits: dict[str, Any]
    proof: ProofPath | None


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
    named = str if table is None else table.named
    proofs = proof_paths(parsed, model, [region for _, region in regions], [named(i) for i, _ in regions])
    asked = zip(points, regions, proofs, strict=True)
    queries = [_Query(x, region, parsed.threshold, limits, proof) for x, (_, region), proof in asked]
    settings = {"threshold": parsed.threshold, **shape, **limits}
    rows = Rows(model, table, regions)

    def together(store: Kept) -> dict[int, Verdict]:
        if parsed.proof is not None:  # a proof needs the tree of a search
            return {}
        question = np.array(points), [query.region for query in queries], parsed.threshold, parsed.device
        return settled_verdicts(model.post, *question, store, **limits)

    gate = read_gate(parsed, [rows.row(k, None) for k in range(len(regions))], model.post.labels)
    return run_session(parsed, model, table, _ask, queries, rows, settings, _table, _summary, together, gate)


def _ask(post: Posterior, query: _Query, progress: Listener) -> Answer:
    question = query.x, query.region, query.threshold
    found = certify(post, *question, progress=progress, proof=query.proof, **query.limits)
    return {"answer": found}


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

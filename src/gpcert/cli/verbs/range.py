"""`gpcert range`: the smallest and the largest probability of a class over regions."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from gpcert.classes import called, position
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_device, add_limits, add_output, add_proof, add_region
from gpcert.cli.regions import read_regions
from gpcert.cli.session import Rows, open_model, proof_folder, run_session
from gpcert.cli.show import columns, row_cells
from gpcert.numbers import between, exactly
from gpcert.questions.ranges import probability_range
from gpcert.records.rows import Row
from gpcert.results import ProbabilityRange
from gpcert.validation import require

DESCRIPTION = """
How low and how high the probability of a class gets over a region around each row. Both bounds
are proved: no point of the region, tried or not, leaves them.
"""
EXAMPLES = """
  gpcert range model.safetensors patients.csv --radius 0.1 --scale std
  gpcert range model.safetensors patients.csv --label ill --features age,bmi --radius 2 -o ranges.json
  gpcert range model.safetensors --boxes boxes.csv --label ill
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser, optional=True)
    parser.add_argument("--label", metavar="CLASS", help="whose probability (the second of two classes)")
    parser.add_argument("--method", default="auto", help="paper: that of AISTATS 2020, with gpcert-paper")
    add_region(parser, several_radii=True, boxes=True)
    add_limits(parser)
    add_device(parser)
    add_output(parser)
    add_proof(parser)


def run(parsed: argparse.Namespace) -> int:
    """Ranges of one class over a ball around each row, or over boxes."""
    model = open_model(parsed)
    label = model.post.labels[position(model.post.labels, parsed.label, "--label")]
    table = None if parsed.data is None else read_points(parsed, model.post)
    regions, shape = read_regions(parsed, model.post, table)
    limits = {name: getattr(parsed, name) for name in ("tolerance", "max_seconds", "max_nodes")}
    auto = parsed.proof is None or parsed.method == "auto"
    require(auto, f"--method must be auto with --proof, got {parsed.method}")
    rows, sets = Rows(model, table, regions), [region for _, region in regions]
    proof = proof_folder(parsed, model, sets, rows.names, [region.centre for region in sets])
    options = limits | {"device": parsed.device, "proof": proof}
    ask = partial(probability_range, model.post, sets, label, parsed.method, **options)
    settings = {"class": str(label), "method": parsed.method, **shape, **limits}
    return run_session(parsed, model, table, rows, [(range(len(rows)), ask)], settings, _table(called(label)))


def _table(name: str) -> Callable[[list[Row]], str]:
    def show(rows: list[Row]) -> str:
        head: tuple[str, ...] = (
            "row",
            f"P({name}) at row",
            "radius",
            "stays in",
            "min in",
            "max in",
            "status",
        )
        lines = [_line(row, row.answer) for row in rows if isinstance(row.answer, ProbabilityRange)]
        if len({line[2] for line in lines}) <= 1:  # the same for all, or boxes
            head, lines = head[:2] + head[3:], [line[:2] + line[3:] for line in lines]
        return columns(head, lines)

    return show


def _line(row: Row, found: ProbabilityRange) -> tuple[str, ...]:
    return (
        row_cells(row)[0],
        "" if row.probability is None else f"{row.probability[found.column]:.3f}",
        "" if row.radius is None else exactly(row.radius),
        between(found.lower, found.upper),
        between(found.min.lower, found.min.upper),
        between(found.max.lower, found.max.upper),
        str(found.status),
    )

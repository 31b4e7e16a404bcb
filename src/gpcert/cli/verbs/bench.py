"""`gpcert bench`: what ranges cost on this machine, for your model and data."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.cli.io.sources import read_points
from gpcert.cli.keeping import Kept, keep
from gpcert.cli.options import add_data, add_output, add_region, number
from gpcert.cli.progress import Interrupt, line
from gpcert.cli.regions import balls, read_radii, read_shape
from gpcert.cli.session import open_model
from gpcert.cli.show import columns, tell, warn
from gpcert.files import write_whole
from gpcert.numbers import percent
from gpcert.posterior import Posterior
from gpcert.questions.ranges import probability_range
from gpcert.records.results_file import surroundings
from gpcert.regions import Region
from gpcert.results import Status
from gpcert.running import Bar, Progress
from gpcert.validation import Float, printable

DESCRIPTION = """
Ask for ranges at some rows, one after the other on one thread, and tell the CPU time of each: how
long a run over all rows would take. A "floor" is one evaluation of the model and its gradients at
one point: costs in floors compare across machines, seconds do not.
"""
EXAMPLES = """
  gpcert bench model.safetensors patients.csv --rows 0:10 --scale std --radius 0.1 --radius 0.3
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser)
    add_region(parser, several_radii=True)
    group = parser.add_argument_group("effort")
    group.add_argument("--tolerance", type=number, default=0.02, help="width of an answer (%(default)s)")
    group.add_argument(
        "--max-seconds", type=number, default=20.0, metavar="S", help="limit for one row (%(default)s)"
    )
    add_output(parser, ends=(".json",))


def run(parsed: argparse.Namespace) -> int:
    """One line per radius: converged, median and largest CPU time, in seconds and in floors."""
    model = open_model(parsed)
    table = read_points(parsed, model.post)
    shape = read_shape(parsed, model.post, table)
    regions = balls(table, read_radii(parsed, table), shape)
    limits = {"tolerance": parsed.tolerance, "max_seconds": parsed.max_seconds}
    # The model is verified once, at its first question: no part of what a row costs.
    probability_range(model.post, regions[0][1], max_nodes=0)
    floor = _floor(model.post, table.X)
    bar = line("bench", len(regions), parsed.quiet)
    with Interrupt() as interrupt:
        measured = _measure(model.post, [region for _, region in regions], limits, interrupt, bar)
    bar.close()
    rows = [_row(radius, costs, floor) for radius, costs in sorted(measured.items())]
    complete = not interrupt.requested
    told = {"floor_seconds": floor, **limits, "complete": complete, "rows": rows, "versions": surroundings()}
    return _tell(parsed, rows, told) or (0 if complete else interrupt.status)


def _measure(
    post: Posterior,
    regions: Sequence[Region],
    limits: dict[str, Any],
    interrupt: Interrupt,
    bar: Bar,
) -> dict[float, list[tuple[float, bool]]]:
    """CPU seconds of each range, and whether it converged, by radius; without those a signal cut short."""
    measured: dict[float, list[tuple[float, bool]]] = {}
    with suppress(KeyboardInterrupt):
        for done, region in enumerate(regions):

            def progress(p: Progress, done: int = done) -> bool:
                bar.draw(done, f"width {p.upper - p.lower:.3g}")
                return interrupt.requested

            start = time.process_time()
            found = probability_range(post, region, progress=progress, **limits)
            cost = time.process_time() - start, found.status is Status.CONVERGED
            if interrupt.requested:
                break
            measured.setdefault(getattr(region, "radius", 0.0), []).append(cost)
    interrupt.over = True
    return measured


def _floor(post: Posterior, X: Float) -> float:
    """CPU seconds of one evaluation of mean, variance and their gradients at one point: the median of 9."""
    times = []
    for k in range(9):
        x = X[k % len(X)][None]
        start = time.process_time()
        post.latent(x)
        post.latent_gradient(x)
        times.append(time.process_time() - start)
    return max(statistics.median(times), 1e-9)


def _row(radius: float, costs: list[tuple[float, bool]], floor: float) -> dict[str, Any]:
    seconds = [cost for cost, _ in costs]
    return {
        "radius": radius,
        "rows": len(costs),
        "converged": float(np.mean([done for _, done in costs])),
        "median_seconds": statistics.median(seconds),
        "max_seconds": max(seconds),
        "median_floors": statistics.median(seconds) / floor,
    }


def _tell(parsed: argparse.Namespace, rows: list[dict[str, Any]], told: dict[str, Any]) -> int:
    """Save and print; 1 if that failed, 0 else."""
    text = json.dumps(told, indent=1) + "\n"
    kept = Kept(None)
    if parsed.output is not None and rows:
        kept = keep(parsed.output, lambda place: write_whole(place, text), told["complete"])
    people = [_table(rows), f"one floor is {1000 * told['floor_seconds']:.2f} ms"] if rows else []
    people += [] if kept.place is None else [f"saved: {printable(str(kept.place))}"]
    unsaid = tell(*([text.rstrip()] if parsed.json or (kept.failed and kept.place is None) else people))
    if kept.note:
        warn(kept.note)
    return int(kept.failed) or unsaid


def _table(rows: list[dict[str, Any]]) -> str:
    head = ("radius", "rows", "converged", "median s", "max s", "median floors")
    lines = [
        (
            f"{r['radius']:g}",
            str(r["rows"]),
            percent(Fraction(round(r["converged"] * r["rows"]), r["rows"])),
            f"{r['median_seconds']:.3f}",
            f"{r['max_seconds']:.3f}",
            f"{r['median_floors']:.0f}",
        )
        for r in rows
    ]
    return columns(head, lines)

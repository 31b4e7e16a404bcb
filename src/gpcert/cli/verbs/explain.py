"""`gpcert explain`: which features push the probability of a class up or down."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from gpcert.classes import Label, called, position
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_limits, add_output, add_proof, add_region
from gpcert.cli.regions import read_radii, read_shape
from gpcert.cli.session import LoadedModel, Rows, open_model, proof_folder, run_session
from gpcert.cli.show import columns
from gpcert.numbers import between, exact_mean
from gpcert.questions.explain import explain
from gpcert.records.batch import shape_told
from gpcert.records.rows import Row
from gpcert.results import Explanation
from gpcert.validation import require

DESCRIPTION = """
How much each feature alone, moving up or down by the radius, moves the probability of a class:
positive where more of the feature speaks for the class. Every value has proved bounds.
"""
EXAMPLES = """
  gpcert explain model.safetensors patients.csv --radius 0.5 --scale std -o explain.json
  gpcert explain digits.safetensors dataset:mnist38 --rows 0:10 --radius 0.2 --label 8 -o explain.json
"""
_SHOWN = 15  # features in the table, the most influential first


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_data(parser)
    parser.add_argument("--label", metavar="CLASS", help="whose probability (the second of two classes)")
    add_region(parser)
    add_limits(parser)
    add_output(parser)
    add_proof(parser)


def run(parsed: argparse.Namespace) -> int:
    """Influences of all features at each row, and their mean."""
    model = open_model(parsed)
    table = read_points(parsed, model.post)
    shape = read_shape(parsed, model.post, table)
    require(shape.norm == np.inf, f"--norm must be inf: features move one by one, got {shape.norm:g}")
    label = model.post.labels[position(model.post.labels, parsed.label, "--label")]
    several = parsed.radius or []
    require(len(several) <= 1, f"--radius must be given once for influences, got {several}")
    radii = [radius for (radius,) in read_radii(parsed, table)]
    limits = {name: getattr(parsed, name) for name in ("tolerance", "max_seconds", "max_nodes")}
    rows = Rows(model, table, [(i, shape.ball(table.X[i], radius)) for i, radius in enumerate(radii)])
    proof = proof_folder(parsed, model, [shape.ball(x, 0.0) for x in table.X[:1]], rows.names, table.X)
    moving = {"features": shape.features, "domain": shape.domain, "scale": shape.scale}
    questions = []
    for radius in dict.fromkeys(radii):
        some = [i for i, own in enumerate(radii) if own == radius]
        options = moving | limits | {"proof": proof}
        ask = partial(explain, model.post, table.X[some], radius, label, **options)
        questions.append((some, ask))
    settings = {"class": str(label), **shape_told(shape, model.features), **limits}
    return run_session(parsed, model, table, rows, questions, settings, _no_table, _Mean(model, label))


def _no_table(rows: list[Row]) -> str:
    """One row would fill the screen; the file has them all."""
    return ""


class _Mean:
    """The mean over the rows, as a table."""

    def __init__(self, model: LoadedModel, label: Label) -> None:
        self._model, self._name = model, called(label)

    def __call__(self, rows: list[Row]) -> str:
        """One line per feature."""
        answers = [row.answer for row in rows if isinstance(row.answer, Explanation)]
        value = np.mean([a.value[0] for a in answers], axis=0)
        head = ("feature", f"influence on P({self._name})", "proved in")
        lines = []
        for j in np.argsort(-np.abs(value), kind="stable")[:_SHOWN].tolist():
            low, high = (exact_mean([getattr(a, end)[0, j] for a in answers]) for end in ("lower", "upper"))
            lines.append((self._model.features[j], f"{value[j]:+.3f}", between(low, high)))
        return columns(head, lines)

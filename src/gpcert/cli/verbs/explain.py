"""`gpcert explain`: which features push the probability of a class up or down."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.classes import Label, called, position
from gpcert.cli.asking import Answer
from gpcert.cli.io.sources import read_points
from gpcert.cli.options import add_data, add_limits, add_output, add_region
from gpcert.cli.proving import add_proof, proof_paths
from gpcert.cli.regions import Shape, read_radii, read_shape
from gpcert.cli.session import Model, Rows, open_model, run_session
from gpcert.cli.show import columns
from gpcert.numbers import between, exact_mean
from gpcert.posterior import Posterior
from gpcert.proofs.prover import ProofPath
from gpcert.questions.explain import explain
from gpcert.records.batch import shape_told
from gpcert.records.rows import Row
from gpcert.results import Explanation
from gpcert.running import Listener
from gpcert.validation import Float, require

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


@dataclass(frozen=True, eq=False)
class _Query:
    x: Float
    radius: float
    label: Label
    shape: Shape
    limits: dict[str, Any]
    proof: ProofPath | None


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
    named = [*map(table.named, range(len(table.X)))]
    proofs = proof_paths(parsed, model, [shape.ball(x, 0.0) for x in table.X[:1]], named)
    asked = zip(table.X, radii, proofs, strict=True)
    queries = [_Query(x, radius, label, shape, limits, proof) for x, radius, proof in asked]
    regions = [(i, shape.ball(table.X[i], radius)) for i, radius in enumerate(radii)]
    rows = Rows(model, table, regions)
    settings = {"class": str(label), **shape_told(shape, model.features), **limits}
    return run_session(parsed, model, table, _ask, queries, rows, settings, _no_table, _Mean(model, label))


def _ask(post: Posterior, query: _Query, progress: Listener) -> Answer:
    shape, proof = query.shape, None if query.proof is None else query.proof.folder
    options = query.limits | {"features": shape.features, "domain": shape.domain, "scale": shape.scale}
    options |= {"progress": progress, "proof": proof}
    return {"answer": explain(post, query.x, query.radius, query.label, **options)}


def _no_table(rows: list[Row]) -> str:
    """One row would fill the screen; the file has them all."""
    return ""


class _Mean:
    """The mean over the rows, as a table."""

    def __init__(self, model: Model, label: Label) -> None:
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

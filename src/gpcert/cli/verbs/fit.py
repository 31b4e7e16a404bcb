"""`gpcert fit`: train a classifier on a table and save its posterior in the units of the file.

A stationary kernel sees only differences divided by lengthscales, so training on standardised columns with
the lengthscale l, and using the lengthscales l * std_j on the columns as they are, is the same model: no
scaling has to be remembered, and regions are stated in the file's own units.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gpcert import kernels
from gpcert.cli.io.sources import SHIPPED, read_table, reading_of
from gpcert.cli.io.tables import ColumnChoice, DataTable
from gpcert.cli.keeping import check_output, keep
from gpcert.cli.options import add_reading, count, names, number, rows
from gpcert.cli.session import tell_skipped
from gpcert.cli.show import Interrupt, line, tell, warn
from gpcert.errors import InvalidInputError
from gpcert.estimator import GPClassifier
from gpcert.kernels import Kernel, Stationary
from gpcert.model_file import save
from gpcert.numbers import percent
from gpcert.posterior import Posterior
from gpcert.validation import Float, printable, require

_SAMPLE = 500  # rows whose distances give the start of the lengthscale
#: Names on the command line, and the classes of `gpcert.kernels`.
_KERNELS = {
    "rbf": "RBF",
    "matern12": "Matern12",
    "matern32": "Matern32",
    "matern52": "Matern52",
    "rational-quadratic": "RationalQuadratic",
}

DESCRIPTION = """
Train a Gaussian-process classifier on a CSV file with a header, on an npz file with X and y,
or on dataset:NAME (its training part), and save it. The model is in the units of the file.
"""
EXAMPLES = """
  gpcert fit patients.csv --target diagnosis -o model.safetensors
  gpcert fit patients.csv --target diagnosis --columns age,bmi --ard --test later.csv -o model.safetensors
  gpcert fit dataset:mnist38 --inference ep -o digits.safetensors
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="CSV, .csv.gz, .xlsx, .parquet, npz, or dataset:NAME")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="MODEL", help="file of the model (safetensors)"
    )
    group = parser.add_argument_group("data")
    group.add_argument("--target", metavar="NAME", help="column of the labels")
    group.add_argument("--id", metavar="NAME", help="column that names the rows, and is no feature")
    group.add_argument("--rows", type=rows, help="only these rows, from 0: 0:5000 or 3,5,8:12")
    group.add_argument("--columns", type=names, metavar="A,B", help="only these columns are features")
    group.add_argument("--drop", type=names, default=(), metavar="A,B", help="these columns are not features")
    add_reading(group)
    group.add_argument("--test", metavar="DATA", help="tell the accuracy on these rows")
    _add_model(parser)
    parser.add_argument("--json", action="store_true", help="print what was trained as JSON, not as text")
    parser.add_argument("--quiet", action="store_true", help="no progress line")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("--kernel", choices=list(_KERNELS), default="rbf", help="(%(default)s)")
    group.add_argument(
        "--scaling",
        choices=["std", "none"],
        help="std: the lengthscale counts in standard deviations of each column (default; none for images)",
    )
    group.add_argument("--ard", action="store_true", help="learn one lengthscale per feature")
    group.add_argument("--lengthscale", type=number, help="where the search starts (median distance of rows)")
    group.add_argument("--variance", type=number, default=10.0, help="where the search starts (%(default)s)")
    group.add_argument("--likelihood", choices=["probit", "logit", "softmax"], default="probit")
    group.add_argument("--inference", choices=["laplace", "ep"], default="laplace")
    group.add_argument("--max-evals", type=count, default=40, help="of the marginal likelihood (%(default)s)")
    group.add_argument("--seed", type=count, default=0, help="of random restarts (%(default)s)")


def run(parsed: argparse.Namespace) -> int:
    """Train, save, and tell; Ctrl-C keeps the best model so far."""
    check_output(parsed.output, parsed.data, parsed.test, ends=(".safetensors",))
    table = _training_table(parsed)
    test = _test_table(parsed, table)
    assert table.labels is not None
    tell_skipped(*([table] if test is None else [table, test]))
    _tell_constant(table)
    unit = _units(parsed, table)
    with Interrupt("without a model") as interrupt:
        classifier = _train(parsed, table.X / unit, np.array(table.labels), interrupt, len(set(table.labels)))
        interrupt.over = True
        post = in_file_units(classifier.posterior_, table, unit)
        kept = keep(parsed.output, lambda place: save(post, place), complete=not interrupt.requested)
    outcome = {
        "model": None if kept.place is None else str(kept.place),
        "rows": len(table.X),
        "features": list(table.names),
        "classes": [str(c) for c in classifier.classes_],
        "kernel": repr(post.kernel),
        "log_marginal_likelihood": float(classifier.log_marginal_likelihood_),
        "evaluations": int(classifier.n_evals_),
        "converged": bool(classifier.converged_),
        "interrupted": interrupt.requested,
        "training_accuracy": _accuracy(post, table),
        "test": None if test is None else _tested(post, test),
    }
    unsaid = tell(json.dumps(outcome) if parsed.json else _text(outcome))
    if kept.note:
        warn(kept.note)
    if kept.failed:
        return 1
    return interrupt.status if interrupt.requested else unsaid


def in_file_units(post: Posterior, table: DataTable, unit: Float) -> Posterior:
    """The posterior trained on X / unit as a posterior of X, with names and the record of its data."""
    shared = isinstance(post.kernel, Kernel)
    each = [_scaled(kernel, unit) for kernel in post.kernels]
    scaled = post.kernel if (unit == 1.0).all() else each[0] if shared else each
    record = {"data": table.source, "data_sha256": table.sha256, "label_column": table.target}
    return Posterior(
        table.X,
        post.weights,
        post.precision,
        kernel=scaled,
        likelihood=post.likelihood,
        mean=post.mean,
        classes=post.classes,
        feature_names=table.names,
        factors=post.factors,
        training={**post.training, **record},
    )


def _scaled(kernel: Kernel, unit: Float) -> Kernel:
    assert isinstance(kernel, Stationary)
    return replace(kernel, lengthscale=kernel.lengthscale * unit)


def _training_table(parsed: argparse.Namespace) -> DataTable:
    columns = ColumnChoice(
        features=parsed.columns, dropped=parsed.drop, target=parsed.target, id=parsed.id, droppable=True
    )
    csv = not parsed.data.startswith(SHIPPED) and not parsed.data.endswith(".npz")
    require(parsed.target is not None or not csv, "--target must name the column of the labels, got none")
    for what, name in (("labels", parsed.target), ("names of rows", parsed.id)):
        if name is not None and name in (parsed.columns or ()):
            raise InvalidInputError(f"--columns must not hold the column of the {what}, got {name!r}")
    if both := set(parsed.columns or ()) & set(parsed.drop or ()):
        raise InvalidInputError(f"--drop must not name what --columns keeps, got {min(both)!r}")
    table = read_table(parsed.data, columns, reading_of(parsed), part="train", wanted=parsed.rows)
    require(table.labels is not None, f"{table.source} must have labels, got no array 'y'")
    assert table.labels is not None
    found = set(table.labels)
    require(len(found) >= 2, f"{table.source} must have at least two classes in its labels, got {found}")
    most = max(20, len(table.X) // 5)
    require(
        len(found) <= most,
        f"{table.source}: column {table.target!r} must hold classes, got {len(found)} different values "
        f"in {len(table.X)} rows",
    )
    return table


def _tell_constant(table: DataTable) -> None:
    ends = zip(table.names, table.X.min(axis=0), table.X.max(axis=0), strict=True)
    flat = [repr(name) for name, low, high in ends if low == high]
    if flat:
        outcome = (
            f"columns that are constant tell nothing, and --drop leaves them out: {', '.join(flat[:12])}"
        )
        warn(f"{outcome} and {len(flat) - 12} more" if len(flat) > 12 else outcome)


def _test_table(parsed: argparse.Namespace, table: DataTable) -> DataTable | None:
    if parsed.test is None:
        return None
    assert table.labels is not None
    columns = ColumnChoice(features=table.names, target=parsed.target)
    test = read_table(parsed.test, columns, reading_of(parsed))
    test.checked_labels(sorted(set(table.labels)))
    return test


def _units(parsed: argparse.Namespace, table: DataTable) -> Float:
    """(d,): standard deviations, 1 where a column is constant or no scaling is wanted."""
    shipped = parsed.data.startswith(SHIPPED)
    scaling = parsed.scaling or ("none" if shipped or table.image_shape else "std")
    ones = np.ones(table.X.shape[1])
    if scaling == "none":
        return ones
    spread = table.X.std(axis=0)
    return np.where((spread > 0) & np.isfinite(spread), spread, ones)


def _train(
    parsed: argparse.Namespace, X: Float, y: np.ndarray, interrupt: Interrupt, classes: int
) -> GPClassifier:
    latents = 1 if classes == 2 else classes
    bar = line("fit", parsed.max_evals * latents, parsed.quiet)
    calls = 0

    def progress(evaluations: int, value: float, theta: Float) -> bool:
        nonlocal calls
        calls += 1
        bar.draw(calls, f"log marginal likelihood {value:.3f}")
        return interrupt.requested

    classifier = GPClassifier(
        kernel=_kernel(parsed, X),
        likelihood=parsed.likelihood,
        inference=parsed.inference,
        max_evals=parsed.max_evals,
        random_state=parsed.seed,
        progress=progress,
    )
    try:
        return classifier.fit(X, y)
    finally:
        bar.close()


def _kernel(parsed: argparse.Namespace, X: Float) -> Kernel:
    start = _median_distance(X) if parsed.lengthscale is None else parsed.lengthscale
    lengthscale = np.full(X.shape[1], start) if parsed.ard else start
    made: Kernel = getattr(kernels, _KERNELS[parsed.kernel])(lengthscale, parsed.variance)
    return made


def _median_distance(X: Float) -> float:
    """Of the first rows: of the order where the search for a lengthscale has a slope to follow."""
    some = X[:: max(1, len(X) // _SAMPLE)]
    squares = (some**2).sum(axis=1)
    gaps = squares[:, None] + squares[None, :] - 2.0 * some @ some.T
    median = float(np.sqrt(np.median(np.maximum(gaps[np.triu_indices(len(some), 1)], 0.0))))
    return median if np.isfinite(median) and median > 0 else 1.0


def _text(outcome: dict[str, Any]) -> str:
    """The same for people, warnings last."""
    classes = ", ".join(printable(name) for name in outcome["classes"])
    value, used = outcome["log_marginal_likelihood"], outcome["evaluations"]
    lines = [
        f"trained on {outcome['rows']} rows, {len(outcome['features'])} features, classes {classes}",
        f"log marginal likelihood {value:.3f} after {used} evaluations",
        f"accuracy on the training rows {_percent(outcome['training_accuracy'], outcome['rows'])}",
    ]
    if test := outcome["test"]:
        lines.append(
            f"accuracy on {test['data']} {_percent(test['accuracy'], test['rows'])} of {test['rows']} rows"
        )
    # Without a file the kernel is what the search has found: --max-evals 0 from there is the same model.
    lines.append(
        f"saved: {printable(outcome['model'])}" if outcome["model"] else f"kernel: {outcome['kernel']}"
    )
    if not outcome["converged"]:
        lines.append("the inference did not converge; the model is its last state")
    if outcome["interrupted"]:
        lines.append("interrupted; the model is the best found so far")
    return "\n".join(lines)


def _percent(accuracy: float, rows: int) -> str:
    return percent(Fraction(round(accuracy * rows), rows))


def _tested(post: Posterior, test: DataTable) -> dict[str, Any]:
    return {"data": test.source, "rows": len(test.X), "accuracy": _accuracy(post, test)}


def _accuracy(post: Posterior, table: DataTable) -> float:
    assert post.classes is not None
    predicted = post.classes[post.probability(table.X).argmax(axis=1)]
    return float(np.mean(predicted == np.array(table.labels)))

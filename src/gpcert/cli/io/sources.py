"""From a source named on the command line to a table, by what the name says."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpcert.cli.io.cells import read_cells
from gpcert.cli.io.npz import read_npz, read_shipped
from gpcert.cli.io.tables import ColumnChoice, DataTable, Reading
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.validation import require

SHIPPED = "dataset:"


def read_table(
    source: str,
    choice: ColumnChoice,
    reading: Reading | None = None,
    part: str = "test",
    wanted: Sequence[int] | None = None,
) -> DataTable:
    """The table of a CSV, Excel, Parquet or npz file, or of `dataset:NAME` (its `part`: "train" or "test").

    `wanted`: only these rows, in this order.
    """
    if source.startswith(SHIPPED):
        return read_shipped(source.removeprefix(SHIPPED), part, choice).take(wanted)
    path = Path(source)
    # Devices and pipes could block or never end.
    if path.exists() and not path.is_file():
        raise InvalidInputError(
            f"{path} must be a CSV, npz, .xlsx or .parquet file, got something that is not a file"
        )
    if path.suffix.lower() == ".npz":
        return read_npz(path, choice, wanted)
    return read_cells(path, choice, reading, wanted)


def read_points(parsed: argparse.Namespace, post: Posterior) -> DataTable:
    """The rows asked about: the model's features by name, and labels where the file has them.

    The column of labels is `--target`, else the one the model was trained on, if it is there.
    """
    learnt = post.training.get("label_column")
    target = parsed.target or (learnt if isinstance(learnt, str) else None)
    choice = ColumnChoice(
        features=post.feature_names, target=target, optional_target=parsed.target is None, id=parsed.id
    )
    table = read_table(parsed.data, choice, reading_of(parsed), wanted=parsed.rows)
    require(
        len(table.names) == post.n_features,
        f"{table.source} must have {post.n_features} features, as the model has, got {len(table.names)}",
    )
    return table if table.labels is None else replace(table, labels=table.checked_labels(post.labels))


def reading_of(parsed: argparse.Namespace) -> Reading:
    """How tables are read, from the options of `add_reading`."""
    found = Reading(parsed.delimiter, parsed.encoding, parsed.decimal, parsed.missing)
    apart = found.between != found.decimal
    require(apart, f"--decimal must be another character than --delimiter, got {found.decimal!r} for both")
    return found


def class_names(post: Posterior) -> tuple[str, ...]:
    """The model's classes as they are written in files."""
    return () if post.classes is None else tuple(map(str, post.labels))


def feature_names(post: Posterior) -> tuple[str, ...]:
    """The model's feature names, x0, x1, ... if it has none."""
    return post.feature_names or tuple(f"x{j}" for j in range(post.n_features))

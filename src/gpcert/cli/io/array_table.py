"""Tables from npz files and from the shipped data sets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.cli.io.npz_arrays import Archive, Header
from gpcert.cli.io.tables import Columns, Table, missing_column, outside, take_rows
from gpcert.errors import InvalidInputError
from gpcert.validation import Float, as_names, freeze, require


def read_npz(path: Path, columns: Columns, wanted: Sequence[int] | None = None) -> Table:
    """The table in an npz file: `X` (n, d); if there, `y` (n,), `feature_names` (d,), `image_shape` (2,).

    Of the rows, only those wanted are kept; arrays of other names are not looked at.
    """
    with Archive(path) as archive:
        if "X" not in archive.names:
            raise InvalidInputError(
                f"{path} must have an array 'X', got {', '.join(archive.names) or 'none'}"
            )
        n, d = _points_shape(path, archive.header("X"))
        for row in wanted or ():
            if row >= n:
                raise outside(str(path), n, row)
        X = _points(path, archive, wanted)
        labels = _labels(path, archive, columns, n, wanted)
        given = archive.rows("feature_names") if "feature_names" in archive.names else None
        named = as_names(f"{path}: feature_names", given, d)
        picked = columns.features is None and not columns.dropped
        shape = _shape(path, archive, d) if picked and "image_shape" in archive.names else None
    names = named or tuple(f"x{j}" for j in range(d))
    table = _table(
        _Array(str(path)),
        archive.sha256,
        X,
        names if named is not None or columns.features is None else _same_number(path, columns.features, d),
        labels,
        columns,
        rows=range(n) if wanted is None else sorted(wanted),
        image_shape=shape,
    )
    return table if wanted is None else take_rows(table, wanted)


def shipped_table(name: str, part: str, columns: Columns) -> Table:
    """The "train" or "test" points of a shipped data set."""
    from gpcert import datasets

    data = datasets.load(name)
    X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()
    return _table(
        _Array(f"dataset:{name}, {part} part"),
        digest,
        X,
        data.feature_names,
        tuple(str(label) for label in y),
        columns,
        rows=range(len(X)),
        domain=data.domain,
        image_shape=data.image_shape,
    )


class _Array:
    """The place of a value in arrays, in words."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __call__(self, row: int, column: str) -> str:
        return f"{self.source}, row {row}, column {column!r}"


def _table(
    place: _Array,
    digest: str,
    X: NDArray[np.float64],
    names: tuple[str, ...],
    labels: tuple[str, ...] | None,
    columns: Columns,
    *,
    rows: Sequence[int],
    **more: Any,
) -> Table:
    if columns.id is not None:
        raise InvalidInputError(
            f"--id must name a column of a file with named columns, got {columns.id!r} for {place.source}"
        )
    for name in (*(columns.features or ()), *columns.dropped):
        if name not in names:
            raise missing_column(place.source, name, names)
    chosen = columns.features or tuple(name for name in names if name not in columns.dropped)
    at = [names.index(name) for name in chosen]
    kept = X if at == list(range(len(names))) else freeze(np.ascontiguousarray(X[:, at]))
    return Table(
        place.source, digest, kept, chosen, labels, None, rows, place, "y" if labels else None, **more
    )


def _points_shape(path: Path, head: Header) -> tuple[int, int]:
    require(head.dtype.kind in "fiub", f"{path}: X must be numbers, got {head.dtype}")
    require(
        len(head.shape) == 2,
        f"{path}: X must be two-dimensional (points, features), got shape {head.shape}",
    )
    require(math.prod(head.shape) > 0, f"{path}: X must hold points with features, got shape {head.shape}")
    return head.shape[0], head.shape[1]


def _points(path: Path, archive: Archive, wanted: Sequence[int] | None) -> Float:
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(archive.rows("X", wanted), dtype=np.float64)
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        k, j = bad[0].tolist()
        row = k if wanted is None else sorted(wanted)[k]
        raise InvalidInputError(f"{path}: X must be finite, got {X[k, j]} at index ({row}, {j})")
    return freeze(X)


def _labels(
    path: Path, archive: Archive, columns: Columns, n: int, wanted: Sequence[int] | None
) -> tuple[str, ...] | None:
    key = columns.target or "y"
    if key not in archive.names and columns.optional_target:
        key = "y"  # a name that came from the model, not from the command line
    if key not in archive.names:
        if columns.target is None or columns.optional_target:
            return None
        raise _missing(path, archive, key)
    shape = archive.header(key).shape
    require(shape == (n,), f"{path}: {key} must have shape ({n},), got {shape}")
    return tuple(str(label) for label in archive.rows(key, wanted).tolist())


def _missing(path: Path, archive: Archive, name: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path} must have an array {name!r}, got {', '.join(archive.names[:12]) or 'none'}"
    )


def _same_number(path: Path, features: Sequence[str], d: int) -> tuple[str, ...]:
    """Arrays without names are taken in the model's order, if there are as many."""
    require(len(features) == d, f"{path}: X must have {len(features)} features, got {d}")
    return tuple(features)


def _shape(path: Path, archive: Archive, d: int) -> tuple[int, int]:
    head = archive.header("image_shape")
    sizes = archive.rows("image_shape").tolist() if head.shape == (2,) and head.dtype.kind in "iu" else []
    fits = len(sizes) == 2 and sizes[0] > 0 and sizes[0] * sizes[1] == d
    rule = f"{path}: image_shape must be two whole numbers with product {d}"
    require(fits, f"{rule}, got {sizes or f'shape {head.shape} of {head.dtype}'}")
    return sizes[0], sizes[1]

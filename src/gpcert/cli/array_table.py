"""Tables from npz files and from the shipped data sets."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.cli.tables import Columns, Table, missing_column
from gpcert.errors import InvalidInputError
from gpcert.validation import as_matrix, as_names, freeze, require

__all__ = ["read_npz", "shipped_table"]


def read_npz(path: Path, columns: Columns) -> Table:
    """The table in an npz file: `X` (n, d); if there, `y` (n,), `feature_names` (d,), `image_shape` (2,)."""
    content = path.read_bytes()
    arrays = _arrays(path, content)
    if "X" not in arrays:
        raise InvalidInputError(f"{path} must have an array 'X', got {', '.join(arrays) or 'none'}")
    X = as_matrix(f"{path}: X", arrays["X"])
    require(X.size > 0, f"{path}: X must hold points with features, got shape {X.shape}")
    d = X.shape[1]
    named = as_names(f"{path}: feature_names", arrays.get("feature_names"), d)
    names = named or tuple(f"x{j}" for j in range(d))
    shape = arrays.get("image_shape")
    picked = columns.features is None and not columns.dropped
    return _table(
        _Array(str(path)),
        hashlib.sha256(content).hexdigest(),
        X,
        names if named is not None or columns.features is None else _same_number(path, columns.features, d),
        _labels(path, arrays, columns, len(X)),
        columns,
        image_shape=_shape(path, shape, d) if shape is not None and picked else None,
    )


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
    **more: Any,
) -> Table:
    if columns.id is not None:
        raise InvalidInputError(
            f"--id must name a column of a CSV file, got {columns.id!r} for {place.source}"
        )
    for name in (*(columns.features or ()), *columns.dropped):
        if name not in names:
            raise missing_column(place.source, name, names)
    chosen = columns.features or tuple(name for name in names if name not in columns.dropped)
    at = [names.index(name) for name in chosen]
    kept = X if at == list(range(len(names))) else freeze(np.ascontiguousarray(X[:, at]))
    rows = tuple(range(len(X)))
    return Table(
        place.source, digest, kept, chosen, labels, None, rows, place, "y" if labels else None, **more
    )


def _arrays(path: Path, content: bytes) -> Mapping[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            require(hasattr(archive, "files"), f"{path} must be an npz file, got a single array")
            return {key: archive[key] for key in archive.files}
    except InvalidInputError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise InvalidInputError(f"{path} must be an npz file of plain arrays, got: {error}") from None


def _labels(
    path: Path, arrays: Mapping[str, NDArray[Any]], columns: Columns, n: int
) -> tuple[str, ...] | None:
    key = columns.target or "y"
    if key not in arrays and columns.optional_target:
        key = "y"  # a name that came from the model, not from the command line
    if key not in arrays:
        if columns.target is None or columns.optional_target:
            return None
        raise InvalidInputError(f"{path} must have an array {key!r}, got {', '.join(arrays)}")
    y = arrays[key]
    require(y.shape == (n,), f"{path}: {key} must have shape ({n},), got {y.shape}")
    return tuple(str(label) for label in y.tolist())


def _same_number(path: Path, features: Sequence[str], d: int) -> tuple[str, ...]:
    """Arrays without names are taken in the model's order, if there are as many."""
    require(len(features) == d, f"{path}: X must have {len(features)} features, got {d}")
    return tuple(features)


def _shape(path: Path, value: NDArray[Any], d: int) -> tuple[int, int]:
    fits = value.shape == (2,) and value.dtype.kind in "iu" and int(value[0]) * int(value[1]) == d
    require(fits, f"{path}: image_shape must be two whole numbers with product {d}, got {value.tolist()}")
    return int(value[0]), int(value[1])

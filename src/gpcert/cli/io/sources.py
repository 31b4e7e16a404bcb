"""Where tables come from: files with named columns, npz files, shipped data sets; the rows of a verb.

An npz file is a zip archive of npy files: a header with type and shape, then the numbers. Both headers are
checked against each other before anything is unpacked; objects are never unpickled.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gpcert.cli.io.cells import read_cells
from gpcert.cli.io.tables import ColumnChoice, DataTable, Reading, hashed, missing_column
from gpcert.errors import InvalidInputError
from gpcert.posterior import Posterior
from gpcert.validation import Float, as_names, freeze, require

SHIPPED = "dataset:"
_FREELY, _FACTOR = 1 << 30, 20  # bytes that an array may have, and multiple of the file's
_DAMAGED = (
    *(ValueError, TypeError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # numpy reads the text of a header as Python's
)


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
    """The rows of a verb: the model's features by name, and labels where the file has them.

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
    distinct = found.between != found.decimal
    require(distinct, f"--decimal must be another character than --delimiter, got {found.decimal!r} for both")
    return found


def class_names(post: Posterior) -> tuple[str, ...]:
    """The model's classes as they are written in files."""
    return () if post.classes is None else tuple(map(str, post.labels))


def feature_names(post: Posterior) -> tuple[str, ...]:
    """The model's feature names, x0, x1, ... if it has none."""
    return post.feature_names or tuple(f"x{j}" for j in range(post.n_features))


def read_npz(path: Path, choice: ColumnChoice, wanted: Sequence[int] | None = None) -> DataTable:
    """The table in an npz file: `X` (n, d); if there, `y` (n,), `feature_names` (d,), `image_shape` (2,).

    Arrays of other names are not looked at.
    """
    key = choice.target or "y"
    with hashed(path) as (file, digest):
        try:
            with zipfile.ZipFile(file) as archive:
                present = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
                if key not in present and choice.optional_target:
                    key = "y"  # a name that came from the model, not from the command line
                known = {"X", key, "feature_names", "image_shape"}.intersection(present)
                most = max(_FREELY, _FACTOR * path.stat().st_size)
                arrays = {name: _array(path, archive, name, most) for name in sorted(known)}
        except InvalidInputError:
            raise
        except _DAMAGED as error:
            raise InvalidInputError(f"{path} must be an npz file of plain arrays, got: {error}") from None
    needed = ["X"] if choice.target is None or choice.optional_target else ["X", key]
    for name in needed:
        message = f"{path} must have an array {name!r}, got {', '.join(present[:12]) or 'none'}"
        require(name in arrays, message)
    X, labels = _points(path, arrays["X"]), arrays.get(key)
    n, d = X.shape
    if labels is not None:
        require(labels.shape == (n,), f"{path}: {key} must have shape ({n},), got {labels.shape}")
    names = as_names(f"{path}: feature_names", arrays.get("feature_names"), d)
    if names is None and choice.features is not None:  # in the model's order, if there are as many
        names = tuple(choice.features)
        require(len(names) == d, f"{path}: X must have {len(names)} features, got {d}")
    whole, shape = choice.features is None and not choice.dropped, arrays.get("image_shape")
    return _chosen(
        str(path),
        digest,
        X,
        names or tuple(f"x{j}" for j in range(d)),
        None if labels is None else tuple(map(str, labels.tolist())),
        choice,
        image_shape=None if shape is None or not whole else _image_shape(path, shape, d),
    ).take(wanted)


def read_shipped(name: str, part: str, choice: ColumnChoice) -> DataTable:
    """The "train" or "test" points of a shipped data set."""
    from gpcert import datasets

    data = datasets.load(name)
    X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()
    more = {"domain": data.domain, "image_shape": data.image_shape}
    labels = tuple(str(label) for label in y)
    return _chosen(f"dataset:{name}, {part} part", digest, X, data.feature_names, labels, choice, **more)


def _chosen(
    source: str,
    digest: str,
    X: NDArray[np.float64],
    names: tuple[str, ...],
    labels: tuple[str, ...] | None,
    choice: ColumnChoice,
    **more: Any,
) -> DataTable:
    message = f"--id must name a column of a file with named columns, got {choice.id!r} for {source}"
    require(choice.id is None, message)
    for name in (*(choice.features or ()), *choice.dropped):
        if name not in names:
            raise missing_column(source, name, names)
    chosen = choice.features or tuple(name for name in names if name not in choice.dropped)
    at = [names.index(name) for name in chosen]
    kept = X if at == list(range(len(names))) else freeze(np.ascontiguousarray(X[:, at]))
    target = "y" if labels else None
    return DataTable(source, digest, kept, chosen, labels, None, range(len(X)), target=target, **more)


def _array(path: Path, archive: zipfile.ZipFile, name: str, most: int) -> NDArray[Any]:
    """An array of the archive, of at most `most` bytes."""
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"a way to compress that numpy does not write: {info.compress_type}")
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        if version != (1, 0):  # others have long headers, which plain arrays do not need
            raise ValueError(f"version {version} of the npy format")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 are read as well
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
        if dtype.hasobject:
            raise ValueError(f"objects in {name!r}, which are never unpickled")
        stored, message = info.file_size - stream.tell(), math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or message != stored:
            raise ValueError(f"{stored} bytes of {name!r}, of which shape {shape} has {message}")
        size = math.prod(shape) * max(dtype.itemsize, 8)
        told_most = f"{path}: {name} must need at most {most} bytes of memory, {_FACTOR} times the file"
        require(size <= most, f"{told_most}, got {size}")
        return np.frombuffer(stream.read(), dtype).reshape(shape, order="F" if fortran else "C")


def _points(path: Path, X: NDArray[Any]) -> Float:
    require(X.dtype.kind in "fiub", f"{path}: X must be numbers, got {X.dtype}")
    rule = f"{path}: X must be two-dimensional (points, features), got shape {X.shape}"
    require(X.ndim == 2, rule)
    require(X.size > 0, f"{path}: X must hold points with features, got shape {X.shape}")
    with np.errstate(over="ignore"):
        points = np.ascontiguousarray(X, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        i, j = bad[0].tolist()
        raise InvalidInputError(f"{path}: X must be finite, got {points[i, j]} at index ({i}, {j})")
    return freeze(points)


def _image_shape(path: Path, given: NDArray[Any], d: int) -> tuple[int, int]:
    sizes = given.tolist() if given.shape == (2,) and given.dtype.kind in "iu" else []
    fits = len(sizes) == 2 and sizes[0] > 0 and sizes[0] * sizes[1] == d
    rule = f"{path}: image_shape must be two whole numbers with product {d}"
    require(fits, f"{rule}, got {sizes or f'shape {given.shape} of {given.dtype}'}")
    return sizes[0], sizes[1]

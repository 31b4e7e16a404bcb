"""Reading a shipped file, after checking that it is the file that was shipped."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpcert.datasets.catalogue import CATALOGUE, Entry
from gpcert.errors import GpcertError
from gpcert.validation import Float, freeze, meant, require

Labels = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Training, test and extra points of one data set; every array is read-only.

    Attributes
    ----------
    name : str
        What `load` calls it.
    X_train : array of shape (n, d)
        Training points, in the coordinates a model is trained in.
    y_train : array of shape (n,)
        Their classes, integers or strings.
    X_test : array of shape (n, d)
        Test points.
    y_test : array of shape (n,)
        Their classes.
    X_extra : array of shape (n, d)
        All that the paper's split leaves over, possibly none.
    y_extra : array of shape (n,)
        Their classes.
    feature_names : tuple of str (d)
        What the columns are called.
    description : str
        What it is, from whom, and its licence.
    domain : tuple (low, high) or None
        Lowest and highest valid value; None: any number is valid.
    image_shape : tuple (rows, columns) or None
        If the features are pixels.
    offset : array of shape (d,)
        `X * scale + offset` are the units of the source.
    scale : array of shape (d,)
        See `offset`.

    Examples
    --------
    >>> gc.datasets.load("mnist38")
    <Dataset mnist38: 1000 training, 200 test, 784 extra points, 196 features>
    """

    name: str
    X_train: Float
    y_train: Labels
    X_test: Float
    y_test: Labels
    X_extra: Float
    y_extra: Labels
    feature_names: tuple[str, ...]
    description: str
    domain: tuple[float, float] | None
    image_shape: tuple[int, int] | None
    offset: Float
    scale: Float

    def __repr__(self) -> str:
        n, d = self.X_train.shape
        sizes = f"{n} training, {len(self.X_test)} test, {len(self.X_extra)} extra points"
        return f"<Dataset {self.name}: {sizes}, {d} features>"


def load(name: str, *, features: Literal["selected", "all"] = "selected") -> Dataset:
    """A data set of the paper, shipped inside the package.

    Sizes are the paper's: 1,000 training and 200 test points; 500 training points where there are three
    classes.

    Parameters
    ----------
    name : str
        "synthetic2d", "spam", "mnist38" or "mnist358".
    features : str
        "selected", or "all": all 57 variables of "spam" in place of the 11 selected ones; the other data sets
        have no selection.

    Returns
    -------
    Dataset
        Its parts, and what is known about them.

    Examples
    --------
    >>> gc.datasets.load("synthetic2d").X_train.shape
    (1000, 2)
    """
    require(
        isinstance(name, str) and name in CATALOGUE,
        f"name must be one of {', '.join(CATALOGUE)}, got {name!r}{meant(name, CATALOGUE)}",
    )
    require(features in ("selected", "all"), f"features must be 'selected' or 'all', got {features!r}")
    entry = CATALOGUE[name]
    arrays = _read(entry)
    columns = list(range(len(entry.feature_names)))
    if features == "selected" and entry.columns is not None:
        columns = list(entry.columns)
    offset = arrays.get("offset", np.zeros(len(entry.feature_names)))[columns]
    scale = arrays.get("scale", np.ones(len(entry.feature_names)))[columns]
    # Correctly rounded from stored integers, then element-wise: every machine gets the same bits.
    X = (arrays["values"][:, columns] / entry.unit - offset) / scale
    parts: dict[str, Any] = {}
    for part in ("train", "test", "extra"):
        rows = arrays[f"{name}.{part}"]
        parts[f"X_{part}"] = freeze(X[rows])
        parts[f"y_{part}"] = _labels(entry, arrays["labels"][rows])
    return Dataset(
        name=name,
        feature_names=tuple(entry.feature_names[j] for j in columns),
        description=entry.description,
        domain=entry.domain,
        image_shape=entry.image_shape,
        offset=freeze(offset),
        scale=freeze(scale),
        **parts,
    )


def _read(entry: Entry) -> dict[str, NDArray[Any]]:
    """The arrays of a shipped file, or an error if its bytes are not the published ones."""
    content = files("gpcert.datasets").joinpath("data", entry.file).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise GpcertError(
            f"shipped file {entry.file} must have SHA-256 {entry.sha256}, got {found}; reinstall gpcert"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def _labels(entry: Entry, codes: NDArray[np.int8]) -> Labels:
    """What a user sees for the stored integers; one type for every part, also for an empty one."""
    dtype = np.array(list(entry.labels.values())).dtype
    labels = np.array([entry.labels[int(code)] for code in codes], dtype=dtype)
    labels.setflags(write=False)
    return labels

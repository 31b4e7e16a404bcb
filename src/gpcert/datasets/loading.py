"""Reading a shipped file, after checking that it is the file that was shipped."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpcert.errors import GpcertError
from gpcert.validation import Float, freeze, meant, require


@dataclass(frozen=True)
class Entry:
    """One data set: the file it is read from and what the numbers in it mean.

    `labels` maps a stored integer to the label a user sees; `unit` turns stored integers into values
    (`values / unit`, correctly rounded); `columns` are the variables used unless all are asked for.
    """

    file: str
    sha256: str
    labels: Mapping[int, int | str]
    feature_names: tuple[str, ...]
    description: str
    unit: float = 1.0
    columns: tuple[int, ...] | None = None
    domain: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None


_SPAM_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report addresses free "
    "business email you credit your font 000 money hp hpl george 650 lab labs telnet 857 data 415 85 "
    "technology 1999 parts pm direct cs meeting original project re edu table conference"
)
SPAM_NAMES = (
    *(f"word_freq_{word}" for word in _SPAM_WORDS.split()),
    *(f"char_freq_{character}" for character in ";([!$#"),
    "capital_run_length_average",
    "capital_run_length_longest",
    "capital_run_length_total",
)
"""The 57 variables of Spambase, in the UCI order."""

SPAM_COLUMNS = (6, 15, 20, 22, 24, 26, 45, 51, 52, 55, 56)
"""The 11 selected variables, as positions in the UCI order from 0; why these: docs/datasets.md."""

_PIXELS = tuple(f"pixel_{row}_{column}" for row in range(14) for column in range(14))
_MNIST_TEXT = (
    "from the MNIST test file, 28 x 28 pixels averaged over 2 x 2 blocks to 14 x 14, grey values in [0, 1]; "
    "MNIST, Y. LeCun, C. Cortes, C. Burges, CC BY-SA 3.0"
)


def _digits(names: str, *digits: int) -> Entry:
    return Entry(
        file="mnist.npz",
        sha256="cdfd42636886d51bab4ba17e576a071b3e50aca22ec1c6f52af6abf1dda05fc3",
        labels={digit: digit for digit in digits},
        feature_names=_PIXELS,
        description=f"Handwritten {names} {_MNIST_TEXT}",
        unit=1020.0,
        domain=(0.0, 1.0),
        image_shape=(14, 14),
    )


CATALOGUE: Mapping[str, Entry] = MappingProxyType(
    {
        "synthetic2d": Entry(
            file="synthetic2d.npz",
            sha256="9c05b6be7fe2395779b1ea91b4e02c0cc818e52b7230f355192186676c339cc9",
            labels={0: 0, 1: 1},
            feature_names=("x1", "x2"),
            description=(
                "Two standard normals in the plane, shifted by 5 along the first (class 0) or second axis "
                "(class 1), 600 points each, standardised with training statistics; generated"
            ),
        ),
        "spam": Entry(
            file="spam.npz",
            sha256="d5bb72af45f2ba40076e7dbd948e4cfd8939363c64d89390292a50ff08082bc9",
            labels={0: "ham", 1: "spam"},
            feature_names=SPAM_NAMES,
            description=(
                "Spambase: 4,601 mails, frequencies of words and characters in per cent, and lengths of runs "
                "of capital letters, standardised with training statistics, equal mails on one side of the "
                "split; M. Hopkins, E. Reeber, G. Forman, J. Suermondt, UCI repository, CC BY 4.0"
            ),
            unit=1000.0,
            columns=SPAM_COLUMNS,
        ),
        "mnist38": _digits("threes and eights", 3, 8),
        "mnist358": _digits("threes, fives and eights", 3, 5, 8),
    }
)
"""The data sets by name."""


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
    y_train: NDArray[Any]
    X_test: Float
    y_test: NDArray[Any]
    X_extra: Float
    y_extra: NDArray[Any]
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


def _labels(entry: Entry, codes: NDArray[np.int8]) -> NDArray[Any]:
    """What a user sees for the stored integers; one type for every part, also for an empty one."""
    dtype = np.array(list(entry.labels.values())).dtype
    labels = np.array([entry.labels[int(code)] for code in codes], dtype=dtype)
    labels.setflags(write=False)
    return labels

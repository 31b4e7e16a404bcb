"""Turning what a user trains on into arrays, or one clear sentence.

Wording follows what scikit-learn's users know and its `estimator_checks` look for.
"""

from __future__ import annotations

import sys
import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.tables import column_names, framed, read
from gpcert.validation import Float, check_dense, require, shown


class _NotNumbersError(InvalidInputError, TypeError):
    """Both what gpcert promises and what numpy raises for objects that are not numbers."""


def checked_points(X: Any) -> Float:
    """X as a finite float64 matrix (n, d), n, d >= 1."""
    check_dense("X", X)
    if hasattr(X, "detach") or np.ma.isMaskedArray(X) or framed("X", X) is not None:
        X = read("X", X).values
    try:
        array = np.asarray(X)
        require(not np.iscomplexobj(array), f"X must be real, got {array.dtype}: Complex data not supported")
        require(array.dtype.kind not in "mM", "X must be numbers, got dates or times")
        points = np.ascontiguousarray(array, dtype=np.float64)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise _NotNumbersError(f"X must be numbers, got: {error}") from None
    require(
        array.ndim == 2,
        f"X must be two-dimensional (points, features), got shape {array.shape}. Reshape your data",
    )
    for count, what in zip(points.shape, ("sample", "feature"), strict=True):
        require(count > 0, f"X has 0 {what}(s) (shape={points.shape}) while a minimum of 1 is required.")
    bad = np.argwhere(~np.isfinite(points))
    if len(bad):
        i, j = bad[0]
        kind = "NaN" if np.isnan(points[i, j]) else "infinity (inf)"
        raise InvalidInputError(f"X must be finite, got {kind} at index ({i}, {j})")
    return points


def checked_labels(labels: NDArray[Any], n: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The sorted distinct labels (C,), C >= 2, and the index of each point's label (n,)."""
    require(labels.ndim == 1, f"y must be one-dimensional, got shape {labels.shape}")
    require(len(labels) == n, f"y must have length {n}, as X has points, got {len(labels)}")
    if labels.dtype == object:
        text = all(isinstance(label, str) for label in labels)
        numbers = all(isinstance(label, Real | np.bool_) for label in labels)
        require(text or numbers, "y must be all numbers or all strings, got a mixture. Unknown label type")
        labels = np.array(labels.tolist())
    require(labels.dtype.kind in "biufU", f"y must be numbers or strings, got {labels.dtype}")
    if labels.dtype.kind == "f":
        require(bool(np.isfinite(labels).all()), "y must be finite, got NaN or infinity")
        odd = labels[labels != np.round(labels)]
        if odd.size:
            raise InvalidInputError(f"y must hold class labels, got {odd[0]}. Unknown label type: continuous")
    classes, codes = np.unique(labels, return_inverse=True)
    require(len(classes) >= 2, f"y must hold at least 2 classes, got 1 class: {classes.tolist()}")
    counts = np.bincount(codes)
    few = int(counts.argmin())
    require(
        len(classes) == 2 or counts[few] >= 2,
        f"y must hold at least 2 points of every class where there are more than two classes, got 1 of "
        f"{shown(classes[few])} ({len(classes)} classes, {n} points)",
    )
    return classes, codes


Labels = NDArray[Any]


def check_names(me: str, fitted: Labels | None, names: Labels | None) -> None:
    """Compare the feature names of X with those seen by `fit` of the estimator `me`."""
    if fitted is None and names is not None:
        warnings.warn(f"X has feature names, but {me} was fitted without feature names", stacklevel=4)
    elif fitted is not None and names is None:
        warnings.warn(
            f"X does not have valid feature names, but {me} was fitted with feature names", stacklevel=4
        )
    elif fitted is not None and names is not None and list(fitted) != list(names):
        raise InvalidInputError(_mismatch(list(fitted), list(names)))


def label_vector(y: Any) -> Labels:
    """y as an array; a column (n, 1) becomes (n,) with scikit-learn's warning."""
    require(y is not None, "GPClassifier requires y to be passed, but the target y is None")
    try:
        labels = np.asarray(y)
    except ValueError:
        raise InvalidInputError("y must be one-dimensional, got rows of different lengths") from None
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
        "(n_samples,), for example using ravel().",
        _sklearn_class("DataConversionWarning", UserWarning),
        stacklevel=3,
    )
    return labels[:, 0]


def _sklearn_class(name: str, otherwise: type[Any]) -> type[Any]:
    """A class of `sklearn.exceptions` if scikit-learn is loaded; it is never loaded for this."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)


def not_fitted_error() -> type[Exception]:
    """gpcert's `NotFittedError`, which is also scikit-learn's if that is loaded."""
    theirs = _sklearn_class("NotFittedError", NotFittedError)
    return (
        NotFittedError if theirs is NotFittedError else type("NotFittedError", (NotFittedError, theirs), {})
    )


def feature_names(X: Any) -> NDArray[Any] | None:
    """Column names (d,) of a data frame if all are strings, else None; a mixture is an error."""
    columns = column_names(framed("X", X))
    if columns is None:
        return None
    names = np.array(columns, dtype=object)
    strings = [isinstance(name, str) for name in names]
    require(
        all(strings) or not any(strings),
        "Feature names are only supported if all input features have string names, got a mixture",
    )
    return names if len(names) and all(strings) else None


def _mismatch(fitted: list[str], names: list[str]) -> str:
    """What scikit-learn says where the feature names of a prediction are not those of `fit`."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        lines += ["Feature names unseen at fit time:", *(f"- {name}" for name in unseen)]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *(f"- {name}" for name in missing)]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"

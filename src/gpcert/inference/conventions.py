"""scikit-learn's conventions about labels, feature names and errors, for the estimator.

Its exception and warning classes are used where it is loaded already; it is never loaded for them. Messages
are worded as `sklearn.utils.estimator_checks` looks for them.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpcert.errors import InvalidInputError, NotFittedError
from gpcert.tables import column_names, framed
from gpcert.validation import require

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

"""Turning what a user passes into validated, read-only float64 arrays, or one clear sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError

__all__ = [
    "Float",
    "Index",
    "Mask",
    "as_floats",
    "as_matrix",
    "as_names",
    "as_vector",
    "freeze",
    "positive",
    "require",
    "shown",
]

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


def require(condition: bool, message: str) -> None:
    """Raise `InvalidInputError(message)` unless the condition certainly holds."""
    if not condition:
        raise InvalidInputError(message)


def shown(value: object) -> str:
    """`repr`, but a NumPy number or string as it reads without NumPy: 7, not np.int64(7)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def as_floats(name: str, value: ArrayLike) -> Float:
    """A finite float64 copy of `value`, any shape."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # OverflowError: an integer beyond the doubles
        raise InvalidInputError(f"{name} must be numbers, got {_short(value)}") from None
    if np.iscomplexobj(value):
        raise InvalidInputError(f"{name} must be real, got complex numbers")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f" at index {where if len(where) > 1 else where[0]}" if where else ""
        raise InvalidInputError(f"{name} must be finite, got {array[where]}{place}")
    return array


def as_vector(name: str, value: ArrayLike, size: int | None = None) -> Float:
    """A finite float64 vector, of length `size` if given."""
    array = as_floats(name, value)
    require(array.ndim == 1, f"{name} must be one-dimensional, got shape {array.shape}")
    if size is not None:
        require(array.size == size, f"{name} must have length {size}, got {array.size}")
    return array


def as_matrix(name: str, value: ArrayLike, columns: int | None = None) -> Float:
    """A finite float64 matrix, C-contiguous, with `columns` columns if given."""
    array = as_floats(name, value)
    require(array.ndim == 2, f"{name} must be two-dimensional (points, features), got shape {array.shape}")
    if columns is not None:
        require(array.shape[1] == columns, f"{name} must have {columns} features, got {array.shape[1]}")
    return np.ascontiguousarray(array)


def positive(name: str, value: ArrayLike) -> Float:
    """A finite float64 array with every entry > 0."""
    array = as_floats(name, value)
    if not (array > 0).all():
        raise InvalidInputError(f"{name} must be > 0, got {array[~(array > 0)].flat[0]}")
    return array


def as_names(name: str, value: Iterable[Any] | None, size: int) -> tuple[str, ...] | None:
    """A tuple of `size` distinct strings, or None."""
    if value is None:
        return None
    names = tuple(str(v) for v in value)
    require(len(names) == size, f"{name} must have length {size}, got {len(names)}")
    require(len(set(names)) == size, f"{name} must be distinct, got {_short(names)}")
    return names


def freeze(array: Float) -> Float:
    """Mark the array read-only and return it."""
    array.setflags(write=False)
    return array


def _short(value: object) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:57] + "..."

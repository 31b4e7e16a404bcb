"""Turning what a user passes into validated, read-only float64 arrays, or one clear sentence."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpcert.errors import InvalidInputError

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

_LISTED = 8  # names in a sentence


def require(condition: bool, message: str) -> None:
    """Raise `InvalidInputError(message)` unless the condition certainly holds."""
    if not condition:
        raise InvalidInputError(message)


def shown(value: object) -> str:
    """`repr` on one line, but a NumPy number or string as it reads without NumPy: 7, not np.int64(7)."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
        return " ".join(text.split()) if "\n" in text else text
    except ValueError:  # an integer of thousands of digits
        return f"a {type(value).__name__} too long to show"


def printable(text: str) -> str:
    """One line, control characters by their codes: a name of a stranger must steer no terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def as_floats(name: str, value: ArrayLike) -> Float:
    """A finite float64 copy of `value`, any shape; tensors of torch as they are, wherever they are."""
    array = as_doubles(name, value)
    with np.errstate(all="ignore"):
        known = math.isfinite(array.sum())  # one look at a large table; a sum may overflow
    if not known and not (finite := np.isfinite(array)).all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise InvalidInputError(f"{name} must be finite, got {array[where]}{_place(where)}")
    return array


def as_doubles(name: str, value: ArrayLike) -> Float:
    """A float64 copy of numbers, any shape; texts, dates and masked entries are none."""
    tensor: Any = value
    check_dense(name, value)
    if hasattr(value, "detach"):  # torch: gradients, and memory elsewhere, are not the numbers' business
        tensor = tensor.detach().cpu()
        tensor = tensor if tensor.is_complex() else tensor.double()
    try:
        raw = np.asarray(tensor)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInputError(f"{name} must be numbers, got {_short(value)}") from None
    if raw.dtype.kind == "c":
        raise InvalidInputError(f"{name} must be real, got complex numbers")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        where = tuple(int(i) for i in np.argwhere(np.ma.getmaskarray(value))[0])
        raise InvalidInputError(f"{name} must be finite, got a masked entry{_place(where)}")
    if raw.dtype.kind in "biuf":
        if raw.dtype.kind in "iu" and raw.dtype.itemsize == 8:
            _check_exact(name, raw)
        return np.array(raw, dtype=np.float64)
    if raw.dtype.kind in "mM":
        raise InvalidInputError(f"{name} must be numbers, got dates or times")
    flat = raw.ravel().tolist() if raw.dtype.kind == "O" else raw.ravel()
    for i, entry in enumerate(flat):
        if not _is_number(entry):
            where = tuple(int(k) for k in np.unravel_index(i, raw.shape))
            said = f"{_short(entry)}{_place(where)}" if where else _short(value)
            raise InvalidInputError(f"{name} must be numbers, got {said}")
    return np.array(raw, dtype=np.float64)


def as_path(name: str, value: Any) -> Path:
    """A path."""
    given = isinstance(value, str | os.PathLike)
    require(given, f"{name} must be a path, got {type(value).__name__}")
    return Path(value)


def check_dense(name: str, value: object) -> None:
    """Points are as dense as the centres of a model."""
    dense = not hasattr(value, "tocoo")
    require(dense, f"{name} must be a dense array, got a sparse matrix: its toarray() is one")


def _check_exact(name: str, raw: NDArray[Any]) -> None:
    """Whole numbers beyond 2^53 may not be doubles: nothing is rounded silently."""
    for where in np.argwhere((raw > 2**53) | (raw < -(2**53))):
        at = tuple(int(i) for i in where)
        whole = int(raw[at])
        said = f"{name} must be whole numbers that doubles hold exactly, got {whole}{_place(at)}"
        require(int(float(whole)) == whole, said)


def _is_number(entry: Any) -> bool:
    if isinstance(entry, str | bytes | np.ndarray):
        return False
    try:
        float(entry)
    except (TypeError, ValueError, OverflowError):  # OverflowError: an integer beyond the doubles
        return False
    return True


def _place(where: tuple[int, ...]) -> str:
    return f" at index {where if len(where) > 1 else where[0]}" if where else ""


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


def no_truth(name: str, value: Any) -> Any:
    """What may be a number: True and False are none, though numpy counts them."""
    require(not isinstance(value, bool | np.bool_), f"{name} must be a number, got {value}")
    return value


def positive(name: str, value: ArrayLike) -> Float:
    """A finite float64 array with every entry > 0."""
    array = as_floats(name, value)
    if not (array > 0).all():
        raise InvalidInputError(f"{name} must be > 0, got {array[~(array > 0)].flat[0]}")
    return array


def random_start(name: str, rng: Any) -> int:
    """The whole number that random choices start from: as given, or drawn (None: by a new generator)."""
    if rng is None or isinstance(rng, np.random.Generator):
        return int(np.random.default_rng(rng).integers(2**53))
    whole = isinstance(rng, int | np.integer) and not isinstance(rng, bool)
    rule = "a whole number in [0, 2^63), a numpy Generator or None"
    require(whole and 0 <= int(rng) < 2**63, f"{name} must be {rule}, got {_short(rng)}")
    return int(rng)


def meant(name: object, known: Iterable[object]) -> str:
    """A question to append to a sentence about an unknown name: " (did you mean 'age'?)", or nothing."""
    by_letters = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(name).casefold(), by_letters, 1)
    return f" (did you mean {shown(by_letters[close[0]])}?)" if close else ""


def composed(name: Any) -> Any:
    """A name in Unicode's form NFC: é is one letter, however it was typed; what is no text stays."""
    return normalize("NFC", name) if isinstance(name, str) else name


def as_names(name: str, value: Iterable[Any] | None, size: int) -> tuple[str, ...] | None:
    """A tuple of `size` distinct strings, or None."""
    if value is None:
        return None
    require(not isinstance(value, str | bytes), f"{name} must be a sequence of names, got {_short(value)}")
    names = tuple(composed(str(v)) for v in value)
    require(len(names) == size, f"{name} must have length {size}, got {len(names)}")
    require(len(set(names)) == size, f"{name} must be distinct, got {_short(names)}")
    return names


def listed(names: Sequence[object]) -> str:
    """Names in a sentence: 'age', 'bmi' and 28 more."""
    said = ", ".join(map(shown, names[:_LISTED]))
    return said if len(names) <= _LISTED else f"{said} and {len(names) - _LISTED} more"


def freeze(array: Float) -> Float:
    """Mark the array read-only and return it."""
    array.setflags(write=False)
    return array


def _short(value: object) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:57] + "..."

"""Tables as users have them, read as doubles in the order of a model's features, or one clear sentence.

A table is anything with named columns (pandas, polars, pyarrow: all three say `columns`, `table[name]`,
`to_numpy`, so no library is imported), a mapping from names to numbers or columns, a named tuple, a pandas
Series whose index holds names, a sequence of such rows, a structured array; all else is numbers by position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import (
    Float,
    as_doubles,
    as_floats,
    as_matrix,
    as_vector,
    composed,
    listed,
    meant,
    no_truth,
    require,
    shown,
)

Names = Sequence[str] | None


class NamedNumbers(NamedTuple):
    """Numbers (n, d), or one row (d,); what its columns and its rows are called, None: nothing."""

    values: Float
    names: tuple[str, ...] | None = None
    ids: tuple[Any, ...] | None = None


def framed(what: str, value: Any) -> Any | None:
    """A table as something with names (NFC) and `[name]`, each name once; None: numbers by position."""
    table = _framed(what, value)
    given = column_names(table) if table is not None else None
    names = [composed(name) for name in given or ()]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"{what} must have distinct columns, got {shown(twice)} twice")
    if given is None or names == given:
        return table
    assert table is not None
    return {name: table[typed] for name, typed in zip(names, given, strict=True)}


def _framed(what: str, value: Any) -> Any | None:
    if isinstance(value, tuple | np.void) and (row := _by_name(value)) is not None:
        return row
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        rows = [row for each in value if (row := _by_name(each)) is not None]
        if rows:
            rule = "rows that all have names for their entries, or none"
            require(len(rows) == len(value), f"{what} must have {rule}, got {len(rows)} of {len(value)}")
            every = list(dict.fromkeys(name for row in rows for name in row))
            return {name: [row.get(name) for row in rows] for name in every}
    if isinstance(value, np.ndarray) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if hasattr(value, "collect") and hasattr(value, "collect_schema"):
        raise InvalidInputError(f"{what} must be in memory, got a {type(value).__name__}: call its collect()")
    names = column_names(value)
    return None if names is None or not hasattr(value, "__getitem__") else value


def read(what: str, value: Any) -> NamedNumbers:
    """The numbers, a finite copy, with the names that come with them."""
    table = framed(what, value)
    if table is not None:
        names = column_names(table) or []
        return NamedNumbers(_columns(what, names, table), _texts(what, "columns", names), row_names(value))
    if _is_series(value):
        return NamedNumbers(as_floats(what, value.to_numpy()), _texts(what, "entries", list(value.index)))
    return NamedNumbers(as_floats(what, value))


def _is_series(value: Any) -> bool:
    return hasattr(value, "to_numpy") and not callable(getattr(value, "index", len))


def row_names(value: Any) -> tuple[Any, ...] | None:
    """What the rows of a table are called: the index of pandas."""
    return tuple(value.index) if _is_series(value) else None


def _texts(what: str, parts: str, names: list[Any]) -> tuple[str, ...] | None:
    """Names that are texts; None where they are 0, 1, ..., which is where they stand anyway."""
    names = [composed(name) for name in names]
    if names and all(isinstance(name, str) for name in names):
        twice = (
            next((name for name in names if names.count(name) > 1), None)
            if len(set(names)) < len(names)
            else None
        )
        require(twice is None, f"{what} must have distinct {parts}, got {twice!r} twice")
        return tuple(names)
    for j, name in enumerate(names):
        if isinstance(name, str) or name is None or name != j:
            odd = next((each for each in names if not isinstance(each, str)), name)
            rule = "all named by texts, or 0, 1, ... in order"
            raise InvalidInputError(f"{what} must have {parts} that are {rule}, got {shown(odd)}")
    return None


def _columns(what: str, names: list[Any], columns: Any) -> Float:
    if hasattr(columns, "iloc"):  # pandas; polars would make numbers of dates
        whole = columns.to_numpy()
        if whole.dtype.kind in "biuf" and (np.abs(whole) < 2**53).all():  # whole numbers are still exact
            return np.array(whole, dtype=np.float64, order="C")
    parts = [_numbers(what, name, columns[name]) for name in names]  # one by one: a sentence says which
    for name, part in zip(names, parts, strict=True):
        require(part.ndim <= 1, f"column {shown(name)} of {what} must be numbers, got shape {part.shape}")
    lengths = sorted({part.size for part in parts})
    require(len(lengths) <= 1, f"{what} must have columns of one length, got {lengths}")
    return np.stack(parts, axis=-1) if parts else np.empty((0, 0))


def _numbers(what: str, name: Any, values: Any) -> Float:
    plain = values.to_numpy() if hasattr(values, "to_numpy") else values
    return as_floats(f"column {shown(name)} of {what}", plain)


def column_names(table: Any) -> list[Any] | None:
    """The names of a table's columns; None: it has none. A sparse matrix may be a mapping, of entries."""
    if isinstance(table, Mapping) and not hasattr(table, "tocoo"):
        return list(table)
    found = getattr(table, "column_names", getattr(table, "columns", None))
    return None if found is None else list(found)


def same_rows(what: str, value: Any, rows: Any, whose: str = "X") -> None:
    """Refuse a Series that names the rows of a table, or its index, in another order than the table.

    Where the two share no name at all, there is nothing to compare, and rows count by position.
    """
    names = rows if isinstance(rows, tuple) else row_names(rows)
    given = row_names(value)
    if names is None or given is None or given == names or set(given).isdisjoint(names):
        return
    pairs = enumerate(zip(given, names, strict=False))
    i = next((i for i, (a, b) in pairs if a != b), min(len(given), len(names)))
    here, there = (f"{shown(each[i])}" if i < len(each) else "none" for each in (given, names))
    raise InvalidInputError(
        f"{what} must have the index of {whose} in its order, got {here} for {there} at position {i}: "
        f"to_numpy() counts by position"
    )


def check_labelled(X: Any, y: Any) -> None:
    """Refuse points and labels that change places, or rows that have other names."""
    if (len(_shape(X)), len(_shape(y))) == (1, 2):
        text = f"shapes {_shape(X)} and {_shape(y)}"
        raise InvalidInputError(f"X must be points and y their labels, in this order, got {text}")
    same_rows("y", y, X)


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return tuple(value.shape) if hasattr(value, "shape") else np.asarray(value).shape
    except (TypeError, ValueError, RuntimeError):  # a sentence about it comes where it is read
        return ()


def column(what: str, value: Any, name: str) -> Any:
    """One column of a table, as it is."""
    require(isinstance(name, str), f"{what} must be the name of a column, got {type(name).__name__}")
    known, name = column_names(value) or [], composed(name)
    require(name in known, f"{what} must name a column of the table, got {name!r}{meant(name, known)}")
    found = value[name]
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


def order(what: str, given: tuple[str, ...], names: Sequence[str], whose: str = "the model's") -> list[int]:
    """Where each of the names stands among those given, which must be the same."""
    at = {name: j for j, name in enumerate(given)}
    for name in names:
        if name not in at:
            others = [each for each in given if each not in names]
            raise InvalidInputError(
                f"{what} must have {whose} columns, got none named {name!r}{meant(name, others)}"
            )
    foreign = next((name for name in given if name not in set(names)), None)
    require(foreign is None, f"{what} must have {whose} columns and no others, got {foreign!r} as well")
    return [at[name] for name in names]


def arranged(what: str, table: NamedNumbers, names: Names) -> Float:
    """The numbers with their columns in the order of the names; as they are where one has none."""
    if table.names is None or names is None or table.names == tuple(names):
        return table.values
    return np.ascontiguousarray(table.values[..., order(what, table.names, names)])


def matrix(what: str, value: Any, names: Names, size: int) -> Float:
    """Points (n, d) in the order of the names; by position where one of the two has none."""
    if type(value) is np.ndarray and value.dtype.names is None:
        return as_matrix(what, value, size)
    return as_matrix(what, arranged(what, read(what, value), names), size)


def named_matrix(what: str, value: Any, names: Any) -> tuple[Float, Any]:
    """Points (n, d) in the order of the names, if given, and what their features are called."""
    if type(value) is np.ndarray and value.dtype.names is None:
        return as_matrix(what, value), names
    table, given = read(what, value), names if names is None or isinstance(names, str) else tuple(names)
    return as_matrix(what, arranged(what, table, given)), table.names if given is None else given


def row(what: str, value: Any, names: Names, size: int | None) -> Float:
    """One point (d,) in the order of the names."""
    if type(value) is np.ndarray and value.dtype.names is None:
        return as_vector(what, value, size)
    return as_vector(what, arranged(what, read(what, value), names), size)


def named_row(what: str, value: Any, names: Sequence[str] | None) -> tuple[Float, tuple[str, ...] | None]:
    """One point (d,), and what its features are called: as the value says, else as given."""
    if type(value) is np.ndarray and value.dtype.names is None:
        found = NamedNumbers(as_vector(what, value))
    else:
        found = read(what, value)
        require(found.values.ndim == 1, f"{what} must be one-dimensional, got shape {found.values.shape}")
    require(not isinstance(names, str), f"names must be a sequence of names, got {names!r}")
    given = None if names is None else tuple(map(composed, names))
    if found.names is None or given is None:
        return found.values, found.names or given
    return found.values[order(what, found.names, given, "the other end's")], given


def positions(features: Any, names: Names, d: int) -> tuple[int, ...] | None:
    """Features by position, mask or name, as sorted positions."""
    if features is None:
        return None
    if (named := _by_name(features)) is not None:  # a mask by name
        marks = [isinstance(mark, bool | np.bool_) for mark in named.values()]
        require(all(marks), "features must be True or False by name, or names, got other values by name")
        features = [name for name, mark in named.items() if mark]
    if isinstance(features, str | bytes) or not isinstance(features, Iterable):
        raise InvalidInputError(f"features must be a sequence of indices or names, got {shown(features)}")
    given = list(features)
    if given and all(isinstance(f, bool | np.bool_) for f in given):
        require(len(given) == d, f"features must be a mask of length {d}, got {len(given)}")
        return tuple(int(j) for j in np.flatnonzero(given))
    indices = [position("features", f, names, d) for f in given]
    require(len(set(indices)) == len(indices), f"features must be distinct, got {given}")
    return tuple(sorted(indices))


def position(what: str, feature: Any, names: Names, d: int) -> int:
    """One feature by position or name."""
    if isinstance(feature, str):
        if names is None:
            raise InvalidInputError(
                f"{what} must be by position where features have no names, got {feature!r}"
            )
        feature = composed(feature)
        known = feature in names
        require(known, f"{what} must name features of the model, got {shown(feature)}{meant(feature, names)}")
        return list(names).index(feature)
    integer = isinstance(feature, int | np.integer) and not isinstance(feature, bool | np.bool_)
    require(integer and 0 <= int(feature) < d, f"{what} must be indices in 0..{d - 1}, got {shown(feature)}")
    return int(feature)


def _by_name(value: Any) -> Mapping[Any, Any] | None:
    """What is given feature by feature: a mapping, a named tuple, a record, or a Series with names."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        named: Mapping[Any, Any] = value._asdict()
        return named
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if not _is_series(value):
        return None
    names = list(value.index)
    if not (names and isinstance(names[0], str)):
        return None
    _texts("a Series", "entries", names)
    return dict(zip(names, value.to_numpy(), strict=True))


def units(
    scale: Any,
    names: Names,
    d: int,
    moving: Sequence[int] | None,
    spread: Callable[[], Float] | None = None,
) -> Float | None:
    """What radius 1 means, one number or (d,): by position, by name, or "std": what `spread` gives."""
    if scale is None:
        return None
    if isinstance(scale, str):
        require(scale == "std", f"scale must be numbers or 'std', got {scale!r}{meant(scale, ['std'])}")
        if spread is None:
            raise InvalidInputError("scale='std' needs a model, got one point: see balls")
        return spread()
    named = _by_name(scale)
    if named is None:
        return as_floats("scale", no_truth("scale", scale))
    found = np.ones(d)
    given = {position("scale", name, names, d): unit for name, unit in named.items()}
    for at, unit in given.items():
        found[at] = as_vector("scale", [unit])[0]
    check_units("scale", given, names, d, moving)
    return found


def check_units(
    what: str, given: Collection[int], names: Names, d: int, moving: Sequence[int] | None
) -> None:
    """Units by name must be given for all features that move: nobody means 1 of what was forgotten."""
    left = [names[j] if names else j for j in (range(d) if moving is None else moving) if j not in given]
    require(not left, f"{what} must have a unit for every feature that moves, got none for {listed(left)}")


def ends(
    domain: Any, names: Names, d: int, possible: Callable[[], tuple[Float, Float]] | None = None
) -> tuple[Any, Any] | None:
    """Where inputs are valid, (low, high), one number or (d,) each; by name, others anywhere; "data": what
    `possible` gives.
    """
    if isinstance(domain, str):
        known = f"domain must be (low, high) or 'data', got {domain!r}{meant(domain, ['data'])}"
        require(domain == "data", known)
        if possible is None:
            raise InvalidInputError("domain='data' needs a model, got one point: see balls")
        return possible()
    named = _by_name(domain)
    if named is not None:
        pairs = {name: as_doubles("domain", _open(pair)) for name, pair in named.items()}
        for name, pair in pairs.items():
            text = f"domain must be (low, high) for {shown(name)}, got shape {pair.shape}"
            require(pair.shape == (2,), text)
        domain = tuple({name: pair[i] for name, pair in pairs.items()} for i in range(2))
    if domain is None:
        return None
    if not isinstance(domain, tuple | list):
        raise InvalidInputError(f"domain must be (low, high), got {shown(domain)}")
    require(len(domain) == 2, f"domain must be (low, high), got {len(domain)} values")
    pairs_given = d == 2 and all(type(end) is tuple and len(end) == 2 for end in domain)
    rule = "domain must be (low, high), in lists or arrays where the features differ, or pairs by name"
    require(not pairs_given, f"{rule}, got {shown(domain)}")
    low, high = _open(domain)
    return _end(low, names, d, -np.inf), _end(high, names, d, np.inf)


def _open(pair: Any) -> Any:
    """(low, high) with infinities where an end, or one number of it, is None."""

    def closed(end: Any, otherwise: float) -> Any:
        if isinstance(end, tuple | list):
            return [closed(each, otherwise) for each in end]
        return otherwise if end is None else end

    pair_given = isinstance(pair, tuple | list) and len(pair) == 2
    return tuple(map(closed, pair, (-np.inf, np.inf))) if pair_given else pair


def _end(given: Any, names: Names, d: int, otherwise: float) -> Any:
    named = _by_name(given)
    if named is None:
        return given
    found = np.full(d, otherwise)
    for name, value in named.items():
        found[position("domain", name, names, d)] = as_doubles("domain", value)
    return found

"""Tables as users have them, read as doubles in the order of a model's features, or one clear sentence.

A table is anything with named columns (pandas, polars, pyarrow: all three say `columns`, `table[name]`,
`to_numpy`, so no library is imported), a mapping from names to numbers or columns, a sequence of such
mappings, a pandas Series whose index holds names, a structured array; all else is numbers by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import Float, as_doubles, as_floats, as_matrix, as_vector, meant, require, shown

__all__ = [
    "Table",
    "arranged",
    "column",
    "column_names",
    "ends",
    "matrix",
    "named_row",
    "order",
    "position",
    "positions",
    "read",
    "row",
    "units",
]

Names = Sequence[str] | None


class Table(NamedTuple):
    """Numbers (n, d), or one row (d,); what its columns and its rows are called, None: nothing."""

    values: Float
    names: tuple[str, ...] | None = None
    ids: tuple[Any, ...] | None = None


def read(what: str, value: Any) -> Table:
    """The numbers with the names that come with them."""
    if isinstance(value, Sequence) and len(value) and all(isinstance(each, Mapping) for each in value):
        every = list(dict.fromkeys(name for each in value for name in each))
        return _columns(what, every, {name: [each.get(name) for each in value] for name in every})
    if isinstance(value, Mapping) and not hasattr(value, "tocoo"):
        return _columns(what, list(value), value)
    if isinstance(value, np.ndarray) and value.dtype.names:
        return _columns(what, list(value.dtype.names), value)
    if hasattr(value, "collect") and hasattr(value, "collect_schema"):
        raise InvalidInputError(f"{what} must be in memory, got a {type(value).__name__}: call its collect()")
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        rows = getattr(value, "index", None)
        return _columns(what, column_names(value) or [], value)._replace(
            ids=None if rows is None else tuple(rows)
        )
    if hasattr(value, "to_numpy") and hasattr(value, "index"):
        labels = tuple(value.index)
        named = bool(labels) and all(isinstance(name, str) for name in labels)
        return Table(as_floats(what, value.to_numpy()), labels if named else None)
    return Table(as_floats(what, value))


def _columns(what: str, names: list[Any], columns: Any) -> Table:
    twice = (
        next((name for name in names if names.count(name) > 1), None)
        if len(set(names)) < len(names)
        else None
    )
    require(twice is None, f"{what} must have distinct columns, got {shown(twice)} twice")
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        odd = names[texts.index(False)]
        raise InvalidInputError(f"{what} must have columns that are all named by texts, got {shown(odd)}")
    whole = columns.to_numpy() if hasattr(columns, "to_numpy") else None
    if whole is not None and whole.dtype.kind in "biuf" and np.isfinite(whole).all():
        values = np.array(whole, dtype=np.float64, order="C")
    else:  # one by one, so that a sentence says which
        parts = [_numbers(what, name, columns[name]) for name in names]
        lengths = sorted({part.size for part in parts})
        require(len(lengths) <= 1, f"{what} must have columns of one length, got {lengths}")
        values = np.stack(parts, axis=-1) if parts else np.empty((0, 0))
    return Table(values, tuple(names) if names and all(texts) else None)


def _numbers(what: str, name: Any, values: Any) -> Float:
    plain = values.to_numpy() if hasattr(values, "to_numpy") else values
    return as_floats(f"column {shown(name)} of {what}", plain)


def column_names(table: Any) -> list[Any] | None:
    """The names of a table's columns; None: it has none. A sparse matrix may be a mapping, of entries."""
    if isinstance(table, Mapping) and not hasattr(table, "tocoo"):
        return list(table)
    found = getattr(table, "column_names", getattr(table, "columns", None))
    return None if found is None else list(found)


def column(what: str, value: Any, name: str) -> Any:
    """One column of a table, as it is."""
    known = column_names(value) or []
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


def arranged(what: str, table: Table, names: Names) -> Float:
    """The numbers with their columns in the order of the names; as they are where one has none."""
    if table.names is None or names is None or table.names == tuple(names):
        return table.values
    return np.ascontiguousarray(table.values[..., order(what, table.names, names)])


def matrix(what: str, value: Any, names: Names, size: int) -> Float:
    """Points (n, d) in the order of the names; by position where one of the two has none."""
    if type(value) is np.ndarray and value.dtype.names is None:
        return as_matrix(what, value, size)
    return as_matrix(what, arranged(what, read(what, value), names), size)


def row(what: str, value: Any, names: Names, size: int | None) -> Float:
    """One point (d,) in the order of the names."""
    if type(value) is np.ndarray and value.dtype.names is None:
        return as_vector(what, value, size)
    return as_vector(what, arranged(what, read(what, value), names), size)


def named_row(what: str, value: Any, names: Sequence[str] | None) -> tuple[Float, tuple[str, ...] | None]:
    """One point (d,), and what its features are called: as the value says, else as given."""
    if type(value) is np.ndarray and value.dtype.names is None:
        found = Table(as_vector(what, value))
    else:
        found = read(what, value)
        require(found.values.ndim == 1, f"{what} must be one-dimensional, got shape {found.values.shape}")
    given = None if names is None else tuple(names)
    if found.names is None or given is None:
        return found.values, found.names or given
    return found.values[order(what, found.names, given, "the other end's")], given


def positions(features: Any, names: Names, d: int) -> tuple[int, ...] | None:
    """Features by position, mask or name, as sorted positions."""
    if features is None:
        return None
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
        known = feature in names
        require(known, f"{what} must name features of the model, got {shown(feature)}{meant(feature, names)}")
        return list(names).index(feature)
    integer = isinstance(feature, int | np.integer) and not isinstance(feature, bool | np.bool_)
    require(integer and 0 <= int(feature) < d, f"{what} must be indices in 0..{d - 1}, got {shown(feature)}")
    return int(feature)


def _by_name(value: Any) -> Mapping[Any, Any] | None:
    """What is given feature by feature: a mapping, or a Series with names."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "to_numpy") and hasattr(value, "index"):
        names = list(value.index)
        return (
            dict(zip(names, value.to_numpy(), strict=True))
            if isinstance(names[:1] and names[0], str)
            else None
        )
    return None


def units(scale: Any, names: Names, d: int, spread: Float | None = None) -> Float | None:
    """What radius 1 means, one number or (d,): by position, by name (others: 1), or "std": `spread` (d,)."""
    if scale is None:
        return None
    if isinstance(scale, str):
        require(scale == "std", f"scale must be numbers or 'std', got {scale!r}{meant(scale, ['std'])}")
        require(spread is not None, "scale='std' needs a table or a model, got one point: see balls")
        return spread
    named = _by_name(scale)
    if named is None:
        return as_floats("scale", scale)
    found = np.ones(d)
    for name, unit in named.items():
        found[position("scale", name, names, d)] = as_vector("scale", [unit])[0]
    return found


def ends(domain: Any, names: Names, d: int) -> tuple[Any, Any] | None:
    """Where inputs are valid, (low, high), one number or (d,) each; by name, others anywhere."""
    named = _by_name(domain)
    if named is not None:
        pairs = {name: as_doubles("domain", pair) for name, pair in named.items()}
        for name, pair in pairs.items():
            told = f"domain must be (low, high) for {shown(name)}, got shape {pair.shape}"
            require(pair.shape == (2,), told)
        domain = tuple({name: pair[i] for name, pair in pairs.items()} for i in range(2))
    if domain is None:
        return None
    if not isinstance(domain, tuple | list):
        raise InvalidInputError(f"domain must be (low, high), got {shown(domain)}")
    require(len(domain) == 2, f"domain must be (low, high), got {len(domain)} values")
    low, high = domain
    return _end(low, names, d, -np.inf), _end(high, names, d, np.inf)


def _end(given: Any, names: Names, d: int, otherwise: float) -> Any:
    named = _by_name(given)
    if named is None:
        return given
    found = np.full(d, otherwise)
    for name, value in named.items():
        found[position("domain", name, names, d)] = as_doubles("domain", value)
    return found

"""Records as data: one form for regions, settings and answers, exact, versioned, and read with care.

What a record looks like follows from its fields: an object with an entry for each and, of a `Record`, its
class as "kind". Doubles are JSON numbers, which Python writes and reads exactly, or "inf", "-inf",
"nan"; arrays and tuples are lists. Data come from strangers: what is wrong is one sentence.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import cache
from hashlib import sha256
from typing import Any, NoReturn, Self, cast, get_args, get_origin, get_type_hints

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import Float

__all__ = ["NAN", "SCHEMA", "Record", "digest", "encoded", "read"]

SCHEMA = 1
#: Metadata of a field that may hold NaN: nothing known.
NAN = {"nan": True}
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class Record:
    """A dataclass with one form as data; two are equal if that is."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, exact; `from_dict` gives the same back."""
        return {"schema": SCHEMA, **encoded(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """What `to_dict` told; anything else is an error that says which entry breaks which rule."""
        return cast(Self, read(cls, data))

    @property
    def digest(self) -> str:
        """SHA-256 of the data."""
        return digest(encoded(self))

    def flaws(self) -> Iterator[str]:
        """What entries that are each of their kind cannot be together, one sentence each."""
        yield from ()

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def digest(description: Any, *arrays: Float) -> str:
    """SHA-256 of a JSON-able description and of the doubles of arrays (their shapes included), in hex."""
    told = json.dumps([description, [array.shape for array in arrays]], sort_keys=True, allow_nan=False)
    hashed = sha256(told.encode())
    for array in arrays:
        hashed.update(array.astype("<f8", order="C", copy=False).data)
    return hashed.hexdigest()


def encoded(value: Any) -> Any:
    """The value as JSON-able data."""
    if isinstance(value, np.ndarray | np.generic):
        plain = value.dtype.kind != "f" or np.isfinite(value).all()
        value = value.tolist()
        if plain:
            return value
    if is_dataclass(value):
        own: dict[str, Any] = {"kind": type(value).__name__} if isinstance(value, Record) else {}
        return own | {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return str(value) if isinstance(value, Enum) else value


def read(hint: Any, data: object, versioned: bool = True) -> Any:
    """The record of this type, one of several, that `to_dict` told; `versioned`: it says by which schema."""
    if not isinstance(data, dict):
        _refuse("a record", "must be an object", data)
    if versioned and "schema" not in data:
        _refuse("schema", f"must be {SCHEMA}", None)
    return _decoded(hint, data, "")


def _decoded(hint: Any, data: Any, place: str, nan: bool = False) -> Any:
    kinds = _kinds(hint)
    if len(kinds) < len(get_args(hint)) and data is None:
        return None
    kind = kinds[0]
    if issubclass(get_origin(kind) or kind, np.ndarray):
        return _array(get_args(get_args(kind)[1])[0], data, place, nan)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), data, place)
    if is_dataclass(kind):
        return _dataclass(kinds, data, place)
    return _scalar(kind, data, place, nan)


def _kinds(hint: Any) -> list[Any]:
    """The types of a union but None; or the type itself."""
    if get_origin(hint) is tuple or isinstance(hint, type) or get_origin(hint) is np.ndarray:
        return [hint]
    return [kind for kind in get_args(hint) if kind is not type(None)]


def _scalar(kind: type, data: Any, place: str, nan: bool) -> Any:
    if kind is float:
        return _double(data, place, nan)
    if issubclass(kind, Enum):
        if not isinstance(data, str) or data not in [each.value for each in kind]:
            _refuse(place, f"must be one of {', '.join(map(str, kind))}", data)
        return kind(data)
    if type(data) is not kind:
        rules = {int: "must be a whole number", bool: "must be true or false", str: "must be a text"}
        _refuse(place, rules[kind], data)
    return data


def _double(data: Any, place: str, nan: bool) -> float:
    value = _WORDS.get(data) if isinstance(data, str) else data
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(place, "must be a number", data)
    if not abs(value) <= 1.7976931348623157e308 and not isinstance(data, str):
        _refuse(place, "must be a double", data)
    if math.isnan(value) and not nan:
        _refuse(place, "must not be NaN", data)
    return float(value)


def _array(kind: type, data: Any, place: str, nan: bool) -> np.ndarray:
    if not isinstance(data, list):
        _refuse(place, "must be a list", data)
    if any(isinstance(row, list) for row in data):
        rows = [_row(kind, row, place, nan) for row in data]
        if len(set(map(len, rows))) > 1:
            _refuse(place, "must have rows of one length", data)
        return np.array(rows, dtype=kind)
    return np.array(_row(kind, data, place, nan), dtype=kind)


def _row(kind: type, data: Any, place: str, nan: bool) -> list[Any]:
    if not isinstance(data, list):
        _refuse(place, "must have rows of one length", data)
    if kind is np.float64:
        return [_double(value, place, nan) for value in data]
    plain = {np.bool_: bool, np.str_: str}.get(kind, int)
    if plain is int and any(type(value) is int and not -(2**63) <= value < 2**63 for value in data):
        _refuse(place, "must be whole numbers of 64 bits", data)
    return [_scalar(plain, value, place, nan) for value in data]


def _tuple(kinds: tuple[Any, ...], data: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        _refuse(place, "must be a list", data)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(data)
    if len(data) != len(kinds):
        _refuse(place, f"must be {len(kinds)} entries", data)
    pairs = zip(kinds, data, strict=True)
    return tuple(_decoded(kind, value, f"{place}[{i}]") for i, (kind, value) in enumerate(pairs))


def _dataclass(kinds: list[type], data: Any, place: str) -> Any:
    if not isinstance(data, dict):
        _refuse(place, "must be an object", data)
    told, kind, within = dict(data), kinds[0], f"{place}." if place else ""
    if issubclass(kind, Record):
        if (version := told.pop("schema", SCHEMA)) != SCHEMA or type(version) is not int:
            _refuse(f"{within}schema", f"must be {SCHEMA}", version)
        by_name = {kind.__name__: kind for kind in kinds}
        found = told.pop("kind", None)
        if not isinstance(found, str) or found not in by_name:
            _refuse(f"{within}kind", f"must be one of {', '.join(by_name)}", found)
        kind = by_name[found]
    hints = _hints(kind)
    if wrong := sorted(map(str, told.keys() ^ hints.keys())):
        names = ", ".join(name[:40] for name in wrong[:5])
        whole = place or kind.__name__
        raise InvalidInputError(
            f"{whole} must have its entries and no others, got missing or unknown {names}"
        )
    values = {
        name: _decoded(hint, told[name], f"{within}{name}", NAN.items() <= field.metadata.items())
        for name, (hint, field) in hints.items()
    }
    try:
        made = kind(**values)
    except InvalidInputError as error:
        raise InvalidInputError(f"{within}{error}") from None
    for flaw in made.flaws() if hasattr(made, "flaws") else ():
        raise InvalidInputError(f"{within}{flaw}")
    return made


@cache
def _hints(kind: Any) -> dict[str, tuple[Any, Field[Any]]]:
    hints = get_type_hints(kind)
    return {field.name: (hints[field.name], field) for field in fields(kind)}


def _refuse(place: str, rule: str, value: object) -> NoReturn:
    raise InvalidInputError(f"{place} {rule}, got {'nothing' if value is None else reprlib.repr(value)}")

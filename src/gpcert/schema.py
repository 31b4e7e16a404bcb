"""Records as data: one form for regions, settings and answers, exact, versioned, and read with care.

What a record looks like follows from its fields: an object with an entry for each and, of a `Record`, its
class as "kind". Doubles are JSON numbers, which Python writes and reads exactly, or "inf", "-inf",
"nan"; arrays and tuples are lists. Data come from strangers: what is wrong is one sentence.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Self, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from gpcert.classes import Label
from gpcert.errors import InvalidInputError
from gpcert.html import facts
from gpcert.validation import Float, Index, Mask

SCHEMA = 1
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
LARGEST = float(np.finfo(np.float64).max)
#: Letters name the axes of arrays and tuples: one letter is one length in all of a record. A pair: the least
#: and the largest that doubles may be; without it they may be infinite. "nan": NaN, too.
Point = Annotated[Float, "d", (-LARGEST, LARGEST)]
NotNegative = Annotated[float, "", (0.0, math.inf)]
Probability = Annotated[float, "", (0.0, 1.0)]
_Limits = tuple[tuple[float, float], bool]  # least and largest; whether NaN may be
#: Values of classes, None for none.
Labels = NDArray[np.object_]
#: By name: newer versions of numpy say less about their aliases.
_ARRAYS: dict[Any, type] = {
    Float: np.float64,
    Mask: np.bool_,
    Index: np.intp,
    NDArray[np.str_]: np.str_,
    Labels: np.object_,
}
_hints = cache(partial(get_type_hints, include_extras=True))


def optional() -> Any:
    """A field that is left out of the data where it is None: records without it stay as they were."""
    return field(default=None, metadata={"optional": True})


class Record:
    """A dataclass with one form as data; two are equal if that is."""

    def to_dict(self) -> dict[str, Any]:
        """As data, exactly: doubles are JSON numbers that read back to the same bits.

        Returns
        -------
        dict
            For `json.dumps`; `from_dict` gives the same back.
        """
        return {"schema": SCHEMA, **encoded(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """What `to_dict` wrote, as an object again.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.

        Returns
        -------
        an object of this class
            Equal to the one that was written.

        Raises
        ------
        InvalidInputError
            If the data are anything else; the message says which entry breaks which rule.
        """
        return cast(Self, read(cls, data))

    @property
    def digest(self) -> str:
        """SHA-256 of the data."""
        return digest(encoded(self))

    def flaws(self) -> Iterator[str]:
        """What entries that are each of their kind cannot be together, one sentence each."""
        yield from ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in entries(self))})"

    def _repr_html_(self) -> str:
        return facts(type(self).__name__, entries(self))

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)


def entries(record: Any) -> list[tuple[str, str]]:
    """The fields of a record in short, but for what it is about and what it has not."""
    values = {each.name: getattr(record, each.name) for each in fields(record) if each.name != "about"}
    return [(name, _brief(value)) for name, value in values.items() if value is not None]


def _brief(value: Any) -> str:
    """One line, of any dimension."""
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            return f"array of shape {value.shape}"
        return np.array2string(value, threshold=6, edgeitems=2, separator=", ", max_line_width=200)
    if isinstance(value, tuple) and len(value) > 6:
        return f"({', '.join(map(_brief, value[:2]))}, ... {len(value)} in all)"
    if isinstance(value, tuple):
        return f"({', '.join(map(_brief, value))})"
    return str(value) if isinstance(value, Enum) else repr(value)


def digest(description: Any, *arrays: Float) -> str:
    """SHA-256 of a JSON-able description and of the doubles of arrays (their shapes included), in hex."""
    found = json.dumps([description, [array.shape for array in arrays]], sort_keys=True, allow_nan=False)
    hashed = sha256(found.encode())
    for array in arrays:
        hashed.update(array.astype("<f8", order="C", copy=False).data)
    return hashed.hexdigest()


def encoded(value: Any) -> Any:
    """The value as JSON-able data."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        value = value.tolist()
    if is_dataclass(value):
        own: dict[str, Any] = {"kind": type(value).__name__} if isinstance(value, Record) else {}
        given = {each.name: encoded(getattr(value, each.name)) for each in fields(value)}
        missing = {each.name for each in fields(value) if each.metadata and given[each.name] is None}
        return own | {name: entry for name, entry in given.items() if name not in missing}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(value)
    return str(value) if isinstance(value, Enum) else value


def read(hint: Any, data: object, sizes: Mapping[str, int] | None = None, versioned: bool = True) -> Any:
    """The record of this type, one of several, that `to_dict` wrote; `versioned`: it says by which schema.

    `sizes`: lengths of axes that are known.
    """
    if versioned and isinstance(data, dict) and "schema" not in data:
        raise InvalidInputError(f"schema must be {SCHEMA}, got nothing")
    return _Reader(dict(sizes or {})).value(hint, data, "")


class _Reader:
    """Reads one record with all that is inside it; `sizes`: lengths of the axes seen so far."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    def value(self, hint: Any, data: Any, place: str) -> Any:
        """The value that the data describe, by its type."""
        union = isinstance(hint, UnionType) or get_origin(hint) is Union
        kinds = [kind for kind in get_args(hint) if kind is not NoneType] if union else [hint]
        if data is None and len(kinds) < len(get_args(hint)) and union:
            return None
        if hint in (Label, Label | None):
            return _label(data, place)
        marked = get_origin(kinds[0]) is Annotated
        kind, axes, *marks = get_args(kinds[0]) if marked else (kinds[0], "?")
        limits = next((mark for mark in marks if mark != "nan"), (-math.inf, math.inf)), "nan" in marks
        if kind in _ARRAYS:
            return self._array(_ARRAYS[kind], data, place, axes, limits)
        if get_origin(kind) is tuple:
            return self._tuple(get_args(kind), data, place, axes)
        if is_dataclass(kind):
            return self._record(kinds, data, place)
        return _scalar(kind, data, place, limits)

    def _array(self, kind: type, data: Any, place: str, axes: str, limits: _Limits) -> Any:
        plain = {np.float64: float, np.bool_: bool, np.str_: str}.get(kind, np.intp)
        rows = data if len(axes) == 2 and isinstance(data, list) else [data]
        for row in rows:
            _must(isinstance(row, list), place, "must be a list" if len(axes) == 1 else "must be lists", data)
        _must(len({*map(len, rows)}) <= 1, place, "must have rows of one length", data)
        shape = len(rows), len(rows[0]) if rows else self._sizes.get(axes[-1], 0)
        self._fits(axes, shape[-len(axes) :], place)
        if kind is np.object_:
            values = [[None if each is None else _label(each, place) for each in row] for row in rows]
        else:
            values = [[_scalar(plain, each, place, limits) for each in row] for row in rows]
        return np.array(values, dtype="<U7" if kind is np.str_ else kind).reshape(shape[-len(axes) :])

    def _tuple(self, kinds: tuple[Any, ...], data: Any, place: str, axes: str) -> Any:
        _must(isinstance(data, list), place, "must be a list", data)
        kinds = kinds[:1] * len(data) if kinds[-1] is Ellipsis else kinds
        _must(len(data) == len(kinds), place, f"must have {len(kinds)} entries", data)
        self._fits(axes, (len(data),), place)
        pairs = zip(kinds, data, strict=True)
        return tuple(self.value(k, each, f"{place}[{i}]") for i, (k, each) in enumerate(pairs))

    def _fits(self, axes: str, shape: tuple[int, ...], place: str) -> None:
        for axis, length in zip(axes, shape, strict=True):
            known = length if axis == "?" else self._sizes.setdefault(axis, length)
            _must(length == known, place, f"must have length {known}", length)

    def _record(self, kinds: list[Any], data: Any, place: str) -> Any:
        _must(isinstance(data, dict), place or "a record", "must be an object", data)
        given, kind, within = dict(data), kinds[0], f"{place}." if place else ""
        if issubclass(kind, Record):
            version, name = given.pop("schema", SCHEMA), given.pop("kind", None)
            _must(type(version) is int and version == SCHEMA, f"{within}schema", f"must be {SCHEMA}", version)
            names = [each.__name__ for each in kinds]
            _must(
                isinstance(name, str) and name in names,
                f"{within}kind",
                f"must be one of {', '.join(names)}",
                name,
            )
            kind = kinds[names.index(name)]
        hints = {each.name: _hints(kind)[each.name] for each in fields(kind)}
        given = {each.name: None for each in fields(kind) if each.metadata} | given
        wrong = sorted(str(name)[:40] for name in given.keys() ^ hints.keys())[:5]
        _must(not wrong, place or kind.__name__, "must have its entries and no others", wrong)
        # Regions first: they say how many features there are.
        order = sorted(hints, key=lambda name: not isinstance(given[name], dict))
        values = {name: self.value(hints[name], given[name], f"{within}{name}") for name in order}
        try:
            made = kind(**values)
        except InvalidInputError as error:
            raise InvalidInputError(f"{within}{error}") from None
        for flaw in made.flaws() if hasattr(made, "flaws") else ():
            raise InvalidInputError(f"{within}{flaw}")
        return made


def _label(data: Any, place: str) -> Any:
    number = math.isfinite(data) if type(data) is float else type(data) is int and abs(data) < 2**64
    known = number or type(data) in (bool, str)
    _must(known, place, "must be a number or a text", data)
    return data


def _double(data: Any, place: str, limits: _Limits) -> float:
    (least, most), nan = limits
    if type(data) is float and least <= data <= most:  # most are
        return data
    value: Any = _WORDS.get(data) if isinstance(data, str) else data
    _must(type(value) in (int, float), place, "must be a number", data)
    _must(type(value) is float or abs(value) <= LARGEST, place, "must be a double", data)
    _must(nan or value == value, place, "must not be NaN", data)
    rule = f"be in [{least:g}, {most:g}]" if most < LARGEST else f"be >= {least:g}"
    rule = "be finite" if (-least, most) == (LARGEST, LARGEST) else rule
    _must(not (value < least or value > most), place, f"must {rule}", data)
    return float(value)


def _scalar(kind: Any, data: Any, place: str, limits: _Limits) -> Any:
    if kind is float:
        return _double(data, place, limits)
    if kind in (int, np.intp):
        least = 0 if kind is int else -1
        _must(type(data) is int and least <= data < 2**63, place, f"must be a whole number >= {least}", data)
    elif issubclass(kind, Enum):
        names = [each.value for each in kind]
        _must(isinstance(data, str) and data in names, place, f"must be one of {', '.join(names)}", data)
        return kind(data)
    else:
        _must(type(data) is kind, place, "must be true or false" if kind is bool else "must be a text", data)
    return data


def _must(holds: bool, place: str, rule: str, value: object) -> None:
    if not holds:
        try:
            got = "nothing" if value is None else reprlib.repr(value)
        except ValueError:  # an integer of thousands of digits
            got = f"a {type(value).__name__} too long to show"
        raise InvalidInputError(f"{place} {rule}, got {got}")

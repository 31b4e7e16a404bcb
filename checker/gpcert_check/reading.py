"""Reading what strangers wrote: JSON without surprises, and numbers that are exactly doubles.

Whatever is wrong is one `Reject`. Sizes are limited before anything is built from them, so that time and
memory stay bounded whatever the file holds.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, NoReturn

MOST_BYTES = 2**25  # of a proof
MOST_VALUES = 2_000_000  # lists, objects and their entries in one file: bounds the memory that JSON takes
_HEX = re.compile(r"-?0x[01]\.[0-9a-f]{1,13}p[+-][0-9]{1,4}\Z")
_LONGEST = 10  # digits of an integer


class Reject(Exception):
    """The first step that fails, as one sentence."""


def need(condition: object, reason: str) -> None:
    """Nothing but True passes: a comparison of balls that is not certain is False."""
    if condition is not True:
        raise Reject(reason)


def content(path: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file of bounded size."""
    need(os.path.isfile(path), "no such regular file")
    need(os.path.getsize(path) <= most, f"the file is larger than {most} bytes")
    with open(path, "rb") as file:
        return file.read(most)  # no more, whatever has grown


def strict(blob: bytes, decimals: bool = False) -> Any:
    """JSON without duplicate fields, NaN, long integers or, unless `decimals`, numbers with a point."""
    values = sum(map(blob.count, (b"[", b"{", b",")))
    need(values <= MOST_VALUES, f"the file has more than {MOST_VALUES} values")
    readers: Any = {"parse_float": float, "parse_int": int} if decimals else _EXACT
    try:
        return json.loads(blob.decode(), object_pairs_hook=_object, parse_constant=_no_number, **readers)
    except (ValueError, RecursionError) as error:
        raise Reject(f"the file is not JSON ({type(error).__name__})") from None


def _object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    need(len(found) == len(items), "an object has a field twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise Reject(f"a number must be an integer or a hexadecimal string, got {text[:40]}")


def _integer(text: str) -> int:
    need(len(text) <= _LONGEST, f"an integer must have at most {_LONGEST} digits, got {text[:40]}")
    return int(text)


_EXACT = {"parse_float": _no_number, "parse_int": _integer}


def fields(data: Any, required: str, optional: str = "") -> list[Any]:
    """The entries of an object that has the required fields, perhaps optional ones (else None), no others."""
    first, more = required.split(), optional.split()
    need(isinstance(data, dict), f"expected an object with the fields {required}")
    wrong = sorted((set(first) - set(data)) | (set(data) - set(first) - set(more)))
    need(not wrong, f"expected the fields {required}; missing or unknown: {' '.join(wrong)[:60]}")
    need(all(data[name] is not None for name in more if name in data), "an optional field is null")
    return [data.get(name) for name in first + more]


def real(text: Any) -> float:
    """A finite double, written as `float.hex` writes it: the text is the number, not something near it."""
    fits = isinstance(text, str) and _HEX.match(text) is not None
    need(fits, f"not a hexadecimal double: {str(text)[:40]}")
    try:
        value = float.fromhex(text)
    except OverflowError:
        raise Reject(f"not a double: {text}") from None
    need(value.hex() == text, f"not a double as it is written: {text}")
    return value


def listed(data: Any, length: int, what: str = "entries") -> list[Any]:
    """A list of that length."""
    need(isinstance(data, list) and len(data) == length, f"expected a list of {length} {what}")
    found: list[Any] = data
    return found


def reals(data: Any, length: int) -> list[float]:
    """That many doubles."""
    return [real(each) for each in listed(data, length, "numbers")]


def integer(data: Any, low: int, high: int) -> int:
    """A whole number in [low, high]; true and false are none."""
    fits = type(data) is int and low <= data <= high
    need(fits, f"expected an integer in [{low}, {high}], got {str(data)[:40]}")
    number: int = data
    return number

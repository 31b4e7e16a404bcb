"""The entries of one answer in a results file, each checked before it is used.

Files come from strangers: a wrong value is an error that names the file, the answer, the rule and the value.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import Float

__all__ = ["Fields", "is_number", "is_text"]

#: Numbers are smaller: their differences do not overflow.
_HUGE = 2.0**1023


class Fields:
    """Checked access to an answer; None for what is missing or null, where that is allowed."""

    def __init__(self, path: Path, i: int, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._place = f"{path}: answer {i} (row {entries['row']})"

    def __contains__(self, name: str) -> bool:
        return self._entries.get(name) is not None

    def refuse(self, rule: str) -> NoReturn:
        """The error with the place of this answer."""
        raise InvalidInputError(f"{self._place}: {rule}")

    def number(self, name: str, least: float = -_HUGE, most: float = _HUGE) -> float:
        """A finite number in [least, most]."""
        value = self._entries.get(name)
        if not is_number(value):
            self._refuse_value(name, "must be a finite number", value)
        if not least <= value <= most:
            self._refuse_value(name, f"must be {_within(least, most)}", value)
        return float(value)

    def pair(self, name: str, least: float, most: float) -> tuple[float, float]:
        """Lower and upper end, in this order, in [least, most]."""
        value = self._entries.get(name)
        ends = self.vector(name)
        if ends is None or len(ends) != 2:
            self._refuse_value(name, "must be two numbers", value)
        low, high = ends.tolist()
        if not least <= low <= high <= most:
            self._refuse_value(name, f"must be lower and upper end {_within(least, most)}", value)
        return low, high

    def vector(self, name: str, size: int = 0, least: float = -_HUGE, most: float = _HUGE) -> Float | None:
        """Finite numbers in [least, most], `size` of them if that is known."""
        value = self._entries.get(name)
        if value is None:
            return None
        if not (isinstance(value, list) and value and all(map(is_number, value))):
            self._refuse_value(name, "must be a list of finite numbers", value)
        if size and len(value) != size:
            self._refuse_value(name, f"must have length {size}", len(value))
        if not least <= min(value) <= max(value) <= most:
            self._refuse_value(name, f"must be {_within(least, most)}", value)
        return np.array(value, dtype=np.float64)

    def text(self, name: str, known: Sequence[str] = ()) -> str | None:
        """A text, one of those known if there are any."""
        value = self._entries.get(name)
        if value is None:
            return None
        if not is_text(value):
            self._refuse_value(name, "must be a text", value)
        if known and value not in known:
            self._refuse_value(name, f"must be one of {', '.join(known[:12])}", value)
        return value

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self._entries.get(name)
        if not isinstance(value, bool):
            self._refuse_value(name, "must be true or false", value)
        return value

    def class_name(self, classes: Sequence[str]) -> str:
        """The class whose position is the entry "class"."""
        position = self._entries.get("class")
        if type(position) is not int or not 0 <= position < len(classes):
            self._refuse_value("class", "must be a position in the model's classes", position)
        return classes[position]

    def _refuse_value(self, name: str, rule: str, value: object) -> NoReturn:
        self.refuse(f"{name} {rule}, got {'nothing' if value is None else reprlib.repr(value)}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value of a JSON file is a number that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_HUGE < value < _HUGE


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value of a JSON file is a string of characters: \\ud800 alone is none."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _within(least: float, most: float) -> str:
    if most == _HUGE:
        return f">= {least:g}"
    return f"in [{round(least, 3) + 0.0:g}, {round(most, 3):g}]"

"""Classes by their values: the one rule by which a label is found, and what a class is called."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gpcert.errors import InvalidInputError
from gpcert.validation import meant, printable, shown

#: The value of a class.
Label = bool | int | float | str
_SHOWN = 12  # classes named in a sentence


def position(classes: Sequence[Label], label: Any, what: str = "label") -> int:
    """Where a label stands among the classes; None: of two classes the second."""
    return 1 if label is None and len(classes) == 2 else positions(classes, [label], what)[0]


def positions(classes: Sequence[Label], labels: Sequence[Any], what: str = "label") -> list[int]:
    """Where each label stands among the classes: a label is a class if it prints the same.

    1, 1.0, np.int64(1) and the text "1" print the same; True prints as "True".
    """
    known = {text: c for c, value in enumerate(classes) for text in (_printed(value), str(value))}
    found = [known.get(_printed(label), -1) for label in labels]
    if -1 in found:
        odd = labels[found.index(-1)]
        message = (
            "none"
            if odd is None
            else f"{shown(odd)[:60]}{meant(odd, classes) if isinstance(odd, str) else ''}"
        )
        raise InvalidInputError(f"{what} must be one of {listed(classes)}, got {message}")
    return found


def _printed(label: Any) -> str | None:
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    with suppress(ValueError):  # an integer of thousands of digits
        return str(value) if isinstance(value, Label) else None
    return None


def listed(classes: Sequence[Label]) -> str:
    """The classes, of many the first few, for a sentence."""
    return ", ".join(repr(value)[:60] for value in classes[:_SHOWN]) + (
        ", ..." if len(classes) > _SHOWN else ""
    )


def called(label: Label) -> str:
    """A class in P(...): its name, "class 1" where it is a number; what steers a terminal is replaced."""
    name = printable(str(label))
    words = isinstance(label, str) and any(c.isalpha() for c in name)
    return name if words else f"class {name}"

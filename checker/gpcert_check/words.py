"""What is said to people: regions, classes and rows by name. Names are data, written by strangers: they are
quoted and escaped, and nothing that is proved depends on them.
"""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction
from typing import Any

from gpcert_check.reading import fields, need
from gpcert_check.regions import Box

_SHORT = 8  # features
_LONGEST = 200  # characters of a name
_HEXES = re.compile('"(-?0x[^"]*)"')


class Names:
    """Those of a model file, and the row that a proof file says it is about."""

    def __init__(self, features: Any, classes: Any, D: int) -> None:
        known = isinstance(features, list) and len(features) == D
        self.features = [str(each) for each in features] if known else [f"x{j}" for j in range(D)]
        labels = classes.get("labels") if isinstance(classes, dict) else None
        self._labels = [*map(_label, labels)] if isinstance(labels, list) else []
        self.row: str | None = None

    def read(self, about: Any) -> None:
        """The names in a proof file: those of features and classes must be the model's."""
        row, features, classes = (None,) * 3 if about is None else fields(about, "", "row features classes")
        fits = row is None or (isinstance(row, str) and len(row) <= _LONGEST)
        need(fits, f"the name of a row must be a text of at most {_LONGEST} characters")
        for told, own, what in ((features, self.features, "features"), (classes, self._labels, "classes")):
            need(told is None or told == own, f"the file names other {what} than the model")
        self.row = row

    def of(self, label: int) -> str:
        """A class: its number, counted from 0, and its name where the model has one."""
        known = label < len(self._labels)
        return f"class {label} ({self._labels[label][:40]!r})" if known else f"class {label}"

    def region(self, data: Any, region: Box) -> str:
        """A region in a sentence: its description, of a long one without its lists but with the hash of all;
        and how far the features go that move.
        """
        text = json.dumps(data, sort_keys=True)
        if len(region.lower) > _SHORT:
            short = {name: each for name, each in data.items() if not isinstance(each, list)}
            text = json.dumps(short | {"SHA-256": hashlib.sha256(text.encode()).hexdigest()})
        told = _HEXES.sub(lambda found: repr(float.fromhex(found[1])), text)
        head = f"the region {told}, in which {len(region.moving)} of {len(region.lower)} features move"
        ends = [self._interval(region, j) for j in region.moving[:_SHORT]]
        more = ["..."] if len(region.moving) > _SHORT else []
        return f"{head}: {', '.join([*ends, *more])}" if ends else head

    def _interval(self, region: Box, j: int) -> str:
        """From where to where a feature may go, of a ball if no other moves."""
        low, high = (_about(end) for end in (region.lower[j], region.upper[j]))
        return f"{self.features[j][:40]!r} from {low} to {high}"


def _label(value: Any) -> str:
    """A class as the model prints it; numbers with a point are hexadecimal in model files."""
    try:
        return str(float.fromhex(value)) if str(value).lstrip("-").startswith("0x") else str(value)
    except (OverflowError, ValueError):
        return str(value)


def _about(end: Fraction) -> str:
    """Six digits, where these are not all."""
    text = f"{float(end):.6g}"
    return text if Fraction(text) == end else f"about {text}"


def plain(text: str, encoding: str | None) -> str:
    """One line, of what the terminal can write: whatever would steer it, or turn a line round, is escaped."""
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoding = encoding or "utf-8"
    return "".join(shown).encode(encoding, "backslashreplace").decode(encoding)
